//! MODULE: no module can be loaded. One is listed: vector sets, which are a module that Redis has built in.

use super::help;
use crate::engine::{Args, Arity, Command, Ctx, Effect, Error, Family, Flags, LogLevel, ServerError};
use crate::resp::Reply;

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[MODULE];

/// The name of the module that is built in.
pub(super) const VECTOR_SETS: &str = "vectorset";
/// Its version.
const VERSION: i64 = 1;

const MODULE: Command = Command {
    name: "MODULE",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    since: "4.0.0",
    cost: "Depends on subcommand.",
    about: "A container for module commands; no module can be loaded.",
    subcommands: &[LIST, LOAD, LOADEX, UNLOAD, help::row(Family::Server, "5.0.0")],
    ..Command::ROW
};

const LIST: Command = Command {
    name: "LIST",
    family: Family::Server,
    arity: Arity::Exactly(2),
    flags: Flags::ADMIN.and(Flags::NOSCRIPT),
    since: "4.0.0",
    cost: "O(N), N being the number of modules",
    about: "Returns the loaded modules: the one that is built in.",
    tips: &["nondeterministic_output_order"],
    run: |cx, _| {
        write_list(cx.reply());
        Ok(())
    },
    ..Command::ROW
};

/// Writes the modules as MODULE LIST and HELLO show them.
pub(super) fn write_list(reply: &mut Reply<'_>) {
    reply.array(1);
    reply.map(4);
    reply.bulk(b"name");
    reply.bulk(VECTOR_SETS.as_bytes());
    reply.bulk(b"ver");
    reply.integer(VERSION);
    reply.bulk(b"path");
    reply.bulk(b"");
    reply.bulk(b"args");
    reply.array(0);
}

/// The facts of the module that is built in, as INFO shows them.
pub(super) fn facts() -> String {
    let options = "handle-io-errors|handle-repl-async-load";
    format!("name={VECTOR_SETS},ver={VERSION},api=1,filters=0,usedby=[],using=[],options=[{options}]")
}

const LOAD: Command = Command {
    name: "LOAD",
    syntax: "path [arg [arg ...]]",
    family: Family::Server,
    arity: Arity::AtLeast(3),
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::NO_ASYNC_LOADING).and(Flags::EXTENDS),
    since: "4.0.0",
    about: "Would load a module.",
    run: load,
    ..Command::ROW
};

fn load(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let path = String::from_utf8_lossy(args.word()?).replace(char::is_control, " ");
    let line = format!("module {path} is not loaded: this server has no modules");
    cx.effects().push(Effect::Log(LogLevel::Warning, line));
    Err(ServerError::ModuleNotLoaded.into())
}

const LOADEX: Command = Command {
    name: "LOADEX",
    syntax: "path configs:[CONFIG name value [CONFIG name value ...]] [ARGS args [args ...]]",
    since: "7.0.0",
    about: "Would load a module with settings of its own.",
    ..LOAD
};

const UNLOAD: Command = Command {
    name: "UNLOAD",
    syntax: "name",
    arity: Arity::Exactly(3),
    about: "Would unload a module.",
    run: unload,
    ..LOAD
};

fn unload(_: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let is_built_in = args.word()? == VECTOR_SETS.as_bytes();
    Err(if is_built_in { ServerError::ModuleBuiltIn } else { ServerError::NoModule }.into())
}
