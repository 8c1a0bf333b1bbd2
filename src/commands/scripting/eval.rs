//! EVAL and EVALSHA, and their read-only forms.

use crate::engine::exec::scripts::run::Call;
use crate::engine::state::scripts::{self, Digest};
use crate::engine::{Args, Arity, Command, Ctx, Engine, Error, Family, Flags, KeyFlags, KeySpec, Propagated};
use crate::resp::Request;
use crate::script::Header;

pub(super) const FLAGS: Flags =
    Flags::NOSCRIPT.and(Flags::STALE).and(Flags::SKIP_MONITOR).and(Flags::MAY_REPLICATE).and(Flags::NO_MANDATORY_KEYS);
pub(super) const READING_FLAGS: Flags =
    Flags::NOSCRIPT.and(Flags::STALE).and(Flags::SKIP_MONITOR).and(Flags::READONLY).and(Flags::NO_MANDATORY_KEYS);

pub(super) const WRITTEN: KeySpec = KeySpec::counted(2, KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE));
pub(super) const READ: KeySpec = KeySpec::counted(2, KeyFlags::RO.and(KeyFlags::ACCESS));

/// Flags and permissions of a script that is sent with the command.
fn flags_of_source(_: &Engine, request: Request<'_>, row: Flags) -> Flags {
    let header = request.get(1).and_then(|source| Header::read(source).ok()).map(|(header, _)| header);
    scripts::flags_by(header.as_ref(), row)
}

/// Flags and permissions of a cached script.
fn flags_of_cached(engine: &Engine, request: Request<'_>, row: Flags) -> Flags {
    let digest = request.get(1).and_then(Digest::parse);
    scripts::flags_by(digest.and_then(|digest| engine.scripts.cache.header(digest)), row)
}

/// Fields shared by these rows.
const ROW: Command = Command {
    syntax: "script numkeys [key ...] [arg ...]",
    family: Family::Scripting,
    arity: Arity::AtLeast(3),
    flags: FLAGS,
    propagated: Propagated::Never,
    since: "2.6.0",
    cost: "That of the script",
    ..Command::ROW
};

pub(super) const EVAL: Command = Command {
    name: "EVAL",
    flags_of: Some(|engine, request| flags_of_source(engine, request, FLAGS)),
    keys: &[WRITTEN.noting("We cannot tell how the keys will be used so we assume the worst, RW and UPDATE")],
    about: "Runs a Lua script.",
    run: eval,
    ..ROW
};

pub(super) const EVALSHA: Command = Command {
    name: "EVALSHA",
    flags_of: Some(|engine, request| flags_of_cached(engine, request, FLAGS)),
    syntax: "sha1 numkeys [key ...] [arg ...]",
    keys: &[WRITTEN],
    about: "Runs a cached Lua script by its SHA-1.",
    run: evalsha,
    ..ROW
};

pub(super) const EVAL_RO: Command = Command {
    name: "EVAL_RO",
    flags_of: Some(|engine, request| flags_of_source(engine, request, READING_FLAGS)),
    flags: READING_FLAGS,
    keys: &[READ.noting("We cannot tell how the keys will be used so we assume the worst, RO and ACCESS")],
    since: "7.0.0",
    about: "Runs a Lua script, which may not write.",
    run: eval,
    ..ROW
};

pub(super) const EVALSHA_RO: Command = Command {
    name: "EVALSHA_RO",
    flags_of: Some(|engine, request| flags_of_cached(engine, request, READING_FLAGS)),
    syntax: "sha1 numkeys [key ...] [arg ...]",
    flags: READING_FLAGS,
    keys: &[READ],
    since: "7.0.0",
    about: "Runs a cached Lua script by its SHA-1, which may not write.",
    run: evalsha,
    ..ROW
};

fn eval(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let source = args.word()?;
    call(Digest::of(source), Some(source), args)?.run(cx)
}

fn evalsha(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let digest = Digest::parse(args.word()?).ok_or(Error::NoScript)?;
    call(digest, None, args)?.run(cx)
}

/// Parses `numkeys key ... arg ...` for a script.
fn call<'a>(digest: Digest, source: Option<&'a [u8]>, mut args: Args<'a>) -> Result<Call<'a>, Error> {
    let count = args.integer()?;
    if count > args.left() as i64 {
        return Err(Error::NumkeysTooLarge);
    }
    let count = usize::try_from(count).map_err(|_| Error::NumkeysNegative)?;
    Ok(Call { digest, source, keys: args.part(count), arguments: args.part(usize::MAX) })
}
