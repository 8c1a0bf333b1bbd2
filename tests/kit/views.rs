//! Views of a cluster that are out of date: of a node that has missed the news.

use std::time::Duration;

use dunlin::{Reply, Server};

use crate::nodes::Nodes;

/// Longer than `cluster-node-timeout`, and an election.
const UNTIL_REPLACED: Duration = Duration::from_secs(17);

fn with_replicas() -> Nodes {
    Nodes::of(Server::cluster(3).replicas(1).seed(7).frozen().start().expect("the nodes start"))
}

#[test]
fn a_node_with_a_stale_view_redirects_to_where_a_slot_was() {
    let mut nodes = Nodes::start();
    let [first, second] = [nodes.moved(5061, 0), nodes.moved(5061, 1)];
    nodes.expect(&[(0, "SET bar 1", "OK"), (1, "DUNLIN VIEW 2 STALE", "OK")]);
    nodes.expect(&[(0, "DUNLIN MIGRATE-SLOT 5061 TO 1", "OK"), (1, "GET bar", "1")]);
    nodes.expect(&[(2, "GET bar", &first), (0, "GET bar", &second)]);
    assert!(nodes.text(2, "CLUSTER SLOTS").starts_with("[[0, 5460, "), "its list of slots is that of before");
    nodes.expect(&[(2, "DUNLIN VIEW 2 FRESH", "OK"), (2, "GET bar", &second)]);
    nodes.expect(&[(0, "DUNLIN MIGRATE-SLOT 5061 TO 0", "OK"), (2, "GET bar", &first)]);
}

#[test]
fn a_primary_with_a_stale_view_takes_writes_that_are_lost_when_it_hears_that_it_was_replaced() {
    let mut nodes = with_replicas();
    nodes.expect(&[(0, "SET bar 1", "OK"), (1, "DUNLIN VIEW 0 STALE", "OK"), (1, "DUNLIN FAILOVER 3 TAKEOVER", "OK")]);
    nodes.expect(&[(0, "SET bar lost", "OK"), (3, "SET bar 2", "OK"), (0, "GET bar", "lost")]);
    let moved = nodes.moved(5061, 3);
    nodes.expect(&[(1, "DUNLIN VIEW 0 FRESH", "OK"), (0, "GET bar", &moved), (3, "GET bar", "2")]);
    nodes.expect(&[(0, "READONLY", "OK"), (0, "GET bar", "2")]);
}

#[test]
fn a_node_with_a_stale_view_does_not_know_that_another_one_has_failed_or_is_back() {
    let mut nodes = with_replicas();
    nodes.server.make_view_stale(4).expect("it runs");
    nodes.server.kill_node(0).expect("it runs");
    nodes.server.advance(UNTIL_REPLACED);
    let [dead, replica] = [nodes.moved(5061, 0), nodes.moved(5061, 3)];
    nodes.expect(&[(3, "SET bar 1", "OK"), (2, "GET bar", &replica), (4, "GET bar", &dead)]);
    nodes.server.refresh_view(4).expect("it runs");
    nodes.expect(&[(4, "GET bar", &replica)]);
    assert_eq!(nodes.shown(4, 0).1, "disconnected");
    nodes.server.make_view_stale(4).expect("it runs");
    nodes.server.restart_node(0).expect("it is down");
    assert_eq!([4, 2].map(|node| nodes.shown(node, 0).1), ["disconnected", "connected"]);
    nodes.server.refresh_view(4).expect("it runs");
    assert_eq!(nodes.shown(4, 0).1, "connected");
}

#[test]
fn a_node_with_a_stale_view_does_not_vote() {
    let mut nodes = with_replicas();
    [1, 2].into_iter().for_each(|node| nodes.server.make_view_stale(node).expect("it runs"));
    nodes.server.kill_node(0).expect("it runs");
    nodes.server.advance(UNTIL_REPLACED);
    assert_eq!(nodes.text(3, "ROLE").split(',').next(), Some("[slave"));
    [1, 2].into_iter().for_each(|node| nodes.server.refresh_view(node).expect("it runs"));
    nodes.server.advance(UNTIL_REPLACED * 3);
    nodes.expect(&[(3, "SET bar 1", "OK")]);
}

#[test]
fn messages_and_the_stream_of_a_primary_reach_a_node_with_a_stale_view() {
    let mut nodes = with_replicas();
    nodes.expect(&[(0, "DUNLIN VIEW 3 STALE", "OK"), (0, "SET bar 1", "OK"), (3, "READONLY", "OK")]);
    nodes.expect(&[(3, "GET bar", "1")]);
    assert_eq!(nodes.ask(0, "WAIT 1 0"), Reply::Integer(1));
}

