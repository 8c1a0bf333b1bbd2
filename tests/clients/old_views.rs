//! Clients that ask a node with an old view of the cluster which node has a slot: they are sent from one former owner
//! to the next, and from there to the one that has the key.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use dunlin::Server;
use redis::Commands;
use redis::cluster::ClusterClient;

use crate::programs::Program;
use crate::timeout::{TIMEOUT, wait_until};

const KEY: &str = "bar";
const SLOT: u16 = 5061;
const VALUE: &str = "7";

/// The most redirects by which a client finds a key: the slot has had two owners before.
const MOST_REDIRECTS: usize = 2;

/// A program that reads the key whenever it is asked; ended when dropped.
struct Reader {
    process: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Reader {
    fn of(command: &mut Command) -> Reader {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let input = process.stdin.take().expect("its input is a pipe");
        let output = process.stdout.take().expect("its output is a pipe");
        let (sender, lines) = channel();
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Reader { process, input, lines }
    }

    fn read(&mut self) -> String {
        writeln!(self.input, "read").expect("the program reads its input");
        self.lines.recv_timeout(TIMEOUT).expect("the program says what it has read")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Four primaries, of which the first still sees the second as the owner of the slot, and that the third, which was it
/// after that. The last one owns it.
fn cluster_with_old_views() -> Server {
    let server = Server::cluster(4).start().expect("the nodes start");
    server.nodes()[1].client().and_then(|mut client| client.call(["SET", KEY, VALUE])).expect("it owns the slot");
    server.make_view_stale(0).expect("it is up");
    server.migrate_slot(SLOT, 2).expect("both are up");
    server.make_view_stale(1).expect("it is up");
    server.migrate_slot(SLOT, 3).expect("both are up");
    server
}

/// A client finds the key, and goes to its owner at once when all nodes have a new view.
fn finds_the_key(name: &str, server: &Server, mut read: impl FnMut() -> String) {
    let journal = server.journal_of_all_nodes();
    let redirects = || journal.key(KEY).redirected().count();
    let mut redirects_of_a_read = || {
        let before = redirects();
        assert_eq!(read(), VALUE, "{name}");
        redirects() - before
    };
    let first = redirects_of_a_read();
    assert!((1..=MOST_REDIRECTS).contains(&first), "{name} is redirected {first} times");
    [0, 1].into_iter().for_each(|node| server.refresh_view(node).expect("it is up"));
    wait_until("the client knows the owner", || {
        let next = redirects_of_a_read();
        assert!(next <= MOST_REDIRECTS, "{name} is redirected {next} times");
        next == 0
    });
}

fn program_finds_the_key(name: &str, command: impl Fn(&[&str]) -> Command) {
    for protocol in ["2", "3"] {
        let server = cluster_with_old_views();
        let port = server.addr().port().to_string();
        let mut reader = Reader::of(&mut command(&[&port, protocol]));
        finds_the_key(name, &server, || reader.read());
    }
}

/// Runs a program of `tests/clients`.
fn script_finds_the_key(name: &str, program: Option<Program>, file: &str) {
    let Some(program) = program else { return };
    let file = format!("{}/tests/clients/{file}", env!("CARGO_MANIFEST_DIR"));
    program_finds_the_key(name, |words| {
        let mut command = program.command();
        command.arg(&file).args(words).arg(KEY);
        command
    });
}

#[test]
fn redis_py_finds_a_key_by_two_redirects_at_most_from_a_node_with_an_old_view() {
    script_finds_the_key("redis-py", Program::python_with("redis"), "redis_py_finding.py");
}

#[test]
fn ioredis_finds_a_key_by_two_redirects_at_most_from_a_node_with_an_old_view() {
    script_finds_the_key("ioredis", Program::node_with("ioredis"), "ioredis_finding.js");
}

#[test]
fn node_redis_finds_a_key_by_two_redirects_at_most_from_a_node_with_an_old_view() {
    script_finds_the_key("node-redis", Program::node_with("redis"), "node_redis_finding.js");
}

#[test]
fn jedis_finds_a_key_by_two_redirects_at_most_from_a_node_with_an_old_view() {
    script_finds_the_key("Jedis", Program::java_with_clients(), "java/JedisFinding.java");
}

#[test]
fn lettuce_finds_a_key_by_two_redirects_at_most_from_a_node_with_an_old_view() {
    script_finds_the_key("Lettuce", Program::java_with_clients(), "java/LettuceFinding.java");
}

#[test]
fn go_redis_finds_a_key_by_two_redirects_at_most_from_a_node_with_an_old_view() {
    let Some(program) = Program::of_go() else { return };
    program_finds_the_key("go-redis", |words| {
        let mut command = program.command();
        command.args(words).args(["finding", KEY]);
        command
    });
}

#[test]
fn redis_rs_finds_a_key_by_two_redirects_at_most_from_a_node_with_an_old_view() {
    let server = cluster_with_old_views();
    let client = ClusterClient::new([server.url()]).expect("the address is right");
    let mut connection = client.get_connection().expect("the node knows its cluster");
    finds_the_key("redis-rs", &server, || connection.get(KEY).expect("the key is there"));
}
