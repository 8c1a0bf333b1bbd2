//! The time that a test needs for a cluster of its own: three primaries with a replica each until all six know each
//! other, as a server, as the program or as a world of one; an ordered failover; and one after a node has died, on a
//! clock that the test moves. What has a goal is printed with its median and 99th percentile. And the time that a
//! request costs more at a node, which looks at the slot of its key.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use dunlin::{Client, Server};

/// Longer than `cluster-node-timeout`, and an election.
const UNTIL_REPLACED: Duration = Duration::from_secs(16);
/// Longer than the time in which voters refuse to replace the same primary again.
const UNTIL_AGAIN: Duration = Duration::from_secs(60);

/// The key is in a slot of the first primary, whose replica is node 3.
const SET: [&str; 3] = ["SET", "bar", "1"];

fn cluster() -> Server {
    Server::cluster(3).replicas(1).frozen().start().expect("the nodes start")
}

fn client(cluster: &Server, node: usize) -> Client {
    cluster.nodes()[node].client().expect("there is room")
}

/// Asserts that a node is ready to serve.
fn assert_ok(cluster: &Server, node: usize) {
    let info = client(cluster, node).call(["CLUSTER", "INFO"]).expect("it answers");
    assert!(info.text().is_some_and(|info| info.starts_with("cluster_state:ok")));
}

fn start(criterion: &mut Criterion) {
    criterion.bench_function("start six nodes until each says that the cluster is ok", |bencher| {
        bencher.iter_batched(|| (), |()| started(), BatchSize::PerIteration);
    });
}

/// A cluster whose nodes have all said that it is ok.
fn started() -> Server {
    let cluster = cluster();
    (0..6).for_each(|node| assert_ok(&cluster, node));
    cluster
}

/// A running program, ended when dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program as a cluster whose nodes have all said over TCP that it is ok.
fn started_program() -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dunlin"));
    let words = ["--port", "0", "--cluster", "3", "--replicas", "1"];
    let process = command.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut program = Program(process.expect("the program starts"));
    let log = BufReader::new(program.0.stdout.take().expect("its output is a pipe"));
    let port = |line: String| line.split("ready on 127.0.0.1:").nth(1)?.split(',').next()?.parse().ok();
    let first: u16 = log.lines().map_while(Result::ok).find_map(port).expect("it names its port");
    for port in first..first + 6 {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
        stream.write_all(b"CLUSTER INFO\r\n").expect("it reads");
        let state = BufReader::new(stream).lines().map_while(Result::ok).nth(1);
        assert_eq!(state.as_deref(), Some("cluster_state:ok"), "behind the length of the reply");
    }
    program
}

fn world(criterion: &mut Criterion) {
    let server = cluster();
    let mut number = 0;
    criterion.bench_function("make a world of six nodes until each says that the cluster is ok", |bencher| {
        let made = |()| {
            number += 1;
            let name = number.to_string();
            let world = server.world(&name).expect("there is room");
            for node in world.nodes() {
                let info = node.client().and_then(|mut client| client.call(["CLUSTER", "INFO"])).expect("it answers");
                assert!(info.text().is_some_and(|info| info.starts_with("cluster_state:ok")));
            }
            server.drop_world(&name).expect("it is there");
        };
        bencher.iter_batched(|| (), made, BatchSize::PerIteration);
    });
}

/// The two nodes of a shard: the primary and its replica, which change places.
struct Shard {
    cluster: Server,
    primary: usize,
    replica: usize,
}

impl Shard {
    fn start() -> Shard {
        Shard { cluster: cluster(), primary: 0, replica: 3 }
    }

    /// Makes the two nodes change places, once a client and all other nodes that run have seen the replica as the
    /// primary.
    fn change_places(&mut self) {
        client(&self.cluster, self.replica).call(SET).expect("the replica is the primary now");
        let redirect = format!("MOVED 5061 {}", self.cluster.nodes()[self.replica].addr());
        let others = self.cluster.nodes().into_iter().filter(|node| node.node_number() != self.replica);
        for mut other in others.filter_map(|node| node.client().ok()) {
            let moved = other.call(["GET", "bar"]).expect_err("it has not the slot");
            assert_eq!(moved.to_string(), redirect);
        }
        std::mem::swap(&mut self.primary, &mut self.replica);
    }
}

/// Times of ordered failovers, until the new primary serves and all other nodes redirect to it.
fn time_ordered(shard: &mut Shard, times: u64) -> Duration {
    timed(
        times,
        shard,
        |shard| shard.cluster.advance(UNTIL_AGAIN),
        |shard| {
            shard.cluster.fail_over(shard.replica).expect("the replica has all writes");
            shard.change_places();
        },
    )
}

