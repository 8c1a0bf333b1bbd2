//! MEMORY: reports on the use of memory.
//!
//! The bytes are our own, and counted, not sampled: a key's record, its value, and its share of the key table and of
//! the deadline index. They are not Redis's bytes, and usually fewer. Values that only an allocator could report are
//! left out, since the system's has no statistics.

use std::borrow::Cow;

use super::help;
use crate::engine::exec::{eviction, operations};
use crate::engine::state::host::Usage;
use crate::engine::{Args, Arity, Command, Ctx, Engine, Error, Family, Flags, KeyFlags, KeySpec, Lookup};
use crate::resp::Reply;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[MEMORY];

const MEMORY: Command = Command {
    name: "MEMORY",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    since: "4.0.0",
    cost: "Depends on subcommand.",
    about: "A container for commands about memory.",
    subcommands: &[DOCTOR, MALLOC_STATS, PURGE, STATS, USAGE, help::row(Family::Server, "4.0.0")],
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
    about: "Returns the bytes that a key takes. All elements are counted, whatever SAMPLES is.",
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
    match cx.lookup(key, Lookup::NO_TRACE).map(|key| key.memory_bytes()) {
        Some(bytes) => cx.reply().count(bytes),
        None => cx.reply().null(),
    }
    Ok(())
}

const STATS: Command = Command {
    name: "STATS",
    family: Family::Server,
    arity: Arity::Exactly(2),
    since: "4.0.0",
    about: "Returns details about the use of memory.",
    tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    run: stats,
    ..Command::ROW
};

/// A value of MEMORY STATS.
enum Figure {
    Count(u64),
    Ratio(f64),
    /// The bytes of one database's tables: for keys, and for deadlines.
    Tables(usize, usize),
}

fn stats(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    operations::sample_metrics(cx);
    let (engine, reply) = cx.engine_and_reply();
    let figures = figures(engine);
    reply.map(figures.len());
    for (name, figure) in figures {
        reply.bulk(name.as_bytes());
        write_figure(reply, figure);
    }
    Ok(())
}

fn write_figure(reply: &mut Reply<'_>, figure: Figure) {
    match figure {
        Figure::Count(count) => reply.integer(count as i64),
        Figure::Ratio(ratio) => reply.double(ratio),
        Figure::Tables(keys, deadlines) => {
            reply.map(2);
            reply.bulk(b"overhead.hashtable.main");
            reply.count(keys);
            reply.bulk(b"overhead.hashtable.expires");
            reply.count(deadlines);
        }
    }
}

