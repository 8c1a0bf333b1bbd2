//! Nodes of a cluster that sleep (DEBUG SLEEP), and links between a primary and its replicas that a client closes.

use std::pin::Pin;
use std::time::Duration;

use dunlin::{CallError, Client, Reply, Server};

use crate::nodes::{Nodes, in_one_line, text};
use crate::{ended, polled};

/// Three primaries with that many replicas each, on a clock that runs: a node sleeps until the test moves the clock, as
/// the sleep is longer than any test.
fn running(replicas: u16) -> Nodes {
    Nodes::of(Server::cluster(3).replicas(replicas).seed(7).allow_debug().start().expect("the nodes start"))
}

/// Runs a transaction.
#[track_caller]
fn run_transaction(nodes: &mut Nodes, node: usize, lines: &[&str]) -> String {
    queue(&mut nodes.clients[node], lines);
    nodes.text(node, "EXEC")
}

#[track_caller]
fn queue(client: &mut Client, lines: &[&str]) {
    assert_eq!(text(client, "MULTI"), "OK");
    lines.iter().for_each(|line| assert_eq!(text(client, line), "QUEUED", "{line}"));
}

/// A call that puts the node of a client to sleep: it has begun, and ends with the sleep.
#[track_caller]
fn fall_asleep<'c>(
    sleeper: &'c mut Client,
    words: &'c [&str],
) -> Pin<Box<impl Future<Output = Result<Reply, CallError>> + 'c>> {
    let mut sleep = Box::pin(sleeper.call_async(words));
    assert!(polled(sleep.as_mut()).is_pending(), "it is answered at once");
    sleep
}

/// The command with which a replica closes its link to the first node.
fn kill_link_to_first(nodes: &Nodes) -> String {
    format!("CLIENT KILL 127.0.0.1:{}", nodes.port(0))
}

#[test]
fn the_others_are_served_while_a_node_sleeps_and_what_they_send_arrives_at_the_end() {
    let mut nodes = running(1);
    nodes.expect(&[(3, "READONLY", "OK"), (0, "SET bar 1", "OK")]);
    let mut sleeper = nodes.nodes[3].client().expect("there is room");
    let mut sleep = fall_asleep(&mut sleeper, &["DEBUG", "SLEEP", "1000"]);
    nodes.expect(&[(0, "SET bar 2", "OK"), (1, "SET abc 1", "OK"), (0, "WAIT 1 1", "0")]);
    let offset = nodes.replication(0, "master_repl_offset");
    nodes.advance_ms(1_000_000);
    ended(sleep.as_mut()).expect("the sleeper is answered");
    nodes.expect(&[(3, "GET bar", "2"), (0, "WAIT 1 0", "1")]);
    assert_eq!(nodes.replication(3, "slave_repl_offset"), offset);
    assert_eq!(nodes.replication(0, "master_repl_offset"), offset);
}

#[test]
fn what_a_transaction_changes_reaches_the_replicas_behind_its_sleep() {
    let mut nodes = running(1);
    nodes.expect(&[(3, "READONLY", "OK")]);
    let mut sleeper = nodes.nodes[0].client().expect("there is room");
    queue(&mut sleeper, &["SET bar 1", "DEBUG SLEEP 10000"]);
    let mut sleep = fall_asleep(&mut sleeper, &["EXEC"]);
    nodes.expect(&[(3, "GET bar", "nil")]);
    // A replica replaces it meanwhile, so the write is lost.
    nodes.advance_ms(5_000_000);
    nodes.expect(&[(3, "SET bar 2", "OK")]);
    nodes.advance_ms(5_000_000);
    ended(sleep.as_mut()).expect("the sleeper is answered");
    nodes.expect(&[(0, "READONLY", "OK"), (0, "GET bar", "2"), (3, "GET bar", "2")]);
}

