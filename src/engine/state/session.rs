//! Sessions: what the engine knows about each client.
//!
//! A session is the engine's side of a connection: its selected database, protocol, name and counters. The socket, if
//! there is one, belongs to `server/`, which reports the figures of it that CLIENT LIST shows. Ids grow and never
//! repeat; a [`SessionId`] also has the session's index, so a look-up is one array access, and the id of a session
//! that ended finds nothing.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::acl::User;
use crate::engine::spec::{CommandId, Flags, Now};
use crate::engine::state::eviction::clients::{AccountedMemory, ClientMemory};
use crate::engine::state::{PendingHostCall, PushQueue, RdbRequest, Subscribed, Transaction, tracking};
use crate::resp::{Protocol, Reply};

/// Identifies a session while it lives; after that it finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    place: u32,
    /// The id that CLIENT ID returns: 1 for the first session, then counting up.
    pub number: u64,
}

impl SessionId {
    /// An id that sorts before all others, and belongs to no session.
    pub(in crate::engine) const FIRST: SessionId = SessionId { place: 0, number: 0 };
}

/// The transport by which a session reaches the server.
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

/// The origin of a session: its transport, addresses and event loop.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The transport by which it reaches the server.
    pub transport: Transport,
    /// The client's address as CLIENT LIST shows it: `ip:port`, or `path:0` of a Unix socket.
    pub address: String,
    /// The server's own address on that connection.
    pub local_address: String,
    /// The file descriptor of the socket, or -1 without one.
    pub descriptor: i64,
    /// True when the client runs on this machine.
    pub is_local: bool,
    /// The index of the event loop that serves it, from 0.
    pub event_loop: usize,
    /// The client belongs to the test itself: it is always accepted, and the test kit does not record, disturb or check
    /// its commands.
    pub is_test_client: bool,
    /// The session is an order of the test kit, and lasts as long as that runs.
    pub is_order: bool,
    /// The client is the primary of this node, which is its replica: what it sends is never refused.
    pub is_primary: bool,
    /// The client is a replica of this node, to which nothing is written here.
    pub is_replica: bool,
    /// The client is a batch of commands from the server's page: it never blocks, as in a transaction, and gets no
    /// messages.
    pub is_page: bool,
    /// The most bytes of a bulk string in a reply, if longer ones are cut: that is for a batch of the page.
    pub most_of_string: Option<NonZeroU32>,
}

impl Origin {
    /// Whether code of this process reads its replies: a direct client's, or the page's.
    pub fn is_in_process(&self) -> bool {
        self.transport == Transport::Direct || self.is_page
    }

    /// Whether it is a client that somebody has connected: not the page, another node, or an order of the test kit.
    pub fn is_of_user(&self) -> bool {
        !self.is_page && !self.is_node() && !self.is_order
    }

    /// Whether it is the primary or a replica of this node.
    pub fn is_node(&self) -> bool {
        self.is_primary || self.is_replica
    }
}

/// The replies that a session wants (CLIENT REPLY).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReplyMode {
    /// All replies (ON).
    #[default]
    On,
    /// No replies (OFF).
    Off,
    /// No reply to this command, then all (SKIP).
    Skip,
}

/// Whether a client may access slots that are being imported (ASKING): one command, or one whole transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Asking {
    /// It may not.
    #[default]
    No,
    /// The next command may, this one is ASKING.
    Next,
    /// This command may.
    Now,
}

impl Asking {
    /// Whether the running command may.
    pub fn is_on(self) -> bool {
        self == Asking::Now
    }
}

/// The sizes of a connection's buffers, for CLIENT LIST.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffers {
    /// Bytes of unfinished requests, without the complete words of the first one.
    pub query: usize,
    /// Bytes of the complete words of the first unfinished request.
    pub words: usize,
    /// Bytes of free room that is kept for further requests.
    pub query_free: usize,
    /// Bytes of replies that wait to be sent.
    pub output: usize,
    /// Bytes of the buffer that is kept for replies.
    pub reply_room: usize,
    /// The recent peak of the reply buffer's use, in bytes.
    pub reply_peak: usize,
    /// Bytes read from the client since it connected.
    pub received: u64,
    /// Bytes sent to the client since it connected.
    pub sent: u64,
}

