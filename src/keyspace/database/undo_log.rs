//! The undo log: the previous state of changed keys, for databases that can be rolled back.
//!
//! While a rollback is possible, a database keeps levels, the youngest last. The first change of a key since the
//! youngest level began records its state there: absent, or its deadline and access, and its value once that changes.
//! Every change passes a method of [`Database`], and each of those records first; so callers cannot miss one.
//!
//! Invariants: a level has, for every key that changed since it began, the state at its beginning, and nothing of
//! other keys; older levels do not contain what younger ones do.
//!
//! Costs: without a level, one branch a change. With one, the first change of a key costs an entry in a sorted map; a
//! value that is replaced or removed is moved there, one that is edited in place is copied first, whole. Rolling back
//! costs as much as there are entries. The memory held here is not counted as memory of the database, but by itself.

use std::collections::BTreeMap;

use super::Database;
use crate::keyspace::record::Payload;
use crate::keyspace::{KeyHandle, LazyFree, New};
use crate::value::Value;

/// The levels of a database, the youngest last.
#[derive(Clone, Debug)]
pub(super) struct UndoLog {
    levels: Vec<Level>,
}

#[derive(Clone, Debug, Default)]
struct Level {
    priors: BTreeMap<Box<[u8]>, PriorState>,
    /// The memory of these.
    bytes: usize,
    /// Whether the level began before the database was made.
    began_before_database: bool,
}

/// The state of a key before it changed.
#[derive(Clone, Debug)]
struct PriorState {
    value: PriorValue,
    deadline_ms: Option<i64>,
    access: u32,
}

/// The value of a key before it changed.
#[derive(Clone, Debug)]
enum PriorValue {
    /// The key did not exist.
    Absent,
    /// The value has not changed.
    Same,
    /// The previous value.
    Other(Value),
}

impl PriorState {
    /// The bytes of memory of an entry, with its key.
    fn memory(&self, key: &[u8]) -> usize {
        size_of::<(Box<[u8]>, PriorState)>() + key.len() + self.value.memory()
    }
}

impl PriorValue {
    fn memory(&self) -> usize {
        if let PriorValue::Other(value) = self { value.memory() } else { 0 }
    }
}

impl Level {
    /// Adds an entry for a key that has none.
    fn add(&mut self, key: Box<[u8]>, prior: PriorState) {
        self.bytes += prior.memory(&key);
        self.priors.insert(key, prior);
    }

    /// Adds the previous value of a key that has an entry without one; returns the value if it has none.
    fn add_value(&mut self, key: &[u8], value: Value) -> Option<Value> {
        let Some(prior) = self.priors.get_mut(key) else { return Some(value) };
        let before = prior.value.memory();
        prior.value = PriorValue::Other(value);
        self.bytes = self.bytes - before + prior.value.memory();
        None
    }

    /// Whether it has the previous value of that key already.
    fn knows_value(&self, key: &[u8]) -> bool {
        self.priors.get(key).is_some_and(|prior| !matches!(prior.value, PriorValue::Same))
    }

    /// Takes all entries.
    fn take(&mut self) -> BTreeMap<Box<[u8]>, PriorState> {
        self.bytes = 0;
        std::mem::take(&mut self.priors)
    }

    /// Adds the entries of a younger level for keys that this one does not have.
    fn absorb(&mut self, younger: Level) {
        for (key, prior) in younger.priors {
            match (self.priors.get(&key).map(|known| &known.value), prior.value) {
                (None, value) => self.add(key, PriorState { value, ..prior }),
                (Some(PriorValue::Same), PriorValue::Other(value)) => _ = self.add_value(&key, value),
                (Some(_), _) => {}
            }
        }
    }
}

impl UndoLog {
    fn youngest(&mut self) -> Option<&mut Level> {
        self.levels.last_mut()
    }
}

/// The levels of a database.
impl<const LINES: usize> Database<LINES> {
    /// Begins a level: the present state can be restored by [`Database::roll_back`].
    pub fn begin_level(&mut self) {
        self.undo_log.get_or_insert_with(|| Box::new(UndoLog { levels: Vec::new() })).levels.push(Level::default());
    }

    /// Gives a database without levels that many, which began before it was made.
    pub fn begin_after(&mut self, levels: usize) {
        self.undo_log = (levels > 0).then(|| {
            let older = Level { began_before_database: true, ..Level::default() };
            Box::new(UndoLog { levels: vec![older; levels] })
        });
    }

    /// The number of levels.
    pub fn levels(&self) -> usize {
        self.undo_log.as_ref().map_or(0, |undo_log| undo_log.levels.len())
    }

    /// The bytes of memory of all levels, which hold what is needed to roll back.
    pub fn levels_memory(&self) -> usize {
        self.undo_log.iter().flat_map(|undo_log| &undo_log.levels).map(|level| level.bytes).sum()
    }

    /// Panics unless the memory of each level is that of its entries.
    pub(super) fn check_levels(&self) {
        for level in self.undo_log.iter().flat_map(|undo_log| &undo_log.levels) {
            assert_eq!(level.priors.iter().map(|(key, prior)| prior.memory(key)).sum::<usize>(), level.bytes);
        }
    }

    /// Whether the database existed when the youngest level began.
    pub fn is_older_than_level(&self) -> bool {
        self.undo_log
            .as_ref()
            .and_then(|undo_log| undo_log.levels.last())
            .is_some_and(|level| !level.began_before_database)
    }

