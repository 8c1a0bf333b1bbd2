//! A client in one line of `field=value`, in Redis 8.0's order of fields: CLIENT LIST shows it, ACL LOG keeps it.
//!
//! Figures about buffers are our own: `rbs` and `rbp` (the fixed reply buffer that Redis keeps per client) are 0, since
//! replies go into one buffer that grows and shrinks, which is `omem`.

use std::fmt::Display;

use crate::engine::{Engine, Session, Topic, Transport};
use crate::resp::Requests;

fn flags(session: &Session, engine: &Engine) -> String {
    let letters = [
        (session.monitors, 'O'),
        (!session.subscribed.is_empty(), 'P'),
        (session.transaction.is_some(), 'x'),
        (engine.is_blocked(session.id) || engine.is_held_back(session), 'b'),
        (engine.interest.watches.is_known_broken(session.id), 'd'),
        (session.closing, 'c'),
        (session.origin.transport == Transport::Unix, 'U'),
        (session.no_evict, 'e'),
        (session.no_touch, 'T'),
    ];
    let flags: String = letters.iter().filter(|(set, _)| *set).map(|(_, letter)| letter).collect();
    if flags.is_empty() { "N".to_owned() } else { flags }
}

impl Engine {
    /// The line of a client, whose request has so many bytes if it is being run.
    pub fn describe_client(&self, session: &Session, request_bytes: usize) -> Vec<u8> {
        let mut text = Vec::new();
        write_line(&mut text, session, request_bytes, self);
        text
    }
}

fn write_line(text: &mut Vec<u8>, session: &Session, request_bytes: usize, engine: &Engine) {
    let (buffers, now) = (session.buffers, engine.now());
    let queue = session.transaction.as_ref().map(|transaction| &transaction.queue);
    let waiting = session.waiting_bytes();
    let total = size_of::<Session>() + buffers.query + buffers.query_free + waiting;
    let command = session.last_command.map_or("NULL", |id| engine.table.entry(id).name.as_str());
    put(text, "id", session.id.number);
    put(text, "addr", &session.origin.address);
    put(text, "laddr", &session.origin.local_address);
    put(text, "fd", session.origin.descriptor);
    put_bytes(text, "name", &session.name);
    put(text, "age", now.since_us(session.connected) / 1_000_000);
    put(text, "idle", now.since_us(session.active) / 1_000_000);
    put(text, "flags", flags(session, engine));
    put(text, "db", session.database);
    for (name, topic) in [("sub", Topic::Channel), ("psub", Topic::Pattern), ("ssub", Topic::Shard)] {
        put(text, name, session.subscribed.count(topic));
    }
    put(text, "multi", queue.map_or(-1, |queue| queue.len() as i64));
    put(text, "watch", engine.interest.watches.of(session.id));
    put(text, "qbuf", buffers.query);
    put(text, "qbuf-free", buffers.query_free);
    put(text, "argv-mem", request_bytes);
    put(text, "multi-mem", queue.map_or(0, Requests::memory_bytes));
    text.extend_from_slice(b" rbs=0 rbp=0 obl=0");
    put(text, "oll", session.outgoing.frames() + usize::from(buffers.output > 0));
    put(text, "omem", waiting);
    put(text, "tot-mem", total);
    put(text, "events", if waiting > 0 { "rw" } else { "r" });
    put(text, "cmd", command);
    put_bytes(text, "user", session.user.name());
    text.extend_from_slice(b" redir=-1");
    put(text, "resp", session.protocol.version());
    put_bytes(text, "lib-name", &session.library_name);
    put_bytes(text, "lib-ver", &session.library_version);
    text.extend_from_slice(b" io-thread=0");
}

fn put(text: &mut Vec<u8>, name: &str, value: impl Display) {
    put_bytes(text, name, value.to_string().as_bytes());
}

fn put_bytes(text: &mut Vec<u8>, name: &str, value: &[u8]) {
    if !text.is_empty() {
        text.push(b' ');
    }
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    text.extend_from_slice(value);
}
