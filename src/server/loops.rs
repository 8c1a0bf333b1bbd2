//! The event loops of a server: which loop serves a client, what each loop has done, and how many are in use.
//!
//! Each client belongs to one loop: its arrival number modulo the number of loops in use. When the number in use
//! changes, a connection moves the next time it runs ([`super::connection`]), and takes its unsent replies along. An
//! idle connection stays where it is and costs nothing.
//!
//! A cycle of a loop is all that it does between waking up and going to sleep. It is counted when the loop goes
//! to sleep, which costs two readings of the clock beside the system calls for sleeping and waking. At most once in
//! [`WINDOW_NS`], a loop that goes to sleep samples the load of all loops and decides how many are to be in use
//! ([`super::loop_scaler`]): there is no timer, and an idle server does nothing.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::runtime::Builder;
use tokio::sync::mpsc::UnboundedSender;

use super::clock::monotonic_ns;
use super::listen::Accepted;
use super::log_limit::LogLimit;
use super::loop_scaler::{LoopScaler, Window};
use super::processors::ProcessorTime;
use crate::engine::state::host;

/// The shortest window between two decisions on the number of loops in use.
const WINDOW_NS: u64 = 100_000_000;

/// All event loops of a server.
#[derive(Debug)]
pub(crate) struct Loops {
    per_loop: Box<[LoopStats]>,
    /// The number of elements of `per_loop` that have a running loop.
    count: AtomicUsize,
    in_use: AtomicUsize,
    /// The number of clients that were accepted so far.
    arrivals: AtomicUsize,
    next_sample_ns: AtomicU64,
    sampler: Mutex<LoopSampler>,
    /// The memory of the query buffers of all clients that have not logged in.
    unauthenticated_bytes: AtomicUsize,
    unauthenticated_log_limit: LogLimit,
}

/// The counters of one loop, and the channel that sends clients to it.
#[derive(Debug, Default)]
struct LoopStats {
    cycles: AtomicU64,
    busy_ns: AtomicU64,
    longest_ns: AtomicU64,
    requests: AtomicU64,
    inbox: OnceLock<UnboundedSender<Accepted>>,
}

/// The totals at the last sample, and the scaler that decides from their growth.
#[derive(Debug, Default)]
struct LoopSampler {
    scaler: LoopScaler,
    at_ns: u64,
    busy_ns: u64,
    requests: u64,
    processors: Option<ProcessorTime>,
}

impl Loops {
    /// Makes `count` loops, which are all in use at first.
    pub(crate) fn new(count: usize) -> Arc<Loops> {
        let now_ns = monotonic_ns();
        Arc::new(Loops {
            per_loop: (0..count).map(|_| LoopStats::default()).collect(),
            count: AtomicUsize::new(count),
            in_use: AtomicUsize::new(count),
            arrivals: AtomicUsize::new(0),
            next_sample_ns: AtomicU64::new(now_ns + WINDOW_NS),
            sampler: Mutex::new(LoopSampler { at_ns: now_ns, ..LoopSampler::default() }),
            unauthenticated_bytes: AtomicUsize::new(0),
            unauthenticated_log_limit: LogLimit::default(),
        })
    }

    /// The number of loops, whether in use or not.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Reduces the number of loops to `count`, because no thread could be started for more.
    pub(crate) fn reduce_to(&self, count: usize) {
        self.count.store(count, Ordering::Relaxed);
        self.set_in_use(self.in_use());
    }

    /// The number of loops that serve clients now.
    pub(crate) fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Sets the number of loops that serve clients, at least 1 and at most [`Loops::count`].
    pub(crate) fn set_in_use(&self, count: usize) {
        self.in_use.store(count.clamp(1, self.count()), Ordering::Relaxed);
    }

    /// Stores the channel that sends accepted clients to a loop.
    pub(crate) fn open(&self, number: usize, inbox: UnboundedSender<Accepted>) {
        // Each loop is opened once, so this cannot fail.
        let _ = self.per_loop[number].inbox.set(inbox);
    }

