//! DEBUG: inspects and provokes the server, for Redis's own tests. Off unless `enable-debug-command` allows it.
//!
//! It is one command, not a container: COMMAND INFO lists no subcommands of it, and a subcommand with a wrong number of
//! words gets the error of an unknown one. Subcommands that crash or corrupt a server on purpose do not exist here.

mod digest;
mod encoding;
mod protocol;

use std::sync::atomic::Ordering;

use crate::commands::config;
use crate::config::{Added, parse_memory};
use crate::engine::exec::operations::{self, ReloadOptions, ShutdownOptions};
use crate::engine::{
    Args, Arity, Command, Ctx, Deadline, Effect, Error, Event, Family, Flags, LogLevel, Lookup, Propagated, ReplyRoom,
    says, shown,
};
use crate::keyspace::New;
use crate::value::number;
use crate::value::text::TextView;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[DEBUG];

/// The maximum of QUICKLIST-PACKED-THRESHOLD: a little less than 4 GiB.
const MAX_PACKED_BYTES: u64 = (4 << 30) - (1 << 20);

const DEBUG: Command = Command {
    name: "DEBUG",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    flags: Flags::SYSTEM
        .and(Flags::ADMIN)
        .and(Flags::NOSCRIPT)
        .and(Flags::LOADING)
        .and(Flags::STALE)
        .and(Flags::PROTECTED),
    propagated: Propagated::Never,
    cost: "Depends on the subcommand.",
    about: "Inspects and controls the server's internals, for tests.",
    run: debug,
    ..Command::ROW
};

/// One subcommand of DEBUG.
struct DebugSubcommand {
    name: &'static str,
    syntax: &'static str,
    least_words: usize,
    most_words: usize,
    about: &'static str,
    run: fn(&mut Ctx<'_>, Args<'_>) -> Result<(), Error>,
}

