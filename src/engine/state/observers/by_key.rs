//! A map from keys of numbered databases to values. It is ordered, so that iterating it is the same in every run.

use std::collections::BTreeMap;

/// Values for some keys of some databases.
#[derive(Debug)]
pub(in crate::engine) struct ByKey<T> {
    databases: Vec<BTreeMap<Box<[u8]>, T>>,
    len: usize,
}

impl<T> Default for ByKey<T> {
    fn default() -> ByKey<T> {
        ByKey { databases: Vec::new(), len: 0 }
    }
}

impl<T> ByKey<T> {
    /// The number of keys with a value.
    pub(in crate::engine) fn len(&self) -> usize {
        self.len
    }

    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(in crate::engine) fn get(&self, database: usize, key: &[u8]) -> Option<&T> {
        self.databases.get(database)?.get(key)
    }

    pub(in crate::engine) fn get_mut(&mut self, database: usize, key: &[u8]) -> Option<&mut T> {
        self.databases.get_mut(database)?.get_mut(key)
    }

    /// All keys of one database with a value, in order.
    pub(in crate::engine) fn iter_mut(&mut self, database: usize) -> impl Iterator<Item = (&[u8], &mut T)> {
        self.databases.get_mut(database).into_iter().flatten().map(|(key, value)| (&**key, value))
    }

    pub(in crate::engine) fn remove(&mut self, database: usize, key: &[u8]) {
        if self.databases.get_mut(database).is_some_and(|keys| keys.remove(key).is_some()) {
            self.len -= 1;
        }
    }
}

impl<T: Default> ByKey<T> {
    /// The value of the key; a default one is inserted if it has none.
    pub(in crate::engine) fn of(&mut self, database: usize, key: &[u8]) -> &mut T {
        if self.databases.len() <= database {
            self.databases.resize_with(database + 1, BTreeMap::new);
        }
        let keys = &mut self.databases[database];
        self.len += usize::from(!keys.contains_key(key));
        keys.entry(key.into()).or_default()
    }
}
