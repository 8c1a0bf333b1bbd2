//! Compares the keyspace with maps of the standard library.

use dunlin::keyspace::{Database, KeyHandle, New, ValueMut};
use dunlin::value::hash_slot::hash_slot;
use dunlin::value::{Hash, Text, TextView, Value, View, Zset};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The state of a key in the model: the bytes of a text or the length of a sorted set or hash, a deadline, an access
/// note.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    contents: Contents,
    deadline_ms: Option<i64>,
    access: u32,
}

#[derive(Clone, Debug, PartialEq)]
enum Contents {
    Text { bytes: Vec<u8>, encoding: &'static str },
    Members(usize),
    Fields(usize),
}

#[derive(Clone, Debug)]
enum Step {
    Set { key: u16, text: Vec<u8>, copies: usize, keep: bool, owned: bool },
    SetMany { from: u16, many: u16 },
    SetZset { key: u16 },
    GrowZset { key: u16 },
    SetHash { key: u16, fields: usize },
    GrowHash { key: u16, fields: usize },
    ShrinkHash { key: u16, fields: usize },
    Append { key: u16, text: Vec<u8> },
    Cut { key: u16, len: usize },
    SetInt { key: u16, number: i64 },
    Remove { key: u16 },
    RemoveMany { from: u16, many: u16 },
    Deadline { key: u16, deadline_ms: Option<i64> },
    DeadlineMany { from: u16, many: u16, start_ms: i64 },
    Access { key: u16, access: u32 },
    Expire { now_ms: i64 },
    Lend,
    Clear,
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..80),
        1 => prop::collection::vec(any::<u8>(), 900..1100),
        1 => any::<i64>().prop_map(|number| number.to_string().into_bytes()),
        1 => (-300i64..300).prop_map(|number| number.to_string().into_bytes()),
    ]
}

fn deadline() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 0i64..100_000,
        1 => any::<i64>(),
        1 => Just(i64::MAX / 2),
        1 => (1i64 << 32) - 500..(1i64 << 32) + 500,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0u16..700;
    prop_oneof![
        6 => (key(), text(), 1usize..3, any::<bool>(), any::<bool>())
            .prop_map(|(key, text, copies, keep, owned)| Step::Set { key, text, copies, keep, owned }),
        2 => (key(), 1u16..400).prop_map(|(from, many)| Step::SetMany { from, many }),
        2 => key().prop_map(|key| Step::SetZset { key }),
        2 => key().prop_map(|key| Step::GrowZset { key }),
        2 => (key(), 0usize..60).prop_map(|(key, fields)| Step::SetHash { key, fields }),
        3 => (key(), 0usize..30).prop_map(|(key, fields)| Step::GrowHash { key, fields }),
        2 => (key(), 0usize..30).prop_map(|(key, fields)| Step::ShrinkHash { key, fields }),
        3 => (key(), text()).prop_map(|(key, text)| Step::Append { key, text }),
        1 => (key(), 0usize..60).prop_map(|(key, len)| Step::Cut { key, len }),
        2 => (key(), any::<i64>(), 0u32..64).prop_map(|(key, number, shift)| {
            let number = number >> shift;
            Step::SetInt { key, number }
        }),
        3 => key().prop_map(|key| Step::Remove { key }),
        1 => (key(), 1u16..500).prop_map(|(from, many)| Step::RemoveMany { from, many }),
        4 => (key(), prop::option::of(deadline())).prop_map(|(key, deadline_ms)| Step::Deadline { key, deadline_ms }),
        1 => (key(), 1u16..400, deadline())
            .prop_map(|(from, many, start_ms)| Step::DeadlineMany { from, many, start_ms }),
        1 => (key(), any::<u32>()).prop_map(|(key, access)| Step::Access { key, access }),
        2 => deadline().prop_map(|now_ms| Step::Expire { now_ms }),
        1 => Just(Step::Lend),
        1 => Just(Step::Clear),
    ]
}

