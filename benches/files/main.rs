//! Costs of files: writes with and without an append-only file, and saving and loading.
//!
//! `cargo bench --bench files -- PROGRAM ...` starts this server and each program, which takes redis-server's command
//! line, anew for each row, with a folder of its own:
//!
//! - The rows of the append-only file are the commands a second, and the wait of one in a thousand, of clients that
//!   SET, or GET beside others that SET; each policy of `appendfsync` beside none.
//! - The rows of the RDB file are the keys a second of SAVE and of DEBUG RELOAD NOSAVE, and those of loading an
//!   append-only file the commands a second of DEBUG LOADAOF. The process that loads is not the one that saved, as
//!   after a restart: that one would find the keys in the order of its own table.
//! - The rows of BGSAVE and BGREWRITEAOF are of a client that writes meanwhile: its longest wait, the share of its
//!   requests a second that are served beside those without a save, over the whole save and for the worst thousand of
//!   requests, and the memory that is added.
//!
//! `--only NAME,...`, `--rounds N` and `--seconds S` are those of the bench `peers`; of several rounds the median is
//! shown. Without `--bench`, as in tests, all is short.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]
#![expect(clippy::disallowed_methods, reason = "a bench asks the clock")]

mod save_under_writes;
#[path = "../support/mod.rs"]
mod support;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use support::load::{self, Outcome, Shape};
use support::peer::Peer;
use support::plan::Plan;
use support::requests::Requests;

/// The commands that change and read the data, and the number of keys.
const WRITES: &[&str] = &["SET key:{key} 0123456789abcdef0123456789abcdef"];
const READS: &[&str] = &["GET key:{key}"];
const KEYS: u64 = 100_000;

/// When the append-only file is synced; an empty name for none.
const POLICIES: [&str; 4] = ["", "no", "everysec", "always"];

const SHAPES: [(&str, Shape); 3] = [
    ("1 client", Shape { connections: 1, operations_in_flight: 1 }),
    ("50 clients", Shape { connections: 50, operations_in_flight: 1 }),
    ("8 clients, 16 in flight", Shape { connections: 8, operations_in_flight: 16 }),
];

/// Data that are saved and loaded: what they are, the commands that make a key, and the number of keys.
const DATA: [(&str, &[&str], u64); 8] = [
    ("strings of 16 bytes", &["SET key:{serial} 0123456789abcdef"], 500_000),
    ("strings with a deadline", &["SET key:{serial} 0123456789abcdef EX 100000"], 300_000),
    ("strings of 1 KB", &["SET key:{serial} {value:1000}"], 100_000),
    ("hashes of 20", &["HSET hash:{serial} [field:{n} {random}]*20"], 50_000),
    ("sets of 30", &["SADD set:{serial} [member:{random}]*30"], 50_000),
    ("sorted sets of 30", &["ZADD zset:{serial} [{random} member:{n}]*30"], 50_000),
    ("lists of 100", &["RPUSH list:{serial} [{random}]*100"], 20_000),
    ("streams of 20", &["XADD stream:{serial} * field {random}"; 20], 20_000),
];

/// Changes that are loaded from an append-only file: what they are, the command, and how many there are.
const CHANGES: [(&str, &[&str], u64); 4] = [
    ("SET", WRITES, 500_000),
    ("HSET", &["HSET hash:{key:1000} field:{random:100} {random}"], 500_000),
    ("ZADD", &["ZADD zset:{key:1000} {random} member:{random:100}"], 500_000),
    ("RPUSH and LPOP", &["RPUSH list:{key:1000} {random}", "LPOP list:{key:1000}"], 250_000),
];

