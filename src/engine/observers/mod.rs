//! Observers: the sessions that other sessions' commands concern, such as subscribers, blocked clients and monitors.
//!
//! This knows sessions and keys by name only and touches no data: the engine reports what happened, and gets the
//! sessions that it concerns. While there are no observers, asking costs a comparison.

mod by_key;
mod subscriptions;
mod waiting;
mod watches;

use std::collections::BTreeSet;

pub use subscriptions::{Audience, Subscribed, Subscriptions, Topic};
pub use waiting::{Block, Wait, Waiting};
pub use watches::{Presence, Watches};

use crate::engine::delivery::Overfull;
use crate::engine::fast_path::FastPath;
use crate::engine::kit::Kit;
use crate::engine::push_queue::RecentPacks;
use crate::engine::tracking::Tracking;
use crate::engine::{Session, SessionId};

/// Who wants to hear of what.
#[derive(Debug, Default)]
pub struct Observers {
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
    pub(super) fast_path: FastPath,
}

impl Observers {
    /// A session is gone, and wants nothing any more.
    pub(super) fn forget(&mut self, session: &mut Session) {
        self.watches.unwatch(session.id);
        self.waiting.leave(session.id);
        self.unsubscribe_all(session);
        self.overfull.forget(session);
        if let Some(kit) = &mut self.kit {
            kit.forget(session.id);
        }
    }

    /// A session wants to hear nothing any more: of no channel, of no command, of no key.
    pub(super) fn unsubscribe_all(&mut self, session: &mut Session) {
        self.monitors.remove(&session.id);
        session.monitors = false;
        self.subscriptions.remove_all(session.id, &mut session.subscribed);
        self.tracking.leave(session);
    }
}
