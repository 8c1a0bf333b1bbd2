//! The computations of bitmap, HyperLogLog and geo commands, compared with the simplest code for the same result that
//! uses the standard library.
//!
//! `cargo bench --bench arithmetic`. The simple code of BITCOUNT is a sum over bytes, that of PFCOUNT a set of all
//! elements, and that of GEOSEARCH a check of every position.

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use dunlin::value::bits::{self, Operation};
use dunlin::value::geo::{Area, Position, Shape};
use dunlin::value::hyperloglog::{Sketch, SketchMut};
use dunlin::value::zset::{Limits, ScoreRange, Zset};
use fastrand::Rng;
use std::collections::HashSet;
use std::hint::black_box;
use std::ops::Bound;

const SPARSE_BYTES: usize = 3000;
const PLACES: usize = 100_000;

fn random_bytes(length: usize) -> Vec<u8> {
    let mut generator = Rng::with_seed(1);
    (0..length).map(|_| generator.u8(..)).collect()
}

fn bitmaps(criterion: &mut Criterion) {
    for length in [64, 4096, 1 << 20] {
        let (bytes, others) = (random_bytes(length), vec![0xff; length]);
        let mut group = criterion.benchmark_group(format!("bits of {length} bytes"));
        group.throughput(Throughput::Bytes(length as u64));
        group.bench_function("count", |bench| bench.iter(|| bits::count_ones(black_box(&bytes))));
        group.bench_function("count, plainly", |bench| {
            bench.iter(|| black_box(&bytes).iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>());
        });
        group.bench_function("find", |bench| {
            bench.iter(|| bits::find(black_box(&others), 0..8 * length as u64, false));
        });
        group.bench_function("and", |bench| {
            bench.iter(|| bits::combine(Operation::And, black_box(&[&bytes, &others])));
        });
    }
}

fn sketches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sketch");
    for (name, seen) in [("sparse", 1000u64), ("dense", 100_000)] {
        let mut bytes = Vec::new();
        let elements: Vec<Vec<u8>> = (0..seen).map(|number| format!("visitor-{number}").into_bytes()).collect();
        let mut sketch = SketchMut::fresh(&mut bytes, SPARSE_BYTES);
        sketch.add_all(elements.iter().map(Vec::as_slice)).expect("what is made here is not corrupted");
        bench_sketch(&mut group, name, &mut bytes, &elements);
    }
}

fn bench_sketch(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, bytes: &mut Vec<u8>, elements: &[Vec<u8>]) {
    let mut next = elements.iter().cycle();
    group.bench_function(format!("add to a {name} one"), |bench| {
        let mut sketch = SketchMut::of(bytes, SPARSE_BYTES).expect("it is one");
        bench.iter(|| sketch.add_all(next.next().into_iter().map(Vec::as_slice).collect::<Vec<_>>().into_iter()));
    });
    group.bench_function(format!("add to a set, as many as the {name} one has"), |bench| {
        let mut set: HashSet<&[u8]> = elements.iter().map(Vec::as_slice).collect();
        bench.iter(|| next.next().is_some_and(|element| set.insert(element)));
    });
    group.bench_function(format!("count a {name} one"), |bench| {
        bench.iter(|| Sketch::of(black_box(bytes)).map(|sketch| sketch.count()));
    });
}

fn places(criterion: &mut Criterion) {
    let mut generator = Rng::with_seed(1);
    let mut near = |center: f64| center + generator.f64();
    let positions: Vec<Position> =
        (0..PLACES).map(|_| Position { longitude: near(13.0), latitude: near(37.0) }).collect();
    let members = positions.iter().enumerate().map(|(number, position)| (format!("place-{number}"), position.score()));
    let zset = Zset::from_entries(members, &Limits::default());
    let center = Position { longitude: 13.5, latitude: 37.5 };
    let mut group = criterion.benchmark_group(format!("{PLACES} places"));
    for radius_m in [100.0, 1000.0, 10_000.0] {
        let area = Area { center, shape: Shape::Circle { radius_m } };
        group.bench_function(format!("within {radius_m} m"), |bench| bench.iter(|| count_within(&zset, &area)));
        group.bench_function(format!("within {radius_m} m, plainly"), |bench| {
            bench.iter(|| positions.iter().filter(|position| area.distance_m(**position).is_some()).count());
        });
    }
}

fn count_within(zset: &Zset, area: &Area) -> usize {
    let in_cell = |cell: dunlin::value::geo::Cell| {
        let (min, max) = (cell.first_score() as f64, cell.end_score() as f64);
        let scores = ScoreRange { min: Bound::Included(min), max: Bound::Excluded(max) };
        let members = zset.range(zset.by_score(&scores));
        members.filter(|entry| area.distance_m(Position::of_score(entry.score)).is_some()).count()
    };
    area.cells().into_iter().map(in_cell).sum()
}

criterion_group!(benches, bitmaps, sketches, places);
criterion_main!(benches);
