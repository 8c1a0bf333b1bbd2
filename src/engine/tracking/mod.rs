//! CLIENT TRACKING: invalidation messages for clients that cache what they read.
//!
//! In the default mode the engine remembers which client read which key ([`known`]): the keys of every read-only
//! command, by the key positions of its row, also within scripts and transactions. A client that gets an invalidation
//! of a key gets none for it again until it has read the key again. With BCAST a client names prefixes instead
//! ([`prefixes`]).
//!
//! A message goes to the client itself if it speaks RESP3, or to another one (REDIRECT); if that one speaks RESP2 it
//! must be a subscriber, and reads a message on the channel `__redis__:invalidate`. Keys are distinguished by their
//! names alone, whatever their database.
//!
//! Order: an invalidation by the client's own command follows its reply, or the whole reply of a transaction or
//! script; one by an eviction before the command runs precedes the reply. Other clients are notified at once. BCAST
//! messages are sent at the end of a connection's turn.
//!
//! Costs: while no client tracks, two comparisons per command and one per change.
//!
//! Source: Redis's documentation of client-side caching, and the behaviour of Redis 8.0.6.

mod known;
mod prefixes;

use std::collections::BTreeSet;
use std::sync::Arc;

use known::Known;
use prefixes::Prefixes;

use crate::engine::{Command, Engine, Flags, KeyFlags, KeySpec, Session, SessionId};
use crate::resp::{Protocol, Reply, Request};

/// The channel of invalidations for clients that speak RESP2.
const CHANNEL: &[u8] = b"__redis__:invalidate";
/// The memory of a prefix's entries, beside the bytes of the prefix.
const PREFIX_BYTES: usize = 128;
/// The number of surplus keys that a command removes from the tracking table; each further command that finds a
/// surplus removes as many more.
const KEYS_AT_ONCE: usize = 100;
/// How often surplus keys are removed while no command comes, in milliseconds: Redis's clock tick.
const LIMIT_EVERY_MS: i64 = 100;

/// The tracking options of a client (CLIENT TRACKING).
#[derive(Clone, Debug, Default)]
pub struct Mode {
    /// The client that gets the invalidations in its place (REDIRECT).
    pub redirect: Option<SessionId>,
    /// It gets invalidations of all keys that begin with its prefixes (BCAST).
    pub broadcasts: bool,
    /// The commands whose keys are tracked.
    pub choice: Choice,
    /// It gets no invalidations of keys that it changes itself (NOLOOP).
    pub no_loop: bool,
    /// CLIENT CACHING was called, which applies to the next command.
    pub is_exception: bool,
    /// The client of its REDIRECT has disconnected.
    pub is_broken: bool,
    /// Its prefixes, for BCAST.
    pub prefixes: BTreeSet<Arc<[u8]>>,
    /// The memory of its prefixes, in bytes.
    pub prefix_bytes: usize,
}

/// The commands of a client whose keys are tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// All commands.
    #[default]
    All,
    /// Only commands after CLIENT CACHING YES (OPTIN).
    OnlyNamed,
    /// All commands except those after CLIENT CACHING NO (OPTOUT).
    UnlessNamed,
}

/// The state of client-side caching: the clients that track, and what they track.
#[derive(Debug, Default)]
pub struct Tracking {
    clients: BTreeSet<SessionId>,
    known: Known,
    prefixes: Prefixes,
    /// The session whose turn it is.
    current: Option<SessionId>,
    /// The command of that session runs, and has not replied yet.
    is_running: bool,
    /// The invalidations that follow that client's reply: of a key, or of all keys.
    pending: Vec<Option<Box<[u8]>>>,
    /// The reply of the running command follows the invalidations for its own client, instead of preceding them.
    pub(super) is_reply_last: bool,
    /// The number of consecutive commands that found too many keys.
    rounds: usize,
}

impl Tracking {
    /// True when at least one client tracks keys.
    #[inline]
    pub fn is_on(&self) -> bool {
        !self.clients.is_empty() || self.known.len() > 0
    }

    /// The number of clients that track.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// The number of keys in the tracking table.
    pub fn keys(&self) -> usize {
        self.known.len()
    }

