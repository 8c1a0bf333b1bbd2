//! The switches that DEBUG and tests set.

use crate::engine::spec::{Command, Family};
use crate::engine::state::{Capacity, ReplyRoom};

/// Switches that DEBUG and tests set.
#[derive(Clone, Copy, Debug)]
pub struct Switches {
    /// Keys are removed at their deadline; if off, only when they are accessed (DEBUG SET-ACTIVE-EXPIRE).
    pub active_expiry: bool,
    /// Scripts may call commands that inspect the server, as its tests do (DEBUG SET-DISABLE-DENY-SCRIPTS).
    pub scripts_inspect: bool,
    /// Nothing runs when it falls due: no active expiry, no closing of idle clients (DEBUG PAUSE-CRON).
    pub cron_paused: bool,
    /// The number of times that the replication id was changed (DEBUG CHANGE-REPL-ID).
    pub replid_generation: u32,
    /// Key events are recorded among the effects.
    pub records_key_events: bool,
    /// The checksums of payloads are verified (DEBUG SET-SKIP-CHECKSUM-VALIDATION).
    pub verifies_checksums: bool,
    /// The capacity limits of collections and databases.
    pub capacity: Capacity,
    /// The size of the reply buffer that each client keeps (DEBUG REPLYBUFFER).
    pub reply_room: ReplyRoom,
    /// A test has chosen the seed: the system's randomness and wall-clock budgets are not used.
    pub is_deterministic: bool,
}

impl Default for Switches {
    fn default() -> Switches {
        Switches {
            active_expiry: true,
            scripts_inspect: false,
            cron_paused: false,
            replid_generation: 0,
            records_key_events: false,
            verifies_checksums: true,
            capacity: Capacity::default(),
            reply_room: ReplyRoom::default(),
            is_deterministic: false,
        }
    }
}

impl Switches {
    /// Whether a script may call a command that scripts may not, as the server's own tests want: one that inspects the
    /// server or a connection, but none that runs commands, blocks or subscribes.
    pub(in crate::engine) fn may_inspect(&self, command: &Command) -> bool {
        self.scripts_inspect && matches!(command.family, Family::Server | Family::Connection)
    }
}
