//! Failures as the nodes of a cluster see them: who is suspected by whom, for how long, and what follows.

use dunlin::{Reply, Server};

use crate::nodes::Nodes;
use crate::timeout;

/// A cluster in which the first node suspects the second one, and the third one knows.
fn suspecting() -> (Nodes, String) {
    let mut nodes = Nodes::with_replicas();
    let second = nodes.id(1);
    nodes.expect(&[(2, "DUNLIN LINK 0 1 CUT", "OK")]);
    nodes.advance_ms(15_000);
    let count = format!("CLUSTER COUNT-FAILURE-REPORTS {second}");
    nodes.expect(&[(2, &count, "1")]);
    (nodes, count)
}

#[test]
fn a_node_that_is_connected_again_is_no_longer_reported() {
    let (mut nodes, count) = suspecting();
    nodes.expect(&[(2, "DUNLIN LINK 0 1 HEAL", "OK"), (2, &count, "0"), (2, "DUNLIN LINK 2 1 CUT", "OK")]);
    nodes.advance_ms(60_000);
    assert_eq!([nodes.shown(0, 1).0, nodes.shown(2, 1).0], ["master", "master,fail?"], "one of three is no majority");
    nodes.expect(&[(0, &count, "1"), (2, &count, "0")]);
}

#[test]
fn what_a_node_reports_outlives_the_link_of_others_to_the_reported_one() {
    let (mut nodes, count) = suspecting();
    nodes.expect(&[(2, "DUNLIN LINK 2 1 CUT", "OK"), (2, "DUNLIN LINK 2 1 HEAL", "OK"), (2, &count, "1")]);
    nodes.expect(&[(2, "DUNLIN LINK 2 1 CUT", "OK")]);
    nodes.advance_ms(15_000);
    assert_eq!(nodes.shown(2, 1).0, "master,fail", "two of three are");
}

#[test]
fn what_a_node_reports_that_is_disconnected_itself_counts_for_twice_the_timeout() {
    let (mut nodes, count) = suspecting();
    nodes.expect(&[(2, "DUNLIN LINK 2 0 CUT", "OK")]);
    nodes.advance_ms(29_999);
    nodes.expect(&[(2, &count, "1")]);
    nodes.advance_ms(1);
    nodes.expect(&[(2, &count, "0")]);
}

#[test]
fn a_failure_that_a_node_was_only_told_of_is_no_longer_reported_either() {
    let mut nodes = Nodes::with_replicas();
    let count = format!("CLUSTER COUNT-FAILURE-REPORTS {}", nodes.id(3));
    ["3 KILL", "2 PAUSE", "1 KILL"]
        .iter()
        .for_each(|order| nodes.expect(&[(0, &format!("DUNLIN NODE {order}"), "OK")]));
    nodes.advance_ms(15_000);
    nodes.restart(1);
    assert_eq!(nodes.shown(1, 3).0, "slave", "it has not been disconnected for long from this one");
    nodes.expect(&[(0, "DUNLIN NODE 2 RESUME", "OK")]);
    assert_eq!(nodes.shown(1, 3).0, "slave,fail", "two others agree");
    nodes.expect(&[(0, "DUNLIN LINK 4 1 CUT", "OK"), (0, "DUNLIN LINK 4 1 HEAL", "OK"), (4, &count, "3")]);
    nodes.restart(3);
    nodes.expect(&[(4, &count, "0")]);
}

#[test]
fn what_a_forgotten_node_has_reported_counts_no_more() {
    let (mut nodes, count) = suspecting();
    let first = nodes.id(0);
    nodes.expect(&[(2, &format!("CLUSTER FORGET {first}"), "OK"), (2, &count, "0")]);
}

#[test]
fn a_node_that_has_taken_over_ends_keys_on_a_clock_that_runs() {
    let server = Server::cluster(3).replicas(1).start().expect("it starts");
    let mut nodes = Nodes::of(server);
    nodes.expect(&[(0, "SET bar 1 PX 100", "OK"), (0, "DUNLIN FAILOVER 3 TAKEOVER", "OK")]);
    timeout::wait_until("the key has ended", || nodes.ask(3, "DBSIZE") == Reply::Integer(0));
}

#[test]
fn an_election_may_last_as_long_as_a_number_can_say() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(3, "CONFIG SET cluster-node-timeout 9223372036854775807", "OK")]);
    (0..3).for_each(|node| nodes.expect(&[(3, &format!("DUNLIN NODE {node} KILL"), "OK")]));
    nodes.expect(&[(3, "CLUSTER FAILOVER FORCE", "OK"), (3, "PING", "PONG")]);
}

/// The slots of each shard in CLUSTER SHARDS as a node answers it.
fn slots_of_shards(nodes: &mut Nodes, by: usize) -> Vec<Vec<i64>> {
    let Reply::Array(shards) = nodes.ask(by, "CLUSTER SHARDS") else { panic!("it is a list") };
    let slots = |shard: Reply| {
        let Reply::Map(fields) = shard else { panic!("a shard has fields") };
        let Reply::Array(slots) = &fields[0].1 else { panic!("the first is the slots") };
        slots.iter().filter_map(Reply::integer).collect()
    };
    shards.into_iter().map(slots).collect()
}

/// Asked of Redis 8.0.6, too: the slots are shown while any node of the shard works.
#[test]
fn a_shard_shows_the_slots_of_its_failed_primary_while_a_replica_works() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(5, "CONFIG SET cluster-replica-no-failover yes", "OK")]);
    nodes.server.kill_node(2).expect("it runs");
    nodes.advance_ms(60_000);
    assert_eq!(nodes.shown(0, 2).0, "master,fail");
    let all = [vec![0, 5460], vec![5461, 10922], vec![10923, 16383]];
    assert_eq!(slots_of_shards(&mut nodes, 0), all);
    nodes.server.kill_node(5).expect("it runs");
    nodes.advance_ms(60_000);
    assert_eq!(nodes.shown(0, 5).0, "slave,fail,nofailover");
    assert_eq!(slots_of_shards(&mut nodes, 0), [all[0].clone(), all[1].clone(), vec![]]);
}
