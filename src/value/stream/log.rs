//! The entries of a stream in blocks, and counters of those that were ever added or deleted.
//!
//! ```text
//! blocks:  [ 5-0 .. 7-3 ]  [ 7-4 .. 9-0 ]  [ 9-1 .. 9-4        ]
//!            sealed          sealed          takes new ones
//! ```
//!
//! - Invariant: blocks are in the order of their ids and each has a live entry; `len` counts the live entries,
//!   `first` is the id of the first of them, 0-0 if there is none, and `last` is not before any entry's id.
//!
//! A consumer group's lag follows from counters: `added` counts all entries ever added, and if none in between was
//! deleted, an entry's place among them follows ([`Log::place`]). The largest deleted id shows whether that is so.
//!
//! The blocks of a fork ([`Fork`]) have no bytes until they change, and are read from the block of the same first id in
//! the base.
//!
//! Costs: adding is O(1) amortised; finding an id O(log blocks) and a walk over one block; trimming O(blocks
//! removed).
//!
//! Source for the counters: the replies of Redis 8.0.6 to XINFO after random deletions.

use super::block::Block;
use super::entry::Entry;
use super::id::Id;
use super::size::Limits;
use crate::value::base::{Base, Fork};
use crate::value::sorted_chunks::{Keyed, SortedChunks};
use std::iter;

/// The entries of a stream.
#[derive(Default)]
pub struct Log {
    blocks: SortedChunks<Block>,
    /// Bytes of the allocations of all blocks.
    block_bytes: usize,
    len: usize,
    first: Id,
    last: Id,
    max_deleted: Id,
    added: u64,
    base: Option<Box<Base<Log>>>,
}

/// The entries that a trim removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// All but that many of the last ones (MAXLEN).
    ToLength(usize),
    /// The entries before that id (MINID).
    Before(Id),
}

impl Clone for Log {
    fn clone(&self) -> Log {
        let mut blocks = self.blocks.clone();
        blocks.iter_mut().for_each(|block| _ = own(block, self.base.as_deref()));
        let block_bytes = blocks.iter().map(Block::memory).sum();
        Log { blocks, block_bytes, base: None, ..*self }
    }
}

impl Fork for Log {
    fn without_parts(&self) -> Log {
        Log { blocks: self.blocks.map(Block::without_bytes), base: None, ..*self }
    }

    fn set_base(&mut self, base: Option<Base<Log>>) {
        self.base = base.map(Box::new);
    }

    fn is_fork(&self) -> bool {
        self.base.is_some()
    }

    fn own_bytes(&self) -> usize {
        self.blocks.iter().map(Block::memory).sum()
    }

    fn reclaim(&mut self, base: &mut Log) {
        let mut all_shared = base.blocks.iter_mut();
        for block in self.blocks.iter_mut().filter(|block| block.is_in_base()) {
            // Both are in the same order.
            if let Some(shared) = all_shared.find(|shared| shared.key() == block.key()) {
                std::mem::swap(block, shared);
            }
        }
    }
}

impl Log {
    /// The number of live entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of its allocations.
    pub(super) fn memory(&self) -> usize {
        self.blocks.memory() + self.block_bytes
    }

    /// The id of the first entry. Without entries it is 0-0, or what a file said ([`Log::set_first_of_empty`]).
    pub fn first(&self) -> Id {
        self.first
    }

    /// The id of the first entry that is stored, deleted or not; `None` if none is.
    pub fn first_stored(&self) -> Option<Id> {
        self.blocks.first().map(Block::first)
    }

    /// The largest id that was ever assigned.
    pub fn last(&self) -> Id {
        self.last
    }

    /// The largest id of an entry that was deleted individually (XDEL).
    pub fn max_deleted(&self) -> Id {
        self.max_deleted
    }

    /// The number of entries that were ever added.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// Sets the id that stands for the first entry while there is none. For an empty stream of a file of Redis 5 or 6,
    /// Redis takes the largest, shows it, and saves it.
    pub fn set_first_of_empty(&mut self, id: Id) {
        if self.is_empty() {
            self.first = id;
        }
    }

    /// Sets the largest assigned id, which must not be before that of an entry.
    pub fn set_last(&mut self, id: Id) {
        self.last = id;
    }

    /// Sets the number of entries that were ever added.
    pub fn set_added(&mut self, added: u64) {
        self.added = added;
    }

    /// Sets the largest id of a deleted entry.
    pub fn set_max_deleted(&mut self, id: Id) {
        self.max_deleted = id;
    }

    /// The id for an entry that is added now; `None` if all ids are used up.
    pub fn next_id(&self, now_ms: u64) -> Option<Id> {
        if now_ms > self.last.ms { Some(Id::new(now_ms, 0)) } else { self.last.next() }
    }