/// The size of the reply buffer that is kept while no replies wait (DEBUG REPLYBUFFER).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyRoom {
    /// The buffer shrinks when all replies are sent.
    pub shrinks: bool,
    /// The buffer shrinks to the peak of the last `peak_ms` milliseconds; `None` for the peak since the start.
    pub peak_ms: Option<u64>,
}

impl Default for ReplyRoom {
    fn default() -> ReplyRoom {
        ReplyRoom { shrinks: true, peak_ms: Some(0) }
    }
}

/// The state of one client in the engine.
#[derive(Debug)]
pub struct Session {
    /// The session's id.
    pub id: SessionId,
    /// The transport and addresses of the connection.
    pub origin: Origin,
    /// The protocol of its replies.
    pub protocol: Protocol,
    /// The selected database.
    pub database: usize,
    /// True when the client has logged in or need not.
    pub authenticated: bool,
    /// The user that it acts as.
    pub user: Arc<User>,
    /// While it is in another world than the first: the user that it was logged in as there when it left, unless it has
    /// logged in as another one since.
    pub first_user: Option<Arc<User>>,
    /// The name that the client set (CLIENT SETNAME), empty at first.
    pub name: Vec<u8>,
    /// The name of its client library.
    pub library_name: Vec<u8>,
    /// The version of its client library.
    pub library_version: Vec<u8>,
    /// The replies that it wants (CLIENT REPLY).
    pub reply_mode: ReplyMode,
    /// The client wants no reply to the next command (CLIENT REPLY SKIP).
    pub skips_next: bool,
    /// The client is exempt from client eviction (CLIENT NO-EVICT).
    pub no_evict: bool,
    /// The client's reads do not change the access times of keys (CLIENT NO-TOUCH).
    pub no_touch: bool,
    /// The RDB file that it wants of SYNC.
    pub rdb_request: RdbRequest,
    /// The moment when the client connected.
    pub connected: Now,
    /// The moment when the client last sent a command.
    pub active: Now,
    /// The last command that it called.
    pub last_command: Option<CommandId>,
    /// The connection closes once its replies are sent.
    pub closing: bool,
    /// The number of commands that it sent.
    pub commands: u64,
    /// The offset in the stream of changes behind its last write ([`crate::engine::Propagation::offset`]).
    pub written_offset: u64,
    /// The buffer sizes that its connection reported last.
    pub buffers: Buffers,
    /// Pushes and late replies that its connection has not taken yet.
    pub push_queue: PushQueue,
    /// Whether the client may access slots that are being imported (ASKING).
    pub asking: Asking,
    /// The client reads from replicas (READONLY).
    pub reads_replicas: bool,
    /// The client's transaction, between MULTI and EXEC.
    pub transaction: Option<Arc<Transaction>>,
    /// The connection closes without sending its replies: the client does not read them.
    pub cut_off: bool,
    /// The next reply is sent byte by byte (a fault of the test kit).
    pub is_bytewise: bool,
    /// The connection closes once its queued pushes are sent (a fault of the test kit).
    pub hangs_up: bool,
    /// It has entered its world by DUNLIN WORLD .. TEMPORARY, as the packages for tests do: the world ends with it, so
    /// neither `timeout` nor a filter of CLIENT KILL that does not name it closes it.
    pub keeps_world: bool,
    /// The connection is among those that are still to be woken for pushes.
    pub is_to_be_woken: bool,
    /// The channels and patterns to which the client is subscribed.
    pub subscribed: Subscribed,
    /// The client receives every command (MONITOR).
    pub monitors: bool,
    /// The client receives commands with their replies (DUNLIN FEED).
    pub subscribes_to_feed: bool,
    /// Set if a pause holds its request back: its place among all requests that were held back, counted from 1, in
    /// whose order they run.
    pub hold_number: Option<u64>,
    /// The moment at which it is closed because too much output waits for it, unless it reads before.
    pub overfull_until: Option<Now>,
    /// The options of client-side caching (CLIENT TRACKING), while tracking is on.
    pub tracking: Option<Box<tracking::Mode>>,
    /// The memory of its watched keys, in bytes.
    pub watched_bytes: usize,
    /// The memory of the command that it is blocked in, in bytes.
    pub(in crate::engine) blocked_bytes: usize,
    /// The session's pending host call, or the result of one.
    pub host_call: Option<Box<PendingHostCall>>,
    /// The memory that it is counted with for client eviction.
    accounted: AccountedMemory,
}

