//! HELP of every container command: its subcommands, from their rows.
//!
//! One function serves all containers, since the context knows the command that runs.

use super::command::syntax;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags};

/// The bytes that are allocated for a line at first.
const LINE: usize = 128;

/// The row of a container's HELP.
pub(super) const fn row(family: Family, since: &'static str) -> Command {
    Command {
        name: "HELP",
        family,
        arity: Arity::Exactly(2),
        flags: Flags::LOADING.and(Flags::STALE),
        since,
        about: "Lists the subcommands and what they do.",
        run: write,
        ..Command::ROW
    }
}

/// Writes the subcommands of the container whose HELP runs, and what they do.
pub(super) fn write(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let container = cx.command().name.split('|').next().unwrap_or_default();
    let Some(id) = cx.table().known(container.as_bytes()) else { return Err(Error::Syntax) };
    let command = cx.table().entry(id).command;
    let reply = cx.reply();
    reply.array(1 + command.subcommands.len() * 2);
    let mut line = String::with_capacity(LINE);
    line.extend([command.name, " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"]);
    reply.simple(&line);
    for subcommand in command.subcommands {
        let usage = if subcommand.usage.is_empty() { &syntax::shown(subcommand.syntax) } else { subcommand.usage };
        line.clear();
        line.extend([subcommand.name, " ", usage]);
        reply.simple(line.trim_end());
        line.clear();
        line.extend(["    ", subcommand.about]);
        reply.simple(&line);
    }
    Ok(())
}
