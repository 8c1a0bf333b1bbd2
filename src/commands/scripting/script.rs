//! SCRIPT: manages the script cache, and kills a script that takes too long.

use super::super::help;
use crate::engine::exec::operations;
use crate::engine::state::scripts::{Digest, ScriptOrFunction};
use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, says};

const ROW: Command = Command { family: Family::Scripting, flags: Flags::NOSCRIPT, since: "2.6.0", ..Command::ROW };

pub(super) const SCRIPT: Command = Command {
    name: "SCRIPT",
    arity: Arity::AtLeast(2),
    flags: Flags::NONE,
    cost: "That of the subcommand",
    about: "A container for commands about cached scripts.",
    subcommands: &[LOAD, EXISTS, FLUSH, KILL, DEBUG, help::row(Family::Scripting, "5.0.0")],
    ..ROW
};

const LOAD: Command = Command {
    name: "LOAD",
    syntax: "script",
    usage: "<script>",
    arity: Arity::Exactly(3),
    flags: Flags::NOSCRIPT.and(Flags::STALE),
    cost: "O(N), N being the length of the script",
    about: "Caches a script, and returns its SHA-1.",
    tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    run: load,
    ..ROW
};

fn load(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let source = args.word()?;
    let digest = operations::load_script(cx, source)?;
    cx.reply().bulk(digest.as_bytes());
    Ok(())
}

const EXISTS: Command = Command {
    name: "EXISTS",
    syntax: "sha1 [sha1 ...]",
    usage: "<sha1> [<sha1> ...]",
    arity: Arity::AtLeast(3),
    cost: "O(N), N being the number of names",
    about: "Returns which of these scripts are cached.",
    tips: &["request_policy:all_shards", "response_policy:agg_logical_and"],
    run: exists,
    ..ROW
};

fn exists(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let (engine, reply) = cx.engine_and_reply();
    reply.array(args.left());
    for word in args.rest() {
        let is_kept = Digest::parse(word).is_some_and(|digest| engine.scripts.cache.contains(digest));
        reply.integer(is_kept.into());
    }
    Ok(())
}

const FLUSH: Command = Command {
    name: "FLUSH",
    syntax: "flush-type:[ASYNC|SYNC]",
    arity: Arity::AtLeast(2),
    history: &[Change::brings("6.2.0", &["ASYNC", "SYNC"])],
    cost: "O(N), N being the number of kept scripts",
    about: "Removes all scripts from the cache.",
    tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    run: flush,
    ..ROW
};

fn flush(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if !args.is_empty() {
        let how = args.word()?;
        if !args.is_empty() || !(says(how, "ASYNC") || says(how, "SYNC")) {
            return Err(Error::ScriptFlushOption);
        }
    }
    operations::flush_scripts(cx);
    cx.reply().ok();
    Ok(())
}

const KILL: Command = Command {
    name: "KILL",
    arity: Arity::Exactly(2),
    flags: Flags::NOSCRIPT.and(Flags::ALLOW_BUSY),
    about: "Kills the running script if it has written nothing.",
    tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
    run: kill,
    ..ROW
};

fn kill(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    operations::kill_script(cx, ScriptOrFunction::Script)?;
    cx.reply().ok();
    Ok(())
}

const DEBUG: Command = Command {
    name: "DEBUG",
    syntax: "mode:<YES|SYNC|NO>",
    usage: "(YES|SYNC|NO)",
    arity: Arity::Exactly(3),
    since: "3.2.0",
    about: "Sets the mode of the script debugger, which this server does not have.",
    run: debug,
    ..ROW
};

fn debug(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let mode = args.word()?;
    if says(mode, "YES") || says(mode, "SYNC") {
        return Err(Error::NoScriptDebugger);
    }
    if !says(mode, "NO") {
        return Err(Error::ScriptDebugOption);
    }
    cx.reply().ok();
    Ok(())
}
