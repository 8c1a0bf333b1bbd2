//! The settings of the server, each with its type.
//!
//! The spelling, parsing, limits and display of parameters are defined in `config/`: one row there for each field here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::cluster::ClusterSettings;
use crate::engine::spec::{Error, Flags, Notifications, ServerError};
use crate::engine::state::timing::LONG_US;
use crate::engine::state::{ClientsLimit, FileSettings, OutputLimits, Policy, Process, ReplicationSettings, Session};
use crate::rdb::Forms;
use crate::value::{hash, list, set, stream, zset};

/// The clients that may call commands which a setting must enable (`enable-debug-command` and similar).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Permission {
    /// No client.
    #[default]
    No,
    /// Clients on this machine.
    Local,
    /// All clients.
    Yes,
}

impl Permission {
    /// Whether that client has the permission.
    pub fn admits(self, client: &Session) -> bool {
        match self {
            Permission::No => false,
            Permission::Local => client.origin.is_local,
            Permission::Yes => true,
        }
    }

    /// The value's name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Permission::No => "no",
            Permission::Local => "local",
            Permission::Yes => "yes",
        }
    }

    /// The permission of that name; an unknown name gives it to no client.
    pub fn named(name: &str) -> Permission {
        let all = [Permission::Yes, Permission::Local];
        all.into_iter().find(|permission| permission.name() == name).unwrap_or_default()
    }
}

/// `loglevel`: how much the server logs; each level includes all later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LogLevel {
    /// Debug: everything.
    Debug,
    /// Verbose: also every client that connects and disconnects.
    Verbose,
    /// Notice: events of interest to an operator.
    #[default]
    Notice,
    /// Warning: events that an operator must know.
    Warning,
    /// Nothing.
    Nothing,
}

impl LogLevel {
    const ALL: [LogLevel; 5] =
        [LogLevel::Debug, LogLevel::Verbose, LogLevel::Notice, LogLevel::Warning, LogLevel::Nothing];

    /// The value's name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Verbose => "verbose",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
            LogLevel::Nothing => "nothing",
        }
    }

    /// The level of that name; the default one when the name is unknown.
    pub fn named(name: &str) -> LogLevel {
        LogLevel::ALL.into_iter().find(|level| level.name() == name).unwrap_or_default()
    }
}

