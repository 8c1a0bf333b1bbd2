//! Programs that end while clients write. Killed, with `appendfsync always`, nothing that was acknowledged is lost, no
//! transaction is halved, and nothing is there that nobody wrote. Shut down, nothing that was acknowledged is lost.
//!
//! Each round starts on the files that the last one has left, so what a start makes of a torn end is killed, too. The
//! round ends after a number of acknowledgements, not after a time. DUNLIN_KILLS sets the number of rounds.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use crate::files::{Folder, told};
use crate::timeout::wait_until;

const WRITERS: usize = 4;
const DEFAULT_ROUNDS: u64 = 100;
/// The replies to a transaction of two SETs and an INCR, but for the last one's number.
const DONE: &[u8] = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n+OK\r\n:";

/// A number with its checksum, and a filling of another length for each number.
fn sealed(number: u64) -> String {
    let filling = "x".repeat(number as usize * 7919 % 700);
    let checksum = filling.bytes().fold(number, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{number}:{checksum:016x}:{filling}")
}

/// The last number that a writer has sent, and the last one that was acknowledged.
#[derive(Default)]
struct Writer {
    sent: AtomicU64,
    acknowledged: AtomicU64,
}

impl Writer {
    /// Writes ascending numbers to two keys at once, and counts that in a third, until the server is gone.
    fn write(&self, number: usize, address: SocketAddr, report: &Sender<()>) {
        let Ok(mut stream) = TcpStream::connect(address) else { return };
        loop {
            let value = self.sent.load(Ordering::Relaxed) + 1;
            self.sent.store(value, Ordering::Relaxed);
            let sealed = sealed(value);
            let changes = format!("SET a{number} {sealed}\r\nSET b{number} {sealed}\r\nINCR c{number}");
            let expected = [DONE, format!("{value}\r\n").as_bytes()].concat();
            let mut reply = vec![0; expected.len()];
            let request = format!("MULTI\r\n{changes}\r\nEXEC\r\n");
            if stream.write_all(request.as_bytes()).is_err() || stream.read_exact(&mut reply).is_err() {
                return;
            }
            assert_eq!(reply, expected, "no change is lost in between, and none is there twice");
            self.acknowledged.store(value, Ordering::Relaxed);
            // Nobody listens any more when the round is over.
            let _ = report.send(());
        }
    }
}

#[test]
fn a_killed_program_loses_nothing_that_it_acknowledged() {
    let rounds = std::env::var("DUNLIN_KILLS").map_or(DEFAULT_ROUNDS, |number| number.parse().expect("it is a number"));
    let (folder, mut generator) = (Folder::new("kills"), fastrand::Rng::with_seed(1));
    let writers: Vec<Writer> = std::iter::repeat_with(Writer::default).take(WRITERS).collect();
    let mut rounds_with_rewrite = 0;
    for round in 0..rounds {
        let arguments = ["--appendonly", "yes", "--appendfsync", "always"];
        let growth = ["--auto-aof-rewrite-min-size", "2000", "--auto-aof-rewrite-percentage", "50"];
        let program = folder.program(&[&arguments[..], if round % 2 == 0 { &growth } else { &[] }].concat());
        wait_until("it is loaded", || told(&program, "PING") == "+PONG");
        for (number, writer) in writers.iter().enumerate() {
            let value_of = |key: &str| told(&program, &format!("GET {key}{number}")).lines().nth(1).map(str::to_owned);
            let [first, second, count] = ["a", "b", "c"].map(value_of);
            let value = count.map_or(0, |count| count.parse::<u64>().expect("it is a number"));
            let expected = (value > 0).then(|| sealed(value));
            assert!(first == expected && second == expected, "round {round}: {value}, {first:?} and {second:?}");
            let acknowledged = writer.acknowledged.load(Ordering::Relaxed);
            let sent = writer.sent.load(Ordering::Relaxed);
            assert!((acknowledged..=sent).contains(&value), "round {round}: {value} of {acknowledged} to {sent}");
            // What was in flight counts as written from now on, or as never sent.
            writer.acknowledged.store(value, Ordering::Relaxed);
            writer.sent.store(value, Ordering::Relaxed);
        }
        let (report, acknowledged) = mpsc::channel();
        let end = generator.usize(0..150);
        thread::scope(|scope| {
            for (number, writer) in writers.iter().enumerate() {
                let (address, report) = (program.address(), report.clone());
                scope.spawn(move || writer.write(number, address, &report));
            }
            drop(report);
            assert_eq!(acknowledged.iter().take(end).count(), end, "round {round}: the program has ended by itself");
            rounds_with_rewrite += u64::from(!told(&program, "INFO persistence").contains("aof_rewrites:0\r\n"));
            drop(program);
        });
    }
    assert!(
        rounds < DEFAULT_ROUNDS || rounds_with_rewrite > rounds / 10,
        "the files are hardly ever rewritten: {rounds_with_rewrite} of {rounds}"
    );
}

/// Counts in a key, many requests at once, until the server is gone; returns the last number that was acknowledged.
#[cfg(unix)]
fn count_up(address: SocketAddr, key: usize) -> u64 {
    let (mut stream, mut last) = (TcpStream::connect(address).expect("it listens"), 0);
    let (requests, mut replies) = (format!("INCR {key}\r\n").repeat(16), [0; 4096]);
    while stream.write_all(requests.as_bytes()).is_ok()
        && let Ok(length @ 1..) = stream.read(&mut replies)
    {
        // The last reply that is whole.
        let lines = replies[..length].split(|byte| *byte == b'\n').rev().skip(1);
        let numbers =
            lines.filter_map(|line| std::str::from_utf8(line.strip_prefix(b":")?).ok()?.trim_end().parse().ok());
        last = numbers.max().unwrap_or(last);
    }
    last
}

#[test]
#[cfg(unix)]
fn a_program_that_is_shut_down_loses_nothing_that_it_acknowledged() {
    const CLIENTS: usize = 30;
    let settings: [&[&str]; 3] = [
        &["--save", "3600 1"],
        &["--appendonly", "yes", "--io-threads", "4"],
        &["--appendonly", "yes", "--appendfsync", "always", "--io-threads", "4"],
    ];
    for (settings, by_signal) in settings.iter().flat_map(|settings| [(settings, true), (settings, false)]) {
        for _ in 0..3 {
            let folder = Folder::new("shut-down");
            let mut program = folder.program(settings);
            wait_until("it is loaded", || told(&program, "PING") == "+PONG");
            let address = program.address();
            let counts: Vec<u64> = thread::scope(|scope| {
                let clients: Vec<_> = (0..CLIENTS).map(|key| scope.spawn(move || count_up(address, key))).collect();
                wait_until("all write", || told(&program, "DBSIZE") == format!(":{CLIENTS}"));
                if by_signal {
                    program.signal("TERM")
                } else {
                    assert_eq!(told(&program, "SHUTDOWN"), "")
                }
                assert!(program.end().0.success());
                clients.into_iter().map(|client| client.join().expect("it does not panic")).collect()
            });
            let program = folder.program(settings);
            wait_until("it is loaded", || told(&program, "PING") == "+PONG");
            for (key, acknowledged) in counts.into_iter().enumerate() {
                let found = told(&program, &format!("GET {key}"));
                let found: u64 = found.lines().nth(1).map_or(0, |count| count.parse().expect("it is a number"));
                assert!(found >= acknowledged, "{settings:?}, {by_signal}: {found} of {acknowledged}");
            }
        }
    }
}
