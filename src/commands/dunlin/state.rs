//! DUNLIN DUMP, LOAD and DIFF: the data as text, written, loaded and compared.
//!
//! A text has one line for each command that creates a part of the data ([`pieces`]). A separate engine runs the
//! lines; so a text is valid exactly if its commands are, and nothing changes before all have run there. Then its
//! databases replace ours ([`crate::engine::exec::snapshots::take_over`]). A comparison compares the dumps of both
//! engines, so the layout of a text does not matter.
//!
//! Costs: a dump takes a pass over all data; loading and comparing cost as much as the commands of the text, and twice
//! the memory meanwhile.

mod difference;
mod pieces;

use std::sync::Arc;

use pieces::Piece;

use super::{ROW, check_reads, check_reads_all, explained};
use crate::commands::FAMILIES;
use crate::engine::exec::loading::Load;
use crate::engine::exec::{operations, snapshots};
use crate::engine::state::host::NoHost;
use crate::engine::{
    Args, Arity, Command, Ctx, Engine, Error, Flags, Flow, HostCall, HostReply, KitError, Notifications, Origin,
    Settings, Table, WorldName,
};
use crate::rdb::file::is_rdb;
use crate::resp::{Request, split_words};

pub(super) const DUMP: Command = Command {
    name: "DUMP",
    syntax: "[KEY key]",
    arity: Arity::AtLeast(2),
    cost: "O(N log N), N being all keys and parts of values, or the parts of one value",
    about: "Returns all data and functions, or a key of the selected database, as lines of commands that would create \
            them, in a fixed order.",
    run: |cx, args| explained(&DUMP, show_dump(cx, args)),
    ..ROW
};

fn show_dump(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let text = if args.take_with("KEY", 1) {
        let key = args.key()?;
        args.end()?;
        // No key of the request, for which a node of a cluster would redirect: a dump shows what this node has.
        check_reads(cx, &args, key)?;
        pieces::text(pieces::of_name(cx.engine(), cx.database_index(), key).as_slice())
    } else {
        args.end()?;
        check_reads_all(cx, &args)?;
        dump(cx.engine())
    };
    cx.reply().verbatim("txt", text.as_bytes());
    Ok(())
}

pub(super) const LOAD: Command = Command {
    name: "LOAD",
    syntax: "data:<text|rdb>",
    arity: Arity::Exactly(3),
    cost: "That of the commands of the text, or of its keys",
    about: "Replaces all data and functions by those that the commands of a text create, or by those of an RDB file, \
            given as its bytes; or changes nothing.",
    run: |cx, mut args| {
        let other = read(cx.engine(), args.word()?)?;
        operations::take_over(cx, other)?;
        cx.reply().ok();
        Ok(())
    },
    ..ROW
};

pub(super) const DIFF: Command = Command {
    name: "DIFF",
    syntax: "other:<text|of-world:<WORLD world>|of-snapshot:<SNAPSHOT from [to]>>",
    arity: Arity::AtLeast(3),
    cost: "That of the commands of the text, or of a copy of the data, and of DUMP",
    about: "Returns the lines in which the data, or a later snapshot, differs from a text, another world or a snapshot: \
            - for lines of the other only, + for lines of the data only.",
    run: |cx, args| explained(&DIFF, show_diff(cx, args)),
    ..ROW
};

fn show_diff(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    check_reads_all(cx, &args)?;
    let text = if args.take_with("WORLD", 1) {
        let world = WorldName::parse(args.word()?)?;
        args.end()?;
        let Some(HostReply::Text(dumped)) = cx.call_host(HostCall::Dump(world))? else { return Ok(()) };
        diff(cx.engine(), dumped.as_bytes())?
    } else if args.take_with("SNAPSHOT", 1) {
        let from = args.word()?;
        let to = if args.is_empty() { None } else { Some(args.word()?) };
        args.end()?;
        let engine = cx.engine();
        let to = to.map(|name| of_snapshot(engine, name)).transpose()?;
        let from = of_snapshot(engine, from)?;
        difference::between(&from, &to.unwrap_or_else(|| pieces::of(engine)))
    } else {
        let text = args.word()?;
        args.end()?;
        diff(cx.engine(), text)?
    };
    cx.reply().verbatim("txt", text.as_bytes());
    Ok(())
}

