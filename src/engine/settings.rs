//! The settings the server runs by, each with its type.
//!
//! How a parameter is spelled, parsed, limited and shown is `config/`'s business: one row there for each field here.

use std::collections::BTreeMap;

use crate::engine::{ClientsLimit, Notifications, OutputLimits, Policy, Process, Session};
use crate::rdb::Forms;
use crate::value::{hash, list, set, stream, zset};

/// Who may call commands that a setting must enable first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Permission {
    /// Nobody.
    #[default]
    No,
    /// Clients on this machine.
    Local,
    /// Everybody.
    Yes,
}

impl Permission {
    /// Whether that client has it.
    pub fn admits(self, client: &Session) -> bool {
        match self {
            Permission::No => false,
            Permission::Local => client.origin.is_local,
            Permission::Yes => true,
        }
    }

    /// As the configuration spells it.
    pub fn name(self) -> &'static str {
        match self {
            Permission::No => "no",
            Permission::Local => "local",
            Permission::Yes => "yes",
        }
    }

    /// The permission of that name; nobody has it when the name is unknown.
    pub fn named(name: &str) -> Permission {
        let all = [Permission::Yes, Permission::Local];
        all.into_iter().find(|permission| permission.name() == name).unwrap_or_default()
    }
}

/// How much the server tells of what it does; each level tells what the later ones tell, and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LogLevel {
    /// All there is.
    Debug,
    /// Every client that comes and goes.
    Verbose,
    /// What an operator wants to know.
    #[default]
    Notice,
    /// What an operator must know.
    Warning,
    /// Nothing.
    Nothing,
}

impl LogLevel {
    const ALL: [LogLevel; 5] =
        [LogLevel::Debug, LogLevel::Verbose, LogLevel::Notice, LogLevel::Warning, LogLevel::Nothing];

    /// As the configuration spells it.
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Verbose => "verbose",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
            LogLevel::Nothing => "nothing",
        }
    }

    /// The level of that name; the usual one when the name is unknown.
    pub fn named(name: &str) -> LogLevel {
        LogLevel::ALL.into_iter().find(|level| level.name() == name).unwrap_or_default()
    }
}

