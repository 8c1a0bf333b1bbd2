//! Compares the sorted set with a naive one, over random operations of typical kinds.

use dunlin::value::zset::{Entry, LexBound, LexRange, Limits, ScoreRange, Zset};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};

/// The model: the simplest sorted set.
#[derive(Default)]
struct Model {
    scores: BTreeMap<Vec<u8>, f64>,
}

impl Model {
    fn ordered(&self) -> Vec<(Vec<u8>, f64)> {
        let mut entries: Vec<_> = self.scores.iter().map(|(member, score)| (member.clone(), *score)).collect();
        entries.sort_by(|a, b| a.1.partial_cmp(&b.1).expect("no NaN").then_with(|| a.0.cmp(&b.0)));
        entries
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, f64),
    /// A score above all others, as a clock gives.
    Append(Vec<u8>),
    /// Adds to the score of the entry at a share of the set.
    Increase(f64, f64),
    Remove(Vec<u8>),
    RemoveAt(f64),
    RemoveRange(f64, f64),
    TrimTo(usize),
    Score(Vec<u8>),
    Range(f64, f64),
    ByScore(Bound<f64>, Bound<f64>),
    ByLex(Vec<u8>, Vec<u8>, u8),
    EqualScores,
    Scan(usize),
    Copy,
}

fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0..200_u32).prop_map(|i| format!("user-{i}").into_bytes()),
        4 => (0..60_u32).prop_map(|i| format!("{:09}", i * 7919).into_bytes()),
        2 => prop::collection::vec(any::<u8>(), 0..4),
        1 => (0..4_usize, 60..70_usize).prop_map(|(i, len)| vec![i as u8; len]),
        1 => (0..3_usize, 250..260_usize).prop_map(|(i, len)| vec![i as u8; len]),
    ]
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => (-20..20_i32).prop_map(f64::from),
        4 => (0..1_000_000_i32).prop_map(f64::from),
        3 => (0..5000_i64).prop_map(|i| (1_783_012_441_000_i64 + i) as f64),
        3 => -1.0..1.0_f64,
        2 => any::<f64>().prop_filter("never NaN", |score| !score.is_nan()),
        1 => prop::sample::select(vec![
            0.0,
            -0.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MIN_POSITIVE,
            5e-324,
            9_007_199_254_740_992.0,
            -9_007_199_254_740_993.0,
        ]),
    ]
}

fn bound() -> impl Strategy<Value = Bound<f64>> {
    prop_oneof![score().prop_map(Bound::Included), score().prop_map(Bound::Excluded), Just(Bound::Unbounded)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (member(), score()).prop_map(|(member, score)| Step::Insert(member, score)),
        8 => member().prop_map(Step::Append),
        10 => (0.0..1.0, -3.0..3.0).prop_map(|(at, by): (f64, f64)| Step::Increase(at, by.round())),
        4 => (0.0..1.0, score()).prop_map(|(at, by)| Step::Increase(at, by)),
        6 => member().prop_map(Step::Remove),
        6 => (0.0..1.0).prop_map(Step::RemoveAt),
        2 => (0.0..1.0, 0.0..0.3).prop_map(|(at, share)| Step::RemoveRange(at, share)),
        1 => (0..60_usize).prop_map(Step::TrimTo),
        3 => member().prop_map(Step::Score),
        4 => (0.0..1.0, 0.0..1.0).prop_map(|(a, b)| Step::Range(a, b)),
        4 => (bound(), bound()).prop_map(|(min, max)| Step::ByScore(min, max)),
        3 => (member(), member(), any::<u8>()).prop_map(|(min, max, kind)| Step::ByLex(min, max, kind)),
        1 => Just(Step::EqualScores),
        6 => (0..20_usize).prop_map(Step::Scan),
        1 => Just(Step::Copy),
    ]
}

fn share(at: f64, of: usize) -> usize {
    (at * of as f64) as usize
}

/// A sorted set, its model, and a scan that continues while they change.
struct Pair<const N: usize> {
    set: Zset<N>,
    model: Model,
    limits: Limits,
    cursor: u64,
    /// Members there since the scan began, and not yet seen.
    awaited: BTreeSet<Vec<u8>>,
}

