//! What a node reports about its links to others and the messages on them: CLUSTER INFO, INFO and CLIENT LIST.

use crate::nodes::Nodes;

/// What a node reports about messages: the lines of CLUSTER INFO without `cluster_stats_messages_`.
fn messages(nodes: &mut Nodes, node: usize) -> String {
    let info = nodes.text(node, "CLUSTER INFO");
    let lines = info.lines().filter_map(|line| line.strip_prefix("cluster_stats_messages_"));
    lines.collect::<Vec<_>>().join(" ")
}

#[test]
fn messages_are_counted_by_their_types_at_both_ends() {
    let mut nodes = Nodes::with_replicas();
    let announced = "pong_sent:5 sent:5 pong_received:5 received:5";
    assert_eq!(messages(&mut nodes, 0), announced, "each has announced itself to all others");
    nodes.expect(&[(0, "PUBLISH news hello", "0"), (0, "SPUBLISH bar hello", "0"), (0, "SPUBLISH bar again", "0")]);
    assert_eq!(
        messages(&mut nodes, 0),
        "pong_sent:5 publish_sent:5 publishshard_sent:2 sent:12 pong_received:5 received:5"
    );
    assert_eq!(messages(&mut nodes, 1), "pong_sent:5 sent:5 pong_received:5 publish_received:1 received:6");
    let of_replica = "pong_sent:5 sent:5 pong_received:5 publish_received:1 publishshard_received:2 received:8";
    assert_eq!(messages(&mut nodes, 3), of_replica);
}

#[test]
fn a_reset_node_goes_on_counting_its_messages() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(3, "CLUSTER RESET HARD", "OK")]);
    let of_replica = messages(&mut nodes, 3);
    assert!(of_replica.contains("pong_received:5"), "{of_replica}");
}

#[test]
fn a_failover_is_a_start_requests_votes_and_announcements() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(3, "CLUSTER FAILOVER", "OK")]);
    let of_replica = messages(&mut nodes, 3);
    for part in ["auth-req_sent:5", "mfstart_sent:1", "auth-ack_received:3"] {
        assert!(of_replica.split(' ').any(|line| line == part), "{part}: {of_replica}");
    }
    for (node, parts) in
        [(0, ["mfstart_received:1", "auth-ack_sent:1"]), (1, ["auth-req_received:1", "auth-ack_sent:1"])]
    {
        let messages = messages(&mut nodes, node);
        assert!(parts.iter().all(|part| messages.split(' ').any(|line| line == *part)), "node {node}: {messages}");
    }
    nodes.server.kill_node(3).expect("it is up");
    nodes.restart(3);
    let restarted = messages(&mut nodes, 3);
    assert!(!restarted.contains("mfstart"), "a process that starts has sent nothing: {restarted}");
}

#[test]
fn a_node_has_two_links_to_each_that_it_knows_also_to_one_that_is_down() {
    let mut nodes = Nodes::with_replicas();
    nodes.server.kill_node(5).expect("it is up");
    let clients = nodes.text(0, "INFO clients");
    assert!(clients.lines().any(|line| line == "cluster_connections:10"), "{clients}");
}

/// The lines of CLIENT LIST for clients of a type, each with these fields alone.
fn listed(nodes: &mut Nodes, node: usize, kind: &str) -> Vec<String> {
    let list = nodes.text(node, &format!("CLIENT LIST TYPE {kind}"));
    let fields = ["flags=", "cmd=", "user=", "addr="];
    let is_shown = |word: &&str| fields.iter().any(|field| word.starts_with(field));
    list.lines().map(|line| line.split(' ').filter(is_shown).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_primary_lists_its_replica_as_a_client_and_does_not_count_it() {
    let mut nodes = Nodes::with_replicas();
    let line = format!("addr=127.0.0.1:{} flags=S cmd=replconf user=default", nodes.port(3));
    assert_eq!(listed(&mut nodes, 0, "replica"), [line]);
    assert_eq!(listed(&mut nodes, 0, "slave").len(), 1);
    assert_eq!(listed(&mut nodes, 3, "replica"), [""; 0]);
    assert_eq!(listed(&mut nodes, 3, "master").len(), 1);
    let clients = nodes.text(0, "INFO clients");
    assert!(clients.lines().any(|line| line == "connected_clients:1"), "{clients}");
    nodes.server.kill_node(3).expect("it is up");
    assert_eq!(listed(&mut nodes, 0, "replica"), [""; 0]);
    nodes.restart(3);
    assert_eq!(listed(&mut nodes, 0, "replica").len(), 1);
}

#[test]
fn a_replica_that_is_disconnected_by_its_primary_connects_again_and_misses_nothing() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "SET bar 1", "OK"), (0, "CLIENT KILL TYPE replica", "1"), (0, "SET bar 2", "OK")]);
    nodes.expect(&[(3, "READONLY", "OK"), (3, "GET bar", "2")]);
    assert_eq!(listed(&mut nodes, 0, "replica").len(), 1);
    assert_eq!(nodes.replication(0, "connected_slaves"), "1");
    assert_eq!(nodes.replication(3, "master_link_status"), "up");
}
