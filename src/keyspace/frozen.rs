//! A database as it was at a moment, for saving it while it changes.
//!
//! Freezing copies no key: the database moves its contents to where both can read them, and copies a part (a chunk of
//! records, one large value, a segment of the table) before it first changes it, as the clones of a template do. When
//! the frozen one has been dropped, the database takes the parts that it has not copied back ([`Database::thaw`]).
//!
//! Costs: a freeze and a thaw take time in proportion to the number of parts, a tenth of a millisecond for a million
//! small keys. In between, the first change of a chunk copies its 64 KiB, and that of a large value the whole value.

use super::database::Database;
use super::records::Records;
use super::table::Table;
use crate::value::View;

/// A database as it was at a moment. It may be read on another thread.
#[derive(Debug)]
pub struct FrozenDatabase<const LINES: usize = 64> {
    table: Table<LINES>,
    records: Records,
    volatile_len: usize,
}

/// A key of a frozen database.
#[derive(Clone, Copy, Debug)]
pub struct FrozenKey<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Its value.
    pub view: View<'a>,
    /// Its deadline, in unix milliseconds.
    pub deadline_ms: Option<i64>,
    /// The bits of [`Database::access`].
    pub access: u32,
}

impl<const LINES: usize> FrozenDatabase<LINES> {
    pub(super) fn new(table: Table<LINES>, records: Records, volatile_len: usize) -> FrozenDatabase<LINES> {
        FrozenDatabase { table, records, volatile_len }
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there was no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of keys with a deadline.
    pub fn volatile_len(&self) -> usize {
        self.volatile_len
    }

    /// Every key, in no order.
    pub fn keys(&self) -> impl Iterator<Item = FrozenKey<'_>> {
        self.table.handles_prefetched(|handles| self.records.prefetch_whole(handles)).map(|handle| {
            let record = self.records.record(handle);
            FrozenKey {
                key: self.records.key(handle),
                view: self.records.view(handle),
                deadline_ms: record.deadline(),
                access: record.access(),
            }
        })
    }
}

impl<const LINES: usize> Database<LINES> {
    /// The database as it is now, for reading while it changes.
    pub fn freeze(&mut self) -> FrozenDatabase<LINES> {
        let (table, records) = self.share_parts();
        FrozenDatabase::new(table, records, self.volatile_len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::New;
    use crate::value::text::{Text, TextView};
    use crate::value::{Set, Value, ValueMut};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Contents = BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)>;

    fn shown(view: View<'_>) -> Vec<u8> {
        match view {
            View::Text(text) => text.to_cow().into_owned(),
            View::Set(set) => {
                let mut members: Vec<Vec<u8>> = set.iter().map(|member| member.to_cow().into_owned()).collect();
                members.sort();
                members.concat()
            }
            _ => Vec::new(),
        }
    }

    fn contents(database: &Database<2>) -> Contents {
        let entry = |slot| (database.key(slot).to_vec(), (shown(database.view(slot)), database.deadline(slot)));
        database.slots().map(entry).collect()
    }

    fn frozen_contents(frozen: &FrozenDatabase<2>) -> Contents {
        frozen.keys().map(|entry| (entry.key.to_vec(), (shown(entry.view), entry.deadline_ms))).collect()
    }

    /// Changes a key in one of several ways, large and small, here and apart.
    fn change(database: &mut Database<2>, key: &[u8], step: u8) {
        match (database.find(key), step % 6) {
            (Some(slot), 0) => drop(database.delete(slot)),
            (Some(slot), 1) => _ = database.set_deadline(slot, Some(i64::from(step))),
            (Some(slot), 2) => {
                let text = vec![step; usize::from(step) * 20];
                drop(database.replace(slot, New::Text(TextView::Bytes(&text))));
            }
            (Some(slot), _) => {
                let limits = Default::default();
                _ = database.edit_object(slot, |value| {
                    if let Some(ValueMut::Set(set)) = value {
                        set.insert(&[step], &limits);
                    }
                });
            }
            (None, 3) => _ = database.insert(key, New::Text(TextView::Int(step.into()))),
            (None, 4) => {
                let text = Value::Text(Text::of(vec![step; 3000]));
                _ = database.insert(key, New::Value(text));
            }
            (None, _) => {
                let (mut set, limits) = (Set::default(), Default::default());
                (0..step).for_each(|member| _ = set.insert(&[b'm', member], &limits));
                set.insert(b"one", &limits);
                _ = database.insert(key, New::Value(Value::Set(set)));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 128 }))]

        #[test]
        fn a_frozen_database_stays_as_it_was_and_gives_everything_back(
            steps in prop::collection::vec(any::<(u8, u8)>(), 0..if cfg!(miri) { 60 } else { 900 }),
            every in 40usize..300,
        ) {
            let mut database = Database::<2>::with_segments(1);
            let mut model: BTreeMap<Vec<u8>, ()> = BTreeMap::new();
            let mut frozen: Option<(FrozenDatabase<2>, Contents)> = None;
            for (number, (key, step)) in steps.into_iter().enumerate() {
                if number % every == every - 1 {
                    if let Some((frozen, expected)) = frozen.take() {
                        prop_assert_eq!(frozen_contents(&frozen), expected);
                        drop(frozen);
                        drop(database.thaw());
                        prop_assert!(!database.is_shared());
                        database.check();
                    } else {
                        let expected = contents(&database);
                        frozen = Some((database.freeze(), expected));
                    }
                }
                let key = if key % 2 == 0 { vec![b'k', key] } else { vec![key; 400] };
                change(&mut database, &key, step);
                model.insert(key, ());
            }
            database.check();
            if let Some((frozen, expected)) = frozen {
                prop_assert_eq!(frozen_contents(&frozen), expected);
            }
            prop_assert!(database.slots().all(|slot| model.contains_key(database.key(slot))));
        }
    }

    #[test]
    fn a_database_that_is_still_read_elsewhere_takes_nothing_back() {
        let mut database = Database::<2>::with_segments(1);
        (0..200u8).for_each(|number| change(&mut database, &[number], 3));
        let frozen = database.freeze();
        drop(database.thaw());
        assert!(database.is_shared());
        assert_eq!(frozen.len(), 200);
        drop(frozen);
        drop(database.thaw());
        assert!(!database.is_shared());
        database.check();
    }
}