/// All settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `databases`: the number of databases.
    pub databases: usize,
    /// `requirepass`: the password, empty for none.
    pub password: String,
    /// `aclfile`: the path of the ACL file, empty for none.
    pub acl_file: String,
    /// `user`: users with their rules, as the configuration file declares them.
    pub users: Vec<(String, Vec<String>)>,
    /// `rename-command`: pairs of a command's name and its new name.
    pub renames: Vec<(String, String)>,
    /// `acl-pubsub-default`: whether new users may use all channels.
    pub new_users_get_all_channels: bool,
    /// `acllog-max-len`: the most entries of ACL LOG.
    pub access_log_entries: usize,
    /// `maxclients`: the most clients that may be connected.
    pub max_clients: usize,
    /// `proto-max-bulk-len`: the largest string, in bytes.
    pub max_bulk_bytes: usize,
    /// `client-query-buffer-limit`: the largest unfinished request, in bytes.
    pub query_buffer_bytes: usize,
    /// `client-output-buffer-limit`: the limits of unsent output, by class of client.
    pub output_limits: OutputLimits,
    /// `maxmemory`: the most memory of data and clients, in bytes; 0 for no limit.
    pub max_memory_bytes: u64,
    /// `maxmemory-policy`: which keys are evicted when memory is over that.
    pub policy: Policy,
    /// How much effort eviction makes.
    pub eviction: EvictionEffort,
    /// `maxmemory-clients`: the most memory that all clients together may take.
    pub max_client_bytes: ClientsLimit,
    /// `lazyfree-lazy-expire`, `-eviction` and `-server-del`.
    pub lazy_free: LazyDeletion,
    /// How the counter of a key's uses grows and shrinks.
    pub lfu: LfuCounter,
    /// `tracking-table-max-keys`: the most keys in the tracking table; 0 for no limit.
    pub tracked_keys: usize,
    /// `busy-reply-threshold`: the milliseconds that a script runs before other clients are served; 0 for never.
    pub busy_reply_threshold_ms: u64,
    /// `slowlog-log-slower-than`: the microseconds from which a command is logged; `None` for never.
    pub slowlog_threshold_us: Option<u64>,
    /// `slowlog-max-len`: the most entries of the slow log.
    pub slow_log_entries: usize,
    /// `latency-monitor-threshold`: the milliseconds from which a delay is recorded; 0 for never.
    pub latency_threshold_ms: u64,
    /// `latency-tracking`: whether latency histograms of commands are kept.
    pub tracks_latency: bool,
    /// `latency-tracking-info-percentiles`: the percentiles that INFO shows.
    pub latency_percentiles: Vec<f64>,
    /// `notify-keyspace-events`: the classes of events that are published.
    pub notifications: Notifications,
    /// `enable-debug-command`: the clients that may call DEBUG.
    pub debug_command: Permission,
    /// `test-kit`: whether the commands of the test kit exist.
    pub test_kit: bool,
    /// `enable-module-command`: the clients that may call MODULE.
    pub module_command: Permission,
    /// `enable-protected-configs`: the clients that may change protected parameters.
    pub protected_configs: Permission,
    /// `zset-max-listpack-entries` and `zset-max-listpack-value`: the limits of the small encoding.
    pub packed_zset: zset::Limits,
    /// `hash-max-listpack-entries` and `hash-max-listpack-value`: the limits of the small encoding.
    pub packed_hash: hash::Limits,
    /// `set-max-intset-entries`, `set-max-listpack-entries` and `set-max-listpack-value`.
    pub packed_set: set::Limits,
    /// `hll-sparse-max-bytes`: the most bytes of a HyperLogLog that is not dense yet.
    pub sparse_hll_bytes: usize,
    /// `list-max-listpack-size`.
    pub list_nodes: list::Limits,
    /// `stream-node-max-bytes` and `stream-node-max-entries`.
    pub stream_blocks: stream::Limits,
    /// `hz`: how often Redis runs periodic tasks; without effect here, where everything is done when it is due.
    pub hz: u16,
    /// The settings of replication.
    pub replication: Arc<ReplicationSettings>,
    /// Parameters without effect, by name, where they do not have their default value.
    pub idle: BTreeMap<&'static str, String>,
    /// The settings of the files of data.
    pub files: Arc<FileSettings>,
    /// The settings of a node of a cluster.
    pub cluster: Arc<ClusterSettings>,
    /// `port`: where TCP clients connect; 0 for no TCP.
    pub port: u16,
    /// `bind`: the addresses to listen on; one with a leading `-` may be missing.
    pub bind: Vec<String>,
    /// `tcp-backlog`: connections that may wait to be accepted.
    pub tcp_backlog: u32,
    /// `max-new-connections-per-cycle`: the number of connections that are accepted before others are served.
    pub accepted_at_once: u16,
    /// `tcp-keepalive`: seconds between probes of an idle connection, 0 for none.
    pub tcp_keepalive_s: u32,
    /// `timeout`: seconds after which an idle client is closed, 0 for never.
    pub timeout_s: u32,
    /// `unixsocket`: a path to listen on, empty for none.
    pub unix_socket: String,
    /// `unixsocketperm`: the permissions of the Unix socket, 0 to leave them.
    pub unix_socket_mode: u32,
    /// `protected-mode`: without a password, clients of other machines are refused.
    pub protected_mode: bool,
    /// `io-threads`: the most event loops that serve connections, if it was set.
    pub event_loops: Option<usize>,
    /// The most event loops if `io-threads` was not set.
    pub usual_event_loops: usize,
    /// `loglevel`: the least important level that is logged.
    pub log_level: LogLevel,
    /// `logfile`: the path of the log, empty for the standard output.
    pub log_file: String,
    /// `dir`: the working directory, empty until the server has determined it.
    pub directory: String,
    /// The settings of the process.
    pub process: Arc<Process>,
}

/// How much effort eviction makes.
#[derive(Clone, Copy, Debug)]
pub struct EvictionEffort {
    /// `maxmemory-samples`: the number of keys that are sampled to evict one.
    pub samples: u8,
    /// `maxmemory-eviction-tenacity`: how long a round of eviction may take, from 0 to 100.
    pub tenacity: u8,
}

/// How the counter of a key's uses grows and shrinks (LFU).
#[derive(Clone, Copy, Debug)]
pub struct LfuCounter {
    /// `lfu-log-factor`: how slowly the counter grows.
    pub log_factor: u32,
    /// `lfu-decay-time`: the minutes without use after which the counter loses one; 0 for never.
    pub decay_minutes: u32,
}

impl Default for LfuCounter {
    fn default() -> LfuCounter {
        LfuCounter { log_factor: 10, decay_minutes: 1 }
    }
}

/// Which deletions that no client asked for are UNLINK in the log of changes, not DEL: `lazyfree-lazy-expire` and the
/// like. Here both free large values on another thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct LazyDeletion {
    /// `lazyfree-lazy-expire`: of expired keys.
    pub expired: bool,
    /// `lazyfree-lazy-eviction`: of evicted keys.
    pub evicted: bool,
    /// `lazyfree-lazy-server-del`: of keys that a command deletes or overwrites in passing.
    pub replaced: bool,
}

