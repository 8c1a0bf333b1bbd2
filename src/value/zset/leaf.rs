//! The lowest level of the order: up to `N` handles in order, each with four bytes that approximate its score.
//!
//! ```text
//! frame: origin, shift | previous, next | len | (mark u32, cell u32)[0..len]      N = 60: 512 bytes
//! ```
//!
//! A search compares marks and reads a cell only where marks are equal. A mark is the score's bits, in an
//! order-keeping form, without the part that the leaf's scores have in common:
//!
//! - Invariant: `mark = (sortable(score) >> shift) - origin` for each slot, exactly. So `a < b` in score implies
//!   `mark(a) <= mark(b)`, and a frame is made coarser by arithmetic on marks alone, without reading the cells.
//! - A frame is chosen with room on both sides; a score outside makes it coarser, at most 32 times in a leaf's life.
//!   Where a coarse frame no longer distinguishes slots, it is computed anew from the cells ([`Leaf::refine`]).
//!
//! Costs: a search counts the marks below its own, all of them: no cache line of the leaf is chosen by the contents
//! of another, so they are fetched at once, and no branch is mispredicted. A leaf that is not in the processor's
//! cache is searched in the time of one fetch; bisection waits for four, one after the other. A change moves at most
//! 480 bytes.

use super::row::Row;
use super::search_key::{SearchKey, sortable};
use crate::value::arena::{Arena, Handle};
use crate::value::slab::NONE;
use std::ops::Range;

/// A frame spreads the scores it is chosen for over at most this many bits, which leaves three times as much room
/// outside them.
const SPREAD_BITS: u32 = 30;
/// The number of slots in a cache line.
const LINE_SLOTS: usize = 64 / size_of::<Slot>();
/// With fewer marks per slot than this, a frame is too coarse.
const COARSE: u32 = 4;

#[derive(Clone)]
#[repr(C)]
pub(super) struct Leaf<const N: usize> {
    frame: Frame,
    pub(super) previous: u32,
    pub(super) next: u32,
    slots: Row<Slot, N>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    mark: u32,
    cell: Handle,
}

/// Maps scores to marks.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
struct Frame {
    origin: u64,
    shift: u32,
}

impl Frame {
    /// The finest frame for sortable scores from `low` to `high`, but none finer than `least_shift`.
    fn spanning(low: u64, high: u64, least_shift: u32) -> Frame {
        let needed = (64 - (high - low).leading_zeros()).saturating_sub(SPREAD_BITS);
        let shift = needed.max(least_shift);
        Frame { origin: (low >> shift).saturating_sub(1 << SPREAD_BITS), shift }
    }

    fn covers(&self, score: u64) -> bool {
        (score >> self.shift).checked_sub(self.origin).is_some_and(|mark| mark <= u64::from(u32::MAX))
    }

    /// The mark of a sortable score; the nearest mark for one outside the frame.
    fn mark(&self, score: u64) -> u32 {
        let mark = (score >> self.shift).saturating_sub(self.origin);
        mark.min(u64::from(u32::MAX)) as u32
    }

    /// The least sortable score with a mark.
    fn score(&self, mark: u32) -> u64 {
        (self.origin + u64::from(mark)) << self.shift
    }
}

