//! A packed node: items of a list in one packed list, and the size that Redis's listpack of them would have.
//!
//! - Invariant: `len` is the packed list's, and `size` is [`crate::value::listpack::EMPTY`] and the cost of each item.
//! - A node of a fork that is still in its base ([`PackedNode::in_base`]) has its length, no items, and its index in
//!   the base as `size`. A walk over nodes reads the lengths of both kinds in the same way.
//!
//! Both are kept outside the packed list's allocation, so that a walk over nodes need not read it.

use super::End;
use crate::value::item::{Item, Sequence};
use crate::value::listpack::{EMPTY, cost};
use crate::value::packed_list::{self, PackedList};
use std::ops::Range;

#[derive(Clone)]
pub(super) struct PackedNode {
    items: PackedList,
    len: u32,
    size: u32,
}

impl Default for PackedNode {
    fn default() -> PackedNode {
        PackedNode { items: PackedList::default(), len: 0, size: EMPTY as u32 }
    }
}

impl PackedNode {
    /// A node of some items, with nothing to spare; `None` if it may have no room for them.
    pub(super) fn build<'a>(items: impl Sequence<'a>) -> Option<PackedNode> {
        let (items, size) = PackedList::build_measured(items)?;
        Some(PackedNode { len: items.len() as u32, size: size as u32, items })
    }

    /// A stand-in for the node at an index of the base, of any kind, with that many items.
    pub(super) fn in_base(at: u32, len: usize) -> PackedNode {
        PackedNode { items: PackedList::default(), len: len as u32, size: at }
    }

    /// The index in the base, if this is a stand-in.
    #[inline]
    pub(super) fn base_index(&self) -> Option<usize> {
        (self.bytes().is_empty() && self.len > 0).then_some(self.size as usize)
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// The number of bytes that Redis's listpack of the items would have.
    pub(super) fn size(&self) -> usize {
        self.size as usize
    }

    pub(super) fn memory(&self) -> usize {
        self.items.memory()
    }

    /// The bytes of the items.
    pub(super) fn bytes(&self) -> &[u8] {
        self.items.view().bytes()
    }

    /// The item at a position that exists.
    pub(super) fn get(&self, position: usize) -> Item<'_> {
        self.items.get(position)
    }

    /// The items at positions that exist.
    pub(super) fn range(&self, positions: Range<usize>) -> packed_list::Iter<'_> {
        self.items.range(positions)
    }

    /// The positions of the items with these bytes among `positions`, which must exist, in the order of a search from
    /// an end.
    pub(super) fn matches<'a>(
        &'a self,
        bytes: &'a [u8],
        positions: Range<usize>,
        from: End,
    ) -> packed_list::Matches<'a> {
        self.items.view().matches(bytes, positions, from == End::Tail)
    }

    /// Whether one more item can be added.
    pub(super) fn has_room(&self, item: Item<'_>) -> bool {
        self.items.has_room(item.len())
    }

    pub(super) fn insert(&mut self, position: usize, item: Item<'_>) {
        self.items.insert(position, item);
        self.count(1, cost(item));
    }

    pub(super) fn replace(&mut self, position: usize, item: Item<'_>) {
        let before = cost(self.items.get(position));
        self.items.replace(position, item);
        self.size = self.size - before as u32 + cost(item) as u32;
    }

    /// Removes the items at positions that exist. Those that stay are measured if they are fewer than those that go.
    pub(super) fn remove(&mut self, positions: Range<usize>) {
        self.size = if positions.len() <= self.len() / 2 {
            self.size - self.cost(positions.clone())
        } else {
            EMPTY as u32 + self.cost(0..positions.start) + self.cost(positions.end..self.len())
        };
        self.len -= positions.len() as u32;
        self.items.remove(positions);
    }

    /// The bytes that the items at some positions take in a listpack.
    fn cost(&self, positions: Range<usize>) -> u32 {
        self.items.range(positions).map(cost).sum::<usize>() as u32
    }

    /// Splits off the items from a position on.
    pub(super) fn split_off(&mut self, position: usize) -> PackedNode {
        let mut rest = PackedNode::default();
        rest.append(self, position..self.len());
        rest.items.shrink();
        self.remove(position..self.len());
        rest
    }

    /// Appends items of another packed node.
    pub(super) fn append(&mut self, other: &PackedNode, positions: Range<usize>) {
        for item in other.range(positions) {
            self.insert(self.len(), item);
        }
    }

    /// Panics unless the invariant holds.
    pub(super) fn check(&self) {
        self.items.check();
        assert_eq!(self.len(), self.items.len());
        assert_eq!(self.size(), EMPTY + self.items.iter().map(cost).sum::<usize>());
    }

    fn count(&mut self, items: u32, bytes: usize) {
        self.len += items;
        self.size += bytes as u32;
    }
}
