//! The large form of a sorted set: every member once, in a cell that an order and an index share.
//!
//! ```text
//! member --hash--> index --handle--> arena: cell (member, score) <--handle-- order --position--> rank, range
//! ```
//!
//! - Invariant: the cells of the arena, those of the members' index and those of the order are the same set; the order
//!   is by (score, member) of the cells.
//! - Memory: a million members `user-<n>` with scores up to a million take 34.4 bytes each, of which 15.8 are the cell
//!   (the member alone is 10.9), 7.5 the index and 11.1 the order; built at once, 32.4; after each was replaced ten
//!   times, at most a quarter more.
//!
//! Costs: look-up O(1); rank, change, range start O(log n); a range then O(1) an entry, and O(1) amortised to remove.

use super::Entry;
use super::iter::Iter;
use super::order::Order;
use super::search_key::{SearchKey, sortable};
use crate::value::arena::{Arena, Handle};
use crate::value::base::{Base, Fork};
use crate::value::hashing::Hashing;
use crate::value::members::Members;
use crate::value::prefetch::Prefetch;
use std::ops::{ControlFlow, Range};

/// The number of cells that a removal moves out of a chunk that is being drained, for up to [`FEW`] removals at once.
const MOVES: usize = 2;
const FEW: usize = 128;
/// Of more removals at once, one in this many moves a cell.
const RARELY: usize = 8;

#[derive(Clone)]
pub(super) struct Large<const N: usize> {
    arena: Arena,
    members: Members,
    order: Order<N>,
}

impl<const N: usize> Fork for Large<N> {
    fn without_parts(&self) -> Self {
        let (arena, members) = (self.arena.without_parts(), self.members.without_parts());
        Large { arena, members, order: self.order.without_parts() }
    }

    fn set_base(&mut self, base: Option<Base<Self>>) {
        self.arena.set_base(base.as_ref().map(|base| base.part(|large| &large.arena)));
        self.members.set_base(base.as_ref().map(|base| base.part(|large| &large.members)));
        self.order.set_base(base.map(|base| base.part(|large| &large.order)));
    }

    fn is_fork(&self) -> bool {
        self.arena.is_fork()
    }

    fn own_bytes(&self) -> usize {
        self.arena.own_bytes() + self.members.own_bytes() + self.order.own_bytes()
    }

    fn reclaim(&mut self, base: &mut Self) {
        self.arena.reclaim(&mut base.arena);
        self.members.reclaim(&mut base.members);
        self.order.reclaim(&mut base.order);
    }
}

