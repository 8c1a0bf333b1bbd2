//! Costs of files: writes with and without an append-only file, and saving and loading.
//!
//! `cargo bench --bench files -- PROGRAM ...` starts this server and each program, which takes redis-server's command
//! line, anew for each row, with a folder of its own. The rows of the append-only file are the commands a second, and
//! the wait of one in a thousand, of clients that SET; each policy of `appendfsync` beside none. The rows of the RDB
//! file are the keys a second of SAVE and of DEBUG RELOAD NOSAVE; the process that loads is not the one that saved, as
//! after a restart: that one would find the keys in the order of its own table. The rows of BGSAVE and BGREWRITEAOF are
//! of a client that writes meanwhile: its longest wait, the share of its requests a second that are served beside those
//! without a save, and the memory that is added. `--only NAME,...`, `--rounds N` and `--seconds S` are those of the
//! bench `peers`; of several rounds the median is shown. Without `--bench`, as in tests, all is short.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]
#![expect(clippy::disallowed_methods, reason = "a bench asks the clock")]

mod save_under_writes;
#[path = "../support/mod.rs"]
mod support;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use support::load::{self, Shape};
use support::peer::Peer;
use support::plan::Plan;
use support::requests::Requests;

/// The commands that change the data, and the number of keys.
const WRITES: &[&str] = &["SET key:{key} 0123456789abcdef0123456789abcdef"];
const KEYS: u64 = 100_000;

/// When the append-only file is synced; an empty name for none.
const POLICIES: [&str; 4] = ["", "no", "everysec", "always"];

const SHAPES: [(&str, Shape); 3] = [
    ("1 client", Shape { connections: 1, operations_in_flight: 1 }),
    ("50 clients", Shape { connections: 50, operations_in_flight: 1 }),
    ("8 clients, 16 in flight", Shape { connections: 8, operations_in_flight: 16 }),
];

/// Data that are saved and loaded: what they are, the commands that make them, and the number of keys.
const DATA: [(&str, &[&str], u64); 5] = [
    ("strings of 16 bytes", &["SET key:{serial} 0123456789abcdef"], 500_000),
    ("strings with a deadline", &["SET key:{serial} 0123456789abcdef EX 100000"], 300_000),
    ("hashes of 20", &["HSET hash:{serial} [field:{n} {random}]*20"], 50_000),
    ("sorted sets of 30", &["ZADD zset:{serial} [{random} member:{n}]*30"], 50_000),
    ("lists of 100", &["RPUSH list:{serial} [{random}]*100"], 20_000),
];

fn main() -> Result<(), Box<dyn Error>> {
    let plan = Plan::of(std::env::args().skip(1), Duration::from_secs(2))?;
    println!("{}\n", support::machine());
    println!("| | {} |", support::names(&plan)?.join(" | "));
    println!("|---|{}", "---:|".repeat(plan.programs.len()));
    for (clients, shape) in SHAPES {
        for policy in POLICIES {
            let name =
                if policy.is_empty() { "no append-only file".to_owned() } else { format!("appendfsync {policy}") };
            print_row(&plan, &format!("SET, {clients}, {name}"), |program| appended(&plan, program, policy, shape))?;
        }
    }
    for (name, commands, keys) in DATA {
        let keys = plan.scaled(keys);
        print_row(&plan, &format!("SAVE of {name}"), |program| {
            let (mut peer, folder) = filled(program, commands, keys)?;
            let figure = rate(keys, timed(&mut peer, &["SAVE"])?);
            remove(peer, &folder)?;
            Ok(figure)
        })?;
        print_row(&plan, &format!("load of {name}"), |program| {
            let (mut peer, folder) = filled(program, commands, keys)?;
            timed(&mut peer, &["SAVE"])?;
            drop(peer);
            let (mut peer, folder) = start(program, &[], folder)?;
            while !is_loaded(&mut peer) {}
            let figure = rate(keys, timed(&mut peer, &["DEBUG", "RELOAD", "NOSAVE"])?);
            remove(peer, &folder)?;
            Ok(figure)
        })?;
    }
    for save in save_under_writes::SAVES {
        for data in save_under_writes::DATA {
            print_row(&plan, &format!("{} under writes into {}", save.command, data.name), |program| {
                save_under_writes::measure(&plan, program, &save, &data)
            })?;
        }
    }
    Ok(())
}