/// A key with one of forty hash tags. Few keys are long, and one in four hundred is very long.
fn key_of(number: u16) -> Vec<u8> {
    let mut key = format!("key:{number}{{{}}}", number % 40).into_bytes();
    key.resize(key.len() + if number % 400 == 3 { 2000 } else { usize::from(number % 7) * 40 }, b'.');
    key
}

struct Pair {
    database: Database<2>,
    model: HashMap<Vec<u8>, Known>,
    indexes_hash_slots: bool,
    /// Of what the database shares what it has not changed since.
    bases: Vec<Pair>,
}

impl Pair {
    /// A database of each second seed has an index of slots.
    fn new(seed: u64) -> Pair {
        let (mut database, indexes_hash_slots) = (Database::with_segments(seed), seed % 2 == 1);
        if indexes_hash_slots {
            database.index_hash_slots();
        }
        Pair { database, model: HashMap::new(), indexes_hash_slots, bases: Vec::new() }
    }

    fn find(&self, key: &[u8]) -> Option<KeyHandle> {
        self.database.find(key)
    }

    fn set(&mut self, key: u16, bytes: Vec<u8>, keep: bool, owned: bool) {
        let key = key_of(key);
        let text = TextView::of(&bytes);
        let value = if owned { New::Value(Value::Text(Text::of(bytes.clone()))) } else { New::Text(text) };
        let contents = Contents::Text { bytes: bytes.clone(), encoding: text.encoding() };
        match self.find(&key) {
            Some(slot) if keep => {
                self.database.replace(slot, value);
                self.model.get_mut(&key).expect("the key exists").contents = contents;
            }
            found => {
                if let Some(slot) = found {
                    self.database.delete(slot);
                }
                self.database.insert(&key, value);
                self.model.insert(key, Known { contents, deadline_ms: None, access: 0 });
            }
        }
    }

    fn set_object(&mut self, key: u16, value: Value) {
        let key = key_of(key);
        let contents = contents(value.view());
        match self.find(&key) {
            Some(slot) => {
                self.database.replace(slot, New::Value(value));
                self.model.get_mut(&key).expect("the key exists").contents = contents;
            }
            None => {
                self.database.insert(&key, New::Value(value));
                self.model.insert(key, Known { contents, deadline_ms: None, access: 0 });
            }
        }
    }

    fn grow_zset(&mut self, key: u16) {
        let key = key_of(key);
        let Some(slot) = self.find(&key) else { return };
        let (_, grown) = self.database.edit_object(slot, |value| {
            let Some(ValueMut::Zset(zset)) = value else { return false };
            let member = zset.len().to_string();
            zset.insert(member.as_bytes(), 1.0, &Default::default());
            true
        });
        let contents = &mut self.model.get_mut(&key).expect("the key exists").contents;
        assert_eq!(matches!(contents, Contents::Members(_)), grown);
        if let Contents::Members(members) = contents {
            *members += 1;
        }
    }

    fn edit_hash(&mut self, key: u16, edit: impl FnOnce(&mut Hash)) {
        let key = key_of(key);
        let Some(slot) = self.find(&key) else { return };
        let (slot, len) = self.database.edit_object(slot, |value| {
            let Some(ValueMut::Hash(hash)) = value else { return None };
            edit(hash);
            hash.check();
            Some(hash.len())
        });
        assert_eq!(self.database.key(slot), key);
        let contents = &mut self.model.get_mut(&key).expect("the key exists").contents;
        assert_eq!(matches!(contents, Contents::Fields(_)), len.is_some());
        if let Some(len) = len {
            *contents = Contents::Fields(len);
        }
    }

    fn edit(&mut self, key: u16, edit: impl Fn(&mut Vec<u8>)) {
        let key = key_of(key);
        let Some(Known { contents: Contents::Text { bytes, encoding }, .. }) = self.model.get_mut(&key) else { return };
        edit(bytes);
        *encoding = "raw";
        let slot = self.database.find(&key).expect("the key exists");
        let (slot, len) = self.database.edit_text(slot, |bytes| {
            edit(bytes);
            bytes.len()
        });
        assert_eq!(len, bytes.len());
        assert_eq!(self.database.key(slot), key);
    }

