//! Snapshots: named states of the whole engine to roll back to (DUNLIN SNAPSHOT).
//!
//! They are a stack. Rolling back to one drops those that were taken since, and keeps the snapshot itself. Restored
//! are all databases (values, deadlines of keys and fields, streams with their groups, when keys were used), the
//! settings, users, scripts, functions, the random generator, and the clock: its time and its speed. Not restored are
//! the listeners, the clients with what they watch, track, subscribe to and wait for, counters and logs, and the
//! variables of functions. To clients, a rollback is a change like any other: watches of a changed key break, clients
//! that track it are notified, and clients blocked on a key that exists again are served. No keyspace events are
//! published.
//!
//! Costs: taking one copies the settings and begins a level in each database, a few microseconds in all; rolling back
//! takes time proportional to the changes since. Users and sources are shared until they change: the first change of
//! a user, script or function since the last snapshot copies the list of them all, without their contents.

use std::sync::Arc;

use crate::acl::Users;
use crate::engine::databases::Move;
use crate::engine::scripts::SavedScripts;
use crate::engine::{ClockOrder, Effect, Engine, Error, Flags, KitError, Now, Settings, presence, shown};
use crate::keyspace::Database;

/// All snapshots, the oldest first.
#[derive(Debug, Default)]
pub struct Snapshots {
    all: Vec<Snapshot>,
    /// The number of snapshots ever taken.
    taken: u64,
}

/// The state at one moment, except the data.
#[derive(Debug)]
struct Snapshot {
    name: Box<[u8]>,
    /// The number of snapshots taken so far, including this one.
    number: u64,
    settings: Box<Settings>,
    users: Arc<Users>,
    generator: fastrand::Rng,
    now: Now,
    speed: f64,
    /// The scripts as they were; saved when they first change.
    scripts: Option<SavedScripts>,
    /// The sources of functions as they were; saved when they first change.
    functions: Option<Vec<Arc<[u8]>>>,
}

impl Snapshots {
    fn place(&self, name: &[u8]) -> Result<usize, Error> {
        let found = self.all.iter().position(|snapshot| *snapshot.name == *name);
        found.ok_or_else(|| KitError::NoSnapshot(shown(name)).into())
    }

    /// The number of snapshots ever taken. An event recorded with that number or a higher one came after that snapshot.
    pub(in crate::engine) fn taken(&self) -> u64 {
        self.taken
    }

    /// The names of the snapshots, the oldest first.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.all.iter().map(|snapshot| &*snapshot.name)
    }
}

impl Engine {
    /// The names of the snapshots, the oldest first.
    pub fn snapshots(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.databases.snapshots.names()
    }

    /// Takes a snapshot; it replaces the one of that name.
    pub fn take_snapshot(&mut self, name: &[u8]) {
        // Usually there is none of that name.
        let _ = self.drop_snapshot(name);
        self.databases.snapshots.taken += 1;
        let snapshot = Snapshot {
            name: name.into(),
            number: self.databases.snapshots.taken,
            settings: Box::new(self.settings.clone()),
            users: Arc::clone(&self.acl.users),
            generator: self.generator.clone(),
            now: self.now(),
            speed: self.host.clock_speed(),
            scripts: None,
            functions: None,
        };
        self.databases.snapshots.all.push(snapshot);
        self.databases.begin_level();
        // Eviction restarts from here at each rollback.
        self.databases.pressure.forget();
    }

    /// Drops a snapshot. Older and younger ones can still be rolled back to.
    ///
    /// # Errors
    /// There is no snapshot of that name.
    pub fn drop_snapshot(&mut self, name: &[u8]) -> Result<(), Error> {
        let place = self.databases.snapshots.place(name)?;
        let dropped = self.databases.snapshots.all.remove(place);
        if let Some(before) = place.checked_sub(1).and_then(|before| self.databases.snapshots.all.get_mut(before)) {
            before.scripts = before.scripts.take().or(dropped.scripts);
            before.functions = before.functions.take().or(dropped.functions);
        }
        self.databases.end_level(place);
        Ok(())
    }

    /// Restores the state of that snapshot, and drops those that were taken since.
    ///
    /// # Errors
    /// There is no snapshot of that name, or a script takes too long; nothing has changed then.
    pub fn roll_back(&mut self, name: &[u8]) -> Result<(), Error> {
        let place = self.databases.snapshots.place(name)?;
        self.scripts.gate(Flags::NONE)?;
        let snapshot = &self.databases.snapshots.all[place];
        let (now, speed) = (snapshot.now, snapshot.speed);
        // Deadlines are compared with the restored clock, also when blocked clients are served.
        self.jump(now);
        let youngest = self.databases.snapshots.all.len() - 1;
        for level in (place..=youngest).rev() {
            self.undo_level();
            if level > place {
                self.databases.end_level(level);
            }
        }
        self.bring_scripts_back(place);
        self.databases.snapshots.all.truncate(place + 1);
        self.forget_traces_since(self.databases.snapshots.all[place].number);
        self.bring_rules_back(place);
        self.effects.push(Effect::Clock(ClockOrder::Speed(speed)));
        self.effects.push(Effect::Clock(ClockOrder::Set(now)));
        Ok(())
    }