#[test]
fn a_replica_with_a_stale_view_follows_its_primary_again_after_the_link_was_lost() {
    for loss in [["DUNLIN NODE 0 KILL", "DUNLIN NODE 0 RESTART"], ["DUNLIN PARTITION 3", "DUNLIN HEAL"]] {
        let mut nodes = with_replicas();
        nodes.expect(&[(1, "DUNLIN VIEW 3 STALE", "OK"), (1, loss[0], "OK"), (1, loss[1], "OK")]);
        nodes.server.advance(Duration::from_secs(3));
        nodes.clients[0] = nodes.nodes[0].client().expect("there is room");
        nodes.expect(&[(0, "SET bar 1", "OK"), (3, "READONLY", "OK"), (3, "GET bar", "1")]);
        nodes.expect(&[(1, "DUNLIN VIEW 3 FRESH", "OK"), (0, "SET bar 2", "OK"), (3, "GET bar", "2")]);
        assert_eq!(nodes.ask(0, "WAIT 1 0"), Reply::Integer(1));
    }
}

#[test]
fn what_a_node_knew_of_a_failure_is_as_old_after_its_view_was_stale() {
    let mut nodes = with_replicas();
    nodes.server.kill_node(0).expect("it runs");
    nodes.server.advance(Duration::from_secs(10));
    for node in [1, 2] {
        nodes.server.make_view_stale(node).expect("it runs");
        nodes.server.refresh_view(node).expect("it runs");
    }
    nodes.server.advance(Duration::from_secs(7));
    nodes.expect(&[(3, "SET bar 1", "OK")]);
}

#[test]
fn a_slot_moves_from_its_owner_and_not_from_one_that_does_not_know_that_it_was_replaced() {
    let mut nodes = with_replicas();
    nodes.expect(&[(1, "DUNLIN VIEW 0 STALE", "OK"), (1, "DUNLIN FAILOVER 3 TAKEOVER", "OK")]);
    nodes.expect(&[(0, "SET bar lost", "OK"), (3, "SET bar 1", "OK")]);
    nodes.expect(&[(1, "DUNLIN MIGRATE-SLOT 5061 TO 1", "OK"), (1, "GET bar", "1")]);
}

#[test]
fn a_partition_and_a_stale_view_end_in_either_order() {
    for heals_first in [true, false] {
        let mut nodes = Nodes::start();
        nodes.expect(&[(0, "DUNLIN VIEW 2 STALE", "OK"), (0, "DUNLIN PARTITION 2", "OK")]);
        assert_eq!([nodes.shown(2, 0).1, nodes.shown(0, 2).1], ["connected", "disconnected"]);
        let ends = ["DUNLIN HEAL", "DUNLIN VIEW 2 FRESH"];
        let [one, other] = if heals_first { ends } else { [ends[1], ends[0]] };
        nodes.expect(&[(0, one, "OK")]);
        let seen = if heals_first { "connected" } else { "disconnected" };
        assert_eq!(nodes.shown(2, 0).1, seen, "after {one}");
        nodes.expect(&[(0, other, "OK")]);
        assert_eq!([nodes.shown(2, 0).1, nodes.shown(0, 2).1], ["connected", "connected"]);
    }
}

#[test]
fn a_restart_makes_a_view_fresh() {
    let mut nodes = Nodes::start();
    nodes.expect(&[(0, "DUNLIN VIEW 2 STALE", "OK"), (0, "DUNLIN MIGRATE-SLOT 5061 TO 1", "OK")]);
    nodes.server.kill_node(2).expect("it runs");
    nodes.server.restart_node(2).expect("it is down");
    nodes.server.advance(Duration::from_secs(3));
    nodes.clients[2] = nodes.nodes[2].client().expect("there is room");
    let [first, second] = [nodes.moved(5061, 0), nodes.moved(5061, 1)];
    nodes.expect(&[(2, "GET bar", &second), (0, "DUNLIN MIGRATE-SLOT 5061 TO 0", "OK"), (2, "GET bar", &first)]);
}

#[test]
fn only_a_node_that_runs_has_a_view() {
    let mut nodes = Nodes::start();
    nodes.server.kill_node(1).expect("it runs");
    nodes.expect(&[
        (0, "DUNLIN VIEW 2 FRESH", "OK"),
        (0, "DUNLIN VIEW 1 STALE", "ERR node 1 is down"),
        (0, "DUNLIN VIEW 9 STALE", "ERR no node 9"),
        (0, "DUNLIN VIEW 2 OLD", "ERR syntax error, usage: DUNLIN VIEW number <STALE | FRESH>"),
    ]);
    let plain = Server::start().expect("it starts");
    let refused = plain.make_view_stale(0).expect_err("it has no nodes");
    assert_eq!(refused.to_string(), "ERR no node 0");
}
