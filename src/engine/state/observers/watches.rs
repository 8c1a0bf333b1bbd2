//! WATCH: the keys that each session's transaction depends on, and whether one of them changed.
//!
//! A key that had expired when its watch began (its deadline had passed, but it was not deleted yet) counts as
//! missing: its deletion is no change, its return is one.
//!
//! Invariant: a session watches a key exactly if it is among the key's watchers. A session whose watch is broken
//! watches nothing more until its transaction has ended; its keys are released at once, unless a whole database was
//! replaced.
//!
//! Costs: to watch a key, and to break or end a watch, is logarithmic in the number of the key's watchers.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::engine::state::SessionId;
use crate::engine::state::observers::by_key::ByKey;
use crate::keyspace::Database;

/// Whether a key exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The key does not exist.
    Missing,
    /// The key is stored, but its deadline has passed.
    Overdue,
    /// The key exists.
    Live,
}

impl Presence {
    /// The presence of a key at `now_ms`, without counting or recording an access.
    pub(in crate::engine) fn of(database: &Database, key: &[u8], now_ms: i64) -> Presence {
        match database.find(key) {
            None => Presence::Missing,
            Some(slot) if database.deadline(slot).is_some_and(|deadline_ms| deadline_ms <= now_ms) => Presence::Overdue,
            Some(_) => Presence::Live,
        }
    }
}

/// The watched keys of all sessions.
#[derive(Debug, Default)]
pub struct Watches {
    keys: ByKey<BTreeMap<SessionId, Watcher>>,
    sessions: BTreeMap<SessionId, Watched>,
}

/// The watch of a key by one session.
#[derive(Debug)]
struct Watcher {
    was_overdue: bool,
}

/// The memory of a watched key's entries, here and in the session's list, beside the bytes of the key.
const KEY_BYTES: usize = 128;

#[derive(Debug, Default)]
struct Watched {
    keys: Vec<(usize, Box<[u8]>)>,
    /// The bytes of all keys, with the memory of their entries.
    memory_bytes: usize,
    is_broken: bool,
}

impl Watcher {
    /// Notes a change of the key; returns whether that breaks the watch.
    fn is_broken_by(&mut self, before: Presence, after: Presence) -> bool {
        match (self.was_overdue, before, after) {
            (_, Presence::Missing, Presence::Missing) | (true, _, Presence::Overdue) => false,
            (true, _, Presence::Missing) => {
                self.was_overdue = false;
                false
            }
            (false, Presence::Missing, Presence::Overdue) => {
                self.was_overdue = true;
                false
            }
            _ => true,
        }
    }
}

/// The sessions whose watch of a key is broken by its change.
fn broken_by(
    watchers: &mut BTreeMap<SessionId, Watcher>,
    before: Presence,
    after: Presence,
) -> impl Iterator<Item = SessionId> {
    watchers.iter_mut().filter_map(move |(session, watcher)| watcher.is_broken_by(before, after).then_some(*session))
}

impl Watches {
    /// Starts to watch a key for a session; `presence` says whether the key exists now.
    pub fn watch(&mut self, session: SessionId, database: usize, key: &[u8], presence: Presence) {
        let watched = self.sessions.entry(session).or_default();
        if watched.is_broken {
            return;
        }
        if let Entry::Vacant(watcher) = self.keys.of(database, key).entry(session) {
            watcher.insert(Watcher { was_overdue: presence == Presence::Overdue });
            watched.keys.push((database, key.into()));
            watched.memory_bytes += 2 * key.len() + KEY_BYTES;
        }
    }

    /// Ends all watches of a session; true when one was broken.
    pub fn unwatch(&mut self, session: SessionId) -> bool {
        let Some(watched) = self.sessions.remove(&session) else { return false };
        for (database, key) in &watched.keys {
            self.leave(session, *database, key);
        }
        watched.is_broken
    }

    fn leave(&mut self, session: SessionId, database: usize, key: &[u8]) {
        let Some(watchers) = self.keys.get_mut(database, key) else { return };
        watchers.remove(&session);
        if watchers.is_empty() {
            self.keys.remove(database, key);
        }
    }

    /// True when a session watches that key.
    pub fn includes(&self, database: usize, key: &[u8]) -> bool {
        !self.keys.is_empty() && self.keys.get(database, key).is_some()
    }

    /// Breaks the watches of a key that changed or was deleted; `after` is its presence now.
    pub fn touch(&mut self, database: usize, key: &[u8], after: Presence) {
        let Some(watchers) = self.keys.get_mut(database, key) else { return };
        let broken = broken_by(watchers, Presence::Live, after).collect();
        self.break_all(broken);
    }

    /// Breaks watches after all keys of a database were replaced; `before` and `after` give each key's presence.
    pub fn replace(&mut self, database: usize, before: impl Fn(&[u8]) -> Presence, after: impl Fn(&[u8]) -> Presence) {
        let mut broken = Vec::new();
        for (key, watchers) in self.keys.iter_mut(database) {
            let (before, after) = (before(key), after(key));
            broken.extend(broken_by(watchers, before, after));
        }
        for session in broken {
            self.sessions.entry(session).or_default().is_broken = true;
        }
    }

    fn break_all(&mut self, broken: Vec<SessionId>) {
        for session in broken {
            self.unwatch(session);
            self.sessions.insert(session, Watched { is_broken: true, ..Watched::default() });
        }
    }

    /// Whether a watch of the session is broken; `presence` finds its keys that expired but were not deleted yet.
    pub fn is_broken(&self, session: SessionId, presence: impl Fn(usize, &[u8]) -> Presence) -> bool {
        let fell_due = |database: usize, key: &[u8]| {
            let watcher = self.keys.get(database, key).and_then(|watchers| watchers.get(&session));
            !watcher.is_some_and(|watcher| watcher.was_overdue) && presence(database, key) == Presence::Overdue
        };
        self.sessions.get(&session).is_some_and(|watched| {
            watched.is_broken || watched.keys.iter().any(|(database, key)| fell_due(*database, key))
        })
    }

    /// Whether a watch of the session is known to be broken.
    pub fn is_known_broken(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(|watched| watched.is_broken)
    }

    /// About how many bytes of memory the session's watches take.
    pub fn memory_of(&self, session: SessionId) -> usize {
        self.sessions.get(&session).map_or(0, |watched| watched.memory_bytes)
    }

    /// The number of keys that the session watches.
    pub fn of(&self, session: SessionId) -> usize {
        self.sessions.get(&session).map_or(0, |watched| watched.keys.len())
    }

    /// The key that the session has watched longest.
    pub fn first_of(&self, session: SessionId) -> Option<&[u8]> {
        self.sessions.get(&session)?.keys.first().map(|(_, key)| &**key)
    }

    /// The number of watched keys.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// The number of sessions that watch a key.
    pub fn sessions(&self) -> usize {
        self.sessions.values().filter(|watched| !watched.keys.is_empty()).count()
    }
}
