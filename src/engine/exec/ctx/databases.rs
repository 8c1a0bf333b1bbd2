//! Changes of whole databases, and WATCH.

use super::Ctx;
use crate::engine::Engine;
use crate::engine::exec::access;
use crate::engine::state::{Databases, Presence, Settings};
use crate::keyspace::{Database, LazyFree, New};
use crate::rdb::{self, Writer};

/// Empties a database at once (FLUSHDB); the keys are freed elsewhere.
pub fn flush_database(cx: &mut Ctx<'_>, database: usize) {
    let engine = &mut *cx.engine;
    let due_ms = engine.timing.due_ms();
    let emptied = engine.databases.get(database);
    engine.observers.watches.replace(database, |key| Presence::of(emptied, key, due_ms), |_| Presence::Missing);
    engine.stats.changes += emptied.len() as u64;
    let lazy_free = engine.databases.empty(database);
    engine.free(lazy_free);
    engine.observers.waiting.signal_all(database);
}

/// Makes all data as if it had been saved and loaded again (DEBUG RELOAD): values get the encodings of loaded ones,
/// expired keys are removed, and access times restart. For WATCH, all keys were missing for a moment.
pub fn reload_databases(cx: &mut Ctx<'_>) {
    for number in 0..cx.engine.databases.count() {
        let engine = &mut *cx.engine;
        let (due_ms, database) = (engine.timing.due_ms(), engine.databases.get(number));
        engine.observers.watches.replace(number, |key| Presence::of(database, key, due_ms), |_| Presence::Missing);
        let keys: Vec<Vec<u8>> = database.slots().map(|slot| database.key(slot).to_vec()).collect();
        for key in keys {
            let lazy_free = reload_key(engine.databases.get_mut(number), &key, &engine.settings, due_ms);
            engine.free(lazy_free);
        }
    }
}

/// Swaps two databases (SWAPDB).
pub fn swap_databases(cx: &mut Ctx<'_>, one: usize, other: usize) {
    let engine = &mut *cx.engine;
    engine.stats.changes += 1;
    if one == other {
        return;
    }
    exchange_databases(engine, one, other, |databases| databases.swap(one, other));
}

/// Watches a key for the session's next transaction (WATCH).
pub fn watch_key(cx: &mut Ctx<'_>, key: &[u8]) {
    let presence = access::presence(cx.engine, cx.database, key);
    cx.engine.observers.watches.watch(cx.session, cx.database, key, presence);
    cx.session_mut().watched_bytes = cx.engine.observers.watches.memory_of(cx.session);
}

/// Ends all watches of the session (UNWATCH); true when one of its keys has changed.
pub fn unwatch_all(cx: &mut Ctx<'_>) -> bool {
    let engine = &mut *cx.engine;
    let (due_ms, databases) = (engine.timing.due_ms(), &engine.databases);
    let presence = |database: usize, key: &[u8]| Presence::of(databases.get(database), key, due_ms);
    let is_broken = engine.observers.watches.is_broken(cx.session, presence);
    engine.observers.watches.unwatch(cx.session);
    cx.session_mut().watched_bytes = 0;
    is_broken
}

/// Calls `act` to exchange databases, and notifies watchers, trackers and blocked clients.
pub(in crate::engine) fn exchange_databases(
    engine: &mut Engine,
    one: usize,
    other: usize,
    act: impl FnOnce(&mut Databases),
) {
    let due_ms = engine.timing.due_ms();
    let (first, second) = (engine.databases.get(one), engine.databases.get(other));
    let (in_first, in_second) =
        (|key: &[u8]| Presence::of(first, key, due_ms), |key: &[u8]| Presence::of(second, key, due_ms));
    engine.observers.watches.replace(one, in_first, in_second);
    engine.observers.watches.replace(other, in_second, in_first);
    act(&mut engine.databases);
    for database in [one, other] {
        engine.observers.waiting.signal_all(database);
    }
}

/// Does to one key what saving and loading it does; returns the value that is no longer needed.
fn reload_key(database: &mut Database, key: &[u8], settings: &Settings, due_ms: i64) -> LazyFree {
    let Some(slot) = database.find(key) else { return LazyFree::default() };
    if Presence::of(database, key, due_ms) == Presence::Overdue {
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
