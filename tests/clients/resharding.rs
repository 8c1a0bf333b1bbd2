//! Backends in five languages that go on while their cluster changes: slots leave under them key by key, replicas take
//! over, and a primary dies.
//!
//! Each is a program (that in Rust a thread) with workers that share its client. A worker does one thing again and
//! again, with the numbers from 1 on: it appends the number to a list, or in a pipeline to lists in eight slots, or to
//! a pair of lists in a transaction or a script, or publishes it in a channel or a sharded channel that the program
//! itself listens to; or it appends the length of a list that all share to that list, which WATCH makes safe. An error
//! is no reason to end: the worker goes on with the next number.
//!
//! A program prints `ready` once it has subscribed. For each line that it reads, which names kinds of workers, it waits
//! until each of these has done something that it began since (a publisher: until it was heard), and prints `went on`.
//! When its input ends, so do its workers, and it prints what they know:
//!
//! - `list KEY SENT UNKNOWN`: the last number, and those that the client answered with an error;
//! - `counter KEY SENT ACKNOWLEDGED`: how often something was appended to the shared list;
//! - `channel NAME SENT UNKNOWN HEARD`: also all numbers that were heard, as they came.
//!
//! What the client cannot do, the program leaves out, and says before it is ready: `leaves out KIND: why`, or
//! `leaves out KIND while killed: why`, where `all` is each kind.

mod tallies;

use std::env;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::iter;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, RedisResult, cmd};

use crate::binary::Binary;
use crate::programs::{Program, run};
use crate::redis_rs_resharding;
use crate::timeout::{TIMEOUT, wait_until};

const ALL: &str = "append pipeline transaction watch script news events";
/// What a slot on its way does not hold up: the others have several keys, of which one has gone.
const OF_ONE_KEY: &str = "append pipeline news events";

/// How long a client may take after a failover until it writes to the new primary.
const FIRST_WRITE_WITHIN: Duration = Duration::from_secs(1);

/// Three primaries with a replica each. What changes the cluster is sent to the first node, which no test kills.
struct Cluster {
    program: Binary,
    first: Connection,
}

impl Cluster {
    fn start() -> Cluster {
        let program = Binary::start_with(&["--cluster", "3", "--replicas", "1"]);
        let first = connection_to(program.port().parse().expect("it is a number")).expect("the node answers");
        Cluster { program, first }
    }

    fn dunlin(&mut self, words: &str) {
        let () = cmd("DUNLIN").arg(words.split(' ').collect::<Vec<_>>()).query(&mut self.first).expect(words);
    }

    fn slot_of(&mut self, key: &str) -> u16 {
        cmd("CLUSTER").arg("KEYSLOT").arg(key).query(&mut self.first).expect("it answers")
    }

    /// How often the nodes have run SUBSCRIBE and SSUBSCRIBE.
    fn subscriptions(&self) -> [u64; 2] {
        ["subscribe", "ssubscribe"].map(|command| self.sum("commandstats", &format!("cmdstat_{command}:calls=")))
    }

    /// A number from INFO, added up over the nodes that answer.
    fn sum(&self, section: &str, name: &str) -> u64 {
        let first: u16 = self.program.port().parse().expect("it is a number");
        let count = |port| -> RedisResult<u64> {
            let info: String = cmd("INFO").arg(section).query(&mut connection_to(port)?)?;
            let value = info.lines().find_map(|line| line.strip_prefix(name));
            Ok(value.and_then(|value| value.split(',').next()?.parse().ok()).unwrap_or(0))
        };
        (first..first + 6).filter_map(|port| count(port).ok()).sum()
    }
}

fn connection_to(port: u16) -> RedisResult<Connection> {
    redis::Client::open(format!("redis://127.0.0.1:{port}/"))?.get_connection()
}

/// A program that runs; ended when dropped.
struct Backend {
    /// Its process; `None` if it is a thread, which ends with its input.
    process: Option<Child>,
    input: Option<Box<dyn Write>>,
    lines: Receiver<String>,
    left_out: Vec<String>,
}