/// The data of a snapshot.
fn of_snapshot(engine: &Engine, name: &[u8]) -> Result<Vec<Piece>, Error> {
    let mut other = like(engine);
    snapshots::copy_snapshot(engine, name, &mut other)?;
    Ok(pieces::of(&other))
}

/// All data and functions as lines of commands that would create them, in a fixed order.
pub fn dump(engine: &Engine) -> String {
    pieces::text(&pieces::of(engine))
}

/// Replaces all data and functions by those that the commands of a text create, or by those of an RDB file.
///
/// # Errors
/// [`KitError::Line`]: a line is not a command that creates data. [`KitError::File`]: the file is damaged.
/// [`KitError::DataOfPrimary`]: the server is a replica. Nothing has changed then.
pub fn load(engine: &mut Engine, text: &[u8]) -> Result<(), Error> {
    let other = read(engine, text)?;
    snapshots::take_over(engine, other)
}

/// The lines in which a text and the data differ: `-` for lines that only the text has, `+` for lines that only the
/// data has. Empty without differences.
///
/// # Errors
/// [`KitError::Line`]: a line is not a command that creates data.
pub fn diff(engine: &Engine, text: &[u8]) -> Result<String, Error> {
    let other = read(engine, text)?;
    Ok(difference::between(&pieces::of(&other), &pieces::of(engine)))
}

/// The limit for loading a library, in clock readings: each reading advances the clock by this many microseconds.
const LOOK_US: u64 = 1000;

/// An engine with the data that a text creates, and databases like those of `engine`.
fn read(engine: &Engine, text: &[u8]) -> Result<Engine, Error> {
    let mut other = like(engine);
    if is_rdb(text) {
        let loaded = Load::begin(text, true).and_then(|load| load.finish(&mut other));
        return loaded.map(|_| other).map_err(|fault| KitError::File(fault.explained()).into());
    }
    let fault = |number: usize, reason: String| Error::from(KitError::Line { number: number + 1, reason });
    let Some(session) = other.connect(engine.now(), Origin::default()) else { return Ok(other) };
    for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let (mut words, mut spans) = (Vec::new(), Vec::new());
        if line.starts_with(b"#") {
            continue;
        }
        split_words(line, &mut words, &mut spans).map_err(|_| fault(number, "unbalanced quotes".to_owned()))?;
        let request = Request::new(&words, &spans);
        if request.is_empty() {
            continue;
        }
        let (id, _) = other
            .table
            .resolve(request)
            .map_err(|error| fault(number, error.to_string().trim_start_matches("ERR ").to_owned()))?;
        let entry = other.table.entry(id);
        if !entry.command.flags.has(Flags::WRITE) && entry.command.name != "SELECT" {
            return Err(fault(number, format!("'{}' does not write data", entry.name)));
        }
        let mut reply = Vec::new();
        let flow = other.run(engine.now(), session, request, &mut reply);
        if let Some(error) = reply.strip_prefix(b"-") {
            let error = error.strip_prefix(b"ERR ").unwrap_or(error).trim_ascii_end();
            return Err(fault(number, String::from_utf8_lossy(error).into_owned()));
        }
        if flow != Flow::Next {
            return Err(fault(number, "the command would block".to_owned()));
        }
    }
    Ok(other)
}

/// An engine without data, in which all commands may be called by their names in Redis.
fn like(engine: &Engine) -> Engine {
    let settings = Settings {
        password: String::new(),
        max_memory_bytes: 0,
        replication: Arc::default(),
        cluster: Arc::default(),
        max_clients: 1,
        notifications: Notifications::default(),
        slowlog_threshold_us: None,
        ..engine.settings.clone()
    };
    let host = Box::new(NoHost::advancing(LOOK_US));
    let mut other = Engine::new(Table::of(FAMILIES), settings, 0, engine.now(), host);
    other.observers.measures = None;
    other.databases = engine.databases.like_empty();
    other.settings.packed_zset = engine.settings.packed_zset;
    other.settings.packed_hash = engine.settings.packed_hash;
    other.settings.packed_set = engine.settings.packed_set;
    other
}
