//! What keys were before they changed, for databases that can be brought back to how they were.
//!
//! While anybody may want that, a database keeps levels, the youngest last. The first change of a key
//! since the youngest level began notes there what the key was: absent, or its deadline and access, and
//! its value once that changes. Every change passes a method of [`Database`], and each of those notes
//! first; so none can be missed from outside.
//!
//! Invariants: a level holds of every key that changed since it began what it was when it began, and of no other key
//! anything; older levels know nothing of what younger ones hold.
//!
//! Costs: without a level, one branch a change. With one, the first change of a key costs an entry in a sorted map; a
//! value that is replaced or removed is moved there, one that is edited in place is copied first, whole. Bringing back
//! costs as much as there are entries. What is held here is not counted as memory of the database.

use std::collections::BTreeMap;

use super::Database;
use crate::keyspace::record::Payload;
use crate::keyspace::{LazyFree, New, Slot};
use crate::value::Value;

/// The levels of a database, the youngest last.
#[derive(Clone, Debug)]
pub(super) struct UndoLog {
    levels: Vec<Level>,
}

#[derive(Clone, Debug, Default)]
struct Level {
    priors: BTreeMap<Box<[u8]>, PriorState>,
    /// The database was made after the level began.
    is_older: bool,
}

/// What a key was.
#[derive(Clone, Debug)]
struct PriorState {
    value: PriorValue,
    deadline_ms: Option<i64>,
    access: u32,
}

/// What a key held.
#[derive(Clone, Debug)]
enum PriorValue {
    /// It was not there.
    Absent,
    /// What it holds still.
    Same,
    /// Something else.
    Other(Value),
}

impl Level {
    /// Whether it knows what the value of that key was, should it change now.
    fn knows_value(&self, key: &[u8]) -> bool {
        self.priors.get(key).is_some_and(|prior| !matches!(prior.value, PriorValue::Same))
    }

    /// Adds what an older level does not know and a younger one does.
    fn absorb(&mut self, younger: Level) {
        for (key, prior) in younger.priors {
            match self.priors.get_mut(&key) {
                None => _ = self.priors.insert(key, prior),
                Some(known) if matches!(known.value, PriorValue::Same) => known.value = prior.value,
                Some(_) => {}
            }
        }
    }
}

impl UndoLog {
    fn youngest(&mut self) -> Option<&mut Level> {
        self.levels.last_mut()
    }
}

/// Levels.
impl<const LINES: usize> Database<LINES> {
    /// Begins a level: what the database is now can be brought back.
    pub fn begin_level(&mut self) {
        self.undo_log.get_or_insert_with(|| Box::new(UndoLog { levels: Vec::new() })).levels.push(Level::default());
    }

    /// Has a database that has no levels stand where one of so many levels was: they began before it was made.
    pub fn begin_after(&mut self, levels: usize) {
        self.undo_log = (levels > 0).then(|| {
            let older = Level { is_older: true, ..Level::default() };
            Box::new(UndoLog { levels: vec![older; levels] })
        });
    }

    /// How many levels there are.
    pub fn levels(&self) -> usize {
        self.undo_log.as_ref().map_or(0, |undo_log| undo_log.levels.len())
    }

    /// Whether the database was there when the youngest level began.
    pub fn is_older_than_level(&self) -> bool {
        self.undo_log.as_ref().and_then(|undo_log| undo_log.levels.last()).is_some_and(|level| !level.is_older)
    }

    /// Brings every key back to what it was when the youngest level began, which knows of no change then. Answers the
    /// keys that had changed, in their order, each with what it held and nobody needs.
    pub fn roll_back(&mut self) -> Vec<(Box<[u8]>, LazyFree)> {
        let Some(mut undo_log) = self.undo_log.take() else { return Vec::new() };
        let priors = undo_log.youngest().map(|level| std::mem::take(&mut level.priors)).unwrap_or_default();
        let changed = priors.into_iter().map(|(key, prior)| {
            let lazy_free = self.restore_key(&key, prior);
            (key, lazy_free)
        });
        let changed = changed.collect();
        self.undo_log = Some(undo_log);
        changed
    }