impl<const N: usize> Leaf<N> {
    pub(super) fn new() -> Leaf<N> {
        Leaf { frame: Frame::default(), previous: NONE, next: NONE, slots: Row::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.slots.is_full()
    }

    pub(super) fn cell(&self, at: usize) -> Handle {
        self.slots[at].cell
    }

    pub(super) fn first(&self) -> Option<Handle> {
        self.slots.first().map(|slot| slot.cell)
    }

    pub(super) fn cells(&self, range: Range<usize>) -> impl Iterator<Item = Handle> {
        self.slots[range].iter().map(|slot| slot.cell)
    }

    /// A byte of each of its cache lines, so that they are loaded.
    pub(super) fn touch_line(&self) -> u8 {
        self.slots.iter().step_by(LINE_SLOTS).fold(0, |sum, slot| sum ^ slot.mark as u8)
    }

    /// The number of cells before the search key.
    pub(super) fn lower(&self, arena: &Arena, key: &SearchKey<'_>) -> usize {
        let mark = self.frame.mark(key.score);
        let start = self.below(mark);
        start + within_ties(arena, key, mark, &self.slots[start..])
    }

    /// The number of cells before the search key without the one at `at`, whose score rises.
    pub(super) fn place_above(&self, arena: &Arena, key: &SearchKey<'_>, at: usize) -> usize {
        let mark = self.frame.mark(key.score);
        let above = &self.slots[at + 1..];
        let below = above.iter().take_while(|slot| slot.mark < mark).count();
        at + below + within_ties(arena, key, mark, &above[below..])
    }

    /// The number of cells before the search key, if the score of the one at `at` falls.
    pub(super) fn place_below(&self, arena: &Arena, key: &SearchKey<'_>, at: usize) -> usize {
        let mark = self.frame.mark(key.score);
        let below = &self.slots[..at];
        let start = at - below.iter().rev().take_while(|slot| slot.mark >= mark).count();
        start + within_ties(arena, key, mark, &below[start..])
    }

    /// The position of a cell that is in this leaf.
    pub(super) fn find(&self, cell: Handle, score: u64) -> usize {
        let start = self.below(self.frame.mark(score));
        let within = self.slots[start..].iter().position(|slot| slot.cell == cell);
        start + within.expect("a cell is at the position of its score")
    }

    /// The number of slots with a mark below `mark`.
    fn below(&self, mark: u32) -> usize {
        let count = |sum: u32, slot: &Slot| sum.wrapping_add(u32::from(slot.mark < mark));
        self.slots.iter().fold(0, count) as usize
    }

    /// Inserts a cell before position `at`. There must be room.
    pub(super) fn insert(&mut self, at: usize, cell: Handle, score: u64) {
        let mark = self.fit(score);
        self.slots.insert(at, &[Slot { mark, cell }]);
    }

    pub(super) fn remove(&mut self, range: Range<usize>) {
        self.slots.remove(range);
    }

    /// Moves the slot at `from` to `to`, with a new score and possibly another cell.
    pub(super) fn reposition(&mut self, from: usize, to: usize, cell: Handle, score: u64) {
        if from == to {
            self.slots[to] = Slot { mark: self.fit(score), cell };
        } else {
            self.remove(from..from + 1);
            self.insert(to, cell, score);
        }
    }

    pub(super) fn set_cell(&mut self, at: usize, cell: Handle) {
        self.slots[at].cell = cell;
    }

    /// Moves the slots in `range` to another leaf, before its position `at`. There must be room.
    pub(super) fn give(&mut self, range: Range<usize>, to: &mut Leaf<N>, at: usize) {
        let mut slots = self.slots.take(range);
        if to.slots.is_empty() {
            to.frame = self.frame;
        } else if let (true, Some(first), Some(last)) = (to.frame != self.frame, slots.first(), slots.last()) {
            to.widen(self.frame.score(first.mark), self.frame.score(last.mark), self.frame.shift);
            slots.iter_mut().for_each(|slot| slot.mark = to.frame.mark(self.frame.score(slot.mark)));
        }
        to.slots.insert(at, &slots);
    }

    /// Computes the frame anew from the cells if it is too coarse to distinguish them.
    pub(super) fn refine(&mut self, arena: &Arena) {
        let (Some(first), Some(last)) = (self.slots.first(), self.slots.last()) else { return };
        if self.frame.shift == 0 || last.mark - first.mark > COARSE * N as u32 {
            return;
        }
        let score = |cell| sortable(arena.number(cell));
        self.frame = Frame::spanning(score(first.cell), score(last.cell), 0);
        for slot in self.slots.iter_mut() {
            slot.mark = self.frame.mark(score(slot.cell));
        }
    }

    /// Panics unless each mark follows from its score.
    pub(super) fn check(&self, arena: &Arena) {
        for slot in self.slots.iter() {
            let score = sortable(arena.number(slot.cell));
            assert!(self.frame.covers(score) && self.frame.mark(score) == slot.mark, "a mark follows from its score");
        }
    }

    /// The mark for a score, in a frame that is widened to cover it.
    fn fit(&mut self, score: u64) -> u32 {
        if self.slots.is_empty() {
            self.frame = Frame::spanning(score, score, 0);
        } else if !self.frame.covers(score) {
            self.widen(score, score, 0);
        }
        self.frame.mark(score)
    }

    /// Makes the frame cover `low..=high` in addition to its slots, no finer than `least_shift`.
    fn widen(&mut self, low: u64, high: u64, least_shift: u32) {
        let old = self.frame;
        if old.shift >= least_shift && old.covers(low) && old.covers(high) {
            return;
        }
        let (Some(first), Some(last)) = (self.slots.first(), self.slots.last()) else { return };
        let low = low.min(old.score(first.mark));
        let high = high.max(old.score(last.mark));
        self.frame = Frame::spanning(low, high, least_shift.max(old.shift));
        self.slots.iter_mut().for_each(|slot| slot.mark = self.frame.mark(old.score(slot.mark)));
    }
}

/// The number of the slots with that mark, which come first, that are before the search key.
fn within_ties(arena: &Arena, key: &SearchKey<'_>, mark: u32, slots: &[Slot]) -> usize {
    let ties = slots.iter().take_while(|slot| slot.mark == mark).count();
    slots[..ties].partition_point(|slot| key.is_after(arena, slot.cell))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf_of(scores: &[f64]) -> (Arena, Leaf<60>) {
        let (mut arena, mut leaf) = (Arena::default(), Leaf::new());
        for (at, &score) in scores.iter().enumerate() {
            leaf.insert(at, arena.insert([b""], score), sortable(score));
        }
        leaf.check(&arena);
        (arena, leaf)
    }

    #[test]
    fn a_leaf_of_sixty_entries_takes_512_bytes() {
        assert_eq!(size_of::<Leaf<60>>(), 512);
    }

    #[test]
    fn scores_that_are_timestamps_have_distinct_marks() {
        let scores: Vec<f64> = (0..60).map(|i| 1_783_012_441_000.0 + f64::from(i) * 1000.0).collect();
        let (_, leaf) = leaf_of(&scores);
        let marks: std::collections::BTreeSet<u32> = leaf.slots.iter().map(|slot| slot.mark).collect();
        assert_eq!(marks.len(), 60);
    }

    #[test]
    fn a_search_in_a_leaf_finds_the_position_of_every_score() {
        let scores = [f64::NEG_INFINITY, -1e300, -2.0, 0.0, 0.0, 5e-324, 1.0, 2.0, 1e300, f64::INFINITY];
        let (arena, leaf) = leaf_of(&scores);
        for score in scores {
            let place = scores.iter().filter(|other| **other < score).count();
            assert_eq!(leaf.lower(&arena, &SearchKey::before_all(score)), place);
        }
    }

    #[test]
    fn a_frame_too_coarse_to_distinguish_scores_is_recomputed() {
        let scores: Vec<f64> = (0..30).map(|i| 1.0 + f64::from(i) / 1e12).chain([1e300]).collect();
        let (arena, mut leaf) = leaf_of(&scores);
        assert_eq!(leaf.slots[0].mark, leaf.slots[29].mark);
        leaf.remove(30..31);
        leaf.refine(&arena);
        leaf.check(&arena);
        assert!(leaf.slots.windows(2).all(|pair| pair[0].mark < pair[1].mark));
    }

    #[test]
    fn slots_keep_their_order_between_leaves_of_different_frames() {
        let (mut arena, mut low) = leaf_of(&[1.0, 1.000_001, 1.000_002]);
        let mut high = Leaf::<60>::new();
        for (at, score) in [1e9, 1e18].into_iter().enumerate() {
            high.insert(at, arena.insert([b""], score), sortable(score));
        }
        low.give(1..3, &mut high, 0);
        assert_eq!((low.len(), high.len()), (1, 4));
        low.check(&arena);
        high.check(&arena);
    }
}
