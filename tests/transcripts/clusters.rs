//! Replies of the nodes of a cluster, recorded from real servers: three primaries in `clusters.nodes`, and three with
//! a replica each, nodes 3 to 5, in `replicas.nodes`.
//!
//! `UPDATE=1 DUNLIN_ORACLE=... cargo test --test transcripts clusters` writes the answers anew. Without UPDATE they are
//! compared with those of our nodes, and with those of real ones where DUNLIN_ORACLE names a server.
//!
//! A line `1> GET key` is a command for node 1, on the same connection as the other commands for that node; `1b> ...`
//! uses another connection to it. `1~> ...` sorts the lines, or the elements, of the answer, and `1~~> ...` those
//! within each element. `1b>> BLPOP key 0` sends a command that waits, and `1b<` shows what arrives next on that
//! connection: its answer, a message or its end. `resp3 1b` makes a connection speak RESP3; a push is shown as an array
//! after `(push)`.
//!
//! `kill 1` ends a node. `...` gives real nodes the time to tell each other, and to find out who has failed; ours move
//! their clock. `== title` begins a new cluster. Ids and ports are written as `<id0>`, `<shard0>`, `<port0>` and
//! `<bus0>`, and times as `<ms>`, in commands too. After `ids 1` node 1 has other ids: `<new-id1>`, `<new-shard1>`.
//! What is not the same in each run is `<varies>`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use dunlin::Server;

