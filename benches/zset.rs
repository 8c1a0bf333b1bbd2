//! Sorted sets compared with the `skiplist` crate and the standard library's tree, each with a hash map from member to
//! score.
//!
//! `cargo bench --bench zset` prints bytes an entry, then times an operation on a million members `user-<n>` with
//! scores up to a million. The members to look up are chosen beforehand and stored in a row, as in a pipelined batch.

use criterion::{Criterion, criterion_group, criterion_main};
use dunlin::value::zset::{Limits, Zset};
use fastrand::Rng;
use skiplist::OrderedSkipList;
use skiplist::level_generator::geometric::Geometric;
use std::collections::{BTreeSet, HashMap};
use std::hint::black_box;

const MEMBERS: u64 = 1_000_000;
const SCORES: u64 = 1_000_000;
const DRAWN: usize = 1 << 16;
const NEVER_PACKED: Limits = Limits { entries: 0, bytes: 0, seed: 0 };

fn member(number: u64) -> String {
    format!("user-{number}")
}

/// Members with scores, in random order.
fn entries() -> Vec<(String, u64)> {
    let mut rng = Rng::with_seed(1);
    let mut entries: Vec<_> = (0..MEMBERS).map(|number| (member(number), rng.u64(..SCORES))).collect();
    rng.shuffle(&mut entries);
    entries
}

/// Words drawn beforehand, stored back to back, and returned in turn for ever.
struct Words {
    text: String,
    ends: Vec<usize>,
    next: usize,
}

impl Words {
    fn new(draw: impl Fn(&mut Rng) -> String) -> Words {
        let mut rng = Rng::with_seed(2);
        let mut words = Words { text: String::new(), ends: vec![0], next: 0 };
        for _ in 0..DRAWN {
            words.text += &draw(&mut rng);
            words.ends.push(words.text.len());
        }
        words
    }

    fn next(&mut self) -> &str {
        self.next = (self.next + 1) % DRAWN;
        &self.text[self.ends[self.next]..self.ends[self.next + 1]]
    }
}

fn drawn_members() -> Words {
    Words::new(|rng| member(rng.u64(..MEMBERS)))
}

/// The operations that all three have.
trait Sorted {
    const NAME: &'static str;
    fn empty() -> Self;
    fn insert(&mut self, member: &str, score: u64);
    fn increase(&mut self, member: &str, by: u64);
    fn remove(&mut self, member: &str);
    fn rank(&self, member: &str) -> Option<usize>;
    /// The lengths of `count` members from the first with `score` on, added up.
    fn range(&self, score: u64, count: usize) -> usize;
}

impl Sorted for Zset {
    const NAME: &'static str = "dunlin";

    fn empty() -> Zset {
        Zset::new()
    }

    fn insert(&mut self, member: &str, score: u64) {
        Zset::insert(self, member.as_bytes(), score as f64, &NEVER_PACKED);
    }

    fn increase(&mut self, member: &str, by: u64) {
        self.update(member.as_bytes(), &NEVER_PACKED, |score| Some(score.unwrap_or(0.0) + by as f64));
    }

    fn remove(&mut self, member: &str) {
        Zset::remove(self, member.as_bytes());
    }

    fn rank(&self, member: &str) -> Option<usize> {
        Zset::rank(self, member.as_bytes()).map(|(position, _)| position)
    }

    fn range(&self, score: u64, count: usize) -> usize {
        let min = std::ops::Bound::Included(score as f64);
        let positions = self.by_score(&dunlin::value::zset::ScoreRange { min, max: std::ops::Bound::Unbounded });
        Zset::range(self, positions).take(count).map(|entry| entry.member.len()).sum()
    }
}

/// An ordered list of (score, member) beside a map from member to score.
struct Mapped<L> {
    scores: HashMap<Box<str>, u64>,
    order: L,
}

trait Order {
    const NAME: &'static str;
    fn empty() -> Self;
    fn insert(&mut self, entry: (u64, Box<str>));
    fn remove(&mut self, entry: &(u64, Box<str>));
    fn rank(&self, entry: &(u64, Box<str>)) -> Option<usize>;
    fn from(&self, entry: &(u64, Box<str>), count: usize) -> usize;
}

impl<L: Order> Sorted for Mapped<L> {
    const NAME: &'static str = L::NAME;

    fn empty() -> Self {
        Mapped { scores: HashMap::new(), order: L::empty() }
    }

    fn insert(&mut self, member: &str, score: u64) {
        if let Some(before) = self.scores.insert(member.into(), score) {
            self.order.remove(&(before, member.into()));
        }
        self.order.insert((score, member.into()));
    }

    fn increase(&mut self, member: &str, by: u64) {
        if let Some(score) = self.scores.get_mut(member) {
            self.order.remove(&(*score, member.into()));
            *score += by;
            self.order.insert((*score, member.into()));
        }
    }

    fn remove(&mut self, member: &str) {
        if let Some(score) = self.scores.remove(member) {
            self.order.remove(&(score, member.into()));
        }
    }

    fn rank(&self, member: &str) -> Option<usize> {
        self.order.rank(&(*self.scores.get(member)?, member.into()))
    }

    fn range(&self, score: u64, count: usize) -> usize {
        self.order.from(&(score, "".into()), count)
    }
}

/// With levels for a million.
type SkipList = OrderedSkipList<(u64, Box<str>), 20>;

