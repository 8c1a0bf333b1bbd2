//! The cost of a fresh fixture for each test: taking a snapshot of 100 MB of data, and restoring it after a test that
//! changed a part of the data.

use criterion::{Criterion, criterion_group, criterion_main};
use dunlin::{Client, Server};

/// The number of keys and the length of their values: together 100 MB and more.
const KEYS: &str = "400000";
const VALUE_BYTES: &str = "256";

fn snapshots(criterion: &mut Criterion) {
    let server = Server::builder().allow_debug().start().expect("it starts");
    let mut client = server.client().expect("there is room");
    call(&mut client, &["DEBUG", "POPULATE", KEYS, "key", VALUE_BYTES]);
    criterion.bench_function("take a snapshot of 100 MB and drop it", |bencher| {
        bencher.iter(|| {
            server.snapshot("brief");
            server.drop_snapshot("brief").is_ok()
        });
    });
    server.snapshot("fixture");
    criterion.bench_function("a case of 30 writes in 100 MB, and the way back", |bencher| {
        let mut case = 0_u64;
        bencher.iter(|| {
            for write in 0..10 {
                case += 1;
                let (known, added) = (format!("key:{}", case * 7919 % 400_000), format!("added:{write}"));
                call(&mut client, &["APPEND", &known, "more"]);
                call(&mut client, &["EXPIRE", &known, "100"]);
                call(&mut client, &["LPUSH", &added, "element"]);
            }
            server.rollback("fixture").is_ok()
        });
    });
    criterion.bench_function("FLUSHALL of 100 MB, and the way back", |bencher| {
        bencher.iter(|| {
            call(&mut client, &["FLUSHALL"]);
            server.rollback("fixture").is_ok()
        });
    });
}

fn call(client: &mut Client, words: &[&str]) {
    client.call(words).expect("the server answers");
}

criterion_group!(benches, snapshots);
criterion_main!(benches);
