//! Compares the hash with the standard library's map, over random operations of typical kinds.

use dunlin::value::hash::{Entry, Hash, Limits};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, Vec<u8>),
    /// Gives a field a deadline, or takes it away.
    Expire(Vec<u8>, Option<i64>),
    /// Time passes, and overdue fields are not removed.
    Pass(i64),
    /// Removes due fields, up to a maximum number.
    RemoveDue(usize),
    RemoveOverdue(Vec<u8>),
    /// Adds to the value of a field, if it is a number.
    Increase(Vec<u8>, i64),
    Remove(Vec<u8>),
    /// Removes the field at a share of the hash.
    RemoveAt(prop::sample::Index),
    RemoveMost,
    Get(Vec<u8>),
    MakeRoom(usize),
    Random(u64),
    Scan(usize),
    Copy,
}

fn field() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (0..300_u32).prop_map(|number| format!("field:{number}").into_bytes()),
        3 => (0..99_i64).prop_map(|number| (number * number * number * 977 - 9999).to_string().into_bytes()),
        2 => prop::collection::vec(any::<u8>(), 0..3),
        1 => (0..3_u8, 60..70_usize).prop_map(|(byte, len)| vec![byte; len]),
        1 => (0..3_u8, 250..260_usize).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (any::<i64>(), 0..64_u32).prop_map(|(number, shift)| (number >> shift).to_string().into_bytes()),
        4 => "[a-z 0-9]{0,20}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..80),
        1 => (0..3_u8, 200..400_usize).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (field(), value()).prop_map(|(field, value)| Step::Insert(field, value)),
        16 => (field(), prop::option::weighted(0.9, 0..200_i64)).prop_map(|(field, at)| Step::Expire(field, at)),
        4 => (0..10_i64).prop_map(Step::Pass),
        3 => (0..20_usize).prop_map(Step::RemoveDue),
        2 => field().prop_map(Step::RemoveOverdue),
        6 => (field(), -300..300_i64).prop_map(|(field, by)| Step::Increase(field, by)),
        6 => field().prop_map(Step::Remove),
        6 => any::<prop::sample::Index>().prop_map(Step::RemoveAt),
        1 => Just(Step::RemoveMost),
        4 => field().prop_map(Step::Get),
        1 => (0..30_usize).prop_map(Step::MakeRoom),
        2 => any::<u64>().prop_map(Step::Random),
        6 => (0..20_usize).prop_map(Step::Scan),
        1 => Just(Step::Copy),
    ]
}

/// A hash, its model, and a scan that continues while they change.
struct Pair {
    hash: Hash,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Deadlines of the model's fields.
    deadlines: BTreeMap<Vec<u8>, i64>,
    now_ms: i64,
    limits: Limits,
    cursor: u64,
    /// Fields there since the scan began, and not yet seen.
    awaited: BTreeSet<Vec<u8>>,
}

impl Pair {
    fn insert(&mut self, field: &[u8], value: &[u8]) {
        let is_new = self.hash.insert(field, value, &self.limits);
        assert_eq!(is_new, self.model.insert(field.to_vec(), value.to_vec()).is_none());
        self.deadlines.remove(field);
    }

    /// Sets a value as what counts on does: the deadline stays.
    fn update(&mut self, field: &[u8], value: &[u8]) {
        let is_new = self.hash.update(field, value, &self.limits);
        assert_eq!(is_new, self.model.insert(field.to_vec(), value.to_vec()).is_none());
    }

    fn expire(&mut self, field: &[u8], deadline_ms: Option<i64>) {
        let is_there = self.model.contains_key(field);
        assert_eq!(self.hash.set_deadline(field, deadline_ms), is_there);
        match deadline_ms {
            Some(deadline_ms) if is_there => self.deadlines.insert(field.to_vec(), deadline_ms.max(1)),
            _ => self.deadlines.remove(field),
        };
    }

    fn remove_due(&mut self, limit: usize) {
        let mut due: Vec<i64> = self.deadlines.values().copied().filter(|&at| at <= self.now_ms).collect();
        due.sort_unstable();
        assert_eq!(self.hash.remove_due(self.now_ms, limit), due.len().min(limit));
        // Of several that fall due together any may go first.
        for field in self.deadlines.clone().into_keys().filter(|field| !self.hash.contains(field)) {
            let deadline_ms = self.deadlines.remove(&field).expect("it has one");
            assert!(limit > 0 && deadline_ms <= due[due.len().min(limit) - 1], "the earliest go first");
            self.model.remove(&field);
            self.awaited.remove(&field);
        }
    }