impl Order for SkipList {
    const NAME: &'static str = "skiplist";

    fn empty() -> Self {
        OrderedSkipList::with_level_generator(Geometric::new(20, 0.5).expect("20 levels are allowed"))
    }

    fn insert(&mut self, entry: (u64, Box<str>)) {
        OrderedSkipList::insert(self, entry);
    }

    fn remove(&mut self, entry: &(u64, Box<str>)) {
        self.take_fast(entry);
    }

    fn rank(&self, entry: &(u64, Box<str>)) -> Option<usize> {
        OrderedSkipList::rank(self, entry)
    }

    fn from(&self, entry: &(u64, Box<str>), count: usize) -> usize {
        OrderedSkipList::range(self, entry..).take(count).map(|entry| entry.1.len()).sum()
    }
}

impl Order for BTreeSet<(u64, Box<str>)> {
    const NAME: &'static str = "std tree";

    fn empty() -> Self {
        BTreeSet::new()
    }

    fn insert(&mut self, entry: (u64, Box<str>)) {
        BTreeSet::insert(self, entry);
    }

    fn remove(&mut self, entry: &(u64, Box<str>)) {
        BTreeSet::remove(self, entry);
    }

    /// Always `None`: the tree does not count its elements, so a rank would need a walk.
    fn rank(&self, _: &(u64, Box<str>)) -> Option<usize> {
        None
    }

    fn from(&self, entry: &(u64, Box<str>), count: usize) -> usize {
        BTreeSet::range(self, entry..).take(count).map(|entry| entry.1.len()).sum()
    }
}

fn time<S: Sorted>(criterion: &mut Criterion) {
    let mut set = S::empty();
    for (member, score) in entries() {
        set.insert(&member, score);
    }
    let mut members = drawn_members();
    let mut run = |name: &str, step: &mut dyn FnMut(&mut S, &str)| {
        criterion.bench_function(&format!("{name}/{}", S::NAME), |bencher| {
            bencher.iter(|| step(&mut set, members.next()));
        });
    };
    if set_can_rank::<S>() {
        run("rank", &mut |set, member| {
            black_box(set.rank(member));
        });
    }
    let mut rng = Rng::with_seed(4);
    run("range of 30 by score", &mut |set, _| {
        black_box(set.range(rng.u64(..SCORES), 30));
    });
    run("update by a little", &mut |set, member| set.increase(member, 3));
    run("update anywhere", &mut |set, member| set.insert(member, rng.u64(..SCORES)));
    run("remove and insert", &mut |set, member| {
        set.remove(member);
        set.insert(member, rng.u64(..SCORES));
    });
}

fn set_can_rank<S: Sorted>() -> bool {
    let mut set = S::empty();
    set.insert("a", 1);
    set.rank("a").is_some()
}

/// Times a million inserts of new members, in random order of score.
fn time_growth<S: Sorted>(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("grow to a million");
    group.sample_size(10).throughput(criterion::Throughput::Elements(MEMBERS));
    let entries = entries();
    group.bench_function(S::NAME, |bencher| {
        bencher.iter_with_large_drop(|| {
            let mut set = S::empty();
            entries.iter().for_each(|(member, score)| set.insert(member, *score));
            set
        });
    });
}

/// Times what a page view does to a list of the last thirty: add, trim, read.
fn time_recency(criterion: &mut Criterion) {
    let limits = Limits::default();
    let mut pages = Words::new(|rng| rng.u32(100_000_000..1_000_000_000).to_string());
    let mut set = Zset::new();
    let mut now = 1_569_230_000.0;
    criterion.bench_function("recency step/packed", |bencher| {
        bencher.iter(|| {
            now += 7.0;
            set.insert(pages.next().as_bytes(), now, &limits);
            set.remove_range(0..set.len().saturating_sub(30));
            set.iter().rev().map(|entry| entry.member.len()).sum::<usize>()
        });
    });
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn print_memory(_: &mut Criterion) {
    let mut set = Zset::new();
    let report =
        |name: &str, set: &Zset| println!("{name}: {:.2} bytes an entry", set.memory() as f64 / set.len() as f64);
    for (member, score) in entries() {
        Sorted::insert(&mut set, &member, score);
    }
    report("a million, inserted in random order", &set);
    let mut rng = Rng::with_seed(3);
    let mut present: Vec<u64> = (0..MEMBERS).collect();
    for new in MEMBERS..11 * MEMBERS {
        let old = std::mem::replace(&mut present[rng.usize(..MEMBERS as usize)], new);
        Sorted::remove(&mut set, &member(old));
        Sorted::insert(&mut set, &member(new), rng.u64(..SCORES));
    }
    report("after ten million were replaced, by longer members", &set);
    let built = Zset::from_entries(entries().into_iter().map(|(member, score)| (member, score as f64)), &NEVER_PACKED);
    report("a million, built at once", &built);
    let mut recent = Zset::new();
    for i in 0..30 {
        recent.insert(
            (100_000_000 + i * 7919).to_string().as_bytes(),
            f64::from(1_569_230_000 + i * 60),
            &Limits::default(),
        );
    }
    report("the last thirty pages", &recent);
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_secs(2));
    targets = print_memory, time_recency, time::<Zset>, time::<Mapped<SkipList>>,
        time::<Mapped<BTreeSet<(u64, Box<str>)>>>, time_growth::<Zset>
}
criterion_main!(benches);