#[test]
fn a_replica_that_loses_its_link_in_its_sleep_is_less_fresh_than_one_that_has_heard_all() {
    let mut nodes = running(2);
    nodes.expect(&[(0, "SET bar 1", "OK")]);
    let mut sleeper = nodes.nodes[3].client().expect("there is room");
    queue(&mut sleeper, &["DEBUG SLEEP 1000", &kill_link_to_first(&nodes)]);
    let mut sleep = fall_asleep(&mut sleeper, &["EXEC"]);
    nodes.expect(&[(0, "SET bar 2", "OK"), (0, "CLIENT PAUSE 100000000", "OK")]);
    nodes.advance_ms(1_000_000);
    ended(sleep.as_mut()).expect("the sleeper is answered");
    let offsets = [3, 6].map(|node| nodes.replication(node, "slave_repl_offset").parse::<u64>().expect("a number"));
    assert!(offsets[0] < offsets[1], "{offsets:?}");
    nodes.expect(&[(1, "DUNLIN NODE 0 KILL", "OK")]);
    nodes.advance_ms(60_000);
    nodes.expect(&[(6, "GET bar", "2")]);
    assert_eq!(nodes.replication(6, "role"), "master");
    assert_eq!([nodes.replication(3, "role"), nodes.replication(3, "master_link_status")], ["slave", "up"]);
    nodes.assert_equal_data(3, 6);
}

#[test]
fn a_replica_that_loses_its_link_and_then_sleeps_connects_again_when_it_wakes() {
    let mut nodes = running(1);
    let mut sleeper = nodes.nodes[3].client().expect("there is room");
    queue(&mut sleeper, &[&kill_link_to_first(&nodes), "DEBUG SLEEP 1000"]);
    let mut sleep = fall_asleep(&mut sleeper, &["EXEC"]);
    nodes.expect(&[(0, "CLIENT PAUSE 100000000", "OK")]);
    nodes.advance_ms(1_000_000);
    ended(sleep.as_mut()).expect("the sleeper is answered");
    assert_eq!(nodes.replication(3, "master_link_status"), "down");
    nodes.advance_ms(100_000_000);
    assert_eq!(nodes.replication(3, "master_link_status"), "up");
}

/// Whether a replica replaces its primary after that transaction, behind which it cannot connect to it again.
fn fails_over_after(transaction: impl Fn(&Nodes) -> [String; 2]) -> bool {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[
        (3, "CONFIG SET cluster-replica-validity-factor 2", "OK"),
        (0, "SET bar 1", "OK"),
        (0, "CLIENT PAUSE 600000", "OK"),
    ]);
    let [first, second] = transaction(&nodes);
    assert_eq!(run_transaction(&mut nodes, 3, &[&first, &second]), "[OK, OK]");
    nodes.expect(&[(1, "DUNLIN NODE 0 KILL", "OK")]);
    nodes.advance_ms(60_000);
    nodes.replication(3, "role") == "master"
}

#[test]
fn a_replica_whose_link_was_down_while_it_slept_is_too_old_to_replace_its_primary() {
    // With a timeout of 15 seconds it may be down for 40.
    let sleep = || "DEBUG SLEEP 60".to_owned();
    assert!(!fails_over_after(|nodes| [kill_link_to_first(nodes), sleep()]));
    assert!(fails_over_after(|nodes| [sleep(), kill_link_to_first(nodes)]), "it was down since the end of its sleep");
}

#[test]
fn a_primary_that_sleeps_for_too_long_is_replaced_and_follows_when_it_wakes() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "SET bar 1", "OK"), (0, "DEBUG SLEEP 10", "OK"), (0, "GET bar", "1")]);
    assert_eq!(nodes.shown(1, 0), ("master".to_owned(), "connected".to_owned()));
    nodes.expect(&[(0, "DEBUG SLEEP 40", "OK"), (0, "GET bar", &nodes.moved(5061, 3)), (3, "GET bar", "1")]);
    assert_eq!(nodes.shown(1, 0), ("slave".to_owned(), "connected".to_owned()));
    assert_eq!(nodes.replication(0, "master_link_status"), "up");
}

