//! Nodes of a cluster that a test pauses, as a process is stopped: nobody is answered, and nothing is closed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::task::Poll;

use dunlin::{CallError, Client, Reply};

use crate::nodes::Nodes;
use crate::polled;
use crate::timeout::{TIMEOUT, wait_until};

/// Calls of clients of a node, none of which is answered yet.
fn hold<'c>(clients: &'c mut [Client], lines: &[&str]) -> Vec<Call<'c>> {
    let lines: Vec<Vec<String>> = lines.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
    let calls = clients.iter_mut().zip(lines).map(|(client, line)| Box::pin(client.call_async(line)) as Call<'c>);
    let mut calls: Vec<Call<'c>> = calls.collect();
    for call in &mut calls {
        assert!(polled(call.as_mut()).is_pending(), "it is answered");
    }
    calls
}

type Call<'c> = Pin<Box<dyn Future<Output = Result<Reply, CallError>> + 'c>>;

/// The reply of a call that is answered now, or what refuses it.
fn answer(call: &mut Call<'_>) -> String {
    let mut reply = Poll::Pending;
    wait_until("the call is answered", || {
        reply = polled(call.as_mut());
        reply.is_ready()
    });
    match reply {
        Poll::Ready(Ok(Reply::Null)) => "nil".to_owned(),
        Poll::Ready(Ok(Reply::Integer(number))) => number.to_string(),
        Poll::Ready(Ok(reply)) => reply.text().expect("it is a text").into_owned(),
        Poll::Ready(Err(error)) => error.to_string(),
        Poll::Pending => unreachable!("it was waited for"),
    }
}

fn clients<const N: usize>(nodes: &Nodes, node: usize) -> [Client; N] {
    [(); N].map(|()| nodes.nodes[node].client().expect("a paused node lets clients in"))
}

#[test]
fn a_paused_node_answers_what_has_come_once_it_goes_on() {
    let mut nodes = Nodes::start();
    nodes.expect(&[(0, "SET bar 1", "OK"), (1, "DUNLIN NODE 0 PAUSE", "OK")]);
    let mut clients = clients::<4>(&nodes, 0);
    // Of every kind: what the node would refuse before it looks at pauses of clients waits, too.
    let mut calls = hold(&mut clients, &["INCR bar", "NOSUCH", "GET foo", "CLIENT UNPAUSE"]);
    nodes.advance_ms(14_000);
    nodes.expect(&[(1, "SET abc 1", "OK")]);
    assert!(calls.iter_mut().all(|call| polled(call.as_mut()).is_pending()));
    nodes.expect(&[(1, "DUNLIN NODE 0 RESUME", "OK")]);
    let replies: Vec<String> = calls.iter_mut().map(answer).collect();
    assert!(replies[1].starts_with("ERR unknown command 'NOSUCH'"), "{replies:?}");
    assert_eq!([&replies[0], &replies[2], &replies[3]], ["2", nodes.moved(12182, 2).as_str(), "OK"]);
    nodes.expect(&[(0, "GET bar", "2")]);
}

#[test]
fn a_paused_primary_is_replaced_and_knows_it_before_its_clients_are_answered() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "SET bar 1", "OK"), (1, "DUNLIN NODE 0 PAUSE", "OK")]);
    let mut clients = clients::<1>(&nodes, 0);
    let mut late = hold(&mut clients, &["SET bar late"]);
    nodes.advance_ms(16_000);
    nodes.expect(&[(3, "SET bar 2", "OK")]);
    assert_eq!(nodes.shown(1, 0).0, "master,fail");
    nodes.expect(&[(1, "DUNLIN NODE 0 RESUME", "OK")]);
    assert_eq!(answer(&mut late[0]), nodes.moved(5061, 3));
    nodes.expect(&[(0, "READONLY", "OK"), (0, "GET bar", "2"), (3, "GET bar", "2")]);
    assert_eq!(nodes.shown(1, 0), ("slave".to_owned(), "connected".to_owned()));
}

#[test]
fn a_paused_replica_gets_what_it_has_missed() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "SET bar 1", "OK"), (0, "DUNLIN NODE 3 PAUSE", "OK"), (0, "SET bar 2", "OK")]);
    nodes.expect(&[(0, "DUNLIN NODE 3 RESUME", "OK"), (0, "WAIT 1 0", "1")]);
    nodes.expect(&[(3, "READONLY", "OK"), (3, "GET bar", "2"), (0, "SET bar 3", "OK"), (3, "GET bar", "3")]);
}

#[test]
fn a_client_may_pause_the_node_that_it_is_connected_to() {
    let mut nodes = Nodes::start();
    nodes.expect(&[(0, "DUNLIN NODE 0 PAUSE", "OK"), (1, "DUNLIN NODE 0 RESUME", "OK"), (0, "PING", "PONG")]);
}

