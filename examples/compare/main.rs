//! Compares servers on this machine: memory for each key or member, and how many expired keys linger.
//!
//! `cargo run --release --example compare -- target/release/dunlin /path/to/redis-server` starts each program afresh for
//! each figure, on a free port of 127.0.0.1 and without persistence. Linux only: memory is read from `/proc`.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program that measures real servers on the real clock"
)]

mod peer;

use std::error::Error;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use peer::Peer;

/// What a server is filled with: a name, how many commands, how many items each adds, and the command of a number.
struct Load {
    name: &'static str,
    commands: usize,
    items: usize,
    command: fn(usize) -> Vec<String>,
}

const LOADS: &[Load] = &[
    Load {
        name: "strings of 32 bytes",
        commands: 500_000,
        items: 1,
        command: |n| words(&["SET", &key(n), &format!("{n:032}")]),
    },
    Load {
        name: "the same with a deadline",
        commands: 500_000,
        items: 1,
        command: |n| words(&["SET", &key(n), &format!("{n:032}"), "EX", "100000"]),
    },
    Load { name: "counters", commands: 500_000, items: 1, command: |n| words(&["SET", &key(n), &n.to_string()]) },
    Load { name: "recency lists of 30, an entry", commands: 30_000, items: 30, command: recency_list },
    Load {
        name: "one leaderboard, a member",
        commands: 500_000,
        items: 1,
        command: |n| words(&["ZADD", "board", &scattered(n).to_string(), &format!("user-{n}")]),
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    let programs: Vec<String> = std::env::args().skip(1).collect();
    if programs.is_empty() {
        return Err("name the servers to compare, such as target/release/dunlin /usr/bin/redis-server".into());
    }
    println!("{:<32} {}", "resident bytes for each", programs.join("  "));
    for load in LOADS {
        let bytes = programs.iter().map(|program| bytes_an_item(program, load).map(|bytes| format!("{bytes:.1}")));
        println!("{:<32} {}", load.name, bytes.collect::<Result<Vec<_>, _>>()?.join("  "));
    }
    for program in &programs {
        let (mean, worst) = stale_share(program)?;
        println!(
            "expired keys that linger: {:.2} % in the mean, {:.1} % at worst  {program}",
            mean * 100.0,
            worst * 100.0
        );
    }
    Ok(())
}

fn bytes_an_item(program: &str, load: &Load) -> Result<f64, Box<dyn Error>> {
    let mut peer = Peer::start(program)?;
    let before = peer.resident_bytes()?;
    peer.call_all((0..load.commands).map(load.command))?;
    let after = peer.resident_bytes()?;
    Ok((after as f64 - before as f64) / (load.commands * load.items) as f64)
}

/// The share of keys past their deadline that DBSIZE still counts, while 200,000 keys fall due within two seconds.
fn stale_share(program: &str) -> Result<(f64, f64), Box<dyn Error>> {
    const KEYS: usize = 200_000;
    const SPREAD_MS: usize = 2000;
    let mut peer = Peer::start(program)?;
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as usize;
    let first_ms = now_ms + 4000;
    let deadline = |n: usize| (first_ms + n * SPREAD_MS / KEYS).to_string();
    peer.call_all((0..KEYS).map(|n| words(&["SET", &key(n), "v", "PXAT", &deadline(n)])))?;
    let (mut shares, end) = (Vec::new(), Instant::now() + Duration::from_millis(4000 + SPREAD_MS as u64 + 500));
    while Instant::now() < end {
        let size = peer.integer(&words(&["DBSIZE"]))?;
        let past_ms = (SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as usize).saturating_sub(first_ms);
        let alive = KEYS - (past_ms * KEYS / SPREAD_MS).min(KEYS);
        if past_ms > 0 {
            shares.push(size.saturating_sub(alive) as f64 / KEYS as f64);
        }
    }
    let worst = shares.iter().copied().fold(0.0, f64::max);
    Ok((shares.iter().sum::<f64>() / shares.len().max(1) as f64, worst))
}

fn recency_list(n: usize) -> Vec<String> {
    let mut command = words(&["ZADD", &format!("rv:{n:09}")]);
    for entry in 0..30 {
        command.push((1_569_230_000 + n + entry).to_string());
        command.push((100_000_000 + scattered(n * 30 + entry) % 900_000_000).to_string());
    }
    command
}

fn key(n: usize) -> String {
    format!("session:{n:08}")
}

/// A number that looks random, the same for the same `n`.
fn scattered(n: usize) -> usize {
    ((n as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24) as usize
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