/// All settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `databases`: how many there are.
    pub databases: usize,
    /// `requirepass`: the password, empty for none.
    pub password: String,
    /// `aclfile`: the path of the file of users, empty for none.
    pub user_file: String,
    /// `user`: users with their rules, as the configuration file declares them.
    pub users: Vec<(String, Vec<String>)>,
    /// `rename-command`: names of commands, and what they are called by instead.
    pub renames: Vec<(String, String)>,
    /// `acl-pubsub-default`: whether new users may listen to all channels.
    pub new_users_hear_all: bool,
    /// `acllog-max-len`: how many entries ACL LOG has.
    pub access_log_entries: usize,
    /// `maxclients`: how many clients may be connected.
    pub max_clients: usize,
    /// `proto-max-bulk-len`: the largest string, in bytes.
    pub max_bulk_bytes: usize,
    /// `client-query-buffer-limit`: the largest unfinished request, in bytes.
    pub query_buffer_bytes: usize,
    /// `client-output-buffer-limit`.
    pub output_limits: OutputLimits,
    /// `maxmemory`: how much memory data and clients may take, in bytes; 0 for any.
    pub max_memory_bytes: u64,
    /// `maxmemory-policy`: which keys go when they take more.
    pub policy: Policy,
    /// `maxmemory-samples`: how many keys are looked at to find one of them.
    pub eviction_samples: u8,
    /// `maxmemory-eviction-tenacity`: how long that may take, from 0 to 100.
    pub eviction_tenacity: u8,
    /// `maxmemory-clients`: how much memory clients may take.
    pub max_client_bytes: ClientsLimit,
    /// `lfu-log-factor`: how slowly the counter of uses grows.
    pub lfu_log_factor: u32,
    /// `lfu-decay-time`: after how many minutes without use it loses one; 0 for never.
    pub lfu_decay_minutes: u32,
    /// `tracking-table-max-keys`: of how many keys it is remembered who read them; 0 for any number.
    pub tracked_keys: usize,
    /// `busy-reply-threshold`: after how many milliseconds others are heard while a script runs; 0 for never.
    pub busy_reply_threshold_ms: u64,
    /// `slowlog-log-slower-than`: from how many microseconds on a command is logged; `None` for never.
    pub slow_from_us: Option<u64>,
    /// `slowlog-max-len`: how many of them the log keeps.
    pub slow_log_entries: usize,
    /// `latency-monitor-threshold`: from how many milliseconds on a spike is noted; 0 for never.
    pub spikes_from_ms: u64,
    /// `latency-tracking`: it is counted how long commands take.
    pub tracks_latency: bool,
    /// `latency-tracking-info-percentiles`: those that INFO tells.
    pub latency_percentiles: Vec<f64>,
    /// `notify-keyspace-events`.
    pub notifications: Notifications,
    /// `enable-debug-command`.
    pub debug_command: Permission,
    /// `test-kit`: whether the commands of the test kit exist.
    pub test_kit: bool,
    /// `enable-module-command`.
    pub module_command: Permission,
    /// `enable-protected-configs`.
    pub protected_configs: Permission,
    /// `zset-max-listpack-entries` and `zset-max-listpack-value`.
    pub packed_zset: zset::Limits,
    /// `hash-max-listpack-entries` and `hash-max-listpack-value`.
    pub packed_hash: hash::Limits,
    /// `set-max-intset-entries`, `set-max-listpack-entries` and `set-max-listpack-value`.
    pub packed_set: set::Limits,
    /// `hll-sparse-max-bytes`: the most bytes of a HyperLogLog that is not dense yet.
    pub sparse_hll_bytes: usize,
    /// `list-max-listpack-size`.
    pub list_nodes: list::Limits,
    /// `stream-node-max-bytes` and `stream-node-max-entries`.
    pub stream_blocks: stream::Limits,
    /// `hz`: how often Redis looks for what is due; here everything is done when it is due.
    pub hz: u16,
    /// `min-replicas-to-write`: without so many replicas nothing may be written, and there are none.
    pub min_replicas: u32,
    /// `min-replicas-max-lag`: how many seconds a replica may be behind to count; 0 lets writes through without any.
    pub min_replicas_max_lag_s: u32,
    /// Parameters that nothing depends on, by name, where they have another value than usual.
    pub idle: BTreeMap<&'static str, String>,
    /// `rdbcompression`: long texts are compressed where values are saved.
    pub rdb_compression: bool,
    /// `port`: where TCP clients connect; 0 for no TCP.
    pub port: u16,
    /// `bind`: the addresses to listen on; a leading `-` lets one be missing.
    pub bind: Vec<String>,
    /// `tcp-backlog`: connections that may wait to be accepted.
    pub tcp_backlog: u32,
    /// `max-new-connections-per-cycle`: so many clients are let in before others are served.
    pub accepted_at_once: u16,
    /// `tcp-keepalive`: seconds between probes of a silent connection, 0 for none.
    pub tcp_keepalive_s: u32,
    /// `timeout`: seconds after which a silent client is closed, 0 for never.
    pub timeout_s: u32,
    /// `unixsocket`: a path to listen on, empty for none.
    pub unix_socket: String,
    /// `unixsocketperm`: its permissions, 0 to leave them.
    pub unix_socket_mode: u32,
    /// `protected-mode`: without a password, clients of other machines are turned away.
    pub protected_mode: bool,
    /// `io-threads`: event loops that serve connections at most, if somebody has said how many.
    pub event_loops: Option<usize>,
    /// How many serve them if nobody has.
    pub usual_event_loops: usize,
    /// `loglevel`.
    pub log_level: LogLevel,
    /// `logfile`: the path that is logged to, empty for the standard output.
    pub log_file: String,
    /// `dir`: the working directory, empty until the server has looked it up.
    pub directory: String,
    /// What concerns the process.
    pub process: Process,
}

impl Settings {
    /// Whether writes depend on replicas. As there are none, they are refused then.
    pub fn counts_replicas(&self) -> bool {
        self.min_replicas > 0 && self.min_replicas_max_lag_s > 0
    }

    /// How many event loops serve connections at most.
    pub fn event_loops(&self) -> usize {
        self.event_loops.unwrap_or(self.usual_event_loops)
    }

    /// What decides the forms that loaded values are kept in.
    pub fn forms(&self) -> Forms {
        Forms { list: self.list_nodes, set: self.packed_set, hash: self.packed_hash, zset: self.packed_zset }
    }

    /// Sets what the hashing of members follows from, in collections that are flooded with like ones.
    pub(super) fn seed_members(&mut self, seed: u64) {
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
            user_file: String::new(),
            users: Vec::new(),
            renames: Vec::new(),
            new_users_hear_all: false,
            access_log_entries: 128,
            max_clients: 10_000,
            max_bulk_bytes: 512 << 20,
            query_buffer_bytes: 1 << 30,
            output_limits: OutputLimits::default(),
            max_memory_bytes: 0,
            policy: Policy::NoEviction,
            eviction_samples: 5,
            eviction_tenacity: 10,
            max_client_bytes: ClientsLimit::Bytes(0),
            lfu_log_factor: 10,
            lfu_decay_minutes: 1,
            tracked_keys: 1_000_000,
            busy_reply_threshold_ms: 5000,
            slow_from_us: Some(10_000),
            slow_log_entries: 128,
            spikes_from_ms: 0,
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
            min_replicas: 0,
            min_replicas_max_lag_s: 10,
            idle: BTreeMap::new(),
            rdb_compression: true,
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
            process: Process::default(),
        }
    }
}