    fn set_int(&mut self, key: u16, number: i64) {
        let key = key_of(key);
        let Some(known) = self.model.get_mut(&key) else { return };
        known.contents = Contents::Text { bytes: number.to_string().into_bytes(), encoding: "int" };
        let slot = self.database.find(&key).expect("the key exists");
        self.database.set_int(slot, number);
    }

    fn remove(&mut self, key: u16) {
        let key = key_of(key);
        let slot = self.find(&key);
        assert_eq!(slot.is_some(), self.model.contains_key(&key));
        let Some(slot) = slot else { return };
        let value = self.database.remove(slot);
        let known = self.model.remove(&key).expect("the key exists");
        assert_eq!(contents(value.view()), known.contents);
    }

    fn set_deadline(&mut self, key: u16, deadline_ms: Option<i64>) {
        let key = key_of(key);
        let Some(known) = self.model.get_mut(&key) else { return };
        known.deadline_ms = deadline_ms;
        let slot = self.database.find(&key).expect("the key exists");
        let slot = self.database.set_deadline(slot, deadline_ms);
        assert_eq!(self.database.key(slot), key);
    }

    fn expire(&mut self, now_ms: i64) {
        let mut last_ms = i64::MIN;
        while let Some((deadline_ms, slot)) = self.database.first_due().filter(|(due_ms, _)| *due_ms <= now_ms) {
            assert!(last_ms <= deadline_ms);
            assert_eq!(self.database.deadline(slot), Some(deadline_ms));
            assert_eq!(self.database.next_deadline(), Some(deadline_ms));
            last_ms = deadline_ms;
            let known = self.model.remove(self.database.key(slot)).expect("the key exists");
            assert_eq!(known.deadline_ms, Some(deadline_ms));
            self.database.delete(slot);
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Set { key, text, copies, keep, owned } => self.set(key, text.repeat(copies), keep, owned),
            Step::SetMany { from, many } => {
                (from..from + many).for_each(|key| self.set(key, key.to_string().into_bytes(), true, false));
            }
            Step::SetZset { key } => self.set_object(key, Value::Zset(Zset::new())),
            Step::GrowZset { key } => self.grow_zset(key),
            Step::SetHash { key, fields } => self.set_object(key, Value::Hash(hash(fields))),
            Step::GrowHash { key, fields } => self.edit_hash(key, |hash| grow(hash, fields)),
            Step::ShrinkHash { key, fields } => self.edit_hash(key, |hash| {
                (0..fields).for_each(|field| _ = hash.remove(format!("field:{field}").as_bytes()));
            }),
            Step::Append { key, text } => self.edit(key, |bytes| bytes.extend_from_slice(&text)),
            Step::Cut { key, len } => self.edit(key, |bytes| bytes.truncate(len)),
            Step::SetInt { key, number } => self.set_int(key, number),
            Step::Remove { key } => self.remove(key),
            Step::RemoveMany { from, many } => (from..from + many).for_each(|key| self.remove(key)),
            Step::Deadline { key, deadline_ms } => self.set_deadline(key, deadline_ms),
            Step::DeadlineMany { from, many, start_ms } => (from..from + many)
                .for_each(|key| self.set_deadline(key, Some(start_ms.saturating_add(i64::from(key) * 7 % 100)))),
            Step::Access { key, access } => {
                if let Some(known) = self.model.get_mut(&key_of(key)) {
                    known.access = access & 0xff_ffff;
                    let slot = self.database.find(&key_of(key)).expect("the key exists");
                    self.database.set_access(slot, access);
                }
            }
            Step::Expire { now_ms } => self.expire(now_ms),
            Step::Lend => {
                let database = self.database.fork();
                self.database = database.clone();
                let (model, indexes_hash_slots) = (self.model.clone(), self.indexes_hash_slots);
                self.bases.push(Pair { database, model, indexes_hash_slots, bases: Vec::new() });
            }
            Step::Clear => {
                self.model.clear();
                let before = self.database.memory();
                assert_eq!(self.database.clear().memory(), before);
                assert_eq!(self.database.memory(), 0);
            }
        }
    }

