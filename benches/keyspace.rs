//! The keyspace compared with the standard library's map, once with the map's own hash function and once with the
//! keyspace's.
//!
//! `cargo bench --bench keyspace`. Keys have 16 bytes and texts 32, a million of each unless a name says otherwise;
//! look-ups are in random order, so they measure memory more than instructions.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use dunlin::keyspace::{Database, New};
use dunlin::value::TextView;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;

const KEYS: u64 = 1_000_000;
const TEXT: [u8; 32] = [b'v'; 32];

type Key = [u8; 16];

fn key(number: u64) -> Key {
    let mut key = *b"session:00000000";
    let mut rest = number;
    for digit in key[8..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Numbers below `KEYS` in random order.
fn numbers() -> impl FnMut() -> u64 {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) % KEYS
    }
}

fn database(keys: u64) -> Database {
    let mut database = Database::new(1);
    for number in 0..keys {
        database.insert(&key(number), New::Text(TextView::Bytes(&TEXT)));
    }
    database
}

fn map<S: BuildHasher + Default>(keys: u64) -> HashMap<Box<[u8]>, Box<[u8]>, S> {
    (0..keys).map(|number| (key(number).into(), TEXT.into())).collect()
}

fn find(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("find");
    let full = database(KEYS);
    let mut next = numbers();
    group.bench_function("keyspace", |bencher| {
        bencher.iter(|| full.find(&key(next())).map(|slot| full.view(slot).encoding()))
    });
    group.bench_function("keyspace, absent", |bencher| bencher.iter(|| full.find(&key(KEYS + next()))));
    group.bench_function("keyspace, 16 prefetched", |bencher| {
        bencher.iter(|| {
            let keys: [Key; 16] = std::array::from_fn(|_| key(next()));
            full.prefetch(keys.iter().map(|key| &key[..]));
            keys.iter().filter_map(|key| full.find(key)).map(|slot| full.view(slot).encoding().len()).sum::<usize>()
        });
    });
    drop(full);
    let full = map::<RandomState>(KEYS);
    group.bench_function("std", |bencher| bencher.iter(|| full.get(&key(next())[..]).map(|text| text[0])));
    drop(full);
    let full = map::<rapidhash::fast::SeedableState<'_>>(KEYS);
    group.bench_function("std with rapidhash", |bencher| {
        bencher.iter(|| full.get(&key(next())[..]).map(|text| text[0]))
    });
}

fn fill(criterion: &mut Criterion) {
    const FEW: u64 = 100_000;
    let mut group = criterion.benchmark_group("fill with 100000");
    group.sample_size(10);
    group.bench_function("keyspace", |bencher| bencher.iter_batched(|| (), |()| database(FEW), BatchSize::LargeInput));
    group.bench_function("std", |bencher| {
        bencher.iter_batched(|| (), |()| map::<RandomState>(FEW), BatchSize::LargeInput)
    });
}

fn change(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("change");
    let mut full = database(KEYS);
    let mut next = numbers();
    group.bench_function("replace by the same length", |bencher| {
        bencher.iter(|| {
            let slot = full.find(&key(next())).expect("stored");
            full.replace(slot, New::Text(TextView::Bytes(black_box(&TEXT)))).0
        });
    });
    group.bench_function("delete and insert", |bencher| {
        bencher.iter(|| {
            let key = key(next());
            let slot = full.find(&key).expect("stored");
            drop(full.delete(slot));
            full.insert(&key, New::Text(TextView::Bytes(&TEXT)))
        });
    });
    let mut now_ms = 1_800_000_000_000;
    group.bench_function("push a deadline on", |bencher| {
        bencher.iter(|| {
            now_ms += 1;
            let slot = full.find(&key(next())).expect("stored");
            full.set_deadline(slot, Some(now_ms))
        });
    });
    let mut cursor = 0;
    group.bench_function("scan of 10", |bencher| {
        bencher.iter(|| {
            let mut bytes = 0;
            cursor = full.scan(cursor, 10, |slot| bytes += full.key(slot).len());
            bytes
        });
    });
}

criterion_group!(benches, find, fill, change);
criterion_main!(benches);
