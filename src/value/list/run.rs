//! A run: some items of a list in one strip, and the size that a listpack of them has.
//!
//! - Invariant: `len` is the strip's, and `size` is [`crate::value::listpack::EMPTY`] and the cost of each item.
//!
//! Both stand beside the strip's allocation, so that a walk over nodes need not look into it.

use crate::value::item::Item;
use crate::value::listpack::{EMPTY, cost};
use crate::value::strip::{self, Strip};
use std::ops::Range;

#[derive(Clone)]
pub(super) struct Run {
    strip: Strip,
    len: u32,
    size: u32,
}

impl Default for Run {
    fn default() -> Run {
        Run { strip: Strip::default(), len: 0, size: EMPTY as u32 }
    }
}

impl Run {
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Bytes that a listpack of the items has.
    pub(super) fn size(&self) -> usize {
        self.size as usize
    }

    pub(super) fn memory(&self) -> usize {
        self.strip.memory()
    }

    /// The item at a position that exists.
    pub(super) fn get(&self, position: usize) -> Item<'_> {
        self.strip.get(position)
    }

    /// The items at positions that exist.
    pub(super) fn range(&self, positions: Range<usize>) -> strip::Iter<'_> {
        self.strip.range(positions)
    }

    /// Whether one more item can be added.
    pub(super) fn has_room(&self, item: Item<'_>) -> bool {
        self.strip.has_room(item.len())
    }

    pub(super) fn insert(&mut self, position: usize, item: Item<'_>) {
        self.strip.insert(position, item);
        self.count(1, cost(item));
    }

    pub(super) fn replace(&mut self, position: usize, item: Item<'_>) {
        let before = cost(self.strip.get(position));
        self.strip.replace(position, item);
        self.size = self.size - before as u32 + cost(item) as u32;
    }

    /// Removes the items at positions that exist.
    pub(super) fn remove(&mut self, positions: Range<usize>) {
        let costs: usize = self.strip.range(positions.clone()).map(cost).sum();
        self.len -= positions.len() as u32;
        self.size -= costs as u32;
        self.strip.remove(positions);
    }

    /// Takes the items from a position on.
    pub(super) fn split_off(&mut self, position: usize) -> Run {
        let mut rest = Run::default();
        rest.append(self, position..self.len());
        rest.strip.shrink();
        self.remove(position..self.len());
        rest
    }

    /// Puts some items of another run at the end.
    pub(super) fn append(&mut self, other: &Run, positions: Range<usize>) {
        for item in other.range(positions) {
            self.insert(self.len(), item);
        }
    }

    /// Panics unless the invariant holds.
    pub(super) fn check(&self) {
        self.strip.check();
        assert_eq!(self.len(), self.strip.len());
        assert_eq!(self.size(), EMPTY + self.strip.iter().map(cost).sum::<usize>());
    }

    fn count(&mut self, items: u32, bytes: usize) {
        self.len += items;
        self.size += bytes as u32;
    }
}
