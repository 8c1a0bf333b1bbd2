//! [`Peek`]: a key's value, deadline, age and size, read without counting as a use of the key.

use crate::keyspace::{Database, Slot};
use crate::value::View;

/// A key seen without being used: no access is noted.
#[derive(Clone, Copy, Debug)]
pub struct Peek<'a> {
    database: &'a Database,
    slot: Slot,
}

impl<'a> Peek<'a> {
    pub(super) fn new(database: &'a Database, slot: Slot) -> Peek<'a> {
        Peek { database, slot }
    }

    /// What the key holds.
    pub fn view(self) -> View<'a> {
        self.database.view(self.slot)
    }

    /// Its deadline in unix milliseconds.
    pub fn deadline_ms(self) -> Option<i64> {
        self.database.deadline(self.slot)
    }

    /// When it was last used, see [`crate::engine::state::lru`].
    pub fn access(self) -> u32 {
        self.database.access(self.slot)
    }

    /// All bytes of memory that it takes.
    pub fn memory_bytes(self) -> usize {
        self.database.memory_of(self.slot)
    }
}
