//! Who waits for which keys (BLPOP and its like), since when and until when.
//!
//! Who begins to wait draws a ticket and stands with it in the queue of each of its keys, so the lowest ticket in a
//! queue came first. A key that arrives, or gets what somebody waits for, or goes, is noted as ready if somebody waits
//! for it, once, and looked at when the command, or the transaction, that did so is done.
//!
//! Invariant: a session stands in a queue exactly if its wait names that key, with the wait's ticket, and in the order
//! of deadlines exactly if its wait has one. No queue is empty.
//!
//! Costs: drawing, leaving, and finding who is first are logarithmic in those who wait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use super::by_key::ByKey;
use crate::engine::{CommandId, SessionId};
use crate::resp::{Reply, Request, Requests};
use crate::value::View;

/// Everyone who waits.
#[derive(Debug, Default)]
pub struct Waiting {
    queues: ByKey<Queue>,
    waits: BTreeMap<SessionId, Wait>,
    deadlines: BTreeSet<(i64, u64, SessionId)>,
    ready: VecDeque<(usize, Box<[u8]>)>,
    tickets: u64,
}

/// What a session waits for.
#[derive(Debug)]
pub struct Wait {
    /// The command that waits.
    pub command: CommandId,
    /// Its request, as it was asked.
    pub request: Requests,
    /// What is run when a key is ready, if not the request itself.
    pub again: Option<Requests>,
    /// The database of its keys.
    pub database: usize,
    /// Its keys, each once.
    pub keys: BTreeSet<Box<[u8]>>,
    /// Whether it can go on with what one of its keys holds, if it holds anything.
    pub is_served_by: fn(Option<View<'_>>) -> bool,
    /// When it gives up, in unix milliseconds.
    pub deadline_ms: Option<i64>,
    /// What it answers then.
    pub at_last: fn(&mut Reply<'_>),
    /// How long it has run so far, in microseconds.
    pub spent_us: u64,
    /// Its place among all.
    ticket: u64,
}

#[derive(Debug, Default)]
struct Queue {
    waiters: BTreeMap<u64, SessionId>,
    /// How many of them go on when the key is gone.
    heeding: usize,
    /// Whether the key is noted as ready.
    is_ready: bool,
}

impl Wait {
    /// A wait of a command that has not begun.
    pub fn new(command: CommandId, request: Request<'_>, database: usize, block: Block) -> Wait {
        let Block { keys, is_served_by, deadline_ms, again, at_last } = block;
        let request = request.into();
        Wait { command, request, again, database, keys, is_served_by, deadline_ms, at_last, spent_us: 0, ticket: 0 }
    }

    /// Whether it goes on when one of its keys is gone.
    fn heeds_loss(&self) -> bool {
        (self.is_served_by)(None)
    }
}

/// What a handler wants to wait for.
#[derive(Debug)]
pub struct Block {
    /// See [`Wait::keys`].
    pub keys: BTreeSet<Box<[u8]>>,
    /// See [`Wait::is_served_by`].
    pub is_served_by: fn(Option<View<'_>>) -> bool,
    /// See [`Wait::deadline_ms`].
    pub deadline_ms: Option<i64>,
    /// See [`Wait::at_last`].
    pub at_last: fn(&mut Reply<'_>),
    /// See [`Wait::again`].
    pub again: Option<Requests>,
}

impl Waiting {
    /// A session begins to wait, behind all who wait already.
    pub fn join(&mut self, session: SessionId, wait: Wait) {
        self.tickets += 1;
        let ticket = self.tickets;
        for key in &wait.keys {
            let queue = self.queues.of(wait.database, key);
            queue.waiters.insert(ticket, session);
            queue.heeding += usize::from(wait.heeds_loss());
        }
        if let Some(deadline_ms) = wait.deadline_ms {
            self.deadlines.insert((deadline_ms, ticket, session));
        }
        self.waits.insert(session, Wait { ticket, ..wait });
    }

    /// A session waits no longer; what it waited for.
    pub fn leave(&mut self, session: SessionId) -> Option<Wait> {
        let wait = self.waits.remove(&session)?;
        for key in &wait.keys {
            let Some(queue) = self.queues.get_mut(wait.database, key) else { continue };
            queue.waiters.remove(&wait.ticket);
            queue.heeding -= usize::from(wait.heeds_loss());
            if queue.waiters.is_empty() {
                self.queues.remove(wait.database, key);
            }
        }
        if let Some(deadline_ms) = wait.deadline_ms {
            self.deadlines.remove(&(deadline_ms, wait.ticket, session));
        }
        Some(wait)
    }

    /// What the session waits for.
    pub fn get(&self, session: SessionId) -> Option<&Wait> {
        self.waits.get(&session)
    }

    /// The wait of a session, to change what it is counted by.
    pub fn get_mut(&mut self, session: SessionId) -> Option<&mut Wait> {
        self.waits.get_mut(&session)
    }

    /// A key arrived: noted, if somebody waits for it.
    pub fn signal(&mut self, database: usize, key: &[u8]) {
        if let Some(queue) = self.queues.get_mut(database, key)
            && !queue.is_ready
        {
            queue.is_ready = true;
            self.ready.push_back((database, key.into()));
        }
    }

    /// All keys of a database were replaced or removed: those that are waited for are noted.
    pub fn signal_all(&mut self, database: usize) {
        let keys: Vec<Box<[u8]>> = self.queues.iter_mut(database).map(|(key, _)| key.into()).collect();
        for key in keys {
            self.signal(database, &key);
        }
    }

    /// Whether anyone waits for a key.
    pub fn awaits(&self, database: usize, key: &[u8]) -> bool {
        self.queues.get(database, key).is_some()
    }

    /// How many wait for a key.
    pub fn waiters(&self, database: usize, key: &[u8]) -> usize {
        self.queues.get(database, key).map_or(0, |queue| queue.waiters.len())
    }

    /// True when a key is noted as ready.
    pub fn is_anything_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes the note of the key that was ready first.
    pub fn next_ready(&mut self) -> Option<(usize, Box<[u8]>)> {
        let (database, key) = self.ready.pop_front()?;
        if let Some(queue) = self.queues.get_mut(database, &key) {
            queue.is_ready = false;
        }
        Some((database, key))
    }

    /// Whether somebody waits for a key who goes on when it is gone.
    pub fn heeds_loss(&self, database: usize, key: &[u8]) -> bool {
        self.queues.get(database, key).is_some_and(|queue| queue.heeding > 0)
    }

    /// The tickets drawn so far.
    pub fn tickets(&self) -> Range<u64> {
        0..self.tickets + 1
    }

    /// The first who waits for a key with one of those tickets: the ticket, and who.
    pub fn first(&self, database: usize, key: &[u8], tickets: Range<u64>) -> Option<(u64, SessionId)> {
        let (ticket, session) = self.queues.get(database, key)?.waiters.range(tickets).next()?;
        Some((*ticket, *session))
    }

    /// A session whose time to wait is over at `now_ms`, the earliest first.
    pub fn overdue(&self, now_ms: i64) -> Option<SessionId> {
        let (deadline_ms, _, session) = self.deadlines.first()?;
        (*deadline_ms <= now_ms).then_some(*session)
    }

    /// When the first gives up, in unix milliseconds.
    pub fn next_deadline(&self) -> Option<i64> {
        self.deadlines.first().map(|(deadline_ms, ..)| *deadline_ms)
    }

    /// How many sessions wait.
    pub fn sessions(&self) -> usize {
        self.waits.len()
    }

    /// How many of them give up some time.
    pub fn deadlines(&self) -> usize {
        self.deadlines.len()
    }

    /// How many keys are waited for.
    pub fn keys(&self) -> usize {
        self.queues.len()
    }

    /// For how many keys somebody waits who goes on when the key is gone.
    pub fn keys_to_be_lost(&self) -> usize {
        let heeding = self.waits.values().filter(|wait| wait.heeds_loss());
        heeding.flat_map(|wait| wait.keys.iter().map(|key| (wait.database, key))).collect::<BTreeSet<_>>().len()
    }

    /// True when nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }
}