/// A value of MEMORY STATS with its name.
type Row = (Cow<'static, str>, Figure);

/// The values in Redis's order, with Redis's names.
fn figures(engine: &Engine) -> Vec<Row> {
    let usage = engine.host.usage();
    let (used, peak) = (used_bytes(engine, &usage), peak_bytes(engine, &usage));
    let (clients, keys) = (client_bytes(engine), engine.databases.len() as u64);
    let databases = engine.databases.iter().enumerate().filter(|(_, database)| !database.is_empty());
    let tables: Vec<(usize, (usize, usize))> =
        databases.map(|(number, database)| (number, database.tables_memory())).collect();
    let lookup: usize = tables.iter().map(|(_, (keys, deadlines))| keys + deadlines).sum();
    let held = usage.resident_bytes.saturating_sub(engine.scripts.all_machine_bytes() as u64);
    let overhead = clients + lookup as u64;
    let data = used.saturating_sub(overhead);
    let mut figures = vec![
        row("peak.allocated", Figure::Count(peak)),
        row("total.allocated", Figure::Count(used)),
        row("startup.allocated", Figure::Count(engine.stats.startup_bytes)),
        row("replication.backlog", Figure::Count(0)),
        row("replica.fullsync.buffer", Figure::Count(0)),
        row("clients.slaves", Figure::Count(0)),
        row("clients.normal", Figure::Count(clients)),
        row("cluster.links", Figure::Count(0)),
        row("aof.buffer", Figure::Count(0)),
        row("lua.caches", Figure::Count(engine.scripts.cache.memory_bytes() as u64)),
        row("functions.caches", Figure::Count(engine.scripts.functions.registry.memory_bytes() as u64)),
        row("script.VMs", Figure::Count(engine.scripts.all_machine_bytes() as u64)),
    ];
    let of_database = |&(number, (keys, deadlines))| (format!("db.{number}").into(), Figure::Tables(keys, deadlines));
    figures.extend(tables.iter().map(of_database));
    figures.extend([
        row("overhead.db.hashtable.lut", Figure::Count(lookup as u64)),
        row("overhead.db.hashtable.rehashing", Figure::Count(0)),
        row("overhead.total", Figure::Count(overhead)),
        row("db.dict.rehashing.count", Figure::Count(0)),
        row("keys.count", Figure::Count(keys)),
        row("keys.bytes-per-key", Figure::Count(data.checked_div(keys).unwrap_or(0))),
        row("dataset.bytes", Figure::Count(data)),
        row("dataset.percentage", Figure::Ratio(100.0 * ratio(data, used))),
        row("peak.percentage", Figure::Ratio(100.0 * ratio(used, peak))),
    ]);
    figures.extend(allocator_figures(used, held, usage.resident_bytes));
    figures
}

/// The statistics of the allocator: of `resident` bytes of the process it holds `held`, of which `used` are allocated.
fn allocator_figures(used: u64, held: u64, resident: u64) -> [Row; 12] {
    [
        row("allocator.allocated", Figure::Count(used)),
        row("allocator.active", Figure::Count(held)),
        row("allocator.resident", Figure::Count(held)),
        row("allocator.muzzy", Figure::Count(0)),
        row("allocator-fragmentation.ratio", Figure::Ratio(ratio(held, used))),
        row("allocator-fragmentation.bytes", Figure::Count(held.saturating_sub(used))),
        row("allocator-rss.ratio", Figure::Ratio(ratio(held, held))),
        row("allocator-rss.bytes", Figure::Count(0)),
        row("rss-overhead.ratio", Figure::Ratio(ratio(resident, held))),
        row("rss-overhead.bytes", Figure::Count(resident.saturating_sub(held))),
        row("fragmentation", Figure::Ratio(ratio(resident, used))),
        row("fragmentation.bytes", Figure::Count(resident.saturating_sub(used))),
    ]
}

fn row(name: &'static str, figure: Figure) -> Row {
    (name.into(), figure)
}

/// Bytes that the server uses: those allocated if they are counted, otherwise those of the data.
pub(super) fn used_bytes(engine: &Engine, usage: &Usage) -> u64 {
    match usage.allocated_bytes {
        0 => eviction::used_bytes(engine),
        bytes => bytes,
    }
}

/// The maximum of the used bytes at any time when they were read.
pub(super) fn peak_bytes(engine: &Engine, usage: &Usage) -> u64 {
    used_bytes(engine, usage).max(engine.stats.instant_metrics.peak_memory_bytes as u64)
}

/// The bytes of all clients.
pub(super) fn client_bytes(engine: &Engine) -> u64 {
    engine.sessions.memory_bytes() as u64
}

/// A part as a percentage of the whole, 0 if the whole is 0.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

const DOCTOR: Command = Command {
    name: "DOCTOR",
    family: Family::Server,
    arity: Arity::Exactly(2),
    since: "4.0.0",
    about: "Returns a text about problems with the memory.",
    tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    run: doctor,
    ..Command::ROW
};

/// With less data than this the program itself takes more, and no ratio is meaningful.
const WORTH_JUDGING_BYTES: u64 = 5 << 20;
/// The limits above which memory beyond the data is reported, as a ratio and in bytes.
const HELD_RATIO: f64 = 1.4;
const HELD_BYTES: u64 = 10 << 20;

fn doctor(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let (engine, reply) = cx.engine_and_reply();
    let usage = engine.host.usage();
    let used = used_bytes(engine, &usage);
    let (held, beyond) = (ratio(usage.resident_bytes, used), usage.resident_bytes.saturating_sub(used));
    let finding = if used < WORTH_JUDGING_BYTES {
        "There is too little data to say anything about its memory.\n".to_owned()
    } else if held > HELD_RATIO && beyond > HELD_BYTES {
        format!(
            "The process holds {held:.2} times the memory that the data takes, {beyond} bytes more. This is usual \
             after much data was removed: the allocator keeps the memory for what comes next.\n"
        )
    } else {
        "Nothing is wrong with the memory.\n".to_owned()
    };
    reply.verbatim("txt", finding.as_bytes());
    Ok(())
}

const MALLOC_STATS: Command = Command {
    name: "MALLOC-STATS",
    family: Family::Server,
    arity: Arity::Exactly(2),
    since: "4.0.0",
    cost: "O(1)",
    about: "Returns the allocator's statistics; the system's allocator has none.",
    tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    run: |cx, _| {
        cx.reply().bulk(b"Stats not supported for the current allocator");
        Ok(())
    },
    ..Command::ROW
};

const PURGE: Command = Command {
    name: "PURGE",
    family: Family::Server,
    arity: Arity::Exactly(2),
    since: "4.0.0",
    cost: "O(1)",
    about: "Would return unused memory to the system; the system's allocator does so by itself.",
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    run: |cx, _| {
        cx.reply().ok();
        Ok(())
    },
    ..Command::ROW
};
