//! A hash table of byte cells, each found by a key that is part of it. Large hashes and sets are tables.
//!
//! ```text
//! key --hash--> index --handle--> arena: cell, of which the key is a part
//! ```
//!
//! A cell is stored once and whole, in about its own bytes and two more, and the index spends seven on it. A
//! [`Layout`] defines which part of a cell is its key. The number of a cell ([`crate::value::arena`]) is its deadline
//! in unix milliseconds; 0, for none, takes no byte.
//!
//! - Invariant: the cells of the arena and those of the index are the same set; no two keys are equal; `deadlines`
//!   are those of all cells that have one, and `None` when no cell has.
//! - A removal moves a few cells away from a chunk that holds little, so memory follows what is stored.
//!
//! Costs: look-up, change and a random cell O(1); a walk over all O(n), a cache line or two a cell; setting a cell's
//! deadline O(log n) and about 16 bytes.

use crate::value::arena::{Arena, Handle};
use crate::value::base::{Base, Fork};
use crate::value::deadlines::Deadlines;
use crate::value::hashing::Hashing;
use crate::value::members::Members;
use crate::value::prefetch::{self, Prefetch};
use either::Either;
use fastrand::Rng;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::iter;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The number of cells that a removal moves out of a chunk that is being drained.
const MOVES: usize = 4;

/// The number of cells that a walk, or [`Table::common`], prefetches together: their waits for memory overlap, and what
/// was prefetched is still in the nearest cache when it is read.
const GROUP: usize = 32;

/// The least memory of cells that a walk prefetches. Of a megabyte or two, the processor reads short cells as fast by
/// itself.
const PREFETCHED_BYTES: usize = 8 << 20;

/// Defines which part of a cell is its key.
pub(super) trait Layout {
    /// The key of a cell.
    fn key(cell: &[u8]) -> &[u8];
}

pub(super) struct Table<L> {
    arena: Arena,
    members: Members,
    deadlines: Option<Box<Deadlines>>,
    layout: PhantomData<L>,
}

/// A clone has everything itself.
impl<L> Clone for Table<L> {
    fn clone(&self) -> Self {
        let deadlines = self.deadlines.as_ref().map(|deadlines| Box::new(deadlines.to_whole()));
        Table { arena: self.arena.clone(), members: self.members.clone(), deadlines, layout: PhantomData }
    }
}

impl<L: Send + Sync + 'static> Fork for Table<L> {
    fn without_parts(&self) -> Self {
        let (arena, members) = (self.arena.without_parts(), self.members.without_parts());
        let deadlines = self.deadlines.as_ref().map(|deadlines| Box::new(deadlines.without_parts()));
        Table { arena, members, deadlines, layout: PhantomData }
    }

    fn set_base(&mut self, base: Option<Base<Self>>) {
        self.arena.set_base(base.as_ref().map(|base| base.part(|table| &table.arena)));
        self.members.set_base(base.as_ref().map(|base| base.part(|table| &table.members)));
        if let Some(deadlines) = &mut self.deadlines {
            let base = base.filter(|base| base.get().deadlines.is_some());
            let part: fn(&Self) -> &Deadlines = |table| table.deadlines.as_ref().expect("a base does not change");
            deadlines.set_base(base.map(|base| base.part(part)));
        }
    }

    fn is_fork(&self) -> bool {
        self.arena.is_fork()
    }

    fn own_bytes(&self) -> usize {
        let deadlines = self.deadlines.as_ref().map_or(0, |deadlines| deadlines.own_bytes());
        self.arena.own_bytes() + self.members.own_bytes() + deadlines
    }

    fn reclaim(&mut self, base: &mut Self) {
        self.arena.reclaim(&mut base.arena);
        self.members.reclaim(&mut base.members);
        if let (Some(deadlines), Some(shared)) = (&mut self.deadlines, &mut base.deadlines) {
            deadlines.reclaim(shared);
        }
    }
}

impl<L: Layout> Table<L> {
    /// An empty table; `seed` is the seed of its keyed hash function.
    pub(super) fn new(seed: u64) -> Table<L> {
        Table::with_room(seed, 0)
    }

    /// A table without cells, with an index that has room for that many.
    pub(super) fn with_room(seed: u64, cells: usize) -> Table<L> {
        let members = Members::with_room(cells, Hashing::Quick { seed });
        Table { arena: Arena::default(), members, deadlines: None, layout: PhantomData }
    }