    /// The number of pairs of a key and a client in the tracking table.
    pub fn items(&self) -> usize {
        self.known.items()
    }

    /// The number of tracked prefixes.
    pub fn prefixes(&self) -> usize {
        self.prefixes.len()
    }

    /// About how many bytes of memory tracking takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.known.memory_bytes()
    }

    /// Ends the tracking of a client.
    pub(super) fn leave(&mut self, session: &mut Session) {
        if let Some(mode) = session.tracking.take() {
            self.clients.remove(&session.id);
            mode.prefixes.iter().for_each(|prefix| self.prefixes.leave(prefix, session.id));
        }
    }
}

/// Starting and ending tracking.
impl Engine {
    /// Starts tracking for a client by `mode`, whose prefixes are added to those that it has.
    pub fn track(&mut self, session: SessionId, mut mode: Mode) {
        let Some(client) = self.sessions.get_mut(session) else { return };
        let tracking = &mut self.observers.tracking;
        tracking.clients.insert(session);
        let wanted = std::mem::take(&mut mode.prefixes);
        if let Some(before) = client.tracking.take() {
            (mode.prefixes, mode.prefix_bytes) = (before.prefixes, before.prefix_bytes);
        }
        for prefix in wanted {
            let bytes = prefix.len() + PREFIX_BYTES;
            if mode.prefixes.insert(tracking.prefixes.join(&prefix, session)) {
                mode.prefix_bytes += bytes;
            }
        }
        client.tracking = Some(Box::new(mode));
    }

    /// Ends tracking for a client.
    pub fn untrack(&mut self, session: SessionId) {
        // Changes made earlier by its own transaction are still reported.
        if self.observers.tracking.current == Some(session) {
            self.tell_pending(session);
        }
        if let Some(client) = self.sessions.get_mut(session) {
            self.observers.tracking.leave(client);
        }
    }
}

/// Attributing changes to sessions.
impl Tracking {
    /// A session's turn begins: changes from now on are attributed to it.
    #[inline]
    pub(super) fn begin_turn(&mut self, session: SessionId) {
        self.current = Some(session);
    }

    /// The session's command begins to run: invalidations by its own changes wait for the reply.
    #[inline]
    pub(super) fn begin_command(&mut self, session: SessionId) {
        (self.current, self.is_running) = (Some(session), true);
    }

    /// The session's turn is over.
    #[inline]
    pub(super) fn end_turn(&mut self) {
        self.current = None;
    }
}

/// Around each command.
impl Engine {
    /// The session's command has run: sends it the invalidations by its own changes, behind all else.
    #[inline]
    pub(super) fn end_tracking(&mut self, session: SessionId) {
        self.observers.tracking.is_running = false;
        if !self.observers.tracking.pending.is_empty() {
            self.tell_pending(session);
        }
    }

    /// The session is done with a command: ends the effect of CLIENT CACHING, unless that was a CLIENT command itself
    /// or a transaction goes on: it applies to a whole transaction.
    pub(super) fn end_exception(&mut self, session: SessionId) {
        if self.observers.tracking.clients.is_empty() {
            return;
        }
        let Some(client) = self.sessions.get_mut(session).filter(|client| client.transaction.is_none()) else { return };
        let name = client.last_command.map_or("", |id| &self.table.entry(id).name);
        if let Some(mode) = client.tracking.as_deref_mut()
            && !name.starts_with("client|")
        {
            mode.is_exception = false;
        }
    }

    #[cold]
    fn tell_pending(&mut self, session: SessionId) {
        for key in std::mem::take(&mut self.observers.tracking.pending) {
            let mut message = match &key {
                Some(key) => Message::of_keys([&**key].into_iter()),
                None => self.message_of_all(session),
            };
            self.tell_tracker(session, &mut message);
        }
    }

