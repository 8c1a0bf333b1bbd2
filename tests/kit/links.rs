//! Links between the nodes of a cluster that a test cuts or makes slow, and streams that it makes late.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use dunlin::Reply;

use crate::nodes::Nodes;
use crate::polled;

#[test]
fn a_replica_that_stays_two_writes_behind_loses_these_when_it_takes_over() {
    for loss in ["DUNLIN NODE 0 KILL", "DUNLIN FAILOVER 3 TAKEOVER", "DUNLIN FAILOVER 3 FORCE"] {
        let mut nodes = Nodes::with_replicas();
        nodes.expect(&[(1, "DUNLIN LAG 3 WRITES 2", "OK"), (0, "RPUSH bar 1", "1"), (0, "RPUSH bar 2", "2")]);
        nodes.expect(&[(3, "READONLY", "OK"), (3, "EXISTS bar", "0"), (0, "RPUSH bar 3", "3")]);
        nodes.expect(&[(3, "LRANGE bar 0 -1", "[1]")]);
        nodes.advance_ms(10_000);
        nodes.expect(&[(3, "LRANGE bar 0 -1", "[1]"), (0, "MULTI", "OK"), (0, "RPUSH bar 4", "QUEUED")]);
        nodes.expect(&[(0, "RPUSH bar 5", "QUEUED"), (0, "EXEC", "[4, 5]"), (3, "LRANGE bar 0 -1", "[1, 2]")]);
        nodes.expect(&[(1, loss, "OK")]);
        nodes.advance_ms(16_000);
        nodes.expect(&[(3, "RPUSH bar end", "3"), (3, "LRANGE bar 0 -1", "[1, 2, end]")]);
    }
}

#[test]
fn a_replica_that_no_longer_stays_behind_has_all_writes() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(1, "DUNLIN LAG 3 10000", "OK"), (0, "RPUSH bar 1", "1"), (0, "RPUSH bar 2", "2")]);
    nodes.expect(&[
        (3, "READONLY", "OK"),
        (3, "LLEN bar", "0"),
        (1, "DUNLIN LAG 3 WRITES 1", "OK"),
        (3, "LLEN bar", "1"),
    ]);
    nodes.expect(&[(0, "RPUSH bar 3", "3"), (3, "LLEN bar", "2"), (1, "DUNLIN LAG 3 0", "OK"), (3, "LLEN bar", "3")]);
    nodes.assert_equal_data(0, 3);
}

#[test]
fn writes_that_were_held_back_wait_for_a_lag_that_is_set_later() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(1, "DUNLIN LAG 3 WRITES 2", "OK"), (0, "RPUSH bar 1", "1"), (0, "RPUSH bar 2", "2")]);
    nodes.expect(&[(3, "READONLY", "OK"), (1, "DUNLIN LAG 3 1000", "OK"), (3, "LLEN bar", "0")]);
    nodes.advance_ms(1000);
    nodes.expect(&[(3, "LLEN bar", "2")]);
}

#[test]
fn a_node_that_starts_again_applies_what_it_has_missed_once() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "RPUSH bar 1", "1")]);
    nodes.server.kill_node(3).expect("it runs");
    nodes.expect(&[(0, "RPUSH bar 2", "2")]);
    nodes.restart(3);
    nodes.expect(&[(3, "READONLY", "OK"), (3, "LRANGE bar 0 -1", "[1, 2]")]);
    nodes.assert_equal_data(0, 3);
}

#[test]
fn two_nodes_without_a_link_suspect_each_other_and_no_other_node_does() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(2, "DUNLIN LINK 0 1 CUT", "OK")]);
    assert_eq!([nodes.shown(0, 1).1, nodes.shown(1, 0).1], ["disconnected", "disconnected"]);
    nodes.advance_ms(60_000);
    assert_eq!(
        [nodes.shown(0, 1).0, nodes.shown(1, 0).0, nodes.shown(2, 0).0],
        ["master,fail?", "master,fail?", "master"]
    );
    nodes.expect(&[(0, "SET bar 1", "OK"), (1, "SET abc 1", "OK"), (0, "DUNLIN LINK 1 0 HEAL", "OK")]);
    for (by, node) in [(0, 1), (1, 0)] {
        assert_eq!(nodes.shown(by, node), ("master".to_owned(), "connected".to_owned()));
    }
}

