//! Building a block again from the entries of a listpack that Redis wrote.
//!
//! The bytes are put together in memory that a thread keeps from one block to the next, and copied when their number is
//! known. An entry is written behind the others where there is room, and becomes one of them when it is whole
//! ([`Draft`]). So most of what is written is one store of a fixed size, and nothing grows on the way.
//!
//! Invariant: up to `end`, the bytes are those of the block; behind it they are room for more.

use super::super::coding::{TEXT, folded};
use super::{Block, DELETED, Id, OWN_FIELDS, head};
use crate::value::item::{AHEAD, Item};
use crate::value::stream::size;
use std::cell::Cell;

/// The room for an entry in addition to its bytes in the listpack: no word takes more here than there, but its numbers
/// may, and what is written behind it.
const SPARE: usize = 128;
/// The most memory that a thread keeps.
const MAX_KEPT: usize = 1 << 16;

thread_local! {
    static MEMORY: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A block that is being built again, entry by entry.
#[derive(Debug)]
pub struct Rebuilding {
    block: Block,
    bytes: Vec<u8>,
    end: usize,
}

impl Rebuilding {
    /// A block for the entries of a listpack of that many bytes, with these fields.
    pub fn new<'a>(first: Id, fields: impl ExactSizeIterator<Item = &'a [u8]> + Clone, listpack: usize) -> Rebuilding {
        let block = Block::new(first, fields);
        let (end, mut bytes) = (block.bytes.len(), MEMORY.take());
        let room = end + listpack + SPARE;
        if bytes.len() < room {
            // New memory that is zero at once may come from the system as it is.
            bytes = vec![0; room];
        }
        bytes[..end].copy_from_slice(&block.bytes);
        Rebuilding { block, bytes, end }
    }

    /// The id of the last entry so far.
    #[inline(always)]
    pub fn last(&self) -> Option<Id> {
        self.block.before(self.end)
    }

    /// Begins to write an entry, deleted or not. If it has fields of its own, as many as `own_fields`, each comes
    /// before its value; otherwise there are only the values. `None` if there is no room.
    #[inline(always)]
    pub fn draft(&mut self, id: Id, is_deleted: bool, own_fields: Option<usize>) -> Option<Draft<'_>> {
        let bits = (if is_deleted { DELETED } else { 0 }) | if own_fields.is_some() { OWN_FIELDS } else { 0 };
        let (head, [ms, seq]) = head(self.last(), id, bits);
        let mut draft = Draft { bytes: self.bytes.get_mut(self.end..)?, at: 0 };
        draft.put([0, head])?;
        if let Some(ms) = ms {
            draft.number(ms)?;
        }
        if let Some(seq) = seq {
            draft.number(seq)?;
        }
        if let Some(fields) = own_fields {
            draft.number(fields as u64)?;
        }
        Some(draft)
    }

    /// Makes what was written of an entry, in so many bytes, the last entry of the block.
    #[inline(always)]
    pub fn keep(&mut self, id: Id, is_deleted: bool, length: usize) {
        let block = &mut self.block;
        block.deleted = block.deleted.wrapping_add(is_deleted.into());
        block.live = block.live.wrapping_add((!is_deleted).into());
        block.last_at = self.end as u32;
        block.last = id;
        self.end = self.end.wrapping_add(length);
    }

    /// Makes room for an entry that has at most so many bytes in a listpack.
    #[cold]
    pub fn make_room(&mut self, listpack: usize) {
        let needed = self.end + listpack + SPARE;
        if self.bytes.len() < needed {
            self.bytes.resize(needed, 0);
        }
    }

    /// The block of all entries that have been added, and of a listpack of that many bytes; `None` unless it has that
    /// many live and deleted ones. Without a live one it cannot be part of a stream.
    pub fn finish(mut self, live: usize, deleted: usize, listpack: usize) -> Option<Block> {
        self.block.bytes = self.bytes[..self.end].to_vec();
        if self.bytes.len() <= MAX_KEPT {
            MEMORY.set(self.bytes);
        }
        let counts = size::of_count(live) + size::of_count(deleted);
        self.block.spent = listpack.saturating_sub(counts);
        (live + deleted > 0 && (live, deleted) == (self.block.live(), self.block.deleted())).then_some(self.block)
    }
}

/// An entry that is being written to the room behind its block, and is no part of it yet. Its methods return `None` if
/// there is no room.
#[derive(Debug)]
pub struct Draft<'b> {
    bytes: &'b mut [u8],
    at: usize,
}

