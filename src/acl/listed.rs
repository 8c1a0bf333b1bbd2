//! A map in insertion order: the patterns, passwords and rules of a user, which ACL LIST shows in that order.
//!
//! Invariant: every key has one position, and every position its key.
//!
//! Costs: finding, adding and removing one is O(log n), so that many rules in one request take time in proportion to
//! their number.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Keys with values, in the order of insertion.
#[derive(Clone, Debug)]
pub(super) struct Listed<K, V> {
    indexes: BTreeMap<K, u64>,
    items: BTreeMap<u64, (K, V)>,
    next: u64,
}

impl<K, V> Default for Listed<K, V> {
    fn default() -> Listed<K, V> {
        Listed { indexes: BTreeMap::new(), items: BTreeMap::new(), next: 0 }
    }
}

/// Lists are equal if they show the same keys and values in the same order.
impl<K: PartialEq, V: PartialEq> PartialEq for Listed<K, V> {
    fn eq(&self, other: &Listed<K, V>) -> bool {
        self.items.values().eq(other.items.values())
    }
}

impl<K: Eq, V: Eq> Eq for Listed<K, V> {}

impl<K: Ord + Clone, V> Listed<K, V> {
    /// The value of a key; a key that is not in the map is appended with `value`.
    pub(super) fn get_or_add(&mut self, key: K, value: V) -> &mut V {
        let next = self.next;
        let index = match self.indexes.entry(key) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(vacant) => {
                self.next += 1;
                self.items.insert(next, (vacant.key().clone(), value));
                *vacant.insert(next)
            }
        };
        &mut self.items.get_mut(&index).expect("every key has its place").1
    }

    /// Whether the key is in the map.
    pub(super) fn contains(&self, key: &K) -> bool {
        self.indexes.contains_key(key)
    }

    /// Removes a key; false if it is not in the map.
    pub(super) fn remove(&mut self, key: &K) -> bool {
        self.indexes.remove(key).is_some_and(|index| self.items.remove(&index).is_some())
    }

    /// The keys from `key` on, in sorted order.
    pub(super) fn from<'l>(&'l self, key: &K) -> impl Iterator<Item = &'l K> {
        self.indexes.range(key.clone()..).map(|(key, _)| key)
    }

    /// All entries, in the order of insertion.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> {
        self.items.values().map(|(key, value)| (key, value))
    }
}