    /// A session ran a command: if it is read-only, its keys are added to the tracking table.
    pub(super) fn remember(&mut self, session: SessionId, command: &Command, request: Request<'_>) {
        if !command.flags.has(Flags::READONLY) || command.is_of_scripts() {
            return;
        }
        let Some(mode) = self.sessions.get(session).and_then(|client| client.tracking.as_deref()) else { return };
        let is_tracked = match mode.choice {
            Choice::All => true,
            Choice::OnlyNamed => mode.is_exception,
            Choice::UnlessNamed => !mode.is_exception,
        };
        if mode.broadcasts || !is_tracked {
            return;
        }
        let is_read = |spec: &&KeySpec| !spec.access.has(KeyFlags::NOT_KEY) && !spec.is_unbalanced(request);
        for key in command
            .keys
            .iter()
            .filter(is_read)
            .flat_map(|spec| spec.places(request))
            .filter_map(|place| request.get(place))
        {
            self.observers.tracking.known.remember(key, session);
        }
    }

    /// When [`Engine::limit_tracking`] is to be called next if no command comes, in unix milliseconds.
    pub fn tracking_deadline(&self) -> Option<i64> {
        let (tracking, most) = (&self.observers.tracking, self.settings.tracked_keys);
        let is_over =
            !self.switches.cron_paused && most > 0 && !tracking.clients.is_empty() && tracking.known.len() > most;
        let tick = self.timing.now.unix_ms().div_euclid(LIMIT_EVERY_MS).saturating_add(1);
        is_over.then_some(tick.saturating_mul(LIMIT_EVERY_MS))
    }

    /// Removes keys at random while the table has more than `tracking-table-max-keys`; their readers get
    /// invalidations, as if the keys had changed.
    #[inline]
    pub fn limit_tracking(&mut self) {
        if !self.observers.tracking.clients.is_empty() {
            self.limit_tracked_keys();
        }
    }

    #[cold]
    fn limit_tracked_keys(&mut self) {
        let most = self.settings.tracked_keys;
        if most == 0 || self.observers.tracking.known.len() <= most {
            self.observers.tracking.rounds = 0;
            return;
        }
        self.observers.tracking.rounds = self.observers.tracking.rounds.saturating_add(1);
        for _ in 0..self.observers.tracking.rounds.saturating_mul(KEYS_AT_ONCE) {
            let number = self.generator.usize(..self.observers.tracking.known.len());
            let key = self.observers.tracking.known.key(number);
            self.invalidate_known(&key);
            if self.observers.tracking.known.len() <= most {
                self.observers.tracking.rounds = 0;
                return;
            }
        }
    }
}

/// Sending invalidations.
impl Engine {
    /// A key has changed: invalidates it for the clients that track it.
    pub(super) fn invalidate(&mut self, key: &[u8]) {
        let tracking = &mut self.observers.tracking;
        // For prefixes (BCAST), the changes of a script count as no client's own.
        tracking.prefixes.note(key, tracking.current.filter(|_| !self.scripts.is_any_running()));
        self.invalidate_known(key);
    }

    fn invalidate_known(&mut self, key: &[u8]) {
        let Some(readers) = self.observers.tracking.known.forget(key) else { return };
        let mut message = Message::of_keys([key].into_iter());
        for reader in readers.iter() {
            let Some(client) = self.sessions.get(reader) else { continue };
            let Some(mode) = client.tracking.as_deref().filter(|mode| !mode.broadcasts) else { continue };
            let tracking = &mut self.observers.tracking;
            let is_own = tracking.current == Some(reader);
            if is_own && mode.no_loop {
                continue;
            }
            if is_own && tracking.is_running {
                tracking.pending.push(Some(key.into()));
            } else {
                self.tell_tracker(reader, &mut message);
            }
        }
    }

    /// Makes the reply of the running command follow the invalidations for its own client: Redis empties databases
    /// while the client waits, as if it were blocked.
    pub fn put_reply_last(&mut self) {
        self.observers.tracking.is_reply_last = true;
    }

    /// All keys were deleted: notifies every client that tracks, the oldest first.
    pub fn invalidate_all(&mut self) {
        let tracking = &mut self.observers.tracking;
        tracking.known.clear();
        let mut clients: Vec<SessionId> = tracking.clients.iter().copied().collect();
        clients.sort_unstable_by_key(|session| session.number);
        for session in clients {
            if self.observers.tracking.current == Some(session) {
                self.observers.tracking.pending.push(None);
            } else {
                let mut message = self.message_of_all(session);
                self.tell_tracker(session, &mut message);
            }
        }
    }

