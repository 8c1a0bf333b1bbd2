//! Expiry of hash fields on access, for as long as expired fields stay: active expiry is off, or a pause holds it.

use super::Ctx;
use crate::engine::exec::fields::Removal;
use crate::engine::exec::{changes, fields, propagation};
use crate::engine::spec::Event;
use crate::value::Hash;

/// Calls `act` to remove expired fields from the hash that `key` holds, if it holds one. Only while expired fields stay
/// until they are accessed.
pub fn expire_fields(cx: &mut Ctx<'_>, key: &[u8], act: impl FnOnce(&mut Removal, &mut Hash, i64)) {
    fields::remove_overdue_fields(cx.engine, cx.database, key, act);
}

/// Counts and publishes that these fields of the hash that `key` holds have expired; the caller removes them.
pub fn record_expired_fields(cx: &mut Ctx<'_>, key: &[u8], names: &[&[u8]]) {
    if names.is_empty() {
        return;
    }
    for name in names {
        propagation::field_deletion(cx.engine, cx.database, key, name);
    }
    cx.engine.stats.expired_fields += names.len() as u64;
    changes::changed(cx.engine, cx.database, Event::FIELDS_EXPIRED, key);
}
