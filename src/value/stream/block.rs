//! A block: some entries that follow one another, packed.
//!
//! ```text
//! +-----------------------------+-----------+-----------+--
//! | n, field 1, field 2 ..      | entry     | entry     |      of the first entry: what most of them share
//! +-----------------------------+-----------+-----------+--
//!
//! entry:  length | head | time | number | [n, field 1, ..] | value 1, value 2 ..
//! head:   bit 0 deleted, bit 1 fields of its own (each before its value), bit 2 a number follows,
//!         bits 3 to 7 the time since the entry before, 31: it follows
//! ```
//!
//! - The first entry's id is the block's; of the others, the time is stored as the difference to the entry before,
//!   and the number, unless it is 0, by how much it is more than the smallest that it could be.
//! - A deleted entry stays, marked as deleted, until the whole block is removed: the others keep their positions.
//!   Redis does so, and clients can see it, as deleted entries count towards a full block.
//! - Invariant: `live` and `deleted` count the entries, `last` is the id of the last one, deleted or not, ids ascend,
//!   and `spent` is the size of the listpack that Redis would have, without its two counts. A block has a live entry.
//! - An entry `temperature 21` costs five bytes here, and seventeen in a listpack.
//!
//! Costs: adding an entry at the end is O(its words); finding one is a walk over the block
//! by the lengths of its entries.

mod rebuild;

pub use rebuild::{Draft, Rebuilding};

use super::coding::{Reader, put_item, put_number};
use super::entry::Entry;
use super::id::Id;
use super::size::{self, Limits};
use crate::value::item::Item;
use crate::value::sorted_chunks::Keyed;

const DELETED: u8 = 1;
const OWN_FIELDS: u8 = 1 << 1;
const NUMBERED: u8 = 1 << 2;
const TIME_SHIFT: u32 = 3;
/// The time bits of a head whose time does not fit into it.
const LONG_TIME: u8 = 31;

/// Some consecutive entries of a stream.
#[derive(Clone, Debug)]
pub struct Block {
    first: Id,
    last: Id,
    live: u32,
    deleted: u32,
    spent: usize,
    /// The offset of the first entry.
    entries_at: u32,
    /// The offset of the last entry, deleted or not.
    last_at: u32,
    /// The bytes; none while they are in the base.
    bytes: Vec<u8>,
}

impl Keyed for Block {
    type Key = Id;

    fn key(&self) -> Id {
        self.first
    }
}

