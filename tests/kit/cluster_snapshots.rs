//! Snapshots of a cluster: its nodes go back together.

use crate::nodes::Nodes;

/// A snapshot `s` in which `bar`, `abc` and `foo`, a key of each primary, are 1; they are 2 by now.
fn changed_since_a_snapshot() -> Nodes {
    let mut nodes = Nodes::with_replicas();
    let set = |nodes: &mut Nodes, value| {
        for (node, key) in [(0, "bar"), (1, "abc"), (2, "foo")] {
            nodes.expect(&[(node, &format!("SET {key} {value}"), "OK")]);
        }
    };
    set(&mut nodes, 1);
    nodes.expect(&[(1, "DUNLIN SNAPSHOT s", "OK")]);
    set(&mut nodes, 2);
    nodes.expect(&[(3, "READONLY", "OK"), (4, "READONLY", "OK"), (5, "READONLY", "OK")]);
    nodes
}

#[test]
fn all_nodes_go_back_together_by_an_order_to_any_of_them() {
    let mut nodes = changed_since_a_snapshot();
    nodes.expect(&[(0, "SET {bar}new 1", "OK"), (0, "FUNCTION FLUSH", "OK"), (5, "DUNLIN ROLLBACK s", "OK")]);
    for (node, key) in [(0, "bar"), (1, "abc"), (2, "foo"), (3, "bar"), (4, "abc"), (5, "foo")] {
        nodes.expect(&[(node, &format!("GET {key}"), "1"), (node, "DBSIZE", "1")]);
    }
    nodes.expect(&[(0, "SET bar 3", "OK"), (0, "WAIT 1 0", "1"), (3, "GET bar", "3")]);
    nodes.assert_equal_data(0, 3);
}

#[test]
fn replicas_are_at_the_offset_of_their_primary_after_a_rollback() {
    let mut nodes = changed_since_a_snapshot();
    nodes.expect(&[(0, "DUNLIN ROLLBACK s", "OK")]);
    for (primary, replica) in [(0, 3), (1, 4), (2, 5)] {
        assert_eq!(nodes.replication(replica, "slave_repl_offset"), nodes.replication(primary, "master_repl_offset"));
        assert_eq!(nodes.replication(replica, "master_replid"), nodes.replication(primary, "master_replid"));
        assert_eq!(nodes.replication(replica, "master_link_status"), "up");
    }
}

#[test]
fn what_a_replica_had_not_applied_is_not_applied_after_a_rollback() {
    let mut nodes = changed_since_a_snapshot();
    nodes.expect(&[(0, "DUNLIN LAG 3 200", "OK"), (0, "SET bar 9", "OK"), (0, "DUNLIN ROLLBACK s", "OK")]);
    nodes.advance_ms(400);
    nodes.expect(&[(3, "GET bar", "1"), (0, "GET bar", "1")]);
}

#[test]
fn every_node_has_the_same_snapshots() {
    let mut nodes = changed_since_a_snapshot();
    nodes.expect(&[(4, "DUNLIN SNAPSHOT later", "OK"), (2, "DUNLIN SNAPSHOTS", "[s, later]")]);
    nodes.expect(&[(0, "DUNLIN DROP-SNAPSHOT s", "OK"), (3, "DUNLIN SNAPSHOTS", "[later]")]);
    for order in ["DUNLIN ROLLBACK s", "DUNLIN DROP-SNAPSHOT s"] {
        nodes.expect(&[(2, order, "ERR no snapshot named 's'")]);
    }
}

#[test]
fn the_clock_and_the_settings_of_all_nodes_go_back() {
    let mut nodes = changed_since_a_snapshot();
    let before = nodes.text(2, "TIME");
    nodes.expect(&[(2, "CONFIG SET maxmemory-policy allkeys-lru", "OK")]);
    nodes.advance_ms(5000);
    nodes.expect(&[
        (0, "DUNLIN ROLLBACK s", "OK"),
        (2, "CONFIG GET maxmemory-policy", "{maxmemory-policy: noeviction}"),
    ]);
    for node in 0..6 {
        assert_eq!(nodes.text(node, "TIME"), before, "node {node}");
    }
}

#[test]
fn a_rollback_needs_the_slots_and_the_roles_of_the_snapshot() {
    let mut nodes = changed_since_a_snapshot();
    nodes.expect(&[(0, "DUNLIN MIGRATE-SLOT 5061 TO 1", "OK")]);
    let refused = |node| format!("ERR node {node} has another role or other slots than at that snapshot");
    nodes.expect(&[(2, "DUNLIN ROLLBACK s", &refused(0)), (2, "GET foo", "2")]);
    nodes.expect(&[(0, "DUNLIN MIGRATE-SLOT 5061 TO 0", "OK"), (2, "DUNLIN ROLLBACK s", "OK"), (2, "GET foo", "1")]);
    nodes.expect(&[(0, "DUNLIN FAILOVER 5", "OK"), (0, "DUNLIN ROLLBACK s", &refused(2))]);
    nodes.expect(&[(0, "DUNLIN FAILOVER 2", "OK"), (0, "SET bar 4", "OK"), (0, "DUNLIN ROLLBACK s", "OK")]);
    nodes.expect(&[(0, "GET bar", "1"), (3, "GET bar", "1")]);
}

#[test]
fn a_rollback_is_refused_while_there_is_a_node_that_was_not_there() {
    let mut nodes = changed_since_a_snapshot();
    nodes.ask(0, "DUNLIN NODE ADD");
    nodes.expect(&[(0, "DUNLIN ROLLBACK s", "ERR node 6 was added after that snapshot"), (0, "GET bar", "2")]);
    nodes.expect(&[(0, "DUNLIN NODE 6 REMOVE", "OK"), (0, "DUNLIN ROLLBACK s", "OK"), (0, "GET bar", "1")]);
}

#[test]
fn a_node_that_is_down_goes_back_too() {
    let mut nodes = changed_since_a_snapshot();
    nodes.expect(&[(1, "DUNLIN NODE 0 KILL", "OK"), (1, "DUNLIN ROLLBACK s", "OK")]);
    nodes.restart(0);
    nodes.advance_ms(2000);
    nodes.expect(&[(0, "GET bar", "1"), (3, "GET bar", "1"), (2, "GET foo", "1")]);
}

#[test]
fn a_test_in_rust_rolls_a_cluster_back() {
    let mut nodes = changed_since_a_snapshot();
    nodes.server.rollback("s").expect("there is that snapshot");
    nodes.expect(&[(2, "GET foo", "1")]);
    nodes.server.snapshot("t");
    assert_eq!(nodes.nodes[4].snapshots(), ["s", "t"]);
    nodes.server.drop_snapshot("s").expect("there is that snapshot");
    assert_eq!(nodes.nodes[4].snapshots(), ["t"]);
}
