//! Partitions of a cluster, and primaries that come back.

use dunlin::{Entry, Server};

use crate::nodes::Nodes;
use crate::timeout::wait_until;

#[test]
fn a_minority_serves_nothing_and_loses_what_it_took_before_it_noticed() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "SET bar 1", "OK"), (1, "DUNLIN PARTITION 0", "OK"), (0, "SET bar lost", "OK")]);
    nodes.advance_ms(14_999);
    nodes.expect(&[(0, "GET bar", "lost")]);
    nodes.advance_ms(1);
    nodes.expect(&[(0, "GET bar", "CLUSTERDOWN The cluster is down")]);
    nodes.advance_ms(1000);
    nodes.expect(&[(3, "GET bar", "1"), (3, "SET bar 2", "OK")]);
    let owner = nodes.moved(5061, 3);
    nodes.expect(&[(2, "GET bar", &owner), (0, "GET bar", "CLUSTERDOWN The cluster is down")]);
    nodes.expect(&[(0, "DUNLIN HEAL", "OK")]);
    assert_eq!(nodes.shown(2, 0).0, "slave");
    nodes.expect(&[(0, "GET bar", &owner), (0, "READONLY", "OK"), (0, "GET bar", "2")]);
    nodes.assert_equal_data(0, 3);
}

/// The lost writes have names: those that a journal shows as answered, and that are not there in the end.
#[test]
fn both_primaries_of_a_divided_shard_serve_and_the_writes_of_the_replaced_one_are_lost() {
    let mut nodes = Nodes::with_replicas();
    let servers = nodes.nodes.clone();
    let journal = servers[1].journal_of_all_nodes().command("RPUSH");
    nodes.expect(&[(0, "RPUSH bar first", "1"), (1, "DUNLIN PARTITION 0", "OK")]);
    nodes.expect(&[(3, "CLUSTER FAILOVER TAKEOVER", "OK")]);
    nodes.expect(&[
        (0, "RPUSH bar old:1", "2"),
        (3, "RPUSH bar new:1", "2"),
        (0, "RPUSH bar old:2", "3"),
        (3, "RPUSH bar new:2", "3"),
        (1, "DUNLIN HEAL", "OK"),
    ]);
    let kept = nodes.text(3, "LRANGE bar 0 -1");
    assert_eq!(kept, "[first, new:1, new:2]");
    nodes.assert_equal_data(0, 3);
    let value = |entry: &Entry| String::from_utf8_lossy(entry.words().last().unwrap_or_default()).into_owned();
    let written = journal.entries().into_iter().map(|entry| (entry.node, value(&entry)));
    let lost: Vec<(Option<usize>, String)> = written.filter(|(_, value)| !kept.contains(value)).collect();
    assert_eq!(lost, [(Some(0), "old:1".to_owned()), (Some(0), "old:2".to_owned())]);
}

#[test]
fn a_primary_that_starts_again_waits_before_it_serves_keys_and_a_replica_does_not() {
    let mut nodes = Nodes::with_replicas();
    nodes.server.kill_node(3).expect("it runs");
    nodes.restart(3);
    let owner = nodes.moved(5061, 0);
    nodes.expect(&[(3, "GET bar", &owner)]);
    nodes.server.kill_node(0).expect("it runs");
    nodes.restart(0);
    nodes.advance_ms(1999);
    nodes.expect(&[(0, "GET bar", "CLUSTERDOWN The cluster is down")]);
    nodes.advance_ms(1);
    nodes.expect(&[(0, "GET bar", "nil")]);
}

#[test]
fn the_nodes_of_a_partition_are_named_once_and_exist() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[
        (0, "DUNLIN PARTITION 0,1 1,2", "ERR node 1 is in two groups"),
        (0, "DUNLIN PARTITION 0,6", "ERR no node 6"),
        (0, "DUNLIN PARTITION 0,x", "ERR syntax error, usage: DUNLIN PARTITION numbers [numbers ...]"),
        (0, "DUNLIN LAG 0 5", "ERR node 0 is not a replica"),
        (0, "DUNLIN LAG 3 -1", "ERR value is not an integer or out of range"),
    ]);
    assert_eq!([1, 2, 3].map(|node| nodes.shown(0, node).1), ["connected", "connected", "connected"]);
}

