//! Sessions: what the engine knows about each client.
//!
//! A session is a connection seen from the inside: its selected database, protocol, name and counters. The
//! socket, if there is one, belongs to `server/`, which tells the engine what CLIENT LIST shows of it. Ids grow
//! and never repeat; a [`SessionId`] names its place as well, so finding one is an index, and an id of a
//! session that ended finds nothing.

use std::sync::Arc;

use crate::acl::User;
use crate::engine::eviction::{AccountedMemory, ClientMemory};
use crate::engine::{CommandId, Now, PendingHostCall, PushQueue, Subscribed, Transaction, tracking};
use crate::resp::Protocol;
use std::collections::BTreeMap;

/// Names a session while it lives; of one that ended it finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    place: u32,
    /// The client id that CLIENT ID answers: 1 for the first session, then counting.
    pub number: u64,
}

impl SessionId {
    /// Before every other, and of no session.
    pub(super) const FIRST: SessionId = SessionId { place: 0, number: 0 };
}

/// How a session reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Transport {
    /// A TCP connection.
    Tcp,
    /// A Unix domain socket.
    Unix,
    /// A direct call in the same process, without a socket.
    #[default]
    Direct,
}

/// Where a session comes from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// How it reaches us.
    pub transport: Transport,
    /// The client's address as CLIENT LIST shows it: `ip:port`, or `path:0` of a Unix socket.
    pub address: String,
    /// Our own address on that connection.
    pub local_address: String,
    /// The number of the socket, or -1 where there is none.
    pub descriptor: i64,
    /// True when the client is on this machine.
    pub is_local: bool,
    /// The event loop that serves it, from 0.
    pub event_loop: usize,
    /// It is the test's own: it is always let in, and its commands are neither kept, disturbed nor judged.
    pub is_test_client: bool,
}

/// Which replies a session wants (CLIENT REPLY).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReplyMode {
    /// All.
    #[default]
    On,
    /// None.
    Off,
    /// None to this command, then all.
    Skip,
}

/// What the connection tells about its buffers, for CLIENT LIST.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffers {
    /// Bytes of requests that wait to be completed, but for the words that the first of them has so far.
    pub query: usize,
    /// Bytes of those words.
    pub words: usize,
    /// Room that is kept for requests beyond those.
    pub query_free: usize,
    /// Bytes of replies that wait to be sent.
    pub output: usize,
    /// Room that is kept for replies.
    pub reply_room: usize,
    /// The most bytes that replies took of it lately.
    pub reply_peak: usize,
    /// Bytes read from the client since it came.
    pub received: u64,
    /// Bytes sent to the client since it came.
    pub sent: u64,
}

/// How much room for replies is kept where none wait (DEBUG REPLYBUFFER).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyRoom {
    /// It shrinks when all are sent.
    pub shrinks: bool,
    /// To what replies took at most within so many milliseconds; `None` for ever.
    pub peak_ms: Option<u64>,
}

impl Default for ReplyRoom {
    fn default() -> ReplyRoom {
        ReplyRoom { shrinks: true, peak_ms: Some(0) }
    }
}

