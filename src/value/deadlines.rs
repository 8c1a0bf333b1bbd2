//! When keys or fields fall due: an exact order of (deadline, handle).
//!
//! Not a wheel. A timer wheel answers "what is due by now" cheaply, but knows the next deadline only after cascading, and
//! forgets keys that were removed or moved only when it stumbles over them. A virtual clock wants the next deadline to
//! the millisecond, and a lock that is set and deleted a thousand times a second must leave nothing behind. So this is
//! an ordered set, in nearly the bytes of a wheel: leaves of up to [`LEAF`] sorted entries of eight bytes, found by a
//! B-tree over their first entries. Moving a deadline is one removal and one insertion, about a tenth of a microsecond.
//!
//! An entry is the low 32 bits of the deadline above the handle. The high bits, an *era* of 49.7 days, are in the
//! leaf's name: a leaf never spans two eras.
//!
//! Invariants: a leaf is not empty, sorted, of one era, and holds exactly the entries from its name to the next leaf's
//! name; the first leaf of an era is named 0; `names` holds the name of every leaf once, at the leaf's `place`; `sum` is
//! the sum of all deadlines.
//!
//! Costs: everything O(log n); 8 to 10 bytes an entry. To choose one at random, each as likely as any other, a leaf is
//! chosen and then one of 256 places in it, again and again until there is an entry.

use std::collections::BTreeMap;
use std::ops::Bound;

/// The most entries of a leaf.
const LEAF: usize = 256;
/// A leaf with fewer looks for a neighbour to merge with.
const SPARSE: usize = LEAF / 4;
/// Leaves grow and shrink by so many entries.
const STEP: usize = 16;

/// A leaf's era and first possible entry.
type Name = (i32, u64);

/// The deadlines of a database's keys, or of a hash's fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deadlines {
    leaves: BTreeMap<Name, Leaf>,
    /// The names of all leaves, in no order, so that one can be chosen by its number.
    names: Vec<Name>,
    len: usize,
    capacity: usize,
    sum: i128,
}

#[derive(Clone, Debug)]
struct Leaf {
    entries: Vec<u64>,
    /// Where its name stands in `names`.
    place: u32,
}

fn pack(deadline_ms: i64, handle: u32) -> Name {
    ((deadline_ms >> 32) as i32, (deadline_ms as u64) << 32 | u64::from(handle))
}

fn unpack((era, entry): Name) -> (i64, u32) {
    (i64::from(era) << 32 | (entry >> 32).cast_signed(), entry as u32)
}

impl Deadlines {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The earliest deadline and its handle.
    pub(crate) fn first(&self) -> Option<(i64, u32)> {
        let (&(era, _), leaf) = self.leaves.first_key_value()?;
        Some(unpack((era, leaf.entries[0])))
    }

    /// The sum of all deadlines.
    pub(crate) fn sum(&self) -> i128 {
        self.sum
    }