/// A figure of a server as it is shown; the median is that of `order`.
struct Figure {
    order: f64,
    text: String,
}

/// Prints the median of all rounds for each server, in each round one server after the other.
fn print_row(
    plan: &Plan,
    name: &str,
    measure: impl Fn(&Path) -> Result<Figure, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    if !plan.includes(name) {
        return Ok(());
    }
    let mut servers: Vec<Vec<Figure>> = plan.programs.iter().map(|_| Vec::new()).collect();
    for _ in 0..plan.rounds {
        for (program, figures) in plan.programs.iter().zip(&mut servers) {
            figures.push(measure(program)?);
        }
    }
    let shown: Vec<String> = servers.iter_mut().map(|figures| median(figures)).collect();
    println!("| {name} | {} |", shown.join(" | "));
    Ok(())
}

fn median(figures: &mut [Figure]) -> String {
    figures.sort_by(|one, other| one.order.total_cmp(&other.order));
    figures[figures.len() / 2].text.clone()
}

fn rate(count: u64, time: Duration) -> Figure {
    let a_second = count as f64 / time.as_secs_f64();
    Figure { order: a_second, text: format!("{:.1} k/s", a_second / 1000.0) }
}

/// Writes to a server with an append-only file of that policy.
fn appended(plan: &Plan, program: &Path, policy: &str, shape: Shape) -> Result<Figure, Box<dyn Error>> {
    let folder = make_folder()?;
    let with_file = ["--appendonly", "yes", "--appendfsync", policy];
    let (peer, path) = start(program, if policy.is_empty() { &[] } else { &with_file }, folder)?;
    let mut requests = Requests::new(WRITES, KEYS, &[], 1);
    let outcome = load::drive(peer.address(), shape, &mut requests, plan.length)?;
    if outcome.errors > 0 {
        return Err(format!("{}: {} errors", program.display(), outcome.errors).into());
    }
    let one_in_a_thousand = outcome.waits.get(outcome.waits.len() * 999 / 1000).copied().unwrap_or_default();
    let Figure { order, text } = rate(outcome.commands, outcome.elapsed);
    remove(peer, &path)?;
    Ok(Figure { order, text: format!("{text}, {:.2} ms", one_in_a_thousand.as_secs_f64() * 1000.0) })
}

fn make_folder() -> Result<PathBuf, Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("dunlin-bench-files-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn start(program: &Path, words: &[&str], folder: PathBuf) -> Result<(Peer, PathBuf), Box<dyn Error>> {
    let dir = folder.to_str().ok_or("the folder's name is no text")?;
    let peer = Peer::start_with(program, &[&["--dir", dir, "--enable-debug-command", "yes"], words].concat())?;
    Ok((peer, folder))
}

/// A server with that many operations done.
fn filled(program: &Path, commands: &[&str], operations: u64) -> Result<(Peer, PathBuf), Box<dyn Error>> {
    let (peer, folder) = start(program, &[], make_folder()?)?;
    let mut requests = Requests::new(commands, KEYS, &[], 1);
    load::fill(peer.address(), Shape { connections: 4, operations_in_flight: 32 }, &mut requests, operations)?;
    Ok((peer, folder))
}

/// Whether a server that was just started has loaded its file.
fn is_loaded(peer: &mut Peer) -> bool {
    peer.integer(&["DBSIZE".to_owned()]).is_ok()
}

/// The time that a command takes.
fn timed(peer: &mut Peer, command: &[&str]) -> Result<Duration, Box<dyn Error>> {
    let words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    let start = Instant::now();
    peer.call_all(std::iter::once(words))?;
    Ok(start.elapsed())
}

/// Ends a server and removes its folder.
fn remove(peer: Peer, folder: &Path) -> Result<(), Box<dyn Error>> {
    drop(peer);
    fs::remove_dir_all(folder)?;
    Ok(())
}