    /// A table of cells whose keys differ, built without growing the index.
    pub(super) fn of_distinct<'a>(seed: u64, cells: impl ExactSizeIterator<Item = Cow<'a, [u8]>>) -> Table<L> {
        let mut table = Table::with_room(seed, cells.len());
        for cell in cells {
            table.add(table.members.hash(L::key(&cell)), [&*cell]);
        }
        table
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn memory(&self) -> usize {
        let deadlines = self.deadlines.as_ref().map_or(0, |deadlines| size_of::<Deadlines>() + deadlines.memory());
        self.arena.memory() + self.members.memory() + deadlines
    }

    /// Bytes in cells, the capacity of which is limited.
    pub(super) fn cell_bytes(&self) -> usize {
        self.arena.cell_bytes()
    }

    /// A prefetch of the cell with a key.
    pub(super) fn prefetch(&self, key: &[u8]) -> Prefetch<'_> {
        Prefetch::new(&self.members, &self.arena, None, key)
    }

    /// The cell with a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.find(self.members.hash(key), key).map(|cell| self.arena.bytes(cell))
    }

    /// The cell with a key, unless its deadline is `now_ms` or earlier.
    pub(super) fn get_at(&self, key: &[u8], now_ms: i64) -> Option<&[u8]> {
        let cell = self.find(self.members.hash(key), key).filter(|&cell| self.is_there(cell, now_ms))?;
        Some(self.arena.bytes(cell))
    }

    /// The cell with a key, unless its deadline is `now_ms` or earlier, if it is so long that it can be shared.
    pub(super) fn long_at(&self, key: &[u8], now_ms: i64) -> Option<&Arc<[u8]>> {
        let cell = self.find(self.members.hash(key), key).filter(|&cell| self.is_there(cell, now_ms))?;
        self.arena.long(cell)
    }

    /// Stores a cell without a deadline, in place of the one with its key, if any; returns whether there was none. The
    /// cell is given in parts, so that they need not be joined before.
    pub(super) fn insert<const N: usize>(&mut self, key: &[u8], cell: [&[u8]; N]) -> bool {
        self.store(key, cell, false)
    }

    /// Stores a cell in place of the one with its key, if any, and keeps that one's deadline; returns whether there
    /// was none.
    pub(super) fn update<const N: usize>(&mut self, key: &[u8], cell: [&[u8]; N]) -> bool {
        self.store(key, cell, true)
    }

    fn store<const N: usize>(&mut self, key: &[u8], cell: [&[u8]; N], keep: bool) -> bool {
        let hash = self.members.hash(key);
        let Some(old) = self.find(hash, key) else {
            self.add(hash, cell);
            return true;
        };
        let deadline_ms = if keep { self.arena.number(old) } else { 0.0 };
        let length: usize = cell.iter().map(|part| part.len()).sum();
        if self.arena.bytes(old).len() == length && self.arena.number(old) == deadline_ms {
            self.arena.overwrite(old, cell);
        } else {
            self.unlink(old);
            let handle = self.arena.insert(cell, deadline_ms);
            self.members.replace(hash, old, handle);
            self.link(handle);
            self.arena.remove(old);
            self.tidy();
        }
        false
    }

    /// The deadline of the cell with a key, 0 for none; `None` if there is no such cell.
    pub(super) fn deadline(&self, key: &[u8]) -> Option<i64> {
        self.find(self.members.hash(key), key).map(|cell| self.arena.number(cell) as i64)
    }

    /// Sets the deadline of the cell with a key, 0 for none. Nothing happens if there is no such cell.
    pub(super) fn set_deadline(&mut self, key: &[u8], deadline_ms: i64) {
        let hash = self.members.hash(key);
        let Some(cell) = self.find(hash, key) else { return };
        self.unlink(cell);
        if self.arena.set_number(cell, deadline_ms as f64) {
            self.link(cell);
        } else {
            let copy = self.arena.widen(cell, deadline_ms as f64);
            self.members.replace(hash, cell, copy);
            self.link(copy);
            self.arena.release(cell);
            self.tidy();
        }
    }

    /// The earliest deadline.
    pub(super) fn first_deadline(&self) -> Option<i64> {
        self.deadlines.as_ref()?.first().map(|(deadline_ms, _)| deadline_ms)
    }

    /// All deadlines with their cells, the earliest first.
    pub(super) fn by_deadline(&self) -> impl Iterator<Item = (i64, &[u8])> {
        let deadlines = self.deadlines.iter().flat_map(|deadlines| deadlines.iter());
        deadlines.map(|(deadline_ms, cell)| (deadline_ms, self.arena.bytes(cell)))
    }

    /// Removes the cell with a key; returns whether there was one.
    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        let hash = self.members.hash(key);
        let Some(cell) = self.find(hash, key) else { return false };
        self.remove_cell(hash, cell);
        true
    }

    /// Every cell once.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.cells().map(|cell| self.arena.bytes(cell))
    }

    /// The handle of every cell once. They are in the order of hashes, and the cells all over the memory, so those of a
    /// table that is in no cache are prefetched, group by group.
    fn cells(&self) -> impl Iterator<Item = Handle> + Clone {
        let mut cells = self.members.cells();
        if self.arena.memory() < PREFETCHED_BYTES {
            return Either::Left(cells);
        }
        let next_group = move || {
            let group: Vec<Handle> = cells.by_ref().take(GROUP).collect();
            prefetch::whole_cells(&self.arena, &group);
            (!group.is_empty()).then_some(group)
        };
        Either::Right(iter::from_fn(next_group).flatten())
    }

    /// Every cell once, each with its deadline, 0 for none.
    pub(super) fn iter_timed(&self) -> impl Iterator<Item = (&[u8], i64)> + Clone {
        self.cells().map(|cell| (self.arena.bytes(cell), self.arena.number(cell) as i64))
    }

    /// Every cell once, without those whose deadline is `now_ms` or earlier.
    pub(super) fn iter_at(&self, now_ms: i64) -> impl Iterator<Item = &[u8]> + Clone {
        self.cells().filter(move |&cell| self.is_there(cell, now_ms)).map(|cell| self.arena.bytes(cell))
    }

    /// A random cell, each as likely as another.
    pub(super) fn random(&self, generator: &mut Rng) -> Option<&[u8]> {
        (self.len() > 0).then(|| self.arena.bytes(self.members.random(generator)))
    }

    /// Visits `count` different cells, every choice of them equally likely. Fast where they are few of many.
    pub(super) fn sample<'a>(&'a self, count: usize, generator: &mut Rng, mut visit: impl FnMut(&'a [u8])) {
        let mut seen = BTreeSet::new();
        while seen.len() < count.min(self.len()) {
            let cell = self.members.random(generator);
            if seen.insert(cell) {
                visit(self.arena.bytes(cell));
            }
        }
    }

    /// Removes a random cell of a table that has one, each as likely as another, and calls `visit` with it before it
    /// is removed.
    pub(super) fn remove_random(&mut self, generator: &mut Rng, visit: impl FnOnce(&[u8])) {
        let cell = self.members.random(generator);
        let bytes = self.arena.bytes(cell);
        visit(bytes);
        let hash = self.members.hash(L::key(bytes));
        self.remove_cell(hash, cell);
    }

    /// Visits the cells that are in both tables, byte for byte, until `visit` breaks off.
    pub(super) fn common<'a>(
        &'a self,
        other: &Table<L>,
        mut visit: impl FnMut(&'a [u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.members.may_be_merged_with(&other.members) {
            return self.common_by_look_up(other, visit);
        }
        let is_same = |cell, other_cell| self.arena.bytes(cell) == other.arena.bytes(other_cell);
        self.members.common(&other.members, is_same, |cell, _| visit(self.arena.bytes(cell)))
    }

    /// [`Table::common`] where `other` is ordered otherwise or many times as large: each cell is looked up there, after
    /// the memory that a group of look-ups reads was prefetched.
    fn common_by_look_up<'a>(
        &'a self,
        other: &Table<L>,
        mut visit: impl FnMut(&'a [u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut cells = self.members.cells();
        loop {
            let group: Vec<Handle> = cells.by_ref().take(GROUP).collect();
            if group.is_empty() {
                return ControlFlow::Continue(());
            }
            prefetch::cells(&self.arena, &group);
            let cells = group.iter().map(|&cell| self.arena.bytes(cell));
            let mut prefetches: Vec<_> = cells.clone().map(|cell| other.prefetch(L::key(cell))).collect();
            Prefetch::run(&mut prefetches);
            let found = cells.zip(&prefetches).filter(|(cell, prefetch)| prefetch.finds(cell));
            found.map(|(cell, _)| cell).try_for_each(&mut visit)?;
        }
    }

    /// Visits about `count` cells from a cursor on, 0 to start, and returns the next cursor, 0 when done. A cell whose
    /// key stays from the start of a full scan to its end is visited at least once.
    pub(super) fn scan<'a>(&'a self, cursor: u64, count: usize, visit: impl FnMut(&'a [u8])) -> u64 {
        self.scan_at(cursor, count, i64::MIN, visit)
    }

    /// Like [`Table::scan`], without the cells whose deadline is `now_ms` or earlier.
    pub(super) fn scan_at<'a>(
        &'a self,
        cursor: u64,
        count: usize,
        now_ms: i64,
        mut visit: impl FnMut(&'a [u8]),
    ) -> u64 {
        // A cell whose deadline need not be read takes half the time.
        let is_timed = self.deadlines.is_some();
        self.members.scan(cursor, count, |cell| {
            if !is_timed || self.is_there(cell, now_ms) {
                visit(self.arena.bytes(cell));
            }
        })
    }

    /// Gives unused memory back, once many cells have been stored.
    pub(super) fn shrink(&mut self) {
        self.arena.shrink_to_fit();
    }

    /// Panics unless the invariants hold.
    pub(super) fn check(&self) {
        let cells = self.arena.check();
        assert_eq!(cells.len(), self.len(), "as many cells as are counted");
        self.members.check(&cells, |cell| L::key(self.arena.bytes(cell)));
        for &cell in &cells {
            let key = L::key(self.arena.bytes(cell));
            assert_eq!(self.find(self.members.hash(key), key), Some(cell), "no two keys are equal");
        }
        let deadline = |&cell: &Handle| (self.arena.number(cell) as i64, cell);
        let mut deadlines: Vec<_> = cells.iter().map(deadline).filter(|&(deadline_ms, _)| deadline_ms != 0).collect();
        deadlines.sort_unstable();
        assert_eq!(self.deadlines.is_none(), deadlines.is_empty());
        assert!(self.deadlines.iter().flat_map(|order| order.iter()).eq(deadlines), "all deadlines are in order");
    }

    fn is_there(&self, cell: Handle, now_ms: i64) -> bool {
        let deadline_ms = self.arena.number(cell) as i64;
        deadline_ms == 0 || deadline_ms > now_ms
    }

    /// Adds a cell's deadline to the order, if it has one.
    fn link(&mut self, cell: Handle) {
        let deadline_ms = self.arena.number(cell) as i64;
        if deadline_ms != 0 {
            self.deadlines.get_or_insert_default().insert(deadline_ms, cell);
        }
    }

    /// Removes a cell's deadline from the order, if it has one.
    fn unlink(&mut self, cell: Handle) {
        let deadline_ms = self.arena.number(cell) as i64;
        if deadline_ms != 0
            && let Some(deadlines) = &mut self.deadlines
        {
            deadlines.remove(deadline_ms, cell);
            if deadlines.len() == 0 {
                self.deadlines = None;
            }
        }
    }

    fn remove_cell(&mut self, hash: u64, cell: Handle) {
        self.unlink(cell);
        self.members.remove(hash, cell);
        self.arena.remove(cell);
        self.tidy();
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<Handle> {
        self.members.find(hash, |cell| L::key(self.arena.bytes(cell)) == key)
    }

    fn add<const N: usize>(&mut self, hash: u64, cell: [&[u8]; N]) {
        let handle = self.arena.insert(cell, 0.0);
        self.members.insert(hash, handle, |cell| L::key(self.arena.bytes(cell)));
    }

    /// Moves some cells out of a chunk that is being drained, if there is one.
    fn tidy(&mut self) {
        for _ in 0..MOVES {
            let Some(cell) = self.arena.next_to_move() else { return };
            let copy = self.arena.duplicate(cell);
            self.unlink(cell);
            self.link(copy);
            self.members.replace(self.members.hash(L::key(self.arena.bytes(copy))), cell, copy);
            self.arena.release(cell);
        }
    }
}