impl Block {
    /// A block for entries with these fields, of which the first must be pushed at once.
    pub fn new<'a>(first: Id, fields: impl ExactSizeIterator<Item = &'a [u8]> + Clone) -> Block {
        let spent = size::of_head(fields.clone().map(Item::of));
        let mut bytes = Vec::new();
        put_number(&mut bytes, fields.len() as u64);
        fields.for_each(|field| put_item(&mut bytes, Item::of(field)));
        let entries_at = bytes.len() as u32;
        Block { first, last: first, live: 0, deleted: 0, spent, entries_at, last_at: entries_at, bytes }
    }

    /// Whether its bytes are in the base.
    #[inline]
    pub(super) fn is_in_base(&self) -> bool {
        self.bytes.is_empty()
    }

    /// This block while its bytes are in the base.
    pub(super) fn without_bytes(&self) -> Block {
        Block { bytes: Vec::new(), ..*self }
    }

    /// A copy that keeps the spare capacity.
    pub(super) fn copy(&self) -> Block {
        let mut bytes = Vec::with_capacity(self.bytes.capacity());
        bytes.extend_from_slice(&self.bytes);
        Block { bytes, ..*self }
    }

    /// The id of the first entry, deleted or not.
    pub fn first(&self) -> Id {
        self.first
    }

    /// The id of the last entry, deleted or not.
    pub(super) fn last(&self) -> Id {
        self.last
    }

    /// The number of live entries.
    pub fn live(&self) -> usize {
        self.live as usize
    }

    /// The number of deleted entries.
    pub fn deleted(&self) -> usize {
        self.deleted as usize
    }

    /// Bytes of its allocation.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether there is room for an entry whose words have that many bytes.
    pub(super) fn admits(&self, limits: &Limits, more: usize) -> bool {
        limits.admit(self.listpack_bytes(), self.live() + self.deleted(), more)
    }

    /// The bytes of the listpack that Redis would have.
    pub(super) fn listpack_bytes(&self) -> usize {
        self.spent + size::of_count(self.live()) + size::of_count(self.deleted())
    }

    /// Gives unused bytes back: no more entries will come.
    pub(super) fn seal(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// Appends an entry: fields and values alternate, and the id is greater than the last one.
    pub fn push<'a>(&mut self, id: Id, words: impl ExactSizeIterator<Item = &'a [u8]> + Clone) {
        if self.has_fields(words.clone().step_by(2)) {
            self.put_entry(id, false, words.skip(1).step_by(2).map(Item::of));
        } else {
            self.put_entry(id, true, words.map(Item::of));
        }
        self.live += 1;
    }

    fn put_entry<'a>(&mut self, id: Id, has_own_fields: bool, kept: impl ExactSizeIterator<Item = Item<'a>> + Clone) {
        self.spent += size::of_entry(self.first, id, has_own_fields, kept.clone());
        self.last_at = self.bytes.len() as u32;
        self.bytes.push(0);
        let at = self.bytes.len();
        let (head, numbers) = head(self.before(at - 1), id, if has_own_fields { OWN_FIELDS } else { 0 });
        self.bytes.push(head);
        numbers.into_iter().flatten().for_each(|number| put_number(&mut self.bytes, number));
        if has_own_fields {
            put_number(&mut self.bytes, kept.len() as u64 / 2);
        }
        kept.for_each(|item| put_item(&mut self.bytes, item));
        self.end_entry(at);
        self.last = id;
    }

    /// Writes the length of the last entry into the byte before its content, and into more bytes if it needs them.
    fn end_entry(&mut self, content_at: usize) {
        let length = self.bytes.len() - content_at;
        match u8::try_from(length) {
            Ok(short @ ..=0x7f) => self.bytes[content_at - 1] = short,
            _ => {
                let mut long = Vec::new();
                put_number(&mut long, length as u64);
                self.bytes.splice(content_at - 1..content_at, long);
            }
        }
    }

    fn has_fields<'a>(&self, mut fields: impl ExactSizeIterator<Item = &'a [u8]>) -> bool {
        let mut reader = Reader::of(&self.bytes);
        reader.number() == fields.len() as u64 && fields.all(|field| reader.item() == *field)
    }

    /// The id of the entry before the one at `offset`, the end of the block; `None` if that is the first one.
    #[inline]
    fn before(&self, offset: usize) -> Option<Id> {
        (offset != self.entries_at as usize).then_some(self.last)
    }

    /// Deletes the entry with that id; false if there is no live one.
    pub fn delete(&mut self, id: Id) -> bool {
        let found = self.walk().find(|row| row.id >= id).filter(|row| row.id == id && !row.is_deleted());
        let Some(head_at) = found.map(|row| row.head_at) else { return false };
        self.bytes[head_at] |= DELETED;
        self.live -= 1;
        self.deleted += 1;
        true
    }

    /// Deletes the first live entries, at most `most` and only those before an id; returns how many.
    pub(super) fn delete_first(&mut self, most: usize, before: Option<Id>) -> usize {
        let early = self.walk().take_while(|row| before.is_none_or(|before| row.id < before));
        let heads: Vec<usize> = early.filter(|row| !row.is_deleted()).map(|row| row.head_at).take(most).collect();
        heads.iter().for_each(|&at| self.bytes[at] |= DELETED);
        self.live -= heads.len() as u32;
        self.deleted += heads.len() as u32;
        heads.len()
    }

    /// The fields that most entries share.
    pub fn fields(&self) -> impl Iterator<Item = Item<'_>> {
        let mut reader = Reader::of(&self.bytes);
        let count = reader.number();
        (0..count).map(move |_| reader.item())
    }

    /// The live entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.walk().filter(|row| !row.is_deleted()).map(|row| row.entry)
    }

    /// The last live entry. Entries before it are read only if the last one is deleted.
    pub(super) fn last_entry(&self) -> Option<Entry<'_>> {
        let last = self.walk_at(self.last_at).read(|_, _| self.last);
        if last.is_deleted() { self.entries().last() } else { Some(last.entry) }
    }

    /// All entries, each with whether it is deleted.
    pub fn walk(&self) -> Walk<'_> {
        self.walk_at(self.entries_at)
    }

    fn walk_at(&self, offset: u32) -> Walk<'_> {
        let mut fields = Reader::of(&self.bytes);
        let count = fields.number() as usize;
        Walk { block: self, fields, count, entries: Reader::of(&self.bytes[offset as usize..]), before: None }
    }

    /// Panics unless the invariants hold.
    pub(super) fn check(&self) {
        let ids: Vec<Id> = self.walk().map(|row| row.id).collect();
        assert!(ids.is_sorted_by(|one, next| one < next), "ids ascend");
        assert_eq!((ids.first(), ids.last()), (Some(&self.first), Some(&self.last)));
        assert_eq!(self.walk().filter(|row| row.is_deleted()).count(), self.deleted());
        assert_eq!(ids.len(), self.live() + self.deleted());
        assert!(self.live > 0, "a block has a live entry");
        let content = |entry: Option<Entry<'_>>| entry.map(|entry| format!("{entry:?}"));
        assert_eq!(content(self.last_entry()), content(self.entries().last()));
    }
}

