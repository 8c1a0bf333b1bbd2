//! Who wants to hear of what: everything by which one session's doing concerns another session.
//!
//! It knows sessions and keys by name only and touches no data: the engine tells it what happened, and it tells the
//! engine whom that concerns. While nobody is interested, asking costs a comparison.

mod by_key;
mod waiting;
mod watches;

pub use waiting::{Block, Wait, Waiting};
pub use watches::{Presence, Watches};

use crate::engine::SessionId;

/// Who wants to hear of what.
#[derive(Debug, Default)]
pub struct Interest {
    /// Whose transaction depends on which keys.
    pub watches: Watches,
    /// Who waits for which keys.
    pub waiting: Waiting,
}

impl Interest {
    /// A session is gone, and wants nothing any more.
    pub fn forget(&mut self, session: SessionId) {
        self.watches.unwatch(session);
        self.waiting.leave(session);
    }
}
