//! The levels above the leaves: each branch lists up to `N` nodes of the level below, with how many entries each holds.
//!
//! ```text
//! separators[0..len]:  first entry of the node (sortable score u64, cell u32), node u32
//! counts[0..len]: entries below the node, u32, kept apart so that a prefix sum adds several an instruction
//! ```
//!
//! - Invariant: a separator is the first entry of its node; separators ascend; `counts[i]` is the sum of the counts of
//!   node `i`.

use super::row::Row;
use super::search_key::SearchKey;
use crate::value::arena::{Arena, Handle};
use std::ops::Range;

#[derive(Clone, Default)]
pub(super) struct Branch<const N: usize> {
    separators: Row<Separator, N>,
    counts: Row<u32, N>,
}

/// A branch's information about a node below it.
#[derive(Clone, Copy, Default)]
pub(super) struct Separator {
    /// The sortable score of the first entry.
    pub(super) score: u64,
    pub(super) cell: Handle,
    pub(super) node: u32,
}

impl<const N: usize> Branch<N> {
    pub(super) fn len(&self) -> usize {
        self.separators.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.separators.is_full()
    }

    pub(super) fn separator(&self, at: usize) -> Separator {
        self.separators[at]
    }

    pub(super) fn set_separator(&mut self, at: usize, score: u64, cell: Handle) {
        (self.separators[at].score, self.separators[at].cell) = (score, cell);
    }

    pub(super) fn count(&self, at: usize) -> usize {
        self.counts[at] as usize
    }

    pub(super) fn set_count(&mut self, at: usize, count: usize) {
        self.counts[at] = count as u32;
    }

    /// The number of entries in the first `end` nodes.
    pub(super) fn counts_before(&self, end: usize) -> usize {
        self.counts[..end].iter().fold(0_u32, |sum, count| sum.wrapping_add(*count)) as usize
    }

    /// The number of entries in all nodes.
    pub(super) fn total(&self) -> usize {
        self.counts_before(self.len())
    }

    /// The node that the search key leads to: the last whose first entry is not behind it, or the first. It bisects
    /// by scores alone, without branches that the processor would have to predict, and reads cells only for equal
    /// scores. Both ends, where a queue works, are tried before.
    pub(super) fn child(&self, arena: &Arena, key: &SearchKey<'_>) -> usize {
        let rivals = &self.separators[1..];
        let below = match rivals {
            [first, ..] if first.score > key.score => return 0,
            [.., last] if last.score < key.score => return rivals.len(),
            _ => rivals.partition_point(|separator| separator.score < key.score),
        };
        if rivals.get(below).is_none_or(|separator| separator.score != key.score) {
            return below;
        }
        let reached = |separator: &Separator| separator.score == key.score && key.reaches(arena, separator.cell);
        below + rivals[below..].partition_point(reached)
    }

    /// The node with the entry at `position`, and the position within it.
    pub(super) fn child_at(&self, mut position: usize) -> (usize, usize) {
        for (at, &count) in self.counts.iter().enumerate() {
            match position.checked_sub(count as usize) {
                Some(rest) => position = rest,
                None => return (at, position),
            }
        }
        unreachable!("counts cover every position")
    }

    pub(super) fn insert(&mut self, at: usize, separator: Separator, count: usize) {
        self.separators.insert(at, &[separator]);
        self.counts.insert(at, &[count as u32]);
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.separators.remove(at..at + 1);
        self.counts.remove(at..at + 1);
    }

    /// Moves nodes into a branch of their own.
    pub(super) fn take(&mut self, range: Range<usize>) -> Branch<N> {
        Branch { separators: self.separators.take(range.clone()), counts: self.counts.take(range) }
    }

    /// Appends another branch's nodes. There must be room.
    pub(super) fn append(&mut self, other: &Branch<N>) {
        self.separators.insert(self.separators.len(), &other.separators);
        self.counts.insert(self.counts.len(), &other.counts);
    }
}
