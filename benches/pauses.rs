//! The longest time that a client may wait for the engine: from the end of one request to the end of the next.
//!
//! `cargo bench --bench pauses` drives the engine as the server does, without sockets: after each request the keys that
//! are due are removed a slice at a time, and what is large is dropped by another thread. A row is one kind of work,
//! with small requests in between. Without `--bench`, as in tests, every number is a hundredth.
//!
//! The work of a row is the same in every round, request by request: the clock is driven, a microsecond a request. So
//! the engine's own time for a request is the same in each round, while a processor taken away, or a page that the
//! system clears, hits another request each time. So a row shows the distribution of each request's least time over
//! all rounds, and beside that the longest request of a single round.
//!
//! The least times hide delays that hit another request each time but are the engine's own: above all, waiting for the
//! allocator while the other thread frees. The pause of a client is between the longest least time and the last column.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]
#![expect(clippy::disallowed_methods, reason = "a bench asks the clock")]

use dunlin::commands::FAMILIES;
use dunlin::engine::exec::kit::tree;
use dunlin::engine::exec::persistence;
use dunlin::engine::state::host::NoHost;
use dunlin::engine::state::kit::tree::{TreeOrder, TreeQuery};
use dunlin::engine::{Checkpoint, Effect, Engine, Now, Origin, SessionId, Settings, Table};
use dunlin::keyspace::LazyFree;
use dunlin::resp::{Request, Span};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

const MILLION: usize = 1_000_000;
const ROUNDS: usize = 3;
/// The number of keys that the server's timer removes at a time.
const SLICE_KEYS: usize = 64;
/// The number of members that one request adds or removes, where there are many.
const BATCH: usize = 20;
const SMALL_REQUEST_KEYS: usize = 1000;
/// The moment when the driven clock starts, in 2023.
const START_US: i64 = 1_700_000_000_000_000;

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let million = if is_bench { MILLION } else { MILLION / 100 };
    println!("{:54} {:>26} {:>12}", "", "p50 p99.99 longest, us", "one round");
    let kinds = [
        grow_and_save_keyspace,
        save_collections,
        expire_many,
        remove_sets,
        flush,
        remove_ranges,
        grow_and_shrink_set,
        change_while_saved,
        acknowledge_while_saved,
        count_tree,
    ];
    kinds.iter().for_each(|work| measure(*work, million));
}

/// Runs the work in rounds, and prints its rows.
fn measure(work: fn(&mut DrivenEngine, usize), million: usize) {
    let round = || {
        let mut driven = DrivenEngine::start();
        work(&mut driven, million);
        driven.end()
    };
    let mut rows = round();
    let as_it_was: Vec<u32> = rows.iter().map(|row| longest(&row.times_ns)).collect();
    for _ in 1..ROUNDS {
        rows.iter_mut().zip(round()).for_each(|(row, again)| row.keep_shortest(&again));
    }
    rows.iter_mut().zip(as_it_was).for_each(|(row, longest_ns)| row.print(longest_ns));
}

fn grow_and_save_keyspace(driven: &mut DrivenEngine, million: usize) {
    (0..10 * million).for_each(|number| driven.ask(&["SET", &format!("key:{number:08}"), "some-value-of-20-byte"]));
    driven.report("grow to 10 M keys");
    driven.ask(&["BGSAVE"]);
    driven.report("BGSAVE of 10 M keys: the cut");
    let changed = (0..million / 10).map(|number| number * 7919 % (10 * million));
    changed.for_each(|number| driven.ask(&["SET", &format!("key:{number:08}"), "another-value-of-size"]));
    driven.report("SET into 10 M keys that are being saved");
    driven.end_save();
    driven.report("the end of that save");
}

