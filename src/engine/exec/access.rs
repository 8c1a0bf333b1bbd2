//! Access to keys: finding live ones and recording their use.
//!
//! A key whose deadline has passed does not exist, and the first access deletes it. During a pause (CLIENT PAUSE), and
//! on a replica, an overdue key is neither found nor deleted, except for a command that may write.

use crate::engine::Engine;
use crate::engine::exec::{due, fields};
use crate::engine::state::Presence;
use crate::engine::state::lru::{initial, used};
use crate::keyspace::KeyHandle;

/// Looks up a live key; an expired one is deleted now, and so are expired fields of a hash.
#[inline]
pub(super) fn live(engine: &mut Engine, database: usize, key: &[u8]) -> Option<KeyHandle> {
    let found = engine.databases.get(database).find(key)?;
    let deadline_ms = engine.databases.get(database).deadline(found);
    if deadline_ms.is_none_or(|deadline_ms| engine.timing.due_ms() < deadline_ms) {
        return fields::without_due_fields(engine, database, found);
    }
    if !engine.timing.holds_expiry() {
        due::expire_key(engine, database, found);
    }
    None
}

/// Looks up a key for a command that is about to write. During a pause only commands that the pause lets through
/// write, so an expired key is deleted for them.
#[inline]
pub(super) fn live_to_change(engine: &mut Engine, database: usize, key: &[u8]) -> Option<KeyHandle> {
    let found = live(engine, database, key);
    if found.is_none()
        && engine.timing.holds_expiry()
        && let Some(due) = engine.databases.get(database).find(key)
    {
        due::expire_key(engine, database, due);
    }
    found
}

/// Whether a key exists, is missing or has expired, without counting or recording an access.
pub(super) fn presence(engine: &Engine, database: usize, key: &[u8]) -> Presence {
    Presence::of(engine.databases.get(database), key, engine.timing.due_ms())
}

/// Records that a key was accessed now, unless a save or a count shares the data: each read would then copy a part of
/// them. Redis records no accesses either while a child saves.
#[inline]
pub(super) fn record_access(engine: &mut Engine, database: usize, handle: KeyHandle) {
    let (now, database) = (engine.now(), engine.databases.get_mut(database));
    if database.is_frozen() {
        return;
    }
    let access = used(|| database.access(handle), &engine.settings, now, &mut engine.generator);
    database.set_access(handle, access);
}

/// Records that a key is new.
pub(super) fn record_creation(engine: &mut Engine, database: usize, handle: KeyHandle) {
    let access = initial(None, &engine.settings, engine.now());
    engine.databases.get_mut(database).set_access(handle, access);
}
