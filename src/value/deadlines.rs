//! The expiry index: when keys or fields fall due, as an exact order of (deadline, handle).
//!
//! It is not a timer wheel. A wheel finds what is due by now cheaply, but knows the next deadline only after
//! cascading, and forgets keys that were removed or moved only when it comes across them. A virtual clock wants the
//! next deadline to the millisecond, and a lock that is set and deleted a thousand times a second must leave nothing
//! behind. So this is an ordered set, in nearly the bytes of a wheel: leaves of up to [`LEAF`] sorted entries of
//! eight bytes, kept in [`SortedChunks`]. Moving a deadline is one removal and one insertion; the latter is short at
//! the end, where most belong.
//!
//! An entry is the low 32 bits of the deadline above the handle. The high bits, an *era* of 49.7 days, are in the
//! leaf's name, which is an entry below its era: a leaf never spans two eras.
//!
//! Forks copy on write ([`Fork`]): their leaves have no entries of their own, but find them
//! under the same names in the base, and copy a leaf's entries before they change it.
//!
//! Invariants: a leaf is not empty unless it is in the base, sorted, of one era, and holds exactly the entries
//! from its name to the next leaf's name; the first leaf of an era is named by the beginning of the era;
//! `sum` is the sum of all deadlines.
//!
//! Costs: everything O(log n); 8 to 12 bytes an entry. A random entry, each as likely as any other: choose a leaf,
//! then one of 256 places in it, and repeat until that place has an entry.

use super::base::{Base, Fork};
use super::sorted_chunks::{Keyed, SortedChunks};

/// The most entries that a leaf holds.
const LEAF: usize = 256;
/// A leaf with fewer entries is merged with a neighbour if possible.
const SPARSE: usize = LEAF / 4;
/// The number of entries by which the capacity of leaves grows and shrinks.
const STEP: usize = 16;

/// The deadlines of a database's keys, or of a hash's fields, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deadlines {
    leaves: SortedChunks<Leaf>,
    len: usize,
    capacity: usize,
    sum: i128,
    base: Option<Base<Deadlines>>,
}

/// The position of a deadline in the order of all: the deadline above the 32 bits of the handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SortKey(i128);

#[derive(Debug)]
struct Leaf {
    name: SortKey,
    /// The entries; none while they are in the base.
    entries: Vec<u64>,
}

impl SortKey {
    fn of(deadline_ms: i64, handle: u32) -> SortKey {
        SortKey(i128::from(deadline_ms) << 32 | i128::from(handle))
    }

    fn deadline(self) -> (i64, u32) {
        ((self.0 >> 32) as i64, self.0 as u32)
    }

    fn era(self) -> i128 {
        self.0 >> 64
    }

    /// The first position of its era.
    fn start_of_era(self) -> SortKey {
        SortKey(self.era() << 64)
    }

    fn entry(self) -> u64 {
        self.0 as u64
    }

    /// The position of an entry of its era.
    fn of_entry(self, entry: u64) -> SortKey {
        SortKey(self.start_of_era().0 | i128::from(entry))
    }
}

impl Keyed for Leaf {
    type Key = SortKey;

    fn key(&self) -> SortKey {
        self.name
    }
}

/// A clone keeps the spare capacity.
impl Clone for Leaf {
    fn clone(&self) -> Leaf {
        let mut entries = Vec::with_capacity(self.entries.capacity());
        entries.extend_from_slice(&self.entries);
        Leaf { name: self.name, entries }
    }
}

impl Leaf {
    fn deadlines(&self) -> impl Iterator<Item = (i64, u32)> {
        self.entries.iter().map(|&entry| self.name.of_entry(entry).deadline())
    }

    /// The leaf's own entries, to be changed; copied from the base first if they are still there.
    #[inline]
    fn own(&mut self, base: Option<&Base<Deadlines>>) -> &mut Vec<u64> {
        if self.entries.is_empty() {
            self.fetch(base);
        }
        &mut self.entries
    }

    #[cold]
    fn fetch(&mut self, base: Option<&Base<Deadlines>>) {
        if let Some(in_base) = base.and_then(|base| base.get().leaves.get(self.name)) {
            *self = in_base.clone();
        }
    }
}

impl Fork for Deadlines {
    fn without_parts(&self) -> Deadlines {
        let leaves = self.leaves.map(|leaf| Leaf { name: leaf.name, entries: Vec::new() });
        Deadlines { leaves, len: self.len, capacity: self.capacity, sum: self.sum, base: None }
    }