impl Backend {
    fn of(command: &mut Command) -> Backend {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let input = process.stdin.take().expect("its input is a pipe");
        let output = process.stdout.take().expect("its output is a pipe");
        Backend::behind(Some(process), input, output)
    }

    fn in_thread(program: impl FnOnce(PipeReader, PipeWriter) -> io::Result<()> + Send + 'static) -> Backend {
        let [(read_input, input), (output, write_output)] = [(); 2].map(|()| io::pipe().expect("the system has pipes"));
        thread::spawn(move || program(read_input, write_output));
        Backend::behind(None, input, output)
    }

    fn behind(process: Option<Child>, input: impl Write + 'static, output: impl Read + Send + 'static) -> Backend {
        let (sender, lines) = channel();
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let mut backend = Backend { process, input: Some(Box::new(input)), lines, left_out: Vec::new() };
        backend.left_out = iter::from_fn(|| Some(backend.line())).take_while(|line| line != "ready").collect();
        backend
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(TIMEOUT).expect("the program says something")
    }

    /// Whether the program has said that it leaves out a kind of workers; `end` is what follows its name.
    fn leaves_out(&self, kind: &str, end: &str) -> bool {
        let says =
            |line: &String| ["all", kind].iter().any(|name| line.starts_with(&format!("leaves out {name}{end}")));
        self.left_out.iter().any(says)
    }

    /// Waits until the workers of these kinds have gone on, but for what the client leaves out.
    fn goes_on(&mut self, kinds: &str, is_killed: bool) {
        let is_left_out =
            |kind: &&str| self.leaves_out(kind, ":") || is_killed && self.leaves_out(kind, " while killed:");
        let kinds: Vec<&str> = kinds.split(' ').filter(|kind| !is_left_out(kind)).collect();
        let input = self.input.as_mut().expect("it has not ended");
        writeln!(input, "{}", kinds.join(" ")).expect("the program reads its input");
        assert_eq!(self.line(), "went on");
    }

