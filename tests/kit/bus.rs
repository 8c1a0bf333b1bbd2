//! What CLUSTER INFO and INFO report about the links and the messages between nodes.

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
