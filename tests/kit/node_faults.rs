//! Fault rules of the nodes of a cluster: given, listed and removed at any of them.

use crate::nodes::Nodes;
use crate::{error, served};

#[test]
fn a_rule_for_a_node_that_another_one_got_strikes_there_alone() {
    let mut three = Nodes::start();
    three.expect(&[
        (0, "DUNLIN FAULT ADD busy COMMAND set NODE 2 TIMES 1 ERROR BUSY", "OK"),
        (0, "SET bar 1", "OK"),
        (1, "SET abc 1", "OK"),
        (2, "SET foo 1", "BUSY"),
        (2, "SET foo 1", "OK"),
        (2, "DUNLIN WAIT FAULT busy 1", "OK"),
    ]);
}

#[test]
fn any_node_lists_and_removes_the_rules_of_all() {
    let mut three = Nodes::start();
    three.expect(&[
        (0, "DUNLIN FAULT ADD slow NODE 2 COMMAND get SILENCE", "OK"),
        (1, "DUNLIN FAULT ADD own COMMAND get LOADING", "OK"),
        (2, "DUNLIN FAULT ADD slow NODE 1 NTH 3 DROP-AFTER", "OK"),
    ]);
    let of = |node: usize, name: &str, rule: &str| {
        format!("{{node: {node}, name: {name}, rule: {rule}, matched: 0, fired: 0}}")
    };
    let [own, slow, other] = [
        of(1, "own", "COMMAND get LOADING"),
        of(1, "slow", "NTH 3 TIMES 1 DROP-AFTER"),
        of(2, "slow", "COMMAND get SILENCE"),
    ];
    (0..3).for_each(|node| three.expect(&[(node, "DUNLIN FAULT LIST", &format!("[{own}, {slow}, {other}]"))]));
    three.expect(&[
        (0, "DUNLIN FAULT REMOVE slow", "1"),
        (0, "DUNLIN FAULT REMOVE slow", "0"),
        (2, "DUNLIN FAULT LIST", &format!("[{own}]")),
        (2, "DUNLIN FAULT CLEAR", "OK"),
        (1, "DUNLIN FAULT LIST", "[]"),
    ]);
}

#[test]
fn a_rule_replaces_the_one_of_its_name_at_its_node_alone() {
    let mut three = Nodes::start();
    three.expect(&[
        (0, "DUNLIN FAULT ADD late NODE 1 ERROR one", "OK"),
        (0, "DUNLIN FAULT ADD late NODE 2 ERROR two", "OK"),
        (0, "DUNLIN FAULT ADD late NODE 1 ERROR three", "OK"),
        (1, "GET abc", "three"),
        (2, "GET foo", "two"),
        (0, "GET bar", "nil"),
    ]);
}

#[test]
fn a_rule_in_rust_is_one_of_the_node_that_it_names() {
    let mut three = Nodes::start();
    three.server.fault("late").at_node(1).command("GET").error("ERR late");
    three.nodes[2].fault("late").command("GET").error("ERR later");
    three.expect(&[(0, "GET bar", "nil"), (1, "GET abc", "ERR late"), (2, "GET foo", "ERR later")]);
    assert!(three.nodes[2].remove_fault("late"));
    assert!(!three.server.remove_fault("late"));
    three.expect(&[(1, "GET abc", "nil"), (2, "GET foo", "nil")]);
    three.nodes[1].fault("late").error("ERR late");
    three.server.clear_faults();
    three.expect(&[(1, "GET abc", "nil")]);
}

#[test]
fn a_rule_for_a_node_that_does_not_exist_is_refused() {
    let mut three = Nodes::start();
    three.expect(&[(0, "DUNLIN FAULT ADD late NODE 3 SILENCE", "ERR no node 3"), (0, "DUNLIN FAULT LIST", "[]")]);
    let (_server, mut client) = served();
    assert_eq!(error(&mut client, "DUNLIN FAULT ADD late NODE 0 SILENCE".split(' ')), "ERR no node 0");
}