#[test]
fn a_node_that_was_reset_is_a_primary_for_the_others_and_one_that_is_forgotten_twice_is_no_error() {
    let mut nodes = Nodes::with_replicas();
    let (replica, nobody) = (nodes.id(3), "f".repeat(40));
    nodes.expect(&[(3, "CLUSTER RESET SOFT", "OK")]);
    assert_eq!([nodes.shown(0, 3).0, nodes.shown(1, 3).0], ["master", "master"]);
    let forget = format!("CLUSTER FORGET {replica}");
    let unknown = format!("ERR Unknown node {replica}");
    nodes.expect(&[(1, &forget, "OK"), (1, &forget, "OK"), (2, &forget, "OK")]);
    nodes.expect(&[(1, &format!("CLUSTER FORGET {nobody}"), &format!("ERR Unknown node {nobody}"))]);
    nodes.advance_ms(60_000);
    nodes.expect(&[(1, &forget, &unknown)]);
}

#[test]
fn a_node_that_one_forgets_is_forgotten_by_all_within_a_second_unless_it_is_met_again() {
    let mut nodes = Nodes::start();
    let third = nodes.id(2);
    let known = |nodes: &mut Nodes| [0, 1].map(|node| nodes.info(node, "cluster_known_nodes"));
    nodes.expect(&[(0, &format!("CLUSTER FORGET {third}"), "OK")]);
    assert_eq!(known(&mut nodes), ["2", "3"]);
    nodes.advance_ms(1000);
    assert_eq!(known(&mut nodes), ["2", "2"]);

    let mut nodes = Nodes::start();
    let (third, port) = (nodes.id(2), nodes.port(2));
    nodes
        .expect(&[(0, &format!("CLUSTER FORGET {third}"), "OK"), (0, &format!("CLUSTER MEET 127.0.0.1 {port}"), "OK")]);
    nodes.advance_ms(1000);
    assert_eq!(known(&mut nodes), ["3", "3"]);
}

#[test]
fn a_slot_of_another_node_that_one_deletes_comes_back_within_a_second() {
    let mut nodes = Nodes::start();
    let moved = nodes.moved(12182, 2);
    nodes.expect(&[
        (0, "CLUSTER DELSLOTS 12182", "OK"),
        (0, "GET foo", "CLUSTERDOWN Hash slot not served"),
        (2, "GET foo", "nil"),
    ]);
    nodes.advance_ms(1000);
    nodes.expect(&[(0, "GET foo", &moved)]);
}

#[test]
fn a_slot_that_migrates_to_its_own_node_is_served_there() {
    let mut nodes = Nodes::start();
    let first = nodes.id(0);
    nodes.expect(&[(0, &format!("CLUSTER SETSLOT 5061 MIGRATING {first}"), "OK"), (0, "GET bar", "nil")]);
}

#[test]
fn a_node_without_a_link_to_another_one_hears_later_which_slots_that_has_got() {
    let mut nodes = Nodes::start();
    nodes.server.cut_link(2, 1).expect("there are such nodes");
    nodes.server.migrate_slot(5061, 1).expect("it moves");
    let owner = nodes.moved(5061, 1);
    let owner_before = nodes.moved(5061, 0);
    nodes.expect(&[(0, "GET bar", &owner), (2, "GET bar", &owner_before)]);
    nodes.server.heal_link(1, 2).expect("there are such nodes");
    nodes.expect(&[(2, "GET bar", &owner)]);
}

