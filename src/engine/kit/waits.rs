//! Waits of a test until a condition holds: clients are blocked or subscribed, commands have run, a fault has struck,
//! a number of clients is connected.
//!
//! The waiting command is one of the blocked commands, without keys and with its timeout. After each command of other
//! clients, and when a client connects or disconnects, its condition is checked; if it holds, the command is run again
//! and replies.

use super::Filter;
use crate::engine::{Engine, SessionId, Topic};

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
    /// The timeout, in unix milliseconds.
    pub deadline_ms: Option<i64>,
}

impl Engine {
    /// Whether the condition holds.
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

    /// The current count that the condition is about.
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

    /// Starts a wait; the session's command is run again when the condition holds, or at the timeout.
    pub fn wait_until(&mut self, waiter: Waiter) {
        let kit = self.kit();
        kit.delayed.insert(waiter.session);
        kit.waiters.push(waiter);
    }

    /// Ends the wait of a session, and returns its condition.
    pub fn take_waiter(&mut self, session: SessionId) -> Option<Waiter> {
        let kit = self.observers.kit.as_mut()?;
        let place = kit.waiters.iter().position(|waiter| waiter.session == session)?;
        Some(kit.waiters.remove(place))
    }

    /// Resumes the clients whose condition holds.
    pub(in crate::engine) fn wake_waiters(&mut self) {
        let Some(kit) = self.observers.kit.as_ref().filter(|kit| !kit.waiters.is_empty()) else { return };
        let is_due = |waiter: &&Waiter| self.holds(&waiter.condition);
        let due: Vec<SessionId> = kit.waiters.iter().filter(is_due).map(|waiter| waiter.session).collect();
        due.into_iter().for_each(|session| self.run_delayed(session));
    }
}
