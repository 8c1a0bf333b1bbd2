//! FUNCTION: manages the libraries of functions, and kills a function that takes too long.

use super::super::help;
use crate::engine::exec::operations;
use crate::engine::exec::scripts::load;
use crate::engine::exec::scripts::load::Policy;
use crate::engine::state::scripts::{Library, ScriptOrFunction};
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, FunctionError, says, shown};
use crate::resp::Reply;
use crate::script::{Function, Header};
use crate::value::glob;

const ROW: Command = Command { family: Family::Scripting, flags: Flags::NOSCRIPT, since: "7.0.0", ..Command::ROW };

/// Fields shared by the rows that change libraries.
const CHANGING: Command = Command {
    flags: Flags::NOSCRIPT.and(Flags::WRITE),
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    ..ROW
};

pub(super) const FUNCTION: Command = Command {
    name: "FUNCTION",
    arity: Arity::AtLeast(2),
    flags: Flags::NONE,
    cost: "That of the subcommand",
    about: "A container for function commands.",
    subcommands: &[DELETE, DUMP, FLUSH, KILL, LIST, LOAD, RESTORE, STATS, help::row(Family::Scripting, "7.0.0")],
    ..ROW
};

const DELETE: Command = Command {
    name: "DELETE",
    syntax: "library-name",
    usage: "<LIBRARY NAME>",
    arity: Arity::Exactly(3),
    about: "Deletes a library and its functions.",
    run: delete,
    ..CHANGING
};

fn delete(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    operations::delete_library(cx, args.word()?)?;
    count_change(cx);
    cx.reply().ok();
    Ok(())
}

/// Counts a change for the save points: libraries are saved with the data.
fn count_change(cx: &mut Ctx<'_>) {
    cx.stats_mut().changes += 1;
}

const DUMP: Command = Command {
    name: "DUMP",
    arity: Arity::Exactly(2),
    cost: "O(N), N being the number of functions",
    about: "Returns all libraries as one payload.",
    run: dump,
    ..ROW
};

fn dump(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let payload = load::dump_libraries(cx.engine());
    cx.reply().bulk(&payload);
    Ok(())
}

const FLUSH: Command = Command {
    name: "FLUSH",
    syntax: "flush-type:[ASYNC|SYNC]",
    arity: Arity::AtLeast(2),
    cost: "O(N), N being the number of functions",
    about: "Deletes all libraries and functions.",
    run: flush,
    ..CHANGING
};

fn flush(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let subcommand = args.previous();
    if args.left() > 1 {
        return Err(wrong_arity(subcommand));
    }
    let is_freed_lazily = args.take("ASYNC");
    if !args.is_empty() && !args.take("SYNC") {
        return Err(FunctionError::FlushOption.into());
    }
    let functions = cx.engine().scripts.functions.registry.function_count();
    if is_freed_lazily && functions > MANY_FUNCTIONS {
        // Redis counts the engines that run functions, too.
        cx.stats_mut().freed_lazily += functions as u64 + 1;
    }
    operations::flush_functions(cx);
    count_change(cx);
    cx.reply().ok();
    Ok(())
}

/// Redis frees up to this number of functions at once, and more in the background.
const MANY_FUNCTIONS: usize = 64;

fn wrong_arity(subcommand: &[u8]) -> Error {
    const SHOWN_BYTES: usize = 128;
    let subcommand = shown(&subcommand[..subcommand.len().min(SHOWN_BYTES)]);
    Error::SubcommandOrArity { container: "FUNCTION", subcommand }
}

const KILL: Command = Command {
    name: "KILL",
    arity: Arity::Exactly(2),
    flags: Flags::NOSCRIPT.and(Flags::ALLOW_BUSY),
    about: "Kills the running function if it has written nothing.",
    tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
    run: kill,
    ..ROW
};

fn kill(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    operations::kill_script(cx, ScriptOrFunction::Function)?;
    cx.reply().ok();
    Ok(())
}

const LIST: Command = Command {
    name: "LIST",
    syntax: "[LIBRARYNAME library-name-pattern] [WITHCODE]",
    usage: "[LIBRARYNAME PATTERN] [WITHCODE]",
    arity: Arity::AtLeast(2),
    cost: "O(N), N being the number of functions",
    about: "Lists all libraries, or those whose names match a pattern, with their functions.",
    tips: &["nondeterministic_output_order"],
    run: list,
    ..ROW
};

