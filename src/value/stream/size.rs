//! Size limits of blocks, counted in the bytes of the listpack that Redis would have for them.
//!
//! Approximate trimming removes whole blocks, so a client can see where they begin and end. Redis decides that by the
//! size of its own layout, which is not ours, so each block carries the size that its listpack would have.
//!
//! ```text
//! listpack:  live  deleted  fields  field 1 .. field n  0    then for each entry
//!            flags  time since the first  number less the first's  [fields  field 1] value 1 ..  items of the entry
//! ```
//!
//! Source: the comments of Redis on its layout; approximate trimming beside Redis 8.0.6 over random entries.

use super::id::Id;
use crate::value::item::Item;
use crate::value::listpack;

/// The limits above which a block accepts no more entries, and the most that it can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `stream-node-max-bytes`: bytes of a listpack, 0 for the greatest possible size.
    pub bytes: usize,
    /// `stream-node-max-entries`: entries, deleted ones included; 0 for any number.
    pub entries: usize,
}

/// The most bytes of a listpack, and of the fields and values of one entry.
pub const MAX_BYTES: usize = 1 << 30;

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 4096, entries: 100 }
    }
}

impl Limits {
    /// Whether a block of that many bytes and entries takes an entry of `more` bytes.
    pub(super) fn admit(&self, bytes: usize, entries: usize, more: usize) -> bool {
        let most = if self.bytes == 0 { MAX_BYTES } else { self.bytes.min(MAX_BYTES) };
        bytes + more < most && (self.entries == 0 || entries < self.entries)
    }
}

/// The bytes of a count in a listpack.
pub(super) fn of_count(count: usize) -> usize {
    listpack::cost(Item::Int(count as i64))
}

/// The bytes of the head and the end of a listpack, and of the fields of its first entry, without the counts before
/// them.
pub(super) fn of_head<'a>(fields: impl ExactSizeIterator<Item = Item<'a>>) -> usize {
    listpack::EMPTY + of_count(fields.len()) + fields.map(listpack::cost).sum::<usize>() + of_count(0)
}

/// The bytes of an entry with that id in a listpack whose first id is `first`; `words` are its values, or fields and
/// values if it has fields of its own.
pub(super) fn of_entry<'a>(
    first: Id,
    id: Id,
    has_own_fields: bool,
    words: impl ExactSizeIterator<Item = Item<'a>>,
) -> usize {
    let fields = if has_own_fields { words.len() / 2 } else { 0 };
    let items = words.len() + 3 + usize::from(has_own_fields);
    let delta = |one: u64, other: u64| listpack::cost(Item::Int(one.wrapping_sub(other).cast_signed()));
    of_count(0)
        + delta(id.ms, first.ms)
        + delta(id.seq, first.seq)
        + if has_own_fields { of_count(fields) } else { 0 }
        + words.map(listpack::cost).sum::<usize>()
        + of_count(items)
}
