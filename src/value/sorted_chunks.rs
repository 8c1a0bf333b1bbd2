//! A sorted sequence in chunks: it holds the blocks of a stream, its groups, their consumers and pending entries, and
//! the leaves of an expiry index.
//!
//! Items that are [`Keyed`] are sorted by their keys. For those whose order is not a key that can be copied, such as
//! a name, the `_by` methods take a function that compares an item with the one searched for.
//!
//! ```text
//! chunks:  [ 3 5 9 ]  [ 12 13 20 21 ]  [ 22 40 ]      each of at most 64 items, none empty
//! ```
//!
//! Most items come at the end and go at the beginning, so these are fast; in between, a change moves the items of one
//! chunk. Chunks that have become small are joined with a neighbour.
//!
//! - Invariant: keys ascend strictly, within chunks and from chunk to chunk; no chunk is empty or longer than 64.
//!
//! Costs: both ends O(1) amortised; any other position O(log n) to find, and a change there moves at most 64 items,
//! and every 32nd time the handles of the chunks behind it. Memory is known exactly: no item has a node of its own.
//!
//! Source: unrolled linked lists (Shao, Reppy, Appel 1994), with an array in place of the links.

use std::cmp::Ordering;
use std::collections::VecDeque;

/// The most items of a chunk.
const CHUNK: usize = 64;

/// An item with a key that determines its position.
pub(super) trait Keyed {
    type Key: Copy + Ord;

    fn key(&self) -> Self::Key;
}

/// Items in the order of their keys, no two of which are equal.
#[derive(Debug)]
pub(super) struct SortedChunks<T> {
    chunks: VecDeque<Vec<T>>,
    len: usize,
    /// The total capacity of all chunks, in items.
    room: usize,
}

impl<T> Default for SortedChunks<T> {
    fn default() -> SortedChunks<T> {
        SortedChunks { chunks: VecDeque::new(), len: 0, room: 0 }
    }
}

impl<T: Clone> Clone for SortedChunks<T> {
    fn clone(&self) -> SortedChunks<T> {
        let chunks = self.chunks.clone();
        let room = chunks.iter().map(Vec::capacity).sum();
        SortedChunks { chunks, len: self.len, room }
    }
}

impl<T: Keyed> SortedChunks<T> {
    pub(super) fn get(&self, key: T::Key) -> Option<&T> {
        let (chunk, place) = self.find(key);
        place.ok().map(|at| &self.chunks[chunk][at])
    }

    pub(super) fn get_mut(&mut self, key: T::Key) -> Option<&mut T> {
        let (chunk, place) = self.find(key);
        place.ok().map(|at| &mut self.chunks[chunk][at])
    }

    /// The last item whose key is not greater than `key`.
    pub(super) fn floor_mut(&mut self, key: T::Key) -> Option<&mut T> {
        if self.last().is_some_and(|last| last.key() <= key) {
            return self.last_mut();
        }
        let (chunk, at) = self.behind(key);
        self.chunks.get_mut(chunk)?[..at].last_mut()
    }

    /// Inserts an item; false, and nothing happens, if there is one with its key.
    pub(super) fn insert(&mut self, item: T) -> bool {
        let key = item.key();
        self.insert_by(item, |other| other.key().cmp(&key))
    }

    /// Removes the item with that key.
    pub(super) fn remove(&mut self, key: T::Key) -> Option<T> {
        self.remove_by(|item| item.key().cmp(&key))
    }

    /// The items from `key` on.
    pub(super) fn from(&self, key: T::Key) -> impl Iterator<Item = &T> {
        let (chunk, place) = self.find(key);
        self.walk(chunk, place.unwrap_or_else(|at| at))
    }

    /// The items from the last one whose key is not greater than `key`, or from the first if there is none.
    pub(super) fn walk_from(&self, key: T::Key) -> impl Iterator<Item = &T> {
        let (chunk, at) = self.behind(key);
        self.walk(chunk, at.saturating_sub(1))
    }

    /// The items up to `key`, the last first.
    pub(super) fn back_from(&self, key: T::Key) -> impl Iterator<Item = &T> {
        let (chunk, at) = self.behind(key);
        let part = self.chunks.get(chunk).map_or(&[][..], |items| &items[..at]);
        part.iter()
            .rev()
            .chain(self.chunks.range(..chunk.min(self.chunks.len())).rev().flat_map(|items| items.iter().rev()))
    }

    /// The chunk of a key, and its position there or the position to insert it at.
    fn find(&self, key: T::Key) -> (usize, Result<usize, usize>) {
        self.find_by(|item| item.key().cmp(&key))
    }

