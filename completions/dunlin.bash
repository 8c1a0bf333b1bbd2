# Completes the words of dunlin in bash. `UPDATE=1 cargo test --lib completions` writes what is between the marks.
_dunlin() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=
    [ "$COMP_CWORD" != 1 ] || words='run ping check container --help --version'
    case $before in
        # begin: parameters
        --acl-pubsub-default) words='allchannels resetchannels' ;;
        --activedefrag) words='yes no' ;;
        --activerehashing) words='yes no' ;;
        --always-show-logo) words='yes no' ;;
        --announce) words='yes no' ;;
        --aof-checksum) words='yes no' ;;
        --aof-load-truncated) words='yes no' ;;
        --aof-rewrite-incremental-fsync) words='yes no' ;;
        --aof-timestamp-enabled) words='yes no' ;;
        --aof-use-rdb-preamble) words='yes no' ;;
        --appendfsync) words='everysec always no' ;;
        --appendonly) words='yes no' ;;
        --cluster-allow-pubsubshard-when-down) words='yes no' ;;
        --cluster-allow-reads-when-down) words='yes no' ;;
        --cluster-allow-replica-migration) words='yes no' ;;
        --cluster-enabled) words='yes no' ;;
        --cluster-preferred-endpoint-type) words='ip hostname unknown-endpoint' ;;
        --cluster-replica-no-failover) words='yes no' ;;
        --cluster-require-full-coverage) words='yes no' ;;
        --crash-log-enabled) words='yes no' ;;
        --crash-memcheck-enabled) words='yes no' ;;
        --daemonize) words='yes no' ;;
        --disable-thp) words='yes no' ;;
        --dynamic-hz) words='yes no' ;;
        --enable-debug-command) words='no yes local' ;;
        --enable-module-command) words='no yes local' ;;
        --enable-protected-configs) words='no yes local' ;;
        --free-port) words='yes no' ;;
        --hide-user-data-from-log) words='yes no' ;;
        --jemalloc-bg-thread) words='yes no' ;;
        --latency-tracking) words='yes no' ;;
        --lazyfree-lazy-eviction) words='yes no' ;;
        --lazyfree-lazy-expire) words='yes no' ;;
        --lazyfree-lazy-server-del) words='yes no' ;;
        --lazyfree-lazy-user-del) words='yes no' ;;
        --lazyfree-lazy-user-flush) words='yes no' ;;
        --loglevel) words='debug verbose notice warning nothing' ;;
        --maxmemory-policy) words='volatile-lru volatile-lfu volatile-random volatile-ttl allkeys-lru allkeys-lfu allkeys-random noeviction' ;;
        --no-appendfsync-on-rewrite) words='yes no' ;;
        --oom-score-adj) words='no yes relative absolute' ;;
        --page-token) words='yes no' ;;
        --propagation-error-behavior) words='ignore panic panic-on-replicas' ;;
        --protected-mode) words='yes no' ;;
        --rdb-del-sync-files) words='yes no' ;;
        --rdb-save-incremental-fsync) words='yes no' ;;
        --rdbchecksum) words='yes no' ;;
        --rdbcompression) words='yes no' ;;
        --repl-disable-tcp-nodelay) words='yes no' ;;
        --repl-diskless-load) words='disabled on-empty-db swapdb' ;;
        --repl-diskless-sync) words='yes no' ;;
        --replica-announced) words='yes no' ;;
        --replica-ignore-disk-write-errors) words='yes no' ;;
        --replica-ignore-maxmemory) words='yes no' ;;
        --replica-lazy-flush) words='yes no' ;;
        --replica-read-only) words='yes no' ;;
        --replica-serve-stale-data) words='yes no' ;;
        --sanitize-dump-payload) words='no yes clients' ;;
        --set-proc-title) words='yes no' ;;
        --stop-writes-on-bgsave-error) words='yes no' ;;
        --supervised) words='upstart systemd auto no' ;;
        --syslog-enabled) words='yes no' ;;
        --syslog-facility) words='user local0 local1 local2 local3 local4 local5 local6 local7' ;;
        --test-kit) words='yes no' ;;
        --tls-auth-clients) words='no yes optional' ;;
        --tls-cluster) words='yes no' ;;
        --tls-prefer-server-ciphers) words='yes no' ;;
        --tls-replication) words='yes no' ;;
        --tls-session-caching) words='yes no' ;;
        *) words+=' --acl-pubsub-default --aclfile --acllog-max-len --active-defrag-cycle-max --active-defrag-cycle-min --active-defrag-ignore-bytes --active-defrag-max-scan-fields --active-defrag-threshold-lower --active-defrag-threshold-upper --active-expire-effort --activedefrag --activerehashing --always-show-logo --announce --aof-checksum --aof-load-truncated --aof-rewrite-cpulist --aof-rewrite-incremental-fsync --aof-timestamp-enabled --aof-use-rdb-preamble --appenddirname --appendfilename --appendfsync --appendonly --auto-aof-rewrite-min-size --auto-aof-rewrite-percentage --bgsave-cpulist --bind --bind-source-addr --bio-cpulist --busy-reply-threshold --client-output-buffer-limit --client-query-buffer-limit --cluster --cluster-allow-pubsubshard-when-down --cluster-allow-reads-when-down --cluster-allow-replica-migration --cluster-announce-bus-port --cluster-announce-hostname --cluster-announce-human-nodename --cluster-announce-ip --cluster-announce-port --cluster-announce-tls-port --cluster-compatibility-sample-ratio --cluster-config-file --cluster-enabled --cluster-link-sendbuf-limit --cluster-migration-barrier --cluster-node-timeout --cluster-port --cluster-preferred-endpoint-type --cluster-replica-no-failover --cluster-replica-validity-factor --cluster-require-full-coverage --crash-log-enabled --crash-memcheck-enabled --daemonize --databases --dbfilename --dir --disable-thp --dynamic-hz --enable-debug-command --enable-module-command --enable-protected-configs --end-with --free-port --hash-max-listpack-entries --hash-max-listpack-value --hide-user-data-from-log --hll-sparse-max-bytes --hz --idle-end --ignore-warnings --io-threads --jemalloc-bg-thread --latency-monitor-threshold --latency-tracking --latency-tracking-info-percentiles --lazyfree-lazy-eviction --lazyfree-lazy-expire --lazyfree-lazy-server-del --lazyfree-lazy-user-del --lazyfree-lazy-user-flush --lfu-decay-time --lfu-log-factor --list-compress-depth --list-max-listpack-size --load --locale-collate --logfile --loglevel --masterauth --masteruser --max-new-connections-per-cycle --max-new-tls-connections-per-cycle --maxclients --maxmemory --maxmemory-clients --maxmemory-eviction-tenacity --maxmemory-policy --maxmemory-samples --min-replicas-max-lag --min-replicas-to-write --no-appendfsync-on-rewrite --notify-keyspace-events --oom-score-adj --oom-score-adj-values --page-bind --page-host --page-port --page-token --pidfile --port --port-file --proc-title-template --propagation-error-behavior --protected-mode --proto-max-bulk-len --rdb-del-sync-files --rdb-save-incremental-fsync --rdb-version --rdbchecksum --rdbcompression --repl-backlog-size --repl-backlog-ttl --repl-disable-tcp-nodelay --repl-diskless-load --repl-diskless-sync --repl-diskless-sync-delay --repl-diskless-sync-max-replicas --repl-ping-replica-period --repl-timeout --replica-announce-ip --replica-announce-port --replica-announced --replica-full-sync-buffer-limit --replica-ignore-disk-write-errors --replica-ignore-maxmemory --replica-lazy-flush --replica-priority --replica-read-only --replica-serve-stale-data --replicaof --replicas --requirepass --sanitize-dump-payload --save --server-cpulist --set-max-intset-entries --set-max-listpack-entries --set-max-listpack-value --set-proc-title --shutdown-on-sigint --shutdown-on-sigterm --shutdown-timeout --slowlog-log-slower-than --slowlog-max-len --socket-mark-id --stop-writes-on-bgsave-error --stream-node-max-bytes --stream-node-max-entries --supervised --syslog-enabled --syslog-facility --syslog-ident --tcp-backlog --tcp-keepalive --test-kit --timeout --tls-auth-clients --tls-ca-cert-dir --tls-ca-cert-file --tls-cert-file --tls-ciphers --tls-ciphersuites --tls-client-cert-file --tls-client-key-file --tls-client-key-file-pass --tls-cluster --tls-dh-params-file --tls-key-file --tls-key-file-pass --tls-port --tls-prefer-server-ciphers --tls-protocols --tls-replication --tls-session-cache-size --tls-session-cache-timeout --tls-session-caching --tracking-table-max-keys --unixsocket --unixsocketperm --zset-max-listpack-entries --zset-max-listpack-value' ;;
        # end: parameters
    esac
    # Values that are not listed, and the name of a redis.conf, are names of files.
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _dunlin dunlin
