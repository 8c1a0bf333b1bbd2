//! Streams: entries of fields and values under ids that grow, and groups of consumers that share them out.
//!
//! [`add`] puts entries at the end, [`trim`] and [`delete`] remove some, [`range`] and [`read`] answer them; [`group`]
//! makes and removes groups and consumers, [`acknowledge`], [`pending`] and [`claim`] see to what consumers were given;
//! [`info`] tells how a stream is, and [`set_id`] sets its counters.
//!
//! How ids, ends of intervals and entries are read and written is said here, once. A stream stays when its last entry
//! goes: only DEL removes the key.

mod acknowledge;
mod add;
mod claim;
mod delete;
mod group;
mod info;
mod pending;
mod range;
mod read;
mod set_id;
mod trim;

use crate::engine::{Args, Command, Error, StreamError, says, shown};
use crate::resp::Reply;
use crate::value::stream::{Entry, Group, Id, Stream};

/// The family's rows.
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

/// The next word as an id; one that is a time alone is the first of that time.
fn id(args: &mut Args<'_>) -> Result<Id, Error> {
    parse_id(args.word()?, 0)
}

/// All words that are left as ids.
fn ids(args: &mut Args<'_>) -> Result<Vec<Id>, Error> {
    args.rest().map(|word| parse_id(word, 0)).collect()
}

fn parse_id(word: &[u8], missing_seq: u64) -> Result<Id, Error> {
    Ok(Id::parse(word, missing_seq).ok_or(StreamError::InvalidStreamId)?)
}

/// An id, or `-` or `+` for the first and the last one there is.
fn parse_any_id(word: &[u8], missing_seq: u64) -> Result<Id, Error> {
    if says(word, "-") {
        Ok(Id::MIN)
    } else if says(word, "+") {
        Ok(Id::MAX)
    } else {
        parse_id(word, missing_seq)
    }
}

/// The first id of an interval, `(` before one that is not in it.
fn interval_start(word: &[u8]) -> Result<Id, Error> {
    match word {
        [b'(', id @ ..] if !id.is_empty() => Ok(parse_id(id, 0)?.next().ok_or(StreamError::IntervalStart)?),
        _ => parse_any_id(word, 0),
    }
}

/// The last id of an interval; a time alone is the last one of that time.
fn interval_end(word: &[u8]) -> Result<Id, Error> {
    match word {
        [b'(', id @ ..] if !id.is_empty() => Ok(parse_id(id, u64::MAX)?.previous().ok_or(StreamError::IntervalEnd)?),
        _ => parse_any_id(word, u64::MAX),
    }
}

/// The group of that name of a stream that may not be there.
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

/// An entry: its id, and its fields and values in one array.
fn write_entry(reply: &mut Reply<'_>, entry: &Entry<'_>) {
    reply.array(2);
    write_id(reply, entry.id());
    reply.array(entry.len() * 2);
    for (field, value) in entry.pairs() {
        reply.item(field);
        reply.item(value);
    }
}

/// Entries as an array.
fn write_entries<'a>(reply: &mut Reply<'_>, entries: impl Iterator<Item = Entry<'a>>) {
    let array = reply.open_array();
    let count = entries.map(|entry| write_entry(reply, &entry)).count();
    reply.close_array(array, count);
}

/// At most so many as a client says, where 0 is all.
fn all_if_zero(count: usize) -> usize {
    if count == 0 { usize::MAX } else { count }
}

/// The next word as a number of entries; what is below 0 is 0.
fn count(args: &mut Args<'_>) -> Result<usize, Error> {
    Ok(usize::try_from(args.integer()?).unwrap_or(0))
}
