//! Entries of a large set in order, from both ends.
//!
//! Cells of neighbours are far apart, and each takes a fetch from memory. So entries are read a few ahead, in a short
//! loop of which the processor runs several iterations at once, and not one by one between two steps of the caller.
//!
//! - Invariant: the entries still to come are `front[..]`, then `positions`, then `back[..]` reversed.
//! - Costs: an end is sought, in O(log n), when it is first used; then O(1) an entry.

use super::Entry;
use super::order::{LeafCursor, Order};
use crate::value::arena::Arena;
use std::ops::Range;

/// The number of entries that are read at once.
const AHEAD: usize = 8;

#[derive(Clone)]
pub(super) struct Iter<'a, const N: usize> {
    arena: &'a Arena,
    order: &'a Order<N>,
    /// The positions that neither end has read.
    positions: Range<usize>,
    front: End<'a>,
    back: End<'a>,
}

/// The entries that one end has read ahead, and its progress in them.
#[derive(Clone)]
struct End<'a> {
    cursor: Option<LeafCursor>,
    read: [Entry<'a>; AHEAD],
    waiting: Range<usize>,
}

impl<'a> End<'a> {
    fn new() -> End<'a> {
        End { cursor: None, read: [Entry { member: &[], score: 0.0 }; AHEAD], waiting: 0..0 }
    }

    /// The next of the entries that this end has read.
    fn take_first(&mut self) -> Option<Entry<'a>> {
        self.waiting.next().map(|at| self.read[at])
    }

    /// The last of the entries that this end has read: the next for the other end, once it has come that far.
    fn take_last(&mut self) -> Option<Entry<'a>> {
        self.waiting.next_back().map(|at| self.read[at])
    }
}

impl<'a, const N: usize> Iter<'a, N> {
    /// The entries at `positions`, which must be within the set.
    pub(super) fn new(arena: &'a Arena, order: &'a Order<N>, positions: Range<usize>) -> Self {
        Iter { arena, order, positions, front: End::new(), back: End::new() }
    }

    fn read_front(&mut self) {
        let count = self.positions.len().min(AHEAD);
        for read in &mut self.front.read[..count] {
            let cursor = match self.front.cursor {
                Some(cursor) => self.order.next(cursor),
                None => self.order.seek(self.positions.start),
            };
            self.front.cursor = Some(cursor);
            *read = Entry::of(self.arena, self.order.cell(cursor));
        }
        self.positions.start += count;
        self.front.waiting = 0..count;
    }

    fn read_back(&mut self) {
        let count = self.positions.len().min(AHEAD);
        for read in &mut self.back.read[..count] {
            let cursor = match self.back.cursor {
                Some(cursor) => self.order.previous(cursor),
                None => self.order.seek(self.positions.end - 1),
            };
            self.back.cursor = Some(cursor);
            *read = Entry::of(self.arena, self.order.cell(cursor));
        }
        self.positions.end -= count;
        self.back.waiting = 0..count;
    }
}

impl<'a, const N: usize> Iterator for Iter<'a, N> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        if self.front.waiting.is_empty() {
            self.read_front();
        }
        self.front.take_first().or_else(|| self.back.take_last())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.front.waiting.len() + self.positions.len() + self.back.waiting.len();
        (left, Some(left))
    }
}

impl<const N: usize> DoubleEndedIterator for Iter<'_, N> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.back.waiting.is_empty() {
            self.read_back();
        }
        self.back.take_first().or_else(|| self.front.take_last())
    }
}

impl<const N: usize> ExactSizeIterator for Iter<'_, N> {}
