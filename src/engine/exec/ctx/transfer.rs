//! Moving and copying a key's value and deadline to another key: RENAME, MOVE and COPY.

use crate::engine::exec::{Ctx, access, changes};
use crate::engine::spec::Event;
use crate::engine::state::lru;
use crate::engine::state::lru::LruHint;
use crate::keyspace::New;
use crate::value::Value;

/// From one key to another.
impl Ctx<'_> {
    /// Moves the value of `from`, with its deadline, to `to` in database `database`, in place of any value of `to`; the
    /// events are `left` and `arrived`. `to` counts as a new key, used now. False when `from` does not exist.
    pub fn relocate(&mut self, from: &[u8], left: Event, to: &[u8], database: usize, arrived: Event) -> bool {
        let Some(slot) = access::live_to_change(self.engine, self.database, from) else { return false };
        let origin = self.engine.databases.get_mut(self.database);
        let deadline_ms = origin.deadline(slot);
        let value = origin.remove(slot);
        self.settle(to, database, value, deadline_ms, None);
        self.after(from, left, 1);
        changes::changed(self.engine, database, arrived, to);
        true
    }

    /// Copies the value of `from`, with its deadline, to `to` in database `database`, in place of any value of `to`.
    /// False when `from` does not exist.
    pub fn duplicate(&mut self, from: &[u8], to: &[u8], database: usize, arrived: Event) -> bool {
        let Some(slot) = access::live_to_change(self.engine, self.database, from) else { return false };
        let origin = self.engine.databases.get_mut(self.database);
        let deadline_ms = origin.deadline(slot);
        let value = origin.view(slot).to_value();
        self.settle(to, database, value, deadline_ms, None);
        self.engine.stats.changes += 1;
        changes::changed(self.engine, database, arrived, to);
        true
    }

    /// Sets `key` to a value with a deadline, in place of any old value, with the given event alone; `hint` is recorded
    /// as its use, if the eviction policy depends on use.
    pub fn bring(&mut self, key: &[u8], value: Value, deadline_ms: Option<i64>, hint: Option<LruHint>, arrived: Event) {
        self.settle(key, self.database, value, deadline_ms, hint);
        self.after(key, arrived, 1);
    }

    fn settle(&mut self, key: &[u8], database: usize, value: Value, deadline_ms: Option<i64>, hint: Option<LruHint>) {
        let access = lru::initial(hint, &self.engine.settings, self.now());
        if let Some(slot) = access::live_to_change(self.engine, database, key) {
            let replaced = self.engine.databases.get_mut(database).delete(slot);
            self.engine.free(replaced);
        }
        let target = self.engine.databases.get_mut(database);
        let slot = target.insert(key, New::Value(value));
        let slot = target.set_deadline(slot, deadline_ms);
        target.set_access(slot, access);
        changes::arrived(self.engine, database, key);
    }
}
