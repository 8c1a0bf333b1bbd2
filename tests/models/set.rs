//! Compares the set with the standard library's, over random operations of typical kinds.

use dunlin::value::set::{Limits, Set};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>),
    Remove(Vec<u8>),
    /// Removes the member at a share of the set.
    RemoveAt(prop::sample::Index),
    RemoveMost,
    Contains(Vec<u8>),
    MakeRoom(usize),
    Random(u64),
    Pop(usize, u64),
    Scan(usize),
    Copy,
}

fn number() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (-20..300_i64).prop_map(|number| number.to_string().into_bytes()),
        1 => (0..20_i64, 0..64_u32).prop_map(|(number, shift)| {
            (i64::MIN >> shift).wrapping_add(number).to_string().into()
        }),
    ]
}

fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        5 => number(),
        6 => (0..300_u32).prop_map(|number| format!("conn-{number}").into_bytes()),
        2 => prop::collection::vec(any::<u8>(), 0..3),
        1 => (0..3_u8, 60..70_usize).prop_map(|(byte, len)| vec![byte; len]),
        1 => (0..3_u8, 250..260_usize).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn step<S: Strategy<Value = Vec<u8>>>(member: fn() -> S) -> impl Strategy<Value = Step> {
    prop_oneof![
        24 => member().prop_map(Step::Insert),
        6 => member().prop_map(Step::Remove),
        6 => any::<prop::sample::Index>().prop_map(Step::RemoveAt),
        1 => Just(Step::RemoveMost),
        4 => member().prop_map(Step::Contains),
        1 => (0..20_usize).prop_map(Step::MakeRoom),
        2 => any::<u64>().prop_map(Step::Random),
        3 => (0..4_usize, any::<u64>()).prop_map(|(count, seed)| Step::Pop(count, seed)),
        6 => (0..20_usize).prop_map(Step::Scan),
        1 => Just(Step::Copy),
    ]
}

/// A set, its model, and a scan that continues while they change.
struct Pair {
    set: Set,
    model: BTreeSet<Vec<u8>>,
    limits: Limits,
    cursor: u64,
    /// Members there since the scan began, and not yet seen.
    awaited: BTreeSet<Vec<u8>>,
}

impl Pair {
    fn remove(&mut self, member: &[u8]) {
        assert_eq!(self.set.remove(member), self.model.remove(member));
        self.awaited.remove(member);
    }

    fn scan(&mut self, count: usize) {
        if self.cursor == 0 {
            self.awaited.clone_from(&self.model);
        }
        let mut seen = vec![];
        self.cursor = self.set.scan(self.cursor, count, |member| seen.push(member.to_vec()));
        for member in seen {
            assert!(self.model.contains(&member), "a scan shows what is there");
            self.awaited.remove(&member);
        }
        assert!(self.cursor != 0 || self.awaited.is_empty(), "a full scan missed {:?}", self.awaited);
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Insert(member) => {
                assert_eq!(self.set.insert(member, &self.limits), self.model.insert(member.clone()));
            }
            Step::Remove(member) => self.remove(member),
            Step::RemoveAt(at) => {
                let members: Vec<_> = self.model.iter().cloned().collect();
                if !members.is_empty() {
                    self.remove(&members[at.index(members.len())]);
                }
            }
            Step::RemoveMost => {
                let members: Vec<_> = self.model.iter().skip(3).cloned().collect();
                members.iter().for_each(|member| self.remove(member));
            }
            Step::Contains(member) => assert_eq!(self.set.contains(member), self.model.contains(member)),
            Step::MakeRoom(members) => self.set.make_room(*members, &self.limits),
            Step::Random(seed) => match self.set.random(&mut fastrand::Rng::with_seed(*seed)) {
                Some(member) => assert!(self.model.contains(&member.to_vec())),
                None => assert!(self.model.is_empty()),
            },
            Step::Pop(count, seed) => self.set.pop_each(*count, &mut fastrand::Rng::with_seed(*seed), |member| {
                let member = member.to_vec();
                assert!(self.model.remove(&member));
                self.awaited.remove(&member);
            }),
            Step::Scan(count) => self.scan(*count),
            Step::Copy => self.set = self.set.clone(),
        }
        self.set.check();
        assert_eq!(self.set.len(), self.model.len());
    }
}

fn run(limits: Limits, steps: &[Step]) {
    let mut pair = Pair { set: Set::new(), model: BTreeSet::new(), limits, cursor: 0, awaited: BTreeSet::new() };
    for step in steps {
        pair.take(step);
        let most = match pair.set.encoding() {
            "intset" => limits.integers,
            "listpack" => limits.entries,
            _ => usize::MAX,
        };
        assert!(pair.set.len() <= most, "no more than the limits say");
    }
    let mut all: Vec<_> = pair.set.iter().map(|member| member.to_vec()).collect();
    all.sort();
    assert!(all.into_iter().eq(pair.model.clone()));
    while pair.cursor != 0 {
        pair.scan(7);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_table_holds_what_the_model_holds(steps in prop::collection::vec(step(member), 0..300)) {
        run(Limits { integers: 0, entries: 0, bytes: 0, seed: 0 }, &steps);
    }

    #[test]
    fn a_set_that_changes_its_form_holds_what_the_model_holds(steps in prop::collection::vec(step(member), 0..200)) {
        run(Limits { integers: 8, entries: 12, bytes: 64, seed: 0 }, &steps);
    }

    #[test]
    fn a_packed_set_holds_what_the_model_holds(steps in prop::collection::vec(step(member), 0..200)) {
        run(Limits { integers: 512, entries: 1000, bytes: 1000, seed: 0 }, &steps);
    }

    #[test]
    fn a_set_of_integers_holds_what_the_model_holds(steps in prop::collection::vec(step(number), 0..200)) {
        run(Limits { integers: 200, entries: 128, bytes: 64, seed: 0 }, &steps);
    }
}
