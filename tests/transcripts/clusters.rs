//! What three nodes of a cluster answer: `clusters.nodes` beside this file, recorded from three real servers.
//!
//! `UPDATE=1 DUNLIN_ORACLE=... cargo test --test transcripts clusters` writes the answers anew. Without UPDATE they are
//! compared with those of our nodes, and with those of real ones where DUNLIN_ORACLE names a server.
//!
//! A line `1> GET key` is a command for node 1, on the same connection as the other commands for that node; `1~> ...`
//! sorts the lines, or the elements, of the answer. `...` gives real nodes the time to tell each other; ours need none.
//! `== title` begins a new cluster. Ids and ports are written as `<id0>`, `<shard0>`, `<port0>` and `<bus0>`, and times
//! as `<ms>`, in commands too.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use dunlin::Server;

use crate::runner::target::{Link, Received, TcpLink};
use crate::support::process::{Process, Program, updates, wait};
use crate::support::reply::{Order, Protocol, Undecoded, decode, render};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transcripts/clusters.nodes");
const NODES: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(20);
/// How often the start of a real node is tried again.
const STARTS: usize = 10;
/// Real nodes tell each other what changed within some pings.
const TOLD: Duration = Duration::from_secs(3);
/// The digits of a time in milliseconds.
const MS_DIGITS: usize = 13;

/// Whose nodes answer.
trait Cluster {
    fn addresses(&self) -> Vec<SocketAddr>;
    /// Waits until each node knows what was said.
    fn settle(&self);
}

struct Ours(Server);

impl Cluster for Ours {
    fn addresses(&self) -> Vec<SocketAddr> {
        self.0.nodes().iter().map(|node| node.addr()).collect()
    }

    fn settle(&self) {}
}

struct Real(Vec<Process>);

impl Real {
    /// Three nodes that know each other, with the slots and epochs that `redis-cli --cluster create` gives them.
    fn start(program: &Program) -> io::Result<Real> {
        let start_once = || Process::start_with(program, &["--cluster-enabled", "yes"]);
        // Above some ports there is none for the other nodes, or it is taken.
        let start = |_| (0..STARTS).fold(start_once(), |started, _| started.or_else(|_| start_once()));
        let processes = (0..NODES).map(start).collect::<io::Result<Vec<_>>>()?;
        let first = processes[0].address;
        let slots = ["0 5460", "5461 10922", "10923 16383"];
        for ((epoch, process), slots) in (1..).zip(&processes).zip(slots) {
            let meet = format!("CLUSTER MEET 127.0.0.1 {}", first.port());
            let commands =
                [format!("CLUSTER ADDSLOTSRANGE {slots}"), format!("CLUSTER SET-CONFIG-EPOCH {epoch}"), meet];
            for command in commands.iter().take(if epoch == 1 { 2 } else { 3 }) {
                Connection::open(process.address)?.ask(command, Order::Given)?;
            }
        }
        for process in &processes {
            let mut connection = Connection::open(process.address)?;
            loop {
                let info = connection.ask("CLUSTER INFO", Order::Given)?.concat();
                if info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3") {
                    break;
                }
                wait(Duration::from_millis(50));
            }
        }
        let real = Real(processes);
        real.settle();
        Ok(real)
    }
}

impl Cluster for Real {
    fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().map(|process| process.address).collect()
    }

    fn settle(&self) {
        wait(TOLD);
    }
}

struct Connection(TcpLink);

impl Connection {
    fn open(address: SocketAddr) -> io::Result<Connection> {
        TcpLink::open(address).map(Connection)
    }

    /// The lines of the answer.
    fn ask(&mut self, command: &str, order: Order) -> io::Result<Vec<String>> {
        self.0.send(format!("{command}\r\n").as_bytes())?;
        let mut bytes = Vec::new();
        loop {
            match decode(&bytes) {
                Ok((reply, _)) => return Ok(render(&reply, Protocol::Resp2, order)),
                Err(Undecoded::Malformed(why)) => return Err(io::Error::other(why)),
                Err(Undecoded::Incomplete) => {}
            }
            if self.0.receive(&mut bytes, TIMEOUT)? != Received::Bytes {
                return Err(io::Error::other(format!("no answer to {command}")));
            }
        }
    }
}

/// What is different in each run, and what is written instead.
struct Names(Vec<(String, String)>);

impl Names {
    fn learn(connections: &mut [Connection], addresses: &[SocketAddr]) -> io::Result<Names> {
        let mut names = Vec::new();
        for (number, (connection, address)) in connections.iter_mut().zip(addresses).enumerate() {
            for (kind, command) in [("id", "CLUSTER MYID"), ("shard", "CLUSTER MYSHARDID")] {
                let id = connection.ask(command, Order::Given)?.concat();
                names.push((id.trim_matches('"').to_owned(), format!("<{kind}{number}>")));
            }
            names.push((format!("{}", address.port() + 10_000), format!("<bus{number}>")));
            names.push((format!("{}", address.port()), format!("<port{number}>")));
        }
        Ok(Names(names))
    }