const TOOLS: &[DebugSubcommand] = &[
    DebugSubcommand {
        name: "AOF-FLUSH-SLEEP",
        syntax: "<microsec>",
        least_words: 1,
        most_words: 1,
        about: "Pauses for this many microseconds before each write to the append-only file.",
        run: delay_aof,
    },
    DebugSubcommand {
        name: "CHANGE-REPL-ID",
        syntax: "",
        least_words: 0,
        most_words: 0,
        about: "Changes the replication id that INFO reports.",
        run: change_replication_id,
    },
    DebugSubcommand {
        name: "CONFIG-REWRITE-FORCE-ALL",
        syntax: "",
        least_words: 0,
        most_words: 0,
        about: "Runs CONFIG REWRITE with a line for every parameter.",
        run: |cx, _| config::rewrite(cx, Added::All),
    },
    DebugSubcommand {
        name: "DIGEST",
        syntax: "",
        least_words: 0,
        most_words: 0,
        about: "Returns a hash of all data, equal on servers with equal data.",
        run: digest::whole,
    },
    DebugSubcommand {
        name: "DIGEST-VALUE",
        syntax: "[<key> ...]",
        least_words: 0,
        most_words: usize::MAX,
        about: "Returns a hash of the value of each key.",
        run: digest::values,
    },
    DebugSubcommand {
        name: "ERROR",
        syntax: "<string>",
        least_words: 1,
        most_words: 1,
        about: "Returns that error.",
        run: error,
    },
    DebugSubcommand {
        name: "DICT-RESIZING",
        syntax: "<0|1>",
        least_words: 1,
        most_words: 1,
        about: "Has no effect: tables always grow and shrink incrementally.",
        run: |cx, _| {
            cx.reply().ok();
            Ok(())
        },
    },
    DebugSubcommand {
        name: "HTSTATS",
        syntax: "<database> [FULL]",
        least_words: 1,
        most_words: usize::MAX,
        about: "Reports the sizes of the tables of a database, and how full they are.",
        run: encoding::tables,
    },
    DebugSubcommand {
        name: "LISTPACK",
        syntax: "<key>",
        least_words: 1,
        most_words: 1,
        about: "Writes the elements of a small collection into the server's log.",
        run: encoding::listpack,
    },
    DebugSubcommand {
        name: "LOADAOF",
        syntax: "",
        least_words: 0,
        most_words: 0,
        about: "Writes the rest of the append-only file, and loads all data from it.",
        run: load_aof,
    },
    DebugSubcommand {
        name: "LOG",
        syntax: "<message>",
        least_words: 1,
        most_words: 1,
        about: "Writes a line into the server's log.",
        run: log,
    },
    DebugSubcommand {
        name: "OBJECT",
        syntax: "<key>",
        least_words: 1,
        most_words: 1,
        about: "Reports how the value of a key is stored.",
        run: encoding::object,
    },
    DebugSubcommand {
        name: "PAUSE-CRON",
        syntax: "<0|1>",
        least_words: 1,
        most_words: 1,
        about: "With 1, nothing runs when it falls due: no active expiry, no closing of idle clients.",
        run: pause_cron,
    },
    DebugSubcommand {
        name: "POPULATE",
        syntax: "<count> [<prefix>] [<size>]",
        least_words: 1,
        most_words: 3,
        about: "Creates count string keys, named prefix:number.",
        run: populate,
    },
    DebugSubcommand {
        name: "PROTOCOL",
        syntax: "<type>",
        least_words: 1,
        most_words: 1,
        about: "Returns a sample of a type of reply.",
        run: protocol::sample,
    },
    DebugSubcommand {
        name: "QUICKLIST-PACKED-THRESHOLD",
        syntax: "<size>",
        least_words: 1,
        most_words: 1,
        about: "Sets the size from which an element of a long list gets its own node; 0 restores the default.",
        run: set_packed_threshold,
    },
    DebugSubcommand {
        name: "RELOAD",
        syntax: "[MERGE] [NOFLUSH] [NOSAVE]",
        least_words: 0,
        most_words: usize::MAX,
        about: "Saves the data to the RDB file and loads them from it; in memory if no file was asked for.",
        run: reload,
    },
    DebugSubcommand {
        name: "REPLYBUFFER",
        syntax: "PEAK-RESET-TIME <NEVER|RESET|milliseconds> | RESIZING <0|1>",
        least_words: 2,
        most_words: 2,
        about: "Sets how long the reply buffer's peak size is kept, or whether the buffer shrinks at all.",
        run: set_reply_room,
    },
    DebugSubcommand {
        name: "SET-ACTIVE-EXPIRE",
        syntax: "<0|1>",
        least_words: 1,
        most_words: 1,
        about: "With 0, expired keys stay until a command accesses them.",
        run: set_active_expire,
    },
    DebugSubcommand {
        name: "SET-DISABLE-DENY-SCRIPTS",
        syntax: "<0|1>",
        least_words: 1,
        most_words: 1,
        about: "With 1, scripts may call commands about the server, such as DEBUG and CLIENT.",
        run: set_disable_deny_scripts,
    },
    DebugSubcommand {
        name: "SET-SKIP-CHECKSUM-VALIDATION",
        syntax: "<0|1>",
        least_words: 1,
        most_words: 1,
        about: "With 1, RESTORE accepts payloads with a wrong checksum.",
        run: skip_checksums,
    },
    DebugSubcommand {
        name: "SLEEP",
        syntax: "<seconds>",
        least_words: 1,
        most_words: 1,
        about: "Blocks the whole server for this time. Decimals allowed.",
        run: sleep,
    },
    DebugSubcommand { name: "HELP", syntax: "", least_words: 0, most_words: 0, about: "Prints this help.", run: help },
];

fn debug(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.word()?;
    let fits =
        |tool: &&DebugSubcommand| says(name, tool.name) && (tool.least_words..=tool.most_words).contains(&args.left());
    let Some(tool) = TOOLS.iter().find(fits) else {
        return Err(Error::SubcommandOrArity { container: "DEBUG", subcommand: shown(&name[..name.len().min(128)]) });
    };
    (tool.run)(cx, args)
}

fn help(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let reply = cx.reply();
    reply.array(1 + 2 * TOOLS.len());
    reply.simple("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    for tool in TOOLS {
        reply.simple(format!("{} {}", tool.name, tool.syntax).trim_end());
        reply.simple(format!("    {}", tool.about));
    }
    Ok(())
}

fn error(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let text = shown(args.word()?);
    cx.reply().error(&text);
    Ok(())
}

fn log(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let message = String::from_utf8_lossy(args.word()?).replace(char::is_control, " ");
    let line = format!("DEBUG LOG: {message}");
    cx.effects().push(Effect::Log(LogLevel::Warning, line));
    cx.reply().ok();
    Ok(())
}

fn populate(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let positive = |word: &[u8]| {
        let number = number::parse_i64(word).and_then(|number| usize::try_from(number).ok());
        number.ok_or(Error::NotPositive)
    };
    let count = positive(args.word()?)?;
    let prefix = if args.is_empty() { b"key" } else { args.word()? };
    let size = if args.is_empty() { 0 } else { positive(args.word()?)? };
    if size > cx.settings().max_bulk_bytes {
        return Err(Error::StringTooLong);
    }
    for index in 0..count {
        let key = [prefix, format!(":{index}").as_bytes()].concat();
        if cx.lookup(&key, Lookup::NO_TRACE).is_some() {
            continue;
        }
        let mut value = format!("value:{index}").into_bytes();
        if size > 0 {
            value.resize(size, 0);
        }
        cx.put(&key, New::Text(TextView::Bytes(&value)), Deadline::Clear, Event::string("set"));
    }
    cx.reply().ok();
    Ok(())
}