fn save_collections(driven: &mut DrivenEngine, million: usize) {
    (0..million).for_each(|number| driven.ask(&["RPUSH", &format!("key:{number:08}"), "element"]));
    driven.restart();
    driven.ask(&["BGSAVE"]);
    driven.report("BGSAVE of 1 M lists: the cut");
    driven.run_small_requests(million / 5);
    driven.end_save();
    driven.report("SET beside that save, and its end");
}

fn expire_many(driven: &mut DrivenEngine, million: usize) {
    let first_ms = START_US / 1000 + 2 * million as i64 / 1000;
    for number in 0..million {
        let deadline_ms = first_ms + (number % 1000) as i64;
        driven.ask(&["SET", &format!("key:{number:08}"), "value", "PXAT", &deadline_ms.to_string()]);
    }
    driven.report("set 1 M keys with deadlines in one second");
    while driven.engine.databases.len() > SMALL_REQUEST_KEYS {
        driven.run_small_requests(1);
    }
    driven.report("1 M keys fall due in that second");
}

fn remove_sets(driven: &mut DrivenEngine, million: usize) {
    let names = ["deleted", "unlinked", "overwritten", "renamed-over", "expired"];
    names.iter().for_each(|name| driven.fill_set(name, million));
    driven.report("ZADD 20 members a request to five sets of 1 M");
    let mut case = |words: &[&str]| {
        driven.ask(words);
        driven.run_small_requests(million / 5);
        driven.report(&format!("{} of a sorted set of 1 M", words.join(" ")));
    };
    case(&["DEL", "deleted"]);
    case(&["UNLINK", "unlinked"]);
    case(&["SET", "overwritten", "value"]);
    case(&["RENAME", "overwritten", "renamed-over"]);
    case(&["PEXPIRE", "expired", "10"]);
}

fn flush(driven: &mut DrivenEngine, million: usize) {
    (0..5 * million).for_each(|number| driven.ask(&["SET", &format!("key:{number:08}"), "value"]));
    driven.restart();
    driven.ask(&["FLUSHALL"]);
    driven.run_small_requests(million);
    driven.report("FLUSHALL of 5 M keys");
}

fn remove_ranges(driven: &mut DrivenEngine, million: usize) {
    let (few, last) = (30.to_string(), (million / 2).to_string());
    for (start, stop, what) in [("0", "-1", "all"), (&few, "-1", "all but 30"), ("0", &last, "half")] {
        driven.fill_set("set", million);
        driven.restart();
        driven.ask(&["ZREMRANGEBYRANK", "set", start, stop]);
        driven.run_small_requests(million / 5);
        driven.report(&format!("ZREMRANGEBYRANK of {what} of 1 M members"));
        driven.ask(&["DEL", "set"]);
    }
}

fn grow_and_shrink_set(driven: &mut DrivenEngine, million: usize) {
    driven.fill_set("set", 2 * million);
    driven.report("ZADD 20 members a request, up to 2 M");
    for start in (0..2 * million).step_by(BATCH) {
        let members: Vec<String> = (start..start + BATCH).map(member).collect();
        let words = ["ZREM", "set"].into_iter().chain(members.iter().map(String::as_str)).collect::<Vec<&str>>();
        driven.ask(&words);
    }
    driven.report("ZREM 20 members a request, down to none");
}

/// Changes large collections while a save shares them, as a thread of the server would that writes the file. The last
/// request of a row gives back what was shared.
fn change_while_saved(driven: &mut DrivenEngine, million: usize) {
    let write = |kind: &str, number: usize, driven: &mut DrivenEngine| match kind {
        "ZADD" => driven.ask(&["ZADD", "large", &(number * 7919 % 1_000_003).to_string(), &member(number % million)]),
        "HSET" => driven.ask(&["HSET", "large", &member(number % million), &number.to_string()]),
        "XADD" => driven.ask(&["XADD", "large", &format!("{}-1", number + 1), "field", &member(number)]),
        kind => driven.ask(&[kind, "large", &member(number)]),
    };
    for kind in ["ZADD", "HSET", "SADD", "RPUSH", "XADD"] {
        (0..million).for_each(|number| write(kind, number, driven));
        driven.restart();
        driven.ask(&["BGSAVE"]);
        (million..million + million / 50).for_each(|number| write(kind, number * 31, driven));
        driven.end_save();
        driven.report(&format!("{kind} into a collection of 1 M that is being saved"));
        driven.ask(&["DEL", "large"]);
    }
}

