//! Moving and copying a key's value and deadline to another key: RENAME, MOVE, COPY and RESTORE.

use super::{after, discard};
use crate::engine::Engine;
use crate::engine::exec::{Ctx, access, changes};
use crate::engine::spec::Event;
use crate::engine::state::lru::{self, LruHint};
use crate::keyspace::{KeyHandle, New};
use crate::value::Value;

/// From one key to another.
impl Ctx<'_> {
    /// Moves the value of `from`, with its deadline, to `to` in database `database`, in place of any value of `to`; the
    /// events are `left` and `arrived`. `to` counts as a new key, used now. False when `from` does not exist.
    pub fn relocate(&mut self, from: &[u8], left: Event, to: &[u8], database: usize, arrived: Event) -> bool {
        let Some(handle) = access::live_to_change(self.engine, self.database, from) else { return false };
        let deadline_ms = self.engine.databases.get(self.database).deadline(handle);
        if database == self.database {
            rename(self.engine, database, from, to, deadline_ms);
        } else {
            let value = self.engine.databases.get_mut(self.database).remove(handle);
            access::live_to_change(self.engine, database, to);
            overwrite(self.engine, database, to, value, deadline_ms, None);
        }
        after(self.engine, self.database, from, left, 1);
        changes::changed(self.engine, database, arrived, to);
        true
    }

    /// Sets `key` in database `database` to a value with a deadline, in place of any old value, with the given event
    /// alone; `hint` is recorded as its use, if the eviction policy depends on use (RESTORE, COPY).
    pub fn restore(
        &mut self,
        database: usize,
        key: &[u8],
        value: Value,
        deadline_ms: Option<i64>,
        hint: Option<LruHint>,
        event: Event,
    ) {
        overwrite(self.engine, database, key, value, deadline_ms, hint);
        after(self.engine, database, key, event, 1);
    }
}

/// Moves a value with its deadline to another key of its database, in place of any old one, without copying it.
fn rename(engine: &mut Engine, database: usize, from: &[u8], to: &[u8], deadline_ms: Option<i64>) {
    access::live_to_change(engine, database, to);
    make_room(engine, database, to);
    let origin = engine.databases.get_mut(database);
    if let Some(handle) = origin.find(from) {
        let handle = origin.rename(handle, to);
        finish(engine, database, to, handle, deadline_ms, None);
    }
}

/// Stores a value with its deadline as a new key, in place of any old one.
fn overwrite(
    engine: &mut Engine,
    database: usize,
    key: &[u8],
    value: Value,
    deadline_ms: Option<i64>,
    hint: Option<LruHint>,
) {
    make_room(engine, database, key);
    let handle = engine.databases.get_mut(database).insert(key, New::Value(value));
    finish(engine, database, key, handle, deadline_ms, hint);
}

/// Removes a key that is to be replaced. RESTORE replaces a key that has expired, which does not count as its expiry.
fn make_room(engine: &mut Engine, database: usize, key: &[u8]) {
    if let Some(handle) = engine.databases.get(database).find(key) {
        discard(engine, database, handle);
    }
}

/// Sets what a new key has beside its value.
fn finish(
    engine: &mut Engine,
    database: usize,
    key: &[u8],
    handle: KeyHandle,
    deadline_ms: Option<i64>,
    hint: Option<LruHint>,
) {
    let access = lru::initial(hint, &engine.settings, engine.now());
    let target = engine.databases.get_mut(database);
    let handle = target.set_deadline(handle, deadline_ms);
    target.set_access(handle, access);
    changes::arrived(engine, database, key);
}
