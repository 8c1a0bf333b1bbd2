//! The records of a database: the bytes of [`super::record`] in cells, with keys and values that are too long for a
//! record stored apart.
//!
//! A handle identifies a record. Operations that change its size may move it, and return its new handle;
//! [`super::Database`] updates the tables that contain the handle (the table, the deadlines).
//!
//! A packed hash of few bytes is stored in its record. To be changed it is unpacked into a shared buffer, and packed
//! again.
//!
//! Invariants: a record's cell is the smallest that holds it, or larger by at most an eighth; each key and value
//! stored apart is named by exactly one record; `apart` is the memory of those keys and values.

use std::sync::Arc;

use super::cells::{Cells, MAX_CELL, cell_bytes};
use super::record::{self, Key, MAX_KEY, Payload, Record};
use super::slab::Slab;
use crate::value::base::Fork;
use crate::value::{Hash, HashView, TYPES, Text, TextView, Value, View};

/// The start of a record, which contains most keys whole.
const PREFETCH_BYTES: usize = 32;

/// The largest packed hash that is stored in its record, in bytes.
const HASH_BYTES: usize = 256;

/// The memory of what is stored apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ApartBytes {
    /// Keys and values together.
    all: usize,
    /// Values by their type, in the order of [`TYPES`].
    by_type: [usize; TYPES.len()],
}

impl ApartBytes {
    #[inline]
    fn add(&mut self, value: &Value) {
        let bytes = value.memory();
        self.all += bytes;
        self.by_type[value.type_number()] += bytes;
    }

    #[inline]
    fn subtract(&mut self, value: &Value) {
        let bytes = value.memory();
        self.all -= bytes;
        self.by_type[value.type_number()] -= bytes;
    }

    /// Counts a value that took `before` bytes and has changed.
    #[inline]
    fn update(&mut self, before: usize, value: &Value) {
        let after = value.memory();
        self.all = self.all - before + after;
        let of_type = &mut self.by_type[value.type_number()];
        *of_type = *of_type - before + after;
    }
}

/// All records of a database.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    cells: Cells,
    keys: Slab<Box<[u8]>>,
    values: Slab<Value>,
    /// `None` before there is anything, as most databases are empty.
    apart: Option<Box<ApartBytes>>,
    /// The shared buffer into which the hashes of records are unpacked.
    room: Box<[u8]>,
}

impl Records {
    /// Creates a record without a deadline.
    pub(super) fn create(&mut self, key: &[u8], payload: Payload<'_>) -> u32 {
        let key = match key.len() {
            0..=MAX_KEY => Key::Here(key),
            _ => {
                self.apart().all += key.len();
                Key::Apart(self.keys.insert(key.into()))
            }
        };
        let handle = self.cells.allocate(key.end() + payload.width());
        record::write(self.cells.get_mut(handle), key, payload);
        handle
    }

    /// Destroys a record; a value that was stored apart is returned, but not a shared one unless it is wanted: for that
    /// it has to be copied.
    pub(super) fn destroy(&mut self, handle: u32, is_wanted: bool) -> Option<Value> {
        let number = self.destroy_record(handle)?;
        self.take_apart(number, is_wanted)
    }

    /// Destroys a record, but not a value that is stored apart: its number is returned, for another record.
    pub(super) fn destroy_record(&mut self, handle: u32) -> Option<u32> {
        let record = self.record(handle);
        let (key, payload) = (record.key(), record.payload());
        let value = if let Payload::Apart(number) = payload { Some(number) } else { None };
        if let Key::Apart(number) = key {
            let bytes = self.keys.remove(number).len();
            self.apart().all -= bytes;
        }
        self.cells.free(handle);
        value
    }

