//! Blocked sessions: the keys that each waits for (BLPOP and similar commands), in order, and their timeouts.
//!
//! A session that blocks gets a ticket, which is added to the queue of each of its keys, so the lowest ticket in a
//! queue came first. A key that is created, gets new elements, or is deleted, is recorded as ready, once, if a session
//! waits for it; it is served when the command or transaction that changed it is done, or, if a pause holds its clients
//! back, when that pause ends or changes.
//!
//! Invariant: a session is in a queue exactly if its wait names that key, with the wait's ticket, and in the list of
//! deadlines exactly if its wait has one. No queue is empty.
//!
//! Costs: joining, leaving, and finding the first waiter are logarithmic in the number of waiters.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::ops::Range;

use crate::engine::spec::CommandId;
use crate::engine::state::observers::by_key::ByKey;
use crate::engine::state::{PauseScope, SessionId};
use crate::resp::{Reply, Request, Requests};
use crate::value::View;

/// All blocked sessions.
#[derive(Debug, Default)]
pub struct Waiting {
    queues: ByKey<Queue>,
    waits: BTreeMap<SessionId, Wait>,
    deadlines: BTreeSet<(i64, u64, SessionId)>,
    /// The keys that are ready; `None` until one is.
    ready: Option<Box<ReadyKeys>>,
    tickets: u64,
}

/// Keys that are ready, by their databases, in the order in which they became ready.
#[derive(Debug, Default)]
struct ReadyKeys {
    keys: VecDeque<(usize, Box<[u8]>)>,
    /// Those whose waiters a pause holds back.
    held_back: Vec<(usize, Box<[u8]>)>,
    /// That pause.
    held_back_by: Option<PauseScope>,
}

/// The reply of a wait that ends without the command running again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateReply {
    /// None: the command runs after all, or replies by itself.
    Nothing,
    /// `OK`.
    Ok,
    /// A null array.
    NullArray,
    /// A number.
    Integer(i64),
    /// Two numbers.
    Integers([i64; 2]),
}

impl LateReply {
    /// Writes the reply.
    pub fn write(self, reply: &mut Reply<'_>) {
        match self {
            LateReply::Nothing => {}
            LateReply::Ok => reply.ok(),
            LateReply::NullArray => reply.null_array(),
            LateReply::Integer(number) => reply.integer(number),
            LateReply::Integers(numbers) => {
                reply.array(numbers.len());
                numbers.into_iter().for_each(|number| reply.integer(number));
            }
        }
    }
}

/// A blocked command of a session: its request, its keys and how it ends.
#[derive(Debug)]
pub struct Wait {
    /// The blocked command.
    pub command: CommandId,
    /// The request of the blocked command, as the client sent it.
    pub request: Requests,
    /// The request that is run when a key is ready, if it is not the client's.
    pub again: Option<Requests>,
    /// The database of the keys.
    pub database: usize,
    /// The keys that it waits for, each once.
    pub keys: BTreeSet<Box<[u8]>>,
    /// Whether the command can go on with this value of one of its keys (`None` for a missing key).
    pub is_served_by: fn(Option<View<'_>>) -> bool,
    /// The timeout, in unix milliseconds; `None` for no timeout.
    pub deadline_ms: Option<i64>,
    /// The reply of a timeout.
    pub timeout_reply: LateReply,
    /// The time that the command has run so far, in microseconds.
    pub spent_us: u64,
    /// The ticket of the wait: its place in the order of all waits.
    ticket: u64,
}

#[derive(Debug, Default)]
struct Queue {
    waiters: BTreeMap<u64, SessionId>,
    /// The number of waiters that go on when the key is deleted.
    nokey_waiters: usize,
    /// Whether the key is recorded as ready.
    is_ready: bool,
    /// Whether it is among the keys that are held back.
    is_held_back: bool,
}

impl Wait {
    /// A wait of a command that has not run yet.
    pub fn new(command: CommandId, request: Request<'_>, database: usize, block: Block) -> Wait {
        let Block { keys, is_served_by, deadline_ms, again, timeout_reply } = block;
        let request = request.into();
        Wait {
            command,
            request,
            again,
            database,
            keys,
            is_served_by,
            deadline_ms,
            timeout_reply,
            spent_us: 0,
            ticket: 0,
        }
    }