#[test]
fn a_slot_that_its_owner_has_given_away_belongs_to_who_claims_it_whatever_the_epoch() {
    let mut nodes = Nodes::start();
    // The second node takes a new epoch for the slot, of which the third hears nothing.
    nodes.expect(&[(0, "DUNLIN LINK 1 2 CUT", "OK"), (0, "DUNLIN MIGRATE-SLOT 5061 TO 1", "OK")]);
    nodes.expect(&[
        (0, "DUNLIN LINK 0 2 CUT", "OK"),
        (0, "DUNLIN MIGRATE-SLOT 5061 TO 2", "OK"),
        (0, "DUNLIN HEAL", "OK"),
    ]);
    let owner = nodes.moved(5061, 2);
    nodes.expect(&[(0, "GET bar", &owner), (1, "GET bar", &owner), (2, "GET bar", "nil")]);
    let views = [0, 1, 2].map(|node| nodes.slots(node));
    assert!(views[0] == views[1] && views[1] == views[2], "{views:?}");
}

#[test]
fn a_replica_whose_link_is_cut_gets_what_it_has_missed() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "SET bar 1", "OK"), (0, "DUNLIN LINK 0 3 CUT", "OK"), (0, "SET bar 2", "OK")]);
    nodes.expect(&[(3, "READONLY", "OK"), (3, "GET bar", "1")]);
    assert_eq!(nodes.replication(3, "master_link_status"), "down");
    nodes.expect(&[(5, "DUNLIN LINK 3 0 HEAL", "OK"), (3, "GET bar", "2")]);
    nodes.assert_equal_data(0, 3);
}

#[test]
fn a_partition_and_its_end_concern_links_that_were_cut_one_by_one_as_well() {
    let mut nodes = Nodes::with_replicas();
    let shown = |nodes: &mut Nodes| [(0, 1), (0, 2), (1, 2)].map(|(by, node)| nodes.shown(by, node).1 == "connected");
    nodes.expect(&[(0, "DUNLIN LINK 0 1 CUT", "OK"), (0, "DUNLIN PARTITION 2", "OK")]);
    assert_eq!(shown(&mut nodes), [true, false, false]);
    nodes.expect(&[(0, "DUNLIN LINK 0 1 CUT", "OK"), (0, "DUNLIN LINK 0 2 HEAL", "OK")]);
    assert_eq!(shown(&mut nodes), [false, true, false]);
    nodes.expect(&[(0, "DUNLIN HEAL", "OK")]);
    assert_eq!(shown(&mut nodes), [true, true, true]);
}

#[test]
fn a_link_is_between_two_nodes() {
    let mut nodes = Nodes::start();
    let usage = "ERR syntax error, usage: DUNLIN LINK number number <CUT | HEAL | DELAY milliseconds>";
    nodes.expect(&[
        (0, "DUNLIN LINK 0 3 CUT", "ERR no node 3"),
        (0, "DUNLIN LINK 3 0 HEAL", "ERR no node 3"),
        (0, "DUNLIN LINK 1 1 CUT", "ERR node 1 has no link to itself"),
        (0, "DUNLIN LINK 0 1 BREAK", usage),
        (0, "DUNLIN LINK 0 1 DELAY", usage),
        (0, "DUNLIN LINK 0 1 DELAY -1", "ERR value is not an integer or out of range"),
        (0, "DUNLIN LINK 0 1 CUT 1", usage),
        (0, "DUNLIN LINK 0 3 DELAY 1", "ERR no node 3"),
        (0, "DUNLIN LINK 0 x CUT", "ERR value is not an integer or out of range"),
        (0, "DUNLIN LAG 3 WRITES -1", "ERR value is not an integer or out of range"),
    ]);
}

#[test]
fn writes_come_late_over_a_slow_link_and_so_do_their_acknowledgements() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(1, "DUNLIN LINK 0 3 DELAY 300", "OK"), (0, "RPUSH bar 1", "1"), (3, "READONLY", "OK")]);
    let mut writer = nodes.nodes[0].client().expect("there is room");
    writer.call(["RPUSH", "bar", "2"]).expect("it is a list");
    let mut wait = pin!(writer.call_async(["WAIT", "1", "0"]));
    nodes.advance_ms(299);
    nodes.expect(&[(3, "LLEN bar", "0")]);
    nodes.advance_ms(1);
    nodes.expect(&[(3, "LRANGE bar 0 -1", "[1, 2]")]);
    nodes.advance_ms(299);
    assert_eq!(polled(wait.as_mut()), Poll::Pending);
    nodes.advance_ms(1);
    assert_eq!(polled(wait.as_mut()), Poll::Ready(Ok(Reply::Integer(1))));
    nodes.assert_equal_data(0, 3);
}

