//! Hashes, sets and lists compared with those of the standard library, where each element is a separate allocation.
//!
//! `cargo bench --bench collections` prints bytes an element, then times operations on small collections, which are
//! packed, and on large ones of a million elements. The elements to look up are chosen at random, so large collections
//! measure memory latency more than instructions.

use criterion::{Criterion, criterion_group, criterion_main};
use dunlin::value::list::{End, List};
use dunlin::value::{Hash, Set, hash, list, set};
use fastrand::Rng;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hint::black_box;

const MANY: u64 = 1_000_000;

fn event(number: u64) -> Vec<u8> {
    format!("event-{number:09}").into_bytes()
}

fn connection(number: u64) -> Vec<u8> {
    format!("conn-{}-{}", number * 37, number * 1001).into_bytes()
}

fn product(number: u64) -> Vec<u8> {
    format!("product-{:07}", number * 104_729 % 10_000_000).into_bytes()
}

fn numbered_hash(fields: u64) -> Hash {
    let mut hash = Hash::new();
    for number in 0..fields {
        hash.insert(&event(number), number.to_string().as_bytes(), &hash::Limits::default());
    }
    hash
}

fn set_of(members: impl Iterator<Item = Vec<u8>>) -> Set {
    let mut set = Set::new();
    for member in members {
        set.insert(&member, &set::Limits::default());
    }
    set
}

fn products(elements: u64) -> List {
    let mut list = List::new();
    for number in 0..elements {
        list.push(End::Tail, [product(number).as_slice()], &list::Limits::default());
    }
    list
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measures")]
fn memory(_: &mut Criterion) {
    let report = |name: &str, encoding: &str, bytes: usize, elements: usize| {
        let each = bytes as f64 / elements as f64;
        println!("{name:<34} {encoding:<10} {bytes:>10} bytes, {each:>6.1} each");
    };
    for fields in [5, 100, MANY] {
        let hash = numbered_hash(fields);
        report("hash of event-%09d and a number", hash.encoding(), hash.memory() + size_of::<Hash>(), hash.len());
    }
    let sets = [
        ("set of conn-%d-%d", set_of((0..10).map(connection))),
        ("set of integers", set_of((0..500).map(|number: u64| number.to_string().into()))),
        ("set of event-%09d", set_of((0..MANY).map(event))),
    ];
    for (name, set) in &sets {
        report(name, set.encoding(), set.memory() + size_of::<Set>(), set.len());
    }
    for elements in [20, 1000, MANY] {
        let list = products(elements);
        report("list of product-%07d", list.encoding(), list.memory() + size_of::<List>(), list.len());
    }
}

fn hashes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hash");
    for fields in [5, 100, MANY] {
        let mut hash = numbered_hash(fields);
        let mut model: HashMap<Vec<u8>, Vec<u8>> =
            (0..fields).map(|number| (event(number), number.to_string().into())).collect();
        let (wanted, mut generator) = ((0..fields).map(event).collect::<Vec<_>>(), Rng::with_seed(1));
        group.bench_function(format!("get of {fields}"), |bencher| {
            bencher.iter(|| hash.get(generator.choice(&wanted).expect("some")).map(|value| value.as_int()));
        });
        group.bench_function(format!("get of {fields}, std"), |bencher| {
            bencher.iter(|| model.get(generator.choice(&wanted).expect("some")).map(|value| value[0]));
        });
        group.bench_function(format!("set of {fields}"), |bencher| {
            bencher.iter(|| {
                let value = generator.u16(1000..).to_string();
                let field = generator.choice(&wanted).expect("some");
                hash.insert(field, black_box(value.as_bytes()), &hash::Limits::default())
            });
        });
        group.bench_function(format!("set of {fields}, std"), |bencher| {
            bencher.iter(|| {
                let value = generator.u16(1000..).to_string();
                let field = generator.choice(&wanted).expect("some");
                model.insert(field.clone(), black_box(value.into_bytes()))
            });
        });
    }
}

fn sets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("set");
    for members in [10, 128, MANY] {
        let mut set = set_of((0..members).map(event));
        let model: HashSet<Vec<u8>> = (0..members).map(event).collect();
        let (wanted, mut generator) = ((0..2 * members).map(event).collect::<Vec<_>>(), Rng::with_seed(1));
        group.bench_function(format!("contains of {members}, half of them"), |bencher| {
            bencher.iter(|| set.contains(generator.choice(&wanted).expect("some")));
        });
        group.bench_function(format!("contains of {members}, half of them, std"), |bencher| {
            bencher.iter(|| model.contains(generator.choice(&wanted).expect("some")));
        });
        group.bench_function(format!("remove and insert of {members}"), |bencher| {
            bencher.iter(|| {
                let member = &wanted[generator.usize(..wanted.len() / 2)];
                set.remove(member) && set.insert(member, &set::Limits::default())
            });
        });
        group.bench_function(format!("random of {members}"), |bencher| {
            bencher.iter(|| set.random(&mut generator).map(|member| member.len()));
        });
    }
}

fn lists(criterion: &mut Criterion) {
    let limits = list::Limits::default();
    let mut group = criterion.benchmark_group("list");
    for elements in [20, MANY] {
        let mut list = products(elements);
        let mut model: VecDeque<Vec<u8>> = (0..elements).map(product).collect();
        let (wanted, mut generator) = ((0..1000).map(product).collect::<Vec<_>>(), Rng::with_seed(1));
        for (name, to, from) in [("tail to head", End::Head, End::Tail), ("head to tail", End::Tail, End::Head)] {
            group.bench_function(format!("push and pop, {name}, of {elements}"), |bencher| {
                bencher.iter(|| {
                    list.push(to, [generator.choice(&wanted).expect("some").as_slice()], &limits);
                    list.pop(from, &limits)
                });
            });
        }
        group.bench_function(format!("push and pop of {elements}, std"), |bencher| {
            bencher.iter(|| {
                model.push_front(generator.choice(&wanted).expect("some").clone());
                model.pop_back()
            });
        });
        group.bench_function(format!("index of {elements}"), |bencher| {
            bencher.iter(|| list.get(generator.usize(..elements as usize)).map(|element| element.len()));
        });
        group.bench_function(format!("range of 100 of {elements}"), |bencher| {
            let mut bytes = Vec::new();
            bencher.iter(|| {
                bytes.clear();
                let start = generator.usize(..elements as usize);
                list.range(start..start + 100).for_each(|element| element.append_to(&mut bytes));
                bytes.len()
            });
        });
    }
}

criterion_group!(benches, memory, hashes, sets, lists);
criterion_main!(benches);
