//! The conditions that a test waits for: clients are blocked or subscribed, commands have run, a fault has fired, a
//! number of clients is connected, a node of a cluster serves keys, all nodes agree, or replicas have all writes.

use crate::engine::spec::KitError;
use crate::engine::state::SessionId;
use crate::engine::state::kit::Filter;

/// The condition of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// At least `count` clients are blocked on a key.
    Blocked {
        /// The database.
        database: usize,
        /// The key.
        key: Vec<u8>,
        /// The number of clients to wait for.
        count: u64,
    },
    /// At least `count` clients are subscribed to a channel.
    Subscribers {
        /// The channel.
        channel: Vec<u8>,
        /// The number of subscribers to wait for.
        count: u64,
    },
    /// The journal has at least `count` commands that the filter selects.
    Journal {
        /// The number of commands to wait for.
        count: u64,
        /// The commands that count.
        filter: Filter,
    },
    /// The journals of all nodes of the cluster have at least `count` commands that the filter selects.
    JournalOfAllNodes {
        /// The number of commands to wait for.
        count: u64,
        /// The commands that count.
        filter: Filter,
        /// The number of such commands that the host has found last, or the error of a node without a journal.
        found: Result<u64, KitError>,
    },
    /// A fault rule has fired at least `count` times.
    Fired {
        /// The name of the rule.
        rule: Vec<u8>,
        /// The number of times that the rule is to fire.
        count: u64,
    },
    /// Exactly `count` clients are connected, not counting the test's own.
    Clients {
        /// The number of clients to wait for.
        count: u64,
        /// The client that waits, which is not counted.
        asker: SessionId,
    },
    /// The `cluster_state` of this node is `ok`, or `fail`.
    Cluster {
        /// Whether it is to be `ok`.
        is_ok: bool,
    },
    /// All nodes of the cluster that are up see the same owners of slots, roles and failures.
    Agreed,
    /// The replicas that are connected to this node have all its writes; or it has all that its primary has sent, if it
    /// is a replica itself.
    Synced,
}

impl Condition {
    /// The filter of the commands that the condition counts in the journal of this node.
    pub(in crate::engine) fn counted(&self) -> Option<&Filter> {
        match self {
            Condition::Journal { filter, .. } => Some(filter),
            _ => None,
        }
    }
}

/// A client that waits for a condition.
#[derive(Clone, Debug)]
pub struct Waiter {
    /// The client that waits.
    pub session: SessionId,
    /// The condition that it waits for.
    pub condition: Condition,
    /// The timeout, in unix milliseconds.
    pub deadline_ms: Option<i64>,
}