    /// The records, for reading.
    #[inline(always)]
    pub(super) fn by_ref(&self) -> RecordsRef<'_> {
        RecordsRef { cells: &self.cells, keys: &self.keys, values: &self.values }
    }

    /// The record with that handle.
    #[inline(always)]
    pub(super) fn record(&self, handle: u32) -> Record<'_> {
        self.by_ref().record(handle)
    }

    /// Prefetches the key of a record, as [`RecordsRef::prefetch`] does.
    #[inline]
    pub(super) fn prefetch(&self, handle: u32) {
        self.by_ref().prefetch(handle);
    }

    /// The key of a record.
    #[inline]
    pub(super) fn key(&self, handle: u32) -> &[u8] {
        self.by_ref().key(handle)
    }

    /// The value of a record, for reading.
    #[inline(always)]
    pub(super) fn view(&self, handle: u32) -> View<'_> {
        self.by_ref().view(handle)
    }

    /// Changes the value by `act`, unless it is a text that is stored in its record. The record may move.
    pub(super) fn edit<R>(&mut self, handle: u32, act: impl FnOnce(Option<&mut Value>) -> R) -> (u32, R) {
        match self.record(handle).payload() {
            Payload::Apart(number) => {
                if self.values.is_shared(number) {
                    self.count_copy(number);
                }
                let value = self.values.get_mut(number);
                let before = value.memory();
                let result = act(Some(value));
                self.apart.get_or_insert_default().update(before, value);
                (handle, result)
            }
            Payload::Hash(_) => {
                let mut value = Value::Hash(self.unpack(handle));
                let result = act(Some(&mut value));
                let set = |records: &mut Records, payload: Payload<'_>| records.set_payload(handle, payload, false).0;
                (self.with_payload(self.key(handle).len(), value, set), result)
            }
            Payload::Int(_) | Payload::Text(_) | Payload::Raw(_) => (handle, act(None)),
        }
    }

    /// Unpacks the hash in a record into the shared buffer.
    fn unpack(&mut self, handle: u32) -> Hash {
        let room = std::mem::take(&mut self.room);
        match self.record(handle).payload() {
            Payload::Hash(bytes) => Hash::unpack(bytes, room),
            _ => Hash::new(),
        }
    }

    /// Stores the payload of a value by `act`: in a record with a key of `key_len` bytes if it fits, else apart.
    pub(super) fn with_payload<R>(
        &mut self,
        key_len: usize,
        value: Value,
        act: impl FnOnce(&mut Records, Payload<'_>) -> R,
    ) -> R {
        match value {
            Value::Text(text) if Records::keeps(key_len, &text) => {
                let payload = self.text_payload(key_len, text.view());
                act(self, payload)
            }
            Value::Hash(hash) if hash.packed_len().is_some_and(|len| len <= HASH_BYTES) => {
                let len = hash.packed_len().unwrap_or(0);
                let bytes = hash.pack();
                let result = act(self, Payload::Hash(&bytes[..len]));
                if bytes.len() > self.room.len() && bytes.len() <= 2 * HASH_BYTES {
                    self.room = bytes;
                }
                result
            }
            _ => {
                let number = self.set_apart(value);
                act(self, Payload::Apart(number))
            }
        }
    }

    /// The memory of what is stored apart, to be changed.
    fn apart(&mut self) -> &mut ApartBytes {
        self.apart.get_or_insert_default()
    }

    fn apart_bytes(&self) -> ApartBytes {
        self.apart.as_deref().copied().unwrap_or_default()
    }

    /// Stores a value apart, for a payload to refer to.
    fn set_apart(&mut self, value: Value) -> u32 {
        self.apart().add(&value);
        self.values.insert(value)
    }

    /// Counts what the copy of a shared value takes, instead of the value: it has no spare capacity.
    #[cold]
    fn count_copy(&mut self, number: u32) {
        let shared = self.values.get(number).memory();
        self.apart.get_or_insert_default().update(shared, self.values.get_mut(number));
    }

    fn take_apart(&mut self, number: u32, is_wanted: bool) -> Option<Value> {
        self.apart.get_or_insert_default().subtract(self.values.get(number));
        if is_wanted { Some(self.values.remove(number)) } else { self.values.discard(number) }
    }

    /// Replaces a record's payload; a value that was stored apart is returned as by [`Records::destroy`]. The record
    /// may move.
    pub(super) fn set_payload(&mut self, handle: u32, payload: Payload<'_>, is_wanted: bool) -> (u32, Option<Value>) {
        let record = self.record(handle);
        let start = record.payload_start();
        let replaced = if let Payload::Apart(number) = record.payload() { Some(number) } else { None };
        let moved = self.resize(handle, start + payload.width(), |cells, from, to| {
            if from != to {
                cells.copy((from, 0), (to, 0), start);
            }
        });
        record::write_payload(self.cells.get_mut(moved), start, payload);
        (moved, replaced.and_then(|number| self.take_apart(number, is_wanted)))
    }

    /// Sets a record's deadline. The record may move.
    pub(super) fn set_deadline(&mut self, handle: u32, deadline_ms: Option<i64>) -> u32 {
        let record = self.record(handle);
        let (old_width, width) = (record.deadline_width(), record::deadline_width(deadline_ms));
        if old_width == width {
            record::write_deadline(self.cells.get_mut(handle), deadline_ms);
            return handle;
        }
        let (start, target) = (record::behind_deadline(old_width), record::behind_deadline(width));
        let rest = record.end() - start;
        let moved = self.resize(handle, target + rest, |cells, from, to| {
            cells.copy((from, start), (to, target), rest);
            cells.copy((from, 0), (to, 0), record::behind_deadline(0));
        });
        let cell = self.cells.get_mut(moved);
        record::set_end(cell, target + rest);
        record::write_deadline(cell, deadline_ms);
        moved
    }

    /// Finds a cell for a record that is to have `bytes`, copies the rest of the record by `copy`, and frees the old
    /// cell.
    fn resize(&mut self, handle: u32, bytes: usize, copy: impl FnOnce(&mut Cells, u32, u32)) -> u32 {
        let cell = self.cells.get(handle).len();
        if bytes <= cell && cell - cell_bytes(bytes) <= cell / 8 {
            copy(&mut self.cells, handle, handle);
            return handle;
        }
        let moved = self.cells.allocate(bytes);
        copy(&mut self.cells, handle, moved);
        self.cells.free(handle);
        moved
    }

    /// Writes the 24 access bits of a record.
    #[inline]
    pub(super) fn set_access(&mut self, handle: u32, access: u32) {
        record::write_access(self.cells.get_mut(handle), access);
    }

    /// The payload for a text: its bytes if a record with this key and any deadline has room, else its number apart.
    pub(super) fn text_payload<'a>(&mut self, key_len: usize, text: TextView<'a>) -> Payload<'a> {
        let payload = match text {
            TextView::Int(number) => Payload::Int(number),
            TextView::Bytes(bytes) => Payload::Text(bytes),
            TextView::Shared(bytes) => Payload::Text(bytes),
            TextView::Raw(bytes) => Payload::Raw(bytes),
        };
        if has_room(key_len, payload) { payload } else { Payload::Apart(self.set_apart(Value::Text(text.to_text()))) }
    }

    /// Whether a record with a key of `key_len` bytes stores `text` itself.
    pub(super) fn keeps(key_len: usize, text: &Text) -> bool {
        text.view().bytes().map_or(true, |bytes| has_room(key_len, Payload::Text(bytes)))
    }

    /// Moves the records to where they can be shared, and returns them. Copies none, unless they are shared already.
    pub(super) fn share_contents(&mut self) -> SharedRecords {
        let is_copied = self.is_shared();
        let shared = SharedRecords {
            cells: self.cells.share_contents(),
            keys: self.keys.share_contents(),
            values: self.values.share_contents(),
        };
        if is_copied {
            self.count_apart();
        }
        shared
    }

    /// Converts a clone into a form whose clones share its contents until they change them.
    pub(super) fn into_fork(mut self) -> Records {
        self.share_contents();
        self.count_apart();
        self.room = Box::default();
        self
    }

    /// Counts the memory of keys and values that were copied: copies have no spare capacity.
    fn count_apart(&mut self) {
        self.apart = Some(Box::new(apart_bytes(&self.keys, &self.values)));
    }

    /// The bytes that were copied because they changed while they were shared.
    pub(super) fn copied_bytes(&self) -> usize {
        self.cells.copied_bytes() + self.values.copied().map(Value::own_bytes).sum::<usize>()
    }

    /// Takes back what is shared, if nobody else shares it any more; returns what is left of it, to be freed.
    pub(super) fn reclaim(&mut self) -> impl std::fmt::Debug + Send + use<> {
        (self.cells.reclaim(), self.keys.reclaim(), self.values.reclaim())
    }

    /// Whether a part has a base.
    pub(super) fn is_shared(&self) -> bool {
        self.cells.has_base() || self.keys.has_base() || self.values.has_base()
    }

    /// The bytes of the records and of the keys and values stored apart for them.
    #[inline]
    pub(super) fn memory(&self) -> usize {
        let counts = self.apart.as_ref().map_or(0, |_| size_of::<ApartBytes>());
        self.cells.memory() + self.keys.memory() + self.values.memory() + self.apart_bytes().all + counts
    }

    /// The bytes of the values that are stored apart, by their type, in the order of [`TYPES`].
    pub(super) fn values_memory(&self) -> [usize; TYPES.len()] {
        self.apart_bytes().by_type
    }

    /// The capacity of all chunks of records that have a number, in bytes.
    pub(super) fn named_bytes(&self) -> usize {
        self.cells.named_bytes()
    }

    /// The bytes of memory held for future records.
    pub(super) fn slack(&self) -> usize {
        self.cells.slack() + self.keys.slack() + self.values.slack() + self.room.len()
    }

    /// Panics unless the invariants hold; `live` are all handles in use.
    pub(super) fn check(&self, live: impl Iterator<Item = u32> + Clone) {
        self.cells.check(live.clone());
        self.keys.check();
        self.values.check();
        let (mut keys, mut values) = (0, 0);
        for record in live.map(|handle| self.record(handle)) {
            keys += usize::from(matches!(record.key(), Key::Apart(_)));
            values += usize::from(matches!(record.payload(), Payload::Apart(_)));
            assert!(record.0.len() - cell_bytes(record.end()) <= record.0.len() / 8, "a cell is too large");
        }
        assert_eq!((keys, values), (self.keys.iter().count(), self.values.iter().count()));
        assert_eq!(apart_bytes(&self.keys, &self.values), self.apart_bytes());
    }
}

