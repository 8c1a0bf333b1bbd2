//! CLIENT LIST and CLIENT INFO: a line for each client ([`crate::engine::exec::client_line::write_line`]), or for
//! the caller.

use crate::engine::exec::client_line;
use crate::engine::{Args, Ctx, Engine, Error, Session, shown};
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
    // A killed client is no longer listed, though its connection may not have noticed yet.
    let is_shown = |session: &&Session| !session.cut_off || session.id == asking;
    for session in wanted.among(engine).into_iter().filter(is_shown) {
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

    /// The requested clients: by their ids, in the order and as often as these are given.
    fn among<'e>(&self, engine: &'e Engine) -> Vec<&'e Session> {
        let all = engine.sessions.iter();
        match self {
            Wanted::All => all.collect(),
            Wanted::Type(kind) => all.filter(|session| *kind == ClientType::of(session)).collect(),
            Wanted::Ids(ids) => {
                let found = |&id: &i64| engine.sessions.get(engine.sessions.find(id.cast_unsigned())?);
                ids.iter().filter_map(found).collect()
            }
        }
    }
}

/// A client's type in the filter `TYPE`.
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

    /// The type of a session: the link to the primary, a replica, a subscriber, or a normal client.
    pub(super) fn of(session: &Session) -> ClientType {
        if session.origin.is_primary {
            ClientType::Master
        } else if session.origin.is_replica {
            ClientType::Replica
        } else if session.subscribed.is_empty() {
            ClientType::Normal
        } else {
            ClientType::PubSub
        }
    }
}

fn write_line(text: &mut Vec<u8>, session: &Session, request_bytes: usize, engine: &Engine) {
    client_line::write_line(text, session, request_bytes, engine);
    text.push(b'\n');
}