impl<const N: usize> Large<N> {
    /// Builds a set of entries that are in order.
    pub(super) fn from_sorted<'a>(entries: impl Iterator<Item = Entry<'a>>, hashing: Hashing) -> Self {
        let len = entries.size_hint().0;
        let (mut arena, mut members) = (Arena::default(), Members::with_room(len, hashing));
        let mut cells = Vec::with_capacity(len);
        for entry in entries {
            let cell = arena.insert([entry.member], entry.score);
            members.insert(members.hash(entry.member), cell, |cell| arena.bytes(cell));
            cells.push(cell);
        }
        arena.shrink_to_fit();
        let order = Order::from_sorted(&arena, &cells);
        Large { arena, members, order }
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn memory(&self) -> usize {
        self.arena.memory() + self.members.memory() + self.order.memory()
    }

    pub(super) fn cell_bytes(&self) -> usize {
        self.arena.cell_bytes()
    }

    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        self.find(self.members.hash(member), member).map(|cell| self.arena.number(cell))
    }

    /// Whether [`Large::common`] finds what this set and the other have in common in fewer steps than a look-up of
    /// each member.
    pub(super) fn may_be_merged_with(&self, other: &Large<N>) -> bool {
        self.members.may_be_merged_with(&other.members)
    }

    /// Visits the entries whose members are in `other` too, each with its score there, until `visit` breaks off. The
    /// two sets can be merged.
    pub(super) fn common<'a>(
        &'a self,
        other: &Large<N>,
        mut visit: impl FnMut(Entry<'a>, f64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let is_same = |cell, other_cell| self.arena.bytes(cell) == other.arena.bytes(other_cell);
        self.members.common(&other.members, is_same, |cell, other_cell| {
            visit(Entry::of(&self.arena, cell), other.arena.number(other_cell))
        })
    }

    /// A prefetch of a member and its leaf.
    pub(super) fn prefetch(&self, member: &[u8]) -> Prefetch<'_, N> {
        Prefetch::new(&self.members, &self.arena, Some(&self.order), member)
    }

    pub(super) fn update(
        &mut self,
        member: &[u8],
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> (Option<f64>, Option<f64>) {
        let hash = self.members.hash(member);
        let found = self.find(hash, member);
        let before = found.map(|cell| self.arena.number(cell));
        let Some(after) = decide(before) else { return (before, before) };
        debug_assert!(!after.is_nan(), "a score is never NaN");
        match (found, before) {
            (Some(cell), Some(before)) => self.rescore(hash, cell, before, after),
            _ => self.add(hash, member, after),
        }
        (before, Some(after))
    }

    pub(super) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let hash = self.members.hash(member);
        let cell = self.find(hash, member)?;
        let score = self.arena.number(cell);
        let entry_path = self.order.locate(&self.arena, cell);
        self.order.remove(&self.arena, &entry_path);
        self.discard(hash, cell);
        self.tidy(1);
        Some(score)
    }

    pub(super) fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let cell = self.find(self.members.hash(member), member)?;
        Some((self.order.rank(&self.arena, cell), self.arena.number(cell)))
    }

    /// The entries at `positions`, which must be within the set.
    pub(super) fn range(&self, positions: Range<usize>) -> Iter<'_, N> {
        Iter::new(&self.arena, &self.order, positions)
    }

    /// The number of scores below `score`, or at most `score` if `equal`.
    pub(super) fn count_scores(&self, score: f64, equal: bool) -> usize {
        let key = if equal { SearchKey::beyond_all(score) } else { SearchKey::before_all(score) };
        self.order.count_before(&self.arena, &key)
    }

    /// The number of members below `member`, or at most `member` if `equal`, where all scores are the first one's.
    pub(super) fn count_members(&self, member: &[u8], equal: bool) -> usize {
        let Some(first) = self.range(0..self.len().min(1)).next() else { return 0 };
        let key = if equal { SearchKey::behind(first.score, member) } else { SearchKey::at(first.score, member) };
        self.order.count_before(&self.arena, &key)
    }

    /// A set of the entries that are not at `positions`, which must be within the set.
    pub(super) fn without(&self, positions: Range<usize>) -> Self {
        let kept = self.range(0..positions.start).chain(self.range(positions.end..self.len()));
        Large::from_sorted(kept, self.members.hashing())
    }

    /// Removes the entries at `positions`, which must be within the set.
    pub(super) fn remove_range(&mut self, positions: Range<usize>) {
        let mut left = positions.len();
        let (mut removed, mut hashes) = (Vec::with_capacity(left.min(N)), Vec::with_capacity(left.min(N)));
        while left > 0 {
            self.order.remove_some(&self.arena, positions.start, left, &mut removed);
            left -= removed.len();
            // Hashes first: the cells are far apart, and their fetches overlap as none waits for another.
            hashes.extend(removed.iter().map(|&cell| self.members.hash(self.arena.bytes(cell))));
            for (hash, cell) in hashes.drain(..).zip(removed.drain(..)) {
                self.discard(hash, cell);
            }
        }
        self.tidy(positions.len());
    }

    /// Visits about `count` entries from a cursor on, in the index's order, which changes of scores do not affect.
    pub(super) fn scan<'a>(&'a self, cursor: u64, count: usize, mut visit: impl FnMut(Entry<'a>)) -> u64 {
        self.members.scan(cursor, count, |cell| visit(Entry::of(&self.arena, cell)))
    }

    pub(super) fn check(&self) {
        let cells = self.arena.check();
        assert_eq!(cells.len(), self.len(), "as many cells as entries");
        self.members.check(&cells, |cell| self.arena.bytes(cell));
        self.order.check(&self.arena);
    }

    fn find(&self, hash: u64, member: &[u8]) -> Option<Handle> {
        self.members.find(hash, |cell| self.arena.bytes(cell) == member)
    }

    fn add(&mut self, hash: u64, member: &[u8], score: f64) {
        let cell = self.arena.insert([member], score);
        self.members.insert(hash, cell, |cell| self.arena.bytes(cell));
        self.order.insert(&self.arena, cell);
    }

    /// Sets the score of a cell, in another cell if it needs more bytes.
    fn rescore(&mut self, hash: u64, cell: Handle, before: f64, after: f64) {
        if before.to_bits() == after.to_bits() {
            return;
        }
        let entry_path = self.order.locate(&self.arena, cell);
        let rises = sortable(after) > sortable(before);
        if self.arena.set_number(cell, after) {
            return self.order.reposition(&self.arena, &entry_path, cell, rises);
        }
        let wider = self.arena.widen(cell, after);
        self.order.reposition(&self.arena, &entry_path, wider, rises);
        self.members.replace(hash, cell, wider);
        self.arena.release(cell);
    }

    /// Removes a cell that is no longer in the order.
    fn discard(&mut self, hash: u64, cell: Handle) {
        self.members.remove(hash, cell);
        self.arena.remove(cell);
    }

    /// Moves cells out of chunks that are being drained: some for each of `gone` removals. All cells must be in the
    /// order.
    fn tidy(&mut self, gone: usize) {
        for _ in 0..(gone.min(FEW) * MOVES).max(gone / RARELY) {
            let Some(cell) = self.arena.next_to_move() else { return };
            let entry_path = self.order.locate(&self.arena, cell);
            let copy = self.arena.duplicate(cell);
            self.order.replace(&self.arena, &entry_path, copy);
            self.members.replace(self.members.hash(self.arena.bytes(copy)), cell, copy);
            self.arena.release(cell);
        }
    }
}
