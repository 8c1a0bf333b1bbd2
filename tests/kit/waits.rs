//! DUNLIN WAIT: waiting until a condition holds.

use std::net::{Shutdown, TcpStream};
use std::pin::pin;
use std::task::Poll;

use dunlin::{CallError, Client, Reply, Server};

use crate::nodes::Nodes;
use crate::timeout::{TIMEOUT, wait_until};
use crate::{call, error, polled, served};

fn spawn(server: &Server, words: &'static [&str]) -> std::thread::JoinHandle<Result<Reply, String>> {
    let mut client = server.client().expect("there is room");
    std::thread::spawn(move || client.call(words).map_err(|error| error.to_string()))
}

/// The reply of a wait that `end` ends: it begins before `end` runs, and does not end before that.
fn ended_by(server: &Server, words: &[&str], end: impl FnOnce()) -> Result<Reply, CallError> {
    let mut test = server.client().expect("there is room");
    let mut wait = pin!(test.call_async(words.iter().copied()));
    let mut poll = || polled(wait.as_mut());
    assert!(poll().is_pending(), "nothing has ended it yet");
    end();
    let mut reply = Poll::Pending;
    wait_until("the wait ends", || {
        reply = poll();
        reply.is_ready()
    });
    let Poll::Ready(reply) = reply else { unreachable!("it was waited for") };
    reply
}

fn ok() -> Result<Reply, CallError> {
    Ok(Reply::Status("OK".to_owned()))
}

fn blocked(client: &mut Client) -> i64 {
    let info = call(client, ["INFO", "clients"]);
    let text = info.text().expect("it is a text").into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("blocked_clients:"));
    line.and_then(|number| number.parse().ok()).expect("the reply has the number")
}

#[test]
fn a_wait_ends_when_a_client_is_blocked_and_does_not_count_as_blocked() {
    let (server, mut client) = served();
    let mut worker = None;
    let begin = || worker = Some(spawn(&server, &["BLPOP", "other", "queue", "0"]));
    assert_eq!(ended_by(&server, &["DUNLIN", "WAIT", "BLOCKED", "queue"], begin), ok());
    assert_eq!(blocked(&mut client), 1);
    assert_eq!(call(&mut client, ["DUNLIN", "WAIT", "BLOCKED", "queue"]), Reply::Status("OK".to_owned()));
    call(&mut client, ["RPUSH", "queue", "job"]);
    worker.expect("it has started").join().expect("it ends").expect("it is served");
}

#[test]
fn a_wait_whose_condition_comes_to_hold_during_a_pause_ends_with_the_pause() {
    let server = Server::builder().frozen().start().expect("it starts");
    let mut client = server.client().expect("there is room");
    let mut test = server.client().expect("there is room");
    let mut wait = pin!(test.call_async(["DUNLIN", "WAIT", "CLIENTS", "3"]));
    let mut poll = || polled(wait.as_mut());
    assert!(poll().is_pending());
    call(&mut client, ["CLIENT", "PAUSE", "1000", "ALL"]);
    let _more = [(); 2].map(|()| server.client().expect("there is room"));
    assert!(poll().is_pending());
    server.advance(std::time::Duration::from_secs(1));
    let mut reply = Poll::Pending;
    wait_until("the wait ends", || {
        reply = poll();
        reply.is_ready()
    });
    assert_eq!(reply, Poll::Ready(ok()));
}

#[test]
fn a_wait_ends_when_a_number_of_clients_are_blocked() {
    let (server, mut client) = served();
    let mut workers = Vec::new();
    let begin = || workers.extend([(); 2].map(|()| spawn(&server, &["BLPOP", "queue", "0"])));
    let wait = ["DUNLIN", "WAIT", "BLOCKED", "queue", "2", "TIMEOUT", "60000"];
    assert_eq!(ended_by(&server, &wait, begin), ok());
    server.wait_for_blocked("queue", 2, TIMEOUT).expect("two clients are blocked");
    call(&mut client, ["RPUSH", "queue", "job", "job"]);
    workers.into_iter().for_each(|worker| _ = worker.join().expect("it ends").expect("it is served"));
}

