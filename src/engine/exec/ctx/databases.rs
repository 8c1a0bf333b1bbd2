//! Changes of whole databases, and WATCH.

use super::Ctx;
use crate::engine::Engine;
use crate::engine::exec::{access, blocking};
use crate::engine::state::{Databases, Presence};

/// Empties a database at once (FLUSHDB); the keys are freed elsewhere.
pub fn flush_database(cx: &mut Ctx<'_>, database: usize) {
    flush(cx.engine, database);
}

/// Empties a database at once; the keys are freed elsewhere.
pub(in crate::engine) fn flush(engine: &mut Engine, database: usize) {
    let due_ms = engine.timing.due_ms();
    let emptied = engine.databases.get(database);
    engine.observers.watches.replace(database, |key| Presence::of(emptied, key, due_ms), |_| Presence::Missing);
    engine.stats.changes += emptied.len() as u64;
    let lazy_free = engine.databases.empty(database);
    engine.free(lazy_free);
    blocking::signal_all(engine, database);
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
        blocking::signal_all(engine, database);
    }
}
