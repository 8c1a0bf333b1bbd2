//! CLIENT TRACKING: invalidation messages for clients that cache what they read.
//!
//! In the default mode the engine remembers which client read which key: the keys of every read-only
//! command, by the key positions of its row, also within scripts and transactions. A client that gets an invalidation
//! of a key gets none for it again until it has read the key again. With BCAST a client names prefixes instead.
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

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::exec::delivery;
use crate::engine::spec::{Command, Flags, KeyFlags, KeySpec};
use crate::engine::state::SessionId;
use crate::engine::state::tracking::{Choice, Mode};
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

/// Starts tracking for a client by `mode`, whose prefixes are added to those that it has.
pub fn track(engine: &mut Engine, session: SessionId, mut mode: Mode) {
    let Some(client) = engine.sessions.get_mut(session) else { return };
    let tracking = &mut engine.observers.tracking;
    tracking.clients.insert(session);
    let wanted = std::mem::take(&mut mode.prefixes);
    if let Some(before) = client.tracking.take() {
        (mode.prefixes, mode.prefix_bytes) = (before.prefixes, before.prefix_bytes);
        mode.is_exception = before.is_exception;
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
pub fn untrack(engine: &mut Engine, session: SessionId) {
    // Changes made earlier by its own transaction are still reported.
    if engine.observers.tracking.current == Some(session) {
        send_pending(engine, session);
    }
    if let Some(client) = engine.sessions.get_mut(session) {
        engine.observers.tracking.leave(client);
    }
}

/// Sends a session whose command has run the invalidations by its own changes, after everything else.
#[inline]
pub(super) fn end_tracking(engine: &mut Engine, session: SessionId) {
    engine.observers.tracking.is_running = false;
    if !engine.observers.tracking.pending.is_empty() {
        send_pending(engine, session);
    }
}

/// Ends the effect of CLIENT CACHING after a command, unless that was a CLIENT command itself or a transaction is open:
/// it applies to a whole transaction.
pub(super) fn end_exception(engine: &mut Engine, session: SessionId) {
    if engine.observers.tracking.clients.is_empty() {
        return;
    }
    let Some(client) = engine.sessions.get_mut(session).filter(|client| client.transaction.is_none()) else { return };
    let name = client.last_command.map_or("", |id| &engine.table.entry(id).name);
    if let Some(mode) = client.tracking.as_deref_mut()
        && !name.starts_with("client|")
    {
        mode.is_exception = false;
    }
}

#[cold]
fn send_pending(engine: &mut Engine, session: SessionId) {
    for key in std::mem::take(&mut engine.observers.tracking.pending) {
        let mut message = match &key {
            Some(key) => Message::of_keys([&**key].into_iter()),
            None => message_of_all(engine, session),
        };
        send_to_tracker(engine, session, &mut message);
    }
}

/// Adds the keys of a command that a session ran to the tracking table, if the command is read-only.
pub(super) fn remember(engine: &mut Engine, session: SessionId, command: &Command, request: Request<'_>) {
    if !command.flags.has(Flags::READONLY) || command.is_of_scripts() {
        return;
    }
    let Some(mode) = engine.sessions.get(session).and_then(|client| client.tracking.as_deref()) else { return };
    let is_tracked = match mode.choice {
        Choice::All => true,
        Choice::OnlyNamed => mode.is_exception,
        Choice::UnlessNamed => !mode.is_exception,
    };
    if mode.broadcasts || !is_tracked {
        return;
    }
    let is_read = |spec: &&KeySpec| !spec.access.has(KeyFlags::NOT_KEY) && !spec.is_unbalanced(request);
    for key in
        command.keys.iter().filter(is_read).flat_map(|spec| spec.places(request)).filter_map(|place| request.get(place))
    {
        engine.observers.tracking.table.remember(key, session);
    }
}

/// When [`limit_tracking`] is to be called next if no command comes, in unix milliseconds.
pub fn tracking_deadline(engine: &Engine) -> Option<i64> {
    let (tracking, most) = (&engine.observers.tracking, engine.settings.tracked_keys);
    let is_over =
        !engine.switches.cron_paused && most > 0 && !tracking.clients.is_empty() && tracking.table.len() > most;
    let tick = engine.timing.now.unix_ms().div_euclid(LIMIT_EVERY_MS).saturating_add(1);
    is_over.then_some(tick.saturating_mul(LIMIT_EVERY_MS))
}

/// Removes keys at random while the table has more than `tracking-table-max-keys`; their readers get
/// invalidations, as if the keys had changed.
#[inline]
pub fn limit_tracking(engine: &mut Engine) {
    if !engine.observers.tracking.clients.is_empty() {
        limit_tracked_keys(engine);
    }
}

#[cold]
fn limit_tracked_keys(engine: &mut Engine) {
    let most = engine.settings.tracked_keys;
    if most == 0 || engine.observers.tracking.table.len() <= most {
        engine.observers.tracking.rounds = 0;
        return;
    }
    engine.observers.tracking.rounds = engine.observers.tracking.rounds.saturating_add(1);
    for _ in 0..engine.observers.tracking.rounds.saturating_mul(KEYS_AT_ONCE) {
        let number = engine.generator.usize(..engine.observers.tracking.table.len());
        let key = engine.observers.tracking.table.key(number);
        invalidate_known(engine, &key);
        if engine.observers.tracking.table.len() <= most {
            engine.observers.tracking.rounds = 0;
            return;
        }
    }
}

/// Invalidates a changed key for the clients that track it.
pub(super) fn invalidate(engine: &mut Engine, key: &[u8]) {
    let tracking = &mut engine.observers.tracking;
    // For prefixes (BCAST), the changes of a script count as no client's own.
    tracking.prefixes.record_change(key, tracking.current.filter(|_| !engine.scripts.is_any_running()));
    invalidate_known(engine, key);
}

fn invalidate_known(engine: &mut Engine, key: &[u8]) {
    let Some(readers) = engine.observers.tracking.table.forget(key) else { return };
    let mut message = Message::of_keys([key].into_iter());
    for reader in readers.iter() {
        let Some(client) = engine.sessions.get(reader) else { continue };
        let Some(mode) = client.tracking.as_deref().filter(|mode| !mode.broadcasts) else { continue };
        let tracking = &mut engine.observers.tracking;
        let is_own = tracking.current == Some(reader);
        if is_own && mode.no_loop {
            continue;
        }
        if is_own && tracking.is_running {
            tracking.pending.push(Some(key.into()));
        } else {
            send_to_tracker(engine, reader, &mut message);
        }
    }
}

/// Notifies every client that tracks, the oldest first, that all keys were deleted.
pub fn invalidate_all(engine: &mut Engine) {
    let tracking = &mut engine.observers.tracking;
    tracking.table.clear();
    let mut clients: Vec<SessionId> = tracking.clients.iter().copied().collect();
    clients.sort_unstable_by_key(|session| session.number);
    for session in clients {
        if engine.observers.tracking.current == Some(session) {
            engine.observers.tracking.pending.push(None);
        } else {
            let mut message = message_of_all(engine, session);
            send_to_tracker(engine, session, &mut message);
        }
    }
}

/// Sends clients that track prefixes the keys that changed since the last call; to be called at the end of a turn.
pub fn broadcast(engine: &mut Engine) {
    if !engine.observers.tracking.prefixes.has_changes() {
        return;
    }
    for gathered in engine.observers.tracking.prefixes.take() {
        let mut message = Message::of_keys(gathered.keys(None));
        for session in gathered.clients() {
            let mode = engine.sessions.get(session).and_then(|client| client.tracking.as_deref());
            if !mode.is_some_and(|mode| mode.no_loop) {
                send_to_tracker(engine, session, &mut message);
                continue;
            }
            let keys = gathered.keys(Some(session));
            if keys.len() > 0 {
                send_to_tracker(engine, session, &mut Message::of_keys(keys));
            }
        }
    }
}

/// Sends an invalidation to a client that tracks, or to the client of its REDIRECT.
fn send_to_tracker(engine: &mut Engine, session: SessionId, message: &mut Message) {
    let Some(client) = engine.sessions.get(session) else { return };
    let Some(mode) = client.tracking.as_deref() else { return };
    let (redirect, protocol) = (mode.redirect, client.protocol);
    let receiver = redirect.unwrap_or(session);
    let Some(listener) = engine.sessions.get(receiver) else {
        return report_broken_redirection(engine, session, receiver, protocol);
    };
    let frame = match listener.protocol {
        Protocol::Resp3 => message.push(),
        Protocol::Resp2 if redirect.is_some() && !listener.subscribed.is_empty() => message.published(),
        Protocol::Resp2 => return,
    };
    delivery::send(engine, receiver, frame);
}

fn report_broken_redirection(engine: &mut Engine, session: SessionId, gone: SessionId, protocol: Protocol) {
    if let Some(mode) = engine.sessions.get_mut(session).and_then(|client| client.tracking.as_deref_mut()) {
        mode.is_broken = true;
    }
    if protocol == Protocol::Resp3 {
        let mut frame = Vec::new();
        let mut reply = Reply::new(&mut frame, protocol);
        reply.push(2);
        reply.bulk(b"tracking-redir-broken");
        reply.integer(gone.number as i64);
        delivery::send(engine, session, frame.into());
    }
}

/// The message that all keys were deleted, in the protocol of the client that tracks, even if it is redirected.
fn message_of_all(engine: &Engine, session: SessionId) -> Message {
    Message::written(engine.sessions.protocol_of(session), |reply| reply.null())
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
