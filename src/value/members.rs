//! The members of one collection, found by their hashes, and the guard of those hashes.
//!
//! An [`Index`] that reports a flood is built again over the same cells with a keyed function ([`Hashing`]), in O(n);
//! only the order changes. That happens once to a collection that an adversary fills, and by chance to none. It is
//! done at once, not incrementally, because a single command may bring a million members, each of which would be
//! slower to insert than the one before.
//!
//! - Invariant: every cell is indexed under the hash that the function in force gives its member.
//! - A cursor contains how often the function had changed. A scan whose cursor has another function than the one in
//!   force starts again, since the members it has seen are spread over the new order; so it sees each member that
//!   stays.
//!
//! Costs: those of the index, and a comparison for each hash.

use crate::value::arena::Handle;
use crate::value::base::{Base, Fork};
use crate::value::hashing::{Hashing, quick};

use crate::value::index::{self, CURSOR_BITS, Index};
use fastrand::Rng;
use std::ops::ControlFlow;

/// If the other collection has this many times as many members, each member is looked up there; otherwise both are
/// walked together.
const SKEW: usize = 5;

#[derive(Clone)]
pub(super) struct Members {
    index: Index,
    hashing: Hashing,
}

impl Fork for Members {
    fn without_parts(&self) -> Members {
        Members { index: self.index.without_parts(), hashing: self.hashing }
    }

    fn set_base(&mut self, base: Option<Base<Members>>) {
        self.index.set_base(base.map(|base| base.part(|members| &members.index)));
    }

    fn is_fork(&self) -> bool {
        self.index.is_fork()
    }

    fn own_bytes(&self) -> usize {
        self.index.own_bytes()
    }

    fn reclaim(&mut self, base: &mut Members) {
        self.index.reclaim(&mut base.index);
    }
}

impl Members {
    /// An empty index with room for `len` members.
    pub(super) fn with_room(len: usize, hashing: Hashing) -> Members {
        Members { index: Index::with_room(len), hashing }
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn memory(&self) -> usize {
        self.index.memory()
    }

    /// The hash function in force.
    pub(super) fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// The hash of a member, valid until the next insertion.
    #[inline]
    pub(super) fn hash(&self, member: &[u8]) -> u64 {
        self.hashing.hash(member)
    }

    /// The cell with this hash for which `is_wanted` holds.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_wanted: impl Fn(Handle) -> bool) -> Option<Handle> {
        self.index.find(hash, is_wanted)
    }

    /// A byte of each line that [`Members::find`] reads first, so that these are loaded.
    pub(super) fn touch_lines(&self, hash: u64) -> u8 {
        self.index.touch_lines(hash)
    }

