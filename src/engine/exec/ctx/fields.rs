//! Expiry of hash fields on access, for as long as expired fields stay: active expiry is off, or a pause holds it.

use super::Ctx;
use crate::engine::exec::{changes, fields};
use crate::engine::spec::Event;
use crate::value::Hash;

/// Calls `act` to remove expired fields from the hash that `key` holds, if it holds one; `act` returns how many it
/// removed. Only while expired fields stay until they are accessed.
pub fn expire_fields(cx: &mut Ctx<'_>, key: &[u8], act: impl FnOnce(&mut Hash, i64) -> usize) {
    fields::remove_overdue_fields(cx.engine, cx.database, key, act);
}

/// Counts and publishes that this number of fields of the hash that `key` holds have expired; the caller removes them.
pub fn record_expired_fields(cx: &mut Ctx<'_>, key: &[u8], count: usize) {
    if count > 0 {
        cx.engine.stats.expired_fields += count as u64;
        changes::changed(cx.engine, cx.database, Event::FIELDS_EXPIRED, key);
    }
}