    /// Appends an entry: fields and values alternate. Its id must be greater than [`Log::last`].
    pub fn push<'a>(&mut self, id: Id, words: impl ExactSizeIterator<Item = &'a [u8]> + Clone, limits: &Limits) {
        let more = words.clone().map(<[u8]>::len).sum();
        let block = match self.blocks.last_mut().filter(|block| block.admits(limits, more)) {
            Some(block) => own(block, self.base.as_deref()),
            None => self.open(Block::new(id, words.clone().step_by(2))),
        };
        let before = block.memory();
        block.push(id, words);
        let after = block.memory();
        self.block_bytes = self.block_bytes - before + after;
        self.len += 1;
        self.added = self.added.wrapping_add(1);
        self.last = id;
        if self.len == 1 {
            self.first = id;
        }
    }

    /// Appends a block that was filled elsewhere; false if its ids do not fit there. One without a live entry is left
    /// out: Redis has such blocks behind `XTRIM .. MINID` with the id of a block's last entry, if XDEL deleted that.
    pub fn append(&mut self, block: Block) -> bool {
        if block.first() <= self.last && self.last != Id::MIN {
            return false;
        }
        self.last = block.last();
        if block.live() > 0 {
            self.len += block.live();
            self.open(block);
            self.find_first();
        }
        true
    }

    /// Appends a block, and returns it.
    fn open(&mut self, block: Block) -> &mut Block {
        if let Some(last) = self.blocks.last_mut() {
            let last = own(last, self.base.as_deref());
            self.block_bytes -= last.memory();
            last.seal();
            self.block_bytes += last.memory();
        }
        self.block_bytes += block.memory();
        self.blocks.insert(block);
        self.blocks.last_mut().expect("it was put there")
    }

    /// Deletes the entry with that id; false if there is none.
    pub fn delete(&mut self, id: Id) -> bool {
        let Some(block) = self.blocks.floor_mut(id) else { return false };
        let block = own(block, self.base.as_deref());
        if !block.delete(id) {
            return false;
        }
        if block.live() == 0 {
            let first = block.key();
            self.drop_block(first);
        }
        self.len -= 1;
        self.max_deleted = self.max_deleted.max(id);
        if id == self.first {
            self.find_first();
        }
        true
    }

    /// Removes entries at the beginning: whole blocks, and unless `approximately`, entries of the next one. At most
    /// `limit` are removed, if it is not 0. Returns how many.
    pub fn trim(&mut self, trim: Trim, approximately: bool, limit: usize) -> usize {
        let before = self.len;
        while let Some(block) = self.blocks.first() {
            let (first, live, gone) = (block.key(), block.live(), before - self.len);
            let is_done = matches!(trim, Trim::ToLength(most) if self.len <= most);
            if is_done || limit > 0 && gone + live > limit {
                break;
            }
            let goes = match trim {
                Trim::ToLength(most) => self.len - live >= most,
                Trim::Before(id) => block.last() < id,
            };
            if !goes {
                if !approximately {
                    self.trim_first_block(trim);
                }
                break;
            }
            self.drop_block(first);
            self.len -= live;
        }
        if self.len < before {
            self.find_first();
        }
        before - self.len
    }

    fn trim_first_block(&mut self, trim: Trim) {
        let Some(block) = self.blocks.first_mut() else { return };
        let block = own(block, self.base.as_deref());
        let killed = match trim {
            Trim::ToLength(most) => block.delete_first(self.len - most, None),
            Trim::Before(id) => block.delete_first(usize::MAX, Some(id)),
        };
        let (first, live) = (block.key(), block.live());
        self.len -= killed;
        if live == 0 {
            self.drop_block(first);
        }
    }

    fn drop_block(&mut self, first: Id) {
        if let Some(block) = self.blocks.remove(first) {
            self.block_bytes -= self.here(&block).memory();
        }
    }

    fn find_first(&mut self) {
        self.first = self.first_entry().map_or(Id::MIN, |entry| entry.id());
    }

    /// The first live entry; `None` if there is none.
    pub fn first_entry(&self) -> Option<Entry<'_>> {
        self.here(self.blocks.first()?).entries().next()
    }

    /// The last live entry; `None` if there is none.
    pub fn last_entry(&self) -> Option<Entry<'_>> {
        self.here(self.blocks.last()?).last_entry()
    }

    /// Whether there is an entry behind an id.
    pub fn has_after(&self, id: Id) -> bool {
        id < self.last && self.last_entry().is_some_and(|last| id < last.id())
    }

    /// The entry with that id.
    pub fn get(&self, id: Id) -> Option<Entry<'_>> {
        self.range(id, id).next()
    }

    /// The entries from one id to another, both included.
    pub fn range(&self, from: Id, to: Id) -> impl Iterator<Item = Entry<'_>> {
        let blocks = self.blocks.walk_from(from).take_while(move |block| block.key() <= to);
        let entries = blocks.flat_map(|block| self.here(block).entries());
        entries.skip_while(move |entry| entry.id() < from).take_while(move |entry| entry.id() <= to)
    }

    /// The entries from one id to another, both included, the last first.
    ///
    /// A block is read from its beginning on, but only for the entries before its last: who wants the last entry alone
    /// does not pay for the others.
    pub fn range_back(&self, from: Id, to: Id) -> impl Iterator<Item = Entry<'_>> {
        let blocks = self.blocks.back_from(to).take_while(move |block| block.last() >= from);
        let among = move |entry: &Entry<'_>| (from..=to).contains(&entry.id());
        blocks.flat_map(move |block| {
            let block = self.here(block);
            let last = block.last_entry();
            let last_id = last.as_ref().map(Entry::id);
            let before = iter::once_with(move || {
                let before_last = block.entries().filter(move |entry| among(entry) && Some(entry.id()) != last_id);
                before_last.collect::<Vec<_>>().into_iter().rev()
            });
            last.into_iter().filter(among).chain(before.flatten())
        })
    }

    /// The number of blocks.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().map(|block| self.here(block))
    }

    /// The block with its bytes: this one, or the one in the base.
    fn here<'a>(&'a self, block: &'a Block) -> &'a Block {
        if block.is_in_base() { self.in_base(block) } else { block }
    }

    #[cold]
    fn in_base<'a>(&'a self, block: &'a Block) -> &'a Block {
        self.base.as_ref().and_then(|base| base.get().blocks.get(block.key())).unwrap_or(block)
    }

    /// The place of an id among all entries that were ever added, counted from 1; `None` if deleted entries make that
    /// uncertain.
    pub fn place(&self, id: Id) -> Option<u64> {
        if self.added == 0 {
            return Some(0);
        }
        if self.len == 0 && id <= self.last {
            return Some(self.added);
        }
        if id != Id::MIN && id < self.max_deleted {
            return None;
        }
        if id >= self.last {
            return (id == self.last).then_some(self.added);
        }
        if self.max_deleted == Id::MIN || self.max_deleted < self.first {
            let before = self.added.wrapping_sub(self.len as u64);
            if id <= self.first {
                return Some(before.wrapping_add(u64::from(id == self.first)));
            }
        }
        None
    }

    /// Whether an entry from that id on was deleted individually, as far as is known.
    pub fn is_fragmented_from(&self, id: Id) -> bool {
        self.len > 0 && self.max_deleted != Id::MIN && self.first <= self.max_deleted && id <= self.max_deleted
    }

    /// The lag of a group: the number of entries behind the last one it read, if it has read `read` in all; `None` if
    /// deleted entries make that uncertain.
    pub fn lag(&self, group_last: Id, read: Option<i64>) -> Option<i64> {
        let added = self.added.cast_signed();
        if self.added == 0 || self.len == 0 {
            return Some(0);
        }
        if group_last < self.first && self.max_deleted < self.first {
            return Some(self.len as i64);
        }
        match read {
            Some(read) if !self.is_fragmented_from(group_last) => Some(added.wrapping_sub(read)),
            _ => self.place(group_last).map(|place| added.wrapping_sub(place.cast_signed())),
        }
    }

    /// Panics unless the invariants hold.
    pub(super) fn check(&self) {
        self.blocks.check();
        self.blocks().for_each(Block::check);
        assert!(self.blocks.iter().zip(self.blocks.iter().skip(1)).all(|(one, next)| one.last() < next.key()));
        assert_eq!(self.blocks.iter().map(Block::live).sum::<usize>(), self.len);
        assert_eq!(self.blocks().map(Block::memory).sum::<usize>(), self.block_bytes);
        assert_eq!(self.range(Id::MIN, Id::MAX).next().map_or(Id::MIN, |entry| entry.id()), self.first);
        assert!(self.blocks.last().is_none_or(|block| block.last() <= self.last));
    }
}

/// A block, for changing; copied from the base first if its bytes are still there.
#[inline]
fn own<'a>(block: &'a mut Block, base: Option<&Base<Log>>) -> &'a mut Block {
    if block.is_in_base()
        && let Some(shared) = base.and_then(|base| base.get().blocks.get(block.key()))
    {
        *block = shared.copy();
    }
    block
}