/// Acknowledges entries of a group while a save shares them.
fn acknowledge_while_saved(driven: &mut DrivenEngine, million: usize) {
    let id = |number: usize| format!("{}-1", number + 1);
    (0..million).for_each(|number| driven.ask(&["XADD", "large", &id(number), "field", "value"]));
    driven.ask(&["XGROUP", "CREATE", "large", "group", "0"]);
    for number in 0..million / BATCH {
        let consumer = format!("consumer-{}", number % 10);
        driven.ask(&["XREADGROUP", "GROUP", "group", &consumer, "COUNT", &BATCH.to_string(), "STREAMS", "large", ">"]);
    }
    driven.restart();
    driven.ask(&["BGSAVE"]);
    (0..million / 50).for_each(|number| driven.ask(&["XACK", "large", "group", &id(number * 31)]));
    driven.end_save();
    driven.report("XACK in a group of 1 M entries that is being saved");
}

/// Counts keys as DUNLIN TREE has it done, by a thread that reads them frozen while clients change others. The first
/// request of the row freezes them, and the last gives back what was shared.
fn count_tree(driven: &mut DrivenEngine, million: usize) {
    let set = |number: usize, driven: &mut DrivenEngine| {
        driven.ask(&["SET", &format!("space:{}:{number}", number % 1000), "some-value-of-20-byte"]);
    };
    (0..million).for_each(|number| set(number, driven));
    driven.restart();
    let query = TreeQuery {
        database: 0,
        prefix: Vec::new(),
        delimiter: b":".to_vec(),
        depth: 1,
        limit: 100,
        order: TreeOrder::Keys,
    };
    let frozen = driven.measure(|engine| tree::freeze(engine, &query)).expect("no save shares the keys");
    (0..million / 5).for_each(|number| set(number * 7919 % million, driven));
    tree::count_frozen(&frozen, &query);
    drop(frozen);
    driven.measure(persistence::reclaim);
    driven.report("SET into 1 M keys that are being counted");
}

fn member(number: usize) -> String {
    format!("user-{number}")
}

/// The engine, with a lazy-free thread as in the server, on a driven clock.
struct DrivenEngine {
    engine: Engine,
    client: SessionId,
    buffer: Vec<u8>,
    spans: Vec<Span>,
    reply: Vec<u8>,
    lazy_free_thread: Sender<LazyFree>,
    saved: Option<Box<Checkpoint>>,
    freeing: JoinHandle<()>,
    now_us: i64,
    small_requests: usize,
    last: Instant,
    times_ns: Vec<u32>,
    rows: Vec<Row>,
}