#[test]
fn a_node_behind_a_slow_link_hears_late_who_has_a_slot_and_what_was_published() {
    let mut nodes = Nodes::start();
    nodes.server.delay_link(2, 1, Duration::from_millis(300)).expect("there are such nodes");
    nodes.expect(&[(2, "SUBSCRIBE news", "nil"), (1, "PUBLISH news late", "0")]);
    nodes.server.migrate_slot(5061, 1).expect("it moves");
    let mut reader = nodes.nodes[2].client().expect("there is room");
    let mut moved = || reader.call(["GET", "bar"]).expect_err("it is elsewhere").to_string();
    assert_eq!(moved(), nodes.moved(5061, 0));
    nodes.advance_ms(299);
    assert_eq!(moved(), nodes.moved(5061, 0));
    assert_eq!(nodes.clients[2].next_message(), Ok(None));
    nodes.advance_ms(1);
    assert_eq!(moved(), nodes.moved(5061, 1));
    assert!(matches!(nodes.clients[2].next_message(), Ok(Some(_))));
}

#[test]
fn what_is_in_flight_arrives_at_once_when_the_link_is_no_longer_slow() {
    for heal in ["DUNLIN HEAL", "DUNLIN LINK 3 0 HEAL", "DUNLIN LINK 3 0 DELAY 0"] {
        let mut nodes = Nodes::with_replicas();
        nodes.expect(&[(1, "DUNLIN LINK 0 3 DELAY 60000", "OK"), (0, "RPUSH bar 1", "1"), (3, "READONLY", "OK")]);
        nodes.expect(&[(3, "LLEN bar", "0"), (1, heal, "OK"), (3, "LLEN bar", "1"), (0, "RPUSH bar 2", "2")]);
        nodes.expect(&[(0, "WAIT 1 1", "1"), (3, "LLEN bar", "2")]);
        nodes.assert_equal_data(0, 3);
    }
}

#[test]
fn a_shorter_delay_concerns_what_is_in_flight_and_keeps_its_order() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(1, "DUNLIN LINK 0 3 DELAY 5000", "OK"), (0, "RPUSH bar 1", "1"), (3, "READONLY", "OK")]);
    nodes.expect(&[(1, "DUNLIN LINK 0 3 DELAY 100", "OK"), (0, "RPUSH bar 2", "2"), (3, "LLEN bar", "0")]);
    nodes.advance_ms(100);
    nodes.expect(&[(3, "LRANGE bar 0 -1", "[1, 2]")]);
}

#[test]
fn what_is_in_flight_when_the_link_is_cut_or_an_end_is_killed_or_paused_is_lost_and_sent_again() {
    let interruptions = [
        ("DUNLIN LINK 0 3 CUT", "DUNLIN HEAL"),
        ("DUNLIN NODE 3 KILL", "DUNLIN NODE 3 RESTART"),
        ("DUNLIN NODE 3 PAUSE", "DUNLIN NODE 3 RESUME"),
        ("DUNLIN NODE 0 KILL", "DUNLIN NODE 0 RESTART"),
    ];
    for (interrupt, resume) in interruptions {
        let mut nodes = Nodes::with_replicas();
        nodes.expect(&[(1, "DUNLIN LINK 0 3 DELAY 1000", "OK"), (3, "SUBSCRIBE news", "nil")]);
        nodes.expect(&[(0, "RPUSH bar 1", "1"), (0, "PUBLISH news lost", "0"), (1, interrupt, "OK")]);
        nodes.expect(&[(1, "DUNLIN LINK 0 3 DELAY 0", "OK")]);
        nodes.advance_ms(5000);
        let keys = nodes.nodes[3].with_engine(|engine| engine.databases.len());
        assert_eq!(keys, 0, "{interrupt}");
        nodes.expect(&[(1, resume, "OK")]);
        nodes.advance_ms(5000);
        if !interrupt.contains("NODE 3 KILL") {
            assert_eq!(nodes.clients[3].next_message(), Ok(None), "{interrupt}");
        }
        nodes.clients[3] = nodes.nodes[3].client().expect("it lets clients in");
        nodes.expect(&[(3, "READONLY", "OK"), (3, "LRANGE bar 0 -1", "[1]")]);
    }
}