impl<const N: usize> Pair<N> {
    fn new(limits: Limits) -> Self {
        Pair { set: Zset::with_nodes(), model: Model::default(), limits, cursor: 0, awaited: BTreeSet::new() }
    }

    fn insert(&mut self, member: &[u8], score: f64) {
        let before = self.set.insert(member, score, &self.limits);
        let expected = self.model.scores.insert(member.to_vec(), score);
        assert_eq!(before, expected, "the score before");
    }

    fn remove(&mut self, member: &[u8]) {
        assert_eq!(self.set.remove(member), self.model.scores.remove(member), "the score removed");
        self.awaited.remove(member);
    }

    fn remove_range(&mut self, positions: Range<usize>) {
        let ordered = self.model.ordered();
        let gone: Vec<_> = ordered.into_iter().skip(positions.start).take(positions.len()).collect();
        assert_eq!(self.set.remove_range(positions), gone.len());
        for (member, _) in gone {
            self.model.scores.remove(&member);
            self.awaited.remove(&member);
        }
    }

    fn increase(&mut self, at: f64, by: f64) {
        let Some(Entry { member, score }) = self.set.at(share(at, self.set.len())) else { return };
        let (member, sum) = (member.to_vec(), score + by);
        let sum = if sum.is_nan() { score } else { sum };
        let result = self.set.update(&member, &self.limits, |before| {
            assert_eq!(before, Some(score));
            Some(sum)
        });
        assert_eq!(result, (Some(score), Some(sum)));
        self.model.scores.insert(member, sum);
    }

    fn scan(&mut self, count: usize) {
        if self.cursor == 0 {
            self.awaited = self.model.scores.keys().cloned().collect();
        }
        let mut seen = vec![];
        self.cursor = self.set.scan(self.cursor, count, |entry| seen.push((entry.member.to_vec(), entry.score)));
        for (member, score) in seen {
            assert_eq!(self.model.scores.get(&member), Some(&score), "a scan shows what is there");
            self.awaited.remove(&member);
        }
        assert!(self.cursor != 0 || self.awaited.is_empty(), "a full scan missed {:?}", self.awaited);
    }

    fn by_score(&self, min: Bound<f64>, max: Bound<f64>) {
        let positions = self.set.by_score(&ScoreRange { min, max });
        let above = |score: f64| match min {
            Bound::Included(min) => score >= min,
            Bound::Excluded(min) => score > min,
            Bound::Unbounded => true,
        };
        let below = |score: f64| match max {
            Bound::Included(max) => score <= max,
            Bound::Excluded(max) => score < max,
            Bound::Unbounded => true,
        };
        let expected: Vec<_> =
            self.model.ordered().into_iter().filter(|entry| above(entry.1) && below(entry.1)).collect();
        assert_eq!(self.entries(positions), expected, "{min:?} to {max:?}");
    }

    fn by_lex(&self, min: &[u8], max: &[u8], kind: u8) {
        let bound = |member, kind| match kind % 8 {
            0 => LexBound::Lowest,
            1 => LexBound::Highest,
            2..5 => LexBound::Included(member),
            _ => LexBound::Excluded(member),
        };
        let range = LexRange { min: bound(min, kind), max: bound(max, kind / 8) };
        let positions = self.set.by_lex(&range);
        assert!(positions.end <= self.set.len(), "positions lie within the set");
        let ordered = self.model.ordered();
        if ordered.iter().any(|entry| entry.1 != ordered[0].1) {
            return;
        }
        let above = |member: &[u8]| match range.min {
            LexBound::Lowest => true,
            LexBound::Highest => false,
            LexBound::Included(min) => member >= min,
            LexBound::Excluded(min) => member > min,
        };
        let below = |member: &[u8]| match range.max {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Included(max) => member <= max,
            LexBound::Excluded(max) => member < max,
        };
        let expected: Vec<_> = ordered.into_iter().filter(|entry| above(&entry.0) && below(&entry.0)).collect();
        assert_eq!(self.entries(positions), expected, "{range:?}");
    }