    /// Adds a cell that is not in the index. `member_of` returns the member of any cell, this one included.
    pub(super) fn insert<'a>(&mut self, hash: u64, cell: Handle, member_of: impl Fn(Handle) -> &'a [u8]) {
        let hashing = self.hashing;
        if self.index.insert(hash, cell, |cell| hashing.hash(member_of(cell))).is_err() {
            self.guard(cell, member_of);
        }
    }

    /// Changes to the next hash function, and indexes all cells and `added` by it.
    #[cold]
    fn guard<'a>(&mut self, added: Handle, member_of: impl Fn(Handle) -> &'a [u8]) {
        let cells: Vec<Handle> = self.index.cells().chain([added]).collect();
        loop {
            self.hashing = self.hashing.next();
            let hash_of = |cell| self.hashing.hash(member_of(cell));
            let mut index = Index::with_room(cells.len());
            if cells.iter().all(|&cell| index.insert(hash_of(cell), cell, hash_of).is_ok()) {
                self.index = index;
                return;
            }
        }
    }

    /// Replaces a cell by another one with the same hash.
    pub(super) fn replace(&mut self, hash: u64, old: Handle, cell: Handle) {
        self.index.replace(hash, old, cell);
    }

    pub(super) fn remove(&mut self, hash: u64, cell: Handle) {
        self.index.remove(hash, cell);
    }

    /// Every cell once, in no meaningful order.
    pub(super) fn cells(&self) -> impl Iterator<Item = Handle> + Clone {
        self.index.cells()
    }

    /// Whether [`Members::common`] can walk both, and takes less time than to look up each of these members: the same
    /// hash function is in force, and `other` is not many times as large.
    pub(super) fn may_be_merged_with(&self, other: &Members) -> bool {
        other.len() <= self.len().saturating_mul(SKEW) && self.are_ordered_as(other)
    }

    /// Whether the same hash function is in force in both.
    fn are_ordered_as(&self, other: &Members) -> bool {
        match (self.hashing, other.hashing) {
            (Hashing::Quick { .. }, Hashing::Quick { .. }) => true,
            (one, other) => one == other,
        }
    }

    /// Visits the cells that, by `is_same`, have an equal cell among `other`'s, which must be ordered as these, each
    /// with that cell, until `visit` breaks off. It hashes nothing, and compares cells only when their tags are equal.
    pub(super) fn common(
        &self,
        other: &Members,
        is_same: impl Fn(Handle, Handle) -> bool,
        visit: impl FnMut(Handle, Handle) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        debug_assert!(self.are_ordered_as(other));
        self.index.common(&other.index, is_same, visit)
    }

    /// A random cell, each as likely as another; there must be one.
    pub(super) fn random(&self, generator: &mut Rng) -> Handle {
        self.index.random(generator)
    }

    /// Visits about `count` cells from a cursor on, 0 to start, and returns the next cursor, 0 when done.
    pub(super) fn scan(&self, cursor: u64, count: usize, visit: impl FnMut(Handle)) -> u64 {
        let generation = u64::from(self.hashing.generation());
        match self.index.scan(place_in(cursor, generation), count, visit) {
            0 => 0,
            next => generation << CURSOR_BITS | next,
        }
    }

    /// Panics unless the invariants hold for exactly these cells.
    pub(super) fn check<'a>(&self, cells: &[Handle], member_of: impl Fn(Handle) -> &'a [u8]) {
        self.index.check(cells, |cell| self.hash(member_of(cell)));
    }
}

/// [`Members::scan`] over entries that are in no index, as if they were indexed by the quick function.
pub(super) fn scan_unindexed<'a, T>(
    entries: impl Iterator<Item = T>,
    member_of: impl Fn(&T) -> &'a [u8],
    cursor: u64,
    count: usize,
    visit: impl FnMut(T),
) -> u64 {
    let hashed = entries.map(|entry| (quick(member_of(&entry)), entry));
    index::scan_unindexed(hashed, place_in(cursor, 0), count, visit)
}

