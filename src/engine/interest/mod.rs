//! Who wants to hear of what: everything by which one session's doing concerns another session.
//!
//! It knows sessions and keys by name only and touches no data: the engine tells it what happened, and it tells the
//! engine whom that concerns. While nobody is interested, asking costs a comparison.

mod by_key;
mod subscriptions;
mod waiting;
mod watches;

use std::collections::BTreeSet;

pub use subscriptions::{Audience, Subscribed, Subscriptions, Topic};
pub use waiting::{Block, Wait, Waiting};
pub use watches::{Presence, Watches};

use crate::engine::calm::Calm;
use crate::engine::delivery::Overfull;
use crate::engine::kit::Kit;
use crate::engine::outgoing::RecentPacks;
use crate::engine::tracking::Tracking;
use crate::engine::{Session, SessionId};

/// Who wants to hear of what.
#[derive(Debug, Default)]
pub struct Interest {
    /// Whose transaction depends on which keys.
    pub watches: Watches,
    /// Who waits for which keys.
    pub waiting: Waiting,
    /// Who listens to which channels.
    pub subscriptions: Subscriptions,
    /// Who watches every command (MONITOR).
    pub monitors: BTreeSet<SessionId>,
    /// Who caches what it reads.
    pub tracking: Tracking,
    /// Who does not read what it is told.
    pub overfull: Overfull,
    /// Blocks of frames that clients have not read, to be shared by the next who do not.
    pub(super) recent_packs: RecentPacks,
    /// What a test looks at and disturbs; none as long as it does neither.
    pub kit: Option<Box<Kit>>,
    /// Whether it is known that nothing of this concerns the requests that are run now.
    pub(super) calm: Calm,
}

impl Interest {
    /// A session is gone, and wants nothing any more.
    pub(super) fn forget(&mut self, session: &mut Session) {
        self.watches.unwatch(session.id);
        self.waiting.leave(session.id);
        self.deafen(session);
        self.overfull.forget(session);
        if let Some(kit) = &mut self.kit {
            kit.forget(session.id);
        }
    }

    /// A session wants to hear nothing any more: of no channel, of no command, of no key.
    pub(super) fn deafen(&mut self, session: &mut Session) {
        self.monitors.remove(&session.id);
        session.monitors = false;
        self.subscriptions.remove_all(session.id, &mut session.subscribed);
        self.tracking.leave(session);
    }
}