    fn agree(&self) {
        self.database.check();
        assert_eq!(self.database.len(), self.model.len());
        assert_eq!(self.database.is_empty(), self.model.is_empty());
        let deadlines: BTreeSet<i64> = self.model.values().filter_map(|known| known.deadline_ms).collect();
        assert_eq!(self.database.next_deadline(), deadlines.first().copied());
        for (key, known) in &self.model {
            let slot = self.find(key).expect("a known key is found");
            let stored = Known {
                contents: contents(self.database.view(slot)),
                deadline_ms: self.database.deadline(slot),
                access: self.database.access(slot),
            };
            assert_eq!(&stored, known);
            assert!(self.database.memory_of(slot) >= key.len());
        }
        let stored: usize = self.database.handles().map(|slot| self.database.memory_of(slot)).sum();
        assert!(stored <= self.database.memory());
        assert!(self.database.handles_prefetched().eq(self.database.handles()));
        for slot in self.database.handles() {
            let view = self.database.view(slot);
            assert_eq!(self.database.type_name(slot), view.type_name());
            let length = if let View::Text(text) = view { Some(text.len()) } else { None };
            assert!(self.database.text_len(slot).is_none_or(|stored| Some(stored) == length));
        }
        self.agree_on_hash_slots();
        self.bases.iter().for_each(Pair::agree);
    }

    fn agree_on_hash_slots(&self) {
        let mut model = BTreeMap::<u16, BTreeSet<&[u8]>>::new();
        for key in self.model.keys().filter(|_| self.indexes_hash_slots) {
            model.entry(hash_slot(key)).or_default().insert(key);
        }
        for slot in 0..16_384 {
            let keys = self.database.hash_slot_keys(slot).map(|found| self.database.key(found));
            let (known, none) = (model.get(&slot), BTreeSet::new());
            assert_eq!(self.database.hash_slot_len(slot), known.map_or(0, BTreeSet::len));
            assert_eq!(&keys.collect::<BTreeSet<_>>(), known.unwrap_or(&none));
        }
    }
}

fn contents(view: View<'_>) -> Contents {
    if let View::Text(text) = view {
        Contents::Text { bytes: text.to_cow().into_owned(), encoding: text.encoding() }
    } else if let View::Zset(zset) = view {
        Contents::Members(zset.len())
    } else if let View::Hash(hash) = view {
        hash.check();
        Contents::Fields(hash.len())
    } else {
        panic!("the model stores no {}", view.type_name())
    }
}

/// A hash of this number of fields: a few are stored in the record, many are not.
fn hash(fields: usize) -> Hash {
    let mut hash = Hash::new();
    grow(&mut hash, fields);
    hash
}

fn grow(hash: &mut Hash, fields: usize) {
    for field in hash.len()..hash.len() + fields {
        hash.insert(format!("field:{field}").as_bytes(), (field * 1000).to_string().as_bytes(), &Default::default());
    }
}

