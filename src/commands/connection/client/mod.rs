//! CLIENT: lists and controls the clients of the server.

mod kill;
mod list;
mod tracking;

use crate::commands::help;
use crate::engine::exec::operations;
use crate::engine::{
    Args, Arity, Change, Command, Ctx, Effect, Error, Family, Flags, Now, PauseScope, ReplyMode, says, shown,
};
use crate::value::number;

pub(super) const CLIENT: Command = Command {
    name: "CLIENT",
    family: Family::Connection,
    arity: Arity::AtLeast(2),
    since: "2.4.0",
    cost: "Depends on the subcommand.",
    about: "A container for commands about client connections.",
    subcommands: &[
        ID,
        GETNAME,
        SETNAME,
        SETINFO,
        INFO,
        LIST,
        KILL,
        NO_EVICT,
        NO_TOUCH,
        REPLY,
        PAUSE,
        UNPAUSE,
        UNBLOCK,
        tracking::TRACKING,
        tracking::CACHING,
        tracking::GETREDIR,
        tracking::TRACKINGINFO,
        HELP,
    ],
    ..Command::ROW
};

/// Fields shared by most subcommands.
const SUBCOMMAND: Command = Command {
    family: Family::Connection,
    arity: Arity::Exactly(2),
    flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
    ..Command::ROW
};

/// Fields shared by the subcommands for administrators.
const FOR_ADMINISTRATORS: Command =
    Command { flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING).and(Flags::STALE), ..SUBCOMMAND };

const ID: Command = Command {
    name: "ID",
    since: "5.0.0",
    about: "Returns the id of this connection.",
    run: |cx, _| {
        let id = cx.session().id.number;
        cx.reply().integer(id as i64);
        Ok(())
    },
    ..SUBCOMMAND
};

const GETNAME: Command = Command {
    name: "GETNAME",
    since: "2.6.9",
    about: "Returns the name of this connection.",
    run: getname,
    ..SUBCOMMAND
};

fn getname(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let name = cx.session().name.clone();
    cx.reply().bulk_or_null(Some(name.as_slice()).filter(|name| !name.is_empty()));
    Ok(())
}

const SETNAME: Command = Command {
    name: "SETNAME",
    syntax: "connection-name",
    arity: Arity::Exactly(3),
    since: "2.6.9",
    about: "Sets the name of this connection; an empty one clears it.",
    tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    run: setname,
    ..SUBCOMMAND
};

fn setname(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.word()?;
    if !fits_client_list(name) {
        return Err(Error::ClientName);
    }
    name_the_client(cx, name);
    cx.reply().ok();
    Ok(())
}

/// Sets the name of this connection; the caller has checked it with [`fits_client_list`].
pub(super) fn name_the_client(cx: &mut Ctx<'_>, name: &[u8]) {
    cx.session_mut().name = name.to_vec();
}

/// True for text that fits into a line of CLIENT LIST: visible ASCII without blanks.
pub(super) fn fits_client_list(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}

const SETINFO: Command = Command {
    name: "SETINFO",
    syntax: "attr:<LIB-NAME libname|LIB-VER libver>",
    arity: Arity::Exactly(4),
    since: "7.2.0",
    about: "Sets the name and version of the client library of this connection.",
    tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    run: setinfo,
    ..SUBCOMMAND
};

fn setinfo(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let option = args.word()?;
    let value = args.word()?;
    let is_name = says(option, "lib-name");
    if !is_name && !says(option, "lib-ver") {
        return Err(Error::ClientInfoOption(shown(option)));
    }
    if !fits_client_list(value) {
        return Err(Error::ClientInfoValue(shown(option)));
    }
    let session = cx.session_mut();
    if is_name {
        session.library_name = value.to_vec();
    } else {
        session.library_version = value.to_vec();
    }
    cx.reply().ok();
    Ok(())
}

const INFO: Command = Command {
    name: "INFO",
    since: "6.2.0",
    about: "Returns information about this connection.",
    tips: &["nondeterministic_output"],
    run: list::info,
    ..SUBCOMMAND
};

const LIST: Command = Command {
    name: "LIST",
    syntax: "[TYPE client-type:<NORMAL|MASTER|REPLICA|PUBSUB>] [ID client-id [client-id ...]]",
    arity: Arity::AtLeast(2),
    since: "2.4.0",
    history: &[
        Change::says("2.8.12", "Returns `id`."),
        Change::brings("5.0.0", &["TYPE"]),
        Change::says("6.0.0", "Returns `user`."),
        Change::brings("6.2.0", &["ID"]),
        Change::says("7.0.0", "Returns `resp`, `multi-mem`, `rbs` and `rbp`."),
        Change::says("7.0.3", "Returns `ssub`."),
        Change::says("7.2.0", "Returns `lib-name` and `lib-ver`."),
        Change::says("7.4.0", "Returns `watch`."),
        Change::says("8.0.0", "Returns `io-thread`."),
    ],
    cost: "O(N), N being the number of connections",
    about: "Lists all connections, or selected ones.",
    tips: &["nondeterministic_output"],
    run: list::list,
    ..FOR_ADMINISTRATORS
};