    /// All of them in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, u32)> {
        self.leaves.iter().flat_map(|(&(era, _), leaf)| leaf.entries.iter().map(move |&entry| unpack((era, entry))))
    }

    /// The bytes of memory held. The B-tree's nodes are not ours to see; they are taken to be two thirds full.
    pub(crate) fn memory(&self) -> usize {
        self.capacity * size_of::<u64>()
            + self.leaves.len() * size_of::<(Name, Leaf)>() * 3 / 2
            + self.names.capacity() * size_of::<Name>()
    }

    /// Adds a deadline.
    pub(crate) fn insert(&mut self, deadline_ms: i64, handle: u32) {
        let (era, entry) = pack(deadline_ms, handle);
        self.len += 1;
        self.sum += i128::from(deadline_ms);
        let Some((&name, leaf)) = self.leaves.range_mut((era, 0)..=(era, entry)).next_back() else {
            self.put_leaf((era, 0), vec![entry]);
            return;
        };
        let leaf = &mut leaf.entries;
        let index = leaf.partition_point(|&other| other < entry);
        if leaf.len() < LEAF {
            self.capacity += grow(leaf);
            leaf.insert(index, entry);
        } else if index == LEAF {
            self.put_leaf((era, entry), vec![entry]);
        } else {
            let right = leaf.split_off(LEAF / 2);
            let left_capacity = leaf.capacity();
            leaf.shrink_to_fit();
            self.capacity -= left_capacity - leaf.capacity();
            self.put_leaf((name.0, right[0]), right);
            (self.len, self.sum) = (self.len - 1, self.sum - i128::from(deadline_ms));
            self.insert(deadline_ms, handle);
        }
    }

    /// Takes a deadline out that is there.
    pub(crate) fn remove(&mut self, deadline_ms: i64, handle: u32) {
        let (era, entry) = pack(deadline_ms, handle);
        let found = self.leaves.range_mut((era, 0)..=(era, entry)).next_back();
        let (&name, leaf) = found.expect("a deadline is in the order");
        let leaf = &mut leaf.entries;
        let index = leaf.binary_search(&entry).expect("a deadline is in the order");
        leaf.remove(index);
        self.capacity -= shrink(leaf);
        self.len -= 1;
        self.sum -= i128::from(deadline_ms);
        if leaf.len() < SPARSE {
            self.merge_around(name);
        }
    }

    /// One of them, each as likely as any other while leaves are as full as they usually are; `below` is chance.
    pub(crate) fn random(&self, mut below: impl FnMut(usize) -> usize) -> Option<(i64, u32)> {
        const TRIES: usize = 256;
        let mut chosen = None;
        for _ in 0..TRIES.min(TRIES * self.names.len()) {
            let name = self.names[below(self.names.len())];
            let entries = &self.leaves[&name].entries;
            if let Some(&entry) = entries.get(below(LEAF)) {
                return Some(unpack((name.0, entry)));
            }
            chosen = Some((name.0, entries));
        }
        chosen.map(|(era, entries)| unpack((era, entries[below(entries.len())])))
    }

    fn put_leaf(&mut self, name: Name, entries: Vec<u64>) {
        self.capacity += entries.capacity();
        if self.names.len() == self.names.capacity() {
            self.names.reserve_exact(1 + self.names.len() / 4);
        }
        self.leaves.insert(name, Leaf { entries, place: self.names.len() as u32 });
        self.names.push(name);
    }

    fn take_leaf(&mut self, name: Name) -> Vec<u64> {
        let Leaf { entries, place } = self.leaves.remove(&name).expect("the name of a leaf");
        self.names.swap_remove(place as usize);
        if let Some(moved) = self.names.get(place as usize) {
            self.leaves.get_mut(moved).expect("the name of a leaf").place = place;
        }
        if self.names.is_empty() {
            self.names = Vec::new();
        }
        self.capacity -= entries.capacity();
        entries
    }

    /// Lets a sparse leaf take in the next one, or the one before take in it, if the two are small together.
    fn merge_around(&mut self, name: Name) {
        let (era, _) = name;
        let len = self.leaves[&name].entries.len();
        let is_small = |(_, other): &(&Name, &Leaf)| other.entries.len() + len <= LEAF / 2;
        let behind = (Bound::Excluded(name), Bound::Included((era, u64::MAX)));
        let next = self.leaves.range(behind).next().filter(is_small).map(|(&next, _)| (name, next));
        let before =
            || self.leaves.range((era, 0)..name).next_back().filter(is_small).map(|(&before, _)| (before, name));
        if let Some((kept, lost)) = next.or_else(before) {
            let mut lost = self.take_leaf(lost);
            let kept = &mut self.leaves.get_mut(&kept).expect("the name of a leaf").entries;
            self.capacity -= kept.capacity();
            kept.reserve_exact(lost.len());
            kept.append(&mut lost);
            self.capacity += kept.capacity();
        } else if len == 0 {
            self.take_leaf(name);
            self.name_first_leaf(era);
        }
    }

    /// Names the first leaf of an era 0, when the one that was is gone.
    fn name_first_leaf(&mut self, era: i32) {
        let first = self.leaves.range((era, 0)..=(era, u64::MAX)).next().map(|(&name, _)| name);
        if let Some(name) = first
            && let Some(leaf) = self.leaves.remove(&name)
        {
            self.names[leaf.place as usize] = (era, 0);
            self.leaves.insert((era, 0), leaf);
        }
    }

    /// Proves the invariants.
    pub(crate) fn check(&self) {
        assert_eq!(self.iter().count(), self.len);
        assert_eq!(self.iter().map(|(deadline_ms, _)| i128::from(deadline_ms)).sum::<i128>(), self.sum);
        assert_eq!(self.leaves.values().map(|leaf| leaf.entries.capacity()).sum::<usize>(), self.capacity);
        assert_eq!(self.names.len(), self.leaves.len());
        assert!(self.leaves.iter().all(|(name, leaf)| self.names[leaf.place as usize] == *name), "a name is misplaced");
        assert!(self.iter().is_sorted_by(|one, other| one < other), "deadlines are out of order");
        let mut last_era = None;
        for (&(era, from), leaf) in &self.leaves {
            assert!(leaf.entries.first().is_some_and(|&first| first >= from), "a leaf holds what is before it");
            assert!(last_era == Some(era) || from == 0, "the first leaf of an era is not named 0");
            assert!(leaf.entries.len() <= LEAF);
            last_era = Some(era);
        }
    }
}

/// Makes room for one more entry and returns by how much the capacity grew.
fn grow(leaf: &mut Vec<u64>) -> usize {
    let before = leaf.capacity();
    if leaf.len() == before {
        leaf.reserve_exact(STEP);
    }
    leaf.capacity() - before
}

/// Gives room back that is no longer needed and returns by how much the capacity shrank.
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
        // Most fall due close together, some far away: a choice by time would find nearly only those.
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
    fn deadlines_that_are_pushed_on_and_on_leave_nothing_behind() {
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
        fn the_order_is_that_of_a_sorted_set(
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
