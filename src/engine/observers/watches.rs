//! WATCH: whose transaction depends on which keys, and whether one of them changed.
//!
//! A key that was overdue when its watch began (its deadline had passed, and nobody had removed it yet) is as good as
//! missing: its removal is no change, its return is one.
//!
//! Invariant: a session watches a key exactly if it is among the key's watchers. A session whose watch
//! is broken watches nothing more until its transaction has ended; what it watched it lets go, unless
//! a whole database was replaced.

use std::collections::BTreeMap;

use super::by_key::ByKey;
use crate::engine::SessionId;

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

/// The watched keys of all sessions.
#[derive(Debug, Default)]
pub struct Watches {
    keys: ByKey<Vec<Watcher>>,
    sessions: BTreeMap<SessionId, Watched>,
}

#[derive(Debug)]
struct Watcher {
    session: SessionId,
    was_overdue: bool,
}

/// What it takes to keep a key here and in the session's list, beside its bytes.
const KEY_BYTES: usize = 128;

#[derive(Debug, Default)]
struct Watched {
    keys: Vec<(usize, Box<[u8]>)>,
    /// The bytes of all keys, with what it takes to keep them.
    memory_bytes: usize,
    is_broken: bool,
}

impl Watcher {
    /// Tells of a change; answers the session if its watch is broken by it.
    fn told(&mut self, before: Presence, after: Presence) -> Option<SessionId> {
        self.minds(before, after).then_some(self.session)
    }

    /// True when this change of the key makes it another than the one that was watched.
    fn minds(&mut self, before: Presence, after: Presence) -> bool {
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

impl Watches {
    /// Has a session watch a key that is `presence` now.
    pub fn watch(&mut self, session: SessionId, database: usize, key: &[u8], presence: Presence) {
        let watched = self.sessions.entry(session).or_default();
        if watched.is_broken {
            return;
        }
        let watchers = self.keys.of(database, key);
        if watchers.iter().all(|watcher| watcher.session != session) {
            watchers.push(Watcher { session, was_overdue: presence == Presence::Overdue });
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
        watchers.retain(|watcher| watcher.session != session);
        if watchers.is_empty() {
            self.keys.remove(database, key);
        }
    }

    /// True when somebody watches that key.
    pub fn includes(&self, database: usize, key: &[u8]) -> bool {
        !self.keys.is_empty() && self.keys.get(database, key).is_some()
    }

    /// A key changed, or is gone: what it is now.
    pub fn touch(&mut self, database: usize, key: &[u8], after: Presence) {
        let Some(watchers) = self.keys.get_mut(database, key) else { return };
        let broken = watchers.iter_mut().filter_map(|watcher| watcher.told(Presence::Live, after)).collect();
        self.break_all(broken);
    }

    /// All keys of a database were replaced by others: what each was and is.
    pub fn replace(&mut self, database: usize, before: impl Fn(&[u8]) -> Presence, after: impl Fn(&[u8]) -> Presence) {
        let mut broken = Vec::new();
        for (key, watchers) in self.keys.iter_mut(database) {
            let (before, after) = (before(key), after(key));
            broken.extend(watchers.iter_mut().filter_map(|watcher| watcher.told(before, after)));
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

    /// Whether a watch of the session is broken; `presence` tells which of its keys fell due without anybody's notice.
    pub fn is_broken(&self, session: SessionId, presence: impl Fn(usize, &[u8]) -> Presence) -> bool {
        let fell_due = |database: usize, key: &[u8]| {
            let mut watchers = self.keys.get(database, key).into_iter().flatten();
            let was_overdue = watchers.any(|watcher| watcher.session == session && watcher.was_overdue);
            !was_overdue && presence(database, key) == Presence::Overdue
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

    /// How many keys the session watches.
    pub fn of(&self, session: SessionId) -> usize {
        self.sessions.get(&session).map_or(0, |watched| watched.keys.len())
    }

    /// The key that a session watches longest.
    pub fn first_of(&self, session: SessionId) -> Option<&[u8]> {
        self.sessions.get(&session)?.keys.first().map(|(_, key)| &**key)
    }

    /// How many keys are watched.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// How many sessions watch a key.
    pub fn sessions(&self) -> usize {
        self.sessions.values().filter(|watched| !watched.keys.is_empty()).count()
    }
}
