//! SLOWLOG: the log of commands that took longer than `slowlog-log-slower-than`.

use super::help;
use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, ServerError, SlowCommand, shown};
use crate::resp::Reply;
use crate::value::number;

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[SLOWLOG];

const SLOWLOG: Command = Command {
    name: "SLOWLOG",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    since: "2.2.12",
    cost: "Depends on subcommand.",
    about: "A container for commands about the slow log.",
    subcommands: &[GET, LEN, RESET, help::row(Family::Server, "6.2.0")],
    ..Command::ROW
};

/// Fields shared by the rows of its subcommands.
const ROW: Command = Command {
    family: Family::Server,
    arity: Arity::Exactly(2),
    flags: Flags::ADMIN.and(Flags::LOADING).and(Flags::STALE),
    since: "2.2.12",
    ..Command::ROW
};

const GET: Command = Command {
    name: "GET",
    syntax: "[count]",
    arity: Arity::AtLeast(2),
    history: &[Change::says("4.0.0", "Returns the client's address and name.")],
    cost: "O(N), N being the number of entries in the reply",
    about: "Returns entries of the slow log, the latest first: 10 by default, all for -1.",
    tips: &["request_policy:all_nodes", "nondeterministic_output"],
    run: get,
    ..ROW
};

const DEFAULT_COUNT: usize = 10;

fn get(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.previous();
    if args.left() > 1 {
        return Err(Error::SubcommandOrArity { container: "SLOWLOG", subcommand: shown(name) });
    }
    let wanted = if args.is_empty() { DEFAULT_COUNT } else { count(args.word()?).ok_or(ServerError::SlowLogCount)? };
    let (engine, reply) = cx.engine_and_reply();
    let entries = engine.stats.slow_log.entries();
    reply.array(entries.len().min(wanted));
    entries.take(wanted).for_each(|entry| write_entry(reply, entry));
    Ok(())
}

/// A number of entries, or -1 for all.
fn count(word: &[u8]) -> Option<usize> {
    match number::parse_i64(word)? {
        -1 => Some(usize::MAX),
        count => usize::try_from(count).ok(),
    }
}

fn write_entry(reply: &mut Reply<'_>, entry: &SlowCommand) {
    reply.array(6);
    reply.integer(entry.number as i64);
    reply.integer(entry.unix_s);
    reply.integer(entry.elapsed_us as i64);
    reply.array(entry.words.len());
    entry.words.iter().for_each(|word| reply.bulk(word));
    reply.bulk(entry.address.as_bytes());
    reply.bulk(&entry.client_name);
}

const LEN: Command = Command {
    name: "LEN",
    about: "Returns the number of entries in the slow log.",
    tips: &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"],
    run: len,
    ..ROW
};

fn len(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let entries = cx.engine().stats.slow_log.entries().len();
    cx.reply().count(entries);
    Ok(())
}

const RESET: Command = Command {
    name: "RESET",
    cost: "O(N), N being the number of entries",
    about: "Clears the slow log.",
    tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    run: reset,
    ..ROW
};

fn reset(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    cx.stats_mut().slow_log.clear();
    cx.reply().ok();
    Ok(())
}
