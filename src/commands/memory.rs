//! MEMORY: what keys cost.
//!
//! The bytes are our own, and counted, not sampled: a key's record, its value, and its share of the tables by which it
//! is found and by which its deadline is. They are not Redis's bytes, and usually fewer.

use super::help;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};

/// The commands of this family.
pub const COMMANDS: &[Command] = &[MEMORY];

const MEMORY: Command = Command {
    name: "MEMORY",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    since: "4.0.0",
    cost: "Depends on subcommand.",
    about: "Tells what takes how much memory.",
    subcommands: &[USAGE, help::row(Family::Server, "4.0.0")],
    ..Command::ROW
};

const USAGE: Command = Command {
    name: "USAGE",
    syntax: "key [SAMPLES count]",
    family: Family::Server,
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::at(2, KeyFlags::RO)],
    since: "4.0.0",
    cost: "O(1), as nothing is sampled",
    about: "Answers how many bytes a key takes, all of its elements counted, whatever SAMPLES says.",
    run: usage,
    ..Command::ROW
};

fn usage(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    while args.take_with("SAMPLES", 1) {
        if args.integer()? < 0 {
            return Err(Error::Syntax);
        }
    }
    args.end()?;
    match cx.peek(key).map(|key| key.memory_bytes()) {
        Some(bytes) => cx.reply().count(bytes),
        None => cx.reply().null(),
    }
    Ok(())
}
