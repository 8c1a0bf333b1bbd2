//! Observers: the sessions that other sessions' commands concern, such as subscribers, blocked clients and monitors.
//!
//! This module knows only the names of sessions and keys and touches no data: the engine reports what happened, and
//! gets the sessions that it concerns. While there are no observers, a report costs one comparison.

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

/// All observers, by what they observe.
#[derive(Debug, Default)]
pub struct Observers {
    /// The watched keys of each session (WATCH).
    pub watches: Watches,
    /// The blocked sessions and the keys that they wait for.
    pub waiting: Waiting,
    /// The subscribers of each channel and pattern.
    pub subscriptions: Subscriptions,
    /// The sessions that monitor every command (MONITOR).
    pub monitors: BTreeSet<SessionId>,
    /// The sessions that cache what they read (CLIENT TRACKING).
    pub tracking: Tracking,
    /// The clients over their soft output limit.
    pub overfull: Overfull,
    /// Recent packs of unread frames, shared with further clients that do not read either.
    pub(super) recent_packs: RecentPacks,
    /// The test kit: the journal, faults and waits of tests; `None` while no test uses any.
    pub kit: Option<Box<Kit>>,
    /// Whether it is known that no observer concerns the requests that run now.
    pub(super) fast_path: FastPath,
}

impl Observers {
    /// Removes a session that ended.
    pub(super) fn forget(&mut self, session: &mut Session) {
        self.watches.unwatch(session.id);
        self.waiting.leave(session.id);
        self.unsubscribe_all(session);
        self.overfull.forget(session);
        if let Some(kit) = &mut self.kit {
            kit.forget(session.id);
        }
    }

    /// Ends all that a session observes: channels, commands and keys.
    pub(super) fn unsubscribe_all(&mut self, session: &mut Session) {
        self.monitors.remove(&session.id);
        session.monitors = false;
        self.subscriptions.remove_all(session.id, &mut session.subscribed);
        self.tracking.leave(session);
    }
}