    /// The chunk of the last item not behind a key, and the position behind that item; 0 if there is none.
    fn behind(&self, key: T::Key) -> (usize, usize) {
        let chunk = self.chunk_of(|item| item.key().cmp(&key));
        (chunk, self.chunks.get(chunk).map_or(0, |items| items.partition_point(|item| item.key() <= key)))
    }

    /// Panics unless the invariants hold.
    pub(super) fn check(&self) {
        self.check_chunks();
        assert!(self.iter().map(Keyed::key).is_sorted_by(|one, next| one < next), "keys ascend");
    }
}

impl<T> SortedChunks<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of its allocations, not counting those of the items.
    pub(super) fn memory(&self) -> usize {
        self.chunks.capacity() * size_of::<Vec<T>>() + self.room * size_of::<T>()
    }

    pub(super) fn first(&self) -> Option<&T> {
        self.chunks.front()?.first()
    }

    pub(super) fn first_mut(&mut self) -> Option<&mut T> {
        self.chunks.front_mut()?.first_mut()
    }

    pub(super) fn last(&self) -> Option<&T> {
        self.chunks.back()?.last()
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut T> {
        self.chunks.back_mut()?.last_mut()
    }

    /// The item that `order` finds equal.
    pub(super) fn get_by(&self, order: impl Fn(&T) -> Ordering) -> Option<&T> {
        let (chunk, place) = self.find_by(order);
        place.ok().map(|at| &self.chunks[chunk][at])
    }

    /// The item that `order` finds equal, for changing.
    pub(super) fn get_mut_by(&mut self, order: impl Fn(&T) -> Ordering) -> Option<&mut T> {
        let (chunk, place) = self.find_by(order);
        place.ok().map(|at| &mut self.chunks[chunk][at])
    }

    /// Inserts an item at the position that `order` gives; false, and nothing happens, if there is an equal one.
    pub(super) fn insert_by(&mut self, item: T, order: impl Fn(&T) -> Ordering) -> bool {
        if self.last().is_none_or(|last| order(last).is_lt()) {
            self.push(item);
            return true;
        }
        let (mut chunk, place) = self.find_by(order);
        let Err(mut at) = place else { return false };
        if self.chunks[chunk].len() == CHUNK {
            self.split(chunk);
            if at > CHUNK / 2 {
                (chunk, at) = (chunk + 1, at - CHUNK / 2);
            }
        }
        self.make_room(chunk);
        self.chunks[chunk].insert(at, item);
        self.len += 1;
        true
    }

    /// Removes the item that `order` finds equal.
    pub(super) fn remove_by(&mut self, order: impl Fn(&T) -> Ordering) -> Option<T> {
        let (chunk, Ok(at)) = self.find_by(order) else { return None };
        let item = self.chunks[chunk].remove(at);
        self.len -= 1;
        self.merge_small(chunk);
        Some(item)
    }

    /// All items.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.chunks.iter().flatten()
    }

    /// Items that are each made from one of these, in the same order and with the same spare capacity.
    pub(super) fn map(&self, make: impl Fn(&T) -> T) -> SortedChunks<T> {
        let made = |items: &Vec<T>| {
            let mut made = Vec::with_capacity(items.capacity());
            made.extend(items.iter().map(&make));
            made
        };
        SortedChunks { chunks: self.chunks.iter().map(made).collect(), len: self.len, room: self.room }
    }

    /// All items, for changes that keep their order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chunks.iter_mut().flatten()
    }

    /// A random item, each as likely as any other, or none: then the caller tries again.
    pub(super) fn choose(&self, below: &mut impl FnMut(usize) -> usize) -> Option<&T> {
        let chunk = match self.chunks.len() {
            0 => return None,
            1 => return self.chunks[0].get(below(self.len)),
            chunks => below(chunks),
        };
        self.chunks[chunk].get(below(CHUNK))
    }

    fn walk(&self, chunk: usize, at: usize) -> impl Iterator<Item = &T> {
        let part = self.chunks.get(chunk).map_or(&[][..], |items| &items[at..]);
        part.iter().chain(self.chunks.range((chunk + 1).min(self.chunks.len())..).flatten())
    }

    /// The chunk of an item, and its position there or the position to insert it at.
    fn find_by(&self, order: impl Fn(&T) -> Ordering) -> (usize, Result<usize, usize>) {
        let chunk = self.chunk_of(&order);
        let place = self.chunks.get(chunk).map_or(Err(0), |items| items.binary_search_by(&order));
        (chunk, place)
    }

    fn chunk_of(&self, order: impl Fn(&T) -> Ordering) -> usize {
        self.chunks.partition_point(|items| order(&items[0]).is_le()).saturating_sub(1)
    }

    fn push(&mut self, item: T) {
        if self.chunks.back().is_none_or(|items| items.len() == CHUNK) {
            if self.chunks.is_empty() {
                self.chunks.reserve_exact(1);
            }
            self.chunks.push_back(Vec::new());
        }
        let chunk = self.chunks.len() - 1;
        self.make_room(chunk);
        self.chunks[chunk].push(item);
        self.len += 1;
    }

    /// Makes room for one more item in a chunk: a full one doubles its capacity.
    fn make_room(&mut self, chunk: usize) {
        let items = &mut self.chunks[chunk];
        if items.len() == items.capacity() {
            self.room -= items.capacity();
            items.reserve_exact(items.len().clamp(1, CHUNK - items.len()));
            self.room += items.capacity();
        }
    }

    fn split(&mut self, chunk: usize) {
        let behind = self.chunks[chunk].split_off(CHUNK / 2);
        self.room += behind.capacity();
        self.chunks.insert(chunk + 1, behind);
    }

    /// Restores the chunks after a removal: an empty chunk is removed, a small one joined with a neighbour.
    fn merge_small(&mut self, chunk: usize) {
        let len = self.chunks[chunk].len();
        if len == 0 {
            self.drop_chunk(chunk);
        } else if len < CHUNK / 4 {
            let joins = |one: usize| {
                self.chunks.get(one + 1).is_some_and(|next| self.chunks[one].len() + next.len() <= CHUNK / 2)
            };
            match [Some(chunk), chunk.checked_sub(1)].into_iter().flatten().find(|&one| joins(one)) {
                Some(one) => self.join(one),
                None => self.shrink(chunk),
            }
        }
    }

    fn drop_chunk(&mut self, chunk: usize) {
        if let Some(items) = self.chunks.remove(chunk) {
            self.room -= items.capacity();
        }
        if self.chunks.len() * 4 <= self.chunks.capacity() {
            self.chunks.shrink_to(self.chunks.len() * 2);
        }
    }

    /// Appends the items of the next chunk to one.
    fn join(&mut self, one: usize) {
        let Some(mut behind) = self.chunks.remove(one + 1) else { return };
        self.room -= behind.capacity() + self.chunks[one].capacity();
        self.chunks[one].reserve_exact(behind.len());
        self.chunks[one].append(&mut behind);
        self.room += self.chunks[one].capacity();
    }

    fn shrink(&mut self, chunk: usize) {
        let items = &mut self.chunks[chunk];
        if items.len() * 4 <= items.capacity() {
            self.room -= items.capacity();
            items.shrink_to(items.len() * 2);
            self.room += items.capacity();
        }
    }

    /// Panics unless the invariants hold, apart from the order of the items.
    pub(super) fn check_chunks(&self) {
        assert_eq!(self.iter().count(), self.len);
        assert_eq!(self.chunks.iter().map(Vec::capacity).sum::<usize>(), self.room);
        assert!(
            self.chunks.iter().all(|items| (1..=CHUNK).contains(&items.len())),
            "runs have items, and not too many"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    impl Keyed for u64 {
        type Key = u64;

        fn key(&self) -> u64 {
            *self
        }
    }

    fn all<'a>(items: impl Iterator<Item = &'a u64>) -> Vec<u64> {
        items.copied().collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        #[test]
        fn chunks_hold_what_a_tree_holds(steps in prop::collection::vec((0..400_u64, 0..5_u8), 0..1500)) {
            let (mut chunks, mut tree) = (SortedChunks::default(), BTreeSet::new());
            for (number, kind) in steps {
                if kind < 3 {
                    prop_assert_eq!(chunks.insert(number), tree.insert(number));
                } else {
                    prop_assert_eq!(chunks.remove(number).is_some(), tree.remove(&number));
                }
                chunks.check();
                prop_assert_eq!(chunks.get(number).is_some(), tree.contains(&number));
                prop_assert_eq!(chunks.floor_mut(number).copied(), tree.range(..=number).next_back().copied());
                prop_assert_eq!(all(chunks.from(number)), tree.range(number..).copied().collect::<Vec<_>>());
                prop_assert_eq!(all(chunks.back_from(number)), tree.range(..=number).rev().copied().collect::<Vec<_>>());
                let floor = tree.range(..=number).next_back().copied().unwrap_or(0);
                prop_assert_eq!(all(chunks.walk_from(number)), tree.range(floor..).copied().collect::<Vec<_>>());
            }
            chunks.clone().check();
        }
    }

    #[test]
    fn items_inserted_in_order_fill_their_chunks() {
        let mut chunks = SortedChunks::default();
        (0..6400).for_each(|number| _ = chunks.insert(number));
        assert_eq!((chunks.chunks.len(), chunks.room), (100, 6400));
    }
}
