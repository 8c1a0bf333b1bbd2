//! A save in the background, or a rewrite of the append-only file, while a client writes: the client's longest wait,
//! how many of its requests are served beside those without a save, and the memory that the save adds.
//!
//! One client sends one request at a time, so client and server together take one core and leave the other to the save.
//! With two cores the longest wait is nevertheless some time slices of the system, 2 to 10 ms, whichever the server:
//! the bench `pauses` measures the engine alone.
//!
//! The memory is that of the server and its child processes, each page divided by the number of those that share it
//! (Pss); the highest value of several during the save counts.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::load::{Clients, Outcome, Shape, Until, fill};
use crate::support::peer::Peer;
use crate::support::plan::Plan;
use crate::support::requests::Requests;
use crate::support::stream::Address;
use crate::{Figure, make_folder, remove, start};

/// What changes during the save.
pub struct Data {
    pub name: &'static str,
    /// The command that fills, and the number of elements that one of it adds.
    fill: &'static str,
    step: u64,
    elements: u64,
    /// The client's command.
    write: &'static str,
}

const MILLION: u64 = 1_000_000;

/// Every kind of data, and how a large collection of it is changed.
#[rustfmt::skip]
pub const DATA: [Data; 7] = [
    Data { name: "keys", fill: "SET key:{serial} 0123456789abcdef", step: 1, elements: MILLION,
        write: "SET key:{random:1000000} fedcba9876543210" },
    Data { name: "ten million keys", fill: "SET key:{serial} 0123456789abcdef", step: 1, elements: 10 * MILLION,
        write: "SET key:{random:10000000} fedcba9876543210" },
    Data { name: "a sorted set", fill: "ZADD large [{random} member:{item}]*100", step: 100, elements: MILLION,
        write: "ZADD large {random} member:{random:1000000}" },
    Data { name: "a hash", fill: "HSET large [field:{item} {random}]*100", step: 100, elements: MILLION,
        write: "HSET large field:{random:1000000} {random}" },
    Data { name: "a set", fill: "SADD large [member:{item}]*100", step: 100, elements: MILLION,
        write: "SADD large member:{random}" },
    Data { name: "a list", fill: "RPUSH large [{random}]*100", step: 100, elements: MILLION,
        write: "RPUSH large {random}" },
    Data { name: "a stream", fill: "XADD large * field {random}", step: 1, elements: MILLION,
        write: "XADD large * field {random}" },
];

/// A way to save in the background.
pub struct Save {
    pub command: &'static str,
    /// The line of INFO while it runs.
    progress: &'static str,
    /// Words on the server's command line: without an automatic rewrite, so that there is only the ordered one.
    words: &'static [&'static str],
}

pub const SAVES: [Save; 2] = [
    Save { command: "BGSAVE", progress: "rdb_bgsave_in_progress:1", words: &[] },
    Save {
        command: "BGREWRITEAOF",
        progress: "aof_rewrite_in_progress:1",
        words: &["--appendonly", "yes", "--auto-aof-rewrite-percentage", "0"],
    },
];

/// The number of other keys, which are saved with it.
const OTHER_KEYS: u64 = MILLION / 2;
const OTHERS: &str = "SET other:{serial} 0123456789abcdef0123456789abcdef";

/// Requests of the client between two looks at the server.
const REQUESTS: u64 = 1000;

/// Fills a server, and measures it without a save and during one.
pub fn measure(plan: &Plan, program: &Path, save: &Save, data: &Data) -> Result<Figure, Box<dyn Error>> {
    let (mut peer, folder) = start(program, save.words, make_folder()?)?;
    let shape = Shape { connections: 4, operations_in_flight: 32 };
    for (template, operations) in [(data.fill, data.elements / data.step), (OTHERS, OTHER_KEYS)] {
        fill(peer.address(), shape, &mut Requests::new(&[template], 1, &[], 1), plan.scaled(operations))?;
    }
    let mut requests = Requests::new(&[data.write], 1, &[], 2);
    let mut clients = Clients::open(&Address::Tcp(peer.address()), 1)?;
    let mut round = || clients.send(&mut requests, 1, Until::Operations(REQUESTS));

    let (mut before, begin) = (Sum::new(), Instant::now());
    while before.requests == 0 || begin.elapsed() < plan.length / 2 {
        before.add(&round()?);
    }
    let bytes = peer.proportional_bytes()?;
    let (mut during, mut most_bytes) = (Sum::new(), bytes);
    peer.send(&[save.command])?;
    during.add(&round()?);
    peer.receive()?;
    while is_saving(&mut peer, save)? {
        most_bytes = most_bytes.max(peer.proportional_bytes()?);
        during.add(&round()?);
    }
    remove(peer, &folder)?;
    let (longest_ms, added) = (during.longest.as_secs_f64() * 1000.0, most_bytes.saturating_sub(bytes));
    let text = format!(
        "{longest_ms:.2} ms, {:.0} % (worst {:.0} %) of {:.1} k/s, {:.1} MiB",
        100.0 * during.a_second() / before.a_second(),
        100.0 * during.worst / before.a_second(),
        before.a_second() / 1000.0,
        added as f64 / f64::from(1 << 20),
    );
    Ok(Figure { order: longest_ms, text })
}

fn is_saving(peer: &mut Peer, save: &Save) -> Result<bool, Box<dyn Error>> {
    Ok(peer.text(&["INFO".to_owned(), "persistence".to_owned()])?.contains(save.progress))
}

/// The requests of several rounds.
struct Sum {
    requests: u64,
    time: Duration,
    longest: Duration,
    /// The fewest requests a second of a round.
    worst: f64,
}

impl Sum {
    fn new() -> Sum {
        Sum { requests: 0, time: Duration::ZERO, longest: Duration::ZERO, worst: f64::INFINITY }
    }

    fn add(&mut self, outcome: &Outcome) {
        self.worst = self.worst.min(outcome.commands as f64 / outcome.elapsed.as_secs_f64());
        self.requests += outcome.commands;
        self.time += outcome.elapsed;
        self.longest = self.longest.max(outcome.waits.last().copied().unwrap_or_default());
    }

    fn a_second(&self) -> f64 {
        self.requests as f64 / self.time.as_secs_f64()
    }
}
