//! FCALL, and its read-only form.

use super::eval::{FLAGS, READ, READING_FLAGS, WRITTEN};
use crate::engine::exec::operations;
use crate::engine::exec::scripts::run::FunctionCall;
use crate::engine::state::scripts;
use crate::engine::{Args, Arity, Command, Ctx, Engine, Error, Family, Flags, FunctionError, Propagated};
use crate::resp::Request;

/// The flags of a function, from its registration.
fn flags_of(engine: &Engine, request: Request<'_>, row: Flags) -> Flags {
    let function = request.get(1).and_then(|name| engine.scripts.functions.registry.find(name));
    scripts::flags_by(function.map(|function| &function.header), row)
}

/// Fields shared by these rows.
const ROW: Command = Command {
    syntax: "function numkeys [key ...] [arg ...]",
    family: Family::Scripting,
    arity: Arity::AtLeast(3),
    propagated: Propagated::Never,
    since: "7.0.0",
    cost: "That of the function",
    run: fcall,
    ..Command::ROW
};

pub(super) const FCALL: Command = Command {
    name: "FCALL",
    flags: FLAGS,
    flags_of: Some(|engine, request| flags_of(engine, request, FLAGS)),
    keys: &[WRITTEN.noting("We cannot tell how the keys will be used so we assume the worst, RW and UPDATE")],
    about: "Calls a function.",
    ..ROW
};

pub(super) const FCALL_RO: Command = Command {
    name: "FCALL_RO",
    flags: READING_FLAGS,
    flags_of: Some(|engine, request| flags_of(engine, request, READING_FLAGS)),
    keys: &[READ.noting("We cannot tell how the keys will be used so we assume the worst, RO and ACCESS")],
    about: "Calls a function, which may not write.",
    ..ROW
};

fn fcall(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.word()?;
    let function = operations::find_function(cx, name).ok_or(FunctionError::NoFunction)?;
    let count = args.integer().map_err(|_| Error::NumkeysNotANumber)?;
    if count > args.left() as i64 {
        return Err(Error::NumkeysTooLarge);
    }
    let count = usize::try_from(count).map_err(|_| Error::NumkeysNegative)?;
    FunctionCall { function, keys: args.part(count), arguments: args.part(usize::MAX) }.run(cx)
}
