//! One numbered database: the table, the records and the deadlines together.
//!
//! Invariants: the table contains every record once, under its key's hash; the deadlines contain every record that has
//! one, and the deadlines of parts every record whose value has parts with one, under the earliest; an index of slots
//! contains every record. All handles are in those places only, so a record may move whenever it is changed; a
//! [`KeyHandle`] is a handle that is valid until then.
//!
//! Every method that changes anything first notes the previous state while it may be rolled back ([`undo_log`]).

mod deadlines;
mod hash_slots;
mod memory;
mod patterns;
mod rename;
mod texts;
mod undo_log;

pub use memory::Shares;

use std::sync::Arc;

use super::hash::Hasher;
use super::pattern_index::PatternIndex;
use super::record::Payload;
use super::records::{Records, SharedRecords};
use super::slot_index::SlotIndex;
use super::table::{CURSOR_BITS, Hashes, PREFETCHED, Table};
use super::{Contents, Held, KeyHandle, LazyFree, New};
use crate::value::deadlines::Deadlines;
use crate::value::hashing::Flood;
use crate::value::{TEXT_TYPE, TextView, Value, ValueMut, View};

/// The bits of an access that are kept.
const ACCESS_MASK: u32 = 0xff_ffff;

/// One numbered database. All times are unix milliseconds. `LINES` is the size of the table's segments in cache lines,
/// a power of two above one; tests choose tiny ones.
#[derive(Clone, Debug)]
pub struct Database<const LINES: usize = 64> {
    hasher: Hasher,
    table: Table<LINES>,
    records: Records,
    deadlines: Deadlines,
    /// The earliest deadline within each value that has some: hashes with fields that fall due.
    part_deadlines: Deadlines,
    /// The keys by their slots, in a node of a cluster.
    slot_index: Option<Box<SlotIndex>>,
    /// The keys that match patterns, while somebody asks for them.
    pattern_index: Option<Box<PatternIndex>>,
    scratch: Vec<u8>,
    undo_log: Option<Box<undo_log::UndoLog>>,
}

/// The hash function of a database, which follows from its seed and fixes the order of its keys.
#[derive(Clone, Debug)]
pub struct KeyOrder(Hasher);

/// Gives the table the hashes of the records' keys.
struct Keys<'a> {
    records: &'a Records,
    hasher: &'a Hasher,
}

impl Hashes for Keys<'_> {
    #[inline]
    fn hash_of(&self, handle: u32) -> u64 {
        self.hasher.hash(self.records.key(handle))
    }

    fn prefetch(&self, handles: impl Iterator<Item = u32>) {
        handles.for_each(|handle| self.records.prefetch(handle));
    }
}

impl Database {
    /// An empty database, which allocates nothing yet. `seed` decides only the order of [`Database::scan`] and which
    /// keys [`Database::random`] chooses by its generator.
    pub fn new(seed: u64) -> Database {
        Database::with_segments(seed)
    }
}

impl<const LINES: usize> Database<LINES> {
    /// An empty database with segments of `LINES` lines.
    pub fn with_segments(seed: u64) -> Database<LINES> {
        Database {
            hasher: Hasher::quick(seed),
            table: Table::new(),
            records: Records::default(),
            deadlines: Deadlines::default(),
            part_deadlines: Deadlines::default(),
            slot_index: None,
            pattern_index: None,
            scratch: Vec::new(),
            undo_log: None,
        }
    }

    /// The number of keys, due or not.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no key is stored.
    pub fn is_empty(&self) -> bool {
        self.table.len() == 0
    }

    /// The number of keys with a deadline.
    pub fn volatile_len(&self) -> usize {
        self.deadlines.len()
    }