fn list(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (mut pattern, mut with_code) = (None, false);
    while let Some(word) = args.peek() {
        if !with_code && args.take("WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && args.take("LIBRARYNAME") {
            pattern = Some(args.word().map_err(|_| FunctionError::ListNameless)?);
        } else {
            return Err(FunctionError::ListArgument(shown(word)).into());
        }
    }
    let is_wanted = |name: &str| pattern.is_none_or(|pattern| glob::matches(pattern, name.as_bytes(), true));
    let (engine, reply) = cx.engine_and_reply();
    let libraries: Vec<_> = engine.scripts.functions.registry.libraries().filter(|(name, _)| is_wanted(name)).collect();
    reply.array(libraries.len());
    for (name, library) in libraries {
        write_library(reply, name, library, with_code);
    }
    Ok(())
}

fn write_library(reply: &mut Reply<'_>, name: &str, library: &Library, with_code: bool) {
    reply.map(if with_code { 4 } else { 3 });
    reply.bulk(b"library_name");
    reply.bulk(name.as_bytes());
    reply.bulk(b"engine");
    reply.bulk(b"LUA");
    reply.bulk(b"functions");
    reply.array(library.functions.len());
    for function in &library.functions {
        write_function(reply, function);
    }
    if with_code {
        reply.bulk(b"library_code");
        reply.bulk(&library.source);
    }
}

fn write_function(reply: &mut Reply<'_>, function: &Function) {
    reply.map(3);
    reply.bulk(b"name");
    reply.bulk(function.name.as_bytes());
    reply.bulk(b"description");
    match &function.description {
        Some(description) => reply.bulk(description),
        None => reply.null(),
    }
    reply.bulk(b"flags");
    let flags = flags_of(&function.header);
    reply.set(flags.len());
    for flag in flags {
        reply.simple(flag);
    }
}

fn flags_of(header: &Header) -> Vec<&'static str> {
    let all = [
        (header.no_writes, "no-writes"),
        (header.allow_oom, "allow-oom"),
        (header.allow_stale, "allow-stale"),
        (header.no_cluster, "no-cluster"),
        (header.allow_cross_slot, "allow-cross-slot-keys"),
    ];
    all.into_iter().filter_map(|(is_set, name)| is_set.then_some(name)).collect()
}

const LOAD: Command = Command {
    name: "LOAD",
    syntax: "[REPLACE] function-code",
    usage: "[REPLACE] <FUNCTION CODE>",
    arity: Arity::AtLeast(3),
    flags: CHANGING.flags.and(Flags::DENYOOM),
    about: "Loads a library of functions.",
    run: load,
    ..CHANGING
};

fn load(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let mut replaces = false;
    while args.left() > 1 {
        let option = args.word()?;
        if !says(option, "REPLACE") {
            return Err(FunctionError::LoadOption(shown(option)).into());
        }
        replaces = true;
    }
    let name = operations::load_library(cx, args.word()?, replaces)?;
    count_change(cx);
    cx.reply().bulk(name.as_bytes());
    Ok(())
}

const RESTORE: Command = Command {
    name: "RESTORE",
    syntax: "serialized-value policy:[FLUSH|APPEND|REPLACE]",
    usage: "<PAYLOAD> [FLUSH|APPEND|REPLACE]",
    arity: Arity::AtLeast(3),
    flags: CHANGING.flags.and(Flags::DENYOOM),
    cost: "O(N), N being the number of functions in the payload",
    about: "Loads the libraries of a payload.",
    run: restore,
    ..CHANGING
};

fn restore(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let subcommand = args.previous();
    if args.left() > 2 {
        return Err(wrong_arity(subcommand));
    }
    let payload = args.word()?;
    let policy = match args.peek() {
        None => Policy::Append,
        Some(word) if says(word, "APPEND") => Policy::Append,
        Some(word) if says(word, "REPLACE") => Policy::Replace,
        Some(word) if says(word, "FLUSH") => Policy::Flush,
        Some(_) => return Err(Error::RestorePolicy),
    };
    operations::restore_libraries(cx, payload, policy)?;
    count_change(cx);
    cx.reply().ok();
    Ok(())
}

const STATS: Command = Command {
    name: "STATS",
    arity: Arity::Exactly(2),
    flags: Flags::NOSCRIPT.and(Flags::ALLOW_BUSY),
    about: "Returns the running function, and the number of functions and libraries.",
    tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    run: stats,
    ..ROW
};

fn stats(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let (engine, reply) = cx.engine_and_reply();
    let now_us = engine.host.elapsed_us();
    let busy = engine.scripts.busy_function()?;
    reply.map(2);
    reply.bulk(b"running_script");
    match busy {
        Some(function) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(function.name.as_bytes());
            reply.bulk(b"command");
            reply.array(function.request.len());
            function.request.iter().for_each(|word| reply.bulk(word));
            reply.bulk(b"duration_ms");
            reply.integer((now_us.saturating_sub(function.started_us) / 1000) as i64);
        }
        None => reply.null(),
    }
    let registry = &engine.scripts.functions.registry;
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.count(registry.library_count());
    reply.bulk(b"functions_count");
    reply.count(registry.function_count());
    Ok(())
}