    /// Restores every key to its state when the youngest level began, and empties the level. Returns the changed
    /// keys, in their order, each with the contents that are no longer needed; a key that was only used is none.
    pub fn roll_back(&mut self) -> Vec<(Box<[u8]>, LazyFree)> {
        let Some(mut undo_log) = self.undo_log.take() else { return Vec::new() };
        let priors = undo_log.youngest().map(Level::take).unwrap_or_default();
        let restored = priors.into_iter().filter_map(|(key, prior)| {
            let lazy_free = self.restore_key(&key, prior)?;
            Some((key, lazy_free))
        });
        let changed = restored.collect();
        self.undo_log = Some(undo_log);
        changed
    }

    /// Restores a key; `None` if it had only been used.
    fn restore_key(&mut self, key: &[u8], prior: PriorState) -> Option<LazyFree> {
        let (slot, lazy_free) = match (prior.value, self.find(key)) {
            (PriorValue::Absent, Some(slot)) => return Some(self.delete(slot)),
            (PriorValue::Absent | PriorValue::Same, None) => return Some(LazyFree::default()),
            (PriorValue::Same, Some(slot)) if self.deadline(slot) == prior.deadline_ms => {
                self.set_access(slot, prior.access);
                return None;
            }
            (PriorValue::Same, Some(slot)) => (slot, LazyFree::default()),
            (PriorValue::Other(value), Some(slot)) => self.replace(slot, New::Value(value)),
            (PriorValue::Other(value), None) => (self.insert(key, New::Value(value)), LazyFree::default()),
        };
        let slot = self.set_deadline(slot, prior.deadline_ms);
        self.set_access(slot, prior.access);
        Some(lazy_free)
    }

    /// Ends a level, counted from the oldest: its entries go to the level before it, if there is one.
    pub fn end_level(&mut self, number: usize) {
        let Some(undo_log) = self.undo_log.as_mut().filter(|undo_log| number < undo_log.levels.len()) else { return };
        let ended = undo_log.levels.remove(number);
        if let Some(before) = number.checked_sub(1) {
            undo_log.levels[before].absorb(ended);
        }
        if undo_log.levels.is_empty() {
            self.undo_log = None;
        }
    }
}

/// Records that are made before a change.
impl<const LINES: usize> Database<LINES> {
    /// Records that a key is about to be added that did not exist.
    pub(super) fn before_insert(&mut self, key: &[u8]) {
        if let Some(level) = self.undo_log.as_mut().and_then(|undo_log| undo_log.youngest()) {
            let absent = PriorState { value: PriorValue::Absent, deadline_ms: None, access: 0 };
            if !level.priors.contains_key(key) {
                level.add(key.into(), absent);
            }
        }
    }

    /// Records that the deadline or the access of a key is about to change.
    #[inline]
    pub(super) fn before_mark(&mut self, slot: KeyHandle) {
        if self.undo_log.is_some() {
            self.record_prior(slot, |_| None);
        }
    }

    /// Records a value that is about to be edited in place, or removed and used by the caller.
    #[inline]
    pub(super) fn before_edit(&mut self, slot: KeyHandle) {
        if self.undo_log.is_some() {
            self.record_prior(slot, |database| Some(database.view(slot).to_value()));
        }
    }

    /// Records that a value is about to be removed and dropped. Returns the key with which [`Database::record_value`]
    /// is to be called if the value is outside its record.
    #[inline]
    pub(super) fn before_end(&mut self, slot: KeyHandle) -> Option<Box<[u8]>> {
        if self.undo_log.is_some() { self.record_end(slot) } else { None }
    }

    #[cold]
    fn record_end(&mut self, slot: KeyHandle) -> Option<Box<[u8]>> {
        if let Payload::Apart(_) = self.records.record(slot.0).payload() {
            self.record_prior(slot, |_| None);
            let level = self.undo_log.as_ref()?.levels.last()?;
            let key = self.records.key(slot.0);
            (!level.knows_value(key)).then(|| key.into())
        } else {
            self.before_edit(slot);
            None
        }
    }

    /// Keeps a removed value, if `key` is one that a level needs the value of; returns it otherwise.
    #[inline]
    pub(super) fn record_value(&mut self, key: Option<Box<[u8]>>, value: Option<Value>) -> Option<Value> {
        let Some(key) = key else { return value };
        match self.undo_log.as_mut().and_then(|undo_log| undo_log.youngest()) {
            Some(level) => level.add_value(&key, value?),
            None => value,
        }
    }

    /// Records the state of a key, with its value if `copy` returns one, unless the youngest level has it.
    #[cold]
    fn record_prior(&mut self, slot: KeyHandle, copy: impl FnOnce(&Database<LINES>) -> Option<Value>) {
        let Some(mut undo_log) = self.undo_log.take() else { return };
        if let Some(level) = undo_log.youngest() {
            let key = self.records.key(slot.0);
            let copied = if level.knows_value(key) { None } else { copy(self) };
            match (level.priors.contains_key(key), copied) {
                (true, Some(value)) => _ = level.add_value(key, value),
                (true, None) => {}
                (false, copied) => {
                    let (deadline_ms, access) = (self.deadline(slot), self.access(slot));
                    let value = copied.map_or(PriorValue::Same, PriorValue::Other);
                    level.add(key.into(), PriorState { value, deadline_ms, access });
                }
            }
        }
        self.undo_log = Some(undo_log);
    }
}