impl Session {
    /// The number of bytes that wait to be sent to it.
    pub fn waiting_bytes(&self) -> usize {
        self.push_queue.bytes() + self.buffers.output
    }

    /// About how many bytes of memory the session takes; its names are not counted, as in Redis.
    pub fn memory_bytes(&self) -> usize {
        let queued = self.transaction.as_ref().map_or(0, |transaction| transaction.queue.memory_bytes());
        let prefixes = self.tracking.as_ref().map_or(0, |mode| mode.prefix_bytes);
        let wanted = self.subscribed.memory_bytes() + self.watched_bytes + self.blocked_bytes + prefixes;
        let Buffers { query, words, query_free, output, reply_room, .. } = self.buffers;
        let buffers = query + words + query_free + reply_room.saturating_sub(output) + self.waiting_bytes();
        size_of::<Session>() + buffers + self.push_queue.queue_bytes() + queued + wanted
    }

    /// True when it receives pushes about what other clients do.
    pub fn receives_pushes(&self) -> bool {
        self.monitors || self.subscribes_to_feed || !self.subscribed.is_empty()
    }

    /// True when it may only receive messages and change its subscriptions: a RESP2 subscriber, whose client could not
    /// distinguish messages from replies.
    pub fn is_resp2_subscriber(&self) -> bool {
        self.protocol == Protocol::Resp2 && !self.subscribed.is_empty()
    }

    /// Whether a reply that is written now is to be sent.
    pub fn wants_reply(&self) -> bool {
        self.reply_mode == ReplyMode::On
    }

    /// Ends settings that apply to one command alone, after its reply.
    pub(in crate::engine) fn has_replied(&mut self) {
        self.reply_mode = match self.reply_mode {
            ReplyMode::Off => ReplyMode::Off,
            ReplyMode::On | ReplyMode::Skip if self.skips_next => ReplyMode::Skip,
            ReplyMode::On | ReplyMode::Skip => ReplyMode::On,
        };
        self.skips_next = false;
        self.asking = match self.asking {
            Asking::Next => Asking::Now,
            Asking::Now if self.transaction.is_some() => Asking::Now,
            Asking::Now | Asking::No => Asking::No,
        };
    }

    /// Restores everything that a client can set to the state of a fresh connection (RESET); the caller resets the
    /// login. If the reply to RESET itself was to be skipped, it still is.
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
        (self.asking, self.reads_replicas) = (Asking::No, false);
    }
}

/// The sessions of all clients.
#[derive(Debug, Default)]
pub struct Sessions {
    places: Vec<Option<Box<Session>>>,
    vacant: Vec<u32>,
    /// The index of each session, by its id.
    numbers: BTreeMap<u64, u32>,
    opened: u64,
    /// How many of the live sessions belong to the page.
    pages: usize,
    /// The number of sessions of replicas.
    replicas: usize,
    client_memory: ClientMemory,
    /// The sizes of the largest buffers, and when they were found.
    largest_buffers: Buffers,
    largest_found_us: Option<u64>,
}

/// The time for which the largest buffers are not searched again, in microseconds.
const FOUND_FOR_US: u64 = 100_000;

