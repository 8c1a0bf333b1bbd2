//! Simulated states of a server (loading, busy, replica, out of memory, another slot): it refuses the same commands as
//! a real Redis in that state.
//!
//! Every command is sent with the smallest number of words that it accepts. `tests/fixtures/states.txt` has the real
//! server's refusals; `UPDATE=1 DUNLIN_ORACLE=... cargo test --test kit simulated_states` rewrites it, and it is
//! compared with the server whenever DUNLIN_ORACLE names one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use dunlin::commands::FAMILIES;
use dunlin::engine::{Arity, Entry, Table};
use dunlin::{CallError, Server, State};

use crate::support::process::{Process, Program, updates};
use crate::timeout::{TIMEOUT, wait_until};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/states.txt");

const HEAD: &str = "\
# What a real Redis 8.0 refuses in each state, and in which words; every other command passes. Written by
# UPDATE=1 DUNLIN_ORACLE=/path/to/redis-server cargo test --test kit simulated_states
";

/// Commands that are not sent, as they end the state, the server or the way of asking.
const LEFT_OUT: &[&str] = &[
    "shutdown",
    "replicaof",
    "slaveof",
    "failover",
    "debug",
    "script|kill",
    "function|kill",
    "client|kill",
    "client|reply",
    "config|set",
    "cluster|",
    "sync",
    "psync",
    "monitor",
    "subscribe",
    "psubscribe",
    "ssubscribe",
    "unsubscribe",
    "punsubscribe",
    "sunsubscribe",
    "quit",
    "replconf",
];

/// The slot of the key `1`.
const SLOT: u16 = 9842;

fn states() -> [(&'static str, State); 6] {
    [
        ("LOADING", State::Loading),
        ("BUSY", State::Busy),
        ("READONLY", State::ReadOnly),
        ("OOM", State::OutOfMemory),
        ("MASTERDOWN", State::MasterDown),
        ("MOVED", State::Moved { slot: SLOT, node: "10.0.0.1:7001".to_owned() }),
    ]
}

/// Each text that refuses, with the commands that it refuses.
type Refusals = BTreeMap<String, Vec<String>>;

/// Sends every command, and collects the errors that a state causes.
fn refusals(mut ask: impl FnMut(&[&str]) -> String) -> Refusals {
    let table = Table::of(FAMILIES);
    let mut refused = Refusals::new();
    let mut entries: Vec<&Entry> = table.entries().iter().collect();
    // While a real server loads, it holds back what follows CLIENT PAUSE until it has loaded.
    entries.sort_by_key(|entry| entry.name == "client|pause");
    for Entry { name, command, .. } in entries {
        let is_left_out = LEFT_OUT.iter().any(|out| name == out || out.ends_with('|') && name.starts_with(out));
        if command.is_container() || is_left_out {
            continue;
        }
        let (Arity::Exactly(count) | Arity::AtLeast(count)) = command.arity;
        let mut words: Vec<&str> = name.split('|').collect();
        words.resize(words.len().max(usize::from(count)), "1");
        let answer = ask(&words);
        let code = answer.split(' ').next().unwrap_or_default();
        if states().iter().any(|(state, _)| *state == code) {
            let text = if code == "MOVED" { format!("MOVED {SLOT} host:port") } else { answer };
            refused.entry(text).or_default().push(name.clone());
        }
    }
    refused
}

fn ours(state: State) -> Refusals {
    // SAVE is among the commands.
    let folder = std::env::temp_dir().join(format!("dunlin-states-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder can be made");
    let server = Server::builder().set("dir", folder.to_str().expect("its name is text")).start().expect("it starts");
    // At this speed, a command that waits a second does not take long.
    server.set_speed(10_000.0);
    server.fault("state").state(state);
    let refusals = refusals(|words| match server.client().expect("there is room").call(words) {
        Err(CallError::Refused(text)) => text,
        _ => String::new(),
    });
    drop(server);
    fs::remove_dir_all(folder).expect("it is ours");
    refusals
}

/// A connection to a real server for one line of a reply.
struct Real(TcpStream);

impl Real {
    fn of(address: SocketAddr) -> Real {
        let wire = TcpStream::connect(address).expect("it listens");
        wire.set_read_timeout(Some(TIMEOUT)).expect("a time can be set");
        Real(wire)
    }

    fn send(&mut self, words: &[&str]) {
        let mut request = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| write!(request, "${}\r\n{word}\r\n", word.len()).expect("it is a text"));
        self.0.write_all(request.as_bytes()).expect("it reads");
    }

    /// The first line of the answer, without the sign of an error.
    fn ask(mut self, words: &[&str]) -> String {
        self.send(words);
        let (mut line, mut byte) = (Vec::new(), [0]);
        while !line.ends_with(b"\r\n") && self.0.read(&mut byte).is_ok_and(|count| count > 0) {
            line.push(byte[0]);
        }
        String::from_utf8_lossy(&line).trim_start_matches('-').trim_end().to_owned()
    }
}

/// Requests that bring a real server into a state. The last one is not answered while the state lasts.
fn provocation(state: &str) -> &'static [&'static str] {
    match state {
        // The server loads for a minute, and replies every few milliseconds meanwhile.
        "LOADING" => &[
            "DEBUG POPULATE 200000",
            "CONFIG SET key-load-delay 300 loading-process-events-interval-bytes 1024",
            "DEBUG RELOAD",
        ],
        "BUSY" => &["CONFIG SET busy-reply-threshold 1", "EVAL while(true)do\nend 0"],
        "READONLY" => &["REPLICAOF 127.0.0.1 1"],
        "OOM" => &["CONFIG SET maxmemory 1"],
        "MASTERDOWN" => &["CONFIG SET replica-serve-stale-data no", "REPLICAOF 127.0.0.1 1"],
        _ => &["CLUSTER ADDSLOTSRANGE 0 0"],
    }
}

