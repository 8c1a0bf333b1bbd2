//! The numbered databases.
//!
//! While there are snapshots, changes of whole databases (swaps, replacements) are recorded here, and changes of keys
//! in each database ([`crate::keyspace`]): so everything can be undone, in the reverse order. Invariant: the number of
//! levels of every database is the number of lists of moves; a database that a move holds has the levels up to the list
//! of that move.

use std::sync::Arc;

use crate::engine::spec::Error;
use crate::engine::state::Pressure;
use crate::engine::state::snapshots::Snapshots;
use crate::keyspace::{Database, FrozenDatabase, KeyOrder, LazyFree};

/// All databases of an engine, by number.
#[derive(Debug)]
pub struct Databases {
    all: Vec<Database>,
    /// The state of memory against `maxmemory`.
    pub pressure: Pressure,
    /// The snapshots to which the databases, and the rest of the engine, can be rolled back.
    pub(in crate::engine) snapshots: Snapshots,
    /// The changes of whole databases since each snapshot, the latest snapshot last.
    moves: Vec<Vec<Move>>,
}

/// A change of whole databases, with what is needed to undo it.
#[derive(Debug)]
pub(in crate::engine) enum Move {
    /// Two databases were swapped.
    Swapped(usize, usize),
    /// This database was replaced by another.
    Replaced(usize, Box<Database>),
}

impl Move {
    fn copied(&self) -> Move {
        match self {
            Move::Swapped(one, other) => Move::Swapped(*one, *other),
            Move::Replaced(number, before) => Move::Replaced(*number, Box::new(before.fork_with_levels())),
        }
    }
}

impl Databases {
    /// Creates `count` empty databases whose hashing is seeded by `seed`.
    pub fn new(count: usize, seed: u64) -> Databases {
        let all = (0..count as u64).map(|number| Database::new(seed.wrapping_add(number))).collect();
        Databases::of(all)
    }

    /// Keeps indices of the keys by their slots in a cluster.
    pub(in crate::engine) fn index_hash_slots(&mut self) {
        self.all.iter_mut().for_each(Database::index_hash_slots);
    }

    /// Changes the seeds of hashing, as if the databases had been created with that seed.
    pub(in crate::engine) fn reseed(&mut self, seed: u64) {
        for (number, database) in (0..).zip(&mut self.all) {
            database.reseed(seed.wrapping_add(number));
        }
    }

    /// The hash function of each database, which fixes the order of its keys.
    pub(in crate::engine) fn orders(&self) -> Arc<[KeyOrder]> {
        self.all.iter().map(Database::order).collect()
    }

    /// Orders the keys of each database as that list says.
    pub(in crate::engine) fn restore_orders(&mut self, orders: &[KeyOrder]) {
        self.all.iter_mut().zip(orders).for_each(|(database, order)| database.restore_order(order));
    }

    fn of(all: Vec<Database>) -> Databases {
        Databases { all, pressure: Pressure::default(), snapshots: Snapshots::default(), moves: Vec::new() }
    }

    /// Creates the same number of empty databases, which order their keys as these do.
    pub fn like_empty(&self) -> Databases {
        Databases::of(self.all.iter().map(Database::like_empty).collect())
    }

    /// Copies all databases, copy-on-write.
    pub(in crate::engine) fn fork(&self) -> Vec<Database> {
        self.all.iter().map(Database::fork).collect()
    }

    /// Copies of all databases that can be rolled back like these; the snapshots have no names there.
    pub(in crate::engine) fn copied(&self) -> Databases {
        let copied = |moves: &Vec<Move>| moves.iter().map(Move::copied).collect();
        let all = self.all.iter().map(Database::fork_with_levels).collect();
        Databases { moves: self.moves.iter().map(copied).collect(), ..Databases::of(all) }
    }

    /// All databases as they are now, for reading while they change.
    pub(in crate::engine) fn freeze(&mut self) -> Vec<FrozenDatabase> {
        self.all.iter_mut().map(Database::freeze).collect()
    }

    /// The bytes that were copied because they changed while frozen databases shared them.
    pub fn copied_bytes(&self) -> usize {
        self.all.iter().map(Database::copied_bytes).sum()
    }

    /// Takes back what frozen databases shared, once they have been dropped; returns what only those had, to be freed.
    pub(in crate::engine) fn thaw(&mut self) -> Vec<LazyFree> {
        self.all.iter_mut().map(Database::thaw).collect()
    }

    /// Creates copy-on-write copies of these databases, without snapshots.
    pub(in crate::engine) fn forked(bases: &[Database]) -> Databases {
        Databases::of(bases.to_vec())
    }