/// Times of failovers from primaries that have died, whose former replicas have been primaries before.
fn time_automatic(shard: &mut Shard, times: u64) -> Duration {
    let restart = |shard: &mut Shard| {
        shard.cluster.restart_node(shard.replica).expect("it is down");
        shard.cluster.advance(UNTIL_AGAIN);
    };
    timed(times, shard, restart, |shard| {
        shard.cluster.kill_node(shard.primary).expect("it runs");
        shard.cluster.advance(UNTIL_REPLACED);
        shard.change_places();
    })
}

/// A shard whose replica is down.
fn shard_without_replica() -> Shard {
    let shard = Shard::start();
    shard.cluster.kill_node(shard.replica).expect("it runs");
    shard
}

fn failover(criterion: &mut Criterion) {
    let mut shard = Shard::start();
    criterion.bench_function("fail over until the new primary serves and all others redirect to it", |bencher| {
        bencher.iter_custom(|times| time_ordered(&mut shard, times));
    });
    let mut shard = shard_without_replica();
    criterion.bench_function("kill a primary, move the clock by 16 s, and be served by its replica", |bencher| {
        bencher.iter_custom(|times| time_automatic(&mut shard, times));
    });
}

/// Prints the medians and the 99th percentiles of what has a goal.
#[expect(clippy::print_stdout, reason = "criterion tells of means alone")]
fn percentiles(_: &mut Criterion) {
    // As a test it only has to run.
    let is_bench = std::env::args().any(|word| word == "--bench");
    let print_all = |count: usize, what: &str, measure: &mut dyn FnMut() -> Duration| {
        let mut times: Vec<Duration> = (0..count).map(|_| measure()).collect();
        times.sort();
        println!("{what}: p50 {:?}, p99 {:?}", times[count / 2], times[count * 99 / 100]);
    };
    let print = |what: &str, measure: &mut dyn FnMut() -> Duration| {
        print_all(if is_bench { 1000 } else { 2 }, what, measure);
    };
    print("start six nodes until each says that the cluster is ok", &mut || time_of(started));
    let (runs, what) = (if is_bench { 100 } else { 1 }, "start the program until each of six nodes says so over TCP");
    print_all(runs, what, &mut || time_of(started_program));
    let (mut ordered, mut automatic) = (Shard::start(), shard_without_replica());
    print("ordered failover", &mut || time_ordered(&mut ordered, 1));
    print("failover after 16 s on the clock", &mut || time_automatic(&mut automatic, 1));
}

/// The time of `act`, without that of freeing its result.
#[expect(clippy::disallowed_methods, reason = "a bench asks the clock")]
fn time_of<R>(act: impl FnOnce() -> R) -> Duration {
    let since = std::time::Instant::now();
    let result = act();
    let elapsed = since.elapsed();
    drop(result);
    elapsed
}

/// The time of `act`, without that of `prepare`, so many times.
#[expect(clippy::disallowed_methods, reason = "a bench asks the clock")]
fn timed(
    times: u64,
    shard: &mut Shard,
    mut prepare: impl FnMut(&mut Shard),
    mut act: impl FnMut(&mut Shard),
) -> Duration {
    let mut total = Duration::ZERO;
    for _ in 0..times {
        prepare(shard);
        let since = std::time::Instant::now();
        act(shard);
        total += since.elapsed();
    }
    total
}

/// Times reads at a server, and at a node, which looks at the slot of each key.
fn read(criterion: &mut Criterion) {
    let alone = Server::builder().frozen().start().expect("it starts");
    let node = Server::cluster(1).frozen().start().expect("the node starts");
    let keys: Vec<String> = (0..10).map(|number| format!("{{user:1000}}:{number}")).collect();
    let requests = [vec!["GET", "bar"], ["MGET"].into_iter().chain(keys.iter().map(String::as_str)).collect()];
    for (what, words) in ["GET", "MGET of ten"].into_iter().zip(requests) {
        for (place, server) in [("at a server", &alone), ("at a node, which owns the slot", &node)] {
            let mut client = server.client().expect("there is room");
            criterion.bench_function(&format!("a direct {what} {place}"), |bencher| {
                bencher.iter(|| client.call(&words).is_ok());
            });
        }
    }
}

/// Times a write that a replica has before its reply, and one of a primary without a replica.
fn write(criterion: &mut Criterion) {
    let alone = Server::cluster(3).frozen().start().expect("the nodes start");
    for (name, cluster) in [("a direct SET at a primary", &alone), ("... that has a replica", &cluster())] {
        let mut client = client(cluster, 0);
        criterion.bench_function(name, |bencher| bencher.iter(|| client.call(SET).is_ok()));
    }
}

criterion_group!(benches, start, world, failover, percentiles, read, write);
criterion_main!(benches);