#[test]
fn a_wait_ends_when_a_number_of_clients_are_subscribed() {
    let (server, _client) = served();
    let mut listeners: Vec<Client> = (0..2).map(|_| server.client().expect("there is room")).collect();
    let subscribe = || listeners.iter_mut().for_each(|listener| _ = call(listener, ["SUBSCRIBE", "news"]));
    assert_eq!(ended_by(&server, &["DUNLIN", "WAIT", "SUBSCRIBERS", "news", "2"], subscribe), ok());
    server.wait_for_subscribers("news", 1, TIMEOUT).expect("there are two");
}

#[test]
fn a_wait_ends_when_the_journal_has_the_command() {
    let (server, mut client) = served();
    let text = "ERR no journal; start one with DUNLIN JOURNAL START";
    assert_eq!(error(&mut client, ["DUNLIN", "WAIT", "JOURNAL", "1"]), text);
    let journal = server.journal();
    let write = || ["user:1", "other", "user:2"].iter().for_each(|key| _ = call(&mut client, ["SET", *key, "value"]));
    let wait = ["DUNLIN", "WAIT", "JOURNAL", "2", "COMMAND", "SET", "KEY", "user:*"];
    assert_eq!(ended_by(&server, &wait, write), ok());
    journal.command("SET").wait_for(3, TIMEOUT).expect("there are three");
}

#[test]
fn a_wait_that_times_out_reports_the_progress() {
    let (server, mut client) = served();
    server.freeze();
    let _journal = server.journal();
    call(&mut client, ["PING"]);
    server.fault("late").command("GET").error("ERR late");
    let waits: [(&[&str], &str); 6] = [
        (&["DUNLIN", "WAIT", "BLOCKED", "queue", "TIMEOUT", "50"], "no client waits for 'queue'"),
        (&["DUNLIN", "WAIT", "BLOCKED", "queue", "2", "TIMEOUT", "50"], "no client waits for 'queue'"),
        (&["DUNLIN", "WAIT", "SUBSCRIBERS", "news", "2", "TIMEOUT", "50"], "0 of 2 listen to 'news'"),
        (
            &["DUNLIN", "WAIT", "JOURNAL", "9", "COMMAND", "PING", "TIMEOUT", "50"],
            "the journal has 1 of 9 commands of COMMAND PING",
        ),
        (&["DUNLIN", "WAIT", "FAULT", "late", "1", "TIMEOUT", "50"], "the rule 'late' has fired 0 of 1 times"),
        (&["DUNLIN", "WAIT", "CLIENTS", "7", "TIMEOUT", "50"], "the number of clients is 1, not 7"),
    ];
    for (words, text) in waits {
        let mut test = server.client().expect("there is room");
        let mut waits = pin!(test.call_async(words));
        assert!(polled(waits.as_mut()).is_pending());
        call(&mut client, ["DUNLIN", "ADVANCE", "49"]);
        assert!(polled(waits.as_mut()).is_pending());
        call(&mut client, ["DUNLIN", "ADVANCE", "1"]);
        let refused = CallError::Refused(format!("ERR waited in vain: {text}"));
        assert_eq!(polled(waits.as_mut()), Poll::Ready(Err(refused)));
    }
}

#[test]
fn a_wait_ends_when_a_rule_has_been_applied_a_number_of_times() {
    let (server, mut client) = served();
    server.fault("flaky").command("GET").error("ERR flaky");
    let fail = || (0..2).for_each(|_| assert_eq!(error(&mut client, ["GET", "key"]), "ERR flaky"));
    assert_eq!(ended_by(&server, &["DUNLIN", "WAIT", "FAULT", "flaky", "2"], fail), ok());
    server.wait_until_fired("flaky", 1, TIMEOUT).expect("the rule is applied");
    let text = "ERR no fault rule 'flakey'; add one with DUNLIN FAULT ADD";
    assert_eq!(error(&mut client, ["DUNLIN", "WAIT", "FAULT", "flakey", "1"]), text);
}

#[test]
fn a_wait_ends_when_a_number_of_clients_are_connected() {
    let (server, _client) = served();
    let mut wires = Vec::new();
    let connect = || wires.extend([(); 3].map(|()| TcpStream::connect(server.addr()).expect("it listens")));
    assert_eq!(ended_by(&server, &["DUNLIN", "WAIT", "CLIENTS", "4"], connect), ok());
    for wire in &mut wires {
        wire.shutdown(Shutdown::Both).expect("it is open");
    }
    server.wait_for_clients(1, TIMEOUT).expect("the others have left");
}