    fn entries(&self, positions: Range<usize>) -> Vec<(Vec<u8>, f64)> {
        self.set.range(positions).map(|entry| (entry.member.to_vec(), entry.score)).collect()
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Insert(member, score) => self.insert(member, *score),
            Step::Append(member) => {
                let highest = self.set.iter().next_back().map_or(0.0, |entry| entry.score);
                self.insert(member, highest + 1.0);
            }
            Step::Increase(at, by) => self.increase(*at, *by),
            Step::Remove(member) => self.remove(member),
            Step::RemoveAt(at) => {
                let member = self.set.at(share(*at, self.set.len())).map(|entry| entry.member.to_vec());
                member.iter().for_each(|member| self.remove(member));
            }
            Step::RemoveRange(at, part) => {
                let start = share(*at, self.set.len());
                self.remove_range(start..start + share(*part, self.set.len()));
            }
            Step::TrimTo(most) => self.remove_range(0..self.set.len().saturating_sub(*most)),
            Step::Score(member) => assert_eq!(self.set.score(member), self.model.scores.get(member).copied()),
            Step::Range(a, b) => {
                let positions = share(*a, self.set.len() + 2)..share(*b, self.set.len() + 2);
                let ordered = self.model.ordered();
                let expected: Vec<_> = ordered.into_iter().skip(positions.start).take(positions.len()).collect();
                assert_eq!(self.set.range(positions.clone()).len(), expected.len());
                assert_eq!(self.entries(positions), expected);
            }
            Step::ByScore(min, max) => self.by_score(*min, *max),
            Step::ByLex(min, max, kind) => self.by_lex(min, max, *kind),
            Step::EqualScores => {
                let members: Vec<_> = self.model.scores.keys().cloned().collect();
                members.iter().for_each(|member| self.insert(member, 7.5));
            }
            Step::Scan(count) => self.scan(*count),
            Step::Copy => self.set = self.set.clone(),
        }
    }

    /// Checks the set's own invariants, and that it equals the model in every query.
    fn compare(&self) {
        self.set.check();
        let ordered = self.model.ordered();
        assert_eq!(self.entries(0..self.set.len()), ordered);
        let backward: Vec<_> = self.set.iter().rev().map(|entry| entry.member.to_vec()).collect();
        assert!(backward.iter().eq(ordered.iter().rev().map(|entry| &entry.0)), "backward");
        for (position, (member, score)) in ordered.iter().enumerate() {
            assert_eq!(self.set.rank(member), Some((position, *score)));
            assert_eq!(self.set.score(member), Some(*score));
        }
    }
}

fn run<const N: usize>(limits: Limits, steps: &[Step]) {
    let mut pair = Pair::<N>::new(limits);
    for step in steps {
        pair.take(step);
        pair.set.check();
    }
    pair.compare();
    let rebuilt = Zset::<N>::with_nodes_from(pair.model.ordered().into_iter().rev(), &limits);
    rebuilt.check();
    assert!(rebuilt.iter().eq(pair.set.iter()), "a set built at once equals one that grew");
    while pair.cursor != 0 {
        pair.scan(7);
    }
}

const NEVER_PACKED: Limits = Limits { entries: 0, bytes: 0, seed: 0 };

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn tiny_nodes_hold_what_the_model_holds(steps in prop::collection::vec(step(), 0..300)) {
        run::<4>(NEVER_PACKED, &steps);
    }

    #[test]
    fn small_nodes_hold_what_the_model_holds(steps in prop::collection::vec(step(), 0..300)) {
        run::<8>(Limits { entries: 12, bytes: 64, seed: 0 }, &steps);
    }

    #[test]
    fn usual_nodes_hold_what_the_model_holds(steps in prop::collection::vec(step(), 0..400)) {
        run::<60>(NEVER_PACKED, &steps);
    }

    #[test]
    fn a_packed_set_holds_what_the_model_holds(steps in prop::collection::vec(step(), 0..300)) {
        run::<60>(Limits::default(), &steps);
    }

    #[test]
    fn a_packed_set_of_long_members_holds_what_the_model_holds(steps in prop::collection::vec(step(), 0..200)) {
        run::<60>(Limits { entries: 1000, bytes: 1000, seed: 0 }, &steps);
    }
}