/// What the engine knows about one client.
#[derive(Debug)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Where it comes from.
    pub origin: Origin,
    /// The protocol of its replies.
    pub protocol: Protocol,
    /// The database it selected.
    pub database: usize,
    /// True when it has logged in or need not.
    pub authenticated: bool,
    /// Whom it acts as.
    pub user: Arc<User>,
    /// While it is in another world than the first: as whom it was logged in there when it left, if it was, and has not
    /// become somebody else since.
    pub first_user: Option<Arc<User>>,
    /// The name it gave itself, empty at first.
    pub name: Vec<u8>,
    /// The name of its client library.
    pub library_name: Vec<u8>,
    /// The version of its client library.
    pub library_version: Vec<u8>,
    /// Which replies it wants.
    pub reply_mode: ReplyMode,
    /// It wants none to the next command.
    pub skips_next: bool,
    /// It is not to be closed for the memory it takes.
    pub no_evict: bool,
    /// Its reads leave the access times of keys alone.
    pub no_touch: bool,
    /// When it came.
    pub connected: Now,
    /// When it last sent a command.
    pub active: Now,
    /// Its last command.
    pub last_command: Option<CommandId>,
    /// It is to be closed once its replies are sent.
    pub closing: bool,
    /// How many commands it sent.
    pub commands: u64,
    /// What its connection told last.
    pub buffers: Buffers,
    /// What it is to be told beside replies to its own requests.
    pub push_queue: PushQueue,
    /// The transaction that it has begun.
    pub transaction: Option<Arc<Transaction>>,
    /// It is to be closed without its replies: it does not read them.
    pub cut_off: bool,
    /// The next of its replies is sent byte by byte (a fault).
    pub in_bytes: bool,
    /// Its connection ends once what it is told is sent (a fault).
    pub hangs_up: bool,
    /// What it subscribes to.
    pub subscribed: Subscribed,
    /// It watches every command (MONITOR).
    pub monitors: bool,
    /// A pause held its last request back, after so many others.
    pub held_back: Option<u64>,
    /// The moment at which it is closed because too much output waits for it, unless it reads before.
    pub overfull_until: Option<Now>,
    /// It caches what it reads, and wants to hear when that changes (CLIENT TRACKING).
    pub tracking: Option<Box<tracking::Mode>>,
    /// What the keys that it watches take, in bytes.
    pub watched_bytes: usize,
    /// What it asks of the engine's host, or is answered.
    pub host_call: Option<Box<PendingHostCall>>,
    /// What it is counted as among those who take memory.
    accounted: AccountedMemory,
}

impl Session {
    /// How many bytes wait for it to read them.
    pub fn waiting_bytes(&self) -> usize {
        self.push_queue.bytes() + self.buffers.output
    }

    /// About how many bytes of memory it takes; its names are not counted, as in Redis.
    pub fn memory_bytes(&self) -> usize {
        let queued = self.transaction.as_ref().map_or(0, |transaction| transaction.queue.memory_bytes());
        let prefixes = self.tracking.as_ref().map_or(0, |mode| mode.prefix_bytes);
        let wanted = self.subscribed.memory_bytes() + self.watched_bytes + prefixes;
        let Buffers { query, words, query_free, output, reply_room, .. } = self.buffers;
        let buffers = query + words + query_free + reply_room.saturating_sub(output) + self.waiting_bytes();
        size_of::<Session>() + buffers + self.push_queue.queue_bytes() + queued + wanted
    }

    /// True when it hears of what others do.
    pub fn is_listener(&self) -> bool {
        self.monitors || !self.subscribed.is_empty()
    }

    /// True when it can do nothing but listen and change what it listens to: a subscriber that speaks RESP2, whose
    /// messages could not be told from replies.
    pub fn only_listens(&self) -> bool {
        self.protocol == Protocol::Resp2 && !self.subscribed.is_empty()
    }

    /// Whether a reply that is written now is to be sent.
    pub fn wants_reply(&self) -> bool {
        self.reply_mode == ReplyMode::On
    }

    /// A command is answered: what held for it alone is over.
    pub(super) fn has_replied(&mut self) {
        self.reply_mode = match self.reply_mode {
            ReplyMode::Off => ReplyMode::Off,
            ReplyMode::On | ReplyMode::Skip if self.skips_next => ReplyMode::Skip,
            ReplyMode::On | ReplyMode::Skip => ReplyMode::On,
        };
        self.skips_next = false;
    }

    /// Puts everything a client can set back to what a fresh connection has (RESET); the login is the caller's. If the
    /// answer to RESET itself was to be skipped, it still is.
    pub fn reset(&mut self) {
        self.protocol = Protocol::Resp2;
        self.database = 0;
        self.transaction = None;
        self.name.clear();
        if self.reply_mode == ReplyMode::Off {
            self.reply_mode = ReplyMode::On;
        }
        self.no_evict = false;
        self.no_touch = false;
    }
}