use crate::runner::target::{Link, Received, TcpLink};
use crate::support::process::{Process, Program, updates, wait};
use crate::support::reply::{Order, Protocol, Reply, Undecoded, decode, render};

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
/// How a text that is marked as one begins.
const VERBATIM: &str = "(verbatim txt) ";
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
                Connection::open(process.address)?.ask(&command)?;
            }
        }
        let known = format!("cluster_known_nodes:{nodes}");
        processes
            .iter()
            .try_for_each(|process| until_it_says(process, "CLUSTER INFO", &["cluster_state:ok", &known]))?;
        for (number, process) in processes.iter().enumerate().skip(NODES) {
            let id = Connection::open(processes[number % NODES].address)?.ask_line("CLUSTER MYID")?;
            let replicate = format!("CLUSTER REPLICATE {}", id.trim_matches('"'));
            Connection::open(process.address)?.ask(&replicate)?;
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
    while !connection.ask_line(command).is_ok_and(|text| words.iter().all(|word| text.contains(word))) {
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

struct Connection {
    link: TcpLink,
    protocol: Protocol,
    /// What has arrived and was not shown yet.
    received: Vec<u8>,
}

impl Connection {
    fn open(address: SocketAddr) -> io::Result<Connection> {
        Ok(Connection { link: TcpLink::open(address)?, protocol: Protocol::Resp2, received: Vec::new() })
    }

    fn send(&mut self, command: &str) -> io::Result<()> {
        self.link.send(format!("{command}\r\n").as_bytes())
    }

    /// The next reply or message; `None` if the connection was closed.
    fn next(&mut self) -> io::Result<Option<Reply>> {
        loop {
            match decode(&self.received) {
                Ok((reply, length)) => {
                    self.received.drain(..length);
                    return Ok(Some(reply));
                }
                Err(Undecoded::Malformed(why)) => return Err(io::Error::other(why)),
                Err(Undecoded::Incomplete) => {}
            }
            match self.link.receive(&mut self.received, TIMEOUT)? {
                Received::Bytes => {}
                Received::Closed => return Ok(None),
                Received::Nothing => return Err(io::Error::other("nothing arrives")),
            }
        }
    }

    fn ask(&mut self, command: &str) -> io::Result<Reply> {
        self.send(command)?;
        self.next()?.ok_or_else(|| io::Error::other(format!("no answer to {command}")))
    }

    /// The answer as one line.
    fn ask_line(&mut self, command: &str) -> io::Result<String> {
        Ok(render(&self.ask(command)?, Protocol::Resp2, Order::Given).concat())
    }

    fn use_resp3(&mut self) -> io::Result<()> {
        self.ask("HELLO 3")?;
        self.protocol = Protocol::Resp3;
        Ok(())
    }
}

/// The number of clients of a server that wait.
fn waiting_clients(address: SocketAddr) -> io::Result<String> {
    let info = Connection::open(address)?.ask_line("INFO clients")?;
    let field = info.split("\\r\\n").find(|line| line.starts_with("blocked_clients:"));
    field.map(str::to_owned).ok_or_else(|| io::Error::other("INFO has no such field"))
}

/// The parts that differ in each run, and the text that is written instead.
struct Names(Vec<(String, String)>);

impl Names {
    fn learn(addresses: &[SocketAddr]) -> io::Result<Names> {
        let mut names = Names(Vec::new());
        for (number, address) in addresses.iter().enumerate() {
            names.learn_ids(*address, "", number)?;
            names.0.push((format!("{}", address.port() + 10_000), format!("<bus{number}>")));
            names.0.push((format!("{}", address.port()), format!("<port{number}>")));
        }
        Ok(names)
    }

    /// An id that was known before keeps its name.
    fn learn_ids(&mut self, address: SocketAddr, mark: &str, number: usize) -> io::Result<()> {
        let mut connection = Connection::open(address)?;
        for (kind, command) in [("id", "CLUSTER MYID"), ("shard", "CLUSTER MYSHARDID")] {
            let id = connection.ask_line(command)?;
            self.0.push((id.trim_matches('"').to_owned(), format!("<{mark}{kind}{number}>")));
        }
        Ok(())
    }

    fn in_command(&self, command: &str) -> String {
        self.0.iter().fold(command.to_owned(), |command, (name, written)| command.replace(written, name))
    }

    fn in_answer(&self, line: &str) -> String {
        // Times come first: a port may be some of their digits.
        let is_time = |word: &str| word.len() == MS_DIGITS && word.bytes().all(|byte| byte.is_ascii_digit());
        let words = line.split(' ').map(|word| if is_time(word) { "<ms>" } else { word });
        let mut line = words.collect::<Vec<_>>().join(" ");
        if line.contains(" connected") && !line.contains(",fail") {
            // A ping to the node may be under way.
            line = line.replace("<ms> <ms>", "0 <ms>");
        }
        self.0.iter().fold(line, |line, (name, written)| replace_whole(&line, name, written))
    }

    /// A reply with the names in its texts, by which its elements are sorted.
    fn in_reply(&self, reply: Reply) -> Reply {
        match reply {
            Reply::Bulk(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Reply::Bulk(self.in_answer(&text).into_bytes()),
                Err(error) => Reply::Bulk(error.into_bytes()),
            },
            Reply::Array(items) => {
                let mut items: Vec<Reply> = items.into_iter().map(|item| self.in_reply(item)).collect();
                for place in 1..items.len() {
                    if is_offset(&items[place - 1]) {
                        items[place] = without_varying_offset(&items[place]);
                    }
                }
                Reply::Array(items)
            }
            Reply::Map(pairs) => {
                let in_value = |name: &Reply, value| match self.in_reply(value) {
                    value if is_offset(name) => without_varying_offset(&value),
                    value => value,
                };
                Reply::Map(pairs.into_iter().map(|(name, value)| (name.clone(), in_value(&name, value))).collect())
            }
            other => other,
        }
    }
}

/// Whether that is the name of a field of CLUSTER SHARDS whose value may vary.
fn is_offset(name: &Reply) -> bool {
    matches!(name, Reply::Bulk(name) if name == b"replication-offset")
}

/// Whether an offset is 0 is the same in each run.
fn without_varying_offset(offset: &Reply) -> Reply {
    match offset {
        Reply::Integer(number) if number != "0" => Reply::Simple(b"<varies>".to_vec()),
        other => other.clone(),
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
    let kinds = ["", VERBATIM];
    let quoted =
        kinds.iter().find_map(|kind| Some((kind, line.strip_prefix(kind)?.strip_prefix('"')?.strip_suffix('"')?)));
    let Some((kind, text)) = quoted else { return lines };
    let parts = text.replace("\\r\\n", "\n").replace("\\n", "\n");
    // How many messages were sent is a matter of time, and the title of a section looks like a comment.
    let is_left_out =
        |part: &str| part.is_empty() || part.starts_with("cluster_stats_messages") || part.starts_with('#');
    let is_steady = |part: &&str| !is_left_out(part);
    let parts: Vec<String> = parts.split('\n').filter(is_steady).map(without_varying).collect();
    match parts.len() {
        0 | 1 => lines,
        _ if kind.is_empty() => parts,
        _ => [vec![kind.trim_end().to_owned()], parts].concat(),
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

/// A line of a file that is no part of an answer.
enum Line<'l> {
    /// `== title`.
    Title,
    /// A comment, or nothing.
    Comment,
    /// `...`
    Settle,
    /// `kill 1`
    Kill(usize),
    /// `ids 1`
    NewIds(usize),
    /// `resp3 1b`
    Resp3(&'l str),
    /// `1b> ...` and `1b~> ...`
    Command(&'l str, Order, &'l str),
    /// `1b>> ...`
    Waiting(&'l str, &'l str),
    /// `1b<`
    Arrival(&'l str),
}

impl Line<'_> {
    fn parse(line: &str) -> Option<Line<'_>> {
        let node = |start: &str| line.strip_prefix(start)?.parse::<usize>().ok();
        if line.is_empty() || line.starts_with('#') {
            return Some(Line::Comment);
        } else if line.starts_with("== ") {
            return Some(Line::Title);
        } else if line == "..." {
            return Some(Line::Settle);
        }
        let killed = node("kill ").map(Line::Kill);
        let named =
            killed.or_else(|| node("ids ").map(Line::NewIds)).or_else(|| line.strip_prefix("resp3 ").map(Line::Resp3));
        named.or_else(|| Line::parse_command(line))
    }

    fn parse_command(line: &str) -> Option<Line<'_>> {
        let (connection, rest) = line.split_at(line.find(|byte: char| !byte.is_ascii_alphanumeric())?);
        node_of(connection)?;
        let command = |mark: &str| rest.strip_prefix(mark);
        let in_order = |mark, order| command(mark).map(|command| Line::Command(connection, order, command));
        let waiting = || command(">> ").map(|command| Line::Waiting(connection, command));
        let arrival = || (rest == "<").then_some(Line::Arrival(connection));
        let orders = [("> ", Order::Given), ("~> ", Order::Sorted), ("~~> ", Order::InnerSorted)];
        let ordered = orders.into_iter().find_map(|(mark, order)| in_order(mark, order));
        ordered.or_else(waiting).or_else(arrival)
    }
}

/// The node of a connection, whose name is the node's number with a letter behind it, or none.
fn node_of(connection: &str) -> Option<usize> {
    connection.strip_suffix(|letter: char| letter.is_ascii_lowercase()).unwrap_or(connection).parse().ok()
}

/// A cluster with the connections to its nodes.
struct Play<C> {
    cluster: C,
    addresses: Vec<SocketAddr>,
    connections: BTreeMap<String, Connection>,
    names: Names,
}

impl<C: Cluster> Play<C> {
    fn begin(cluster: C) -> io::Result<Play<C>> {
        let addresses = cluster.addresses();
        let names = Names::learn(&addresses)?;
        Ok(Play { cluster, addresses, connections: BTreeMap::new(), names })
    }

    fn address(&self, connection: &str) -> SocketAddr {
        self.addresses[node_of(connection).expect("the name was checked")]
    }

    fn connection(&mut self, name: &str) -> io::Result<&mut Connection> {
        let address = self.address(name);
        if !self.connections.contains_key(name) {
            self.connections.insert(name.to_owned(), Connection::open(address)?);
        }
        Ok(self.connections.get_mut(name).expect("it was opened"))
    }

    /// Does what a line says, and returns the lines of the answer.
    fn run(&mut self, line: &Line<'_>) -> io::Result<Vec<String>> {
        let (name, order) = match *line {
            Line::Title | Line::Comment => return Ok(Vec::new()),
            Line::Settle => {
                self.cluster.settle();
                return Ok(Vec::new());
            }
            Line::Kill(node) => {
                self.cluster.kill(node);
                return Ok(Vec::new());
            }
            Line::NewIds(node) => {
                self.names.learn_ids(self.addresses[node], "new-", node)?;
                return Ok(Vec::new());
            }
            Line::Resp3(name) => {
                self.connection(name)?.use_resp3()?;
                return Ok(Vec::new());
            }
            Line::Waiting(name, command) => {
                self.send_waiting(name, command)?;
                return Ok(Vec::new());
            }
            Line::Command(name, order, command) => {
                let command = self.names.in_command(command);
                self.connection(name)?.send(&command)?;
                (name, order)
            }
            Line::Arrival(name) => (name, Order::Given),
        };
        let connection = self.connection(name)?;
        let (reply, protocol) = (connection.next()?, connection.protocol);
        Ok(reply.map_or_else(|| vec!["(closed)".to_owned()], |reply| self.written(reply, protocol, order)))
    }

    /// Returns when the client waits.
    fn send_waiting(&mut self, name: &str, command: &str) -> io::Result<()> {
        let (address, command) = (self.address(name), self.names.in_command(command));
        let before = waiting_clients(address)?;
        self.connection(name)?.send(&command)?;
        while waiting_clients(address)? == before {
            wait(Duration::from_millis(10));
        }
        Ok(())
    }

    fn written(&self, reply: Reply, protocol: Protocol, order: Order) -> Vec<String> {
        if let Reply::Push(items) = reply {
            let items = self.written(Reply::Array(items), protocol, order);
            return ["(push)".to_owned()].into_iter().chain(items).collect();
        }
        let lines = broken_up(render(&self.names.in_reply(reply), protocol, order));
        let mut lines: Vec<String> = lines.iter().map(|line| self.names.in_answer(line)).collect();
        // Elements of aggregates have numbers and were sorted before; lines of a text are now.
        if order == Order::Sorted && !lines.iter().any(|line| line.trim_start().starts_with("1) ")) {
            lines.sort();
        }
        lines
    }
}

/// Plays the file against clusters that `start` makes, and returns it with their answers.
fn play<C: Cluster>(text: &str, mut start: impl FnMut() -> io::Result<C>) -> io::Result<String> {
    let mut played = String::new();
    let mut state: Option<Play<C>> = None;
    for line in text.lines() {
        let Some(parsed) = Line::parse(line) else { continue };
        writeln!(played, "{line}").expect("a text takes all");
        if matches!(parsed, Line::Title) {
            state = Some(Play::begin(start()?)?);
        }
        let Some(play) = &mut state else { continue };
        let lines = play.run(&parsed).map_err(|error| io::Error::other(format!("{line}: {error}\nafter\n{played}")))?;
        lines.iter().for_each(|line| writeln!(played, "{line}").expect("a text takes all"));
    }
    Ok(played)
}

#[track_caller]
fn assert_same(file: &str, played: &str, text: &str) {
    let sections = text.split("\n== ").zip(played.split("\n== "));
    let faults: Vec<String> = sections.filter_map(|(expected, found)| first_difference(expected, found)).collect();
    assert!(faults.is_empty(), "{file}:\n{}", faults.join("\n"));
    assert_eq!(played, text, "{file}");
}

/// The first line of a section that is another one, with the command before it.
fn first_difference(expected: &str, found: &str) -> Option<String> {
    let place = expected.lines().zip(found.lines()).take_while(|(expected, found)| expected == found).count();
    let shown = |section: &str| section.lines().nth(place).unwrap_or("nothing more").to_owned();
    let command = expected.lines().take(place).filter(|line| Line::parse(line).is_some()).last().unwrap_or_default();
    let title = expected.lines().next().unwrap_or_default();
    let differs = expected.trim_end() != found.trim_end();
    differs.then(|| format!("{title}: {command}\n    {}\n    instead of {}", shown(found), shown(expected)))
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
