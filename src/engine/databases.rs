//! The numbered databases.

use crate::engine::eviction::Pressure;
use crate::keyspace::Database;

/// All databases of an engine, by number.
#[derive(Debug)]
pub struct Databases {
    all: Vec<Database>,
    /// How short memory is for them.
    pub pressure: Pressure,
}

impl Databases {
    /// `count` empty databases whose hashing is seeded by `seed`.
    pub fn new(count: usize, seed: u64) -> Databases {
        let all = (0..count as u64).map(|number| Database::new(seed.wrapping_add(number))).collect();
        Databases { all, pressure: Pressure::default() }
    }

    /// How many there are.
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

    /// Lets two databases change places.
    pub fn swap(&mut self, one: usize, other: usize) {
        self.all.swap(one, other);
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
