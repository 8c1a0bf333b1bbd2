//! The rules of strict mode about the nodes of a cluster: what a client does with a redirect, and what it reads from
//! replicas.

use dunlin::{Level, Rule};

use crate::nodes::Nodes;

/// The findings of a node, in one line each.
fn findings(nodes: &Nodes, node: usize) -> Vec<String> {
    nodes.nodes[node].strict().findings().iter().map(ToString::to_string).collect()
}

/// Three nodes; the first finds redirects that are not followed.
fn with_redirects_checked() -> Nodes {
    let nodes = Nodes::start();
    nodes.nodes[0].strict().set(Rule::MovedUnhandled, Level::Error);
    nodes
}

#[test]
fn a_redirect_that_a_client_does_not_follow_is_found() {
    let mut nodes = with_redirects_checked();
    let moved = nodes.moved(12182, 2);
    nodes.expect(&[(0, "CLIENT SETNAME shop", "OK"), (0, "SET foo 1", &moved)]);
    let found = findings(&nodes, 0);
    let expected = format!(
        "(shop): SET foo 1: the reply was {moved}, and the command has come to no other node; use a client for clusters, \
         which follows it"
    );
    assert!(found.len() == 1 && found[0].starts_with("error moved-unhandled: client "), "{found:?}");
    assert!(found[0].ends_with(&expected), "{found:?}");
    let check = nodes.text(0, "DUNLIN STRICT CHECK");
    assert!(check.starts_with("ERR strict mode found 1: error moved-unhandled: "), "{check}");
    nodes.expect(&[(0, "DUNLIN STRICT CLEAR", "OK"), (0, "DUNLIN STRICT CHECK", "OK")]);
}

#[test]
fn a_redirect_that_is_followed_is_no_finding() {
    let mut nodes = with_redirects_checked();
    let moved = nodes.moved(12182, 2);
    nodes.expect(&[(0, "SET foo 1", &moved), (0, "GET foo", &moved), (2, "SET foo 1", "OK")]);
    let found = findings(&nodes, 0);
    assert!(found.len() == 1 && found[0].contains(": GET foo: "), "{found:?}");
    nodes.expect(&[(2, "GET foo", "1"), (0, "DUNLIN STRICT CHECK", "OK")]);
}

#[test]
fn each_of_two_clients_has_to_follow_its_redirect() {
    let mut nodes = with_redirects_checked();
    let moved = nodes.moved(12182, 2);
    nodes.expect(&[(0, "GET foo", &moved), (0, "GET foo", &moved), (2, "GET foo", "nil")]);
    assert_eq!(findings(&nodes, 0).len(), 1);
    nodes.expect(&[(2, "GET foo", "nil")]);
    assert_eq!(findings(&nodes, 0), Vec::<String>::new());
}

#[test]
fn a_redirect_to_a_slot_that_moves_is_followed_by_asking() {
    let mut nodes = with_redirects_checked();
    nodes.open();
    let ask = format!("ASK 5061 127.0.0.1:{}", nodes.port(1));
    nodes.expect(&[(0, "SET bar 1", &ask)]);
    assert_eq!(findings(&nodes, 0).len(), 1);
    nodes.expect(&[(1, "ASKING", "OK"), (1, "SET bar 1", "OK")]);
    assert_eq!(findings(&nodes, 0), Vec::<String>::new());
}

#[test]
fn a_client_may_find_another_node_than_the_one_that_it_was_sent_to() {
    let mut nodes = with_redirects_checked();
    nodes.server.make_view_stale(0).expect("it is a node");
    nodes.server.migrate_slot(12182, 1).expect("it moves");
    let moved = nodes.moved(12182, 2);
    nodes.expect(&[(0, "GET foo", &moved), (1, "GET foo", "nil")]);
    assert_eq!(findings(&nodes, 0), Vec::<String>::new());
}