    /// The slot of `key`, if it is stored.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Option<KeyHandle> {
        self.table.find(self.hasher.hash(key), |handle| self.records.key(handle) == key).map(KeyHandle)
    }

    /// Announces that there will soon be so many keys, as a file says, so that the table grows with less work; 0
    /// withdraws that. A wrong number costs little.
    pub fn expect(&mut self, keys: usize) {
        self.table.expect(keys);
    }

    /// Prefetches the memory that finding `keys` will read. Each look-up then takes a fraction of the time, because
    /// the waits for memory overlap.
    pub fn prefetch<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) {
        let (mut keys, mut hashes) = (keys.into_iter(), [0; PREFETCHED]);
        loop {
            let hashed = hashes.iter_mut().zip(&mut keys).map(|(hash, key)| *hash = self.hasher.hash(key)).count();
            self.table.prefetch(&hashes[..hashed], |handle| self.records.prefetch(handle));
            if hashed < PREFETCHED {
                return;
            }
        }
    }

    /// The key stored at `slot`.
    pub fn key(&self, slot: KeyHandle) -> &[u8] {
        self.records.key(slot.0)
    }

    /// The value stored at `slot`.
    #[inline]
    pub fn view(&self, slot: KeyHandle) -> View<'_> {
        self.records.view(slot.0)
    }

    /// The type name that `TYPE` replies.
    #[inline]
    pub fn type_name(&self, slot: KeyHandle) -> &'static str {
        if self.records.record(slot.0).is_text() { TEXT_TYPE } else { self.view(slot).type_name() }
    }

    /// The length of a text whose bytes are stored beside its key; `None` for all other values: those have to be read
    /// ([`Database::view`]).
    #[inline]
    pub fn text_len(&self, slot: KeyHandle) -> Option<usize> {
        self.records.record(slot.0).text_len()
    }

    /// Stores a value under `key`, which must be absent, without a deadline and with access 0.
    pub fn insert(&mut self, key: &[u8], value: New<'_>) -> KeyHandle {
        debug_assert!(self.find(key).is_none(), "insert is for absent keys");
        self.before_insert(key);
        let part_deadline = value.first_deadline();
        let handle = self.with_payload(key.len(), value, |records, payload| records.create(key, payload));
        self.list(key, handle, part_deadline)
    }

    /// Builds the table again with another hash function, with `added` in it.
    fn rebuild_guarded(&mut self, added: u32) {
        let mut handles: Vec<u32> = self.table.handles().collect();
        handles.push(added);
        self.rebuild(&handles, self.hasher.guarded());
    }

    /// The hash function, which fixes the order of the keys.
    pub fn order(&self) -> KeyOrder {
        KeyOrder(self.hasher.first())
    }

    /// Orders the keys as that says. A database whose keys have that order stays as it is.
    pub fn restore_order(&mut self, order: &KeyOrder) {
        if !self.hasher.has_seed_of(&order.0) {
            self.reorder(order.0.clone());
        }
    }

    /// Orders the keys by another seed, as if the database had had it from the start. Cursors from before are no
    /// longer valid, so an index of patterns, which may be incomplete, ends.
    pub fn reseed(&mut self, seed: u64) {
        self.reorder(Hasher::quick(seed));
    }

    fn reorder(&mut self, hasher: Hasher) {
        self.pattern_index = None;
        // The order in which records were created does not depend on the seed; that of the table does.
        let mut handles: Vec<u32> = self.table.handles().collect();
        handles.sort_unstable();
        self.rebuild(&handles, hasher);
    }

    /// Builds the table again, with that hash function or the first one derived from it that is not flooded.
    fn rebuild(&mut self, handles: &[u32], mut hasher: Hasher) {
        let built = |hasher: &Hasher| {
            let keys = Keys { records: &self.records, hasher };
            let mut table = Table::new();
            handles.iter().try_for_each(|&handle| table.insert(keys.hash_of(handle), handle, &keys)).map(|()| table)
        };
        self.table = loop {
            match built(&hasher) {
                Ok(table) => break table,
                Err(Flood) => hasher = hasher.guarded(),
            }
        };
        self.hasher = hasher;
        if self.slot_index.is_some() {
            self.index_hash_slots();
        }
    }

    /// Stores another value at `slot`, which keeps its deadline and access; the caller drops the old value.
    pub fn replace(&mut self, slot: KeyHandle, value: New<'_>) -> (KeyHandle, LazyFree) {
        let noted = self.before_end(slot);
        let key_len = self.key(slot).len();
        let part_deadlines = (self.part_deadline(slot), value.first_deadline());
        let is_wanted = noted.is_some();
        let set = |records: &mut Records, payload: Payload<'_>| records.set_payload(slot.0, payload, is_wanted);
        let (handle, replaced) = self.with_payload(key_len, value, set);
        self.move_part_deadline(slot.0, part_deadlines.0, part_deadlines.1);
        let replaced = self.record_value(noted, replaced);
        (self.moved(slot, handle, |data| data.deadline(KeyHandle(handle))), replaced.into())
    }

    /// Stores the payload of a value by `act`.
    fn with_payload<R>(
        &mut self,
        key_len: usize,
        value: New<'_>,
        act: impl FnOnce(&mut Records, Payload<'_>) -> R,
    ) -> R {
        let records = &mut self.records;
        match value {
            New::Text(text) => {
                let payload = records.text_payload(key_len, text);
                act(records, payload)
            }
            New::Value(value) => records.with_payload(key_len, value, act),
        }
    }

    /// Updates the table and the deadlines if the record of `slot` has another handle now; `deadline_of` returns the
    /// deadline under which it is known.
    #[inline]
    fn moved(&mut self, slot: KeyHandle, handle: u32, deadline_of: impl FnOnce(&Self) -> Option<i64>) -> KeyHandle {
        if handle != slot.0 {
            let deadline_ms = deadline_of(self);
            self.replace_handle(slot, handle, deadline_ms);
        }
        KeyHandle(handle)
    }

    fn replace_handle(&mut self, slot: KeyHandle, handle: u32, deadline_ms: Option<i64>) {
        let hash = self.hash(KeyHandle(handle));
        self.move_in_hash_slot(hash, slot.0, handle);
        self.move_in_patterns(slot.0, handle);
        self.table.rename(hash, slot.0, handle);
        if let Some(deadline_ms) = deadline_ms {
            self.deadlines.remove(deadline_ms, slot.0);
            self.deadlines.insert(deadline_ms, handle);
        }
        let part_deadline = self.view(KeyHandle(handle)).first_deadline();
        self.move_part_deadline(slot.0, part_deadline, None);
        self.move_part_deadline(handle, None, part_deadline);
    }

    /// Changes the value at `slot` in place by `edit`, which gets `None` for a text (see [`Database::edit_text`]).
    pub fn edit_object<R>(&mut self, slot: KeyHandle, edit: impl FnOnce(Option<ValueMut<'_>>) -> R) -> (KeyHandle, R) {
        if self.undo_log.is_some() && !matches!(self.view(slot), View::Text(_)) {
            self.before_edit(slot);
        }
        let (handle, ((before, after), result)) = self.records.edit(slot.0, |value| {
            let Some(value) = value else { return ((None, None), edit(None)) };
            let before = value.view().first_deadline();
            let result = edit(value.object_mut());
            ((before, value.view().first_deadline()), result)
        });
        self.move_part_deadline(slot.0, before, after);
        (self.moved(slot, handle, |data| data.deadline(KeyHandle(handle))), result)
    }

    /// Updates the order of deadlines after the earliest deadline within the value of `handle` changed.
    fn move_part_deadline(&mut self, handle: u32, before: Option<i64>, after: Option<i64>) {
        if before != after {
            before.into_iter().for_each(|deadline_ms| self.part_deadlines.remove(deadline_ms, handle));
            after.into_iter().for_each(|deadline_ms| self.part_deadlines.insert(deadline_ms, handle));
        }
    }

    /// Replaces the value at `slot` by the text of an integer.
    pub fn set_int(&mut self, slot: KeyHandle, number: i64) -> KeyHandle {
        self.replace(slot, New::Text(TextView::Int(number))).0
    }

    /// Removes the key at `slot` and returns its value.
    pub fn remove(&mut self, slot: KeyHandle) -> Value {
        self.before_edit(slot);
        let kept = match self.records.record(slot.0).payload() {
            Payload::Apart(_) => None,
            _ => Some(self.view(slot).to_value()),
        };
        let apart = self.unlink(slot, true);
        kept.or(apart).expect("a value is in its record or stored apart")
    }

    /// Removes the key at `slot` without returning its value: cheaper than [`Database::remove`].
    pub fn delete(&mut self, slot: KeyHandle) -> LazyFree {
        let noted = self.before_end(slot);
        let value = self.unlink(slot, noted.is_some());
        self.record_value(noted, value).into()
    }

    fn unlink(&mut self, slot: KeyHandle, is_wanted: bool) -> Option<Value> {
        self.unlist(slot);
        self.records.destroy(slot.0, is_wanted)
    }

    /// The deadline of the key at `slot`.
    #[inline]
    pub fn deadline(&self, slot: KeyHandle) -> Option<i64> {
        self.records.record(slot.0).deadline()
    }

    /// Sets or removes the deadline of the key at `slot`; past times are allowed too.
    pub fn set_deadline(&mut self, slot: KeyHandle, deadline_ms: Option<i64>) -> KeyHandle {
        let old_ms = self.deadline(slot);
        if old_ms == deadline_ms {
            return slot;
        }
        self.before_mark(slot);
        if let Some(old_ms) = old_ms {
            self.deadlines.remove(old_ms, slot.0);
        }
        let handle = self.records.set_deadline(slot.0, deadline_ms);
        if let Some(deadline_ms) = deadline_ms {
            self.deadlines.insert(deadline_ms, handle);
        }
        self.moved(slot, handle, |_| None)
    }

    /// The 24 bits of access information that the engine keeps with a key (LRU time or LFU counter); 0 in a new key.
    pub fn access(&self, slot: KeyHandle) -> u32 {
        self.records.record(slot.0).access()
    }

    /// Sets the 24 bits of [`Database::access`]; higher bits are dropped.
    #[inline]
    pub fn set_access(&mut self, slot: KeyHandle, access: u32) {
        if self.access(slot) != access & ACCESS_MASK {
            self.before_mark(slot);
            self.records.set_access(slot.0, access);
        }
    }

    /// Visits about `count` keys from `cursor` on, and returns the next cursor: 0 at the end.
    ///
    /// A walk begins with cursor 0. A key that is stored from the walk's beginning to its end is visited at least
    /// once, whatever else is added, removed or moved meanwhile: a walk whose cursor is of another hash function
    /// starts again.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(KeyHandle)) -> u64 {
        let keys = Keys { records: &self.records, hasher: &self.hasher };
        let next = self.table.scan(self.cursor_position(cursor), count, &keys, |handle| visit(KeyHandle(handle)));
        self.cursor_of(next)
    }

    /// The position of a cursor in the order of hashes: 0 if it is of another hash function.
    fn cursor_position(&self, cursor: u64) -> u64 {
        let generation = u64::from(self.hasher.generation()) << CURSOR_BITS;
        if cursor >> CURSOR_BITS << CURSOR_BITS == generation { cursor - generation } else { 0 }
    }

    /// The cursor of a position, where 0 is the end.
    fn cursor_of(&self, position: u64) -> u64 {
        match position {
            0 => 0,
            next => u64::from(self.hasher.generation()) << CURSOR_BITS | next,
        }
    }

    /// A random key by `generator`, each about as likely as any other.
    pub fn random(&self, generator: &mut impl FnMut() -> u64) -> Option<KeyHandle> {
        self.table.random(generator).map(KeyHandle)
    }

    /// A random key with a deadline by `generator`, each about as likely as any other.
    pub fn random_volatile(&self, generator: &mut impl FnMut() -> u64) -> Option<KeyHandle> {
        let below = |bound: usize| ((u128::from(generator()) * bound as u128) >> 64) as usize;
        self.deadlines.random(below).map(|(_, handle)| KeyHandle(handle))
    }

    /// The hash of the key at `slot`, by which [`Database::find_hash`] finds it again.
    pub fn hash(&self, slot: KeyHandle) -> u64 {
        self.hasher.hash(self.key(slot))
    }

    /// The slot of a key with that hash. After the database was flooded with similar hashes, earlier hashes find
    /// nothing.
    pub fn find_hash(&self, hash: u64) -> Option<KeyHandle> {
        self.table.find(hash, |handle| self.hasher.hash(self.records.key(handle)) == hash).map(KeyHandle)
    }

    /// Every key, in an order that depends only on the seed and the history.
    pub fn handles(&self) -> impl Iterator<Item = KeyHandle> {
        self.table.handles().map(KeyHandle)
    }

    /// The slots of all keys, some ahead of the caller, so that the reads of their records overlap: they are everywhere
    /// in memory.
    pub fn handles_prefetched(&self) -> impl Iterator<Item = KeyHandle> {
        self.table
            .handles_prefetched(|handles| handles.iter().for_each(|&handle| self.records.prefetch(handle)))
            .map(KeyHandle)
    }

    /// The mean time to live of the keys with a deadline, in milliseconds; 0 if there are none.
    pub fn average_ttl_ms(&self, now_ms: i64) -> i64 {
        let average_ms = self.deadlines.sum().checked_div(self.volatile_len() as i128).unwrap_or(i128::from(now_ms));
        (average_ms - i128::from(now_ms)).clamp(0, i128::from(i64::MAX)) as i64
    }

    /// An empty database that orders its keys as this one does, with the same indices.
    pub fn like_empty(&self) -> Database<LINES> {
        let slot_index = self.slot_index.as_ref().map(|_| Box::default());
        Database { slot_index, hasher: self.hasher.first(), ..Database::with_segments(0) }
    }

    /// A copy without undo levels, to be cloned: its clones share its contents, and copy the parts that they change.
    pub fn fork(&self) -> Database<LINES> {
        if self.is_empty() {
            return self.like_empty();
        }
        let mut table = self.table.clone();
        table.share_contents();
        Database {
            hasher: self.hasher.clone(),
            table,
            records: self.records.clone().into_fork(),
            deadlines: self.deadlines.to_fork(),
            part_deadlines: self.part_deadlines.to_fork(),
            slot_index: self.slot_index.as_ref().map(|index| Box::new(index.to_fork())),
            pattern_index: None,
            scratch: Vec::new(),
            undo_log: None,
        }
    }

    /// A copy-on-write copy that can be rolled back like this database.
    pub fn fork_with_levels(&self) -> Database<LINES> {
        Database { undo_log: self.undo_log.clone(), ..self.fork() }
    }

    /// Moves the table and the records to where they can be shared, and returns them.
    pub(super) fn share_parts(&mut self) -> (Arc<Table<LINES>>, SharedRecords) {
        let shared = (self.table.share_contents(), self.records.share_contents());
        self.table.is_frozen = true;
        shared
    }

    /// The bytes that were copied because they changed while a frozen copy shared them.
    pub fn copied_bytes(&self) -> usize {
        self.table.copied_bytes() + self.records.copied_bytes()
    }

    /// Takes back what a frozen copy shared, once that has been dropped; returns what only the copy had, to be freed.
    pub fn thaw(&mut self) -> LazyFree {
        let rest = (self.table.reclaim(), self.records.reclaim());
        // Another frozen copy may share the data still.
        self.table.is_frozen &= self.is_shared();
        LazyFree::of(rest, self.records.memory())
    }

    /// Whether a frozen copy may share a part, so that a change copies it.
    #[inline]
    pub fn is_frozen(&self) -> bool {
        self.table.is_frozen
    }

    /// Whether a part may be shared with a copy.
    pub fn is_shared(&self) -> bool {
        self.table.has_base() || self.records.is_shared()
    }

    /// Empties the database at once and returns its contents.
    pub fn clear(&mut self) -> LazyFree {
        let empty = self.like_empty();
        std::mem::replace(self, empty).into_lazy_free()
    }

    /// The whole contents, to be dropped.
    pub fn into_lazy_free(self) -> LazyFree {
        LazyFree(Contents::Other(Box::new(self)))
    }

    /// Checks every invariant, at the cost of visiting everything.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        self.records.check(self.table.handles());
        self.table.check(&Keys { records: &self.records, hasher: &self.hasher });
        self.deadlines.check();
        for slot in self.handles() {
            assert_eq!(self.find(self.key(slot)), Some(slot), "a key is stored twice");
        }
        let volatile = self.handles().filter(|&slot| self.deadline(slot).is_some()).count();
        assert_eq!(volatile, self.volatile_len());
        for (deadline_ms, handle) in self.deadlines.iter() {
            assert_eq!(self.deadline(KeyHandle(handle)), Some(deadline_ms));
        }
        self.check_hash_slots();
        self.check_patterns();
        self.check_levels();
        self.part_deadlines.check();
        assert_eq!(
            self.handles().filter_map(|slot| self.view(slot).first_deadline()).count(),
            self.volatile_parts_len()
        );
        for (deadline_ms, handle) in self.part_deadlines.iter() {
            assert_eq!(self.view(KeyHandle(handle)).first_deadline(), Some(deadline_ms));
        }
    }
}