    /// About how many bytes of memory it takes: its request, and its keys, which are in the queues, too.
    pub(in crate::engine) fn memory_bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(|key| 2 * key.len()).sum();
        self.request.memory_bytes() + self.again.as_ref().map_or(0, Requests::memory_bytes) + keys
    }

    /// The bytes of the words of its request.
    pub(in crate::engine) fn argument_bytes(&self) -> usize {
        self.request.iter().flat_map(|request| request.iter()).map(<[u8]>::len).sum()
    }

    /// Whether the command goes on when one of its keys is deleted.
    fn unblocks_on_nokey(&self) -> bool {
        (self.is_served_by)(None)
    }
}

/// A handler's request to block its client.
#[derive(Debug)]
pub struct Block {
    /// The keys to wait for, each once ([`Wait::keys`]).
    pub keys: BTreeSet<Box<[u8]>>,
    /// Whether the command can go on with a key's value ([`Wait::is_served_by`]).
    pub is_served_by: fn(Option<View<'_>>) -> bool,
    /// The timeout, in unix milliseconds ([`Wait::deadline_ms`]).
    pub deadline_ms: Option<i64>,
    /// The reply of a timeout ([`Wait::timeout_reply`]).
    pub timeout_reply: LateReply,
    /// The request to run when a key is ready, if it is not the client's ([`Wait::again`]).
    pub again: Option<Requests>,
}

impl Waiting {
    /// Blocks a session, behind all that are blocked already.
    pub fn join(&mut self, session: SessionId, wait: Wait) {
        self.tickets += 1;
        let ticket = self.tickets;
        for key in &wait.keys {
            let queue = self.queues.of(wait.database, key);
            queue.waiters.insert(ticket, session);
            queue.nokey_waiters += usize::from(wait.unblocks_on_nokey());
        }
        if let Some(deadline_ms) = wait.deadline_ms {
            self.deadlines.insert((deadline_ms, ticket, session));
        }
        self.waits.insert(session, Wait { ticket, ..wait });
    }

    /// Sets the reply of a timeout of a session that waits in that command; false if it does not.
    pub fn set_timeout_reply(&mut self, session: SessionId, command: CommandId, reply: LateReply) -> bool {
        let wait = self.waits.get_mut(&session).filter(|wait| wait.command == command);
        wait.map(|wait| wait.timeout_reply = reply).is_some()
    }

    /// Ends the wait of a session, and returns it.
    pub fn leave(&mut self, session: SessionId) -> Option<Wait> {
        let wait = self.waits.remove(&session)?;
        for key in &wait.keys {
            let Some(queue) = self.queues.get_mut(wait.database, key) else { continue };
            queue.waiters.remove(&wait.ticket);
            queue.nokey_waiters -= usize::from(wait.unblocks_on_nokey());
            if queue.waiters.is_empty() {
                self.queues.remove(wait.database, key);
            }
        }
        if let Some(deadline_ms) = wait.deadline_ms {
            self.deadlines.remove(&(deadline_ms, wait.ticket, session));
        }
        Some(wait)
    }

    /// The wait of a session, if it is blocked.
    pub fn get(&self, session: SessionId) -> Option<&Wait> {
        self.waits.get(&session)
    }

    /// The wait of a session, to change the time that it has run.
    pub fn get_mut(&mut self, session: SessionId) -> Option<&mut Wait> {
        self.waits.get_mut(&session)
    }

    /// Records a key as ready, if a session waits for it.
    pub fn signal(&mut self, database: usize, key: &[u8]) {
        if let Some(queue) = self.queues.get_mut(database, key)
            && !queue.is_ready
        {
            queue.is_ready = true;
            self.ready.get_or_insert_default().keys.push_back((database, key.into()));
        }
    }

    /// The keys of a database that sessions wait for.
    pub fn keys_of(&mut self, database: usize) -> Vec<Box<[u8]>> {
        self.queues.iter_mut(database).map(|(key, _)| key.into()).collect()
    }

    /// Whether a session waits for a key.
    pub fn awaits(&self, database: usize, key: &[u8]) -> bool {
        self.queues.get(database, key).is_some()
    }

    /// The number of sessions that wait for a key.
    pub fn waiters(&self, database: usize, key: &[u8]) -> usize {
        self.queues.get(database, key).map_or(0, |queue| queue.waiters.len())
    }