    fn in_command(&self, command: &str) -> String {
        self.0.iter().fold(command.to_owned(), |command, (name, written)| command.replace(written, name))
    }

    fn in_answer(&self, line: &str) -> String {
        let line = self.0.iter().fold(line.to_owned(), |line, (name, written)| line.replace(name, written));
        let is_time = |word: &str| word.len() == MS_DIGITS && word.bytes().all(|byte| byte.is_ascii_digit());
        let words = line.split(' ').map(|word| if is_time(word) { "<ms>" } else { word });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// The lines of an answer that is a text of several lines, each on a line of its own.
fn broken_up(lines: Vec<String>) -> Vec<String> {
    let [line] = &lines[..] else { return lines };
    let Some(text) = line.strip_prefix('"').and_then(|line| line.strip_suffix('"')) else { return lines };
    let parts = text.replace("\\r\\n", "\n").replace("\\n", "\n");
    // How many messages were sent is a matter of time.
    let is_steady = |part: &&str| !part.is_empty() && !part.starts_with("cluster_stats_messages");
    let parts: Vec<String> = parts.split('\n').filter(is_steady).map(str::to_owned).collect();
    match parts.len() {
        0 | 1 => lines,
        _ => parts,
    }
}

/// Plays the file against clusters that `start` makes, and returns it with their answers.
fn play<C: Cluster>(text: &str, mut start: impl FnMut() -> io::Result<C>) -> io::Result<String> {
    let mut played = String::new();
    let mut state: Option<(C, Vec<Connection>, Names)> = None;
    for line in text.lines() {
        let command = line.split_once("> ").filter(|(node, _)| node.trim_end_matches('~').parse::<usize>().is_ok());
        let is_kept = line.is_empty() || line.starts_with("== ") || line.starts_with('#') || line == "...";
        if is_kept || command.is_some() {
            writeln!(played, "{line}").expect("a text takes all");
        }
        if line.starts_with("== ") {
            let cluster = start()?;
            let addresses = cluster.addresses();
            let mut connections =
                addresses.iter().map(|address| Connection::open(*address)).collect::<io::Result<Vec<_>>>()?;
            let names = Names::learn(&mut connections, &addresses)?;
            state = Some((cluster, connections, names));
        }
        let Some((cluster, connections, names)) = &mut state else { continue };
        if line == "..." {
            cluster.settle();
        }
        let Some((node, command)) = command else { continue };
        let (number, is_sorted) = (node.trim_end_matches('~'), node.ends_with('~'));
        let connection = &mut connections[number.parse::<usize>().expect("it was parsed above")];
        let order = if is_sorted { Order::Sorted } else { Order::Given };
        let lines = broken_up(connection.ask(&names.in_command(command), order)?);
        let mut lines: Vec<String> = lines.iter().map(|line| names.in_answer(line)).collect();
        // Elements of aggregates have numbers and were sorted before; lines of a text are now.
        if is_sorted && !lines.iter().any(|line| line.starts_with("1) ")) {
            lines.sort();
        }
        lines.iter().for_each(|line| writeln!(played, "{line}").expect("a text takes all"));
    }
    Ok(played)
}

#[track_caller]
fn assert_same(played: &str, text: &str) {
    let lines = (1..).zip(text.lines().zip(played.lines()));
    let differ = lines.filter(|(_, (expected, found))| expected != found);
    let faults: Vec<String> =
        differ.map(|(number, (expected, found))| format!("{number}: {found}\n    instead of: {expected}")).collect();
    assert!(faults.is_empty(), "{FILE}:\n{}", faults.join("\n"));
    assert_eq!(played.lines().count(), text.lines().count(), "{played}");
}

#[test]
fn clusters_of_ours_answer_as_real_ones() {
    let text = fs::read_to_string(FILE).expect("it is there");
    let start = || Server::cluster(NODES as u16).start().map(Ours).map_err(io::Error::other);
    assert_same(&play(&text, start).expect("they answer"), &text);
}

#[test]
fn clusters_of_real_servers_answer_as_recorded() {
    let Some(program) = Program::from_environment("three real nodes") else { return };
    let text = fs::read_to_string(FILE).expect("it is there");
    let played = play(&text, || Real::start(&program)).expect("they answer");
    if updates() {
        return fs::write(FILE, played).expect("it can be written");
    }
    assert_same(&played, &text);
}