#[test]
fn a_paused_node_that_is_killed_closes_the_connections_that_wait() {
    let mut nodes = Nodes::start();
    nodes.expect(&[(1, "DUNLIN NODE 0 PAUSE", "OK")]);
    let mut clients = clients::<1>(&nodes, 0);
    let mut calls = hold(&mut clients, &["SET bar 1"]);
    nodes.expect(&[(1, "DUNLIN NODE 0 KILL", "OK")]);
    assert_eq!(answer(&mut calls[0]), CallError::Closed.to_string());
    nodes.restart(0);
    nodes.advance_ms(3_000);
    nodes.expect(&[(0, "GET bar", "nil")]);
}

#[test]
fn a_server_ends_while_nodes_of_it_are_paused() {
    let mut nodes = Nodes::start();
    nodes.expect(&[(1, "DUNLIN NODE 0 PAUSE", "OK"), (1, "DUNLIN NODE 2 PAUSE", "OK")]);
    let address = nodes.nodes[2].addr();
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"PING\r\n").expect("it is open");
    drop(nodes);
    // However it is closed, no answer comes.
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(rest, b"");
}

#[test]
fn connections_of_a_paused_node_stay_open_and_new_ones_come() {
    let mut nodes = Nodes::start();
    let address = nodes.nodes[2].addr();
    let mut before = TcpStream::connect(address).expect("it listens");
    nodes.expect(&[(0, "DUNLIN NODE 2 PAUSE", "OK")]);
    let mut meanwhile = TcpStream::connect(address).expect("it listens");
    for stream in [&mut before, &mut meanwhile] {
        stream.write_all(b"PING\r\n").expect("it is open");
        stream.set_read_timeout(Some(TIMEOUT)).expect("it takes one");
    }
    // This one gives up; what it has asked for is done all the same.
    let mut given_up = TcpStream::connect(address).expect("it listens");
    given_up.write_all(b"SET foo given-up\r\n").expect("it is open");
    drop(given_up);
    nodes.expect(&[(0, "DUNLIN NODE 2 RESUME", "OK")]);
    for stream in [&mut before, &mut meanwhile] {
        let mut reply = [0; 7];
        stream.read_exact(&mut reply).expect("it is answered");
        assert_eq!(&reply, b"+PONG\r\n");
    }
    wait_until("the write of the one that has given up is done", || nodes.text(2, "GET foo") == "given-up");
}

#[test]
fn what_waits_in_a_command_waits_on_while_its_node_is_paused() {
    let mut nodes = Nodes::start();
    let mut clients = clients::<1>(&nodes, 0);
    let mut blocked = hold(&mut clients, &["BLPOP bar 5"]);
    nodes.expect(&[(1, "DUNLIN NODE 0 PAUSE", "OK")]);
    nodes.advance_ms(10_000);
    assert!(polled(blocked[0].as_mut()).is_pending());
    nodes.expect(&[(1, "DUNLIN NODE 0 RESUME", "OK")]);
    assert_eq!(answer(&mut blocked[0]), "nil");
}

#[test]
fn the_list_of_nodes_tells_which_are_paused_and_which_have_a_stale_view() {
    let mut nodes = Nodes::start();
    nodes.expect(&[(0, "DUNLIN NODE 1 PAUSE", "OK"), (0, "DUNLIN VIEW 2 STALE", "OK")]);
    let shown = nodes.text(0, "DUNLIN NODES");
    let states: Vec<&str> = shown.split("up: ").skip(1).filter_map(|rest| rest.split(", offset").next()).collect();
    assert_eq!(states, ["1, paused: 0, stale: 0", "0, paused: 1, stale: 0", "1, paused: 0, stale: 1"]);
}

#[test]
fn orders_that_a_paused_node_cannot_follow_are_refused() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[
        (0, "DUNLIN NODE 3 RESUME", "ERR node 3 is up"),
        (0, "DUNLIN NODE 3 PAUSE", "OK"),
        (0, "DUNLIN NODE 3 PAUSE", "ERR node 3 is paused"),
        (0, "DUNLIN NODE 3 RESTART", "ERR node 3 is paused"),
        (0, "DUNLIN LAG 3 100", "ERR node 3 is paused"),
        (0, "DUNLIN MIGRATE-SLOT 5061 TO 3", "ERR node 3 is paused"),
        (0, "DUNLIN NODE 3 KILL", "OK"),
        (0, "DUNLIN NODE 3 RESUME", "ERR node 3 is down"),
        (0, "DUNLIN NODE 3 PAUSE", "ERR node 3 is down"),
        (0, "DUNLIN NODE 3 RESTART", "OK"),
    ]);
}