    /// All ways to read the live fields at this moment agree.
    fn check_fields(&self, seed: u64) {
        let is_there = |field: &[u8]| self.deadlines.get(field).is_none_or(|&at| at > self.now_ms);
        let expected: BTreeMap<_, _> = self.model.clone().into_iter().filter(|(field, _)| is_there(field)).collect();
        let fields = self.hash.at(self.now_ms);
        assert_eq!(fields.len(), expected.len());
        assert_eq!(fields.iter().map(owned).collect::<BTreeMap<_, _>>(), expected);
        for field in self.model.keys() {
            assert_eq!(fields.get(field).map(|value| value.to_vec()).as_ref(), expected.get(field));
            let deadline = is_there(field).then(|| self.deadlines.get(field).copied());
            assert_eq!(fields.deadline(field), deadline);
            assert_eq!(self.hash.deadline(field), Some(self.deadlines.get(field).copied()));
        }
        assert_eq!(self.hash.first_deadline(), self.deadlines.values().min().copied());
        match fields.random(&mut fastrand::Rng::with_seed(seed)).map(owned) {
            Some((field, value)) => assert_eq!(expected.get(&field), Some(&value)),
            None => assert!(expected.is_empty()),
        }
    }

    fn remove(&mut self, field: &[u8]) {
        assert_eq!(self.hash.remove(field), self.model.remove(field).is_some());
        self.deadlines.remove(field);
        self.awaited.remove(field);
    }

    fn scan(&mut self, count: usize) {
        if self.cursor == 0 {
            self.awaited = self.model.keys().cloned().collect();
        }
        let mut seen = vec![];
        self.cursor = self.hash.scan(self.cursor, count, |entry| seen.push(owned(entry)));
        for (field, value) in seen {
            assert_eq!(self.model.get(&field), Some(&value), "a scan shows what is there");
            self.awaited.remove(&field);
        }
        assert!(self.cursor != 0 || self.awaited.is_empty(), "a full scan missed {:?}", self.awaited);
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Insert(field, value) => self.insert(field, value),
            Step::Expire(field, deadline_ms) => self.expire(field, deadline_ms.map(|at| self.now_ms + at - 20)),
            Step::Pass(ms) => self.now_ms += ms,
            Step::RemoveDue(limit) => self.remove_due(*limit),
            Step::RemoveOverdue(field) => {
                let is_overdue = self.deadlines.get(field).is_some_and(|&at| at <= self.now_ms);
                assert_eq!(self.hash.remove_overdue(field, self.now_ms), is_overdue);
                if is_overdue {
                    self.deadlines.remove(field);
                    self.model.remove(field);
                    self.awaited.remove(field);
                }
            }
            Step::Increase(field, by) => {
                let number = self.hash.get(field).map_or(Some(0), |value| value.as_int());
                if let Some(sum) = number.and_then(|number| number.checked_add(*by)) {
                    self.update(field, sum.to_string().as_bytes());
                }
            }
            Step::Remove(field) => self.remove(field),
            Step::RemoveAt(at) => {
                let keys: Vec<_> = self.model.keys().cloned().collect();
                if !keys.is_empty() {
                    self.remove(&keys[at.index(keys.len())]);
                }
            }
            Step::RemoveMost => {
                let keys: Vec<_> = self.model.keys().skip(3).cloned().collect();
                keys.iter().for_each(|field| self.remove(field));
            }
            Step::Get(field) => {
                let value = self.hash.get(field).map(|value| value.to_vec());
                assert_eq!(value.as_ref(), self.model.get(field));
                assert_eq!(self.hash.contains(field), value.is_some());
            }
            Step::MakeRoom(fields) => self.hash.make_room(*fields, &self.limits),
            Step::Random(seed) => match self.hash.random(&mut fastrand::Rng::with_seed(*seed)).map(owned) {
                Some((field, value)) => assert_eq!(self.model.get(&field), Some(&value)),
                None => assert!(self.model.is_empty()),
            },
            Step::Scan(count) => self.scan(*count),
            Step::Copy => self.hash = self.hash.clone(),
        }
        self.hash.check();
        assert_eq!(self.hash.len(), self.model.len());
        self.check_fields(self.now_ms as u64);
    }
}

fn owned(entry: Entry<'_>) -> (Vec<u8>, Vec<u8>) {
    (entry.field.to_vec(), entry.value.to_vec())
}

fn run(limits: Limits, steps: &[Step]) {
    let mut pair = Pair {
        hash: Hash::new(),
        model: BTreeMap::new(),
        deadlines: BTreeMap::new(),
        now_ms: 100,
        limits,
        cursor: 0,
        awaited: BTreeSet::new(),
    };
    for step in steps {
        pair.take(step);
        let was_table = pair.hash.encoding() == "hashtable";
        assert!(was_table || pair.hash.len() <= limits.entries, "no more than the limit is packed");
    }
    let mut all: Vec<_> = pair.hash.iter().map(owned).collect();
    all.sort();
    assert!(all.into_iter().eq(pair.model.clone()));
    while pair.cursor != 0 {
        pair.scan(7);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_table_holds_what_the_model_holds(steps in prop::collection::vec(step(), 0..300)) {
        run(Limits { entries: 0, bytes: 0, seed: 0 }, &steps);
    }

    #[test]
    fn a_hash_that_turns_into_a_table_holds_what_the_model_holds(steps in prop::collection::vec(step(), 0..200)) {
        run(Limits { entries: 12, bytes: 64, seed: 0 }, &steps);
    }

    #[test]
    fn a_packed_hash_holds_what_the_model_holds(steps in prop::collection::vec(step(), 0..200)) {
        run(Limits { entries: 512, bytes: 1000, seed: 0 }, &steps);
    }
}
