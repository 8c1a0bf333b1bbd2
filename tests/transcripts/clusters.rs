//! Replies of the nodes of a cluster, recorded from real servers: three primaries in `clusters.nodes`, and three with
//! a replica each, nodes 3 to 5, in `replicas.nodes`.
//!
//! `UPDATE=1 DUNLIN_ORACLE=... cargo test --test transcripts clusters` writes the answers anew. Without UPDATE they are
//! compared with those of our nodes, and with those of real ones where DUNLIN_ORACLE names a server.
//!
//! A line `1> GET key` is a command for node 1, on the same connection as the other commands for that node; `1~> ...`
//! sorts the lines, or the elements, of the answer. `kill 1` ends a node. `...` gives real nodes the time to tell each
//! other, and to find out who has failed; ours move their clock. `== title` begins a new cluster. Ids and ports are
//! written as `<id0>`, `<shard0>`, `<port0>` and `<bus0>`, and times as `<ms>`, in commands too. What is not the same
//! in each run is `<varies>`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use dunlin::Server;

use crate::runner::target::{Link, Received, TcpLink};
use crate::support::process::{Process, Program, updates, wait};
use crate::support::reply::{Order, Protocol, Undecoded, decode, render};

const PRIMARIES: Setup =
    Setup { file: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transcripts/clusters.nodes"), replicas: 0 };
const WITH_REPLICAS: Setup =
    Setup { file: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transcripts/replicas.nodes"), replicas: 1 };

/// The number of primaries.
const NODES: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(20);
/// How often the start of a real node is tried again.
const STARTS: usize = 10;
/// Real nodes tell each other what changed within some pings, and replace one that has failed.
const TOLD: Duration = Duration::from_secs(3);
/// The time limits of the nodes are short, as real ones take it.
const SETTINGS: [&str; 6] =
    ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0"];
/// The fields of INFO that are not the same in each run.
const VARYING: [&str; 5] = ["replid", "offset", "histlen", "seconds", "full_sync_buffer_peak"];
/// The digits of a time in milliseconds.
const MS_DIGITS: usize = 13;

/// A file with commands and answers, and the cluster that it is about.
struct Setup {
    file: &'static str,
    /// The number of replicas of each primary.
    replicas: usize,
}

/// Whose nodes answer.
trait Cluster {
    fn addresses(&self) -> Vec<SocketAddr>;
    /// Waits until each node knows what was said.
    fn settle(&self);
    /// Ends a node.
    fn kill(&mut self, node: usize);
}

struct Ours(Server);

impl Cluster for Ours {
    fn addresses(&self) -> Vec<SocketAddr> {
        self.0.nodes().iter().map(|node| node.addr()).collect()
    }

    fn settle(&self) {
        self.0.advance(TOLD);
    }

    fn kill(&mut self, node: usize) {
        self.0.kill_node(node).expect("it runs");
    }
}

struct Real(Vec<Option<Process>>, Vec<SocketAddr>);

impl Real {
    /// Three primaries that know each other, with the slots and epochs of `redis-cli --cluster create`, and their
    /// replicas.
    fn start(program: &Program, replicas: usize) -> io::Result<Real> {
        let nodes = NODES * (1 + replicas);
        let start_once = || Process::start_with(program, &SETTINGS);
        // Above some ports there is none for the other nodes, or it is taken.
        let start = |_| (0..STARTS).fold(start_once(), |started, _| started.or_else(|_| start_once()));
        let processes = (0..nodes).map(start).collect::<io::Result<Vec<_>>>()?;
        let first = processes[0].address;
        let slots = ["0 5460", "5461 10922", "10923 16383"];
        for (number, process) in processes.iter().enumerate() {
            let slots = slots.get(number).map(|slots| format!("CLUSTER ADDSLOTSRANGE {slots}"));
            let epoch = format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1);
            let meet = (number > 0).then(|| format!("CLUSTER MEET 127.0.0.1 {}", first.port()));
            for command in slots.into_iter().chain([epoch]).chain(meet) {
                Connection::open(process.address)?.ask(&command, Order::Given)?;
            }
        }
        let known = format!("cluster_known_nodes:{nodes}");
        processes
            .iter()
            .try_for_each(|process| until_it_says(process, "CLUSTER INFO", &["cluster_state:ok", &known]))?;
        for (number, process) in processes.iter().enumerate().skip(NODES) {
            let id = Connection::open(processes[number % NODES].address)?.ask("CLUSTER MYID", Order::Given)?.concat();
            let replicate = format!("CLUSTER REPLICATE {}", id.trim_matches('"'));
            Connection::open(process.address)?.ask(&replicate, Order::Given)?;
        }
        for process in processes.iter().skip(NODES) {
            until_it_says(process, "INFO replication", &["master_link_status:up"])?;
        }
        let addresses = processes.iter().map(|process| process.address).collect();
        let real = Real(processes.into_iter().map(Some).collect(), addresses);
        real.settle();
        Ok(real)
    }
}

/// Waits until the answer of a server to a command has all these words.
fn until_it_says(process: &Process, command: &str, words: &[&str]) -> io::Result<()> {
    let mut connection = Connection::open(process.address)?;
    while !connection
        .ask(command, Order::Given)
        .map(|lines| lines.concat())
        .is_ok_and(|text| words.iter().all(|word| text.contains(word)))
    {
        wait(Duration::from_millis(50));
    }
    Ok(())
}

impl Cluster for Real {
    fn addresses(&self) -> Vec<SocketAddr> {
        self.1.clone()
    }

    fn settle(&self) {
        wait(TOLD);
    }

    fn kill(&mut self, node: usize) {
        self.0[node] = None;
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

/// The parts that differ in each run, and the text that is written instead.
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
        // Times come first: a port may be some of their digits.
        let is_time = |word: &str| word.len() == MS_DIGITS && word.bytes().all(|byte| byte.is_ascii_digit());
        let words = line.split(' ').map(|word| if is_time(word) { "<ms>" } else { word });
        let line = words.collect::<Vec<_>>().join(" ");
        self.0.iter().fold(line, |line, (name, written)| replace_whole(&line, name, written))
    }
}

/// Replaces a word, but not as a part of a longer one: a port may be some digits of a hash.
fn replace_whole(line: &str, word: &str, by: &str) -> String {
    let mut replaced = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(word) {
        let is_part = before.ends_with(char::is_alphanumeric) || after.starts_with(char::is_alphanumeric);
        replaced += before;
        replaced += if is_part { word } else { by };
        rest = after;
    }
    replaced + rest
}

#[test]
fn a_port_is_replaced_but_not_the_digits_of_a_hash() {
    let found = replace_whole("7000 127.0.0.1:7000@17000 d7000e 7000", "7000", "<port0>");
    assert_eq!(found, "<port0> 127.0.0.1:<port0>@17000 d7000e <port0>");
}

/// The lines of an answer that is a text of several lines, each on a line of its own.
fn broken_up(lines: Vec<String>) -> Vec<String> {
    let [line] = &lines[..] else { return lines };
    let Some(text) = line.strip_prefix('"').and_then(|line| line.strip_suffix('"')) else { return lines };
    let parts = text.replace("\\r\\n", "\n").replace("\\n", "\n");
    // How many messages were sent is a matter of time, and the title of a section looks like a comment.
    let is_left_out =
        |part: &str| part.is_empty() || part.starts_with("cluster_stats_messages") || part.starts_with('#');
    let is_steady = |part: &&str| !is_left_out(part);
    let parts: Vec<String> = parts.split('\n').filter(is_steady).map(without_varying).collect();
    match parts.len() {
        0 | 1 => lines,
        _ => parts,
    }
}

/// A field of INFO without a value that is another one in each run.
fn without_varying(line: &str) -> String {
    match line.split_once(':') {
        Some((name, _)) if VARYING.iter().any(|part| name.contains(part)) => format!("{name}:<varies>"),
        Some((name, value)) if name.starts_with("slave") && value.starts_with("ip=") => {
            let known = value.split_once("offset=").map_or(value, |(known, _)| known);
            format!("{name}:{known}<varies>")
        }
        _ => line.to_owned(),
    }
}

/// Plays the file against clusters that `start` makes, and returns it with their answers.
fn play<C: Cluster>(text: &str, mut start: impl FnMut() -> io::Result<C>) -> io::Result<String> {
    let mut played = String::new();
    let mut state: Option<(C, Vec<Connection>, Names)> = None;
    for line in text.lines() {
        let command = line.split_once("> ").filter(|(node, _)| node.trim_end_matches('~').parse::<usize>().is_ok());
        let killed = line.strip_prefix("kill ").and_then(|node| node.parse::<usize>().ok());
        let is_apart = line.starts_with("== ") || line.starts_with('#') || line == "...";
        let is_kept = line.is_empty() || is_apart || killed.is_some();
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
        killed.into_iter().for_each(|node| cluster.kill(node));
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
fn assert_same(file: &str, played: &str, text: &str) {
    let lines = (1..).zip(text.lines().zip(played.lines()));
    let differ = lines.filter(|(_, (expected, found))| expected != found);
    let faults: Vec<String> =
        differ.map(|(number, (expected, found))| format!("{number}: {found}\n    instead of: {expected}")).collect();
    assert!(faults.is_empty(), "{file}:\n{}", faults.join("\n"));
    assert_eq!(played.lines().count(), text.lines().count(), "{played}");
}

#[track_caller]
fn compare_ours(Setup { file, replicas }: &Setup) {
    let text = fs::read_to_string(file).expect("it is there");
    let start = || {
        let cluster = Server::cluster(NODES as u16).replicas(*replicas as u16).set("cluster-node-timeout", "1000");
        cluster.start().map(Ours).map_err(io::Error::other)
    };
    assert_same(file, &play(&text, start).expect("they answer"), &text);
}

#[track_caller]
fn compare_real(Setup { file, replicas }: &Setup) {
    let Some(program) = Program::from_environment("real nodes") else { return };
    let text = fs::read_to_string(file).expect("it is there");
    let played = play(&text, || Real::start(&program, *replicas)).expect("they answer");
    if updates() {
        return fs::write(file, played).expect("it can be written");
    }
    assert_same(file, &played, &text);
}

#[test]
fn clusters_of_ours_answer_as_real_ones() {
    compare_ours(&PRIMARIES);
}

#[test]
fn clusters_of_ours_with_replicas_answer_as_real_ones() {
    compare_ours(&WITH_REPLICAS);
}

#[test]
fn clusters_of_real_servers_answer_as_recorded() {
    compare_real(&PRIMARIES);
}

#[test]
fn clusters_of_real_servers_with_replicas_answer_as_recorded() {
    compare_real(&WITH_REPLICAS);
}
