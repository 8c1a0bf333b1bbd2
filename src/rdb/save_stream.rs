//! Serializes streams: each block as a listpack, the counters, and the groups with their consumers and pending
//! entries.
//!
//! ```text
//!   blocks, each: first id | listpack
//!   entries | last id | first id | last deleted id | added
//!   groups, each: name | last id | read | pending, each: id, time, count
//!               | consumers, each: name | seen | active (from version 11 on) | ids
//! ```
//!
//! The listpack is the one that Redis would have, deleted entries included: see `value::stream`'s notes on its size.

use super::kind;
use super::listpack::Builder;
use super::text::{Sink, Writer};
use crate::value::stream::{Block, Group, Id, Stream};
use std::io;

/// The flags at the start of an entry in a listpack.
pub(super) const DELETED: i64 = 1;
pub(super) const SHARES_FIELDS: i64 = 1 << 1;

impl Writer {
    pub(super) fn stream(&mut self, stream: &Stream, sink: &mut Sink<'_>) -> io::Result<()> {
        let log = stream.log();
        self.length(log.blocks().count() as u64);
        let mut first = Vec::new();
        for block in log.blocks() {
            first.clear();
            put_raw(&mut first, block.first());
            self.text(&first);
            self.listpack(|builder| put_block(builder, block));
            self.pass_on(sink)?;
        }
        self.length(log.len() as u64);
        for id in [log.last(), log.first(), log.max_deleted()] {
            self.id(id);
        }
        self.length(log.added());
        self.length(stream.groups().len() as u64);
        stream.groups().iter().try_for_each(|group| {
            self.group(group);
            self.pass_on(sink)
        })
    }

    fn group(&mut self, group: &Group) {
        self.text(group.name());
        self.id(group.last);
        self.length(group.read.unwrap_or(-1).cast_unsigned());
        self.length(group.pending_len() as u64);
        for pending in group.pending_from(Id::MIN) {
            put_raw(&mut self.out, pending.id());
            self.moment(pending.delivered_ms);
            self.length(pending.times);
        }
        self.length(group.consumer_count() as u64);
        for (number, consumer) in group.consumers() {
            self.text(consumer.name());
            self.moment(consumer.seen_ms);
            if self.version >= kind::version(kind::STREAM_3) {
                self.moment(consumer.active_ms.unwrap_or(-1));
            }
            self.length(consumer.pending_len() as u64);
            group.pending_of(number, Id::MIN).for_each(|pending| put_raw(&mut self.out, pending.id()));
        }
    }

    fn id(&mut self, id: Id) {
        self.length(id.ms);
        self.length(id.seq);
    }
}

/// Writes an id in 16 bytes, high bytes first.
fn put_raw(out: &mut Vec<u8>, id: Id) {
    out.extend_from_slice(&id.ms.to_be_bytes());
    out.extend_from_slice(&id.seq.to_be_bytes());
}

/// Writes the listpack of a block.
#[inline(never)]
fn put_block(builder: &mut Builder, block: &Block) {
    for count in [block.live(), block.deleted(), block.fields().count()] {
        builder.push_integer(count as i64);
    }
    builder.extend(block.fields());
    builder.push_integer(0);
    let first = block.first();
    for row in block.walk() {
        let shares = row.has_shared_fields();
        let flags = if row.is_deleted() { DELETED } else { 0 } | if shares { SHARES_FIELDS } else { 0 };
        let id = row.entry.id();
        let (ms, seq) = (id.ms.wrapping_sub(first.ms), id.seq.wrapping_sub(first.seq));
        builder.push_three([flags, ms.cast_signed(), seq.cast_signed()]);
        let fields = row.entry.len();
        if let Some(values) = row.entry.shared_values() {
            values.for_each(|value| builder.push_word(value));
            builder.push_integer(fields as i64 + 3);
            continue;
        }
        builder.push_integer(fields as i64);
        builder.extend(row.entry.pairs().flat_map(|(field, value)| [field, value]));
        builder.push_integer(2 * fields as i64 + 4);
    }
}
