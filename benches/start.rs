//! The time that a test needs for a server of its own: to start it, to get a first reply from it, and to stop it.

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpStream;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use dunlin::Server;

fn start(criterion: &mut Criterion) {
    criterion.bench_function("start and drop", |bencher| bencher.iter(|| black_box(Server::start()).is_ok()));
    criterion.bench_function("start, answer one direct call", |bencher| {
        let connected = |()| {
            let server = Server::start().expect("it starts");
            let mut client = server.client().expect("there is room");
            client.call(["PING"]).expect("it answers");
            (server, client)
        };
        bencher.iter_batched(|| (), connected, BatchSize::PerIteration);
    });
    // The last of these: the thousands of closed connections that it leaves slow down every later start.
    criterion.bench_function("start, answer one request over TCP, drop", |bencher| {
        bencher.iter(|| {
            let server = Server::start().expect("it starts");
            connected(&server)
        });
    });
}

/// Times a call that needs no socket.
fn direct(criterion: &mut Criterion) {
    let server = Server::start().expect("it starts");
    let mut client = server.client().expect("there is room");
    for words in [&["SET", "key", "value"][..], &["GET", "key"], &["GET", "nosuch"], &["PING"]] {
        criterion.bench_function(&format!("a direct call of {}", words.join(" ")), |bencher| {
            bencher.iter(|| client.call(words).is_ok());
        });
    }
}

/// The resident memory of the process in bytes; 0 where the system does not report it.
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let figure = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    figure.map_or(0, |kilobytes| kilobytes << 10)
}

/// Prints the memory of servers that run at the same time, each with a TCP client that has received a reply.
#[expect(clippy::print_stdout, reason = "criterion measures time alone, and this is about memory")]
fn memory(_: &mut Criterion) {
    // As a test it only has to run: not every machine allows the descriptors of a thousand servers.
    let count = if std::env::args().any(|word| word == "--bench") { 1000 } else { 10 };
    let before = resident_bytes();
    let servers: Vec<(Server, TcpStream)> = (0..count)
        .map(|_| {
            let server = Server::start().expect("it starts");
            let stream = connected(&server);
            (server, stream)
        })
        .collect();
    let each = resident_bytes().saturating_sub(before) / servers.len();
    println!("{} servers at once, each with a client: {} KB each", servers.len(), each >> 10);
    let cluster = Server::cluster(3).replicas(1).start().expect("it starts");
    let before = resident_bytes();
    for number in 0..count / 10 {
        let mut client = cluster.world(&number.to_string()).and_then(|world| world.client()).expect("there is room");
        client.call(["SET", "bar", "value"]).expect("its first node owns the slot");
    }
    let all = resident_bytes().saturating_sub(before);
    println!("{} worlds that are clusters of six nodes, each with a key: {} KB", count / 10, all >> 10);
}

/// A connection that has received a reply.
fn connected(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.addr()).expect("it listens");
    stream.write_all(b"GET key\r\n").expect("it reads");
    stream.read_exact(&mut [0; 5]).expect("it answers");
    stream
}

criterion_group!(benches, start, direct, memory);
criterion_main!(benches);
