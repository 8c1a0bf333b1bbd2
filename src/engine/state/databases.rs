//! The numbered databases.
//!
//! While there are snapshots, what happens to databases as wholes is noted here, and what happens to keys in each of
//! them ([`crate::keyspace`]): so everything can be brought back, in the reverse order. Invariant: all databases have
//! as many levels as there are lists of moves, also those that a move holds, which have those up to its list.

use crate::engine::spec::Error;
use crate::engine::state::Pressure;
use crate::engine::state::snapshots::Snapshots;
use crate::keyspace::{Database, LazyFree};

/// All databases of an engine, by number.
#[derive(Debug)]
pub struct Databases {
    all: Vec<Database>,
    /// How short memory is for them.
    pub pressure: Pressure,
    /// What they can be brought back to, and the rest of the engine with them.
    pub(in crate::engine) snapshots: Snapshots,
    /// What happened to databases as wholes since each snapshot, the youngest last.
    moves: Vec<Vec<Move>>,
}

/// What happened to databases as wholes.
#[derive(Debug)]
pub(in crate::engine) enum Move {
    /// Two changed places.
    Swapped(usize, usize),
    /// Another came in the place of this one.
    Replaced(usize, Box<Database>),
}

impl Databases {
    /// `count` empty databases whose hashing is seeded by `seed`.
    pub fn new(count: usize, seed: u64) -> Databases {
        let all = (0..count as u64).map(|number| Database::new(seed.wrapping_add(number))).collect();
        Databases::of(all)
    }

    /// Seeds their hashing anew, as if they had been created with that seed.
    pub(in crate::engine) fn reseed(&mut self, seed: u64) {
        for (number, database) in (0..).zip(&mut self.all) {
            database.reseed(seed.wrapping_add(number));
        }
    }

    fn of(all: Vec<Database>) -> Databases {
        Databases { all, pressure: Pressure::default(), snapshots: Snapshots::default(), moves: Vec::new() }
    }

    /// As many empty databases that order their keys as these do.
    pub fn like_empty(&self) -> Databases {
        Databases::of(self.all.iter().map(Database::like_empty).collect())
    }

    /// Copies of all of them, to make others of.
    pub(in crate::engine) fn fork(&self) -> Vec<Database> {
        self.all.iter().map(Database::fork).collect()
    }

    /// Those databases, of which nothing is copied until it changes, and no snapshots.
    pub(in crate::engine) fn forked(bases: &[Database]) -> Databases {
        Databases::of(bases.to_vec())
    }

    /// All of them, in the order of their numbers.
    pub fn into_all(self) -> Vec<Database> {
        self.all
    }

    /// The number of databases.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The one of that number, which exists: sessions select only such.
    pub fn get(&self, index: usize) -> &Database {
        &self.all[index]
    }

    /// The one of that number, to be changed.
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

    /// Puts a database that has no past in the place of one, and answers what is no longer needed.
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

    /// Puts a database in the place of one, without a note, and answers that one.
    pub(in crate::engine) fn put(&mut self, index: usize, database: Database) -> Database {
        std::mem::replace(&mut self.all[index], database)
    }

    /// Empties one, and answers what is no longer needed.
    pub fn empty(&mut self, index: usize) -> LazyFree {
        if self.moves.is_empty() { self.all[index].clear() } else { self.replace(index, self.all[index].like_empty()) }
    }

    /// From now on it is noted what changes.
    pub(in crate::engine) fn begin_level(&mut self) {
        self.all.iter_mut().for_each(Database::begin_level);
        self.moves.push(Vec::new());
    }

    /// What happened to databases as wholes since the youngest level began. It is for the caller to undo.
    pub(in crate::engine) fn take_moves(&mut self) -> Vec<Move> {
        self.moves.last_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Ends a level, counted from the oldest: what was noted in it goes to the one before, if there is one.
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

    /// All of them in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Database> {
        self.all.iter()
    }

    /// When the earliest key or field of any falls due, in unix milliseconds.
    pub fn next_deadline(&self) -> Option<i64> {
        self.all.iter().filter(|database| !database.is_empty()).filter_map(Database::next_deadline).min()
    }

    /// All keys of all of them.
    pub fn len(&self) -> usize {
        self.all.iter().map(Database::len).sum()
    }

    /// True when no key is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that keys, values and their tables take.
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
