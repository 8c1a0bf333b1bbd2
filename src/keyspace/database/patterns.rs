//! The keys of a database that match patterns, if it keeps an index of them ([`PatternIndex`]).

use super::Database;
use crate::keyspace::KeyHandle;
use crate::keyspace::pattern_index::PatternIndex;

impl<const LINES: usize> Database<LINES> {
    /// Keeps an index of the keys that match each of these globs from now on, and of no others. The keys that are there
    /// already are entered by [`Database::complete_patterns`]. Nothing changes if it has the index for these.
    pub fn index_patterns(&mut self, patterns: &[&[u8]]) {
        if patterns.is_empty() {
            self.pattern_index = None;
        } else if !self.pattern_index.as_ref().is_some_and(|index| index.is_for(patterns)) {
            self.pattern_index = Some(Box::new(PatternIndex::of(patterns)));
        }
    }

    /// Enters about `count` more keys into the index that were there before it; false when it is complete.
    pub fn complete_patterns(&mut self, count: usize) -> bool {
        let Some(mut index) = self.pattern_index.take() else { return false };
        if let Some(cursor) = index.cursor {
            let next = self.scan(cursor, count, |slot| index.insert(self.key(slot), slot.0));
            index.cursor = (next != 0).then_some(next);
        }
        let has_more = index.cursor.is_some();
        self.pattern_index = Some(index);
        has_more
    }

    /// The keys that match a glob of the index, from a cursor on that begins with 0; each with the cursor behind it.
    pub fn matching(&self, pattern: &[u8], cursor: u64) -> impl Iterator<Item = (u64, KeyHandle)> {
        let index = self.pattern_index.as_ref();
        let handles = index.and_then(|index| index.handles(pattern, cursor)).into_iter().flatten();
        handles.map(|handle| (u64::from(handle) + 1, KeyHandle(handle)))
    }

    /// Enters a record into the index.
    #[inline]
    pub(super) fn enter_patterns(&mut self, key: &[u8], handle: u32) {
        if let Some(index) = &mut self.pattern_index {
            index.insert(key, handle);
        }
    }

    /// Removes the record at `slot` from the index.
    #[inline]
    pub(super) fn leave_patterns(&mut self, slot: KeyHandle) {
        if let Some(index) = &mut self.pattern_index {
            index.remove(slot.0);
        }
    }

    /// Gives the record `before` another handle in the index.
    #[inline]
    pub(super) fn move_in_patterns(&mut self, before: u32, after: u32) {
        if let Some(index) = &mut self.pattern_index {
            index.rename(before, after);
        }
    }

    /// Panics unless the index, once complete, has the keys that match and no others.
    pub(super) fn check_patterns(&self) {
        let Some(index) = &self.pattern_index else { return };
        for slot in self.handles() {
            index.check(self.key(slot), slot.0);
        }
        assert!(
            index.all().all(|handle| self.handles().any(|slot| slot.0 == handle)),
            "the index has a key that is gone"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::New;
    use crate::value::Value;
    use crate::value::text::{Text, TextView};
    use std::collections::BTreeSet;

    type Keys = BTreeSet<Vec<u8>>;

    /// A database with 500 keys, of which one in seven begins with `3:`, and an index of these.
    fn filled() -> Database<2> {
        let mut database = Database::<2>::with_segments(1);
        (0..500u32).for_each(|number| add(&mut database, &format!("{}:{number}", number % 7)));
        database.index_patterns(&[b"3:*"]);
        database
    }

    fn complete(database: &mut Database<2>) {
        while database.complete_patterns(10) {}
        database.check();
    }

    fn add(database: &mut Database<2>, key: &str) {
        database.insert(key.as_bytes(), New::Text(TextView::Int(1)));
    }

    fn delete(database: &mut Database<2>, key: &str) {
        let slot = database.find(key.as_bytes()).expect("the key exists");
        database.delete(slot);
    }

    fn keys(database: &Database<2>, pattern: &[u8]) -> Keys {
        database.matching(pattern, 0).map(|(_, slot)| database.key(slot).to_vec()).collect()
    }

    #[test]
    fn an_index_has_the_keys_that_were_there_before_it_and_those_that_come_meanwhile() {
        let mut database = filled();
        assert!(database.complete_patterns(10));
        add(&mut database, "3:new");
        add(&mut database, "4:new");
        delete(&mut database, "3:3");
        complete(&mut database);
        let found = keys(&database, b"3:*");
        assert_eq!((found.len(), found.contains(&b"3:new"[..])), (71, true));
        assert_eq!(keys(&database, b"4:*"), Keys::new());
        database.index_patterns(&[b"3:*"]);
        assert!(!database.complete_patterns(10), "an index is kept that is for the same");
        database.index_patterns(&[b"4:*"]);
        assert!(database.complete_patterns(10));
        database.index_patterns(&[]);
        assert_eq!((database.complete_patterns(10), keys(&database, b"4:*")), (false, Keys::new()));
    }

    #[test]
    fn an_index_follows_what_is_renamed_rolled_back_or_changed_in_size() {
        let mut database = filled();
        complete(&mut database);
        let before = keys(&database, b"3:*");
        database.begin_level();
        let slot = database.find(b"3:3").expect("the key exists");
        let (slot, _) = database.replace(slot, New::Value(Value::Text(Text::of(vec![b'x'; 3000]))));
        let slot = database.set_deadline(slot, Some(5));
        database.check();
        database.rename(slot, b"4:new");
        delete(&mut database, "3:10");
        database.check();
        assert_eq!(keys(&database, b"3:*").len(), before.len() - 2);
        database.roll_back();
        database.check();
        assert_eq!(keys(&database, b"3:*"), before);
    }

    #[test]
    fn an_index_stays_while_a_database_is_frozen_and_ends_when_the_keys_are_others() {
        let mut database = filled();
        complete(&mut database);
        let frozen = database.freeze();
        let slot = database.find(b"3:3").expect("the key exists");
        database.edit_text(slot, |bytes| bytes.extend_from_slice(&[b'x'; 200]));
        database.check();
        drop(frozen);
        database.thaw();
        database.check();
        assert_eq!(keys(&database, b"3:*").len(), 71);
        assert_eq!(keys(&database.fork(), b"3:*"), Keys::new());
        database.reseed(2);
        assert_eq!(keys(&database, b"3:*"), Keys::new());
    }

    #[test]
    fn the_keys_are_read_in_parts() {
        let mut database = filled();
        complete(&mut database);
        let (mut found, mut cursor) = (Keys::new(), 0);
        while let Some((next, slot)) = database.matching(b"3:*", cursor).next() {
            assert!(found.insert(database.key(slot).to_vec()));
            cursor = next;
        }
        assert_eq!(found, keys(&database, b"3:*"));
    }
}
