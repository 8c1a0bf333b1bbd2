//! Giving a key another name.
//!
//! A value that is stored apart keeps its place, so renaming takes no time in proportion to the value, also while a
//! frozen database shares it.

use super::{Database, Keys};
use crate::keyspace::record::Payload;
use crate::keyspace::{KeyHandle, New};
use crate::value::hashing::Flood;

impl<const LINES: usize> Database<LINES> {
    /// Renames the key at `slot`; no key may have the new name yet. The deadline and the access bits are gone, as if
    /// the value had been removed and inserted again.
    pub fn rename(&mut self, slot: KeyHandle, name: &[u8]) -> KeyHandle {
        let Payload::Apart(number) = self.records.record(slot.0).payload() else {
            let value = self.remove(slot);
            return self.insert(name, New::Value(value));
        };
        self.before_edit(slot);
        self.before_insert(name);
        let part_deadline = self.part_deadline(slot);
        self.unlist(slot);
        self.records.destroy_record(slot.0);
        let handle = self.records.create(name, Payload::Apart(number));
        self.list(name, handle, part_deadline)
    }

    /// Enters a record into the table and the indices.
    #[inline]
    pub(super) fn list(&mut self, key: &[u8], handle: u32, part_deadline: Option<i64>) -> KeyHandle {
        self.move_part_deadline(handle, None, part_deadline);
        let hash = self.hasher.hash(key);
        self.enter_hash_slot(key, hash, handle);
        self.enter_patterns(key, handle);
        let keys = Keys { records: &self.records, hasher: &self.hasher };
        if self.table.insert(hash, handle, &keys) == Err(Flood) {
            self.rebuild_guarded(handle);
        }
        KeyHandle(handle)
    }

    /// Removes a record from the table and the indices.
    #[inline]
    pub(super) fn unlist(&mut self, slot: KeyHandle) {
        if let Some(deadline_ms) = self.deadline(slot) {
            self.deadlines.remove(deadline_ms, slot.0);
        }
        self.move_part_deadline(slot.0, self.part_deadline(slot), None);
        let hash = self.hash(slot);
        self.leave_hash_slot(slot, hash);
        self.leave_patterns(slot);
        let keys = Keys { records: &self.records, hasher: &self.hasher };
        self.table.remove(hash, slot.0, &keys);
    }
}

#[cfg(test)]
mod tests {
    use crate::keyspace::{Database, New};
    use crate::value::Value;
    use crate::value::text::{Text, TextView};

    #[test]
    fn a_renamed_key_has_its_value_and_nothing_else() {
        let large = Value::Text(Text::of(vec![b'x'; 3000]));
        let long_key = vec![b'k'; 400];
        for value in [New::Text(TextView::Bytes(b"short")), New::Value(large)] {
            let mut database = Database::<2>::with_segments(1);
            let slot = database.insert(b"before", value);
            let slot = database.set_deadline(slot, Some(5));
            let text = format!("{:?}", database.view(slot));
            let slot = database.rename(slot, &long_key);
            assert_eq!((database.find(b"before"), database.find(&long_key)), (None, Some(slot)));
            assert_eq!((database.deadline(slot), database.access(slot)), (None, 0));
            assert_eq!(format!("{:?}", database.view(slot)), text);
            database.check();
        }
    }

    #[test]
    fn a_large_value_that_is_shared_is_not_copied_when_its_key_is_renamed() {
        let mut database = Database::<2>::with_segments(1);
        let slot = database.insert(b"before", New::Value(Value::Text(Text::of(vec![b'x'; 100_000]))));
        let frozen = database.freeze();
        database.rename(slot, b"after");
        assert!(database.copied_bytes() < 1000);
        assert_eq!(frozen.keys().map(|entry| entry.key).collect::<Vec<_>>(), [b"before"]);
    }
}