/// The head of an entry behind another one, and the numbers that follow the head: a time that does not fit into it, and
/// the number of an id unless it is 0. `bits` are the other bits.
#[inline(always)]
fn head(before: Option<Id>, id: Id, bits: u8) -> (u8, [Option<u64>; 2]) {
    let (ms, seq) = match before {
        None => (0, 0),
        Some(before) if before.ms == id.ms => (0, id.seq.wrapping_sub(before.seq).wrapping_sub(1)),
        Some(before) => (id.ms.wrapping_sub(before.ms), id.seq),
    };
    let short = if ms < u64::from(LONG_TIME) { ms as u8 } else { LONG_TIME };
    let head = short << TIME_SHIFT | if seq == 0 { 0 } else { NUMBERED } | bits;
    (head, [(short == LONG_TIME).then_some(ms), (seq != 0).then_some(seq)])
}

/// An entry and how its block stores it.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    id: Id,
    head: u8,
    head_at: usize,
    /// The entry.
    pub entry: Entry<'a>,
}

impl Row<'_> {
    /// Whether it was deleted.
    pub fn is_deleted(&self) -> bool {
        self.head & DELETED != 0
    }

    /// Whether it has the fields that most entries share.
    pub fn has_shared_fields(&self) -> bool {
        self.head & OWN_FIELDS == 0
    }
}

/// Iterates over all entries of a block.
pub struct Walk<'a> {
    block: &'a Block,
    fields: Reader<'a>,
    count: usize,
    entries: Reader<'a>,
    before: Option<Id>,
}

impl<'a> Walk<'a> {
    /// Reads the next entry; `id` computes its id from the stored time and number.
    #[inline]
    fn read(&mut self, id: impl FnOnce(u64, u64) -> Id) -> Row<'a> {
        let length = self.entries.number();
        let head_at = self.block.bytes.len() - self.entries.rest().len();
        // It does not end with the entry: the last word of one is copied faster with the bytes behind it.
        let mut content = self.entries;
        self.entries.bytes(length);
        let head = content.byte();
        let ms = match head >> TIME_SHIFT {
            LONG_TIME => content.number(),
            short => u64::from(short),
        };
        let seq = if head & NUMBERED == 0 { 0 } else { content.number() };
        let id = id(ms, seq);
        let entry = if head & OWN_FIELDS == 0 {
            Entry::new(id, self.count, Some(self.fields), content)
        } else {
            let count = content.number() as usize;
            Entry::new(id, count, None, content)
        };
        Row { id, head, head_at, entry }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Row<'a>;

    #[inline]
    fn next(&mut self) -> Option<Row<'a>> {
        if self.entries.rest().is_empty() {
            return None;
        }
        let (first, before) = (self.block.first, self.before);
        let row = self.read(|ms, seq| match before {
            None => first,
            Some(before) if ms == 0 => Id::new(before.ms, before.seq.wrapping_add(seq).wrapping_add(1)),
            Some(before) => Id::new(before.ms.wrapping_add(ms), seq),
        });
        self.before = Some(row.id);
        Some(row)
    }
}
