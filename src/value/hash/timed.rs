//! A packed hash some of whose fields have deadlines: those come first, in the order of their deadlines.
//!
//! So a deadline is found by the position of its field, the earliest is the first, and the due fields are at the
//! start of the packed list. Redis keeps its `listpackex` in the same order, which is therefore the order of a
//! `HGETALL` there and here: among equal deadlines the one set last comes first, and a field that loses its deadline
//! goes to the end.
//!
//! - Invariant: `deadlines` ascend and are at most as many as the packed list has entries.
//!
//! Costs: eight bytes a deadline; setting or removing one moves the entries between.

use super::Entry;
use crate::value::item::Item;
use crate::value::packed_list::PackedList;

#[derive(Clone)]
pub(super) struct Timed {
    /// The entries: field, value, field ...
    pub(super) packed: PackedList,
    /// The deadlines of the first entries, in unix milliseconds.
    pub(super) deadlines: Vec<i64>,
}

impl Timed {
    /// Bytes of heap allocations, not counting this struct's own.
    pub(super) fn memory(&self) -> usize {
        self.packed.memory() + self.deadlines.capacity() * size_of::<i64>()
    }

    /// The index of the entry with that field.
    pub(super) fn find(&self, field: &[u8]) -> Option<usize> {
        self.packed.find(field, 2).map(|position| position / 2)
    }

    /// The deadline of an entry, 0 for none.
    pub(super) fn deadline(&self, entry: usize) -> i64 {
        self.deadlines.get(entry).copied().unwrap_or(0)
    }

    /// The number of entries that are due.
    pub(super) fn due(&self, now_ms: i64) -> usize {
        self.deadlines.partition_point(|&deadline_ms| deadline_ms <= now_ms)
    }

    /// Appends an entry, whose field is not in the hash yet: with a deadline, than which no other one is later, or
    /// with 0 for none.
    pub(super) fn push(&mut self, entry: Entry<'_>, deadline_ms: i64) {
        self.packed.push(entry.field);
        self.packed.push(entry.value);
        if deadline_ms != 0 {
            self.deadlines.push(deadline_ms);
        }
    }

    /// Replaces an entry's value; its deadline is kept if `keep`, else removed.
    pub(super) fn replace(&mut self, entry: usize, value: &[u8], keep: bool) {
        self.packed.replace(2 * entry + 1, Item::of(value));
        if !keep {
            self.set_deadline(entry, 0);
        }
    }

    /// Sets an entry's deadline, 0 for none.
    pub(super) fn set_deadline(&mut self, entry: usize, deadline_ms: i64) {
        if entry < self.deadlines.len() {
            self.deadlines.remove(entry);
        } else if deadline_ms == 0 {
            return;
        }
        let place = if deadline_ms == 0 {
            self.packed.len() / 2 - 1
        } else {
            let place = self.deadlines.partition_point(|&other_ms| other_ms < deadline_ms);
            self.deadlines.insert(place, deadline_ms);
            place
        };
        if place != entry {
            let [field, value] = [2 * entry, 2 * entry + 1].map(|position| self.packed.get(position).to_vec());
            self.packed.remove(2 * entry..2 * entry + 2);
            self.packed.insert(2 * place, Item::of(&field));
            self.packed.insert(2 * place + 1, Item::of(&value));
        }
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, entry: usize) {
        self.packed.remove(2 * entry..2 * entry + 2);
        if entry < self.deadlines.len() {
            self.deadlines.remove(entry);
        }
    }

    /// Removes the first `count` entries, which all have a deadline.
    pub(super) fn remove_first(&mut self, count: usize) {
        if count > 0 {
            self.packed.remove(0..2 * count);
            self.deadlines.drain(..count);
        }
    }
}