/// A whole walk through all keys, or those of one slot of the cluster; `meanwhile` runs between two calls.
fn walk(
    pair: &mut Pair,
    of_slot: Option<u16>,
    count: usize,
    mut meanwhile: impl FnMut(&mut Pair),
) -> BTreeMap<Vec<u8>, usize> {
    let (mut cursor, mut seen) = (0, BTreeMap::new());
    loop {
        let database = &pair.database;
        let visit = |slot| *seen.entry(database.key(slot).to_vec()).or_default() += 1;
        cursor = match of_slot {
            Some(hash_slot) => database.scan_hash_slot(hash_slot, cursor, count, visit),
            None => database.scan(cursor, count, visit),
        };
        if cursor == 0 {
            return seen;
        }
        meanwhile(pair);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 192 }))]

    #[test]
    fn a_database_behaves_as_a_map_with_deadlines(seed: u64, steps in prop::collection::vec(step(), 1..60)) {
        let mut pair = Pair::new(seed);
        for step in steps {
            pair.take(step);
            pair.database.check();
        }
        pair.agree();
        let seen = walk(&mut pair, None, 5, |_| ());
        prop_assert!(seen.values().all(|&times| times == 1));
        prop_assert_eq!(seen.len(), pair.model.len());
        let in_slot = hash_slot(b"3");
        let seen = walk(&mut pair, Some(in_slot), 5, |_| ());
        prop_assert!(seen.iter().all(|(key, &times)| hash_slot(key) == in_slot && times == 1));
        prop_assert_eq!(seen.len(), pair.database.hash_slot_len(in_slot));
    }

    #[test]
    fn a_scan_returns_every_key_that_stays(
        seed: u64,
        stay in 1u16..300,
        count in 1usize..30,
        is_of_slot: bool,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut pair = if is_of_slot { Pair::new(seed | 1) } else { Pair::new(seed) };
        let of_slot = is_of_slot.then(|| hash_slot(b"3"));
        let name = |number: u16| format!("stays:{number}{{3}}").into_bytes();
        for number in 0..stay {
            pair.database.insert(&name(number), New::Text(TextView::Int(i64::from(number))));
        }
        let mut steps = steps.into_iter().filter(|step| !matches!(step, Step::Clear));
        let seen = walk(&mut pair, of_slot, count, |pair| {
            if let Some(step) = steps.next() {
                pair.take(step);
            }
            for number in 0..stay {
                let slot = pair.find(&name(number)).expect("the key exists");
                pair.database.edit_text(slot, |bytes| bytes.push(b'x'));
            }
        });
        prop_assert!((0..stay).all(|number| seen.contains_key(&name(number))));
    }
}

#[test]
fn the_same_seed_and_steps_give_the_same_scan() {
    let walked = |seed| {
        let mut database = Database::new(seed);
        for key in 0..5_000u32 {
            database.insert(&key.to_be_bytes(), New::Text(TextView::Int(1)));
        }
        let mut order = Vec::new();
        let cursor = database.scan(0, 100, |slot| order.push(database.key(slot).to_vec()));
        (cursor, order)
    };
    assert_eq!(walked(7), walked(7));
    assert_ne!(walked(7), walked(8));
}

#[test]
fn a_clone_of_a_fork_behaves_as_its_origin_and_does_not_change_it() {
    let mut database = Database::<2>::with_segments(13);
    for key in 0..3_000u32 {
        let value = if key % 3 == 0 { Value::Zset(Zset::new()) } else { Value::Hash(hash(key as usize % 40)) };
        let slot = database.insert(&key.to_be_bytes(), New::Value(value));
        database.set_deadline(slot, (key % 2 == 0).then(|| i64::from(key) << 30));
    }
    let base = database.fork();
    let mut clone = base.clone();
    let order = |database: &Database<2>| -> Vec<Vec<u8>> {
        database.handles().map(|slot| database.key(slot).to_vec()).collect()
    };
    let changes = |database: &mut Database<2>| {
        for key in (0..3_000u32).step_by(7) {
            let slot = database.find(&key.to_be_bytes()).expect("the key exists");
            let slot = database.set_deadline(slot, Some(1));
            database.set_access(slot, 77);
        }
    };
    let held = (base.memory(), base.slack(), base.volatile_len());
    changes(&mut clone);
    changes(&mut database);
    assert!(order(&clone) == order(&database));
    assert_eq!((clone.volatile_len(), clone.next_deadline()), (database.volatile_len(), database.next_deadline()));
    assert_eq!((base.memory(), base.slack(), base.volatile_len()), held);
    base.check();
    clone.check();
}

