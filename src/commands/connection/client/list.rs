//! CLIENT LIST and CLIENT INFO: a line of `field=value` for each client, in Redis 8.0's order of fields.
//!
//! Figures about buffers are our own: `rbs` and `rbp` (the fixed reply buffer that Redis keeps per client) are 0, since
//! replies go into one buffer that grows and shrinks, which is `omem`.

use std::fmt::Display;

use crate::engine::{Args, Ctx, Engine, Error, Session, Topic, Transport, shown};
use crate::resp::Requests;
use crate::value::number;

pub(super) fn info(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let mut text = Vec::new();
    let own = cx.session().id;
    let engine = cx.engine();
    if let Some(session) = engine.sessions.get(own) {
        write_line(&mut text, session, args.request_bytes(), engine);
    }
    cx.reply().verbatim("txt", &text);
    Ok(())
}

pub(super) fn list(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let wanted = Wanted::parse(args)?;
    let mut text = Vec::new();
    let (asking, engine) = (cx.session().id, cx.engine());
    for session in engine.sessions.iter().filter(|session| wanted.includes(session)) {
        let request_bytes = if session.id == asking { args.request_bytes() } else { 0 };
        write_line(&mut text, session, request_bytes, engine);
    }
    cx.reply().verbatim("txt", &text);
    Ok(())
}

enum Wanted {
    All,
    Type(ClientType),
    Ids(Vec<i64>),
}

impl Wanted {
    fn parse(mut args: Args<'_>) -> Result<Wanted, Error> {
        let wanted = if args.is_empty() {
            Wanted::All
        } else if args.left() == 2 && args.take("TYPE") {
            Wanted::Type(ClientType::parse(args.word()?)?)
        } else if args.take_with("ID", 1) {
            let ids =
                args.rest().map(|word| number::parse_i64(word).ok_or(Error::ClientId)).collect::<Result<_, _>>()?;
            return Ok(Wanted::Ids(ids));
        } else {
            return Err(Error::Syntax);
        };
        args.end()?;
        Ok(wanted)
    }

    fn includes(&self, session: &Session) -> bool {
        match self {
            Wanted::All => true,
            Wanted::Type(kind) => *kind == ClientType::of(session),
            Wanted::Ids(ids) => ids.contains(&(session.id.number as i64)),
        }
    }
}

/// What a client is to the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientType {
    Normal,
    Master,
    Replica,
    PubSub,
}

impl ClientType {
    pub(super) fn parse(word: &[u8]) -> Result<ClientType, Error> {
        match word.to_ascii_lowercase().as_slice() {
            b"normal" => Ok(ClientType::Normal),
            b"master" => Ok(ClientType::Master),
            b"replica" | b"slave" => Ok(ClientType::Replica),
            b"pubsub" => Ok(ClientType::PubSub),
            _ => Err(Error::ClientType(shown(word))),
        }
    }

    /// Nothing replicates, so a session subscribes or is a plain client.
    pub(super) fn of(session: &Session) -> ClientType {
        if session.subscribed.is_empty() { ClientType::Normal } else { ClientType::PubSub }
    }
}

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
    text.extend_from_slice(b" user=default redir=-1");
    put(text, "resp", session.protocol.version());
    put_bytes(text, "lib-name", &session.library_name);
    put_bytes(text, "lib-ver", &session.library_version);
    text.extend_from_slice(b" io-thread=0\n");
}

fn put(text: &mut Vec<u8>, name: &str, value: impl Display) {
    put_bytes(text, name, value.to_string().as_bytes());
}

fn put_bytes(text: &mut Vec<u8>, name: &str, value: &[u8]) {
    if text.last().is_some_and(|byte| *byte != b'\n') {
        text.push(b' ');
    }
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    text.extend_from_slice(value);
}