impl Draft<'_> {
    /// Writes a field or value: the first `length` of some bytes, which are not the digits of a number.
    #[inline(always)]
    pub fn text_ahead(&mut self, length: usize, ahead: &[u8; AHEAD]) -> Option<()> {
        let [code, target @ ..] = self.bytes.get_mut(self.at..)?.first_chunk_mut::<{ 1 + AHEAD }>()?;
        *code = TEXT as u8 + length as u8;
        *target = *ahead;
        self.at = self.at.wrapping_add(1 + length.min(AHEAD));
        Some(())
    }

    /// Writes a field or value that is a number.
    #[inline(always)]
    pub fn integer(&mut self, number: i64) -> Option<()> {
        let (width, digits) = folded(number);
        let [code, target @ ..] = self.bytes.get_mut(self.at..)?.first_chunk_mut::<{ 1 + 8 }>()?;
        *code = width;
        *target = digits;
        self.at += 1 + usize::from(width);
        Some(())
    }

    /// Writes a field or value. It takes and returns the draft by value, so that a loop over words keeps it in
    /// registers.
    pub fn word(mut self, item: Item<'_>) -> Option<Self> {
        let (first, second) = match item {
            Item::Int(number) => {
                self.integer(number)?;
                return Some(self);
            }
            Item::Text(first, second) => (first, second),
        };
        self.number(TEXT + (first.len() + second.len()) as u64)?;
        for part in [first, second] {
            self.bytes.get_mut(self.at..)?.get_mut(..part.len())?.copy_from_slice(part);
            self.at += part.len();
        }
        Some(self)
    }

    /// Writes the length of the entry in front, for which one byte was left; returns the number of bytes in all.
    #[inline(always)]
    pub fn end(self) -> Option<usize> {
        match u8::try_from(self.at - 1) {
            Ok(length @ ..=0x7f) => {
                *self.bytes.first_mut()? = length;
                Some(self.at)
            }
            _ => self.end_long(),
        }
    }

    fn end_long(self) -> Option<usize> {
        let Draft { bytes, at: end } = self;
        let mut length = Draft { bytes: &mut [0; 10], at: 0 };
        length.number(end as u64 - 1)?;
        let (more, length) = (length.at - 1, &*length.bytes);
        bytes.get(..end + more)?;
        bytes.copy_within(1..end, 1 + more);
        bytes[..=more].copy_from_slice(&length[..=more]);
        Some(end + more)
    }

    #[inline(always)]
    fn number(&mut self, mut number: u64) -> Option<()> {
        while number > 0x7f {
            self.put([number as u8 | 0x80])?;
            number >>= 7;
        }
        self.put([number as u8])
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) -> Option<()> {
        *self.bytes.get_mut(self.at..)?.first_chunk_mut()? = bytes;
        self.at += N;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes words as a loader does: a short text from a place with bytes behind it.
    fn write(mut draft: Draft<'_>, words: &[&[u8]]) -> Option<usize> {
        for word in words {
            match (Item::of(word), word.len()) {
                (Item::Text(..), length @ ..=AHEAD) => {
                    let mut ahead = [7; AHEAD];
                    ahead[..length].copy_from_slice(word);
                    draft.text_ahead(length, &ahead)?;
                }
                (item, _) => draft = draft.word(item)?,
            }
        }
        draft.end()
    }

    fn add(block: &mut Rebuilding, id: Id, own_fields: Option<usize>, words: &[&[u8]]) {
        let mut length = block.draft(id, false, own_fields).and_then(|draft| write(draft, words));
        if length.is_none() {
            block.make_room(words.iter().map(|word| word.len() + 4).sum());
            length = block.draft(id, false, own_fields).and_then(|draft| write(draft, words));
        }
        block.keep(id, false, length.expect("there is room"));
    }

    proptest! {
        #[test]
        fn a_block_that_is_built_again_is_the_block_whatever_room_it_had(
            entries in prop::collection::vec(
                ((0..3_u8, any::<u64>()), any::<bool>(), prop_oneof!["[a-z]{0,40}", "-?[1-9][0-9]{0,17}", "[x-z]{100,300}", "x{16300,16400}"]),
                1..20,
            ),
            room in 0..1000_usize,
        ) {
            let (first, fields) = (Id::new(5, 3), [&b"one"[..], b"two"]);
            let mut block = Block::new(first, fields.into_iter());
            let mut again = Rebuilding::new(first, fields.into_iter(), room);
            let mut id = first;
            for (at, ((shift, more), is_own, word)) in entries.iter().enumerate() {
                if at > 0 {
                    id = Id::new(id.ms + (*more >> 20 >> (20 * shift)), id.seq + 1 + (*more >> (60 - 20 * shift)));
                }
                let names = if *is_own { [&b"two"[..], b"one"] } else { fields };
                block.push(id, [names[0], word.as_bytes(), names[1], b"7"].into_iter());
                match is_own {
                    true => add(&mut again, id, Some(2), &[names[0], word.as_bytes(), names[1], b"7"]),
                    false => add(&mut again, id, None, &[word.as_bytes(), b"7"]),
                }
            }
            prop_assert!(again.bytes.len() >= again.end);
            let again = again.finish(entries.len(), 0, block.listpack_bytes()).expect("the counts are right");
            again.check();
            prop_assert_eq!((&again.bytes, again.last_at, again.spent), (&block.bytes, block.last_at, block.spent));
        }
    }
}