#[test]
fn a_replica_of_a_minority_does_not_take_over() {
    let mut nodes = Nodes::with_replicas();
    nodes.server.partition(&[&[3, 0], &[1, 2, 4, 5]]).expect("there are such nodes");
    nodes.server.kill_node(0).expect("it runs");
    nodes.advance_ms(100_000);
    assert_eq!(nodes.shown(3, 3).0, "myself,slave");
    assert_eq!(nodes.info(1, "cluster_state"), "fail");
    nodes.server.heal();
    nodes.advance_ms(20_000);
    assert_eq!(nodes.info(1, "cluster_state"), "ok", "{}", nodes.text(1, "CLUSTER NODES"));
    assert_eq!(nodes.shown(1, 3).0, "master");
}

#[test]
fn a_former_primary_that_has_not_got_the_data_of_the_next_one_does_not_replace_it() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(1, "DUNLIN LINK 0 3 DELAY 5000", "OK"), (1, "DUNLIN FAILOVER 3 FORCE", "OK")]);
    nodes.advance_ms(8000);
    assert_eq!(nodes.shown(0, 0).0, "myself,slave");
    assert_eq!(nodes.replication(0, "master_link_down_since_seconds"), "-1");
    nodes.server.kill_node(3).expect("it runs");
    nodes.advance_ms(60_000);
    assert_eq!(nodes.shown(0, 0).0, "myself,slave");
    nodes.expect(&[(1, "GET bar", "CLUSTERDOWN The cluster is down")]);
}

#[test]
fn a_primary_that_was_replaced_hears_it_from_nodes_that_are_not_in_its_shard() {
    let mut nodes = Nodes::with_replicas();
    let others = 1..=5;
    others.for_each(|other| nodes.server.cut_link(0, other).expect("there are such nodes"));
    nodes.advance_ms(16_000);
    nodes.expect(&[(3, "SET bar 2", "OK")]);
    let owner = nodes.moved(5061, 3);
    nodes.server.heal_link(0, 1).expect("there are such nodes");
    assert_eq!(nodes.shown(0, 0).0, "myself,slave");
    nodes.advance_ms(5_000);
    nodes.server.heal_link(0, 2).expect("there are such nodes");
    nodes.advance_ms(5_000);
    nodes.expect(&[(0, "GET bar", &owner)]);
    nodes.server.heal();
    nodes.assert_equal_data(0, 3);
}

#[test]
fn a_primary_hears_of_a_takeover_by_a_node_that_it_does_not_reach() {
    let mut nodes = Nodes::with_replicas();
    nodes.server.cut_link(0, 3).expect("there are such nodes");
    nodes.expect(&[(3, "CLUSTER FAILOVER TAKEOVER", "OK")]);
    assert_eq!(nodes.shown(0, 0).0, "myself,slave");
    let owner = nodes.moved(5061, 3);
    nodes.expect(&[(0, "GET bar", &owner), (1, "GET bar", &owner)]);
}

#[test]
fn a_script_that_does_not_end_at_one_node_holds_up_no_clock() {
    let settings = [("timeout", "100"), ("busy-reply-threshold", "10")];
    let server = settings.iter().fold(Server::cluster(3).frozen(), |server, (name, value)| server.set(name, value));
    let mut nodes = Nodes::of(server.start().expect("the nodes start"));
    nodes.expect(&[(0, "SET bar 1 PX 100", "OK")]);
    let mut busy = nodes.nodes[0].client().expect("there is room");
    let script = std::thread::spawn(move || busy.call(["EVAL", "while true do end", "0"]));
    wait_until("the script is busy", || nodes.text(0, "PING").starts_with("BUSY"));
    nodes.advance_ms(500);
    nodes.expect(&[(0, "SCRIPT KILL", "OK")]);
    assert!(script.join().expect("it does not panic").is_err(), "it was killed");
    nodes.expect(&[(0, "GET bar", "nil")]);
}

