//! DUNLIN WAIT CLUSTER AGREED: waiting until all nodes see the same slots, roles and failures.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use dunlin::{CallError, Reply};

use crate::nodes::Nodes;
use crate::{error, polled, served};

const AGREED: [&str; 4] = ["DUNLIN", "WAIT", "CLUSTER", "AGREED"];

/// A wait at a node goes on until the last of these steps is taken.
#[track_caller]
fn ends_after_the_last_of(cluster: &mut Nodes, node: usize, steps: &[&dyn Fn(&mut Nodes)]) {
    let mut client = cluster.nodes[node].client().expect("there is room");
    let mut wait = pin!(client.call_async(AGREED));
    for (number, step) in steps.iter().enumerate() {
        assert_eq!(polled(wait.as_mut()), Poll::Pending, "before step {number}");
        step(cluster);
    }
    assert_eq!(polled(wait.as_mut()), Poll::Ready(Ok(Reply::Status("OK".to_owned()))));
}

/// The reason that a wait gives which ends at once.
fn reason(cluster: &Nodes, node: usize) -> String {
    let mut client = cluster.nodes[node].client().expect("there is room");
    let mut wait = pin!(client.call_async([&AGREED[..], &["TIMEOUT", "1"]].concat()));
    assert_eq!(polled(wait.as_mut()), Poll::Pending);
    cluster.advance_ms(1);
    let Poll::Ready(Err(CallError::Refused(text))) = polled(wait.as_mut()) else { panic!("the timeout has passed") };
    text.strip_prefix("ERR waited in vain: the nodes do not agree: ").expect("it says why").to_owned()
}

#[test]
fn nodes_agree_from_the_start_and_a_server_without_a_cluster_refuses_to_wait() {
    let mut cluster = Nodes::with_replicas();
    let wait = AGREED.join(" ");
    (0..6).for_each(|node| cluster.expect(&[(node, &wait, "OK")]));
    let (_server, mut client) = served();
    assert_eq!(error(&mut client, AGREED), "ERR This instance has cluster support disabled");
}

#[test]
fn nodes_agree_again_once_a_replica_has_taken_over() {
    let mut cluster = Nodes::with_replicas();
    cluster.server.kill_node(0).expect("it is up");
    ends_after_the_last_of(
        &mut cluster,
        1,
        &[
            &|cluster| cluster.advance_ms(14_999), // nobody suspects it yet
            &|cluster| cluster.advance_ms(2),      // it has failed, and its replica is to stand for election
            &|cluster| cluster.advance_ms(1500),
        ],
    );
    assert_eq!(cluster.replication(3, "role"), "master");
    cluster.restart(0);
    ends_after_the_last_of(
        &mut cluster,
        0,
        &[&|cluster| cluster.advance_ms(1000), &|cluster| {
            cluster.advance_ms(30_000); // it serves keys, and nobody takes it for failed any more
        }],
    );
}

#[test]
fn nodes_do_not_agree_while_a_link_between_two_of_them_is_cut() {
    let mut cluster = Nodes::with_replicas();
    cluster.server.partition(&[&[0]]).expect("there is such a node");
    assert_eq!(reason(&cluster, 2), "the link between nodes 0 and 1 is cut");
    cluster.advance_ms(20_000);
    assert_eq!(cluster.replication(3, "role"), "master");
    ends_after_the_last_of(&mut cluster, 5, &[&|cluster| cluster.server.heal(), &|cluster| cluster.advance_ms(30_000)]);
    assert_eq!(cluster.replication(0, "role"), "slave");
}

#[test]
fn a_link_to_a_node_that_is_down_is_no_matter() {
    let mut cluster = Nodes::start();
    cluster.server.cut_link(0, 2).expect("there is such a link");
    cluster.server.kill_node(2).expect("it is up");
    ends_after_the_last_of(&mut cluster, 0, &[&|cluster| cluster.advance_ms(15_001)]);
}

#[test]
fn nodes_do_not_agree_with_one_that_has_a_stale_view() {
    let mut cluster = Nodes::start();
    cluster.server.make_view_stale(2).expect("it is up");
    assert_eq!(reason(&cluster, 0), "node 2 has a stale view");
    cluster.server.migrate_slot(5061, 1).expect("it moves");
    let refresh: &dyn Fn(&mut Nodes) = &|cluster| cluster.server.refresh_view(2).expect("it is up");
    ends_after_the_last_of(&mut cluster, 2, &[refresh]);
    assert_eq!(cluster.slots(2), cluster.slots(1));
}

#[test]
fn nodes_agree_on_a_slot_once_the_news_has_come_over_a_slow_link() {
    let mut cluster = Nodes::start();
    let delay = Duration::from_millis(300);
    cluster.server.delay_link(1, 2, delay).expect("there is such a link");
    cluster.expect(&[(0, &AGREED.join(" "), "OK")]);
    cluster.server.migrate_slot(5061, 1).expect("it moves");
    assert_eq!(reason(&cluster, 0), "nodes 0 and 2 see different owners of slots");
    ends_after_the_last_of(
        &mut cluster,
        0,
        &[
            &|cluster| cluster.advance_ms(299), // node 2 has the news, and more is on its way, for which it has asked
            &|cluster| assert_eq!(cluster.slots(2), cluster.slots(1)),
            &|cluster| cluster.advance_ms(300),
        ],
    );
}

#[test]
fn nodes_agree_on_a_slot_that_is_on_its_way_and_not_on_one_that_its_owner_has_given_up() {
    let mut cluster = Nodes::start();
    let wait = AGREED.join(" ");
    cluster.open();
    cluster.expect(&[(2, &wait, "OK"), (0, "CLUSTER DELSLOTS 7", "OK")]);
    assert_eq!(reason(&cluster, 2), "nodes 0 and 1 see different owners of slots");
    let give_back: &dyn Fn(&mut Nodes) = &|cluster| cluster.expect(&[(0, "CLUSTER ADDSLOTS 7", "OK")]);
    ends_after_the_last_of(&mut cluster, 2, &[give_back]);
}

#[test]
fn nodes_agree_that_a_paused_one_has_failed_and_then_hear_it_again() {
    let mut cluster = Nodes::start();
    cluster.server.pause_node(2).expect("it is up");
    ends_after_the_last_of(&mut cluster, 0, &[&|cluster| cluster.advance_ms(15_001)]);
    cluster.server.resume_node(2).expect("it is paused");
    assert_eq!(reason(&cluster, 0), "nodes 0 and 2 see different failures");
    ends_after_the_last_of(&mut cluster, 2, &[&|cluster| cluster.advance_ms(30_000)]);
}

#[test]
fn a_wait_in_rust_ends_when_a_failover_on_a_running_clock_is_over() {
    let cluster = Nodes::of(dunlin::Server::cluster(3).replicas(1).start().expect("the nodes start"));
    // Faster, nodes of a busy machine would take each other for failed.
    cluster.server.set_speed(20.0);
    cluster.server.kill_node(0).expect("it is up");
    cluster.nodes[4].wait_until_cluster_agrees(Duration::from_secs(2_000)).expect("they agree in time");
    let mut client = cluster.nodes[3].client().expect("there is room");
    assert_eq!(client.call(["SET", "bar", "1"]).expect("it has taken over"), "OK");
}