/// The records of a database, or of a frozen copy of it, for reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordsRef<'a> {
    cells: &'a Cells,
    keys: &'a Slab<Box<[u8]>>,
    values: &'a Slab<Value>,
}

impl<'a> RecordsRef<'a> {
    /// The record with that handle.
    #[inline(always)]
    pub(super) fn record(self, handle: u32) -> Record<'a> {
        Record(self.cells.get(handle))
    }

    /// Prefetches the key of a record. For many records, one after the other, these reads overlap, as they do not
    /// wait for anything, whereas reading a record waits for its first byte.
    #[inline]
    pub(super) fn prefetch(self, handle: u32) {
        let cell = self.cells.get(handle);
        std::hint::black_box(cell[0] ^ cell[cell.len().min(PREFETCH_BYTES) - 1]);
    }

    /// Prefetches records with their values, in three steps that each read what the one before has made known.
    pub(super) fn prefetch_whole(self, handles: &[u32]) {
        handles.iter().for_each(|&handle| self.prefetch(handle));
        let apart = handles.iter().filter_map(|&handle| match self.record(handle).payload() {
            Payload::Apart(number) => Some(self.values.get(number)),
            _ => None,
        });
        apart.clone().for_each(|value| _ = std::hint::black_box(value));
        apart.for_each(|value| value.view().prefetch_whole());
    }

    /// The key of a record.
    #[inline]
    pub(super) fn key(self, handle: u32) -> &'a [u8] {
        match self.record(handle).key() {
            Key::Here(bytes) => bytes,
            Key::Apart(number) => self.keys.get(number),
        }
    }

    /// The value of a record, for reading.
    #[inline(always)]
    pub(super) fn view(self, handle: u32) -> View<'a> {
        match self.record(handle).payload() {
            Payload::Int(number) => View::Text(TextView::Int(number)),
            Payload::Text(bytes) => View::Text(TextView::Bytes(bytes)),
            Payload::Raw(bytes) => View::Text(TextView::Raw(bytes)),
            Payload::Hash(bytes) => View::Hash(HashView::packed(bytes)),
            Payload::Apart(number) => self.values.get(number).view(),
        }
    }

    /// The bytes of one record, with the key and the value stored apart for it.
    pub(super) fn memory_of(self, handle: u32) -> usize {
        let record = self.record(handle);
        let key = if let Key::Apart(number) = record.key() {
            size_of::<Box<[u8]>>() + self.keys.get(number).len()
        } else {
            0
        };
        let value = if let Payload::Apart(number) = record.payload() {
            size_of::<Value>() + self.values.get(number).memory()
        } else {
            0
        };
        record.0.len() + key + value
    }
}

/// The records of a database at a moment, which it shares until it changes them.
#[derive(Debug)]
pub(super) struct SharedRecords {
    cells: Arc<Cells>,
    keys: Arc<Slab<Box<[u8]>>>,
    values: Arc<Slab<Value>>,
}

impl SharedRecords {
    /// The records, for reading.
    pub(super) fn by_ref(&self) -> RecordsRef<'_> {
        RecordsRef { cells: &self.cells, keys: &self.keys, values: &self.values }
    }
}

/// The memory of keys and values, which are counted one by one.
fn apart_bytes(keys: &Slab<Box<[u8]>>, values: &Slab<Value>) -> ApartBytes {
    let mut apart = ApartBytes { all: keys.iter().map(|key| key.len()).sum(), ..ApartBytes::default() };
    values.iter().for_each(|value| apart.add(value));
    apart
}

fn has_room(key_len: usize, payload: Payload<'_>) -> bool {
    let key_width = if key_len <= MAX_KEY { key_len } else { 4 };
    payload.fits(record::behind_deadline(MAX_DEADLINE) + key_width)
}

const MAX_DEADLINE: usize = 8;
const _: () = assert!(MAX_KEY + MAX_DEADLINE + 16 < MAX_CELL);