    /// Undoes the changes recorded in the youngest level.
    fn undo_level(&mut self) {
        let moves = self.databases.take_moves();
        if !moves.is_empty() {
            self.invalidate_all();
        }
        for moved in moves.into_iter().rev() {
            match moved {
                Move::Swapped(one, other) => {
                    self.exchange_databases(one, other, |databases| databases.exchange(one, other))
                }
                Move::Replaced(number, before) => self.put_back(number, *before),
            }
        }
        for number in 0..self.databases.count() {
            for (key, lazy_free) in self.databases.get_mut(number).roll_back() {
                self.free(lazy_free);
                self.stats.changes += 1;
                self.touched(number, &key);
                if !self.observers.waiting.is_empty() {
                    self.observers.waiting.signal(number, &key);
                }
            }
        }
    }

    fn put_back(&mut self, number: usize, before: Database) {
        self.stats.changes += 1;
        let due_ms = self.due_ms();
        let current = self.databases.get(number);
        let watches = &mut self.observers.watches;
        watches.replace(number, |key| presence(current, key, due_ms), |key| presence(&before, key, due_ms));
        let lazy_free = self.databases.put(number, before).into_lazy_free();
        self.free(lazy_free);
        self.observers.waiting.signal_all(number);
    }

    /// Replaces all data and functions by those of another engine, whose databases are like the ones here
    /// ([`crate::engine::Databases::like_empty`]).
    pub fn take_over(&mut self, other: Engine) {
        self.forget_traces_since(0);
        self.before_functions_change();
        self.restore_functions(other.scripts.functions.registry.sources());
        self.invalidate_all();
        for (number, database) in other.databases.into_all().into_iter().enumerate() {
            let (due_ms, current) = (self.due_ms(), self.databases.get(number));
            let watches = &mut self.observers.watches;
            watches.replace(number, |key| presence(current, key, due_ms), |key| presence(&database, key, due_ms));
            self.stats.changes += 1;
            let lazy_free = self.databases.replace(number, database);
            self.free(lazy_free);
            self.observers.waiting.signal_all(number);
        }
    }

    /// Restores the settings, the users and the random generator.
    fn bring_rules_back(&mut self, place: usize) {
        let snapshot = &self.databases.snapshots.all[place];
        self.generator = snapshot.generator.clone();
        self.databases.pressure.forget();
        let before = std::mem::replace(&mut self.settings, Settings::clone(&snapshot.settings));
        // The listeners stay: no client is to be locked out of where it connected.
        (self.settings.port, self.settings.bind) = (before.port, before.bind);
        // The settings of the process stay.
        self.settings.process = before.process;
        let users = Arc::clone(&snapshot.users);
        if !Arc::ptr_eq(&users, &self.acl.users) {
            let caller = self.timing.running.map(|running| running.session);
            self.replace_users(caller, users);
        }
        self.begin_evicting();
        for name in ["timeout", "loglevel"] {
            self.effects.push(Effect::Setting(name));
        }
    }

    /// Restores the scripts and functions of the snapshot at `place`: those that it or the first one behind it saved,
    /// as nothing had changed before that.
    fn bring_scripts_back(&mut self, place: usize) {
        let mut snapshots = self.databases.snapshots.all[place..].iter_mut();
        let (mut scripts, mut functions) = (None, None);
        for snapshot in snapshots.by_ref() {
            scripts = scripts.or(snapshot.scripts.take());
            functions = functions.or(snapshot.functions.take());
        }
        if let Some(scripts) = scripts {
            self.scripts.restore(scripts);
        }
        if let Some(functions) = functions {
            self.restore_functions(functions);
        }
    }

    /// Saves the scripts for the last snapshot: they are about to change.
    pub(in crate::engine) fn before_scripts_change(&mut self) {
        if let Some(snapshot) = self.databases.snapshots.all.last_mut()
            && snapshot.scripts.is_none()
        {
            snapshot.scripts = Some(self.scripts.cache.saved());
        }
    }

    /// Saves the functions for the last snapshot: they are about to change.
    pub(in crate::engine) fn before_functions_change(&mut self) {
        if let Some(snapshot) = self.databases.snapshots.all.last_mut()
            && snapshot.functions.is_none()
        {
            snapshot.functions = Some(self.scripts.functions.registry.sources());
        }
    }
}
