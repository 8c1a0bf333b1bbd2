//! DUNLIN FAILOVER LOSING: a failover that loses exactly so many writes which the primary has acknowledged.

use std::time::Duration;

use crate::nodes::Nodes;

/// Writes 1 to `last` to `bar`, each of which is acknowledged.
fn write(nodes: &mut Nodes, last: usize) {
    (1..=last).for_each(|number| nodes.expect(&[(0, &format!("SET bar {number}"), "OK")]));
}

/// Node 3 has that value of `bar`, it alone serves it, and node 0 has the same data.
#[track_caller]
fn assert_taken_over_with(nodes: &mut Nodes, bar: &str) {
    let moved = nodes.moved(5061, 3);
    nodes.expect(&[(3, "GET bar", bar), (0, "GET bar", &moved), (1, "GET bar", &moved)]);
    assert_eq!(nodes.replication(0, "role"), "slave");
    nodes.assert_equal_data(0, 3);
}

#[test]
fn a_failover_loses_as_many_writes_as_a_test_wants_and_not_one_more() {
    for (lost, bar) in [(0, "5"), (1, "4"), (3, "2")] {
        let mut nodes = Nodes::with_replicas();
        nodes.expect(&[(1, "DUNLIN LAG 3 WRITES 3", "OK")]);
        write(&mut nodes, 5);
        nodes.expect(&[(1, &format!("DUNLIN FAILOVER 3 LOSING {lost}"), "OK")]);
        assert_taken_over_with(&mut nodes, bar);
    }
}

#[test]
fn a_transaction_is_lost_as_a_whole() {
    let mut nodes = Nodes::with_replicas();
    nodes.server.set_lag_in_writes(3, 2).expect("it is a replica");
    write(&mut nodes, 1);
    nodes.expect(&[
        (0, "MULTI", "OK"),
        (0, "SET bar 2", "QUEUED"),
        (0, "SET bar 3", "QUEUED"),
        (0, "EXEC", "[OK, OK]"),
    ]);
    nodes.server.fail_over_losing(3, 1).expect("it is behind by one");
    assert_taken_over_with(&mut nodes, "1");
}

#[test]
fn writes_that_are_late_or_on_their_way_can_be_lost_too() {
    let mut nodes = Nodes::with_replicas();
    nodes.server.set_lag(3, Duration::from_secs(1)).expect("it is a replica");
    write(&mut nodes, 3);
    nodes.server.delay_link(0, 3, Duration::from_millis(300)).expect("there is such a link");
    nodes.expect(&[(0, "SET bar 4", "OK"), (0, "SET bar 5", "OK"), (1, "DUNLIN FAILOVER 3 LOSING 2", "OK")]);
    nodes.server.heal();
    assert_taken_over_with(&mut nodes, "3");
}

#[test]
fn a_replica_cannot_lose_what_it_has_applied() {
    let mut nodes = Nodes::with_replicas();
    write(&mut nodes, 2);
    let refused = "ERR node 3 cannot fail over: it is 0 writes behind its primary, not 1";
    nodes.expect(&[(1, "DUNLIN FAILOVER 3 LOSING 1", refused), (1, "DUNLIN LAG 3 WRITES 1", "OK")]);
    assert_eq!(nodes.replication(3, "role"), "slave");
    write(&mut nodes, 3);
    let refused = refused.replace("is 0", "is 1").replace("not 1", "not 2");
    nodes.expect(&[(1, "DUNLIN FAILOVER 3 LOSING 2", &refused), (3, "READONLY", "OK"), (3, "GET bar", "2")]);
    nodes.expect(&[(1, "DUNLIN FAILOVER 3 LOSING 1", "OK")]);
    assert_taken_over_with(&mut nodes, "2");
}

#[test]
fn a_replica_loses_nothing_by_order_once_its_primary_is_down() {
    let mut nodes = Nodes::with_replicas();
    nodes.server.set_lag_in_writes(3, 1).expect("it is a replica");
    write(&mut nodes, 2);
    nodes.server.kill_node(0).expect("it is up");
    let refused = nodes.server.fail_over_losing(3, 1).expect_err("its primary is down");
    assert_eq!(
        refused.to_string(),
        "ERR node 3 cannot fail over: Master is down or failed, please use CLUSTER FAILOVER FORCE"
    );
    let not_replica = nodes.server.fail_over_losing(1, 0).expect_err("it is a primary");
    assert_eq!(not_replica.to_string(), "ERR node 1 cannot fail over: You should send CLUSTER FAILOVER to a replica");
}

#[test]
fn a_lag_ends_and_what_was_held_back_is_applied() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(1, "DUNLIN LAG 3 WRITES 2", "OK"), (3, "READONLY", "OK")]);
    write(&mut nodes, 3);
    nodes.expect(&[(3, "GET bar", "1"), (1, "DUNLIN LAG 3 NONE", "OK"), (3, "GET bar", "3")]);
    nodes.expect(&[(1, "DUNLIN LAG 3 WRITES 2", "OK"), (0, "SET bar 4", "OK"), (3, "GET bar", "3")]);
    nodes.server.end_lag(3).expect("it is a replica");
    nodes.expect(&[(3, "GET bar", "4"), (0, "SET bar 5", "OK"), (3, "GET bar", "5")]);
}

#[test]
fn a_replica_that_does_not_have_the_data_of_its_primary_yet_loses_nothing_by_order() {
    let mut nodes = Nodes::with_replicas();
    write(&mut nodes, 2);
    nodes.server.kill_node(3).expect("it is up");
    nodes.server.delay_link(0, 3, Duration::from_millis(300)).expect("there is such a link");
    nodes.server.restart_node_empty(3).expect("its port is free");
    nodes.clients[3] = nodes.nodes[3].client().expect("it lets clients in");
    nodes.advance_ms(301); // the data are on their way, and so is what comes now
    write(&mut nodes, 4);
    let refused = "ERR node 3 cannot fail over: it is not connected to its primary";
    for lost in [0, 1] {
        nodes.expect(&[(1, &format!("DUNLIN FAILOVER 3 LOSING {lost}"), refused)]);
    }
    nodes.advance_ms(1000);
    nodes.expect(&[(0, "SET bar 5", "OK"), (1, "DUNLIN FAILOVER 3 LOSING 1", "OK")]);
    nodes.server.heal();
    assert_taken_over_with(&mut nodes, "4");
}
