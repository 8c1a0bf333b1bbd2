//! Counting keys for DUNLIN TREE: under the engine's lock, or of a frozen database without it.
//!
//! Freezing takes a fraction of a millisecond for a million keys, and what changes meanwhile is copied in small parts
//! ([`crate::keyspace::FrozenDatabase`]). A database that shares its parts already, with a save or with the world that
//! it was copied from, would be copied whole by that, so it is counted under the lock instead.

use crate::engine::Engine;
use crate::engine::state::kit::tree::{Builder, CountedKey, Tree, TreeQuery};
use crate::keyspace::FrozenDatabase;

/// Counts the keys of a database as it is now.
pub fn count(engine: &Engine, query: &TreeQuery) -> Tree {
    let mut builder = Builder::new(query);
    let data = engine.databases.get(query.database);
    let shares = data.shares();
    for handle in data.handles() {
        let (key, view, bytes) = (data.key(handle), data.view(handle), data.memory_with(handle, shares));
        builder.add(&CountedKey { key, view, bytes, expires: data.deadline(handle).is_some() });
    }
    builder.finish()
}

/// The database as it is now, to be counted without the lock; `None` if that is to be done under it.
pub fn freeze(engine: &mut Engine, query: &TreeQuery) -> Option<FrozenDatabase> {
    let data = engine.databases.get_mut(query.database);
    if data.is_shared() { None } else { Some(data.freeze()) }
}

/// Counts the keys of a frozen database.
pub fn count_frozen(data: &FrozenDatabase, query: &TreeQuery) -> Tree {
    let mut builder = Builder::new(query);
    for (key, bytes) in data.sized_keys() {
        let expires = key.deadline_ms.is_some();
        builder.add(&CountedKey { key: key.key, view: key.view, bytes, expires });
    }
    builder.finish()
}