impl<const LINES: usize> Held for Database<LINES> {
    fn memory(&self) -> usize {
        Database::memory(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flooded_database_changes_its_hash_function_and_finds_every_key() {
        let mut database = Database::<2>::with_segments(1);
        let keys = || (0..500u32).map(u32::to_be_bytes);
        for key in keys() {
            database.insert(&key, New::Text(TextView::Int(1)));
        }
        let late = database.records.create(b"late", Payload::Int(2));
        database.rebuild_guarded(late);
        assert!(matches!(database.hasher, Hasher::Guarded { .. }));
        database.check();
        assert_eq!((database.len(), database.find(b"late")), (501, Some(KeyHandle(late))));
        assert!(keys().all(|key| database.find(&key).is_some()));
    }

    #[test]
    fn a_database_of_another_seed_is_in_the_order_of_that_seed() {
        let filled = |seed| {
            let mut database = Database::<2>::with_segments(seed);
            (0..500u32).for_each(|number| _ = database.insert(&number.to_be_bytes(), New::Text(TextView::Int(1))));
            database
        };
        let order = |database: &Database<2>| -> Vec<Vec<u8>> {
            database.handles().map(|slot| database.key(slot).to_vec()).collect()
        };
        let (mut database, other) = (filled(1), filled(2));
        assert_ne!(order(&database), order(&other));
        database.reseed(2);
        database.check();
        assert_eq!(order(&database), order(&other));
        assert_eq!(order(&database.like_empty()), order(&other.like_empty()));
    }

    #[test]
    fn a_scan_returns_every_key_although_the_hash_function_changes() {
        let mut database = Database::<2>::with_segments(1);
        (0..500u32).for_each(|number| _ = database.insert(&number.to_be_bytes(), New::Text(TextView::Int(1))));
        let (mut seen, mut cursor, mut calls) = (std::collections::BTreeSet::new(), 0, 0);
        loop {
            cursor = database.scan(cursor, 10, |slot| _ = seen.insert(database.key(slot).to_vec()));
            calls += 1;
            if cursor == 0 {
                break;
            }
            if calls == 20 {
                let late = database.records.create(b"late", Payload::Int(2));
                database.rebuild_guarded(late);
            }
        }
        assert!((0..500u32).all(|number| seen.contains(&number.to_be_bytes()[..])));
        assert!((40..120).contains(&calls), "{calls} calls");
    }
}
