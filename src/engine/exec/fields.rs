//! Expiry of hash fields: they are removed and counted, with an event, and the hash is removed with its last field.
//!
//! As with keys, a field ends on its millisecond whether or not anyone asks, and a hash that is looked up before the
//! engine came to it ([`Engine::run_due`] is late) loses its due fields first. Overdue fields stay only while DEBUG
//! SET-ACTIVE-EXPIRE or a pause keeps the engine from that: reads do not see them ([`crate::value::hash::Fields`]), and
//! a command that asks for one by its name removes it ([`remove_overdue_fields`]), as in Redis.

use crate::engine::Engine;
use crate::engine::exec::{access, changes, due, propagation};
use crate::engine::spec::Event;
use crate::keyspace::{KeyHandle, ValueMut};
use crate::value::Hash;

/// Removes the fields of a key that are due; `None` when the key went with them.
#[inline]
pub(super) fn without_due_fields(engine: &mut Engine, database: usize, handle: KeyHandle) -> Option<KeyHandle> {
    if is_any_field_due(engine, database) && due::may_expire(engine) {
        remove_due_fields(engine, database, handle)
    } else {
        Some(handle)
    }
}

fn remove_due_fields(engine: &mut Engine, database: usize, handle: KeyHandle) -> Option<KeyHandle> {
    let last_ms = engine.timing.due_ms();
    let deadline_ms = engine.databases.get(database).part_deadline(handle);
    if deadline_ms.is_none_or(|deadline_ms| deadline_ms > last_ms) {
        return Some(handle);
    }
    let (_, is_gone) = remove_fields(engine, database, handle, |removal, hash| removal.due(hash, last_ms, usize::MAX));
    if is_gone { None } else { Some(handle) }
}

/// Whether any field in a database is past its deadline.
#[inline]
pub(super) fn is_any_field_due(engine: &Engine, database: usize) -> bool {
    let next = engine.databases.get(database).first_part_due();
    next.is_some_and(|(deadline_ms, _)| deadline_ms <= engine.timing.due_ms())
}

/// Calls `act` to remove overdue fields from the hash at `key`, if it is one. Does nothing while no field is overdue.
pub(super) fn remove_overdue_fields(
    engine: &mut Engine,
    database: usize,
    key: &[u8],
    act: impl FnOnce(&mut Removal, &mut Hash, i64),
) {
    if is_any_field_due(engine, database)
        && !engine.timing.holds_expiry()
        && let Some(handle) = access::live(engine, database, key)
    {
        let last_ms = engine.timing.due_ms();
        remove_fields(engine, database, handle, |removal, hash| act(removal, hash, last_ms));
    }
}

/// The fields that are being removed from a hash.
#[derive(Debug, Default)]
pub struct Removal {
    count: usize,
    /// Their names, while changes are recorded.
    names: Option<Vec<Vec<u8>>>,
}

impl Removal {
    /// Removes a field if it is overdue.
    pub fn one(&mut self, hash: &mut Hash, field: &[u8], last_ms: i64) {
        if hash.remove_overdue(field, last_ms) {
            self.count += 1;
            self.names.iter_mut().for_each(|names| names.push(field.to_vec()));
        }
    }

    /// Removes overdue fields, at most `limit`, the earliest first.
    pub fn due(&mut self, hash: &mut Hash, last_ms: i64, limit: usize) {
        self.names.iter_mut().for_each(|names| names.extend(hash.due_fields(last_ms, limit)));
        self.count += hash.remove_due(last_ms, limit);
    }
}

/// Calls `act` to remove overdue fields from the hash at `handle`, and publishes that. Returns the number of removed
/// fields, and whether the key was removed, too; if not, it is still at `handle`, where only a hash without deadlines
/// ever moves.
pub(super) fn remove_fields(
    engine: &mut Engine,
    database: usize,
    handle: KeyHandle,
    act: impl FnOnce(&mut Removal, &mut Hash),
) -> (usize, bool) {
    let is_recorded = engine.effects.propagation.is_on();
    let mut removal = Removal { count: 0, names: is_recorded.then(Vec::new) };
    let data = engine.databases.get_mut(database);
    let (handle, is_empty) = data.edit_object(handle, |value| {
        let Some(ValueMut::Hash(hash)) = value else { return false };
        act(&mut removal, hash);
        hash.is_empty()
    });
    let removed = removal.count;
    if removed == 0 {
        return (0, false);
    }
    let key = data.key(handle).to_vec();
    engine.stats.expired_fields += removed as u64;
    for field in removal.names.into_iter().flatten() {
        propagation::field_deletion(engine, database, &key, &field);
    }
    changes::changed(engine, database, Event::FIELDS_EXPIRED, &key);
    if is_empty {
        let lazy_free = engine.databases.get_mut(database).delete(handle);
        engine.free(lazy_free);
        changes::changed(engine, database, Event::DEL, &key);
    }
    (removed, is_empty)
}