/// The place that a cursor names in the order of that generation; the first if the cursor is of another generation.
fn place_in(cursor: u64, generation: u64) -> u64 {
    let is_ours = cursor >> CURSOR_BITS == generation;
    if is_ours { cursor % (1 << CURSOR_BITS) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::hashing::flood;
    use std::cell::Cell;
    use std::collections::BTreeSet;

    const QUICK: Hashing = Hashing::Quick { seed: 7 };

    /// Adds the member at index `cell`.
    fn add(members: &mut Members, all: &[Vec<u8>], cell: usize) {
        let hash = members.hash(&all[cell]);
        members.insert(hash, cell as Handle, |cell| &all[cell as usize]);
    }

    fn members_of(all: &[Vec<u8>]) -> Members {
        let mut members = Members::with_room(0, QUICK);
        (0..all.len()).for_each(|cell| add(&mut members, all, cell));
        members
    }

    fn plain(count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|number| format!("member-{number}").into_bytes()).collect()
    }

    /// The most cells that are compared to find any member.
    fn most_probes(members: &Members, all: &[Vec<u8>]) -> usize {
        let probes = |member: &Vec<u8>| {
            let count = Cell::new(0);
            let found = members.find(members.hash(member), |cell| {
                count.set(count.get() + 1);
                all[cell as usize] == *member
            });
            assert!(found.is_some());
            count.get()
        };
        all.iter().map(probes).max().unwrap_or(0)
    }

    fn check(members: &Members, all: &[Vec<u8>]) {
        let cells: Vec<Handle> = (0..all.len() as Handle).collect();
        members.check(&cells, |cell| &all[cell as usize]);
    }

    #[test]
    fn members_made_to_collide_are_found_as_quickly_as_others() {
        let all: Vec<_> = flood().take(20_000).collect();
        let members = members_of(&all);
        check(&members, &all);
        assert_eq!(members.hashing(), QUICK.next());
        assert!(most_probes(&members, &all) <= 4, "{} probes", most_probes(&members, &all));
        assert!(members.memory() < 10 * all.len());
    }

    #[test]
    fn a_few_members_made_to_collide_are_noticed_among_many_others() {
        let mut all = plain(50_000);
        let mut members = members_of(&all);
        assert_eq!((members.hashing(), most_probes(&members, &all)), (QUICK, 2));
        all.extend(flood().take(20));
        (50_000..50_020).for_each(|cell| add(&mut members, &all, cell));
        assert_eq!(members.hashing(), QUICK.next());
        check(&members, &all);
    }

    #[test]
    fn members_whose_hashes_begin_alike_are_noticed_before_the_directory_grows_much() {
        let alike = |member: &Vec<u8>| quick(member) >> 56 == 0;
        let all: Vec<_> = plain(500_000).into_iter().filter(alike).collect();
        let members = members_of(&all);
        check(&members, &all);
        assert_eq!(members.hashing(), QUICK.next());
    }

    #[test]
    fn members_whose_tags_are_alike_do_not_leave_segments_empty() {
        let is_last = |member: &Vec<u8>| quick(member) >> 34 & 63 == 63;
        let all: Vec<_> = plain(500_000).into_iter().filter(is_last).collect();
        let members = members_of(&all);
        check(&members, &all);
        assert_eq!(members.hashing(), QUICK.next());
        assert!(members.memory() < 10 * all.len());
    }

    #[test]
    fn ordinary_members_keep_the_fast_hash_function_while_the_set_grows_and_shrinks() {
        for seed in 0..20 {
            let all: Vec<Vec<u8>> = (0..30_000).map(|number| format!("{seed}:{number}").into_bytes()).collect();
            let mut members = members_of(&all);
            for kept in [5_000, 300, 10, 0] {
                for (cell, member) in all.iter().enumerate().take(members.len()).skip(kept) {
                    members.remove(members.hash(member), cell as Handle);
                }
                let again = (kept * 3).min(all.len());
                (kept..again).for_each(|cell| add(&mut members, &all, cell));
                check(&members, &all[..again]);
            }
            assert_eq!(members.hashing(), QUICK);
        }
    }

    #[test]
    fn a_scan_returns_every_lasting_member_although_the_hash_function_changes_meanwhile() {
        for calls_before in [1, 7, 100, 299] {
            let mut all = plain(3_000);
            let mut members = members_of(&all);
            let (mut seen, mut cursor, mut calls) = (BTreeSet::new(), 0, 0);
            loop {
                cursor = members.scan(cursor, 10, |cell| _ = seen.insert(cell));
                calls += 1;
                if cursor == 0 {
                    break;
                }
                if calls == calls_before {
                    all.extend(flood().take(100));
                    (3_000..3_100).for_each(|cell| add(&mut members, &all, cell));
                    assert_eq!(members.hashing(), QUICK.next());
                }
            }
            assert!((0..3_000).all(|cell| seen.contains(&cell)));
            assert!(calls <= 320 + calls_before, "{calls} calls");
        }
    }

    #[test]
    fn equal_seeds_and_histories_give_equal_orders_and_other_seeds_others() {
        let all: Vec<_> = flood().take(1_000).collect();
        let order = |seed| {
            let mut members = Members::with_room(0, Hashing::Quick { seed });
            (0..all.len()).for_each(|cell| add(&mut members, &all, cell));
            members.cells().collect::<Vec<_>>()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }
}