impl Settings {
    /// The settings of replication, to be changed.
    pub fn replication_mut(&mut self) -> &mut ReplicationSettings {
        Arc::make_mut(&mut self.replication)
    }

    /// Whether writes need replicas.
    pub fn counts_replicas(&self) -> bool {
        self.replication.min_replicas > 0 && self.replication.max_lag_s > 0
    }

    /// The most event loops that serve connections.
    pub fn event_loops(&self) -> usize {
        self.event_loops.unwrap_or(self.usual_event_loops)
    }

    /// The limits that decide the encodings of loaded values.
    pub fn forms(&self) -> Forms {
        Forms { list: self.list_nodes, set: self.packed_set, hash: self.packed_hash, zset: self.packed_zset }
    }

    /// The settings of the files of data, to be changed.
    pub fn files_mut(&mut self) -> &mut FileSettings {
        Arc::make_mut(&mut self.files)
    }

    /// The settings of a node of a cluster, to be changed.
    pub fn cluster_mut(&mut self) -> &mut ClusterSettings {
        Arc::make_mut(&mut self.cluster)
    }

    /// Makes the process start a cluster with that many primaries; 0 for none, which leaves `cluster-enabled` as it is.
    pub fn start_cluster(&mut self, count: u16) {
        let cluster = self.cluster_mut();
        cluster.primaries = count;
        cluster.is_enabled |= count > 0;
    }

    /// The settings of the process, to be changed.
    pub fn process_mut(&mut self) -> &mut Process {
        Arc::make_mut(&mut self.process)
    }

    /// The path of the RDB file.
    pub fn dump_path(&self) -> PathBuf {
        Path::new(&self.directory).join(&self.files.dump_file)
    }

    /// Sets the seed of member hashing, for collections that are flooded with colliding members.
    pub(in crate::engine) fn seed_members(&mut self, seed: u64) {
        for place in [&mut self.packed_zset.seed, &mut self.packed_hash.seed, &mut self.packed_set.seed] {
            *place = seed;
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            databases: 16,
            password: String::new(),
            acl_file: String::new(),
            users: Vec::new(),
            renames: Vec::new(),
            new_users_get_all_channels: false,
            access_log_entries: 128,
            max_clients: 10_000,
            max_bulk_bytes: 512 << 20,
            query_buffer_bytes: 1 << 30,
            output_limits: OutputLimits::default(),
            max_memory_bytes: 0,
            policy: Policy::NoEviction,
            eviction: EvictionEffort { samples: 5, tenacity: 10 },
            max_client_bytes: ClientsLimit::Bytes(0),
            lazy_free: LazyDeletion::default(),
            lfu: LfuCounter::default(),
            tracked_keys: 1_000_000,
            busy_reply_threshold_ms: 5000,
            slowlog_threshold_us: Some(10_000),
            slow_log_entries: 128,
            latency_threshold_ms: 0,
            tracks_latency: true,
            latency_percentiles: vec![50.0, 99.0, 99.9],
            notifications: Notifications::default(),
            debug_command: Permission::No,
            test_kit: false,
            module_command: Permission::No,
            protected_configs: Permission::No,
            packed_zset: zset::Limits::default(),
            packed_hash: hash::Limits::default(),
            packed_set: set::Limits::default(),
            sparse_hll_bytes: 3000,
            list_nodes: list::Limits::default(),
            stream_blocks: stream::Limits::default(),
            hz: 10,
            replication: Arc::default(),
            idle: BTreeMap::new(),
            files: Arc::default(),
            cluster: Arc::default(),
            port: 6379,
            bind: vec!["127.0.0.1".to_owned(), "-::1".to_owned()],
            tcp_backlog: 511,
            accepted_at_once: 10,
            tcp_keepalive_s: 300,
            timeout_s: 0,
            unix_socket: String::new(),
            unix_socket_mode: 0,
            protected_mode: true,
            event_loops: None,
            usual_event_loops: 1,
            log_level: LogLevel::Notice,
            log_file: String::new(),
            directory: String::new(),
            process: Arc::default(),
        }
    }
}

impl Settings {
    /// Refuses a command that the settings do not enable for that client.
    pub(in crate::engine) fn check_enabled(&self, client: &Session, flags: Flags) -> Result<(), Error> {
        if flags.has(Flags::PROTECTED) && !self.debug_command.admits(client) {
            return Err(Error::DebugDisabled);
        }
        if flags.has(Flags::EXTENDS) && !self.module_command.admits(client) {
            return Err(ServerError::ModuleDisabled.into());
        }
        Ok(())
    }

    /// Whether the timing of brief commands may be deferred.
    #[inline]
    pub(in crate::engine) fn may_defer(&self) -> bool {
        self.latency_threshold_ms == 0 && self.slowlog_threshold_us.is_none_or(|from_us| from_us >= LONG_US)
    }
}
