//! Commands about the connection itself: PING, SELECT, AUTH, CLIENT and others.
//!
//! AUTH and HELLO are in `login`, CLIENT and its subcommands in `client`.

mod client;
mod login;

use crate::commands::keys::existing_database;
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, ClusterError, Command, Ctx, Error, Family, Flags};

/// The commands of this family.
pub const COMMANDS: &[Command] = &[PING, ECHO, SELECT, QUIT, RESET, login::AUTH, login::HELLO, client::CLIENT];

/// Flags of commands that a client may call in any state of the server and before it is authenticated.
const ANY_TIME: Flags =
    Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE).and(Flags::FAST).and(Flags::NO_AUTH).and(Flags::ALLOW_BUSY);

const PING: Command = Command {
    name: "PING",
    syntax: "[message]",
    family: Family::Connection,
    arity: Arity::AtLeast(1),
    flags: Flags::FAST.and(Flags::WHILE_SUBSCRIBED),
    is_quick: true,
    about: "Returns PONG, or the message.",
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    run: ping,
    ..Command::ROW
};

fn ping(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    match args.left() {
        0 | 1 if cx.session().is_resp2_subscriber() => {
            let reply = cx.reply();
            reply.array(2);
            reply.bulk(b"pong");
            reply.bulk(args.rest().next().unwrap_or_default());
        }
        0 => cx.reply().simple("PONG"),
        1 => cx.reply().bulk(args.word()?),
        _ => return Err(Error::WrongArity("ping".to_owned())),
    }
    Ok(())
}

const ECHO: Command = Command {
    name: "ECHO",
    syntax: "message",
    family: Family::Connection,
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.and(Flags::STALE).and(Flags::FAST),
    is_quick: true,
    about: "Returns the message.",
    run: echo,
    ..Command::ROW
};

fn echo(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    cx.reply().bulk(args.word()?);
    Ok(())
}

const SELECT: Command = Command {
    name: "SELECT",
    syntax: "index",
    family: Family::Connection,
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.and(Flags::STALE).and(Flags::FAST),
    about: "Selects the database of the connection.",
    run: select,
    ..Command::ROW
};

fn select(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let number = args.int32()?;
    if number != 0 && cx.engine().peers.cluster.is_some() {
        return Err(ClusterError::NotAllowed("SELECT").into());
    }
    if number != 0 {
        cx.stats_mut().cluster_incompatible_operations += 1;
    }
    cx.session_mut().database = existing_database(cx, number)?;
    cx.reply().ok();
    Ok(())
}

const QUIT: Command = Command {
    name: "QUIT",
    family: Family::Connection,
    arity: Arity::AtLeast(1),
    flags: ANY_TIME.and(Flags::UNQUEUED).and(Flags::WHILE_SUBSCRIBED),
    about: "Returns OK and closes the connection.",
    deprecated: Some(("7.2.0", "just closing the connection")),
    run: quit,
    ..Command::ROW
};

fn quit(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    cx.session_mut().closing = true;
    cx.reply().ok();
    Ok(())
}

const RESET: Command = Command {
    name: "RESET",
    family: Family::Connection,
    arity: Arity::Exactly(1),
    flags: ANY_TIME.and(Flags::UNQUEUED).and(Flags::WHILE_SUBSCRIBED),
    since: "6.2.0",
    about: "Resets the connection to its initial state, logged out if a password is required.",
    run: reset,
    ..Command::ROW
};

fn reset(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    operations::unwatch_all(cx);
    operations::unsubscribe_all(cx);
    let session = cx.session_mut();
    session.reset();
    operations::log_out(cx);
    cx.reply().simple("RESET");
    Ok(())
}