impl Sessions {
    /// Opens a session for a client that just connected, and acts as that user.
    pub fn open(&mut self, origin: Origin, user: Arc<User>, authenticated: bool, now: Now) -> SessionId {
        self.opened += 1;
        self.pages += usize::from(origin.is_page);
        self.replicas += usize::from(origin.is_replica);
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
            rdb_request: RdbRequest::default(),
            connected: now,
            active: now,
            last_command: None,
            closing: false,
            commands: 0,
            written_offset: 0,
            buffers: Buffers::default(),
            push_queue: PushQueue::default(),
            asking: Asking::No,
            reads_replicas: false,
            transaction: None,
            cut_off: false,
            is_bytewise: false,
            hangs_up: false,
            keeps_world: false,
            is_to_be_woken: false,
            subscribed: Subscribed::default(),
            monitors: false,
            subscribes_to_feed: false,
            hold_number: None,
            overfull_until: None,
            tracking: None,
            watched_bytes: 0,
            blocked_bytes: 0,
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

    /// Opens a session of the default user.
    #[cfg(test)]
    pub(in crate::engine) fn open_one(&mut self) -> SessionId {
        let users = crate::acl::Users::default();
        self.open(Origin::default(), Arc::clone(users.default_user()), true, Now::default())
    }

    /// Ends a session.
    pub fn close(&mut self, id: SessionId) {
        if let Some(session) = self.places.get_mut(id.place as usize).and_then(Option::as_deref_mut)
            && session.id == id
        {
            self.client_memory.forget(id, &mut session.accounted);
            self.pages -= usize::from(session.origin.is_page);
            self.replicas -= usize::from(session.origin.is_replica);
            self.places[id.place as usize] = None;
            self.vacant.push(id.place);
            self.numbers.remove(&id.number);
        }
    }

    /// The session with that id, if it still exists.
    pub fn get(&self, id: SessionId) -> Option<&Session> {
        self.places.get(id.place as usize)?.as_deref().filter(|session| session.id == id)
    }

    /// The session with that id, if it still exists.
    pub fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.places.get_mut(id.place as usize)?.as_deref_mut().filter(|session| session.id == id)
    }

    /// Updates the memory count of a session; to be called when its memory has changed.
    pub fn account_memory(&mut self, id: SessionId) {
        let session = self.places.get_mut(id.place as usize).and_then(Option::as_deref_mut);
        if let Some(session) = session.filter(|session| session.id == id) {
            // A session that is being closed frees its memory soon, and cannot be closed again.
            // The links to other nodes do not count in Redis either.
            let is_counted = !session.cut_off && !session.origin.is_node();
            let bytes = if is_counted { session.memory_bytes() } else { 0 };
            self.client_memory.account(id, &mut session.accounted, bytes, session.no_evict || !is_counted);
        }
    }

    /// The memory of all sessions, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.client_memory.total_bytes()
    }

    /// The session to close first when all of them take too much memory.
    pub(in crate::engine) fn largest(&self) -> Option<SessionId> {
        self.client_memory.largest()
    }

    /// Finds the largest buffers, unless they were found less than a tenth of a second before: with many sessions that
    /// takes longer than the rest of INFO. `elapsed_us` is the time of a monotonic clock; one that stands still does
    /// not keep old sizes.
    pub(in crate::engine) fn find_largest_buffers(&mut self, elapsed_us: u64) {
        let is_recent = |found_us: u64| (1..FOUND_FOR_US).contains(&elapsed_us.wrapping_sub(found_us));
        if self.largest_found_us.is_some_and(is_recent) {
            return;
        }
        self.largest_found_us = Some(elapsed_us);
        self.largest_buffers = self.places.iter().flatten().fold(Buffers::default(), |largest, session| Buffers {
            query: largest.query.max(session.buffers.query),
            output: largest.output.max(session.buffers.output),
            ..largest
        });
    }

    /// The size of the largest query buffer of any session, and of the largest output buffer, up to a tenth of a second
    /// old; the other sizes are 0.
    pub fn largest_buffers(&self) -> Buffers {
        self.largest_buffers
    }

    /// The live sessions, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.numbers.values().filter_map(|&place| self.places[place as usize].as_deref())
    }

    /// The session with that client id, if it still exists.
    pub fn find(&self, number: u64) -> Option<SessionId> {
        self.numbers.get(&number).map(|&place| SessionId { place, number })
    }

    /// The live sessions, in no order, to be changed.
    pub(in crate::engine) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.places.iter_mut().filter_map(Option::as_deref_mut)
    }

    /// The number of live sessions.
    pub fn len(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    /// The number of live sessions, without those of the page and of replicas.
    pub fn clients(&self) -> usize {
        self.len() - self.pages - self.replicas
    }

    /// Whether a session belongs to the page.
    #[inline]
    pub(in crate::engine) fn is_page(&self, id: SessionId) -> bool {
        self.get(id).is_some_and(|session| session.origin.is_page)
    }

    /// True when there is no live session.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of sessions ever opened.
    pub fn opened(&self) -> u64 {
        self.opened
    }
}

