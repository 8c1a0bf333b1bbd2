//! DEBUG OBJECT, LISTPACK and HTSTATS: how values and tables are stored.
//!
//! Values are described as Redis would describe its own: lists have the same nodes here, and a value is saved to find
//! its serialized length. Tables are our own.

use std::fmt::Write;

use crate::config;
use crate::engine::state::lru;
use crate::engine::{Args, Ctx, Effect, Error, LogLevel, Lookup, ServerError, Settings};
use crate::rdb::{self, Writer};
use crate::value::{Item, List, View};

/// DEBUG OBJECT: how the value of a key is stored. Values have no address that would mean anything to a reader, and are
/// never shared.
pub(super) fn object(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (now, settings) = (cx.now(), cx.settings().clone());
    let key = cx.lookup(args.key()?, Lookup::NO_TRACE.and(Lookup::WITH_EXPIRED)).ok_or(Error::NoSuchKey)?;
    let view = key.view();
    let mut saved = Writer::new(settings.files.compresses);
    saved.value(view);
    let mut line = format!(
        "Value at:0x0 refcount:1 encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}",
        view.encoding(),
        saved.len(),
        key.access(),
        lru::idle_s(key.access(), now),
    );
    if let View::List(list) = view
        && view.encoding() == "quicklist"
    {
        line.push_str(&nodes_of(list, &settings));
    }
    cx.reply().simple(&line);
    Ok(())
}

/// The description of the nodes of a long list.
fn nodes_of(list: &List, settings: &Settings) -> String {
    let (nodes, bytes) = (list.nodes().len(), rdb::node_bytes(list));
    let (limit, depth) = (settings.list_nodes.size, config::shown("list-compress-depth", settings));
    let is_compressed = u8::from(depth.is_some_and(|depth| depth != "0"));
    let average = list.len() as f64 / nodes as f64;
    let sizes = format!("ql_nodes:{nodes} ql_avg_node:{average:.2} ql_listpack_max:{limit}");
    format!(" {sizes} ql_compressed:{is_compressed} ql_uncompressed_size:{bytes}")
}

/// Writes the elements of a value that is a listpack in Redis to the log, which is the standard output unless it is a
/// file.
pub(super) fn listpack(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = cx.lookup(args.key()?, Lookup::NO_TRACE.and(Lookup::WITH_EXPIRED)).ok_or(Error::NoSuchKey)?;
    let view = key.view();
    if !matches!(view.encoding(), "listpack" | "listpackex") {
        return Err(ServerError::NotAListpack.into());
    }
    let mut line = String::from("listpack:");
    let mut add = |item: Item<'_>| {
        // Writing into a string cannot fail.
        let _ = write!(line, " {}", item.to_cow().escape_ascii());
    };
    match view {
        View::List(list) => list.iter().for_each(add),
        View::Set(set) => set.iter().for_each(add),
        View::Hash(hash) => hash.iter().flat_map(|entry| [entry.field, entry.value]).for_each(add),
        View::Zset(zset) => zset.iter().for_each(|entry| add(Item::of(entry.member))),
        View::Text(_) | View::Stream(_) | View::VectorSet(_) => {}
    }
    cx.effects().push(Effect::Log(LogLevel::Notice, line));
    cx.reply().simple("Listpack structure printed on stdout");
    Ok(())
}

/// DEBUG HTSTATS: the sizes of the tables of a database, and how full they are.
pub(super) fn tables(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let number = usize::try_from(args.integer()?).ok().filter(|&number| number < cx.databases().count());
    let database = cx.databases().get(number.ok_or(ServerError::NoSuchDatabase)?);
    let (keys, deadlines) = database.tables_memory();
    let mut text = String::new();
    for (title, elements, bytes) in
        [("Dictionary", database.len(), keys), ("Expires", database.volatile_len(), deadlines)]
    {
        text.push_str(&format!("[{title} HT]\n"));
        if elements > 0 {
            text.push_str(&format!(" table bytes: {bytes}\n number of elements: {elements}\n"));
        }
    }
    cx.reply().verbatim("txt", text.as_bytes());
    Ok(())
}