    /// All databases, in the order of their numbers.
    pub fn into_all(self) -> Vec<Database> {
        self.all
    }

    /// The number of databases.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The database with this number, which must exist: sessions select only such.
    pub fn get(&self, index: usize) -> &Database {
        &self.all[index]
    }

    /// The database with this number, for changes.
    pub fn get_mut(&mut self, index: usize) -> &mut Database {
        &mut self.all[index]
    }

    /// Swaps two databases.
    pub fn swap(&mut self, one: usize, other: usize) {
        if let Some(moves) = self.moves.last_mut() {
            moves.push(Move::Swapped(one, other));
        }
        self.exchange(one, other);
    }

    /// Swaps two databases without recording it for snapshots.
    pub(in crate::engine) fn exchange(&mut self, one: usize, other: usize) {
        self.all.swap(one, other);
    }

    /// Replaces a database by one that has no levels yet, and returns the memory to free.
    pub fn replace(&mut self, index: usize, mut database: Database) -> LazyFree {
        database.begin_after(self.moves.len());
        let before = self.put(index, database);
        match self.moves.last_mut() {
            Some(moves) if before.is_older_than_level() => {
                moves.push(Move::Replaced(index, Box::new(before)));
                LazyFree::default()
            }
            _ => before.into_lazy_free(),
        }
    }

    /// Replaces a database without recording it, and returns the old one.
    pub(in crate::engine) fn put(&mut self, index: usize, database: Database) -> Database {
        std::mem::replace(&mut self.all[index], database)
    }

    /// Empties a database, and returns the memory to free.
    pub fn empty(&mut self, index: usize) -> LazyFree {
        if self.moves.is_empty() { self.all[index].clear() } else { self.replace(index, self.all[index].like_empty()) }
    }

    /// Begins a level: changes from now on are recorded in it.
    pub(in crate::engine) fn begin_level(&mut self) {
        self.all.iter_mut().for_each(Database::begin_level);
        self.moves.push(Vec::new());
    }

    /// Takes the changes of whole databases since the latest level began, for the caller to undo.
    pub(in crate::engine) fn take_moves(&mut self) -> Vec<Move> {
        self.moves.last_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Ends a level, counted from the oldest: its records go to the level before, if there is one.
    pub(in crate::engine) fn end_level(&mut self, number: usize) {
        let held = self.moves.iter_mut().flatten().filter_map(|moved| match moved {
            Move::Swapped(..) => None,
            Move::Replaced(_, database) => Some(&mut **database),
        });
        self.all.iter_mut().chain(held).for_each(|database| database.end_level(number));
        let ended = self.moves.remove(number);
        if let Some(before) = number.checked_sub(1) {
            self.moves[before].extend(ended);
        }
    }

    /// All databases, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Database> {
        self.all.iter()
    }

    /// The earliest deadline of any key or field, in Unix milliseconds.
    pub fn next_deadline(&self) -> Option<i64> {
        self.all.iter().filter(|database| !database.is_empty()).filter_map(Database::next_deadline).min()
    }

    /// The number of keys in all databases.
    pub fn len(&self) -> usize {
        self.all.iter().map(Database::len).sum()
    }

    /// True when no key is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory of what the snapshots need to bring back keys and whole databases, in bytes.
    pub fn snapshot_bytes(&self) -> usize {
        let held = self.moves.iter().flatten().map(|moved| match moved {
            Move::Swapped(..) => 0,
            Move::Replaced(_, database) => database.memory() + database.levels_memory(),
        });
        held.chain(self.all.iter().map(Database::levels_memory)).sum()
    }

    /// The memory of keys, values and their tables, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.all.iter().filter(|database| !database.is_empty()).map(Database::memory).sum()
    }
}

impl Databases {
    /// The names of the snapshots, the oldest first.
    pub fn snapshots(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.snapshots.names()
    }

    /// Drops a snapshot. Older and younger ones can still be rolled back to.
    ///
    /// # Errors
    /// There is no snapshot of that name.
    pub fn drop_snapshot(&mut self, name: &[u8]) -> Result<(), Error> {
        let place = self.snapshots.place(name)?;
        let dropped = self.snapshots.all.remove(place);
        if let Some(before) = place.checked_sub(1).and_then(|before| self.snapshots.all.get_mut(before)) {
            before.scripts = before.scripts.take().or(dropped.scripts);
            before.functions = before.functions.take().or(dropped.functions);
        }
        self.end_level(place);
        Ok(())
    }

    /// True while keys are to be evicted between the turns of clients.
    pub fn is_evicting(&self) -> bool {
        self.pressure.is_evicting
    }
}
