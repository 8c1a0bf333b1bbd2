//! The keys of a database by the slots of a cluster, if it keeps an index of them ([`SlotIndex`]).

use super::Database;
use crate::keyspace::KeyHandle;
use crate::keyspace::slot_index::{Place, SlotIndex};
use crate::keyspace::table::cursor_at_hash;
use crate::value::hash_slot::hash_slot;

impl<const LINES: usize> Database<LINES> {
    /// Keeps an index of the keys by their slots in a cluster from now on.
    pub fn index_hash_slots(&mut self) {
        let mut index = Box::<SlotIndex>::default();
        self.handles().for_each(|slot| index.insert(Place::of(self.key(slot), self.hash(slot)), slot.0));
        self.slot_index = Some(index);
    }

    /// The number of keys in a slot of the cluster; 0 without an index.
    pub fn hash_slot_len(&self, hash_slot: u16) -> usize {
        self.slot_index.as_ref().map_or(0, |index| index.count(hash_slot))
    }

    /// The keys in a slot of the cluster, in an order of no meaning; none without an index.
    pub fn hash_slot_keys(&self, hash_slot: u16) -> impl Iterator<Item = KeyHandle> {
        self.slot_index
            .iter()
            .flat_map(move |index| index.handles_from(hash_slot, 0))
            .map(|(_, handle)| KeyHandle(handle))
    }

    /// Visits about `count` keys of a slot of the cluster from `cursor` on, and returns the next cursor: 0 at the end.
    /// It promises what [`Database::scan`] promises, and each of them goes on from the other's cursors.
    ///
    /// Costs: O(log n) and O(1) for each key that is visited, the keys of a whole section at least: some, if the slot
    /// has millions.
    pub fn scan_hash_slot(&self, hash_slot: u16, cursor: u64, count: usize, mut visit: impl FnMut(KeyHandle)) -> u64 {
        let Some(index) = &self.slot_index else { return 0 };
        let (mut visited, mut current) = (0, None);
        for (section, handle) in index.handles_from(hash_slot, self.cursor_position(cursor)) {
            // A cursor cannot be between keys of one section.
            if visited >= count.max(1) && current != Some(section) {
                return self.cursor_of(section);
            }
            (visited, current) = (visited + 1, Some(section));
            visit(KeyHandle(handle));
        }
        0
    }

    /// Enters a record into the index, whose key has that hash.
    #[inline]
    pub(super) fn enter_hash_slot(&mut self, key: &[u8], hash: u64, handle: u32) {
        if let Some(index) = &mut self.slot_index {
            index.insert(Place::of(key, hash), handle);
        }
    }

    /// Removes the record at `slot` from the index, whose key has that hash.
    #[inline]
    pub(super) fn leave_hash_slot(&mut self, slot: KeyHandle, hash: u64) {
        if let Some(index) = &mut self.slot_index {
            index.remove(Place::of(self.records.key(slot.0), hash), slot.0);
        }
    }

    /// Gives the record `before` another handle in the index; its key is that of `after`, and has that hash.
    #[inline]
    pub(super) fn move_in_hash_slot(&mut self, hash: u64, before: u32, after: u32) {
        if let Some(index) = &mut self.slot_index {
            let place = Place::of(self.records.key(after), hash);
            index.remove(place, before);
            index.insert(place, after);
        }
    }