#[test]
fn redirects_are_not_remembered_unless_the_rule_is_on() {
    let mut nodes = Nodes::start();
    let moved = nodes.moved(12182, 2);
    nodes.expect(&[
        (0, "GET foo", &moved),
        (0, "DUNLIN STRICT SET CLUSTER ERROR", "OK"),
        (0, "DUNLIN STRICT CHECK", "OK"),
    ]);
    nodes.expect(&[(0, "GET foo", &moved), (0, "DUNLIN STRICT SET moved-unhandled OFF", "OK")]);
    nodes.expect(&[(0, "DUNLIN STRICT CHECK", "OK")]);
}

#[test]
fn a_read_of_what_a_replica_does_not_have_yet_is_found() {
    let mut nodes = Nodes::with_replicas();
    nodes.nodes[3].strict().set(Rule::StaleRead, Level::Error);
    let stale = "STRICT stale-read: this replica has not applied SET bar yet, which its primary has taken; read it at the \
                 primary, or have the writer WAIT for the replicas";
    nodes.expect(&[(0, "SET bar 1", "OK"), (3, "READONLY", "OK"), (3, "GET bar", "1")]);
    nodes.expect(&[(0, "DUNLIN LAG 3 100", "OK"), (0, "SET bar 2", "OK"), (3, "GET bar", stale)]);
    nodes.expect(&[(3, "GET {bar}2", "nil"), (3, "MGET {bar}2 bar", stale)]);
    nodes.advance_ms(100);
    nodes.expect(&[(3, "GET bar", "2"), (0, "FLUSHALL", "OK")]);
    let flushed = stale.replace("SET bar", "FLUSHALL bar");
    nodes.expect(&[(3, "GET bar", &flushed)]);
    nodes.expect(&[(3, "READWRITE", "OK"), (3, "GET bar", &nodes.moved(5061, 0))]);
}

#[test]
fn a_read_at_a_replica_that_is_disconnected_is_found() {
    let mut nodes = Nodes::with_replicas();
    nodes.nodes[3].strict().set(Rule::StaleRead, Level::Warn);
    nodes.expect(&[(3, "READONLY", "OK"), (0, "DUNLIN LINK 0 3 CUT", "OK"), (3, "GET bar", "nil")]);
    let found = findings(&nodes, 3);
    let text = "GET bar: this replica is disconnected from its primary, and may lack writes; read it at the primary, or \
                have the writer WAIT for the replicas";
    assert!(found.len() == 1 && found[0].ends_with(text), "{found:?}");
}

#[test]
fn a_command_that_has_come_is_expected_nowhere_else() {
    let mut nodes = with_redirects_checked();
    let moved = nodes.moved(12182, 2);
    nodes.expect(&[(0, "GET foo", &moved), (2, "GET foo", "nil")]);
    nodes.server.migrate_slot(12182, 1).expect("it moves");
    let moved = nodes.moved(12182, 1);
    nodes.expect(&[(0, "GET foo", &moved), (1, "GET foo", "nil")]);
    assert_eq!(findings(&nodes, 0), Vec::<String>::new());
}

#[test]
fn a_command_that_was_cleared_is_not_taken_for_a_later_one() {
    let mut nodes = with_redirects_checked();
    let moved = nodes.moved(12182, 2);
    nodes.expect(&[(0, "GET foo", &moved), (0, "DUNLIN STRICT CLEAR", "OK"), (0, "GET foo", &moved)]);
    nodes.expect(&[(2, "GET foo", "nil"), (0, "DUNLIN STRICT CHECK", "OK")]);
}

#[test]
fn a_read_that_a_replica_redirects_is_not_stale() {
    let mut nodes = Nodes::with_replicas();
    nodes.nodes[3].strict().set(Rule::StaleRead, Level::Error);
    let moved = nodes.moved(12182, 2);
    nodes.expect(&[(3, "READONLY", "OK"), (0, "DUNLIN LINK 0 3 CUT", "OK"), (3, "GET foo", &moved)]);
}
