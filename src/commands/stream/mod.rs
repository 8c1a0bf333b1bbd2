//! Streams: entries of fields and values under ascending ids, and consumer groups that share the entries.
//!
//! [`add`] appends entries, [`trim`] and [`delete`] remove some, [`range`] and [`read`] return them; [`group`] creates
//! and deletes groups and consumers, [`acknowledge`], [`pending`] and [`claim`] manage pending entries; [`info`]
//! reports on a stream, and [`set_id`] sets its counters.
//!
//! This file parses ids and ends of intervals, and writes entries. A stream that loses its last entry remains: only DEL
//! removes the key.

mod acknowledge;
mod add;
mod claim;
mod delete;
mod group;
mod info;
mod pending;
mod propagate;
mod range;
mod read;
mod set_id;
mod trim;

use crate::engine::{Args, Command, Error, StreamError, says, shown};
use crate::resp::Reply;
use crate::value::stream::{Entry, Group, Id, Stream};

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[
    acknowledge::XACK,
    add::XADD,
    claim::XAUTOCLAIM,
    claim::XCLAIM,
    delete::XDEL,
    group::XGROUP,
    info::XINFO,
    range::XLEN,
    pending::XPENDING,
    range::XRANGE,
    read::XREAD,
    read::XREADGROUP,
    range::XREVRANGE,
    set_id::XSETID,
    trim::XTRIM,
];

/// Parses the next word as an id; a time alone means the first id of that time.
fn id(args: &mut Args<'_>) -> Result<Id, Error> {
    parse_id(args.word()?, 0)
}

/// Parses all remaining words as ids.
fn ids(args: &mut Args<'_>) -> Result<Vec<Id>, Error> {
    args.rest().map(|word| parse_id(word, 0)).collect()
}

fn parse_id(word: &[u8], missing_seq: u64) -> Result<Id, Error> {
    Ok(Id::parse(word, missing_seq).ok_or(StreamError::InvalidStreamId)?)
}

/// Parses an id, or `-` and `+` for the minimum and the maximum.
fn parse_any_id(word: &[u8], missing_seq: u64) -> Result<Id, Error> {
    if says(word, "-") {
        Ok(Id::MIN)
    } else if says(word, "+") {
        Ok(Id::MAX)
    } else {
        parse_id(word, missing_seq)
    }
}

/// Parses the first id of an interval; `(` excludes it.
fn interval_start(word: &[u8]) -> Result<Id, Error> {
    match word {
        [b'(', id @ ..] if !id.is_empty() => Ok(parse_id(id, 0)?.next().ok_or(StreamError::IntervalStart)?),
        _ => parse_any_id(word, 0),
    }
}

/// Parses the last id of an interval; a time alone means the last id of that time.
fn interval_end(word: &[u8]) -> Result<Id, Error> {
    match word {
        [b'(', id @ ..] if !id.is_empty() => Ok(parse_id(id, u64::MAX)?.previous().ok_or(StreamError::IntervalEnd)?),
        _ => parse_any_id(word, u64::MAX),
    }
}

/// The group with that name, of a stream that may not exist.
fn find_group<'s>(stream: Option<&'s Stream>, key: &[u8], group: &[u8]) -> Result<&'s Group, Error> {
    let found = stream.and_then(|stream| stream.group(group));
    Ok(found.ok_or_else(|| StreamError::NoKeyOrGroup { key: shown(key), group: shown(group) })?)
}

fn write_id(reply: &mut Reply<'_>, id: Id) {
    let mut text = [0; 41];
    let (mut ms, mut seq) = (itoa::Buffer::new(), itoa::Buffer::new());
    let parts = [ms.format(id.ms).as_bytes(), b"-", seq.format(id.seq).as_bytes()];
    let mut end = 0;
    for part in parts {
        text[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    }
    reply.bulk(&text[..end]);
}

fn write_ids(reply: &mut Reply<'_>, ids: &[Id]) {
    reply.array(ids.len());
    ids.iter().for_each(|&id| write_id(reply, id));
}

/// Writes an entry: its id, and its fields and values in one array.
fn write_entry(reply: &mut Reply<'_>, entry: &Entry<'_>) {
    reply.array(2);
    write_id(reply, entry.id());
    reply.array(entry.len() * 2);
    for (field, value) in entry.pairs() {
        reply.item(field);
        reply.item(value);
    }
}

/// Writes entries as an array.
fn write_entries<'a>(reply: &mut Reply<'_>, entries: impl Iterator<Item = Entry<'a>>) {
    let array = reply.open_array();
    let count = entries.map(|entry| write_entry(reply, &entry)).count();
    reply.close_array(array, count);
}

/// Parses a maximum number, where 0 means all.
fn all_if_zero(count: usize) -> usize {
    if count == 0 { usize::MAX } else { count }
}

/// Parses the next word as a number of entries; a negative one means 0.
fn count(args: &mut Args<'_>) -> Result<usize, Error> {
    Ok(usize::try_from(args.integer()?).unwrap_or(0))
}