#[test]
fn editing_a_long_text_again_and_again_never_copies_it() {
    let mut database = Database::new(1);
    let slot = database.insert(b"log", New::Value(Value::Text(Text::Bytes(vec![b'a'; 10_000_000].into()))));
    let (mut slot, _) = database.edit_text(slot, |bytes| bytes.reserve(1_000_000));
    let mut place = None;
    for _ in 0..10_000 {
        let at;
        (slot, at) = database.edit_text(slot, |bytes| {
            bytes.push(b'b');
            bytes.as_ptr() as usize
        });
        assert_eq!(*place.get_or_insert(at), at);
    }
    database.check();
    assert!(matches!(database.view(slot), View::Text(TextView::Raw(bytes)) if bytes.len() == 10_010_000));
}

#[test]
fn a_jump_of_years_pops_every_key_in_the_order_of_the_deadlines() {
    let mut database = Database::new(3);
    let year_ms = 31_557_600_000i64;
    for number in 0..3_000i64 {
        let slot = database.insert(number.to_string().as_bytes(), New::Text(TextView::Int(number)));
        database.set_deadline(slot, Some(number * 7919 % 3_000 * year_ms));
    }
    assert_eq!(database.average_ttl_ms(0), 2_999 * year_ms / 2);
    for number in 0..3_000 {
        assert_eq!(database.next_deadline(), Some(number * year_ms));
        let (deadline_ms, slot) = database.first_due().expect("a key with a deadline is left");
        assert_eq!((deadline_ms, database.deadline(slot)), (number * year_ms, Some(deadline_ms)));
        database.delete(slot);
    }
    database.check();
    assert_eq!((database.len(), database.volatile_len()), (0, 0));
}

#[test]
fn memory_is_given_back() {
    let mut database = Database::new(5);
    let text = [b'v'; 256];
    for round in 0..3 {
        for key in 0..20_000u32 {
            let slot = database.insert(&key.to_be_bytes(), New::Text(TextView::Bytes(&text[..usize::from(key as u8)])));
            database.set_deadline(slot, Some(i64::from(key) + round));
        }
        database.check();
        assert!(database.memory() > 20_000 * 100);
        (0..20_000u32)
            .for_each(|key| drop(database.delete(database.find(&key.to_be_bytes()).expect("the key exists"))));
        database.check();
        assert_eq!(database.memory(), 0);
        assert!(database.slack() < 20_000, "{} bytes", database.slack());
    }
}

#[test]
fn every_removed_key_frees_memory() {
    let mut database = Database::new(11);
    for key in 0..50_000u32 {
        database.insert(&key.to_be_bytes(), New::Text(TextView::Bytes(&[b'v'; 100])));
    }
    let held = database.memory() + database.slack();
    for key in (0..50_000u32).filter(|key| key % 10 != 0) {
        let before = database.memory();
        database.delete(database.find(&key.to_be_bytes()).expect("the key exists"));
        assert!(before - database.memory() >= 100);
    }
    assert!(database.memory() < 50_000 / 10 * 180, "{} bytes", database.memory());
    assert!(database.memory() + database.slack() < held);
    database.check();
}

#[test]
fn prefetching_changes_nothing_whatever_the_keys() {
    let mut database = Database::new(9);
    let absent = [&b"absent"[..], b"", &[0xff; 600]];
    database.prefetch(absent);
    for key in 0..30_000u32 {
        database.insert(&key.to_be_bytes(), New::Text(TextView::Int(1)));
    }
    let present: Vec<[u8; 4]> = (0..100u32).map(u32::to_be_bytes).collect();
    database.prefetch(present.iter().map(|key| &key[..]).chain(absent));
    database.check();
    assert!(present.iter().all(|key| database.find(key).is_some()));
    assert!(absent.iter().all(|key| database.find(key).is_none()));
}