    /// Sends clients that track prefixes the keys that changed since the last call; to be called at the end of a turn.
    pub fn broadcast(&mut self) {
        if !self.observers.tracking.prefixes.has_changes() {
            return;
        }
        for gathered in self.observers.tracking.prefixes.take() {
            let mut message = Message::of_keys(gathered.keys(None));
            for session in gathered.clients() {
                let mode = self.sessions.get(session).and_then(|client| client.tracking.as_deref());
                if !mode.is_some_and(|mode| mode.no_loop) {
                    self.tell_tracker(session, &mut message);
                    continue;
                }
                let keys = gathered.keys(Some(session));
                if keys.len() > 0 {
                    self.tell_tracker(session, &mut Message::of_keys(keys));
                }
            }
        }
    }

    /// Sends an invalidation to a client that tracks, or to the client of its REDIRECT.
    fn tell_tracker(&mut self, session: SessionId, message: &mut Message) {
        let Some(client) = self.sessions.get(session) else { return };
        let Some(mode) = client.tracking.as_deref() else { return };
        let (redirect, protocol) = (mode.redirect, client.protocol);
        let receiver = redirect.unwrap_or(session);
        let Some(listener) = self.sessions.get(receiver) else {
            return self.tell_of_broken_redirection(session, receiver, protocol);
        };
        let frame = match listener.protocol {
            Protocol::Resp3 => message.push(),
            Protocol::Resp2 if redirect.is_some() && !listener.subscribed.is_empty() => message.published(),
            Protocol::Resp2 => return,
        };
        self.tell(receiver, frame);
    }

    fn tell_of_broken_redirection(&mut self, session: SessionId, gone: SessionId, protocol: Protocol) {
        if let Some(mode) = self.sessions.get_mut(session).and_then(|client| client.tracking.as_deref_mut()) {
            mode.is_broken = true;
        }
        if protocol == Protocol::Resp3 {
            let mut frame = Vec::new();
            let mut reply = Reply::new(&mut frame, protocol);
            reply.push(2);
            reply.bulk(b"tracking-redir-broken");
            reply.integer(gone.number as i64);
            self.tell(session, frame.into());
        }
    }

    /// The message that all keys were deleted, in the protocol of the client that tracks, even if it is redirected.
    fn message_of_all(&self, session: SessionId) -> Message {
        let protocol = self.sessions.get(session).map_or(Protocol::Resp2, |client| client.protocol);
        Message::written(protocol, |reply| reply.null())
    }
}

/// An invalidation, as a RESP3 push and as a RESP2 message; each frame is built when it is first needed.
#[derive(Debug)]
struct Message {
    what: Vec<u8>,
    push: Option<Arc<[u8]>>,
    published: Option<Arc<[u8]>>,
}

impl Message {
    fn written(protocol: Protocol, write: impl FnOnce(&mut Reply<'_>)) -> Message {
        let mut what = Vec::new();
        write(&mut Reply::new(&mut what, protocol));
        Message { what, push: None, published: None }
    }

    fn of_keys<'k>(keys: impl ExactSizeIterator<Item = &'k [u8]>) -> Message {
        Message::written(Protocol::Resp3, |reply| {
            reply.array(keys.len());
            keys.for_each(|key| reply.bulk(key));
        })
    }

    fn push(&mut self) -> Arc<[u8]> {
        let frame = self.push.get_or_insert_with(|| framed(Protocol::Resp3, &[b"invalidate"], &self.what));
        Arc::clone(frame)
    }

    fn published(&mut self) -> Arc<[u8]> {
        let frame = self.published.get_or_insert_with(|| framed(Protocol::Resp2, &[b"message", CHANNEL], &self.what));
        Arc::clone(frame)
    }
}

/// A push message that begins with these words and ends with an element that is encoded already.
fn framed(protocol: Protocol, words: &[&[u8]], last: &[u8]) -> Arc<[u8]> {
    let mut bytes = Vec::with_capacity(last.len() + 64);
    let mut reply = Reply::new(&mut bytes, protocol);
    reply.push(words.len() + 1);
    words.iter().for_each(|word| reply.bulk(word));
    bytes.extend_from_slice(last);
    bytes.into()
}
