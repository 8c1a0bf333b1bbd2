//! A packed hash some of whose fields have deadlines: those come first, in the order of their deadlines.
//!
//! So a deadline is found by the place of its field, the earliest is the first, and what is due is what the packed list
//! begins with. Redis keeps its `listpackex` in the same order, which is therefore the order of a `HGETALL` there and
//! here: among equal deadlines the latest given comes first, and a field that loses its deadline goes to the end.
//!
//! - Invariant: `deadlines` ascend and are at most as many as the packed list has entries.
//!
//! Costs: eight bytes a deadline; giving one or taking it away moves what lies between.

use super::Entry;
use crate::value::item::Item;
use crate::value::packed_list::PackedList;

#[derive(Clone)]
pub(super) struct Timed {
    /// Field, value, field ...
    pub(super) packed: PackedList,
    /// Of the first entries, in unix milliseconds.
    pub(super) deadlines: Vec<i64>,
}

impl Timed {
    /// Bytes of heap allocations, its own not counted.
    pub(super) fn memory(&self) -> usize {
        self.packed.memory() + self.deadlines.capacity() * size_of::<i64>()
    }

    /// Which entry has that field.
    pub(super) fn find(&self, field: &[u8]) -> Option<usize> {
        self.packed.find(field, 2).map(|position| position / 2)
    }

    /// The deadline of an entry, 0 for none.
    pub(super) fn deadline(&self, entry: usize) -> i64 {
        self.deadlines.get(entry).copied().unwrap_or(0)
    }

    /// How many entries are due.
    pub(super) fn due(&self, now_ms: i64) -> usize {
        self.deadlines.partition_point(|&deadline_ms| deadline_ms <= now_ms)
    }

    /// Adds an entry, whose field is not there yet, behind all others: with a deadline, which no other one is
    /// later than, or with 0 for none.
    pub(super) fn push(&mut self, entry: Entry<'_>, deadline_ms: i64) {
        self.packed.push(entry.field);
        self.packed.push(entry.value);
        if deadline_ms != 0 {
            self.deadlines.push(deadline_ms);
        }
    }

    /// Gives an entry another value; its deadline is kept if `keep`, else lost.
    pub(super) fn replace(&mut self, entry: usize, value: &[u8], keep: bool) {
        self.packed.replace(2 * entry + 1, Item::of(value));
        if !keep {
            self.set_deadline(entry, 0);
        }
    }

    /// Gives an entry a deadline, 0 for none.
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

    /// Removes the first `count` entries of those that have a deadline.
    pub(super) fn remove_first(&mut self, count: usize) {
        if count > 0 {
            self.packed.remove(0..2 * count);
            self.deadlines.drain(..count);
        }
    }
}
