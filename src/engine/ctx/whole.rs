//! Databases changed as wholes, and keys watched.

use super::Ctx;
use crate::engine::{Presence, presence};

impl Ctx<'_> {
    /// Takes all keys out of a database at once and hands them over to be freed.
    pub fn empty(&mut self, database: usize) {
        let engine = &mut *self.engine;
        let now = engine.now();
        let emptied = engine.databases.get_mut(database);
        engine.interest.watches.replace(database, |key| presence(emptied, key, now), |_| Presence::Missing);
        engine.stats.changes += emptied.len() as u64;
        let trash = emptied.clear();
        engine.free(trash);
    }

    /// Lets two databases change places.
    pub fn swap(&mut self, one: usize, other: usize) {
        let engine = &mut *self.engine;
        engine.stats.changes += 1;
        if one == other {
            return;
        }
        let now = engine.now();
        let (first, second) = (engine.databases.get(one), engine.databases.get(other));
        let (in_first, in_second) = (|key: &[u8]| presence(first, key, now), |key: &[u8]| presence(second, key, now));
        engine.interest.watches.replace(one, in_first, in_second);
        engine.interest.watches.replace(other, in_second, in_first);
        engine.databases.swap(one, other);
        for database in [one, other] {
            let swapped = engine.databases.get(database);
            engine.interest.waiting.signal_all(database, |key| swapped.find(key).is_some());
        }
    }

    /// Has the session's next transaction depend on that key staying as it is.
    pub fn watch(&mut self, key: &[u8]) {
        let presence = self.engine.presence(self.database, key);
        self.engine.interest.watches.watch(self.session, self.database, key, presence);
    }

    /// Ends all watches of the session; true when one of its keys is no longer what it was.
    pub fn unwatch(&mut self) -> bool {
        let engine = &mut *self.engine;
        let (databases, now) = (&engine.databases, engine.timing.now);
        let presence = |database: usize, key: &[u8]| presence(databases.get(database), key, now);
        let is_broken = engine.interest.watches.is_broken(self.session, presence);
        engine.interest.watches.unwatch(self.session);
        is_broken
    }
}