/// The sync that comes next takes that long, as of a disk that others keep busy; only this server can do that.
const STALL: [&str; 10] = ["DUNLIN", "FAULT", "ADD", "stall", "DISK", "SYNC", "TIMES", "1", "DELAY", "3000"];
/// Long enough for a sync each second, and for the one that takes longer.
const STALLED_LENGTH: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let plan = Plan::of(std::env::args().skip(1), Duration::from_secs(2))?;
    println!("{}\n", support::machine());
    println!("| | {} |", support::names(&plan)?.join(" | "));
    println!("|---|{}", "---:|".repeat(plan.programs.len()));
    for (clients, shape) in SHAPES {
        for policy in POLICIES {
            let name = format!("SET, {clients}, {}", policy_name(policy));
            print_row(&plan, &name, |program| appended(&plan, program, policy, shape))?;
        }
    }
    for policy in ["", "always"] {
        let name = policy_name(policy);
        print_row(&plan, &format!("GET beside SET of 50 clients, {name}"), |program| {
            read_beside(&plan, program, policy)
        })?;
    }
    print_row(&plan, "SET, 1 client, appendfsync everysec while a sync takes 3 s", |program| stalled(&plan, program))?;
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
    for (name, commands, operations) in CHANGES {
        let operations = plan.scaled(operations);
        print_row(&plan, &format!("load of an append-only file of {name}"), |program| {
            let (peer, folder) = start(program, &["--appendonly", "yes"], make_folder()?)?;
            fill_with(&peer, commands, operations)?;
            drop(peer);
            let (mut peer, folder) = start(program, &["--appendonly", "yes"], folder)?;
            while !is_loaded(&mut peer) {}
            let figure = rate(operations * commands.len() as u64, timed(&mut peer, &["DEBUG", "LOADAOF"])?);
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

/// The name of a policy of `appendfsync`, as rows have it.
fn policy_name(policy: &str) -> String {
    if policy.is_empty() { "no append-only file".to_owned() } else { format!("appendfsync {policy}") }
}

/// Starts a server with an append-only file of that policy.
fn start_appending(program: &Path, policy: &str) -> Result<(Peer, PathBuf), Box<dyn Error>> {
    let with_file = ["--appendonly", "yes", "--appendfsync", policy];
    start(program, if policy.is_empty() { &[] } else { &with_file }, make_folder()?)
}

/// Writes to a server with an append-only file of that policy.
fn appended(plan: &Plan, program: &Path, policy: &str, shape: Shape) -> Result<Figure, Box<dyn Error>> {
    let (peer, folder) = start_appending(program, policy)?;
    let outcome = load::drive(peer.address(), shape, &mut Requests::new(WRITES, KEYS, &[], 1), plan.length)?;
    let figure = rate_and_wait(&outcome)?;
    remove(peer, &folder)?;
    Ok(figure)
}

/// Reads from a server of which 50 other clients write to an append-only file of that policy.
fn read_beside(plan: &Plan, program: &Path, policy: &str) -> Result<Figure, Box<dyn Error>> {
    let (peer, folder) = start_appending(program, policy)?;
    let drive = |templates: &[&str], connections| {
        let shape = Shape { connections, operations_in_flight: 1 };
        load::drive(peer.address(), shape, &mut Requests::new(templates, KEYS, &[], 1), plan.length)
    };
    let figure = thread::scope(|scope| {
        let writers = scope.spawn(|| drive(WRITES, 50));
        let figure = rate_and_wait(&drive(READS, 4)?)?;
        writers.join().expect("the writers do not panic")?;
        Ok::<Figure, Box<dyn Error>>(figure)
    })?;
    remove(peer, &folder)?;
    Ok(figure)
}

/// Writes to a server that syncs each second, of which one sync takes long; nothing for others than ours.
fn stalled(plan: &Plan, program: &Path) -> Result<Figure, Box<dyn Error>> {
    if program != plan.programs[0] {
        return Ok(Figure { order: 0.0, text: "-".to_owned() });
    }
    let words = ["--appendonly", "yes", "--appendfsync", "everysec", "--test-kit", "yes"];
    let (mut peer, folder) = start(program, &words, make_folder()?)?;
    timed(&mut peer, &STALL)?;
    let shape = Shape { connections: 1, operations_in_flight: 1 };
    let length = if plan.is_short() { plan.length } else { STALLED_LENGTH };
    let outcome = load::drive(peer.address(), shape, &mut Requests::new(WRITES, KEYS, &[], 1), length)?;
    let figure = rate_and_wait(&outcome)?;
    remove(peer, &folder)?;
    Ok(figure)
}

/// The commands a second of a load, and the wait of one in a thousand.
fn rate_and_wait(outcome: &Outcome) -> Result<Figure, Box<dyn Error>> {
    if let Some(error) = &outcome.first_error {
        return Err(error.as_str().into());
    }
    let one_in_a_thousand = outcome.waits.get(outcome.waits.len() * 999 / 1000).copied().unwrap_or_default();
    let Figure { order, text } = rate(outcome.commands, outcome.elapsed);
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
    fill_with(&peer, commands, operations)?;
    Ok((peer, folder))
}

fn fill_with(peer: &Peer, commands: &[&str], operations: u64) -> io::Result<Outcome> {
    let mut requests = Requests::new(commands, KEYS, &[], 1);
    load::fill(peer.address(), Shape { connections: 4, operations_in_flight: 32 }, &mut requests, operations)
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