    fn set_base(&mut self, base: Option<Base<Deadlines>>) {
        self.base = base;
    }

    fn is_fork(&self) -> bool {
        self.base.is_some()
    }

    fn own_bytes(&self) -> usize {
        self.leaves.iter().map(|leaf| leaf.entries.capacity() * size_of::<u64>()).sum()
    }

    fn reclaim(&mut self, base: &mut Deadlines) {
        let mut all_shared = base.leaves.iter_mut();
        for leaf in self.leaves.iter_mut().filter(|leaf| leaf.entries.is_empty()) {
            // Both are in the same order.
            if let Some(shared) = all_shared.find(|shared| shared.name == leaf.name) {
                std::mem::swap(&mut leaf.entries, &mut shared.entries);
            }
        }
    }
}

impl Deadlines {
    /// The number of deadlines.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The earliest deadline and its handle.
    pub(crate) fn first(&self) -> Option<(i64, u32)> {
        self.here(self.leaves.first()?).deadlines().next()
    }

    /// The sum of all deadlines.
    pub(crate) fn sum(&self) -> i128 {
        self.sum
    }

    /// All deadlines with their handles, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, u32)> {
        self.leaves.iter().flat_map(|leaf| self.here(leaf).deadlines())
    }

    /// The deadlines from that time on with their handles, in order.
    pub(crate) fn iter_from(&self, deadline_ms: i64) -> impl Iterator<Item = (i64, u32)> {
        let start = SortKey::of(deadline_ms, 0);
        let first = self.leaves.back_from(start).next().map_or(start, |leaf| leaf.name);
        let deadlines = self.leaves.from(first).flat_map(|leaf| self.here(leaf).deadlines());
        deadlines.skip_while(move |(before_ms, _)| *before_ms < deadline_ms)
    }

    /// The leaf that holds the entries: this one, or the one in the base.
    fn here<'a>(&'a self, leaf: &'a Leaf) -> &'a Leaf {
        let base = self.base.as_ref().filter(|_| leaf.entries.is_empty());
        base.and_then(|base| base.get().leaves.get(leaf.name)).unwrap_or(leaf)
    }

    /// The bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.capacity * size_of::<u64>() + self.leaves.memory()
    }

    /// Adds a deadline of a handle.
    pub(crate) fn insert(&mut self, deadline_ms: i64, handle: u32) {
        self.len += 1;
        self.sum += i128::from(deadline_ms);
        self.put(SortKey::of(deadline_ms, handle));
    }

    fn put(&mut self, key: SortKey) {
        let Some(leaf) = self.leaves.floor_mut(key).filter(|leaf| leaf.name.era() == key.era()) else {
            return self.put_leaf(key.start_of_era(), vec![key.entry()]);
        };
        let (name, entries) = (leaf.name, leaf.own(self.base.as_ref()));
        let is_last = entries.last().is_none_or(|&last| last < key.entry());
        let index = if is_last { entries.len() } else { entries.partition_point(|&other| other < key.entry()) };
        if entries.len() < LEAF {
            self.capacity += grow(entries);
            entries.insert(index, key.entry());
        } else if index == LEAF {
            self.put_leaf(key, vec![key.entry()]);
        } else {
            let right = entries.split_off(LEAF / 2);
            let left_capacity = entries.capacity();
            entries.shrink_to_fit();
            self.capacity -= left_capacity - entries.capacity();
            self.put_leaf(name.of_entry(right[0]), right);
            self.put(key);
        }
    }

    /// Removes a deadline, which must exist.
    pub(crate) fn remove(&mut self, deadline_ms: i64, handle: u32) {
        let key = SortKey::of(deadline_ms, handle);
        let leaf = self.leaves.floor_mut(key).expect("a deadline is in the order");
        let (name, entries) = (leaf.name, leaf.own(self.base.as_ref()));
        let index = entries.binary_search(&key.entry()).expect("a deadline is in the order");
        entries.remove(index);
        let len = entries.len();
        self.capacity -= shrink(entries);
        self.len -= 1;
        self.sum -= i128::from(deadline_ms);
        if len < SPARSE && len.is_multiple_of(STEP) {
            self.merge_around(name, len);
        }
    }

    /// A random deadline, each as likely as any other while leaves are as full as usual; `below` returns a random
    /// number below its argument.
    pub(crate) fn random(&self, mut below: impl FnMut(usize) -> usize) -> Option<(i64, u32)> {
        const TRIES: usize = 256;
        let mut leaf = self.here(self.leaves.first()?);
        for _ in 0..TRIES {
            let Some(chosen) = self.leaves.choose(&mut below) else { continue };
            leaf = self.here(chosen);
            if let Some(found) = leaf.deadlines().nth(below(LEAF)) {
                return Some(found);
            }
        }
        leaf.deadlines().nth(below(leaf.entries.len()))
    }

    fn put_leaf(&mut self, name: SortKey, entries: Vec<u64>) {
        self.capacity += entries.capacity();
        self.leaves.insert(Leaf { name, entries });
    }

    fn take_leaf(&mut self, name: SortKey) -> Vec<u64> {
        let leaf = self.leaves.remove(name).expect("the leaf has this name");
        self.capacity -= leaf.entries.capacity();
        leaf.entries
    }

    /// Merges a leaf of `len` entries with the next one or the one before, if the two are small together.
    fn merge_around(&mut self, name: SortKey, len: usize) {
        let joins = |other: &&Leaf| other.name.era() == name.era() && self.here(other).entries.len() + len <= LEAF / 2;
        let next = self.leaves.from(name).nth(1).filter(joins).map(|next| (name, next.name));
        let before = || self.leaves.back_from(name).nth(1).filter(joins).map(|before| (before.name, name));
        if let Some((kept, lost)) = next.or_else(before) {
            // The leaf of `name` may be empty, and is not in the base.
            self.fetch(if kept == name { lost } else { kept });
            let mut lost = self.take_leaf(lost);
            let kept = &mut self.leaves.get_mut(kept).expect("the leaf has this name").entries;
            self.capacity -= kept.capacity();
            kept.reserve_exact(lost.len());
            kept.append(&mut lost);
            self.capacity += kept.capacity();
        } else if len == 0 {
            self.take_leaf(name);
            self.name_first_leaf(name.start_of_era());
        }
    }

    /// Names the first leaf of an era by the era's start, after the leaf with that name was removed.
    fn name_first_leaf(&mut self, start: SortKey) {
        let first = self.leaves.from(start).next().map(|leaf| leaf.name);
        if let Some(name) = first.filter(|name| name.era() == start.era()) {
            self.fetch(name);
            if let Some(leaf) = self.leaves.remove(name) {
                self.leaves.insert(Leaf { name: start, entries: leaf.entries });
            }
        }
    }

    /// Copies the entries of a leaf from the base if they are still there.
    fn fetch(&mut self, name: SortKey) {
        if let Some(leaf) = self.leaves.get_mut(name) {
            leaf.own(self.base.as_ref());
        }
    }

    /// A copy that has all its entries itself.
    pub(crate) fn to_whole(&self) -> Deadlines {
        let mut whole = self.clone();
        let names: Vec<SortKey> = whole.leaves.iter().map(|leaf| leaf.name).collect();
        names.into_iter().for_each(|name| whole.fetch(name));
        whole.base = None;
        whole
    }

    /// A form of this whose clones share its contents until they change them.
    pub(crate) fn to_fork(&self) -> Deadlines {
        Deadlines::fork(Base::of(self.to_whole()))
    }

    /// Panics unless the invariants hold.
    pub(crate) fn check(&self) {
        self.leaves.check();
        assert_eq!(self.iter().count(), self.len);
        assert_eq!(self.iter().map(|(deadline_ms, _)| i128::from(deadline_ms)).sum::<i128>(), self.sum);
        let leaves = || self.leaves.iter().map(|leaf| self.here(leaf));
        assert_eq!(leaves().map(|leaf| leaf.entries.capacity()).sum::<usize>(), self.capacity);
        assert!(self.iter().is_sorted_by(|one, other| one < other), "deadlines are out of order");
        let mut last_era = None;
        for Leaf { name, entries } in leaves() {
            assert!(
                entries.first().is_some_and(|&first| first >= name.entry()),
                "a leaf holds an entry before its name"
            );
            let is_first = last_era != Some(name.era());
            assert!(!is_first || *name == name.start_of_era(), "the first leaf of an era does not begin with it");
            assert!(entries.len() <= LEAF);
            last_era = Some(name.era());
        }
    }
}

