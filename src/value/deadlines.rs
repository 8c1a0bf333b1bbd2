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
//! name; the first leaf of an era is named 0; `sum` is the sum of all deadlines.
//!
//! Costs: everything O(log n); 8 to 10 bytes an entry.

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
    leaves: BTreeMap<Name, Vec<u64>>,
    len: usize,
    capacity: usize,
    sum: i128,
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
        Some(unpack((era, leaf[0])))
    }

    /// The sum of all deadlines.
    pub(crate) fn sum(&self) -> i128 {
        self.sum
    }

    /// All of them in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, u32)> {
        self.leaves.iter().flat_map(|(&(era, _), leaf)| leaf.iter().map(move |&entry| unpack((era, entry))))
    }

    /// The bytes of memory held. The B-tree's nodes are not ours to see; they are taken to be two thirds full.
    pub(crate) fn memory(&self) -> usize {
        self.capacity * size_of::<u64>() + self.leaves.len() * size_of::<(Name, Vec<u64>)>() * 3 / 2
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
        let index = leaf.binary_search(&entry).expect("a deadline is in the order");
        leaf.remove(index);
        self.capacity -= shrink(leaf);
        self.len -= 1;
        self.sum -= i128::from(deadline_ms);
        if leaf.len() < SPARSE {
            self.merge_around(name);
        }
    }

    fn put_leaf(&mut self, name: Name, leaf: Vec<u64>) {
        self.capacity += leaf.capacity();
        self.leaves.insert(name, leaf);
    }

    /// Lets a sparse leaf take in the next one, or the one before take in it, if the two are small together.
    fn merge_around(&mut self, name: Name) {
        let (era, _) = name;
        let len = self.leaves[&name].len();
        let is_small = |(_, other): &(&Name, &Vec<u64>)| other.len() + len <= LEAF / 2;
        let behind = (Bound::Excluded(name), Bound::Included((era, u64::MAX)));
        let next = self.leaves.range(behind).next().filter(is_small).map(|(&next, _)| (name, next));
        let before =
            || self.leaves.range((era, 0)..name).next_back().filter(is_small).map(|(&before, _)| (before, name));
        if let Some((kept, lost)) = next.or_else(before) {
            let mut lost = self.leaves.remove(&lost).expect("the name of a leaf");
            let kept = self.leaves.get_mut(&kept).expect("the name of a leaf");
            self.capacity -= lost.capacity() + kept.capacity();
            kept.reserve_exact(lost.len());
            kept.append(&mut lost);
            self.capacity += kept.capacity();
        } else if len == 0 {
            let lost = self.leaves.remove(&name).expect("the name of a leaf");
            self.capacity -= lost.capacity();
            self.name_first_leaf(era);
        }
    }

    /// Names the first leaf of an era 0, when the one that was is gone.
    fn name_first_leaf(&mut self, era: i32) {
        let first = self.leaves.range((era, 0)..=(era, u64::MAX)).next().map(|(&name, _)| name);
        if let Some(name) = first
            && let Some(leaf) = self.leaves.remove(&name)
        {
            self.leaves.insert((era, 0), leaf);
        }
    }

    /// Proves the invariants.
    pub(crate) fn check(&self) {
        assert_eq!(self.iter().count(), self.len);
        assert_eq!(self.iter().map(|(deadline_ms, _)| i128::from(deadline_ms)).sum::<i128>(), self.sum);
        assert_eq!(self.leaves.values().map(Vec::capacity).sum::<usize>(), self.capacity);
        assert!(self.iter().is_sorted_by(|one, other| one < other), "deadlines are out of order");
        let mut last_era = None;
        for (&(era, from), leaf) in &self.leaves {
            assert!(leaf.first().is_some_and(|&first| first >= from), "a leaf holds what is before it");
            assert!(last_era == Some(era) || from == 0, "the first leaf of an era is not named 0");
            assert!(leaf.len() <= LEAF);
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
