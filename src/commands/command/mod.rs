//! COMMAND: describes all commands to clients and people, from the rows of the table and nothing else.
//!
//! [`details`] writes COMMAND INFO, [`docs`] writes COMMAND DOCS, with [`syntax`] for the arguments; [`keys`] finds the
//! keys of a request. Lists have the order of the table, where Redis has the order of a hash table.

mod details;
mod docs;
mod keys;
pub mod syntax;

use super::{help, module};
use crate::engine::{
    Args, Arity, CATEGORIES, Change, Command, CommandId, Ctx, Description, Entry, Error, Family, Flags, Table, says,
};
use crate::resp::Reply;
use crate::value::glob;

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[COMMAND];

const OPEN: Flags = Flags::LOADING.and(Flags::STALE).and(Flags::CONNECTION);
const UNORDERED: &[&str] = &["nondeterministic_output_order"];

const COMMAND: Command = Command {
    name: "COMMAND",
    family: Family::Server,
    arity: Arity::AtLeast(1),
    flags: OPEN,
    since: "2.8.13",
    cost: "O(N) where N is the total number of Redis commands",
    about: "Returns details of all commands.",
    tips: UNORDERED,
    subcommands: &[
        COUNT,
        docs::DOCS,
        keys::GETKEYS,
        keys::GETKEYSANDFLAGS,
        Command { flags: OPEN, ..help::row(Family::Server, "5.0.0") },
        INFO,
        LIST,
    ],
    run: all,
    ..Command::ROW
};

fn all(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let (engine, reply) = cx.engine_and_reply();
    reply.array(engine.table.command_count());
    if reply.takes_encoded() {
        reply.encoded(engine.table.described(Description::Details, reply.protocol(), details::write));
    } else {
        engine.table.commands().for_each(|entry| details::write(reply, entry));
    }
    Ok(())
}

const COUNT: Command = Command {
    name: "COUNT",
    family: Family::Server,
    arity: Arity::Exactly(2),
    flags: OPEN,
    since: "2.8.13",
    about: "Counts the commands.",
    run: count,
    ..Command::ROW
};

fn count(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let count = cx.table().command_count();
    cx.reply().count(count);
    Ok(())
}

const INFO: Command = Command {
    name: "INFO",
    syntax: "[command-name [command-name ...]]",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    flags: OPEN,
    since: "2.8.13",
    history: &[Change::says("7.0.0", "Without a name returns all commands.")],
    cost: "O(N) where N is the number of commands to look up",
    about: "Returns details of some commands, or of all.",
    tips: UNORDERED,
    run: info,
    ..Command::ROW
};

fn info(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    if args.is_empty() {
        return all(cx, args);
    }
    let (engine, reply) = cx.engine_and_reply();
    reply.array(args.left());
    for name in args.rest() {
        match engine.table.find_full(name) {
            Some(id) => write_details(reply, &engine.table, id),
            None => reply.null(),
        }
    }
    Ok(())
}

/// Writes the details of one command: a copy of those in the reply to COMMAND, except for a subcommand.
fn write_details(reply: &mut Reply<'_>, table: &Table, id: CommandId) {
    let entry = table.entry(id);
    if entry.is_subcommand || !reply.takes_encoded() {
        return details::write(reply, entry);
    }
    let encoded = table.described(Description::Details, reply.protocol(), details::write);
    reply.encoded_element(encoded, id.index());
}

const LIST: Command = Command {
    name: "LIST",
    syntax: "[FILTERBY <MODULE module-name|ACLCAT category|PATTERN pattern>]",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    flags: OPEN,
    since: "7.0.0",
    cost: "O(N) where N is the total number of Redis commands",
    about: "Lists the names of all commands, or of those that match a filter.",
    tips: UNORDERED,
    run: list,
    ..Command::ROW
};

/// The filter of COMMAND LIST.
enum Filter<'a> {
    None,
    /// Commands of the module of that name.
    Module(&'a [u8]),
    Category(Option<&'static str>),
    Pattern(&'a [u8]),
}

impl<'a> Filter<'a> {
    fn parse(args: &mut Args<'a>) -> Result<Filter<'a>, Error> {
        if args.is_empty() {
            return Ok(Filter::None);
        }
        if !args.take("FILTERBY") {
            return Err(Error::Syntax);
        }
        let filter = if args.take("MODULE") {
            Filter::Module(args.word()?)
        } else if args.take("ACLCAT") {
            let name = args.word()?;
            Filter::Category(CATEGORIES.into_iter().find(|category| name.eq_ignore_ascii_case(category.as_bytes())))
        } else if args.take("PATTERN") {
            Filter::Pattern(args.word()?)
        } else {
            return Err(Error::Syntax);
        };
        args.end()?;
        Ok(filter)
    }

    /// Subcommands are listed only by a filter, under their full names.
    fn admits(&self, entry: &Entry) -> bool {
        match self {
            Filter::None => true,
            Filter::Module(name) => says(name, module::VECTOR_SETS) && entry.command.flags.has(Flags::MODULE),
            Filter::Category(category) => category.is_some_and(|category| entry.command.is_in(category)),
            Filter::Pattern(pattern) => glob::matches(pattern, entry.name.as_bytes(), true),
        }
    }
}

fn list(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let filter = Filter::parse(&mut args)?;
    let (engine, reply) = cx.engine_and_reply();
    let admitted = || engine.table.entries().iter().filter(|entry| entry.is_callable() && filter.admits(entry));
    reply.array(admitted().count());
    for entry in admitted() {
        reply.bulk(entry.name.as_bytes());
    }
    Ok(())
}
