//! How long a client may have to wait for the engine: the time from one request served to the next, at its longest.
//!
//! `cargo bench --bench pauses` drives the engine as the server does, without sockets: after each request the keys that
//! are due are removed a slice at a time, and what is large is dropped by another thread. A row is one kind of work, with
//! small requests in between. Without `--bench`, as in tests, every number is a hundredth.
//!
//! On a shared machine the wall clock counts whoever else runs. The processor time of the thread does not, and misses what
//! the thread waits for (the allocator's locks, the kernel's): the truth lies between the two.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]
#![expect(clippy::disallowed_methods, reason = "a bench asks the clock")]

use dunlin::commands::FAMILIES;
use dunlin::engine::host::NoHost;
use dunlin::engine::{Effect, Engine, Now, Origin, SessionId, Settings, Table};
use dunlin::keyspace::Trash;
use dunlin::resp::{Request, Span};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

const MILLION: usize = 1_000_000;
/// As many keys as the server's keeper removes at a time.
const SLICE_KEYS: usize = 64;
/// Members that one request adds or removes, where there are many.
const BATCH: usize = 20;
const KEY_COUNT_OF_SMALL_TALK: usize = 1000;

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let million = if is_bench { MILLION } else { MILLION / 100 };
    println!("{:52} {:>26} {:>26}", "", "wall: p50 p99.99 max, us", "processor: the same");
    grow_keyspace(million);
    expire_many(million);
    remove_sets(million);
    flush(million);
    remove_ranges(million);
    grow_and_shrink_set(million);
}

fn grow_keyspace(million: usize) {
    let mut world = World::new();
    (0..10 * million).for_each(|number| world.ask(&["SET", &format!("key:{number:08}"), "some-value-of-20-byte"]));
    world.report("grow to 10 M keys");
    world.end();
}

fn expire_many(million: usize) {
    let mut world = World::new();
    let lead_ms = i64::try_from(million / 200).expect("small");
    let first_ms = now().unix_ms() + lead_ms;
    for number in 0..million {
        let deadline_ms = first_ms + (number % 1000) as i64;
        world.ask(&["SET", &format!("key:{number:08}"), "value", "PXAT", &deadline_ms.to_string()]);
    }
    world.report("set 1 M keys with deadlines in one second");
    while world.engine.databases.len() > KEY_COUNT_OF_SMALL_TALK {
        world.talk(1);
    }
    world.report("1 M keys fall due in that second");
    world.end();
}

fn remove_sets(million: usize) {
    let mut world = World::new();
    let names = ["deleted", "unlinked", "overwritten", "renamed-over", "expired"];
    names.iter().for_each(|name| world.fill_set(name, million));
    world.report("ZADD 20 members a request to five sets of 1 M");
    let talk = million / 5;
    let mut case = |words: &[&str]| {
        world.ask(words);
        world.talk(talk);
        world.report(&format!("{} of a sorted set of 1 M", words.join(" ")));
    };
    case(&["DEL", "deleted"]);
    case(&["UNLINK", "unlinked"]);
    case(&["SET", "overwritten", "value"]);
    case(&["RENAME", "overwritten", "renamed-over"]);
    case(&["PEXPIRE", "expired", "10"]);
    world.end();
}

fn flush(million: usize) {
    let mut world = World::new();
    (0..5 * million).for_each(|number| world.ask(&["SET", &format!("key:{number:08}"), "value"]));
    world.restart();
    world.ask(&["FLUSHALL"]);
    world.talk(million);
    world.report("FLUSHALL of 5 M keys");
    world.end();
}

fn remove_ranges(million: usize) {
    let mut world = World::new();
    let (few, last) = (30.to_string(), (million / 2).to_string());
    for (start, stop, what) in [("0", "-1", "all"), (&few, "-1", "all but 30"), ("0", &last, "half")] {
        world.fill_set("set", million);
        world.restart();
        world.ask(&["ZREMRANGEBYRANK", "set", start, stop]);
        world.talk(million / 5);
        world.report(&format!("ZREMRANGEBYRANK of {what} of 1 M members"));
        world.ask(&["DEL", "set"]);
    }
    world.end();
}

fn grow_and_shrink_set(million: usize) {
    let mut world = World::new();
    world.fill_set("set", 2 * million);
    world.report("ZADD 20 members a request, up to 2 M");
    for start in (0..2 * million).step_by(BATCH) {
        let members: Vec<String> = (start..start + BATCH).map(member).collect();
        let words = ["ZREM", "set"].into_iter().chain(members.iter().map(String::as_str)).collect::<Vec<&str>>();
        world.ask(&words);
    }
    world.report("ZREM 20 members a request, down to none");
    world.end();
}

fn member(number: usize) -> String {
    format!("user-{number}")
}

/// The engine with what the server has around it.
struct World {
    engine: Engine,
    client: SessionId,
    buffer: Vec<u8>,
    spans: Vec<Span>,
    reply: Vec<u8>,
    reaper: Sender<Trash>,
    reaping: JoinHandle<()>,
    meter: Meter,
    talked: usize,
}

impl World {
    fn new() -> World {
        let table = Table::of(FAMILIES);
        let mut engine = Engine::new(table, Settings::default(), 1, now(), Box::new(NoHost::default()));
        let client = engine.connect(now(), Origin::default()).expect("the first client is welcome");
        let (reaper, arrivals) = channel::<Trash>();
        let reaping = thread::spawn(move || arrivals.into_iter().for_each(drop));
        let (buffer, spans, reply) = (Vec::new(), Vec::new(), Vec::new());
        World { engine, client, buffer, spans, reply, reaper, reaping, meter: Meter::start(), talked: 0 }
    }

