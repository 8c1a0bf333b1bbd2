//! What a database takes of memory, in bytes: as a whole, by what it is for, and for one key.
//!
//! Everything is counted where it is allocated, so nothing here takes longer the more keys there are.

use super::Database;
use crate::keyspace::Slot;

/// What one key takes of a table or index at worst, once there are many keys.
const LARGEST_SHARE_BYTES: usize = 16;

impl<const LINES: usize> Database<LINES> {
    /// The bytes of memory that keys and values take, and what it takes to find them. Removing a key makes it less.
    pub fn memory(&self) -> usize {
        self.records.memory() + self.table.memory() + self.deadlines.memory() + self.part_deadlines.memory()
    }

    /// The bytes of memory that keys and values take alone.
    #[inline]
    pub fn content_bytes(&self) -> usize {
        self.records.memory()
    }

    /// The bytes of records and of room for them; a database can hold 64 GiB.
    pub fn record_bytes(&self) -> usize {
        self.records.named_bytes()
    }

    /// The bytes of memory held beside those, for keys to come.
    pub fn slack(&self) -> usize {
        self.records.slack() + self.scratch.capacity()
    }

    /// The bytes of what it takes to find keys, and to find those that fall due.
    pub fn tables_memory(&self) -> (usize, usize) {
        (self.table.memory(), self.deadlines.memory() + self.part_deadlines.memory())
    }

    /// The bytes of memory the key at `slot` costs: its record, its value, its share of the table and of the deadlines.
    /// In a nearly empty database, whose first segment few keys share, a share is what it would be in a large one.
    pub fn memory_of(&self, slot: Slot) -> usize {
        let share = |bytes: usize, keys: usize| bytes.checked_div(keys).unwrap_or_default().min(LARGEST_SHARE_BYTES);
        let table = share(self.table.memory(), self.len());
        let deadline =
            if self.deadline(slot).is_some() { share(self.deadlines.memory(), self.volatile_len()) } else { 0 };
        self.records.memory_of(slot.0) + table + deadline
    }
}