    /// Sends a client to a loop. If the loop has ended, so has the whole server, and the client is dropped.
    pub(crate) fn send(&self, number: usize, accepted: Accepted) {
        if let Some(inbox) = self.per_loop[number].inbox.get() {
            drop(inbox.send(accepted));
        }
    }

    /// Counts a client that is accepted; returns the number of those before it.
    pub(crate) fn count_arrival(&self) -> usize {
        self.arrivals.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts requests that a loop has served.
    pub(crate) fn count_requests(&self, number: usize, requests: usize) {
        self.per_loop[number].requests.fetch_add(requests as u64, Ordering::Relaxed);
    }

    /// Records that the query buffer of a client that has not logged in holds `now` bytes instead of `before`. Returns
    /// the bytes that the buffers of all such clients hold.
    pub(crate) fn count_unauthenticated_bytes(&self, before: usize, now: usize) -> usize {
        let difference = now.wrapping_sub(before);
        self.unauthenticated_bytes.fetch_add(difference, Ordering::Relaxed).wrapping_add(difference)
    }

    /// The limit on log lines about clients that have not logged in.
    pub(crate) fn unauthenticated_log_limit(&self) -> &LogLimit {
        &self.unauthenticated_log_limit
    }

    /// Counts the cycles of a loop from now on, by hooks on sleeping and waking.
    pub(crate) fn count_cycles(self: &Arc<Loops>, number: usize, event_loop: &mut Builder) {
        let began_ns = Arc::new(AtomicU64::new(monotonic_ns()));
        let (loops, woken) = (Arc::clone(self), Arc::clone(&began_ns));
        event_loop.on_thread_unpark(move || woken.store(monotonic_ns(), Ordering::Relaxed));
        event_loop.on_thread_park(move || {
            let now_ns = monotonic_ns();
            loops.end_cycle(number, now_ns, now_ns.saturating_sub(began_ns.load(Ordering::Relaxed)));
        });
    }

    fn end_cycle(&self, number: usize, now_ns: u64, busy_ns: u64) {
        let stats = &self.per_loop[number];
        stats.cycles.fetch_add(1, Ordering::Relaxed);
        stats.busy_ns.fetch_add(busy_ns, Ordering::Relaxed);
        // Only this loop's own thread writes its counters.
        if busy_ns > stats.longest_ns.load(Ordering::Relaxed) {
            stats.longest_ns.store(busy_ns, Ordering::Relaxed);
        }
        if self.count() > 1 && now_ns >= self.next_sample_ns.load(Ordering::Relaxed) {
            self.sample(now_ns);
        }
    }

    /// The cycles of all loops so far.
    pub(crate) fn cycles(&self) -> host::LoopCycles {
        let longest_ns = self.per_loop.iter().map(|stats| stats.longest_ns.load(Ordering::Relaxed)).max();
        host::LoopCycles {
            count: self.sum(|stats| &stats.cycles),
            busy_us: self.sum(|stats| &stats.busy_ns) / 1000,
            longest_us: longest_ns.unwrap_or(0) / 1000,
        }
    }

    fn sum(&self, figure: impl Fn(&LoopStats) -> &AtomicU64) -> u64 {
        self.per_loop.iter().map(|stats| figure(stats).load(Ordering::Relaxed)).sum()
    }

    /// Measures the load of all loops since the last sample, and decides how many are in use from now on.
    #[cold]
    fn sample(&self, now_ns: u64) {
        let Some(mut sampler) = self.sampler.try_lock() else { return };
        if now_ns < self.next_sample_ns.load(Ordering::Relaxed) {
            // Another loop has taken the sample just now.
            return;
        }
        self.next_sample_ns.store(now_ns + WINDOW_NS, Ordering::Relaxed);
        let (busy_ns, requests) = (self.sum(|stats| &stats.busy_ns), self.sum(|stats| &stats.requests));
        let length_ns = now_ns.saturating_sub(sampler.at_ns).max(1) as f64;
        let busy = (busy_ns - sampler.busy_ns) as f64 / length_ns;
        let rate = (requests - sampler.requests) as f64 * 1e9 / length_ns;
        let processors = ProcessorTime::now();
        let spare = processors.zip(sampler.processors).and_then(|(now, before)| now.idle_since(before));
        (sampler.at_ns, sampler.busy_ns, sampler.requests, sampler.processors) =
            (now_ns, busy_ns, requests, processors);
        let window = Window { end_ns: now_ns, busy, rate, spare };
        self.set_in_use(sampler.scaler.decide(window, self.in_use(), self.count()));
    }
}

/// The event loop that serves a client.
#[derive(Debug)]
pub(crate) struct LoopAssignment {
    loops: Arc<Loops>,
    /// The number of clients that were accepted before this one.
    arrival: usize,
    /// The loop that the client is on: `arrival % among`.
    at: usize,
    /// The number of loops in use for which `at` was computed.
    among: usize,
}

impl LoopAssignment {
    /// The assignment of a client, by its arrival number.
    pub(crate) fn of(loops: Arc<Loops>, arrival: usize) -> LoopAssignment {
        let among = loops.in_use();
        LoopAssignment { loops, arrival, at: arrival % among, among }
    }