fn real(program: &Program, state: &str) -> Refusals {
    let cluster: &[&str] = if state == "MOVED" { &["--cluster-enabled", "yes"] } else { &[] };
    let [server, other] = [(); 2].map(|()| Process::start_with(program, cluster).expect("the real server starts"));
    let mut waiting = Real::of(server.address);
    for line in provocation(state) {
        waiting.send(&line.split(' ').collect::<Vec<_>>());
    }
    if state == "MOVED" {
        Real::of(other.address).ask(&["CLUSTER", "ADDSLOTSRANGE", "1", "16383"]);
        Real::of(server.address).ask(&["CLUSTER", "MEET", "127.0.0.1", &other.address.port().to_string()]);
    }
    wait_until(state, || {
        let requests: [&[&str]; 2] = [&["GET", "1"], &["SETNX", "1", "1"]];
        requests.iter().any(|request| Real::of(server.address).ask(request).starts_with(state))
    });
    refusals(|words| Real::of(server.address).ask(words))
}

/// All of it as text.
fn fixture(mut of: impl FnMut(&'static str, State) -> Refusals) -> String {
    let mut fixture = HEAD.to_owned();
    for (name, state) in states() {
        writeln!(fixture, "\n== {name}").expect("it is a text");
        for (text, mut commands) in of(name, state) {
            commands.sort_unstable();
            writeln!(fixture, "{text}\n  {}", commands.join("\n  ")).expect("it is a text");
        }
    }
    fixture
}

#[test]
fn a_server_in_a_simulated_state_refuses_what_a_real_one_refuses_with_the_same_errors() {
    if let Some(program) = Program::from_environment("the states of a real server") {
        let recorded = fixture(|name, _| real(&program, name));
        if updates() {
            fs::write(FIXTURE, &recorded).expect("the fixture can be written");
        }
        assert_eq!(fs::read_to_string(FIXTURE).expect("it is there"), recorded, "the real server answers otherwise");
    }
    let expected = fs::read_to_string(FIXTURE).expect("it is there");
    let ours = fixture(|_, state| ours(state));
    let differing: Vec<_> = ours.lines().zip(expected.lines()).filter(|(ours, real)| ours != real).take(5).collect();
    assert!(ours == expected, "ours and the real one differ, first in {differing:?}");
}