    /// True when at least one key is ready, or held back.
    pub fn is_anything_ready(&self) -> bool {
        self.ready.as_ref().is_some_and(|ready| !(ready.keys.is_empty() && ready.held_back.is_empty()))
    }

    /// Sets a ready key aside, because a pause holds back clients that wait for it.
    pub fn hold_back(&mut self, database: usize, key: Box<[u8]>) {
        if let Some(queue) = self.queues.get_mut(database, &key)
            && !mem::replace(&mut queue.is_held_back, true)
        {
            self.ready.get_or_insert_default().held_back.push((database, key));
        }
    }

    /// Records the keys that were held back as ready again if the pause is not the one that held them back. While it
    /// is, they cost nothing: to try their waiters again would take time with each command.
    pub fn release(&mut self, pause: Option<PauseScope>) {
        let Some(ready) = self.ready.as_mut().filter(|ready| ready.held_back_by != pause) else { return };
        ready.held_back_by = pause;
        for (database, key) in mem::take(&mut ready.held_back) {
            if let Some(queue) = self.queues.get_mut(database, &key) {
                queue.is_held_back = false;
            }
            self.signal(database, &key);
        }
    }

    /// Moves the timeouts back by that many milliseconds: the clock was set back.
    pub fn move_deadlines_back(&mut self, by_ms: i64) {
        self.deadlines.clear();
        for (session, wait) in &mut self.waits {
            if let Some(deadline_ms) = &mut wait.deadline_ms {
                *deadline_ms = deadline_ms.saturating_sub(by_ms);
                self.deadlines.insert((*deadline_ms, wait.ticket, *session));
            }
        }
    }

    /// Takes the key that became ready first.
    pub fn next_ready(&mut self) -> Option<(usize, Box<[u8]>)> {
        let (database, key) = self.ready.as_mut()?.keys.pop_front()?;
        if let Some(queue) = self.queues.get_mut(database, &key) {
            queue.is_ready = false;
        }
        Some((database, key))
    }

    /// Whether a waiter of the key goes on when the key is deleted.
    pub fn unblocks_on_nokey(&self, database: usize, key: &[u8]) -> bool {
        self.queues.get(database, key).is_some_and(|queue| queue.nokey_waiters > 0)
    }

    /// The range of tickets issued so far.
    pub fn tickets(&self) -> Range<u64> {
        0..self.tickets + 1
    }

    /// The first waiter of a key with a ticket in that range: the ticket and the session.
    pub fn first(&self, database: usize, key: &[u8], tickets: Range<u64>) -> Option<(u64, SessionId)> {
        let (ticket, session) = self.queues.get(database, key)?.waiters.range(tickets).next()?;
        Some((*ticket, *session))
    }

    /// The session with the earliest timeout that has passed at `now_ms`.
    pub fn overdue(&self, now_ms: i64) -> Option<SessionId> {
        let (deadline_ms, _, session) = self.deadlines.first()?;
        (*deadline_ms <= now_ms).then_some(*session)
    }

    /// The earliest timeout, in unix milliseconds.
    pub fn next_deadline(&self) -> Option<i64> {
        self.deadlines.first().map(|(deadline_ms, ..)| *deadline_ms)
    }

    /// The number of blocked sessions.
    pub fn sessions(&self) -> usize {
        self.waits.len()
    }

    /// The number of blocked sessions with a timeout.
    pub fn deadlines(&self) -> usize {
        self.deadlines.len()
    }

    /// The sessions that wait for keys, with the first key of each.
    pub fn first_keys(&self) -> impl Iterator<Item = (SessionId, &[u8])> {
        self.waits.iter().filter_map(|(session, wait)| Some((*session, &**wait.keys.first()?)))
    }

    /// The number of keys with waiters.
    pub fn keys(&self) -> usize {
        self.queues.len()
    }

    /// The number of keys with a waiter that goes on when the key is deleted.
    pub fn keys_on_nokey(&self) -> usize {
        let nokey_waiters = self.waits.values().filter(|wait| wait.unblocks_on_nokey());
        nokey_waiters.flat_map(|wait| wait.keys.iter().map(|key| (wait.database, key))).collect::<BTreeSet<_>>().len()
    }

    /// True when no session is blocked.
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }
}