    /// The loop that the client is on, or on its way to.
    pub(crate) fn number(&self) -> usize {
        self.at
    }

    /// All loops of the client's server.
    pub(crate) fn loops(&self) -> &Arc<Loops> {
        &self.loops
    }

    /// Updates the assignment to the number of loops in use; true if the client belongs to another loop now.
    pub(crate) fn changes(&mut self) -> bool {
        let in_use = self.loops.in_use();
        in_use != self.among && self.move_among(in_use)
    }

    #[cold]
    fn move_among(&mut self, in_use: usize) -> bool {
        let before = self.at;
        (self.among, self.at) = (in_use, self.arrival % in_use);
        self.at != before
    }

    /// Counts requests of the client for its loop.
    pub(crate) fn count_requests(&self, requests: usize) {
        self.loops.count_requests(self.at, requests);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::engine::Settings;
    use crate::engine::state::host::Facts;
    use crate::server::clock::Clock;
    use crate::server::os_storage::OsStorage;
    use crate::server::run::{Plan, Server};

    #[test]
    fn a_cycle_of_an_event_loop_lasts_from_its_wakeup_to_its_next_sleep() {
        let loops = Loops::new(1);
        let mut builder = Builder::new_current_thread();
        loops.count_cycles(0, builder.enable_time());
        let runtime = builder.build().expect("it can be built");
        let before = loops.cycles();
        runtime.block_on(async {
            for _ in 0..3 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        });
        let counted = loops.cycles().since(before);
        assert!(counted.count >= 3, "{counted:?}");
    }

    #[test]
    fn a_client_changes_its_loop_when_the_number_of_loops_requires_it() {
        let loops = Loops::new(4);
        let mut assignments: Vec<LoopAssignment> =
            (0..8).map(|arrival| LoopAssignment::of(Arc::clone(&loops), arrival)).collect();
        for (in_use, moves) in [(4, 0), (1, 6), (2, 4), (4, 4), (4, 0), (1, 6)] {
            loops.set_in_use(in_use);
            assert_eq!(assignments.iter_mut().map(LoopAssignment::changes).filter(|changes| *changes).count(), moves);
            assert!(assignments.iter().all(|assignment| assignment.number() == assignment.arrival % in_use));
        }
    }

    #[test]
    fn loops_with_little_load_are_taken_out_of_use_one_in_each_window() {
        let loops = Loops::new(3);
        let began_ns = loops.sampler.lock().at_ns;
        for (windows, in_use) in [(0, 3), (1, 2), (1, 2), (2, 1), (3, 1)] {
            loops.end_cycle(0, began_ns + windows * WINDOW_NS + windows, 1000);
            assert_eq!(loops.in_use(), in_use);
        }
    }

    /// A client that reads a line at a time.
    struct Client(BufReader<TcpStream>);

    impl Client {
        fn new(address: SocketAddr) -> Client {
            let stream = TcpStream::connect(address).expect("the server listens");
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out can be set");
            Client(BufReader::new(stream))
        }

        fn send(&mut self, bytes: impl AsRef<[u8]>) {
            self.0.get_mut().write_all(bytes.as_ref()).expect("the server reads");
        }

        fn line(&mut self) -> String {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("the server answers");
            line.trim_end().to_owned()
        }

        fn ask(&mut self, request: &str) -> String {
            self.send(request);
            self.line()
        }

        /// The loops that clients are on, as CLIENT LIST names them.
        fn loops_of_clients(&mut self) -> BTreeSet<String> {
            let length = self.ask("CLIENT LIST\r\n").trim_start_matches('$').parse().expect("a length comes first");
            let mut list = vec![0; length];
            self.0.read_exact(&mut list).expect("a list follows");
            self.line();
            let words = list.split(u8::is_ascii_whitespace).filter(|word| word.starts_with(b"io-thread="));
            words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
        }
    }

    /// Sends INCR, one at a time and in pipelines, while it changes how many loops are in use.
    fn count(mut client: Client, loops: &Loops, key: usize) -> Client {
        let mut counted = 0;
        for round in 0..300 {
            loops.set_in_use(1 + (round + key) % 3);
            let pipelined = if round % 2 == 0 { 1 } else { 40 };
            client.send(format!("INCR key:{key}\r\n").repeat(pipelined));
            for _ in 0..pipelined {
                counted += 1;
                assert_eq!(client.line(), format!(":{counted}"));
            }
        }
        client
    }

    /// Requests large replies, and reads them late.
    fn read_late(mut client: Client) -> Client {
        const LENGTH: usize = 1_000_000;
        let value = "x".repeat(LENGTH);
        assert_eq!(client.ask(&format!("*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n${LENGTH}\r\n{value}\r\n")), "+OK");
        for _ in 0..10 {
            client.send("GET large\r\n".repeat(10));
            for _ in 0..10 {
                assert_eq!(client.line(), format!("${LENGTH}"));
                assert!(client.line() == value);
            }
        }
        client
    }

    /// Lets one client pop, blocking, the element that the other one pushes.
    fn hand_over(mut taker: Client, mut bringer: Client) -> [Client; 2] {
        for number in 0..300 {
            taker.send("BLPOP queue 0\r\n");
            assert_eq!(bringer.ask(&format!("RPUSH queue {number}\r\n")), ":1");
            let answer: Vec<String> = (0..5).map(|_| taker.line()).collect();
            assert_eq!(answer[4], number.to_string());
        }
        [taker, bringer]
    }

    #[test]
    fn clients_that_move_between_loops_notice_nothing() {
        let settings = Settings { port: 0, event_loops: Some(3), ..Settings::default() };
        let (clock, facts, storage) = (Clock::system(), Facts::default(), Arc::new(OsStorage));
        let plan =
            Plan { settings, tcp: true, clock, seed: 1, is_deterministic: true, facts, storage, disk_faults: None };
        let server = Server::open(plan).expect("there is a free port");
        let (address, shared, loops) = (server.addresses()[0], Arc::clone(server.shared()), Arc::clone(server.loops()));
        let serving = thread::spawn(move || server.serve());
        // While this lock is held, no sample changes the number of loops in use.
        let sampler = loops.sampler.lock();
        let new = || Client::new(address);
        let mut clients = thread::scope(|scope| {
            let loops = &*loops;
            let counting: Vec<_> =
                (0..4).map(|key| scope.spawn(move || count(Client::new(address), loops, key))).collect();
            let reading = scope.spawn(move || read_late(Client::new(address)));
            let (taker, bringer) = (new(), new());
            let handing = scope.spawn(move || hand_over(taker, bringer));
            let mut clients: Vec<Client> =
                counting.into_iter().map(|thread| thread.join().expect("it counts")).collect();
            clients.push(reading.join().expect("it reads"));
            clients.extend(handing.join().expect("they hand over"));
            clients
        });
        for (in_use, numbers) in [(3, &["io-thread=0", "io-thread=1", "io-thread=2"][..]), (1, &["io-thread=0"])] {
            loops.set_in_use(in_use);
            clients.iter_mut().for_each(|client| assert_eq!(client.ask("PING\r\n"), "+PONG"));
            assert_eq!(clients[0].loops_of_clients().iter().map(String::as_str).collect::<Vec<_>>(), numbers);
        }
        drop(sampler);
        shared.stop();
        serving.join().expect("it ends");
    }
}