/// Makes room for one more entry, and returns by how much the capacity grew.
fn grow(leaf: &mut Vec<u64>) -> usize {
    let before = leaf.capacity();
    if leaf.len() == before {
        leaf.reserve_exact(STEP);
    }
    leaf.capacity() - before
}

/// Gives unused capacity back, and returns by how much the capacity shrank.
fn shrink(leaf: &mut Vec<u64>) -> usize {
    let before = leaf.capacity();
    if before - leaf.len() >= 3 * STEP {
        leaf.shrink_to(leaf.len() + STEP);
    }
    before - leaf.capacity()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn agree(deadlines: &Deadlines, model: &BTreeSet<(i64, u32)>) {
        deadlines.check();
        assert_eq!(deadlines.first(), model.first().copied());
        assert!(deadlines.iter().eq(model.iter().copied()));
    }

    #[test]
    fn a_million_equal_lifetimes_cost_under_nine_bytes_each() {
        let mut deadlines = Deadlines::default();
        (0..1_000_000).for_each(|handle| deadlines.insert(1_800_000_000_000 + i64::from(handle / 300), handle));
        deadlines.check();
        assert!(deadlines.memory() < 9_000_000, "{} bytes", deadlines.memory());
    }

    #[test]
    fn every_deadline_is_chosen_about_as_often_as_any_other() {
        let mut deadlines = Deadlines::default();
        assert_eq!(deadlines.random(|_| 0), None);
        // Most fall due close together, some far away: a random choice by time would find nearly only those.
        (0..900).for_each(|handle| deadlines.insert(i64::from(handle), handle));
        (900..1000).for_each(|handle| deadlines.insert(i64::from(handle) << 32, handle));
        let (mut generator, mut counts) = (fastrand::Rng::with_seed(1), [0; 1000]);
        for _ in 0..200_000 {
            let (_, handle) = deadlines.random(|bound| generator.usize(..bound)).expect("there are some");
            counts[handle as usize] += 1;
        }
        let near = counts[..900].iter().sum::<u32>();
        assert!((170_000..190_000).contains(&near), "{near} of 200,000 choices fell on nine tenths");
    }

    #[test]
    fn postponing_deadlines_again_and_again_leaves_no_garbage() {
        let mut deadlines = Deadlines::default();
        (0..10_000).for_each(|handle| deadlines.insert(i64::from(handle), handle));
        for round in 0..20 {
            for step in 0..10_000 {
                let handle = step * 7919 % 10_000;
                deadlines.remove(round * 10_000 + i64::from(handle), handle);
                deadlines.insert((round + 1) * 10_000 + i64::from(handle), handle);
            }
        }
        deadlines.check();
        assert_eq!(deadlines.len(), 10_000);
        assert!(deadlines.memory() < 140_000, "{} bytes", deadlines.memory());
        (0..10_000).for_each(|handle| deadlines.remove(200_000 + i64::from(handle), handle));
        assert_eq!((deadlines.memory(), deadlines.first()), (0, None));
    }

    #[test]
    fn deadlines_of_all_ages_keep_their_order() {
        let mut deadlines = Deadlines::default();
        let all = [0, 1, -1, i64::MIN, i64::MAX, i64::MAX / 2, 1 << 32, (1 << 32) - 1, -(1 << 32), 1 << 48];
        (0..).zip(all).for_each(|(handle, deadline_ms)| deadlines.insert(deadline_ms, handle));
        agree(&deadlines, &all.into_iter().zip(0..).collect());
    }

    proptest! {
        #[test]
        fn deadlines_are_in_the_order_of_a_sorted_set(
            steps in prop::collection::vec((0u8..3, any::<i64>(), 0u32..64, 1u16..400), 0..40),
        ) {
            let (mut deadlines, mut model) = (Deadlines::default(), BTreeSet::new());
            for (kind, start, shift, many) in steps {
                for step in 0..many {
                    let chosen = ((start >> shift).wrapping_add(i64::from(step) * 977 % 331), u32::from(step));
                    if kind < 2 && model.insert(chosen) {
                        deadlines.insert(chosen.0, chosen.1);
                    } else if kind == 2 && let Some(&found) = model.range(chosen..).next().or(model.first()) {
                        model.remove(&found);
                        deadlines.remove(found.0, found.1);
                    }
                }
                agree(&deadlines, &model);
            }
        }
    }
}
