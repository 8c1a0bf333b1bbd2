//! The memory of a database, in bytes: as a whole, by purpose, and for one key.
//!
//! Everything is counted where it is allocated, so none of this takes longer with more keys.

use super::Database;
use crate::keyspace::KeyHandle;
use crate::value::TYPES;

/// The most bytes that one key takes in the tables, once there are many keys.
const LARGEST_SHARE_BYTES: usize = 16;

/// The share of a key in the tables of its database, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    table: usize,
    deadline: usize,
}

impl Shares {
    /// The share of a key, which expires or does not.
    pub fn of(self, expires: bool) -> usize {
        self.table + if expires { self.deadline } else { 0 }
    }
}

impl<const LINES: usize> Database<LINES> {
    /// The bytes of keys and values, and of the tables to find them. Removing a key reduces it.
    pub fn memory(&self) -> usize {
        let deadlines = self.deadlines.memory() + self.part_deadlines.memory();
        self.records.memory() + self.table.memory() + deadlines + self.hash_slots_memory()
    }

    /// The bytes of the index of the keys by their slots in a cluster.
    pub fn hash_slots_memory(&self) -> usize {
        self.slot_index.as_ref().map_or(0, |index| index.memory())
    }

    /// The bytes of keys and values alone.
    #[inline]
    pub fn content_bytes(&self) -> usize {
        self.records.memory()
    }

    /// The capacity of the records in bytes; a database can hold 64 GiB.
    pub fn record_bytes(&self) -> usize {
        self.records.named_bytes()
    }

    /// The bytes of memory held in addition, for future keys.
    pub fn slack(&self) -> usize {
        self.records.slack() + self.scratch.capacity()
    }

    /// The bytes of the values that are stored apart from their keys, by their type, in the order of
    /// [`TYPES`]. Short values are in the records of their keys, where no type is told apart.
    pub fn values_memory(&self) -> [usize; TYPES.len()] {
        self.records.values_memory()
    }

    /// The bytes of the tables that find keys, and of those that find due ones.
    pub fn tables_memory(&self) -> (usize, usize) {
        (self.table.memory(), self.deadlines.memory() + self.part_deadlines.memory())
    }

    /// The bytes of memory of the key at `slot`: its record, its value, its share of the table and of the deadlines.
    /// In a nearly empty database, whose first segment is shared by few keys, a share is counted as in a large one.
    pub fn memory_of(&self, slot: KeyHandle) -> usize {
        self.memory_with(slot, self.shares())
    }

    /// The share of each key in the table and in the deadlines, as they are now.
    pub fn shares(&self) -> Shares {
        let share = |bytes: usize, keys: usize| bytes.checked_div(keys).unwrap_or_default().min(LARGEST_SHARE_BYTES);
        Shares {
            table: share(self.table.memory(), self.len()),
            deadline: share(self.deadlines.memory(), self.volatile_len()),
        }
    }

    /// Like [`Database::memory_of`], with shares that are known.
    pub fn memory_with(&self, slot: KeyHandle, shares: Shares) -> usize {
        self.records.by_ref().memory_of(slot.0) + shares.of(self.deadline(slot).is_some())
    }
}
