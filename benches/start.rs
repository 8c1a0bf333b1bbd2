//! How long a test waits for a server of its own: until it is started, until it has answered a client, until it is gone.

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpStream;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use dunlin::Server;

fn start(criterion: &mut Criterion) {
    criterion.bench_function("start and drop", |bencher| bencher.iter(|| black_box(Server::start()).is_ok()));
    criterion.bench_function("start, answer one request over TCP, drop", |bencher| {
        bencher.iter(|| {
            let server = Server::start().expect("it starts");
            let mut stream = TcpStream::connect(server.addr()).expect("it listens");
            stream.write_all(b"GET key\r\n").expect("it reads");
            stream.read_exact(&mut [0; 5]).expect("it answers");
        });
    });
    criterion.bench_function("start, answer one direct call", |bencher| {
        let answered = |()| {
            let server = Server::start().expect("it starts");
            let mut client = server.client().expect("there is room");
            client.call(["PING"]).expect("it answers");
            (server, client)
        };
        bencher.iter_batched(|| (), answered, BatchSize::PerIteration);
    });
    criterion.bench_function("one direct call", |bencher| {
        let server = Server::start().expect("it starts");
        let mut client = server.client().expect("there is room");
        bencher.iter(|| client.call(["SET", "key", "value"]).is_ok());
    });
}

criterion_group!(benches, start);
criterion_main!(benches);
