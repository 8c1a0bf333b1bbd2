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
use crate::keyspace::{New, Slot, Trash};
use crate::value::Value;

/// The levels of a database, the youngest last.
#[derive(Clone, Debug)]
pub(super) struct History {
    levels: Vec<Level>,
}

#[derive(Clone, Debug, Default)]
struct Level {
    formers: BTreeMap<Box<[u8]>, Former>,
    /// The database was made after the level began.
    is_older: bool,
}

/// What a key was.
#[derive(Clone, Debug)]
struct Former {
    value: Was,
    deadline_ms: Option<i64>,
    access: u32,
}

/// What a key held.
#[derive(Clone, Debug)]
enum Was {
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
        self.formers.get(key).is_some_and(|former| !matches!(former.value, Was::Same))
    }

    /// Adds what an older level does not know and a younger one does.
    fn take_in(&mut self, younger: Level) {
        for (key, former) in younger.formers {
            match self.formers.get_mut(&key) {
                None => _ = self.formers.insert(key, former),
                Some(known) if matches!(known.value, Was::Same) => known.value = former.value,
                Some(_) => {}
            }
        }
    }
}

impl History {
    fn youngest(&mut self) -> Option<&mut Level> {
        self.levels.last_mut()
    }
}

/// Levels.
impl<const LINES: usize> Database<LINES> {
    /// Begins a level: what the database is now can be brought back.
    pub fn begin_level(&mut self) {
        self.history.get_or_insert_with(|| Box::new(History { levels: Vec::new() })).levels.push(Level::default());
    }

    /// Has a database that has no levels stand where one of so many levels was: they began before it was made.
    pub fn begin_after(&mut self, levels: usize) {
        self.history = (levels > 0).then(|| {
            let older = Level { is_older: true, ..Level::default() };
            Box::new(History { levels: vec![older; levels] })
        });
    }

    /// How many levels there are.
    pub fn levels(&self) -> usize {
        self.history.as_ref().map_or(0, |history| history.levels.len())
    }

    /// Whether the database was there when the youngest level began.
    pub fn is_older_than_level(&self) -> bool {
        self.history.as_ref().and_then(|history| history.levels.last()).is_some_and(|level| !level.is_older)
    }

    /// Brings every key back to what it was when the youngest level began, which knows of no change then. Answers the
    /// keys that had changed, in their order, each with what it held and nobody needs.
    pub fn bring_back(&mut self) -> Vec<(Box<[u8]>, Trash)> {
        let Some(mut history) = self.history.take() else { return Vec::new() };
        let formers = history.youngest().map(|level| std::mem::take(&mut level.formers)).unwrap_or_default();
        let changed = formers.into_iter().map(|(key, former)| {
            let trash = self.bring_key_back(&key, former);
            (key, trash)
        });
        let changed = changed.collect();
        self.history = Some(history);
        changed
    }

    fn bring_key_back(&mut self, key: &[u8], former: Former) -> Trash {
        let (slot, trash) = match (former.value, self.find(key)) {
            (Was::Absent, Some(slot)) => return self.delete(slot),
            (Was::Absent | Was::Same, None) => return Trash::default(),
            (Was::Same, Some(slot)) => (slot, Trash::default()),
            (Was::Other(value), Some(slot)) => self.replace(slot, New::Value(value)),
            (Was::Other(value), None) => (self.insert(key, New::Value(value)), Trash::default()),
        };
        let slot = self.set_deadline(slot, former.deadline_ms);
        self.set_access(slot, former.access);
        trash
    }

    /// Ends a level, counted from the oldest: what it knows, the one before it knows from now on, if there is one.
    pub fn end_level(&mut self, number: usize) {
        let Some(history) = self.history.as_mut().filter(|history| number < history.levels.len()) else { return };
        let ended = history.levels.remove(number);
        if let Some(before) = number.checked_sub(1) {
            history.levels[before].take_in(ended);
        }
        if history.levels.is_empty() {
            self.history = None;
        }
    }
}

/// Notes, to be made before a change.
impl<const LINES: usize> Database<LINES> {
    /// A key comes that was not there.
    pub(super) fn before_insert(&mut self, key: &[u8]) {
        if let Some(level) = self.history.as_mut().and_then(|history| history.youngest()) {
            let absent = Former { value: Was::Absent, deadline_ms: None, access: 0 };
            level.formers.entry(key.into()).or_insert(absent);
        }
    }

    /// The deadline or the access of a key changes.
    #[inline]
    pub(super) fn before_mark(&mut self, slot: Slot) {
        if self.history.is_some() {
            self.note(slot, |_| None);
        }
    }

    /// A value is edited where it stands, or taken away by who wants it.
    #[inline]
    pub(super) fn before_edit(&mut self, slot: Slot) {
        if self.history.is_some() {
            self.note(slot, |database| Some(database.view(slot).to_value()));
        }
    }

    /// A value goes, and nobody wants it. Answers the key for which [`Database::keep`] is to have what stood apart.
    #[inline]
    pub(super) fn before_end(&mut self, slot: Slot) -> Option<Box<[u8]>> {
        if self.history.is_some() { self.note_end(slot) } else { None }
    }

    #[cold]
    fn note_end(&mut self, slot: Slot) -> Option<Box<[u8]>> {
        if let Payload::Apart(_) = self.records.record(slot.0).payload() {
            self.note(slot, |_| None);
            let level = self.history.as_ref()?.levels.last()?;
            let key = self.records.key(slot.0);
            (!level.knows_value(key)).then(|| key.into())
        } else {
            self.before_edit(slot);
            None
        }
    }

    /// Keeps a value that has gone, if `key` is that of a level which wants it; gives it back otherwise.
    #[inline]
    pub(super) fn keep(&mut self, key: Option<Box<[u8]>>, value: Option<Value>) -> Option<Value> {
        let Some(key) = key else { return value };
        let former = self.history.as_mut().and_then(|history| history.youngest()?.formers.get_mut(&key));
        match (former, value) {
            (Some(former), Some(value)) => {
                former.value = Was::Other(value);
                None
            }
            (_, value) => value,
        }
    }

    /// Notes what a key is, with its value if `copy` gives one, unless the youngest level knows.
    #[cold]
    fn note(&mut self, slot: Slot, copy: impl FnOnce(&Database<LINES>) -> Option<Value>) {
        let Some(mut history) = self.history.take() else { return };
        if let Some(level) = history.youngest() {
            let key = self.records.key(slot.0);
            let copied = if level.knows_value(key) { None } else { copy(self) };
            match (level.formers.get_mut(key), copied) {
                (Some(former), Some(value)) => former.value = Was::Other(value),
                (Some(_), None) => {}
                (None, copied) => {
                    let (deadline_ms, access) = (self.deadline(slot), self.access(slot));
                    let value = copied.map_or(Was::Same, Was::Other);
                    level.formers.insert(key.into(), Former { value, deadline_ms, access });
                }
            }
        }
        self.history = Some(history);
    }
}
