//! The settings of replication.

/// The settings of a server that has replicas, or is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicationSettings {
    /// `min-replicas-to-write`: how many replicas there must be for writes; 0 for none.
    pub min_replicas: u32,
    /// `min-replicas-max-lag` in seconds: how late such a replica may be; 0 if none are counted.
    pub max_lag_s: u32,
    /// `repl-backlog-size` in bytes: how much of the stream is kept for replicas that were disconnected.
    pub backlog_bytes: u64,
    /// `replica-serve-stale-data`: whether a replica that is disconnected from its primary serves clients.
    pub serves_stale_data: bool,
    /// `replica-read-only`: whether a replica refuses the writes of clients.
    pub is_read_only: bool,
    /// `replica-priority`, which INFO shows.
    pub priority: i64,
}

impl Default for ReplicationSettings {
    fn default() -> ReplicationSettings {
        ReplicationSettings {
            min_replicas: 0,
            max_lag_s: 10,
            backlog_bytes: 1 << 20,
            serves_stale_data: true,
            is_read_only: true,
            priority: 100,
        }
    }
}
