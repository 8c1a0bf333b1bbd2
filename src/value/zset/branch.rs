//! The levels above the leaves: each branch lists up to `N` nodes of the level below, with how many entries each holds.
//!
//! ```text
//! signs[0..len]:  first entry of the node (sortable score u64, cell u32), node u32
//! counts[0..len]: entries below the node, u32, on their own so that a prefix sums at a few numbers an instruction
//! ```
//!
//! - Invariant: a sign is the first entry of its node; signs ascend; `counts[i]` is the sum of the counts of node `i`.

use super::arena::{Arena, Handle};
use super::probe::Probe;
use super::row::Row;
use std::ops::Range;

#[derive(Clone, Default)]
pub(super) struct Branch<const N: usize> {
    signs: Row<Sign, N>,
    counts: Row<u32, N>,
}

/// What a branch says of a node below it.
#[derive(Clone, Copy, Default)]
pub(super) struct Sign {
    /// The sortable score of the first entry.
    pub(super) score: u64,
    pub(super) cell: Handle,
    pub(super) node: u32,
}

impl<const N: usize> Branch<N> {
    pub(super) fn len(&self) -> usize {
        self.signs.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.signs.is_full()
    }

    pub(super) fn sign(&self, at: usize) -> Sign {
        self.signs[at]
    }

    pub(super) fn set_sign(&mut self, at: usize, score: u64, cell: Handle) {
        (self.signs[at].score, self.signs[at].cell) = (score, cell);
    }

    pub(super) fn count(&self, at: usize) -> usize {
        self.counts[at] as usize
    }

    pub(super) fn set_count(&mut self, at: usize, count: usize) {
        self.counts[at] = count as u32;
    }

    /// Entries below the first `end` nodes.
    pub(super) fn counts_before(&self, end: usize) -> usize {
        self.counts[..end].iter().fold(0_u32, |sum, count| sum.wrapping_add(*count)) as usize
    }

    /// Entries below all nodes.
    pub(super) fn total(&self) -> usize {
        self.counts_before(self.len())
    }

    /// The node that the probe leads to: the last whose first entry is not behind it, or the first. Bisects by scores
    /// alone, which asks no branch of the processor to be guessed, and looks into cells only among equal ones.
    pub(super) fn child(&self, arena: &Arena, probe: &Probe<'_>) -> usize {
        let rivals = &self.signs[1..];
        let below = rivals.partition_point(|sign| sign.score < probe.score);
        if rivals.get(below).is_none_or(|sign| sign.score != probe.score) {
            return below;
        }
        let reached = |sign: &Sign| sign.score == probe.score && probe.reaches(arena, sign.cell);
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

    pub(super) fn insert(&mut self, at: usize, sign: Sign, count: usize) {
        self.signs.insert(at, &[sign]);
        self.counts.insert(at, &[count as u32]);
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.signs.remove(at..at + 1);
        self.counts.remove(at..at + 1);
    }

    /// Takes nodes out, into a branch of their own.
    pub(super) fn take(&mut self, range: Range<usize>) -> Branch<N> {
        Branch { signs: self.signs.take(range.clone()), counts: self.counts.take(range) }
    }

    /// Puts another branch's nodes behind these. There must be room.
    pub(super) fn append(&mut self, other: &Branch<N>) {
        self.signs.insert(self.signs.len(), &other.signs);
        self.counts.insert(self.counts.len(), &other.counts);
    }
}