#[test]
fn a_node_that_sleeps_is_suspected_though_it_is_connected() {
    let mut nodes = running(0);
    let mut sleeper = nodes.nodes[0].client().expect("there is room");
    let _sleep = fall_asleep(&mut sleeper, &["DEBUG", "SLEEP", "1000"]);
    assert_eq!(nodes.shown(1, 0), ("master".to_owned(), "connected".to_owned()));
    nodes.advance_ms(500_000);
    assert_eq!(nodes.shown(1, 0), ("master,fail".to_owned(), "connected".to_owned()));
    assert_eq!(nodes.info(1, "cluster_state"), "fail");
    nodes.advance_ms(500_000);
    assert_eq!(nodes.shown(1, 0), ("master".to_owned(), "connected".to_owned()));
}

#[test]
fn a_node_that_is_killed_in_its_sleep_answers_nobody() {
    let mut nodes = running(0);
    let [mut sleeper, mut other] = [(); 2].map(|()| nodes.nodes[0].client().expect("there is room"));
    let mut sleep = fall_asleep(&mut sleeper, &["DEBUG", "SLEEP", "1000"]);
    let mut ping = Box::pin(other.call_async(["PING"]));
    assert!(polled(ping.as_mut()).is_pending(), "it is answered by a node that sleeps");
    nodes.expect(&[(1, "DUNLIN NODE 0 KILL", "OK")]);
    assert!(matches!(ended(sleep.as_mut()), Err(CallError::Closed)));
    assert!(matches!(ended(ping.as_mut()), Err(CallError::Closed)));
    nodes.restart(0);
    assert_eq!(nodes.text(0, "PING"), "PONG", "it sleeps no more");
}

#[test]
fn a_server_ends_while_nodes_of_it_sleep() {
    let mut nodes = running(0);
    let mut sleeper = nodes.nodes[2].client().expect("there is room");
    let mut sleep = fall_asleep(&mut sleeper, &["DEBUG", "SLEEP", "1000"]);
    nodes.expect(&[(0, "PING", "PONG")]);
    drop(nodes);
    assert!(matches!(ended(sleep.as_mut()), Err(CallError::Closed)));
}

#[test]
fn a_client_that_wants_no_replies_gets_none_from_a_node_that_slept() {
    let mut nodes = Nodes::start();
    nodes.clients[0].call(["CLIENT", "REPLY", "OFF"]).expect("it is open");
    nodes.clients[0].call(["DEBUG", "SLEEP", "5"]).expect("it is open");
    assert_eq!(in_one_line(&nodes.clients[0].call(["CLIENT", "REPLY", "ON"]).expect("it is open")), "OK");
    nodes.expect(&[(0, "PING", "PONG")]);
}

#[test]
fn a_replica_that_connects_again_waits_for_the_end_of_a_pause_of_its_primary() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "CLIENT PAUSE 60000 WRITE", "OK"), (3, "CLIENT KILL TYPE master", "1")]);
    assert_eq!(nodes.replication(3, "master_link_status"), "up", "only writes are held back");
    nodes.expect(&[(0, "CLIENT PAUSE 60000", "OK"), (3, "CLIENT KILL TYPE master", "1")]);
    assert_eq!(nodes.replication(3, "master_link_status"), "down");
    nodes.advance_ms(59_000);
    assert_eq!(nodes.replication(3, "master_link_status"), "down");
    assert_eq!(nodes.replication(3, "master_link_down_since_seconds"), "59");
    nodes.server.advance(Duration::from_secs(1));
    assert_eq!(nodes.replication(3, "master_link_status"), "up");
    nodes.expect(&[(0, "SET bar 1", "OK"), (0, "WAIT 1 0", "1")]);
}

#[test]
fn a_manual_failover_from_a_primary_that_sleeps_ends_as_an_automatic_one() {
    let mut nodes = running(1);
    let mut sleeper = nodes.nodes[0].client().expect("there is room");
    let mut sleep = fall_asleep(&mut sleeper, &["DEBUG", "SLEEP", "1000"]);
    nodes.expect(&[(3, "CLUSTER FAILOVER", "OK")]);
    nodes.advance_ms(14_000);
    assert_eq!(nodes.replication(3, "role"), "slave");
    nodes.advance_ms(4_000);
    assert_eq!(nodes.replication(3, "role"), "master");
    nodes.advance_ms(990_000);
    ended(sleep.as_mut()).expect("it is answered");
    assert_eq!(nodes.replication(0, "role"), "slave");
}
