//! The cost of a separate world for each test: creating it, empty or from a template, and entering it.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use dunlin::{Client, Server};

/// The numbers of keys in the fixtures.
const KEYS: [usize; 5] = [0, 100, 1000, 10_000, 100_000];

/// The number of worlds that exist before the first of them is dropped.
const AT_ONCE: usize = 1000;

fn worlds(criterion: &mut Criterion) {
    for keys in KEYS {
        let server = Server::start().expect("it starts");
        fill(&mut server.client().expect("there is room"), keys);
        server.make_template();
        let mut name = world_names();
        criterion.bench_function(&format!("make a world from a template of {keys} keys"), |bencher| {
            let fresh = || {
                let next = name();
                let _ = server.drop_world(&next);
                next
            };
            bencher.iter_batched(fresh, |name| server.world(&name), BatchSize::PerIteration);
        });
        criterion.bench_function(&format!("enter a world from a template of {keys} keys, which is made"), |bencher| {
            let mut name = world_names();
            let fresh = || {
                let next = name();
                let _ = server.drop_world(&next);
                (next, server.client().expect("there is room"))
            };
            bencher.iter_batched(
                fresh,
                |(name, mut client)| {
                    call(&mut client, &["DUNLIN", "WORLD", &name]);
                    client
                },
                BatchSize::PerIteration,
            );
        });
    }
    with_functions(criterion);
    first_changes(criterion);
    let server = Server::start().expect("it starts");
    let mut client = server.client().expect("there is room");
    criterion.bench_function("go to another world and back", |bencher| {
        bencher.iter(|| {
            call(&mut client, &["DUNLIN", "WORLD", "other"]);
            call(&mut client, &["DUNLIN", "WORLD", "default"]);
        });
    });
}

/// Makes worlds whose template has a library of functions.
fn with_functions(criterion: &mut Criterion) {
    let server = Server::start().expect("it starts");
    let library = "#!lua name=one\nredis.register_function('whose', function() return 'mine' end)";
    call(&mut server.client().expect("there is room"), &["FUNCTION", "LOAD", library]);
    server.make_template();
    let mut name = world_names();
    criterion.bench_function("make a world from a template with a library of functions", |bencher| {
        let fresh = || {
            let next = name();
            let _ = server.drop_world(&next);
            next
        };
        bencher.iter_batched(fresh, |name| server.world(&name), BatchSize::PerIteration);
    });
}

/// Changes keys in worlds that share them with a template: one key first, then ten more in different places.
fn first_changes(criterion: &mut Criterion) {
    let server = Server::start().expect("it starts");
    fill(&mut server.client().expect("there is room"), 100_000);
    server.make_template();
    for keys in [1, 10] {
        let mut name = world_names();
        criterion.bench_function(&format!("the first change of {keys} of 100000 keys of a template"), |bencher| {
            let fresh = || {
                let next = name();
                let _ = server.drop_world(&next);
                server.world(&next).and_then(|world| world.client()).expect("there is room")
            };
            let change = |mut client: Client| {
                (0..keys).for_each(|key| call(&mut client, &["APPEND", &format!("key:{}", key * 9990 + 5), "x"]));
                client
            };
            bencher.iter_batched(fresh, change, BatchSize::PerIteration);
        });
    }
}

/// Makes world_names that repeat after [`AT_ONCE`] others.
fn world_names() -> impl FnMut() -> String {
    let mut number = 0;
    move || {
        number += 1;
        format!("world-{}", number % AT_ONCE)
    }
}

/// Makes a fixture: of ten keys, one each is a set, hash, list, stream and sorted set, and the others are strings.
fn fill(client: &mut Client, keys: usize) {
    for number in 0..keys {
        let key = format!("key:{number}");
        match number % 10 {
            0 => call(client, &["SADD", &key, "one", "two", "three"]),
            1 => call(client, &["HSET", &key, "name", "ann", "age", "33", "city", "oslo"]),
            2 => call(client, &["RPUSH", &key, "one", "two", "three"]),
            3 => call(client, &["ZADD", &key, "1", "one", "2", "two"]),
            4 => call(client, &["XADD", &key, "*", "field", "value"]),
            _ => call(client, &["SET", &key, "a value of some thirty characters"]),
        }
    }
}

fn call(client: &mut Client, words: &[&str]) {
    client.call(words).expect("the server answers");
}

criterion_group!(benches, worlds);
criterion_main!(benches);