    /// Ends the program; returns what it knows about all that it does not leave out.
    fn end(mut self) -> Vec<String> {
        drop(self.input.take());
        let mut tallies = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(TIMEOUT) {
            tallies.push(line);
        }
        tallies::are_complete(&tallies, |kind| self.leaves_out(kind, ":"));
        tallies
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Moves the slot of a tag, and stops on the way where one key of each pair has gone and the other has not.
fn move_slot(cluster: &mut Cluster, backend: &mut Backend, tag: &str, to: usize) {
    let slot = cluster.slot_of(tag);
    let step = |cluster: &mut Cluster, what: &str| cluster.dunlin(&format!("MIGRATE-SLOT {slot} TO {to} {what}"));
    step(cluster, "BEGIN");
    backend.goes_on(ALL, false);
    let refused = cluster.sum("errorstats", "errorstat_TRYAGAIN:count=");
    for key in ["left", "script:left", "appended"] {
        step(cluster, &format!("KEY {{{tag}}}:{key}"));
    }
    wait_until("a script or a transaction meets a pair of which one has gone", || {
        cluster.sum("errorstats", "errorstat_TRYAGAIN:count=") > refused
    });
    backend.goes_on(OF_ONE_KEY, false);
    step(cluster, "FINISH");
    backend.goes_on(ALL, false);
}

#[expect(clippy::disallowed_methods, reason = "clients wait in real time, whatever the server's clock shows")]
fn time_of(act: impl FnOnce()) -> Duration {
    let start = Instant::now();
    act();
    start.elapsed()
}

fn loses_nothing(name: &str, start: impl FnOnce(&str) -> Backend) {
    let mut cluster = Cluster::start();
    let mut backend = start(&cluster.program.port());
    for line in &backend.left_out {
        // Not by `eprintln!`, which a test that passes keeps to itself.
        writeln!(io::stderr(), "{name} {line}").expect("somebody reads what is left out");
    }
    let before = cluster.subscriptions();
    backend.goes_on(ALL, false);
    move_slot(&mut cluster, &mut backend, "0", 1);
    move_slot(&mut cluster, &mut backend, "1", 2);
    let waits = ["4", "1"].map(|replica| {
        cluster.dunlin(&format!("FAILOVER {replica}"));
        let wait = time_of(|| backend.goes_on("append", false));
        backend.goes_on(ALL, false);
        wait
    });
    // A busy machine may be late once. A client that waits for its next look at the slots is late each time.
    let shortest = waits.iter().min().expect("there are two");
    assert!(*shortest < FIRST_WRITE_WITHIN, "{name} writes {waits:?} after failovers");
    cluster.dunlin("NODE 2 KILL");
    cluster.dunlin("ADVANCE 17000");
    backend.goes_on(ALL, true);
    cluster.dunlin("NODE 2 RESTART");
    backend.goes_on(ALL, false);
    let lines = backend.end();
    let after = cluster.subscriptions();
    let resubscriptions = [after[0] - before[0], after[1] - before[1]];
    tallies::agree_with(&cluster.program.port(), &lines, 1, resubscriptions);
}

/// Runs a program of `tests/clients` in both protocols.
fn program_loses_nothing(name: &str, program: Option<Program>, file: &str) {
    let Some(program) = program else { return };
    let file = format!("{}/tests/clients/{file}", env!("CARGO_MANIFEST_DIR"));
    for protocol in ["2", "3"] {
        loses_nothing(name, |port| Backend::of(program.command().args([&*file, port, protocol])));
    }
}

#[test]
fn redis_py_loses_nothing_while_its_cluster_changes() {
    program_loses_nothing("redis-py", Program::python_with("redis"), "redis_py_resharding.py");
}

#[test]
fn ioredis_loses_nothing_while_its_cluster_changes() {
    program_loses_nothing("ioredis", Program::node_with("ioredis"), "ioredis_resharding.js");
}

#[test]
fn node_redis_loses_nothing_while_its_cluster_changes() {
    program_loses_nothing("node-redis", Program::node_with("redis"), "node_redis_resharding.js");
}

#[test]
fn go_redis_loses_nothing_while_its_cluster_changes() {
    let Some(program) = Program::of_go() else { return };
    for protocol in ["2", "3"] {
        loses_nothing("go-redis", |port| Backend::of(program.command().args([port, protocol, "resharding"])));
    }
}

#[test]
fn jedis_and_lettuce_lose_nothing_while_their_cluster_changes() {
    let Some(java) = Program::java_with_clients() else { return };
    // Compiled once, which takes longer than the rest.
    let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("resharding");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/java/Resharding.java");
    run(java.beside("javac").command().arg("-d").arg(&classes).arg(source), "");
    let archives = env::var_os("DUNLIN_TEST_JAVA_CLASSPATH").unwrap_or_default();
    let archives = env::join_paths([classes].into_iter().chain(env::split_paths(&archives)));
    let archives = archives.expect("a folder's name has no colon in it");
    for (name, protocol) in [("Jedis", "2"), ("Jedis", "3"), ("Lettuce", "2"), ("Lettuce", "3")] {
        let mut command = java.command();
        command.args(["-XX:TieredStopAtLevel=1", "-cp"]).arg(&archives).arg("Resharding");
        loses_nothing(name, |port| Backend::of(command.args([port, protocol, name])));
    }
}

#[test]
fn redis_rs_loses_nothing_while_its_cluster_changes() {
    for protocol in ["2", "3"] {
        loses_nothing("redis-rs", |port| {
            let port = port.to_owned();
            Backend::in_thread(move |input, output| {
                redis_rs_resharding::run(&port, protocol, BufReader::new(input), output)
            })
        });
    }
}