impl Sessions {
    /// The number of clients that somebody has connected.
    pub fn clients_of_users(&self) -> usize {
        self.iter().filter(|session| session.origin.is_of_user()).count()
    }

    /// The flags of a command, and those of the queue that it is about to run.
    pub(in crate::engine) fn flags_with_queue(&self, session: SessionId, flags: Flags) -> Flags {
        let transaction = self.get(session).and_then(|client| client.transaction.as_ref());
        match transaction {
            Some(transaction) if flags.has(Flags::RUNS_QUEUE) => flags.and(transaction.flags),
            _ => flags,
        }
    }

    /// Records what the session called last, `None` for a command that does not exist.
    pub(in crate::engine) fn set_last_command(&mut self, session: SessionId, command: Option<CommandId>) {
        if let Some(client) = self.get_mut(session) {
            client.last_command = command;
        }
    }

    /// True when the session is to receive the reply to its command (CLIENT REPLY).
    pub(in crate::engine) fn wants_reply(&self, session: SessionId) -> bool {
        self.get(session).is_some_and(Session::wants_reply)
    }

    /// The sessions that a pause holds or held back, in the order of their requests.
    pub fn held_back(&self) -> Vec<SessionId> {
        let mut held: Vec<_> = self.iter().filter_map(|session| Some((session.hold_number?, session.id))).collect();
        held.sort_unstable();
        held.into_iter().map(|(_, session)| session).collect()
    }

    /// The number of push frames that the session has not read yet.
    pub(in crate::engine) fn frames_of(&self, session: SessionId) -> usize {
        self.get(session).map_or(0, |client| client.push_queue.frames())
    }

    /// The protocol that the session speaks, RESP2 for one that has ended.
    pub(in crate::engine) fn protocol_of(&self, session: SessionId) -> Protocol {
        self.get(session).map_or(Protocol::Resp2, |client| client.protocol)
    }

    /// A writer of replies to a session: in the protocol that it speaks, and with strings cut to what it asks for.
    pub(in crate::engine) fn reply_to<'a>(&self, session: SessionId, out: &'a mut Vec<u8>) -> Reply<'a> {
        match self.get(session) {
            Some(client) => Reply::new(out, client.protocol).cutting(client.origin.most_of_string),
            None => Reply::new(out, Protocol::Resp2),
        }
    }

    /// Whether a session belongs to the test itself.
    pub(in crate::engine) fn is_test_client(&self, session: SessionId) -> bool {
        self.get(session).is_some_and(|client| client.origin.is_test_client)
    }

    /// Makes the session's connection send its output one byte at a time from now on (a fault of the test kit).
    pub(in crate::engine) fn send_bytewise(&mut self, session: SessionId) {
        if let Some(client) = self.get_mut(session) {
            client.is_bytewise = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_buffers_are_searched_again_after_a_tenth_of_a_second() {
        let mut sessions = Sessions::default();
        let (one, other) = (sessions.open_one(), sessions.open_one());
        let mut found_at = |elapsed_us, query, output| {
            for (session, buffers) in
                [(one, Buffers { query, ..Buffers::default() }), (other, Buffers { output, ..Buffers::default() })]
            {
                sessions.get_mut(session).expect("it is open").buffers = buffers;
            }
            sessions.find_largest_buffers(elapsed_us);
            (sessions.largest_buffers().query, sessions.largest_buffers().output)
        };
        assert_eq!(found_at(0, 1, 2), (1, 2));
        assert_eq!(found_at(0, 9, 8), (9, 8), "a clock that stands still keeps nothing");
        assert_eq!(found_at(99_999, 3, 4), (9, 8));
        assert_eq!(found_at(100_000, 5, 6), (5, 6));
    }
}