fn set_packed_threshold(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let size = std::str::from_utf8(args.word()?).ok().and_then(parse_memory);
    let bytes = size.filter(|&bytes| bytes <= MAX_PACKED_BYTES).ok_or(Error::PackedThreshold)?;
    operations::set_list_node_bytes(cx, bytes as usize);
    cx.reply().ok();
    Ok(())
}

fn load_aof(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    operations::load_aof(cx)?;
    cx.reply().ok();
    Ok(())
}

fn delay_aof(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let delay_us = number::parse_i64(args.word()?).unwrap_or(0).max(0).cast_unsigned();
    cx.engine().persistence.aof.progress.delay_us.store(delay_us, Ordering::Relaxed);
    cx.reply().ok();
    Ok(())
}

/// DEBUG RELOAD. As in Redis, MERGE has an effect on what is there only with NOFLUSH.
fn reload(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let mut options = ReloadOptions { saves: true, flushes: true, replaces: false };
    while !args.is_empty() {
        match args.word()? {
            word if says(word, "MERGE") => options.replaces = true,
            word if says(word, "NOFLUSH") => options.flushes = false,
            word if says(word, "NOSAVE") => options.saves = false,
            _ => return Err(Error::ReloadOption),
        }
    }
    operations::reload(cx, options)?;
    cx.reply().ok();
    Ok(())
}

/// A negative time means for ever, as in Redis. The default is 0: the buffer shrinks as soon as all replies are sent.
fn set_reply_room(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let tool = args.previous();
    let (name, word) = (args.word()?, args.word()?);
    if says(name, "RESIZING") {
        cx.switches_mut().reply_room.shrinks = is_on(word);
    } else if says(name, "PEAK-RESET-TIME") {
        cx.switches_mut().reply_room.peak_ms = match word {
            _ if says(word, "NEVER") => None,
            _ if says(word, "RESET") => ReplyRoom::default().peak_ms,
            _ => u64::try_from(number::parse_i64(word).ok_or(Error::NotAnInteger)?).ok(),
        };
    } else {
        return Err(Error::SubcommandOrArity { container: "DEBUG", subcommand: shown(tool) });
    }
    cx.reply().ok();
    Ok(())
}

fn change_replication_id(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    operations::change_replication_id(cx);
    cx.reply().ok();
    Ok(())
}

fn pause_cron(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let is_paused = is_on(args.word()?);
    cx.switches_mut().cron_paused = is_paused;
    let ends = !is_paused && operations::cancel_shutdown(cx);
    if ends && operations::prepare_shutdown(cx, ShutdownOptions::default()).is_ok() {
        cx.effects().push(Effect::Shutdown);
    }
    // Everything that fell due in the meantime runs when the pause ends.
    cx.effects().push(Effect::Setting("timeout"));
    cx.reply().ok();
    Ok(())
}

/// True for text that C's `atoi` does not read as 0.
fn is_on(word: &[u8]) -> bool {
    leading_number(word) as i64 != 0
}

fn set_active_expire(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    cx.switches_mut().active_expiry = is_on(args.word()?);
    cx.reply().ok();
    Ok(())
}

fn set_disable_deny_scripts(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    cx.switches_mut().scripts_inspect = is_on(args.word()?);
    cx.reply().ok();
    Ok(())
}

fn skip_checksums(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    cx.switches_mut().verifies_checksums = leading_number(args.word()?) as i64 == 0;
    cx.reply().ok();
    Ok(())
}

/// A time that exceeds a signed 64-bit number of microseconds counts as 0, as in Redis.
fn sleep(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let microseconds = leading_number(args.word()?) * 1e6;
    if (1.0..2f64.powi(63)).contains(&microseconds) {
        operations::stall(cx, microseconds as u64);
    }
    cx.reply().ok();
    Ok(())
}

/// The number at the start of a word, 0 if there is none: DEBUG is as lenient as C's `atof`.
fn leading_number(word: &[u8]) -> f64 {
    let longest = (1..=word.len().min(32)).rev().find_map(|end| number::parse_f64(&word[..end]));
    longest.unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::leading_number;

    #[test]
    fn a_number_ends_before_the_first_letter() {
        for (word, number) in [("0.01abc", 0.01), ("2", 2.0), ("x", 0.0), ("", 0.0), ("-1s", -1.0)] {
            assert!((leading_number(word.as_bytes()) - number).abs() < 1e-12, "{word}");
        }
    }
}
