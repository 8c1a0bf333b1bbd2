//! The line that describes a client as `field=value`, in Redis 8.0's order of fields: CLIENT LIST shows it, ACL LOG
//! stores it.
//!
//! Figures about buffers are our own. `rbs` and `rbp` are the size of the connection's reply buffer and the most that
//! replies used of it; Redis's is never below 1 KiB. Unsent replies in it count as `omem`, and `obl` is 0.

use crate::engine::Engine;
use crate::engine::exec::blocking;
use crate::engine::state::{Session, SessionId, Topic, Transaction, Transport, Wait, tracking};
use crate::resp::{Requests, write_escaped};

/// The number of bytes of a too long request that the log shows.
const SHOWN_BYTES: usize = 64;

fn write_flags(text: &mut Vec<u8>, session: &Session, engine: &Engine) {
    let tracking = session.tracking.as_deref();
    let letters = [
        (session.monitors, b'O'),
        (session.origin.is_replica, b'S'),
        (session.origin.is_primary, b'M'),
        (!session.subscribed.is_empty(), b'P'),
        (session.transaction.is_some(), b'x'),
        (engine.is_blocked(session.id) || blocking::is_held_back(engine, session), b'b'),
        (tracking.is_some(), b't'),
        (tracking.is_some_and(|mode| mode.is_broken), b'R'),
        (tracking.is_some_and(|mode| mode.broadcasts), b'B'),
        (engine.observers.watches.is_known_broken(session.id), b'd'),
        (session.closing, b'c'),
        (session.origin.transport == Transport::Unix, b'U'),
        (session.no_evict, b'e'),
        (session.reads_replicas, b'r'),
        (session.no_touch, b'T'),
    ];
    let start = text.len();
    text.extend(letters.into_iter().filter_map(|(is_set, letter)| is_set.then_some(letter)));
    if text.len() == start {
        text.push(b'N');
    }
}

impl Engine {
    /// Counts a client that is closed because its unfinished request is too long, and returns the line for the log.
    pub fn end_query(&mut self, session: SessionId, unfinished: &[u8]) -> String {
        self.stats.query_buffer_disconnections += 1;
        let client_info = self.sessions.get(session).map_or_else(String::new, |session| client_info(self, session));
        let mut beginning = Vec::new();
        write_escaped(&unfinished[..unfinished.len().min(SHOWN_BYTES)], &mut beginning);
        let beginning = String::from_utf8_lossy(&beginning);
        format!(
            "Closing client that reached max query buffer length: {client_info} (qbuf initial bytes: \"{beginning}\")"
        )
    }
}

/// The line of a client; `request_bytes` is the size of its running request, or 0.
pub fn describe_client(engine: &Engine, session: &Session, request_bytes: usize) -> Vec<u8> {
    let mut text = Vec::new();
    write_line(&mut text, session, request_bytes, engine);
    text
}

/// The line of CLIENT LIST for a session, as text for the log.
pub(super) fn client_info(engine: &Engine, session: &Session) -> String {
    String::from_utf8_lossy(&describe_client(engine, session, 0)).into_owned()
}

/// Whether a client inside MULTI exceeds the limit of the query buffer: the queued commands count as if they had not
/// been read, in addition to `unread_bytes` that have not run.
pub fn has_queued_too_much(engine: &Engine, session: SessionId, unread_bytes: usize) -> bool {
    let client = engine.sessions.get(session);
    let transaction = client.and_then(|client| client.transaction.as_ref());
    let queued = |transaction: &Transaction| transaction.queue.argument_bytes();
    transaction.is_some_and(|transaction| queued(transaction) + unread_bytes > engine.settings.query_buffer_bytes)
}

/// Appends the line of a client to `text`, without a line end.
pub fn write_line(text: &mut Vec<u8>, session: &Session, request_bytes: usize, engine: &Engine) {
    let (buffers, now) = (session.buffers, engine.now());
    let queue = session.transaction.as_ref().map(|transaction| &transaction.queue);
    let waiting = session.waiting_bytes();
    let command = session.last_command.map_or("NULL", |id| engine.table.entry(id).name.as_str());
    put_first(text, "id", itoa::Buffer::new().format(session.id.number).as_bytes());
    put_bytes(text, "addr", session.origin.address.as_bytes());
    put_bytes(text, "laddr", session.origin.local_address.as_bytes());
    put(text, "fd", session.origin.descriptor);
    put_bytes(text, "name", &session.name);
    put(text, "age", now.since_us(session.connected) / 1_000_000);
    put(text, "idle", now.since_us(session.active) / 1_000_000);
    text.extend_from_slice(b" flags=");
    write_flags(text, session, engine);
    put(text, "db", session.database);
    for (name, topic) in [("sub", Topic::Channel), ("psub", Topic::Pattern), ("ssub", Topic::Shard)] {
        put(text, name, session.subscribed.count(topic));
    }
    put(text, "multi", queue.map_or(-1, |queue| queue.len() as i64));
    put(text, "watch", engine.observers.watches.of(session.id));
    put(text, "qbuf", buffers.query);
    put(text, "qbuf-free", buffers.query_free);
    let blocked_in = engine.observers.waiting.get(session.id);
    put(text, "argv-mem", request_bytes + buffers.words + blocked_in.map_or(0, Wait::argument_bytes));
    put(text, "multi-mem", queue.map_or(0, Requests::argument_bytes));
    put(text, "rbs", buffers.reply_room);
    put(text, "rbp", buffers.reply_peak);
    put(text, "obl", 0);
    put(text, "oll", session.push_queue.frames() + usize::from(buffers.output > 0));
    put(text, "omem", waiting);
    put(text, "tot-mem", session.memory_bytes());
    put_bytes(text, "events", if waiting > 0 { b"rw" } else { b"r" });
    put_bytes(text, "cmd", command.as_bytes());
    put_bytes(text, "user", if session.origin.is_primary { b"(superuser)" } else { session.user.name() });
    let redirect = |mode: &tracking::Mode| mode.redirect.map_or(0, |receiver| receiver.number as i64);
    put(text, "redir", session.tracking.as_deref().map_or(-1, redirect));
    put(text, "resp", session.protocol.version());
    put_bytes(text, "lib-name", &session.library_name);
    put_bytes(text, "lib-ver", &session.library_version);
    put(text, "io-thread", session.origin.event_loop);
}

fn put(text: &mut Vec<u8>, name: &str, value: impl itoa::Integer) {
    put_bytes(text, name, itoa::Buffer::new().format(value).as_bytes());
}

fn put_bytes(text: &mut Vec<u8>, name: &str, value: &[u8]) {
    text.push(b' ');
    put_first(text, name, value);
}

/// Writes the first field of a line, which has no space in front.
fn put_first(text: &mut Vec<u8>, name: &str, value: &[u8]) {
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    text.extend_from_slice(value);
}