    /// Serves a request, and does what the server does between two.
    fn ask(&mut self, words: &[&str]) {
        self.buffer.clear();
        self.spans.clear();
        self.reply.clear();
        for word in words {
            let start = self.buffer.len();
            self.buffer.extend_from_slice(word.as_bytes());
            self.spans.push(Span { start, end: self.buffer.len() });
        }
        let now = now();
        let request = Request::new(&self.buffer, &self.spans);
        self.engine.run(now, self.client, request, &mut self.reply);
        self.engine.finish(now, request);
        assert!(!self.reply.starts_with(b"-"), "{words:?} was refused");
        if self.engine.next_deadline().is_some_and(|deadline_ms| deadline_ms <= now.unix_ms()) {
            self.engine.expire(now, SLICE_KEYS);
        }
        for effect in self.engine.effects.take() {
            if let Effect::Free(trash) = effect {
                self.reaper.send(trash).expect("the reaper lives as long as the world");
            }
        }
        self.meter.tick();
    }

    /// Small requests, as other clients have them.
    fn talk(&mut self, requests: usize) {
        for _ in 0..requests {
            self.talked += 1;
            self.ask(&["SET", &format!("talk:{}", self.talked % KEY_COUNT_OF_SMALL_TALK), "some-value"]);
        }
    }

    /// Gives a sorted set `len` members with scores in random order.
    fn fill_set(&mut self, key: &str, len: usize) {
        for start in (0..len).step_by(BATCH) {
            let entry = |number: usize| [(number * 7919 % 1_000_003).to_string(), member(number)];
            let entries: Vec<String> = (start..start + BATCH).flat_map(entry).collect();
            let words = ["ZADD", key].into_iter().chain(entries.iter().map(String::as_str)).collect::<Vec<&str>>();
            self.ask(&words);
        }
    }

    /// Forgets what was measured.
    fn restart(&mut self) {
        self.meter = Meter::start();
    }

    fn report(&mut self, name: &str) {
        println!("{name:52} {} {}", self.meter.wall.summary(), self.meter.processor.summary());
        self.restart();
    }

    /// Waits until everything is freed, so that the next world has the machine for itself.
    fn end(self) {
        drop((self.engine, self.reaper));
        self.reaping.join().expect("dropping does not panic");
    }
}

fn now() -> Now {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("later than 1970");
    Now::from_us(i64::try_from(since.as_micros()).expect("earlier than the year 294000"))
}

/// The times between ticks.
struct Meter {
    last: (Instant, Duration),
    wall: Histogram,
    processor: Histogram,
}

impl Meter {
    fn start() -> Meter {
        let (wall, processor) = (Histogram::new(), Histogram::new());
        Meter { last: (Instant::now(), processor_time()), wall, processor }
    }

    fn tick(&mut self) {
        let this = (Instant::now(), processor_time());
        self.wall.add(this.0 - self.last.0);
        self.processor.add(this.1.saturating_sub(self.last.1));
        self.last = this;
    }
}

/// The time that this thread has run.
#[cfg(target_os = "linux")]
fn processor_time() -> Duration {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock").into()
}

#[cfg(not(target_os = "linux"))]
fn processor_time() -> Duration {
    Duration::ZERO
}

/// How often each time came up, to an eighth.
struct Histogram {
    counts: Vec<u64>,
    longest: Duration,
}

const STEPS_PER_DOUBLING: u32 = 8;

impl Histogram {
    fn new() -> Histogram {
        Histogram { counts: vec![0; (u64::BITS * STEPS_PER_DOUBLING) as usize], longest: Duration::ZERO }
    }

    fn add(&mut self, time: Duration) {
        let time_ns = time.as_nanos() as u64 | u64::from(STEPS_PER_DOUBLING);
        let doubling = time_ns.ilog2() - STEPS_PER_DOUBLING.ilog2();
        let step = (time_ns >> doubling) as u32 - STEPS_PER_DOUBLING;
        self.counts[(doubling * STEPS_PER_DOUBLING + step) as usize] += 1;
        self.longest = self.longest.max(time);
    }

    /// The time, in microseconds, that a part of all does not exceed.
    fn quantile_us(&self, part: f64) -> f64 {
        let mut left = (self.counts.iter().sum::<u64>() as f64 * (1.0 - part)) as u64;
        let beyond = |&index: &usize| {
            let is_within = self.counts[index] > left;
            left = left.saturating_sub(self.counts[index]);
            is_within
        };
        let index = (0..self.counts.len()).rev().find(beyond).unwrap_or(0) as u32;
        let (doubling, step) = (index / STEPS_PER_DOUBLING, index % STEPS_PER_DOUBLING);
        ((u64::from(STEPS_PER_DOUBLING + step + 1) << doubling) as f64 / 1000.0).min(self.longest.as_secs_f64() * 1e6)
    }

    fn summary(&self) -> String {
        let longest_us = self.longest.as_secs_f64() * 1e6;
        format!("{:7.1} {:8.1} {longest_us:9.1}", self.quantile_us(0.5), self.quantile_us(0.9999))
    }
}
