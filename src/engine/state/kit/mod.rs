//! The state of the test kit: the journal of commands, injected faults, strict mode, and waits for conditions.
//!
//! All of it is behind one pointer ([`crate::engine::Observers::kit`]), which is empty until a test uses the kit.

mod counts;
mod disk;
pub(in crate::engine) mod faults;
pub(in crate::engine) mod feed;
pub(in crate::engine) mod journal;
mod key_pattern;
pub(in crate::engine) mod reply_text;
pub(in crate::engine) mod strict;
mod transcript;
pub mod tree;
mod trigger;
pub(in crate::engine) mod waits;

pub use disk::{DiskCalls, DiskFailure, DiskFault, DiskFaults};
pub use faults::{Failure, Fault, FaultEffect, Faults, State};
pub use feed::{Feed, FeedEvent, Shown, ShownReply, Unread};
pub(crate) use journal::by_pattern;
pub use journal::{Bound, DEFAULT_ENTRIES, Entry, Filter, Journal, MAX_ENTRIES, Source, in_order};
pub(crate) use key_pattern::pattern_of;
pub use reply_text::quoted;
pub use strict::rule::{Level, Rule};
pub use strict::{CheckRule, CheckedCommand, Finding, MAX_FINDINGS, Setting, Strict, Violation};
pub use trigger::Trigger;
pub use waits::{Condition, Waiter};

use std::collections::{BTreeMap, BTreeSet};

use self::strict::redirects::Expected;
use crate::engine::spec::Table;
use crate::engine::state::timing::Stopwatch;
use crate::engine::state::{Session, SessionId};

/// The state of the test kit.
#[derive(Debug, Default)]
pub struct Kit {
    /// The journal of commands, once a test has started it.
    pub journal: Option<Journal>,
    /// The readers who watch the commands.
    pub feed: Feed,
    /// The fault rules.
    pub faults: Faults,
    /// Strict mode, once a test has set a rule.
    pub strict: Option<Box<Strict>>,
    /// The commands that other nodes of the cluster have redirected, and that strict mode expects here.
    pub(in crate::engine) expected: Expected,
    /// The clients that wait for conditions, in the order in which they came.
    pub(in crate::engine) waiters: Vec<Waiter>,
    /// Those whose wait is over, until their command has run again.
    pub(in crate::engine) resumed: BTreeMap<SessionId, Waiter>,
    /// Delayed sessions whose request a pause holds back, in the order in which they came.
    pub(in crate::engine) held_back: Vec<SessionId>,
    /// Requests that run or are blocked, by session.
    pub(in crate::engine) begun: BTreeMap<SessionId, Begun>,
    /// Sessions whose request has called the host and will come again, with the fault that its reply is to suffer.
    pub(in crate::engine) called_host: BTreeMap<SessionId, Option<Failure>>,
    /// Sessions whose delayed request runs, or runs again, when their wait ends.
    pub(in crate::engine) delayed: BTreeSet<SessionId>,
}

/// A request without a reply so far.
#[derive(Debug)]
pub(in crate::engine) struct Begun {
    /// Where it is recorded.
    pub(in crate::engine) recorded: Recorded,
    pub(in crate::engine) timer: Stopwatch,
    /// The fault that its reply is to suffer.
    pub(in crate::engine) failure: Option<Failure>,
}

/// Where a command that has begun is recorded, by its numbers there.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Recorded {
    /// In the journal.
    pub(in crate::engine) journal: Option<u64>,
    /// In the feed.
    pub(in crate::engine) feed: Option<u64>,
}

impl Recorded {
    /// Whether it is recorded anywhere.
    pub(in crate::engine) fn is_anywhere(self) -> bool {
        self.journal.is_some() || self.feed.is_some()
    }
}

impl Kit {
    /// Starts the journal, if it is not on, and returns it.
    pub fn begin_journal(&mut self) -> &mut Journal {
        let journal = self.journal.get_or_insert_with(|| Journal::of(DEFAULT_ENTRIES));
        journal.is_on = true;
        journal
    }

