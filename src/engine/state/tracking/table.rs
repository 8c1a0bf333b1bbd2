//! The tracking table: for each key, the clients that have read it and get an invalidation when it changes.
//!
//! A client is not removed when it disconnects or stops tracking: it is skipped when the key changes, and counted
//! until then, as in Redis. The table is bounded by `tracking-table-max-keys`: the engine removes surplus keys at
//! random, so keys have numbers.
//!
//! Invariant: `places` names the row of every key; `items` is the sum of the readers of all rows, and `key_bytes`
//! that of the lengths of their keys.
//!
//! Costs: one probe to remember or forget a key; some 100 bytes a key with one reader.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::engine::state::SessionId;

/// The memory of a key with one reader, beside the bytes of the key: the row, the entry of the map, a shared
/// allocation.
const KEY_BYTES: usize = 100;

/// The memory of each further reader.
const READER_BYTES: usize = 24;

/// The keys that clients have read.
#[derive(Debug, Default)]
pub(in crate::engine) struct TrackingTable {
    places: HashMap<Arc<[u8]>, usize>,
    rows: Vec<(Arc<[u8]>, Readers)>,
    items: usize,
    key_bytes: usize,
}

/// The clients that have read a key.
#[derive(Debug)]
pub(in crate::engine) enum Readers {
    /// A single client, as for most keys.
    One(SessionId),
    /// Several clients.
    Many(BTreeSet<SessionId>),
}

impl Readers {
    /// Adds a client; false when it is present already.
    fn add(&mut self, session: SessionId) -> bool {
        match self {
            Readers::One(known) if *known == session => false,
            Readers::One(known) => {
                *self = Readers::Many(BTreeSet::from([*known, session]));
                true
            }
            Readers::Many(known) => known.insert(session),
        }
    }

    fn len(&self) -> usize {
        match self {
            Readers::One(_) => 1,
            Readers::Many(known) => known.len(),
        }
    }

    /// All readers, in the order of their ids.
    pub(in crate::engine) fn iter(&self) -> impl Iterator<Item = SessionId> {
        let (one, many) = match self {
            Readers::One(known) => (Some(*known), None),
            Readers::Many(known) => (None, Some(known)),
        };
        one.into_iter().chain(many.into_iter().flatten().copied())
    }
}

impl TrackingTable {
    /// The number of keys.
    pub(in crate::engine) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The number of pairs of a key and a client.
    pub(in crate::engine) fn items(&self) -> usize {
        self.items
    }

    /// About how many bytes of memory the table takes.
    pub(in crate::engine) fn memory_bytes(&self) -> usize {
        self.key_bytes + self.len() * KEY_BYTES + (self.items - self.len()) * READER_BYTES
    }

    /// Records that a client has read a key.
    pub(in crate::engine) fn remember(&mut self, key: &[u8], session: SessionId) {
        if let Some(&place) = self.places.get(key) {
            self.items += usize::from(self.rows[place].1.add(session));
            return;
        }
        let key: Arc<[u8]> = key.into();
        self.items += 1;
        self.key_bytes += key.len();
        self.places.insert(Arc::clone(&key), self.rows.len());
        self.rows.push((key, Readers::One(session)));
    }

    /// Removes a key that changed, and returns its readers, which are to be notified.
    pub(in crate::engine) fn forget(&mut self, key: &[u8]) -> Option<Readers> {
        let place = self.places.remove(key)?;
        let (key, readers) = self.rows.swap_remove(place);
        if let Some((moved, _)) = self.rows.get(place)
            && let Some(known) = self.places.get_mut(moved)
        {
            *known = place;
        }
        self.items -= readers.len();
        self.key_bytes -= key.len();
        Some(readers)
    }

    /// The key with that number.
    pub(in crate::engine) fn key(&self, number: usize) -> Arc<[u8]> {
        Arc::clone(&self.rows[number].0)
    }

    /// Removes all keys.
    pub(in crate::engine) fn clear(&mut self) {
        *self = TrackingTable::default();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::engine::state::Sessions;

    fn clients() -> Vec<SessionId> {
        let mut sessions = Sessions::default();
        (0..4).map(|_| sessions.open_one()).collect()
    }

    proptest! {
        #[test]
        fn the_table_behaves_as_a_map_from_keys_to_sets_of_clients(
            steps in prop::collection::vec((0u8..12, 0usize..4, 0u8..4), 0..200),
        ) {
            let (clients, mut known) = (clients(), TrackingTable::default());
            let mut model: BTreeMap<Vec<u8>, BTreeSet<SessionId>> = BTreeMap::new();
            for (key, client, action) in steps {
                let key = vec![b'k'; usize::from(key)];
                if action == 0 {
                    let readers: Option<BTreeSet<SessionId>> = known.forget(&key).map(|readers| readers.iter().collect());
                    prop_assert_eq!(readers, model.remove(&key));
                } else {
                    known.remember(&key, clients[client]);
                    model.entry(key).or_default().insert(clients[client]);
                }
                prop_assert_eq!((known.len(), known.items()), (model.len(), model.values().map(BTreeSet::len).sum()));
                prop_assert_eq!(known.key_bytes, model.keys().map(Vec::len).sum::<usize>());
                let keys: BTreeSet<Vec<u8>> = (0..known.len()).map(|number| known.key(number).to_vec()).collect();
                prop_assert!(keys.iter().eq(model.keys()));
            }
        }
    }
}