#[test]
fn a_clock_that_is_set_back_does_not_change_the_order_of_what_is_in_flight() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(1, "DUNLIN LINK 0 3 DELAY 300", "OK"), (0, "RPUSH bar 1", "1"), (3, "READONLY", "OK")]);
    nodes.server.set_time(nodes.server.now() - Duration::from_millis(200));
    nodes.expect(&[(0, "RPUSH bar 2", "2")]);
    nodes.advance_ms(499);
    nodes.expect(&[(3, "LLEN bar", "0")]);
    nodes.advance_ms(1);
    nodes.expect(&[(3, "LRANGE bar 0 -1", "[1, 2]")]);
    nodes.expect(&[(0, "RPUSH bar 3", "3")]);
    nodes.advance_ms(300);
    nodes.assert_equal_data(0, 3);
}

#[test]
fn a_replica_is_elected_over_slow_links_as_much_later_as_its_request_and_the_votes_take() {
    let elected_ms = |delay_ms| {
        let mut nodes = Nodes::with_replicas();
        for other in [1, 2, 4, 5] {
            nodes.server.delay_link(3, other, Duration::from_millis(delay_ms)).expect("there are such nodes");
        }
        nodes.server.kill_node(0).expect("it runs");
        let elected_ms = (0..40_000).step_by(10).find(|_| {
            nodes.advance_ms(10);
            nodes.replication(3, "role") == "master"
        });
        nodes.advance_ms(delay_ms);
        let owner = nodes.moved(5061, 3);
        nodes.expect(&[(1, "GET bar", &owner), (3, "SET bar 1", "OK")]);
        elected_ms.expect("it is elected")
    };
    let later_ms = elected_ms(400) - elected_ms(0);
    // The request for votes and the votes take 400 each; the news of the failure overlaps the wait before the election.
    assert!((800..=1200).contains(&later_ms), "{later_ms}");
}

#[test]
fn a_killed_link_to_the_primary_is_connected_again_and_misses_nothing() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "SET bar 1", "OK"), (3, "CLIENT KILL TYPE normal", "0"), (3, "READONLY", "OK")]);
    let list = nodes.text(3, "CLIENT LIST TYPE master");
    assert!(list.contains(" flags=M ") && list.lines().count() == 1, "{list}");
    assert!(list.contains(" user=(superuser) "), "{list}");
    let replica = nodes.text(0, "CLIENT LIST TYPE replica");
    let address = format!(" laddr=127.0.0.1:{} ", nodes.port(0));
    assert!(replica.contains(&address), "a replica is a client at the address of its primary: {replica}");
    nodes.expect(&[(3, "CLIENT KILL USER default", "0")]);
    assert!(!nodes.text(3, "CLIENT LIST TYPE normal").contains(" flags=M "));
    let (_, id) = list.split_once("id=").expect("a line has it");
    let id = id.split(' ').next().expect("it is followed by others").to_owned();
    for kill in [format!("ID {id}"), "TYPE master".to_owned()] {
        nodes.expect(&[(0, "INCR bar", "2"), (3, &format!("CLIENT KILL {kill}"), "1")]);
        nodes.expect(&[(0, "DECR bar", "1"), (3, "GET bar", "1"), (0, "WAIT 1 0", "1")]);
        assert_eq!(nodes.replication(3, "master_link_status"), "up");
    }
    for count in ["sync_full:1", "sync_partial_ok:2", "sync_partial_err:1"] {
        assert!(nodes.text(0, "INFO stats").contains(count), "{count}, as of a Redis to which the same happens");
    }
}