    /// Starts a new journal of that many commands.
    pub fn restart_journal(&mut self, most: usize) {
        self.drop_journal();
        self.journal = Some(Journal::of(most));
    }

    /// Drops the journal. Requests that wait in it for their reply are in no journal any more: the next one gives their
    /// numbers to others.
    fn drop_journal(&mut self) {
        self.journal = None;
        self.begun.values_mut().for_each(|begun| begun.recorded.journal = None);
    }

    /// Ends recording; the recorded commands can still be read. False if there is no journal.
    pub fn stop_journal(&mut self) -> bool {
        self.journal.as_mut().map(|journal| journal.is_on = false).is_some()
    }

    /// Empties a journal, and drops one that was stopped. False if there is none.
    pub fn clear_journal(&mut self) -> bool {
        let Some(journal) = &mut self.journal else { return false };
        journal.clear();
        if !journal.is_on {
            self.drop_journal();
        }
        true
    }

    /// True when the kit has nothing to do and nothing to report.
    pub(in crate::engine) fn is_idle(&self) -> bool {
        let nobody = self.begun.is_empty() && self.delayed.is_empty() && self.called_host.is_empty();
        let nobody = nobody && self.waiters.is_empty() && self.resumed.is_empty();
        let watches = self.journal.is_some() || self.strict.is_some() || self.feed.is_wanted();
        nobody && !watches && self.faults.is_empty() && self.expected.is_empty()
    }

    /// Removes a session that ended.
    pub(in crate::engine) fn forget(&mut self, session: SessionId) {
        let begun = self.begun.remove(&session);
        begun.and_then(|begun| begun.recorded.feed).into_iter().for_each(|number| self.feed.forget(number));
        self.feed.leave(session);
        self.called_host.remove(&session);
        self.delayed.remove(&session);
        self.held_back.retain(|held_back| *held_back != session);
        self.take_waiter(session);
    }

    /// Ends the wait of a session, and the count of the journal's commands if nobody else waits for them; returns the
    /// wait.
    pub(in crate::engine) fn take_waiter(&mut self, session: SessionId) -> Option<Waiter> {
        let taken = self.resumed.remove(&session).or_else(|| {
            let place = self.waiters.iter().position(|waiter| waiter.session == session)?;
            Some(self.waiters.remove(place))
        })?;
        let mut others = self.waiters.iter().chain(self.resumed.values());
        if let (Some(filter), Some(journal)) = (taken.condition.counted(), &mut self.journal)
            && others.all(|waiter| waiter.condition.counted() != Some(filter))
        {
            journal.end_count(filter);
        }
        Some(taken)
    }

    /// Starts the counts that clients wait for in the journal, which may be new.
    pub(in crate::engine) fn keep_counts(&mut self, table: &Table) {
        let Some(journal) = &mut self.journal else { return };
        let filters = self.waiters.iter().filter_map(|waiter| waiter.condition.counted());
        filters.for_each(|filter| journal.keep_count(filter, table));
    }

    /// Moves the timeouts of waits back by that many milliseconds: the clock was set back.
    pub(in crate::engine) fn move_deadlines_back(&mut self, by_ms: i64) {
        let deadlines = self.waiters.iter_mut().filter_map(|waiter| waiter.deadline_ms.as_mut());
        deadlines.for_each(|deadline_ms| *deadline_ms = deadline_ms.saturating_sub(by_ms));
    }

    /// True when that session's request runs at the end of its wait.
    pub(in crate::engine) fn delays(&self, session: SessionId) -> bool {
        self.delayed.contains(&session)
    }

    /// The number of sessions that are delayed, and only seem to be blocked in a command.
    pub(in crate::engine) fn delayed_sessions(&self) -> usize {
        self.delayed.len()
    }
}

/// The name of the client, by which rules and filters select requests.
pub(in crate::engine) fn is_named(client: &Session, name: Option<&[u8]>) -> bool {
    name.is_none_or(|name| client.name == name)
}