impl DrivenEngine {
    fn start() -> DrivenEngine {
        let (table, now) = (Table::of(FAMILIES), Now::from_us(START_US));
        let mut engine = Engine::new(table, Settings::default(), 1, now, Box::new(NoHost::default()));
        let client = engine.connect(now, Origin::default()).expect("the first client is welcome");
        let (lazy_free_thread, arrivals) = channel::<LazyFree>();
        let freeing = thread::spawn(move || arrivals.into_iter().for_each(drop));
        DrivenEngine {
            engine,
            client,
            buffer: Vec::new(),
            spans: Vec::new(),
            reply: Vec::new(),
            lazy_free_thread,
            saved: None,
            freeing,
            now_us: START_US,
            small_requests: 0,
            last: Instant::now(),
            times_ns: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Serves a request, and then does what the server does between two requests.
    fn ask(&mut self, words: &[&str]) {
        self.buffer.clear();
        self.spans.clear();
        self.reply.clear();
        for word in words {
            let start = self.buffer.len();
            self.buffer.extend_from_slice(word.as_bytes());
            self.spans.push(Span { start, end: self.buffer.len() });
        }
        self.now_us += 1;
        let now = Now::from_us(self.now_us);
        let request = Request::new(&self.buffer, &self.spans);
        self.engine.run(now, self.client, request, &mut self.reply);
        self.engine.finish(now, request);
        assert!(!self.reply.starts_with(b"-"), "{words:?} was refused");
        if self.engine.next_due().is_some_and(|due| due <= now) {
            self.engine.run_due(now, SLICE_KEYS);
        }
        self.carry_out_effects();
        self.times_ns.push(u32::try_from(self.last.elapsed().as_nanos()).unwrap_or(u32::MAX));
        self.last = Instant::now();
    }

    fn carry_out_effects(&mut self) {
        for effect in self.engine.effects.take() {
            match effect {
                Effect::Free(lazy_free) => {
                    self.lazy_free_thread.send(lazy_free).expect("the thread lives as long as the engine");
                }
                Effect::Save(checkpoint) => self.saved = Some(checkpoint),
                _ => {}
            }
        }
    }

    /// Ends a save in the background. Its end counts as a request, but not what its thread frees.
    fn end_save(&mut self) {
        let id = self.saved.take().map_or(0, |checkpoint| checkpoint.id());
        self.measure(|engine| engine.end_save(id, Ok(())));
    }

    /// Has another thread's order carried out under the lock, which counts as a request.
    fn measure<R>(&mut self, order: impl FnOnce(&mut Engine) -> R) -> R {
        self.last = Instant::now();
        let result = order(&mut self.engine);
        self.carry_out_effects();
        self.times_ns.push(u32::try_from(self.last.elapsed().as_nanos()).unwrap_or(u32::MAX));
        self.last = Instant::now();
        result
    }

    /// Serves small requests, as other clients send them.
    fn run_small_requests(&mut self, requests: usize) {
        for _ in 0..requests {
            self.small_requests += 1;
            self.ask(&["SET", &format!("small:{}", self.small_requests % SMALL_REQUEST_KEYS), "some-value"]);
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

    /// Discards all measurements.
    fn restart(&mut self) {
        self.times_ns.clear();
        self.last = Instant::now();
    }

    /// Makes a row of the measurements since the last row.
    fn report(&mut self, name: &str) {
        self.rows.push(Row { name: name.to_owned(), times_ns: std::mem::take(&mut self.times_ns) });
        self.restart();
    }

    /// Waits until everything is freed, so that the next engine has the machine for itself.
    fn end(self) -> Vec<Row> {
        drop((self.engine, self.lazy_free_thread));
        self.freeing.join().expect("dropping does not panic");
        self.rows
    }
}

/// One kind of work, with the time of each of its requests.
struct Row {
    name: String,
    times_ns: Vec<u32>,
}

impl Row {
    fn keep_shortest(&mut self, again: &Row) {
        assert_eq!(self.times_ns.len(), again.times_ns.len(), "{} is the same work in each round", self.name);
        self.times_ns.iter_mut().zip(&again.times_ns).for_each(|(least, time)| *least = (*least).min(*time));
    }

    fn print(&mut self, longest_of_one_round_ns: u32) {
        self.times_ns.sort_unstable();
        let us = |time_ns: u32| f64::from(time_ns) / 1000.0;
        let quantile = |part: f64| us(self.times_ns[((self.times_ns.len() - 1) as f64 * part) as usize]);
        let (median, high, longest) = (quantile(0.5), quantile(0.9999), quantile(1.0));
        println!("{:54} {median:7.1} {high:8.1} {longest:9.1} {:12.1}", self.name, us(longest_of_one_round_ns));
    }
}

fn longest(times_ns: &[u32]) -> u32 {
    times_ns.iter().copied().max().unwrap_or(0)
}
