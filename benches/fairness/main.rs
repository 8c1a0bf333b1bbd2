//! The delay that clients cause for the others when they stream requests without waiting for replies.
//!
//! `cargo bench --bench fairness -- PROGRAM ...` starts this server and each program, which takes redis-server's
//! command line, anew for each load, and streams one kind of request from one, three and ten clients. Meanwhile a
//! client that waits for each reply sends PING every millisecond, and another one connects, sends PING and leaves. The
//! table has the waits of both, p50/p99/longest in milliseconds. `--only NAME,...`, `--rounds N` and `--seconds S` are
//! those of the bench `peers`; of several rounds the median by p99 is shown. Without `--bench`, as in
//! tests, all is short.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]
#![expect(clippy::disallowed_methods, reason = "a bench asks the clock, and sends at a pace of its own")]

mod stream;
#[path = "../support/mod.rs"]
mod support;

use std::error::Error;
use std::fmt;
use std::io::{Read, Write};
use std::iter;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use support::peer::{self, Peer};
use support::plan::Plan;

/// The numbers of clients that stream at once.
const STREAMING: [usize; 3] = [1, 3, 10];

/// The time between two PINGs, and between two new connections.
const PING_EVERY: Duration = Duration::from_millis(1);
const CONNECT_EVERY: Duration = Duration::from_millis(5);

/// The longest wait: a PING that takes longer counts as this long, and ends the measurement.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// One kind of request that clients stream.
struct Load {
    name: &'static str,
    /// The commands that store data beforehand.
    before: &'static [&'static str],
    request: &'static [&'static str],
    /// The length to which the last word of `request` is extended.
    padded_bytes: usize,
}

const LOADS: &[Load] = &[
    Load { name: "SET of 100 bytes", before: &[], request: &["SET", "v", "x"], padded_bytes: 100 },
    Load {
        name: "LRANGE of 100",
        before: &["EVAL", "for i = 1, 100 do redis.call('RPUSH', 'l', i) end", "0"],
        request: &["LRANGE", "l", "0", "99"],
        padded_bytes: 0,
    },
    Load {
        name: "SMEMBERS of 2000",
        before: &["EVAL", "for i = 1, 2000 do redis.call('SADD', 's', 'member:' .. i) end", "0"],
        request: &["SMEMBERS", "s"],
        padded_bytes: 0,
    },
    Load {
        name: "GET of 60 KB",
        before: &["EVAL", "redis.call('SET', 'g', string.rep('x', 60000))", "0"],
        request: &["GET", "g"],
        padded_bytes: 0,
    },
    Load {
        name: "EVAL of 10 us",
        before: &[],
        request: &["EVAL", "local n = 0 for i = 1, 1000 do n = n + i end return n", "0"],
        padded_bytes: 0,
    },
];

/// Waits in ascending order.
struct Waits(Vec<Duration>);

impl Waits {
    fn at(&self, share: f64) -> Duration {
        let place = (self.0.len() as f64 * share) as usize;
        self.0.get(place.min(self.0.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, longest] = [0.5, 0.99, 1.0].map(|share| self.at(share).as_secs_f64() * 1e3);
        write!(f, "{p50:.2}/{p99:.1}/{longest:.0}")
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let plan = Plan::of(std::env::args().skip(1), Duration::from_secs(2))?;
    let (_, peers) = plan.programs.split_first().ok_or("there is always ours")?;
    let peers: Result<Vec<String>, _> = peers.iter().map(|program| Peer::start(program)?.version()).collect();
    let names = [vec![format!("dunlin {}", env!("CARGO_PKG_VERSION"))], peers?].concat().join(" | ");
    println!("Waits for PING and for a new connection's PING, p50/p99/longest in ms.\n");
    println!("| load | clients | {names} |\n|---|---|{}", "---|".repeat(plan.programs.len()));
    for load in LOADS.iter().filter(|load| plan.includes(load.name)) {
        for clients in STREAMING {
            let cells: Result<Vec<String>, _> =
                plan.programs.iter().map(|program| measured(&plan, program, load, clients)).collect();
            println!("| {} | {clients} | {} |", load.name, cells?.join(" | "));
        }
    }
    Ok(())
}

/// Measures all rounds, and returns the median one.
fn measured(plan: &Plan, program: &Path, load: &Load, clients: usize) -> Result<String, Box<dyn Error>> {
    let mut rounds = Vec::new();
    for _ in 0..plan.rounds {
        rounds.push(one_round(program, load, clients, plan.length)?);
    }
    rounds.sort_by_key(|(pings, _)| pings.at(0.99));
    let (pings, arrivals) = &rounds[rounds.len() / 2];
    Ok(format!("{pings}, {arrivals}"))
}

fn one_round(program: &Path, load: &Load, clients: usize, length: Duration) -> Result<(Waits, Waits), Box<dyn Error>> {
    let mut server = Peer::start(program)?;
    let address = server.address();
    if !load.before.is_empty() {
        server.call_all(iter::once(load.before.iter().map(|word| (*word).to_owned()).collect()))?;
    }
    let mut words: Vec<String> = load.request.iter().map(|word| (*word).to_owned()).collect();
    if let Some(last) = words.last_mut().filter(|_| load.padded_bytes > 0) {
        *last = last.repeat(load.padded_bytes);
    }
    let request = peer::request(&words);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let streaming =
            scope.spawn(|| stream::stream(address, clients, request.as_bytes(), &is_over).map_err(|e| e.to_string()));
        // By then the load has its full size.
        thread::sleep(length / 5);
        let arriving = scope.spawn(|| waits(length, CONNECT_EVERY, || Pinger::connect(address)?.ping()));
        let pings = Pinger::connect(address).and_then(|mut pinger| waits(length, PING_EVERY, || pinger.ping()));
        let arrivals = arriving.join().map_err(|_| "the thread of new connections panicked")?;
        is_over.store(true, Ordering::Relaxed);
        streaming.join().map_err(|_| "the thread of the load panicked")??;
        Ok((pings?, arrivals?))
    })
}

/// Runs `act` repeatedly for a while, and returns how long each run took.
fn waits(length: Duration, every: Duration, mut act: impl FnMut() -> std::io::Result<()>) -> std::io::Result<Waits> {
    let (start, mut waits) = (Instant::now(), Vec::new());
    while start.elapsed() < length {
        let began = Instant::now();
        let done = act();
        waits.push(began.elapsed());
        match done {
            // The reply may still arrive, and would be taken for that of another request.
            Err(_) if began.elapsed() >= LONGEST_WAIT => break,
            done => done?,
        }
        thread::sleep(every);
    }
    waits.sort_unstable();
    Ok(Waits(waits))
}

/// A client that waits for each reply.
struct Pinger(TcpStream);

impl Pinger {
    fn connect(address: SocketAddr) -> std::io::Result<Pinger> {
        let stream = TcpStream::connect_timeout(&address, LONGEST_WAIT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LONGEST_WAIT))?;
        Ok(Pinger(stream))
    }

    fn ping(&mut self) -> std::io::Result<()> {
        self.0.write_all(b"*1\r\n$4\r\nPING\r\n")?;
        self.0.read_exact(&mut [0; 7])
    }
}
