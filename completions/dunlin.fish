# Completes the words of dunlin in fish. `UPDATE=1 cargo test --lib completions` writes what is between the marks.
complete -c dunlin -n __fish_is_first_arg -a run -d 'run a command with a server of its own'
complete -c dunlin -n __fish_is_first_arg -a ping -d 'tell whether a server answers'
complete -c dunlin -n __fish_is_first_arg -a check -d 'tell whether a file of data can be loaded'
complete -c dunlin -n __fish_is_first_arg -a container -d 'start a server in a container'
complete -c dunlin -s h -l help -d 'print the help'
complete -c dunlin -s v -l version -d 'print the version'
# begin: parameters
complete -c dunlin -l acl-pubsub-default -x -a 'allchannels resetchannels'
complete -c dunlin -l aclfile -r
complete -c dunlin -l acllog-max-len -r
complete -c dunlin -l active-defrag-cycle-max -r
complete -c dunlin -l active-defrag-cycle-min -r
complete -c dunlin -l active-defrag-ignore-bytes -r
complete -c dunlin -l active-defrag-max-scan-fields -r
complete -c dunlin -l active-defrag-threshold-lower -r
complete -c dunlin -l active-defrag-threshold-upper -r
complete -c dunlin -l active-expire-effort -r
complete -c dunlin -l activedefrag -x -a 'yes no'
complete -c dunlin -l activerehashing -x -a 'yes no'
complete -c dunlin -l always-show-logo -x -a 'yes no'
complete -c dunlin -l announce -x -a 'yes no'
complete -c dunlin -l aof-checksum -x -a 'yes no'
complete -c dunlin -l aof-load-truncated -x -a 'yes no'
complete -c dunlin -l aof-rewrite-cpulist -r
complete -c dunlin -l aof-rewrite-incremental-fsync -x -a 'yes no'
complete -c dunlin -l aof-timestamp-enabled -x -a 'yes no'
complete -c dunlin -l aof-use-rdb-preamble -x -a 'yes no'
complete -c dunlin -l appenddirname -r
complete -c dunlin -l appendfilename -r
complete -c dunlin -l appendfsync -x -a 'everysec always no'
complete -c dunlin -l appendonly -x -a 'yes no'
complete -c dunlin -l auto-aof-rewrite-min-size -r
complete -c dunlin -l auto-aof-rewrite-percentage -r
complete -c dunlin -l bgsave-cpulist -r
complete -c dunlin -l bind -r
complete -c dunlin -l bind-source-addr -r
complete -c dunlin -l bio-cpulist -r
complete -c dunlin -l busy-reply-threshold -r
complete -c dunlin -l client-output-buffer-limit -r
complete -c dunlin -l client-query-buffer-limit -r
complete -c dunlin -l cluster -r
complete -c dunlin -l cluster-allow-pubsubshard-when-down -x -a 'yes no'
complete -c dunlin -l cluster-allow-reads-when-down -x -a 'yes no'
complete -c dunlin -l cluster-allow-replica-migration -x -a 'yes no'
complete -c dunlin -l cluster-announce-bus-port -r
complete -c dunlin -l cluster-announce-hostname -r
complete -c dunlin -l cluster-announce-human-nodename -r
complete -c dunlin -l cluster-announce-ip -r
complete -c dunlin -l cluster-announce-port -r
complete -c dunlin -l cluster-announce-tls-port -r
complete -c dunlin -l cluster-compatibility-sample-ratio -r
complete -c dunlin -l cluster-config-file -r
complete -c dunlin -l cluster-enabled -x -a 'yes no'
complete -c dunlin -l cluster-link-sendbuf-limit -r
complete -c dunlin -l cluster-migration-barrier -r
complete -c dunlin -l cluster-node-timeout -r
complete -c dunlin -l cluster-port -r
complete -c dunlin -l cluster-preferred-endpoint-type -x -a 'ip hostname unknown-endpoint'
complete -c dunlin -l cluster-replica-no-failover -x -a 'yes no'
complete -c dunlin -l cluster-replica-validity-factor -r
complete -c dunlin -l cluster-require-full-coverage -x -a 'yes no'
complete -c dunlin -l crash-log-enabled -x -a 'yes no'
complete -c dunlin -l crash-memcheck-enabled -x -a 'yes no'
complete -c dunlin -l daemonize -x -a 'yes no'
complete -c dunlin -l databases -r
complete -c dunlin -l dbfilename -r
complete -c dunlin -l dir -r
complete -c dunlin -l disable-thp -x -a 'yes no'
complete -c dunlin -l dynamic-hz -x -a 'yes no'
complete -c dunlin -l enable-debug-command -x -a 'no yes local'
complete -c dunlin -l enable-module-command -x -a 'no yes local'
complete -c dunlin -l enable-protected-configs -x -a 'no yes local'
complete -c dunlin -l end-with -r
complete -c dunlin -l free-port -x -a 'yes no'
complete -c dunlin -l hash-max-listpack-entries -r
complete -c dunlin -l hash-max-listpack-value -r
complete -c dunlin -l hide-user-data-from-log -x -a 'yes no'
complete -c dunlin -l hll-sparse-max-bytes -r
complete -c dunlin -l hz -r
complete -c dunlin -l idle-end -r
complete -c dunlin -l ignore-warnings -r
complete -c dunlin -l io-threads -r
complete -c dunlin -l jemalloc-bg-thread -x -a 'yes no'
complete -c dunlin -l latency-monitor-threshold -r
complete -c dunlin -l latency-tracking -x -a 'yes no'
complete -c dunlin -l latency-tracking-info-percentiles -r
complete -c dunlin -l lazyfree-lazy-eviction -x -a 'yes no'
complete -c dunlin -l lazyfree-lazy-expire -x -a 'yes no'
complete -c dunlin -l lazyfree-lazy-server-del -x -a 'yes no'
complete -c dunlin -l lazyfree-lazy-user-del -x -a 'yes no'
complete -c dunlin -l lazyfree-lazy-user-flush -x -a 'yes no'
complete -c dunlin -l lfu-decay-time -r
complete -c dunlin -l lfu-log-factor -r
complete -c dunlin -l list-compress-depth -r
complete -c dunlin -l list-max-listpack-size -r
complete -c dunlin -l load -r
complete -c dunlin -l locale-collate -r
complete -c dunlin -l logfile -r
complete -c dunlin -l loglevel -x -a 'debug verbose notice warning nothing'
complete -c dunlin -l masterauth -r
complete -c dunlin -l masteruser -r
complete -c dunlin -l max-new-connections-per-cycle -r
complete -c dunlin -l max-new-tls-connections-per-cycle -r
complete -c dunlin -l maxclients -r
complete -c dunlin -l maxmemory -r
complete -c dunlin -l maxmemory-clients -r
complete -c dunlin -l maxmemory-eviction-tenacity -r
complete -c dunlin -l maxmemory-policy -x -a 'volatile-lru volatile-lfu volatile-random volatile-ttl allkeys-lru allkeys-lfu allkeys-random noeviction'
complete -c dunlin -l maxmemory-samples -r
complete -c dunlin -l min-replicas-max-lag -r
complete -c dunlin -l min-replicas-to-write -r
complete -c dunlin -l no-appendfsync-on-rewrite -x -a 'yes no'
complete -c dunlin -l notify-keyspace-events -r
complete -c dunlin -l oom-score-adj -x -a 'no yes relative absolute'
complete -c dunlin -l oom-score-adj-values -r
complete -c dunlin -l page-bind -r
complete -c dunlin -l page-host -r
complete -c dunlin -l page-port -r
complete -c dunlin -l page-token -x -a 'yes no'
complete -c dunlin -l pidfile -r
complete -c dunlin -l port -r
complete -c dunlin -l port-file -r
complete -c dunlin -l proc-title-template -r
complete -c dunlin -l propagation-error-behavior -x -a 'ignore panic panic-on-replicas'
complete -c dunlin -l protected-mode -x -a 'yes no'
complete -c dunlin -l proto-max-bulk-len -r
complete -c dunlin -l rdb-del-sync-files -x -a 'yes no'
complete -c dunlin -l rdb-save-incremental-fsync -x -a 'yes no'
complete -c dunlin -l rdb-version -r
complete -c dunlin -l rdbchecksum -x -a 'yes no'
complete -c dunlin -l rdbcompression -x -a 'yes no'
complete -c dunlin -l repl-backlog-size -r
complete -c dunlin -l repl-backlog-ttl -r
complete -c dunlin -l repl-disable-tcp-nodelay -x -a 'yes no'
complete -c dunlin -l repl-diskless-load -x -a 'disabled on-empty-db swapdb'
complete -c dunlin -l repl-diskless-sync -x -a 'yes no'
complete -c dunlin -l repl-diskless-sync-delay -r
complete -c dunlin -l repl-diskless-sync-max-replicas -r
complete -c dunlin -l repl-ping-replica-period -r
complete -c dunlin -l repl-timeout -r
complete -c dunlin -l replica-announce-ip -r
complete -c dunlin -l replica-announce-port -r
complete -c dunlin -l replica-announced -x -a 'yes no'
complete -c dunlin -l replica-full-sync-buffer-limit -r
complete -c dunlin -l replica-ignore-disk-write-errors -x -a 'yes no'
complete -c dunlin -l replica-ignore-maxmemory -x -a 'yes no'
complete -c dunlin -l replica-lazy-flush -x -a 'yes no'
complete -c dunlin -l replica-priority -r
complete -c dunlin -l replica-read-only -x -a 'yes no'
complete -c dunlin -l replica-serve-stale-data -x -a 'yes no'
complete -c dunlin -l replicaof -r
complete -c dunlin -l replicas -r
complete -c dunlin -l requirepass -r
complete -c dunlin -l sanitize-dump-payload -x -a 'no yes clients'
complete -c dunlin -l save -r
complete -c dunlin -l server-cpulist -r
complete -c dunlin -l set-max-intset-entries -r
complete -c dunlin -l set-max-listpack-entries -r
complete -c dunlin -l set-max-listpack-value -r
complete -c dunlin -l set-proc-title -x -a 'yes no'
complete -c dunlin -l shutdown-on-sigint -r
complete -c dunlin -l shutdown-on-sigterm -r
complete -c dunlin -l shutdown-timeout -r
complete -c dunlin -l slowlog-log-slower-than -r
complete -c dunlin -l slowlog-max-len -r
complete -c dunlin -l socket-mark-id -r
complete -c dunlin -l stop-writes-on-bgsave-error -x -a 'yes no'
complete -c dunlin -l stream-node-max-bytes -r
complete -c dunlin -l stream-node-max-entries -r
complete -c dunlin -l supervised -x -a 'upstart systemd auto no'
complete -c dunlin -l syslog-enabled -x -a 'yes no'
complete -c dunlin -l syslog-facility -x -a 'user local0 local1 local2 local3 local4 local5 local6 local7'
complete -c dunlin -l syslog-ident -r
complete -c dunlin -l tcp-backlog -r
complete -c dunlin -l tcp-keepalive -r
complete -c dunlin -l test-kit -x -a 'yes no'
complete -c dunlin -l timeout -r
complete -c dunlin -l tls-auth-clients -x -a 'no yes optional'
complete -c dunlin -l tls-ca-cert-dir -r
complete -c dunlin -l tls-ca-cert-file -r
complete -c dunlin -l tls-cert-file -r
complete -c dunlin -l tls-ciphers -r
complete -c dunlin -l tls-ciphersuites -r
complete -c dunlin -l tls-client-cert-file -r
complete -c dunlin -l tls-client-key-file -r
complete -c dunlin -l tls-client-key-file-pass -r
complete -c dunlin -l tls-cluster -x -a 'yes no'
complete -c dunlin -l tls-dh-params-file -r
complete -c dunlin -l tls-key-file -r
complete -c dunlin -l tls-key-file-pass -r
complete -c dunlin -l tls-port -r
complete -c dunlin -l tls-prefer-server-ciphers -x -a 'yes no'
complete -c dunlin -l tls-protocols -r
complete -c dunlin -l tls-replication -x -a 'yes no'
complete -c dunlin -l tls-session-cache-size -r
complete -c dunlin -l tls-session-cache-timeout -r
complete -c dunlin -l tls-session-caching -x -a 'yes no'
complete -c dunlin -l tracking-table-max-keys -r
complete -c dunlin -l unixsocket -r
complete -c dunlin -l unixsocketperm -r
complete -c dunlin -l zset-max-listpack-entries -r
complete -c dunlin -l zset-max-listpack-value -r
# end: parameters