#[test]
fn a_wait_ends_when_the_cluster_fails_and_when_it_serves_keys_again() {
    let nodes = Nodes::start();
    nodes.server.wait_until_cluster_is_ok(TIMEOUT).expect("it serves keys from the start");
    let fail = || {
        nodes.server.kill_node(1).expect("it runs");
        nodes.advance_ms(16_000);
    };
    assert_eq!(ended_by(&nodes.server, &["DUNLIN", "WAIT", "CLUSTER", "FAIL"], fail), ok());
    let heal = || {
        nodes.server.restart_node(1).expect("its port is free");
        nodes.advance_ms(30_000);
    };
    assert_eq!(ended_by(&nodes.server, &["DUNLIN", "WAIT", "CLUSTER", "OK"], heal), ok());
}

#[test]
fn a_wait_ends_when_the_replicas_of_a_node_have_all_writes() {
    let mut nodes = Nodes::with_replicas_each(2);
    nodes.expect(&[(0, "DUNLIN WAIT SYNCED", "OK"), (3, "DUNLIN WAIT SYNCED", "OK"), (0, "DUNLIN LAG 3 500", "OK")]);
    nodes.expect(&[(0, "DUNLIN LINK 0 6 DELAY 700", "OK"), (0, "SET bar 1", "OK"), (1, "DUNLIN WAIT SYNCED", "OK")]);
    let wait = ["DUNLIN", "WAIT", "SYNCED"];
    let [mut first, mut second, mut third] = [0, 3, 6].map(|node| nodes.nodes[node].client().expect("there is room"));
    let (mut first, mut second, mut third) =
        (pin!(first.call_async(wait)), pin!(second.call_async(wait)), pin!(third.call_async(wait)));
    for wait in [&mut first, &mut second, &mut third] {
        assert_eq!(polled(wait.as_mut()), Poll::Pending);
    }
    nodes.advance_ms(500);
    assert_eq!(polled(second), Poll::Ready(ok()));
    assert_eq!(polled(third.as_mut()), Poll::Pending);
    nodes.advance_ms(200);
    assert_eq!(polled(third), Poll::Ready(ok()));
    assert_eq!(polled(first.as_mut()), Poll::Pending);
    nodes.advance_ms(700);
    assert_eq!(polled(first), Poll::Ready(ok()));
}

#[test]
fn a_wait_for_a_cluster_needs_one_and_a_server_without_replicas_is_synced() {
    let (server, mut client) = served();
    let text = "ERR This instance has cluster support disabled";
    assert_eq!(error(&mut client, ["DUNLIN", "WAIT", "CLUSTER", "OK"]), text);
    server.wait_until_synced(TIMEOUT).expect("there is nothing to wait for");
}

#[test]
fn a_test_that_disconnects_while_it_waits_leaves_nothing_behind() {
    let (server, mut client) = served();
    let mut wire = std::net::TcpStream::connect(server.addr()).expect("it listens");
    std::io::Write::write_all(&mut wire, b"DUNLIN WAIT BLOCKED queue\r\n").expect("it reads");
    drop(wire);
    server.wait_for_clients(1, TIMEOUT).expect("it has left");
    assert_eq!(call(&mut client, ["BLPOP", "queue", "0.001"]), Reply::Null);
    assert_eq!(blocked(&mut client), 0);
}

#[test]
fn an_impossible_wait_is_refused() {
    let (_server, mut client) = served();
    for words in [
        "BLOCKED",
        "NOSUCH x",
        "SUBSCRIBERS news",
        "SUBSCRIBERS news -1",
        "BLOCKED key TIMEOUT",
        "BLOCKED key -1",
        "FAULT name",
        "CLIENTS",
        "CLIENTS many",
    ] {
        error(&mut client, ["DUNLIN", "WAIT"].into_iter().chain(words.split(' ')));
    }
    let text = "ERR timeout is negative";
    assert_eq!(error(&mut client, ["DUNLIN", "WAIT", "BLOCKED", "key", "TIMEOUT", "-1"]), text);
}