/// Numbers that look random, from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn bytes_an_entry(set: &Zset) -> f64 {
    set.memory() as f64 / set.len() as f64
}

/// The bytes an entry of a set with the same entries that was built at once.
fn fresh_bytes_an_entry(set: &Zset) -> f64 {
    let entries: Vec<_> = set.iter().map(|entry| (entry.member.to_vec(), entry.score)).collect();
    let mut fresh = Zset::new();
    for (member, score) in entries {
        fresh.insert(&member, score, &NEVER_PACKED);
    }
    bytes_an_entry(&fresh)
}

#[test]
fn a_set_stays_lean_while_ten_times_its_entries_are_added_and_removed() {
    const ENTRIES: u64 = 20_000;
    let mut dice = Dice(1);
    let mut set = Zset::new();
    let mut members: Vec<String> = (0..ENTRIES).map(|i| format!("user-{i}")).collect();
    for member in &members {
        set.insert(member.as_bytes(), dice.below(1_000_000) as f64, &NEVER_PACKED);
    }
    for round in 0..10 {
        for i in 0..ENTRIES {
            let member = &mut members[dice.below(ENTRIES) as usize];
            assert!(set.remove(member.as_bytes()).is_some());
            *member = format!("{}-{round}-{i}", ["user", "u", "somebody"][dice.below(3) as usize]);
            set.insert(member.as_bytes(), dice.below(1_000_000) as f64, &NEVER_PACKED);
        }
        set.check();
    }
    let (churned, fresh) = (bytes_an_entry(&set), fresh_bytes_an_entry(&set));
    assert!(churned <= 1.25 * fresh, "{churned:.1} bytes an entry, {fresh:.1} when fresh");
}

#[test]
fn a_long_lived_queue_stays_lean() {
    const ENTRIES: u64 = 5_000;
    let mut set = Zset::new();
    for i in 0..10 * ENTRIES {
        set.insert(format!("job-{i}").as_bytes(), (1_783_012_441_000 + i) as f64, &NEVER_PACKED);
        set.remove_range(0..set.len().saturating_sub(ENTRIES as usize));
    }
    set.check();
    let (churned, fresh) = (bytes_an_entry(&set), fresh_bytes_an_entry(&set));
    assert!(churned <= 1.25 * fresh, "{churned:.1} bytes an entry, {fresh:.1} when fresh");
}

#[test]
fn a_set_that_shrinks_gives_its_memory_back() {
    const ENTRIES: u64 = 50_000;
    let mut dice = Dice(3);
    let entries = (0..ENTRIES).map(|i| (format!("user-{i}"), dice.below(1_000_000) as f64));
    let mut set = Zset::from_entries(entries, &NEVER_PACKED);
    let full = set.memory();
    for i in 0..ENTRIES {
        if i % 20 != 0 {
            set.remove(format!("user-{i}").as_bytes());
        }
    }
    set.check();
    assert_eq!(set.len() as u64, ENTRIES / 20);
    assert!(set.memory() < full / 8, "{} bytes of {full} for a twentieth of the entries", set.memory());
}

#[test]
fn a_scan_misses_no_lasting_entry_while_thousands_are_added_and_removed() {
    const STAYING: u32 = 300;
    for seed in 0..40 {
        let mut dice = Dice(seed);
        let mut set = Zset::new();
        let mut awaited: BTreeSet<Vec<u8>> = (0..STAYING).map(|i| format!("stays-{i}").into_bytes()).collect();
        for member in &awaited {
            set.insert(member, dice.below(1000) as f64, &NEVER_PACKED);
        }
        let mut cursor = 0;
        loop {
            let visitors = dice.below(6000);
            for i in 0..6000 {
                let member = format!("visits-{i}");
                if i < visitors {
                    set.insert(member.as_bytes(), i as f64, &NEVER_PACKED);
                } else {
                    set.remove(member.as_bytes());
                }
            }
            cursor = set.scan(cursor, dice.below(400) as usize, |entry| {
                awaited.remove(entry.member);
            });
            if cursor == 0 {
                break;
            }
        }
        assert!(awaited.is_empty(), "seed {seed} missed {} members", awaited.len());
    }
}
