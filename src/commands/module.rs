//! MODULE: modules are not supported, so none is loaded and none can be.

use super::help;
use crate::engine::{Args, Arity, Command, Ctx, Effect, Error, Family, Flags, LogLevel, ServerError};

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[MODULE];

const MODULE: Command = Command {
    name: "MODULE",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    since: "4.0.0",
    cost: "Depends on subcommand.",
    about: "A container for module commands; modules are not supported.",
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
    about: "Returns the loaded modules: none.",
    tips: &["nondeterministic_output_order"],
    run: |cx, _| {
        cx.reply().array(0);
        Ok(())
    },
    ..Command::ROW
};

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

fn unload(_: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    Err(ServerError::NoModule.into())
}
