//! Waits of a test until something is so: a client is blocked, somebody listens, a command was run or
//! went wrong, so many are connected.
//!
//! The command that waits stands among those that wait for keys, with none, and for as long as it is told to.
//! After each command of others, and when a client comes or goes, its condition is looked at; if it holds, the
//! command is run again and answers.

use super::Filter;
use crate::engine::{Engine, SessionId, Topic};

/// What a wait waits for.
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
    /// A fault rule has fired at least `count` times.
    Struck {
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
}

/// A client that waits for a condition.
#[derive(Clone, Debug)]
pub struct Waiter {
    /// The client that waits.
    pub session: SessionId,
    /// The condition that it waits for.
    pub condition: Condition,
    /// Until when, in unix milliseconds.
    pub deadline_ms: Option<i64>,
}

impl Engine {
    /// Whether it is so.
    pub fn holds(&self, condition: &Condition) -> bool {
        let progress = self.progress(condition);
        match condition {
            Condition::Blocked { count, .. }
            | Condition::Subscribers { count, .. }
            | Condition::Journal { count, .. }
            | Condition::Struck { count, .. } => progress >= *count,
            Condition::Clients { count, .. } => progress == *count,
        }
    }

    /// How many there are of what is counted.
    pub fn progress(&self, condition: &Condition) -> u64 {
        let count = match condition {
            Condition::Blocked { database, key, .. } => self.observers.waiting.waiters(*database, key),
            Condition::Subscribers { channel, .. } => {
                let audience = self.observers.subscriptions.audience(Topic::Channel, channel);
                audience.map_or(0, |audience| audience.len())
            }
            Condition::Journal { filter, .. } => {
                let journal = self.observers.kit.as_ref().and_then(|kit| kit.journal.as_ref());
                journal.map_or(0, |journal| journal.matching(filter, &self.table).count())
            }
            Condition::Struck { rule, .. } => {
                let rules = self.observers.kit.as_ref().map(|kit| kit.faults.rules());
                let found = rules.and_then(|rules| rules.iter().find(|known| known.name == *rule));
                return found.map_or(0, |rule| rule.fired);
            }
            Condition::Clients { asker, .. } => {
                let others = self.sessions.iter().filter(|client| client.id != *asker && !client.origin.is_test_client);
                others.count()
            }
        };
        count as u64
    }

    /// Begins to wait; the session's command is run again when it is so, or its time is over.
    pub fn wait_until(&mut self, waiter: Waiter) {
        let kit = self.kit();
        kit.delayed.insert(waiter.session);
        kit.waiters.push(waiter);
    }

    /// What the session waits for; it waits no longer.
    pub fn take_waiter(&mut self, session: SessionId) -> Option<Waiter> {
        let kit = self.observers.kit.as_mut()?;
        let place = kit.waiters.iter().position(|waiter| waiter.session == session)?;
        Some(kit.waiters.remove(place))
    }

    /// Has those go on for whom it is so.
    pub(in crate::engine) fn wake_waiters(&mut self) {
        let Some(kit) = self.observers.kit.as_ref().filter(|kit| !kit.waiters.is_empty()) else { return };
        let is_due = |waiter: &&Waiter| self.holds(&waiter.condition);
        let due: Vec<SessionId> = kit.waiters.iter().filter(is_due).map(|waiter| waiter.session).collect();
        due.into_iter().for_each(|session| self.run_delayed(session));
    }
}
