//! Observers: the sessions that other sessions' commands concern, such as subscribers, blocked clients and monitors.
//!
//! This module knows only the names of sessions and keys and touches no data: the engine reports what happened, and
//! gets the sessions that it concerns. While there are no observers, a report costs one comparison.

mod by_key;
mod subscriptions;
mod waiting;
mod watches;

pub use subscriptions::{Audience, Subscribed, Subscriptions, Topic};
pub use waiting::{Block, LateReply, Wait, Waiting};
pub use watches::{Presence, Watches};

use std::collections::BTreeSet;

use crate::engine::spec::{CommandId, Table};
use crate::engine::state::fast_path::FastPath;
use crate::engine::state::kit::{
    Begun, CheckRule, Failure, Filter, Kit, Recorded, Rule, Setting, Source, Strict, Waiter,
};
use crate::engine::state::measures::Measures;
use crate::engine::state::output_limits::Overfull;
use crate::engine::state::push_queue::RecentPacks;
use crate::engine::state::tracking::Tracking;
use crate::engine::state::{Session, SessionId};

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
    pub(in crate::engine) recent_packs: RecentPacks,
    /// The test kit: the journal, faults and waits of tests; `None` while no test uses any.
    pub kit: Option<Box<Kit>>,
    /// The measures of keys for the metrics; `None` while none is declared.
    pub measures: Option<Box<Measures>>,
    /// Whether it is known that no observer concerns the requests that run now.
    pub(in crate::engine) fast_path: FastPath,
}

impl Observers {
    /// Ends a row of direct calls: the engine is about to be used otherwise, which may close the fast path.
    #[inline]
    pub fn end_direct_calls(&mut self) {
        self.fast_path = FastPath::NotKept;
    }

    /// Removes a session that ended.
    pub(in crate::engine) fn forget(&mut self, session: &mut Session) {
        self.watches.unwatch(session.id);
        self.waiting.leave(session.id);
        session.blocked_bytes = 0;
        self.unsubscribe_all(session);
        self.overfull.forget(session);
        if let Some(kit) = &mut self.kit {
            kit.forget(session.id);
            self.put_kit_away();
        }
    }

    /// Ends all that a session observes: channels, commands and keys.
    pub(in crate::engine) fn unsubscribe_all(&mut self, session: &mut Session) {
        self.monitors.remove(&session.id);
        session.monitors = false;
        self.subscriptions.remove_all(session.id, &mut session.subscribed);
        self.tracking.leave(session);
        self.end_feed(session);
    }

    /// True when a client receives every command (MONITOR).
    pub(in crate::engine) fn has_monitors(&self) -> bool {
        !self.monitors.is_empty()
    }

    /// True while the session is blocked in a command.
    pub(in crate::engine) fn is_waiting(&self, session: SessionId) -> bool {
        !self.waiting.is_empty() && self.waiting.get(session).is_some()
    }
}

/// The test kit, as far as a test uses it.
impl Observers {
    /// True while a fault delays the session's request.
    pub(in crate::engine) fn is_delayed(&self, session: SessionId) -> bool {
        self.kit.as_ref().is_some_and(|kit| kit.delays(session))
    }

    /// Sends a client each command that the filter admits from now on (DUNLIN FEED, whose id is `command`).
    pub(in crate::engine) fn start_feed(&mut self, session: &mut Session, command: CommandId, filter: Filter) {
        session.subscribes_to_feed = true;
        self.kit().feed.listen(session.id, command, filter);
    }

    /// Ends what [`Observers::start_feed`] began.
    pub(in crate::engine) fn end_feed(&mut self, session: &mut Session) {
        if std::mem::take(&mut session.subscribes_to_feed)
            && let Some(kit) = &mut self.kit
        {
            kit.feed.stop_listening(session.id);
            self.put_kit_away();
        }
    }

    /// Records that a command is queued until EXEC; the feed shows it when it runs.
    pub(in crate::engine) fn mark_queued(&mut self, recorded: Recorded, table: &Table) {
        let Some(kit) = &mut self.kit else { return };
        if let (Some(number), Some(journal)) = (recorded.journal, &mut kit.journal) {
            journal.change(number, table, |entry| entry.source = Source::Queue);
        }
        recorded.feed.into_iter().for_each(|number| kit.feed.forget(number));
    }

    /// Starts a wait; the session's command is run again when the condition holds, or at the timeout.
    pub fn wait_until(&mut self, waiter: Waiter) {
        let kit = self.kit();
        kit.delayed.insert(waiter.session);
        kit.waiters.push(waiter);
    }

    /// Ends the wait of a session, and returns its condition.
    pub fn take_waiter(&mut self, session: SessionId) -> Option<Waiter> {
        self.kit.as_mut()?.take_waiter(session)
    }

    /// The kit, created if there is none.
    pub fn kit(&mut self) -> &mut Kit {
        self.kit.get_or_insert_default()
    }

    /// Drops the kit if it is no longer used.
    pub fn put_kit_away(&mut self) {
        if let Some(kit) = &mut self.kit {
            kit.strict.take_if(|strict| strict.is_idle());
        }
        self.kit.take_if(|kit| kit.is_idle());
    }

    /// Takes back what was recorded at the beginning of a request that runs again later: a pause holds it back, or it
    /// has called the host. Returns the fault that its reply is to suffer.
    pub(in crate::engine) fn take_back_entry(&mut self, session: SessionId, table: &Table) -> Option<Failure> {
        let kit = self.kit.as_mut()?;
        let Begun { recorded, failure, .. } = kit.begun.remove(&session)?;
        if let (Some(number), Some(journal)) = (recorded.journal, &mut kit.journal) {
            journal.take_back(number, table);
        }
        recorded.feed.into_iter().for_each(|number| kit.feed.forget(number));
        failure
    }

    /// Forgets that a session's request has called the host: it has been answered.
    pub(in crate::engine) fn forget_host_call(&mut self, session: SessionId) {
        if self.kit.as_mut().is_some_and(|kit| kit.called_host.remove(&session).is_some()) {
            self.put_kit_away();
        }
    }

    /// The setting of a rule of strict mode, to change it. `check_rule` is how rules are checked from the first one on.
    pub fn strict_setting(&mut self, check_rule: CheckRule, rule: Rule) -> &mut Setting {
        self.kit().strict.get_or_insert_with(|| Box::new(Strict::of(check_rule))).setting_mut(rule)
    }

    /// The rules, if any was ever set.
    pub fn strict(&self) -> Option<&Strict> {
        self.kit.as_ref()?.strict.as_deref()
    }

    /// Forgets what was recorded since that number of snapshots: it was rolled back.
    pub(in crate::engine) fn forget_traces_since(&mut self, taken: u64) {
        if let Some(strict) = self.kit.as_mut().and_then(|kit| kit.strict.as_mut()) {
            strict.traces.forget_since(taken);
        }
    }

    /// Makes the reply of the running command follow the invalidations for its own client: Redis empties databases
    /// while the client waits, as if it were blocked.
    pub fn put_reply_last(&mut self) {
        self.tracking.is_reply_last = true;
    }
}
