//! Databases changed as wholes, and keys watched.

use super::Ctx;
use crate::engine::{Databases, Engine, Presence, Settings, presence};
use crate::keyspace::{Database, LazyFree, New};
use crate::rdb::{self, Writer};

impl Ctx<'_> {
    /// Takes all keys out of a database at once and hands them over to be freed.
    pub fn empty(&mut self, database: usize) {
        let engine = &mut *self.engine;
        let due_ms = engine.due_ms();
        let emptied = engine.databases.get(database);
        engine.observers.watches.replace(database, |key| presence(emptied, key, due_ms), |_| Presence::Missing);
        engine.stats.changes += emptied.len() as u64;
        let lazy_free = engine.databases.empty(database);
        engine.free(lazy_free);
        engine.observers.waiting.signal_all(database);
    }

    /// Makes all data what it would be after it was saved and loaded again: values take the forms that they are loaded
    /// in, keys that are overdue are gone, and no key was used yet. For those who watch, it was all away for a moment.
    pub fn reload(&mut self) {
        for number in 0..self.engine.databases.count() {
            let engine = &mut *self.engine;
            let (due_ms, database) = (engine.due_ms(), engine.databases.get(number));
            engine.observers.watches.replace(number, |key| presence(database, key, due_ms), |_| Presence::Missing);
            let keys: Vec<Vec<u8>> = database.slots().map(|slot| database.key(slot).to_vec()).collect();
            for key in keys {
                let lazy_free = reload_key(engine.databases.get_mut(number), &key, &engine.settings, due_ms);
                engine.free(lazy_free);
            }
        }
    }

    /// Lets two databases change places.
    pub fn swap(&mut self, one: usize, other: usize) {
        let engine = &mut *self.engine;
        engine.stats.changes += 1;
        if one == other {
            return;
        }
        engine.exchange_databases(one, other, |databases| databases.swap(one, other));
    }

    /// Has the session's next transaction depend on that key staying as it is.
    pub fn watch(&mut self, key: &[u8]) {
        let presence = self.engine.presence(self.database, key);
        self.engine.observers.watches.watch(self.session, self.database, key, presence);
        self.session_mut().watched_bytes = self.engine.observers.watches.memory_of(self.session);
    }

    /// Ends all watches of the session; true when one of its keys is no longer what it was.
    pub fn unwatch(&mut self) -> bool {
        let engine = &mut *self.engine;
        let (due_ms, databases) = (engine.due_ms(), &engine.databases);
        let presence = |database: usize, key: &[u8]| presence(databases.get(database), key, due_ms);
        let is_broken = engine.observers.watches.is_broken(self.session, presence);
        engine.observers.watches.unwatch(self.session);
        self.session_mut().watched_bytes = 0;
        is_broken
    }
}

impl Engine {
    /// Has `act` exchange two databases, and tells whom it concerns.
    pub(in crate::engine) fn exchange_databases(&mut self, one: usize, other: usize, act: impl FnOnce(&mut Databases)) {
        let due_ms = self.due_ms();
        let (first, second) = (self.databases.get(one), self.databases.get(other));
        let (in_first, in_second) =
            (|key: &[u8]| presence(first, key, due_ms), |key: &[u8]| presence(second, key, due_ms));
        self.observers.watches.replace(one, in_first, in_second);
        self.observers.watches.replace(other, in_second, in_first);
        act(&mut self.databases);
        for database in [one, other] {
            self.observers.waiting.signal_all(database);
        }
    }
}

/// Does to one key what saving and loading it does, and answers what is no longer needed.
fn reload_key(database: &mut Database, key: &[u8], settings: &Settings, due_ms: i64) -> LazyFree {
    let Some(slot) = database.find(key) else { return LazyFree::default() };
    if presence(database, key, due_ms) == Presence::Overdue {
        return database.delete(slot);
    }
    database.set_access(slot, 0);
    let view = database.view(slot);
    let mut saved = Writer::new(false);
    saved.value(view);
    match saved.reader().value(rdb::kind_of(view), &settings.forms()) {
        Some(loaded) => database.replace(slot, New::Value(loaded)).1,
        None => LazyFree::default(),
    }
}