#[test]
fn a_node_that_does_not_reach_the_new_primary_hears_of_it_by_the_former_one() {
    for takeover in ["CLUSTER FAILOVER TAKEOVER", "CLUSTER FAILOVER"] {
        let mut nodes = Nodes::with_replicas();
        nodes.server.cut_link(1, 3).expect("there are such nodes");
        nodes.expect(&[(3, takeover, "OK")]);
        nodes.advance_ms(1_000);
        let owner = nodes.moved(5061, 3);
        nodes.expect(&[(1, "GET bar", &owner), (2, "GET bar", &owner)]);
        assert_eq!((nodes.info(1, "cluster_state"), nodes.shown(1, 3).0), ("ok".into(), "master".into()));
    }
}

#[test]
fn what_a_node_said_before_it_took_over_changes_nothing_when_it_comes_late() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "DUNLIN LINK 0 3 DELAY 1000", "OK"), (3, "CONFIG SET cluster-announce-hostname three", "OK")]);
    nodes.advance_ms(500);
    nodes.expect(&[(3, "CLUSTER FAILOVER TAKEOVER", "OK")]);
    let owner = nodes.moved(5061, 3);
    for _ in 0..3 {
        nodes.expect(&[(0, "GET bar", &owner)]);
        assert_eq!((nodes.info(0, "cluster_state"), nodes.shown(0, 0).0), ("ok".into(), "myself,slave".into()));
        nodes.advance_ms(500);
    }
}

#[test]
fn nobody_claims_a_slot_for_a_node_that_has_given_it_away() {
    let mut nodes = Nodes::start();
    nodes.server.cut_link(0, 2).expect("there are such nodes");
    nodes.server.kill_node(1).expect("it runs");
    // Node 0 has a new epoch by this, of which node 2 does not hear, and then gives the next slot away.
    nodes.server.migrate_slot(15_495, 0).expect("both ends are up");
    nodes.server.migrate_slot(3_300, 2).expect("both ends are up");
    nodes.restart(1);
    nodes.server.heal();
    nodes.advance_ms(2_000);
    let owner = nodes.moved(3_300, 2);
    nodes.expect(&[(0, "GET b", &owner), (1, "GET b", &owner), (2, "GET b", "nil")]);
    assert_eq!(nodes.slots(0), nodes.slots(2));
}

#[test]
fn a_replica_hears_of_a_takeover_by_a_node_that_it_does_not_reach() {
    let mut nodes = Nodes::with_replicas_each(2);
    // 3 and 6 are the replicas of 0. One takes over, and the other one does not hear it.
    nodes.expect(&[(1, "DUNLIN NODE 0 KILL", "OK"), (1, "DUNLIN LINK 3 6 CUT", "OK")]);
    nodes.expect(&[(3, "CLUSTER FAILOVER TAKEOVER", "OK")]);
    let owner = nodes.moved(5061, 3);
    nodes.expect(&[(6, "GET bar", &owner), (1, "GET bar", &owner)]);
    assert_eq!(nodes.shown(6, 3).0, "master");
}

#[test]
fn a_replica_that_was_cut_off_hears_of_a_takeover_by_a_node_that_it_does_not_reach() {
    let mut nodes = Nodes::with_replicas_each(2);
    nodes.expect(&[(1, "DUNLIN NODE 0 KILL", "OK"), (1, "DUNLIN PARTITION 6", "OK")]);
    nodes.expect(&[(3, "CLUSTER FAILOVER TAKEOVER", "OK"), (1, "DUNLIN LINK 1 6 HEAL", "OK")]);
    let owner = nodes.moved(5061, 3);
    assert_eq!(nodes.shown(6, 3).0, "master");
    nodes.expect(&[(1, "DUNLIN LINK 2 6 HEAL", "OK")]);
    nodes.advance_ms(10_000);
    nodes.expect(&[(6, "GET bar", &owner)]);
}
