//! Search for what expires next: keys, and parts of values, which are fields of hashes.

use super::Database;
use crate::keyspace::KeyHandle;

impl<const LINES: usize> Database<LINES> {
    /// The earliest deadline of any key, or of a part of any value.
    pub fn next_deadline(&self) -> Option<i64> {
        let firsts = [self.deadlines.first(), self.part_deadlines.first()];
        firsts.into_iter().flatten().map(|(deadline_ms, _)| deadline_ms).min()
    }

    /// The earliest deadline of a key, and the key's slot. The key stays until the caller removes it.
    pub fn first_due(&self) -> Option<(i64, KeyHandle)> {
        self.deadlines.first().map(|(deadline_ms, handle)| (deadline_ms, KeyHandle(handle)))
    }

    /// The deadlines of keys, the earliest first.
    pub fn due_keys(&self) -> impl Iterator<Item = (i64, KeyHandle)> {
        self.deadlines.iter().map(|(deadline_ms, handle)| (deadline_ms, KeyHandle(handle)))
    }

    /// The earliest deadline within each value that has parts with deadlines, the earliest first.
    pub fn due_parts(&self) -> impl Iterator<Item = (i64, KeyHandle)> {
        self.part_deadlines.iter().map(|(deadline_ms, handle)| (deadline_ms, KeyHandle(handle)))
    }

    /// The earliest deadline within the value at `slot`: of a field of a hash.
    #[inline]
    pub fn part_deadline(&self, slot: KeyHandle) -> Option<i64> {
        if self.part_deadlines.len() == 0 { None } else { self.view(slot).first_deadline() }
    }

    /// The number of keys whose value has a part with a deadline.
    pub fn volatile_parts_len(&self) -> usize {
        self.part_deadlines.len()
    }

    /// The earliest deadline within any value, and the slot of its key. The part stays until the caller removes it.
    #[inline]
    pub fn first_part_due(&self) -> Option<(i64, KeyHandle)> {
        self.part_deadlines.first().map(|(deadline_ms, handle)| (deadline_ms, KeyHandle(handle)))
    }
}
