//! The resident memory of each item, in bytes, for the same data in each server; and the share of expired keys that
//! were not removed yet.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::peer::Peer;

/// The data of a server: a name, the number of items, the number that one command adds, and the command for a number.
pub struct Data {
    pub name: &'static str,
    pub items: u64,
    step: u64,
    command: fn(u64) -> Vec<String>,
}

pub const DATA: &[Data] = &[
    Data {
        name: "a string of 32 bytes",
        items: 1_000_000,
        step: 1,
        command: |n| words(["SET", &key(n), &format!("{n:032}")]),
    },
    Data {
        name: "the same with a deadline",
        items: 1_000_000,
        step: 1,
        command: |n| words(["SET", &key(n), &format!("{n:032}"), "EX", "100000"]),
    },
    Data { name: "a counter", items: 1_000_000, step: 1, command: |n| words(["SET", &key(n), &n.to_string()]) },
    Data { name: "an entry of a recency list of 30", items: 3_000_000, step: 30, command: recency_list },
    Data { name: "a member of one leaderboard", items: 1_000_000, step: 100, command: leaderboard },
    Data {
        name: "an entry of a list of 20",
        items: 2_000_000,
        step: 20,
        command: |n| many(["RPUSH", &format!("user:{n}:recent")], n, 20, |entry| vec![format!("product-{entry:07}")]),
    },
    Data {
        name: "a job in one queue",
        items: 2_000_000,
        step: 100,
        command: |n| many(["RPUSH", "queue"], n, 100, |job| vec![format!("job-{job:09}")]),
    },
    Data {
        name: "a member of one set",
        items: 1_000_000,
        step: 100,
        command: |n| many(["SADD", "seen"], n, 100, |event| vec![format!("event-{event:09}")]),
    },
    Data {
        name: "a member of a set of 10",
        items: 1_000_000,
        step: 10,
        command: |n| many(["SADD", &format!("room:{n}")], n, 10, |member| vec![format!("connection-{member}")]),
    },
    Data { name: "a field of a hash of 5", items: 1_000_000, step: 5, command: job },
];

/// Starts the program, fills it, and returns the number of bytes that an item takes. The first command does not count:
/// it brings the parts of the program into memory that all of them need.
pub fn bytes_an_item(program: &Path, data: &Data, items: u64) -> Result<f64, Box<dyn Error>> {
    let mut peer = Peer::start(program)?;
    let command = |number: u64| (data.command)(number * data.step);
    peer.call_all(std::iter::once(command(0)))?;
    let (before, commands) = (peer.resident_bytes()?, items.div_ceil(data.step));
    peer.call_all((1..=commands).map(command))?;
    Ok((peer.resident_bytes()? as f64 - before as f64) / (commands * data.step) as f64)
}

/// The share of keys past their deadline that DBSIZE still counts while all fall due within two seconds: the mean and
/// the worst.
pub fn stale_share(program: &Path, keys: u64) -> Result<(f64, f64), Box<dyn Error>> {
    const SPREAD_MS: u64 = 2000;
    const LEAD_MS: u64 = 4000;
    let mut peer = Peer::start(program)?;
    let first_ms = unix_ms()? + LEAD_MS;
    let deadline = |n: u64| (first_ms + n * SPREAD_MS / keys).to_string();
    peer.call_all((0..keys).map(|n| words(["SET", &key(n), "v", "PXAT", &deadline(n)])))?;
    let (mut shares, end) = (Vec::new(), Instant::now() + Duration::from_millis(LEAD_MS + SPREAD_MS + 500));
    while Instant::now() < end {
        let size = peer.integer(&words(["DBSIZE"]))? as u64;
        let past_ms = unix_ms()?.saturating_sub(first_ms);
        let alive = keys - (past_ms * keys / SPREAD_MS).min(keys);
        if past_ms > 0 {
            shares.push(size.saturating_sub(alive) as f64 / keys as f64);
        }
    }
    let worst = shares.iter().copied().fold(0.0, f64::max);
    Ok((shares.iter().sum::<f64>() / shares.len().max(1) as f64, worst))
}

fn unix_ms() -> Result<u64, Box<dyn Error>> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?)
}

fn recency_list(first: u64) -> Vec<String> {
    many(["ZADD", &format!("rv:{first:09}")], first, 30, |entry| {
        vec![(1_569_230_000 + entry).to_string(), (100_000_000 + scattered(entry) % 900_000_000).to_string()]
    })
}

fn leaderboard(first: u64) -> Vec<String> {
    many(["ZADD", "board"], first, 100, |user| vec![(scattered(user) % 1_000_000).to_string(), format!("user-{user}")])
}

fn job(first: u64) -> Vec<String> {
    let (due, owner) = ((1_783_012_441_000 + first).to_string(), format!("worker-{}", first % 100));
    let fields = ["state", "ready", "tries", "3", "queue", "email", "due", &due, "owner", &owner];
    many(["HSET", &format!("job:{first}")], 0, 0, |_| Vec::new()).into_iter().chain(words(fields)).collect()
}

fn many(head: [&str; 2], first: u64, count: u64, item: impl Fn(u64) -> Vec<String>) -> Vec<String> {
    words(head).into_iter().chain((first..first + count).flat_map(item)).collect()
}

fn key(n: u64) -> String {
    format!("session:{n:08}")
}

/// A number that looks random, the same for the same `n`.
fn scattered(n: u64) -> u64 {
    n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}