    fn restore_key(&mut self, key: &[u8], prior: PriorState) -> LazyFree {
        let (slot, lazy_free) = match (prior.value, self.find(key)) {
            (PriorValue::Absent, Some(slot)) => return self.delete(slot),
            (PriorValue::Absent | PriorValue::Same, None) => return LazyFree::default(),
            (PriorValue::Same, Some(slot)) => (slot, LazyFree::default()),
            (PriorValue::Other(value), Some(slot)) => self.replace(slot, New::Value(value)),
            (PriorValue::Other(value), None) => (self.insert(key, New::Value(value)), LazyFree::default()),
        };
        let slot = self.set_deadline(slot, prior.deadline_ms);
        self.set_access(slot, prior.access);
        lazy_free
    }

    /// Ends a level, counted from the oldest: what it knows, the one before it knows from now on, if there is one.
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

/// Notes, to be made before a change.
impl<const LINES: usize> Database<LINES> {
    /// A key comes that was not there.
    pub(super) fn before_insert(&mut self, key: &[u8]) {
        if let Some(level) = self.undo_log.as_mut().and_then(|undo_log| undo_log.youngest()) {
            let absent = PriorState { value: PriorValue::Absent, deadline_ms: None, access: 0 };
            level.priors.entry(key.into()).or_insert(absent);
        }
    }

    /// The deadline or the access of a key changes.
    #[inline]
    pub(super) fn before_mark(&mut self, slot: Slot) {
        if self.undo_log.is_some() {
            self.note(slot, |_| None);
        }
    }

    /// A value is edited where it stands, or taken away by who wants it.
    #[inline]
    pub(super) fn before_edit(&mut self, slot: Slot) {
        if self.undo_log.is_some() {
            self.note(slot, |database| Some(database.view(slot).to_value()));
        }
    }

    /// A value goes, and nobody wants it. Answers the key for which [`Database::record_value`] is to have what stood
    /// apart.
    #[inline]
    pub(super) fn before_end(&mut self, slot: Slot) -> Option<Box<[u8]>> {
        if self.undo_log.is_some() { self.record_end(slot) } else { None }
    }

    #[cold]
    fn record_end(&mut self, slot: Slot) -> Option<Box<[u8]>> {
        if let Payload::Apart(_) = self.records.record(slot.0).payload() {
            self.note(slot, |_| None);
            let level = self.undo_log.as_ref()?.levels.last()?;
            let key = self.records.key(slot.0);
            (!level.knows_value(key)).then(|| key.into())
        } else {
            self.before_edit(slot);
            None
        }
    }

    /// Keeps a value that has gone, if `key` is that of a level which wants it; gives it back otherwise.
    #[inline]
    pub(super) fn record_value(&mut self, key: Option<Box<[u8]>>, value: Option<Value>) -> Option<Value> {
        let Some(key) = key else { return value };
        let prior = self.undo_log.as_mut().and_then(|undo_log| undo_log.youngest()?.priors.get_mut(&key));
        match (prior, value) {
            (Some(prior), Some(value)) => {
                prior.value = PriorValue::Other(value);
                None
            }
            (_, value) => value,
        }
    }

    /// Notes what a key is, with its value if `copy` gives one, unless the youngest level knows.
    #[cold]
    fn note(&mut self, slot: Slot, copy: impl FnOnce(&Database<LINES>) -> Option<Value>) {
        let Some(mut undo_log) = self.undo_log.take() else { return };
        if let Some(level) = undo_log.youngest() {
            let key = self.records.key(slot.0);
            let copied = if level.knows_value(key) { None } else { copy(self) };
            match (level.priors.get_mut(key), copied) {
                (Some(prior), Some(value)) => prior.value = PriorValue::Other(value),
                (Some(_), None) => {}
                (None, copied) => {
                    let (deadline_ms, access) = (self.deadline(slot), self.access(slot));
                    let value = copied.map_or(PriorValue::Same, PriorValue::Other);
                    level.priors.insert(key.into(), PriorState { value, deadline_ms, access });
                }
            }
        }
        self.undo_log = Some(undo_log);
    }
}