const KILL: Command = Command {
    name: "KILL",
    syntax: "filter:<old-format:ip:port|new-format:<[ID client-id]|\
             [TYPE client-type:<NORMAL|MASTER|SLAVE|REPLICA|PUBSUB>]|[USER username]|[ADDR addr:ip:port]|\
             [LADDR laddr:ip:port]|[SKIPME <YES|NO>]|[MAXAGE maxage] ...>>",
    arity: Arity::AtLeast(3),
    since: "2.4.0",
    history: &[
        Change::outdates("2.8.12", &["old-format"]),
        Change::brings("2.8.12", &["ID", "TYPE"]),
        Change::brings("3.2.0", &["MASTER"]),
        Change::brings("5.0.0", &["REPLICA"]),
        Change::brings("6.2.0", &["LADDR"]),
        Change::brings("7.4.0", &["MAXAGE"]),
    ],
    cost: "O(N), N being the number of connections",
    about: "Closes connections.",
    run: kill::kill,
    ..FOR_ADMINISTRATORS
};

const NO_EVICT: Command = Command {
    name: "NO-EVICT",
    syntax: "enabled:<ON|OFF>",
    arity: Arity::Exactly(3),
    since: "7.0.0",
    about: "Excludes this connection from the eviction of clients.",
    run: |cx, args| {
        cx.session_mut().no_evict = on_or_off(args)?;
        cx.reply().ok();
        Ok(())
    },
    ..FOR_ADMINISTRATORS
};

const NO_TOUCH: Command = Command {
    name: "NO-TOUCH",
    syntax: "enabled:<ON|OFF>",
    arity: Arity::Exactly(3),
    since: "7.2.0",
    about: "Sets whether this connection's commands update the access times of keys.",
    run: |cx, args| {
        cx.session_mut().no_touch = on_or_off(args)?;
        cx.reply().ok();
        Ok(())
    },
    ..SUBCOMMAND
};

fn on_or_off(mut args: Args<'_>) -> Result<bool, Error> {
    if args.take("ON") {
        Ok(true)
    } else if args.take("OFF") {
        Ok(false)
    } else {
        Err(Error::Syntax)
    }
}

const REPLY: Command = Command {
    name: "REPLY",
    syntax: "action:<ON|OFF|SKIP>",
    arity: Arity::Exactly(3),
    since: "3.2.0",
    about: "Sets whether this connection gets replies.",
    run: reply_mode,
    ..SUBCOMMAND
};

fn reply_mode(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if args.take("ON") {
        cx.session_mut().reply_mode = ReplyMode::On;
        cx.reply().ok();
    } else if args.take("OFF") {
        cx.session_mut().reply_mode = ReplyMode::Off;
    } else if args.take("SKIP") {
        let session = cx.session_mut();
        if session.reply_mode != ReplyMode::Off {
            session.skips_next = true;
        }
    } else {
        return Err(Error::Syntax);
    }
    Ok(())
}

const PAUSE: Command = Command {
    name: "PAUSE",
    syntax: "timeout mode:[WRITE|ALL]",
    arity: Arity::AtLeast(3),
    since: "3.0.0",
    history: &[Change::brings("6.2.0", &["WRITE", "ALL"])],
    about: "Delays the commands of all clients, or only writes, for a time in milliseconds.",
    run: pause,
    ..FOR_ADMINISTRATORS
};

fn pause(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.previous();
    let timeout = args.word()?;
    let scope = match args.left() {
        0 => PauseScope::All,
        1 if args.take("WRITE") => PauseScope::Write,
        1 if args.take("ALL") => PauseScope::All,
        1 => return Err(Error::PauseMode),
        _ => return Err(Error::SubcommandOrArity { container: "CLIENT", subcommand: shown(name) }),
    };
    let timeout_ms = number::parse_i64(timeout).ok_or(Error::TimeoutNotAnInteger)?;
    if timeout_ms < 0 {
        return Err(Error::TimeoutNegative);
    }
    let now = cx.now();
    now.wait_end_ms(timeout_ms).ok_or(Error::TimeoutOutOfRange)?;
    let until = Now::from_us(now.unix_us.saturating_add(timeout_ms.saturating_mul(1000)));
    operations::pause_clients(cx, until, scope);
    cx.reply().ok();
    Ok(())
}

const UNPAUSE: Command = Command {
    name: "UNPAUSE",
    since: "6.2.0",
    cost: "O(N), N being the number of clients that wait",
    about: "Ends a pause.",
    run: unpause,
    ..FOR_ADMINISTRATORS
};

fn unpause(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    operations::end_pause(cx);
    cx.effects().push(Effect::Resume);
    cx.reply().ok();
    Ok(())
}

const UNBLOCK: Command = Command {
    name: "UNBLOCK",
    syntax: "client-id unblock-type:[TIMEOUT|ERROR]",
    arity: Arity::AtLeast(3),
    since: "5.0.0",
    cost: "O(log N), N being the number of connections",
    about: "Unblocks a client that is blocked in a command, as by its timeout or with an error.",
    run: unblock,
    ..FOR_ADMINISTRATORS
};

fn unblock(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.previous();
    if args.left() > 2 {
        return Err(Error::SubcommandOrArity { container: "CLIENT", subcommand: shown(name) });
    }
    let with_error = match args.rest().nth(1) {
        None => false,
        Some(reason) if says(reason, "TIMEOUT") => false,
        Some(reason) if says(reason, "ERROR") => true,
        Some(_) => return Err(Error::UnblockReason),
    };
    let number = args.integer()?;
    let ended = u64::try_from(number).is_ok_and(|number| operations::unblock_client(cx, number, with_error));
    cx.reply().integer(i64::from(ended));
    Ok(())
}

const HELP: Command = help::row(Family::Connection, "5.0.0");