/// All sessions.
#[derive(Debug, Default)]
pub struct Sessions {
    places: Vec<Option<Box<Session>>>,
    vacant: Vec<u32>,
    /// The place of each, by its number.
    numbers: BTreeMap<u64, u32>,
    opened: u64,
    client_memory: ClientMemory,
}

impl Sessions {
    /// A session for a client that just connected, and acts as that user.
    pub fn open(&mut self, origin: Origin, user: Arc<User>, authenticated: bool, now: Now) -> SessionId {
        self.opened += 1;
        let place = self.vacant.pop().unwrap_or(self.places.len() as u32);
        let id = SessionId { place, number: self.opened };
        let session = Box::new(Session {
            id,
            origin,
            protocol: Protocol::Resp2,
            database: 0,
            authenticated,
            user,
            first_user: None,
            name: Vec::new(),
            library_name: Vec::new(),
            library_version: Vec::new(),
            reply_mode: ReplyMode::On,
            skips_next: false,
            no_evict: false,
            no_touch: false,
            connected: now,
            active: now,
            last_command: None,
            closing: false,
            commands: 0,
            buffers: Buffers::default(),
            push_queue: PushQueue::default(),
            transaction: None,
            cut_off: false,
            in_bytes: false,
            hangs_up: false,
            subscribed: Subscribed::default(),
            monitors: false,
            held_back: None,
            overfull_until: None,
            tracking: None,
            watched_bytes: 0,
            host_call: None,
            accounted: AccountedMemory::default(),
        });
        match self.places.get_mut(place as usize) {
            Some(vacant) => *vacant = Some(session),
            None => self.places.push(Some(session)),
        }
        self.numbers.insert(id.number, place);
        self.account_memory(id);
        id
    }

    /// A session of the default user.
    #[cfg(test)]
    pub(super) fn open_one(&mut self) -> SessionId {
        let users = crate::acl::Users::default();
        self.open(Origin::default(), Arc::clone(users.default_user()), true, Now::default())
    }

    /// Ends a session.
    pub fn close(&mut self, id: SessionId) {
        if let Some(session) = self.places.get_mut(id.place as usize).and_then(Option::as_deref_mut)
            && session.id == id
        {
            self.client_memory.forget(id, &mut session.accounted);
            self.places[id.place as usize] = None;
            self.vacant.push(id.place);
            self.numbers.remove(&id.number);
        }
    }

    /// The session of that id, while it lives.
    pub fn get(&self, id: SessionId) -> Option<&Session> {
        self.places.get(id.place as usize)?.as_deref().filter(|session| session.id == id)
    }

    /// The session of that id, while it lives.
    pub fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.places.get_mut(id.place as usize)?.as_deref_mut().filter(|session| session.id == id)
    }

    /// Counts anew what memory a session takes; to be called when that has changed.
    pub fn account_memory(&mut self, id: SessionId) {
        let session = self.places.get_mut(id.place as usize).and_then(Option::as_deref_mut);
        if let Some(session) = session.filter(|session| session.id == id) {
            // What was cut off takes nothing soon, and cannot be closed once more.
            let bytes = if session.cut_off { 0 } else { session.memory_bytes() };
            self.client_memory.account(id, &mut session.accounted, bytes, session.no_evict || session.cut_off);
        }
    }

    /// What all of them take, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.client_memory.total_bytes()
    }

    /// The one to close when they take too much.
    pub(super) fn largest(&self) -> Option<SessionId> {
        self.client_memory.largest()
    }

    /// The sessions that live, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.numbers.values().filter_map(|&place| self.places[place as usize].as_deref())
    }

    /// The session of that number, while it lives.
    pub fn find(&self, number: u64) -> Option<SessionId> {
        self.numbers.get(&number).map(|&place| SessionId { place, number })
    }

    /// The sessions that live, in no order, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.places.iter_mut().filter_map(Option::as_deref_mut)
    }

    /// How many live.
    pub fn len(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    /// True when none lives.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many ever came.
    pub fn opened(&self) -> u64 {
        self.opened
    }
}