    /// Panics unless the index has every key under its slot.
    pub(super) fn check_hash_slots(&self) {
        let Some(index) = &self.slot_index else { return };
        index.check();
        assert_eq!(index.len(), self.len());
        for slot in self.handles() {
            let position = cursor_at_hash(self.hash(slot));
            let from = index.handles_from(hash_slot(self.key(slot)), position);
            let mut section = from.take_while(|(section, _)| *section <= position);
            assert!(section.any(|(_, handle)| handle == slot.0), "a key has no slot");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::New;
    use crate::keyspace::record::Payload;
    use crate::value::text::{Text, TextView};
    use crate::value::{Value, View};
    use std::collections::BTreeSet;

    type Keys = BTreeSet<Vec<u8>>;

    fn filled() -> Database<2> {
        let mut database = Database::<2>::with_segments(1);
        for number in 0..500u32 {
            database.insert(format!("{{{}}}{number}", number % 7).as_bytes(), New::Text(TextView::Int(1)));
        }
        database.index_hash_slots();
        database
    }

    fn keys(database: &Database<2>, tag: &[u8]) -> Keys {
        database.hash_slot_keys(hash_slot(tag)).map(|slot| database.key(slot).to_vec()).collect()
    }

    #[test]
    fn an_index_has_the_keys_that_were_there_before_it() {
        let database = filled();
        database.check();
        assert_eq!((database.hash_slot_len(hash_slot(b"3")), keys(&database, b"3").len()), (71, 71));
        assert_eq!(database.hash_slot_len(hash_slot(b"none")), 0);
        assert_eq!(Database::<2>::with_segments(1).hash_slot_len(0), 0);
    }

    #[test]
    fn an_index_follows_what_is_renamed_rolled_back_or_changed_in_size() {
        let mut database = filled();
        let before = keys(&database, b"3");
        database.begin_level();
        let large = Value::Text(Text::of(vec![b'x'; 3000]));
        let slot = database.find(b"{3}3").expect("the key exists");
        let (slot, _) = database.replace(slot, New::Value(large));
        let slot = database.set_deadline(slot, Some(5));
        database.check();
        database.rename(slot, b"{4}new");
        let others: Vec<Vec<u8>> = keys(&database, b"3").into_iter().collect();
        for key in others {
            let slot = database.find(&key).expect("the key exists");
            database.delete(slot);
        }
        database.check();
        assert_eq!((keys(&database, b"3").len(), keys(&database, b"4").contains(&b"{4}new"[..])), (0, true));
        database.roll_back();
        database.check();
        assert_eq!(keys(&database, b"3"), before);
        assert!(!keys(&database, b"4").contains(&b"{4}new"[..]));
    }

    #[test]
    fn an_index_stays_while_a_database_is_frozen_and_when_it_is_emptied() {
        let mut database = filled();
        let frozen = database.freeze();
        let slot = database.find(b"{3}3").expect("the key exists");
        let (slot, ()) = database.edit_text(slot, |bytes| bytes.extend_from_slice(&[b'x'; 200]));
        assert!(matches!(database.view(slot), View::Text(_)));
        database.check();
        drop(frozen);
        database.thaw();
        database.check();
        database.clear();
        assert_eq!((database.hash_slot_len(hash_slot(b"3")), database.memory()), (0, 0));
        database.insert(b"{3}", New::Text(TextView::Int(1)));
        assert_eq!(keys(&database, b"3"), Keys::from([b"{3}".to_vec()]));
    }

    #[test]
    fn a_walk_through_a_slot_visits_each_of_its_keys_once_whatever_the_steps_are() {
        let database = filled();
        for count in [1, 7, 71, 1000] {
            let (mut cursor, mut visited) = (0, Vec::new());
            loop {
                let before = visited.len();
                cursor = database.scan_hash_slot(hash_slot(b"3"), cursor, count, |slot| visited.push(slot));
                assert!(cursor == 0 || visited.len() >= before + count, "a step visits as many as it can");
                if cursor == 0 {
                    break;
                }
            }
            let found: Keys = visited.iter().map(|slot| database.key(*slot).to_vec()).collect();
            assert_eq!((visited.len(), found), (71, keys(&database, b"3")), "in steps of {count}");
        }
        assert_eq!(database.scan_hash_slot(hash_slot(b"none"), 0, 10, |_| panic!("the slot is empty")), 0);
    }

    #[test]
    fn a_walk_through_a_slot_goes_on_from_where_a_walk_through_all_keys_was() {
        let database = filled();
        let (mut first, mut rest) = (BTreeSet::new(), BTreeSet::new());
        let cursor = database.scan(0, 250, |slot| _ = first.insert(database.key(slot).to_vec()));
        assert_eq!(
            database.scan_hash_slot(hash_slot(b"3"), cursor, 1000, |slot| _ = rest.insert(database.key(slot).to_vec())),
            0
        );
        let of_slot = keys(&database, b"3");
        assert!(!rest.is_empty() && rest.len() < of_slot.len());
        assert_eq!(of_slot.difference(&first).cloned().collect::<Keys>(), rest);
    }

    #[test]
    fn a_walk_through_a_slot_misses_no_key_although_the_hash_function_changes() {
        let mut database = filled();
        let (mut visited, mut cursor, mut calls) = (Keys::new(), 0, 0);
        loop {
            let visit = |slot| _ = visited.insert(database.key(slot).to_vec());
            cursor = database.scan_hash_slot(hash_slot(b"3"), cursor, 10, visit);
            calls += 1;
            if cursor == 0 {
                break;
            }
            if calls == 4 {
                let late = database.records.create(b"late", Payload::Int(2));
                database.rebuild_guarded(late);
                database.check();
            }
        }
        assert_eq!((visited.len(), calls), (71, 12), "the walk has started again");
    }

    #[test]
    fn an_index_follows_the_order_of_another_seed() {
        let mut database = filled();
        let before = keys(&database, b"3");
        database.reseed(2);
        database.check();
        assert_eq!(keys(&database, b"3"), before);
    }

    #[test]
    fn a_clone_of_a_fork_has_an_index_of_its_own() {
        let base = filled().fork();
        let mut clone = base.clone();
        let before = keys(&base, b"3");
        let slot = clone.find(b"{3}3").expect("the key exists");
        clone.delete(slot);
        clone.check();
        base.check();
        assert_eq!((keys(&base, b"3"), clone.hash_slot_len(hash_slot(b"3"))), (before, 70));
    }
}
