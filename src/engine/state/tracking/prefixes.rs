//! Broadcast tracking (BCAST): clients that get an invalidation for every change of a key that begins with one of
//! their prefixes, whether they have read it or not.
//!
//! Changes are collected during a turn and sent at its end: each prefix's clients get its keys in one message. Each key
//! is stored with the client that changed it last, since that client may not want the invalidation (NOLOOP).
//!
//! Invariant: every prefix has a client; the prefixes with keys are in `changed`.
//!
//! Costs: a change costs a search for each prefix that the key begins with, and for each length that others have in
//! common with it. Prefixes without changes cost nothing at the end of a turn.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::engine::state::SessionId;

/// The prefixes of all clients.
#[derive(Debug, Default)]
pub(in crate::engine) struct Prefixes {
    all: BTreeMap<Arc<[u8]>, Gathered>,
    /// The prefixes with changes; some may have been removed meanwhile.
    changed: BTreeSet<Arc<[u8]>>,
}

/// The clients of one prefix, and the keys that have changed.
#[derive(Debug, Default)]
pub(in crate::engine) struct Gathered {
    clients: BTreeSet<SessionId>,
    keys: BTreeMap<Box<[u8]>, Option<SessionId>>,
}

impl Gathered {
    /// The clients to notify.
    pub(in crate::engine) fn clients(&self) -> impl Iterator<Item = SessionId> {
        self.clients.iter().copied()
    }

    /// The keys in their order, without those that `except` changed last.
    pub(in crate::engine) fn keys(&self, except: Option<SessionId>) -> impl ExactSizeIterator<Item = &[u8]> {
        let wanted = self.keys.iter().filter(move |(_, by)| except.is_none() || **by != except);
        wanted.map(|(key, _)| &**key).collect::<Vec<_>>().into_iter()
    }
}

impl Prefixes {
    /// The number of prefixes.
    pub(in crate::engine) fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds a client to a prefix, and returns the shared name of the prefix.
    pub(in crate::engine) fn join(&mut self, prefix: &[u8], session: SessionId) -> Arc<[u8]> {
        let name = self.all.get_key_value(prefix).map_or_else(|| prefix.into(), |(name, _)| Arc::clone(name));
        self.all.entry(Arc::clone(&name)).or_default().clients.insert(session);
        name
    }

    /// Removes a client from a prefix.
    pub(in crate::engine) fn leave(&mut self, prefix: &[u8], session: SessionId) {
        let Some(gathered) = self.all.get_mut(prefix) else { return };
        gathered.clients.remove(&session);
        if gathered.clients.is_empty() {
            self.all.remove(prefix);
        }
    }

    /// Records that a key has changed, and which client changed it, if one did.
    pub(in crate::engine) fn record_change(&mut self, key: &[u8], by: Option<SessionId>) {
        // Prefixes that do not sort behind the key, the last first. A prefix of the key that sorts before the current
        // one is no longer than what the current one and the key have in common.
        let mut bound = Bound::Included(key);
        while let Some((prefix, gathered)) = self.all.range_mut::<[u8], _>((Bound::Unbounded, bound)).next_back() {
            let common = prefix.iter().zip(key).take_while(|(one, other)| one == other).count();
            bound = if common == prefix.len() {
                gathered.keys.insert(key.into(), by);
                self.changed.insert(Arc::clone(prefix));
                Bound::Excluded(&key[..common])
            } else {
                Bound::Included(&key[..common])
            };
        }
    }

    /// True when there are changes to send.
    pub(in crate::engine) fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Takes the collected changes: for each prefix with changes, its clients and its keys.
    pub(in crate::engine) fn take(&mut self) -> Vec<Gathered> {
        let take = |prefix: Arc<[u8]>| {
            let gathered = self.all.get_mut(&prefix)?;
            let keys = std::mem::take(&mut gathered.keys);
            (!keys.is_empty()).then(|| Gathered { clients: gathered.clients.clone(), keys })
        };
        std::mem::take(&mut self.changed).into_iter().filter_map(take).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::state::Sessions;

    fn invalidations(prefixes: &mut Prefixes, except: Option<SessionId>) -> Vec<Vec<String>> {
        let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        prefixes.take().iter().map(|gathered| gathered.keys(except).map(text).collect()).collect()
    }

    #[test]
    fn a_key_is_reported_once_for_each_prefix_that_matches_it() {
        let mut sessions = Sessions::default();
        let [one, other] = [0; 2].map(|_| sessions.open_one());
        let mut prefixes = Prefixes::default();
        for prefix in ["", "a", "ab", "abc", "b"] {
            prefixes.join(prefix.as_bytes(), one);
        }
        for key in ["ab", "aa", "c", "ab"] {
            prefixes.record_change(key.as_bytes(), Some(one));
        }
        prefixes.record_change(b"c", Some(other));
        assert!(prefixes.has_changes());
        assert_eq!(invalidations(&mut prefixes, None), [vec!["aa", "ab", "c"], vec!["aa", "ab"], vec!["ab"]]);
        assert!(!prefixes.has_changes() && invalidations(&mut prefixes, None).is_empty());
        prefixes.record_change(b"c", Some(other));
        prefixes.record_change(b"d", Some(one));
        assert_eq!(invalidations(&mut prefixes, Some(one)), [vec!["c"]]);
    }

    #[test]
    fn a_prefix_is_removed_with_its_last_client() {
        let mut sessions = Sessions::default();
        let [one, other] = [0; 2].map(|_| sessions.open_one());
        let mut prefixes = Prefixes::default();
        [one, other].into_iter().for_each(|session| _ = prefixes.join(b"a", session));
        prefixes.leave(b"a", one);
        assert_eq!(prefixes.len(), 1);
        prefixes.leave(b"a", other);
        prefixes.record_change(b"a", None);
        assert!(prefixes.len() == 0 && !prefixes.has_changes());
    }
}
