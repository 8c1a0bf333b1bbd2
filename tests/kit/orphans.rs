//! Primaries of a cluster whose last replica has failed, and the replicas that go to them.

use crate::nodes::Nodes;

/// Three primaries with two replicas each: 3 and 6 are those of 0, 4 and 7 those of 1, 5 and 8 those of 2.
fn with_two_replicas() -> Nodes {
    Nodes::with_replicas_each(2)
}

/// The replicas of a node that have not failed, as another node sees them.
fn replicas(nodes: &mut Nodes, by: usize, primary: usize) -> Vec<usize> {
    let id = nodes.id(primary);
    let shown = nodes.text(by, "CLUSTER NODES");
    let works = |line: &&str| !line.split(' ').nth(2).is_some_and(|flags| flags.split(',').any(|flag| flag == "fail"));
    let lines = shown.lines().filter(|line| line.contains(&format!(" {id} "))).filter(works);
    let ports: Vec<String> = lines.filter_map(|line| Some(line.split([':', '@']).nth(1)?.to_owned())).collect();
    (0..nodes.nodes.len()).filter(|node| ports.contains(&nodes.port(*node).to_string())).collect()
}

/// Of these nodes, the one with the smallest id.
fn smallest(nodes: &mut Nodes, among: &[usize]) -> usize {
    let ids: Vec<(String, usize)> = among.iter().map(|node| (nodes.id(*node), *node)).collect();
    ids.into_iter().min().expect("there is one").1
}

#[test]
fn the_replica_with_the_smallest_id_goes_to_a_primary_that_has_lost_its_last() {
    let mut nodes = with_two_replicas();
    let mover = smallest(&mut nodes, &[3, 5, 6, 8]);
    let former = if mover == 3 || mover == 6 { 0 } else { 2 };
    nodes.expect(&[(1, "SET abc 1", "OK"), (0, "DUNLIN NODE 4 KILL", "OK"), (0, "DUNLIN NODE 7 KILL", "OK")]);
    // They have failed after 15 seconds, and their primary was an orphan for five seconds then.
    nodes.advance_ms(20_000);
    assert_eq!(replicas(&mut nodes, 0, 1), [0; 0]);
    nodes.advance_ms(1);
    assert_eq!((replicas(&mut nodes, 0, 1), replicas(&mut nodes, 8, 1)), (vec![mover], vec![mover]));
    assert_eq!(replicas(&mut nodes, 1, former).len(), 1);
    assert_eq!([former, 1].map(|node| nodes.replication(node, "connected_slaves")), ["1", "1"]);
    nodes.expect(&[
        (mover, "READONLY", "OK"),
        (mover, "GET abc", "1"),
        (1, "SET abc 2", "OK"),
        (mover, "GET abc", "2"),
    ]);
    nodes.advance_ms(60_000);
    assert_eq!(replicas(&mut nodes, 0, 1), [mover]);
}

#[test]
fn each_orphan_gets_its_replica_at_its_own_moment() {
    let mut nodes = Nodes::with_replicas_each(3);
    for node in [4, 7, 10, 5, 8, 11] {
        nodes.expect(&[(0, &format!("DUNLIN NODE {node} KILL"), "OK")]);
    }
    nodes.advance_ms(20_001);
    let count = |nodes: &mut Nodes| [1, 2].map(|primary| replicas(nodes, 0, primary).len());
    assert_eq!(count(&mut nodes), [1, 0]);
    nodes.advance_ms(1);
    assert_eq!(count(&mut nodes), [1, 1]);
    nodes.advance_ms(60_000);
    assert_eq!((count(&mut nodes), replicas(&mut nodes, 1, 0).len()), ([1, 1], 1));
}

#[test]
fn a_replica_that_took_over_and_has_none_is_an_orphan() {
    let mut nodes = Nodes::with_replicas();
    let first = nodes.id(0);
    nodes.expect(&[(4, &format!("CLUSTER REPLICATE {first}"), "OK")]);
    let mover = smallest(&mut nodes, &[3, 4]);
    nodes.expect(&[(0, "DUNLIN NODE 2 KILL", "OK")]);
    // It has failed after 15 seconds, and its replica takes over within one more.
    nodes.advance_ms(20_400);
    assert_eq!((nodes.shown(0, 5).0.as_str(), replicas(&mut nodes, 0, 5)), ("master", vec![]));
    nodes.advance_ms(1_000);
    assert_eq!(replicas(&mut nodes, 0, 5), [mover]);
}

#[test]
fn a_replica_that_is_back_in_time_keeps_the_others_where_they_are() {
    let mut nodes = with_two_replicas();
    nodes.expect(&[(0, "DUNLIN NODE 4 KILL", "OK"), (0, "DUNLIN NODE 7 KILL", "OK")]);
    nodes.advance_ms(19_000);
    nodes.restart(4);
    nodes.advance_ms(60_000);
    assert_eq!(replicas(&mut nodes, 0, 1), [4]);
}

#[test]
fn shard_channels_of_a_replica_that_goes_elsewhere_are_unsubscribed() {
    let mut nodes = Nodes::with_replicas();
    let second = nodes.id(1);
    let mut client = nodes.nodes[3].client().expect("there is room");
    client.call(["SSUBSCRIBE", "bar"]).expect("its primary owns the slot");
    nodes.expect(&[(3, &format!("CLUSTER REPLICATE {second}"), "OK")]);
    let subscribed = nodes.text(3, "PUBSUB SHARDCHANNELS");
    assert_eq!(subscribed, "[]");
}

#[test]
fn replicas_stay_where_the_settings_say_so() {
    for setting in ["cluster-migration-barrier 2", "cluster-allow-replica-migration no"] {
        let mut nodes = with_two_replicas();
        for node in 3..9 {
            nodes.expect(&[(node, &format!("CONFIG SET {setting}"), "OK")]);
        }
        nodes.expect(&[(0, "DUNLIN NODE 4 KILL", "OK"), (0, "DUNLIN NODE 7 KILL", "OK")]);
        nodes.advance_ms(60_000);
        assert_eq!(replicas(&mut nodes, 0, 1), [0; 0], "{setting}");
    }
}

#[test]
fn a_primary_whose_last_replica_was_sent_elsewhere_is_no_orphan() {
    let mut nodes = Nodes::with_replicas();
    let first = nodes.id(0);
    nodes.expect(&[(4, &format!("CLUSTER REPLICATE {first}"), "OK")]);
    nodes.advance_ms(60_000);
    assert_eq!((replicas(&mut nodes, 2, 0), replicas(&mut nodes, 2, 1)), (vec![3, 4], vec![]));
    // But one whose last replica has failed is.
    let mover = smallest(&mut nodes, &[3, 4]);
    nodes.expect(&[(0, "DUNLIN NODE 5 KILL", "OK")]);
    nodes.advance_ms(20_001);
    assert_eq!(replicas(&mut nodes, 0, 2), [mover]);
}

#[test]
fn the_orphan_keeps_its_new_replica_when_the_old_one_is_back() {
    let mut nodes = with_two_replicas();
    nodes.expect(&[(0, "DUNLIN NODE 4 KILL", "OK"), (0, "DUNLIN NODE 7 KILL", "OK")]);
    nodes.advance_ms(21_000);
    nodes.restart(4);
    nodes.restart(7);
    nodes.advance_ms(60_000);
    assert_eq!(replicas(&mut nodes, 0, 1).len(), 3);
    assert_eq!(replicas(&mut nodes, 0, 0).len() + replicas(&mut nodes, 0, 2).len(), 3);
}
