//! Nodes that a test adds to a cluster while it runs, and nodes that it removes.

use std::net::TcpListener;
use std::time::Duration;

use dunlin::{CallError, Client, Server, World};

use crate::nodes::{Nodes, text};
use crate::timeout::wait_until;

impl Nodes {
    /// Adds a node, with a client, behind those that there are; returns its number.
    fn add(&mut self) -> usize {
        let added = self.server.add_node().expect("a port is free");
        self.adopt(added)
    }

    /// Adds a replica of a node in the same way.
    fn add_replica(&mut self, of: usize) -> usize {
        let added = self.server.add_replica(of).expect("a port is free");
        self.adopt(added)
    }

    fn adopt(&mut self, added: World) -> usize {
        self.clients.push(added.client().expect("there is room"));
        self.nodes.push(added);
        self.nodes.len() - 1
    }

    /// How many nodes each of these knows.
    fn known(&mut self, nodes: &[usize]) -> Vec<String> {
        nodes.iter().map(|node| self.info(*node, "cluster_known_nodes")).collect()
    }

    fn refusal_of_removal(&self, node: usize) -> String {
        self.server.remove_node(node).expect_err("it stays").to_string()
    }
}

fn numbers(world: &World) -> Vec<usize> {
    world.nodes().iter().map(World::node_number).collect()
}

#[test]
fn an_added_node_is_known_to_all_when_the_reply_is_read_and_owns_no_slot() {
    let mut nodes = Nodes::start();
    let reply = nodes.text(1, "DUNLIN NODE ADD");
    assert_eq!(numbers(&nodes.server), [0, 1, 2, 3]);
    let added = nodes.server.node(3).expect("it is there");
    assert_eq!(reply, format!("[3, {}]", added.addr()));
    nodes.adopt(added);
    assert_eq!(nodes.known(&[0, 1, 2, 3]), ["4"; 4]);
    for node in 0..4 {
        assert_eq!(nodes.info(node, "cluster_size"), "3");
        assert_eq!(nodes.info(node, "cluster_state"), "ok");
        assert_eq!(nodes.slots(node), nodes.slots(0));
        assert_eq!(nodes.shown(node, 3).1, "connected");
    }
    let moved = nodes.moved(5061, 0);
    nodes.expect(&[(0, "DUNLIN WAIT CLUSTER AGREED", "OK"), (3, "GET bar", &moved)]);
}

#[test]
fn an_added_node_takes_over_a_slot_and_serves_it_at_its_port() {
    let mut nodes = Nodes::start();
    nodes.expect(&[(0, "SET bar 1", "OK")]);
    let fourth = nodes.add();
    nodes.server.migrate_slot(5061, fourth).expect("it moves");
    let moved = nodes.moved(5061, fourth);
    nodes.expect(&[(0, "GET bar", &moved), (1, "GET bar", &moved), (2, "GET bar", &moved)]);
    assert_eq!(nodes.info(0, "cluster_size"), "4");
    let wire = redis::Client::open(nodes.nodes[fourth].url()).and_then(|client| client.get_connection());
    let bar: String = redis::cmd("GET").arg("bar").query(&mut wire.expect("it listens")).expect("it answers");
    assert_eq!(bar, "1");
}

#[test]
fn an_added_replica_has_the_data_of_its_primary_and_takes_over() {
    let mut nodes = Nodes::start();
    nodes.expect(&[(0, "SET bar 1", "OK"), (2, "DUNLIN NODE ADD REPLICA-OF 3", "ERR no node 3")]);
    let replica = nodes.add_replica(0);
    nodes.expect(&[(0, "SET {bar}2 2", "OK"), (0, "WAIT 1 0", "1"), (1, "DUNLIN WAIT CLUSTER AGREED", "OK")]);
    nodes.assert_equal_data(0, replica);
    nodes.server.kill_node(0).expect("it is up");
    nodes.advance_ms(17_000);
    let moved = nodes.moved(5061, replica);
    nodes.expect(&[(replica, "MGET bar {bar}2", "[1, 2]"), (1, "GET bar", &moved)]);
}

#[test]
fn an_added_node_votes_and_notices_failures_once_it_owns_slots() {
    let mut nodes = Nodes::with_replicas();
    let added = nodes.add();
    nodes.server.migrate_slot(100, added).expect("it moves");
    // Of four nodes with slots three must agree, and vote.
    nodes.server.kill_node(1).expect("it is up");
    nodes.advance_ms(17_000);
    assert_eq!(nodes.shown(added, 1).0, "master,fail");
    assert_eq!(nodes.replication(4, "role"), "master");
}

#[test]
fn an_added_node_has_the_clock_of_the_others_and_keeps_it() {
    let nodes = Nodes::start();
    nodes.advance_ms(86_400_000);
    let added = nodes.server.add_node().expect("a port is free");
    assert_eq!(added.now(), nodes.server.now());
    nodes.advance_ms(1);
    assert_eq!(added.now(), nodes.server.now());
    added.advance(Duration::from_secs(5));
    assert_eq!(added.now(), nodes.server.now());
}

#[test]
fn the_handle_of_a_removed_node_has_the_clock_of_the_others_and_no_clients() {
    let nodes = Nodes::start();
    let removed = nodes.server.add_node().expect("a port is free");
    nodes.server.remove_node(3).expect("it owns no slot");
    assert_eq!(removed.client().map(drop), Err(CallError::Closed));
    nodes.advance_ms(86_400_000);
    assert_eq!(removed.now(), nodes.server.now());
    removed.advance(Duration::from_secs(5));
    removed.set_time(removed.now() + Duration::from_secs(5));
    assert_eq!(removed.now(), nodes.server.now());
    assert_eq!(removed.advance_to_next(), None, "nothing is due at the others");
    removed.resume();
    nodes.server.freeze();
    assert_eq!(removed.now(), nodes.server.now());
}

#[test]
fn the_same_seed_gives_added_nodes_the_same_ids() {
    let ids = || {
        let mut nodes = Nodes::start();
        [nodes.add(), nodes.add_replica(1)].map(|node| nodes.id(node))
    };
    let [first, second] = ids();
    assert_eq!(ids(), [first.clone(), second.clone()]);
    assert_ne!(first, second);
}

#[test]
fn the_port_of_an_added_node_is_the_next_free_one() {
    let nodes = Nodes::start();
    let last = nodes.port(2);
    // Unless another process has taken it.
    let _taken = TcpListener::bind(("127.0.0.1", last + 1));
    let added = nodes.server.add_node().expect("another port is free");
    assert!(added.addr().port() > last + 1);
    let next = nodes.server.add_node().expect("another port is free");
    assert!(next.addr().port() > added.addr().port());
}

#[test]
fn a_removed_node_is_forgotten_by_all_and_its_number_is_not_given_out_again() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "DUNLIN NODE 4 REMOVE", "OK"), (0, "DUNLIN NODE 4 REMOVE", "ERR no node 4")]);
    assert_eq!(nodes.clients[4].call(["PING"]), Err(CallError::Closed));
    assert_eq!(numbers(&nodes.server), [0, 1, 2, 3, 5]);
    assert_eq!(nodes.known(&[0, 1, 2, 3, 5]), ["5"; 5]);
    nodes.expect(&[(5, "DUNLIN WAIT CLUSTER AGREED", "OK"), (0, "DUNLIN NODE 4 RESTART", "ERR no node 4")]);
    assert_eq!(nodes.replication(1, "connected_slaves"), "0");
}

#[test]
fn orders_for_the_nodes_behind_a_gap_reach_them() {
    let mut nodes = Nodes::with_replicas();
    nodes.server.remove_node(4).expect("it owns no slot");
    nodes.expect(&[
        (0, "DUNLIN FAILOVER 5", "OK"),
        (0, "DUNLIN NODE 5 KILL", "OK"),
        (0, "DUNLIN NODE 5 RESTART", "OK"),
        (0, "DUNLIN PARTITION 0,4", "ERR no node 4"),
        (0, "DUNLIN PARTITION 0,5", "OK"),
        (0, "DUNLIN HEAL", "OK"),
        (0, "DUNLIN LINK 0 4 CUT", "ERR no node 4"),
        (0, "DUNLIN FAULT ADD full NODE 5 COMMAND ECHO ERROR full", "OK"),
    ]);
    let mut fifth = nodes.server.node(5).and_then(|node| node.client()).expect("it is up");
    assert_eq!(text(&mut fifth, "ECHO foo"), "full");
    assert!(nodes.text(0, "DUNLIN FAULT LIST").contains("5"), "the rule is shown with its node");
    assert!(nodes.text(0, "DUNLIN NODES").contains("number: 5"));
    nodes.expect(&[(0, "DUNLIN FAULT CLEAR", "OK")]);
    let added = nodes.server.add_node().expect("a port is free");
    assert_eq!(added.node_number(), 6);
}

#[test]
fn a_node_with_slots_or_replicas_cannot_be_removed_nor_the_first_one() {
    let mut nodes = Nodes::start();
    let added = nodes.add();
    nodes.add_replica(added);
    assert_eq!(nodes.refusal_of_removal(0), "ERR node 0 cannot be removed: its world ends with it");
    assert_eq!(nodes.refusal_of_removal(1), "ERR node 1 cannot be removed: it owns slots");
    assert_eq!(nodes.refusal_of_removal(added), "ERR node 3 cannot be removed: node 4 is its replica");
    nodes.server.kill_node(1).expect("it is up");
    assert_eq!(nodes.refusal_of_removal(1), "ERR node 1 cannot be removed: it owns slots");
    nodes.server.remove_node(4).expect("it is a replica");
    nodes.server.remove_node(added).expect("it has no replica any more");
    assert_eq!(numbers(&nodes.server), [0, 1, 2]);
}

#[test]
fn a_node_with_slots_cannot_be_removed_though_no_node_that_is_up_knows_of_them() {
    let mut nodes = Nodes::start();
    nodes.server.kill_node(1).expect("it is up");
    nodes.add();
    nodes.expect(&[(3, "DUNLIN NODE 2 KILL", "OK"), (3, "DUNLIN NODE 0 PAUSE", "OK")]);
    assert!(!nodes.text(3, "CLUSTER SLOTS").contains(&nodes.port(1).to_string()), "it has never heard node 1");
    assert_eq!(nodes.refusal_of_removal(1), "ERR node 1 cannot be removed: it owns slots");
}

#[test]
fn a_node_that_is_down_can_be_removed_when_another_one_was_given_its_slots() {
    let mut nodes = Nodes::start();
    nodes.server.kill_node(2).expect("it is up");
    for node in [0, 1] {
        nodes.expect(&[(node, "CLUSTER DELSLOTSRANGE 10923 16383", "OK")]);
    }
    assert_eq!(nodes.refusal_of_removal(2), "ERR node 2 cannot be removed: it owns slots");
    nodes.expect(&[(0, "CLUSTER ADDSLOTSRANGE 10923 16383", "OK")]);
    nodes.server.remove_node(2).expect("its slots belong to node 0");
    assert_eq!(numbers(&nodes.server), [0, 1]);
}

#[test]
fn a_primary_that_was_replaced_can_be_removed_while_it_is_down_or_paused() {
    for end in ["KILL", "PAUSE"] {
        let mut nodes = Nodes::with_replicas();
        nodes.expect(&[(0, &format!("DUNLIN NODE 1 {end}"), "OK")]);
        nodes.advance_ms(17_000);
        nodes.expect(&[(0, "DUNLIN NODE 1 REMOVE", "OK"), (0, "DUNLIN WAIT CLUSTER AGREED", "OK")]);
        assert_eq!(nodes.known(&[0, 2, 3, 4, 5]), ["5"; 5]);
        assert_eq!(nodes.info(0, "cluster_state"), "ok");
    }
}

#[test]
fn nodes_that_are_down_or_cut_off_forget_a_removed_node_too() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[
        (0, "DUNLIN NODE 3 KILL", "OK"),
        (0, "DUNLIN PARTITION 5", "OK"),
        (0, "DUNLIN NODE 4 REMOVE", "OK"),
    ]);
    nodes.advance_ms(70_000);
    nodes.expect(&[(0, "DUNLIN HEAL", "OK")]);
    nodes.restart(3);
    assert_eq!(nodes.known(&[0, 1, 2, 3, 5]), ["5"; 5]);
}

#[test]
fn a_node_that_was_down_paused_or_stale_learns_of_an_added_one_when_it_hears_the_others_again() {
    for (end, begin) in [
        ("NODE 2 KILL", "NODE 2 RESTART"),
        ("NODE 2 PAUSE", "NODE 2 RESUME"),
        ("VIEW 2 STALE", "VIEW 2 FRESH"),
        ("PARTITION 2", "HEAL"),
    ] {
        let mut nodes = Nodes::start();
        nodes.expect(&[(0, &format!("DUNLIN {end}"), "OK")]);
        let added = nodes.add();
        nodes.server.migrate_slot(5061, added).expect("it moves");
        nodes.expect(&[(0, &format!("DUNLIN {begin}"), "OK")]);
        nodes.clients[2] = nodes.nodes[2].client().expect("it lets clients in");
        nodes.advance_ms(5000);
        let moved = nodes.moved(5061, added);
        nodes.expect(&[(2, "GET bar", &moved), (2, "DUNLIN WAIT CLUSTER AGREED", "OK")]);
        assert_eq!(nodes.known(&[0, 1, 2, 3]), ["4"; 4], "after {end}");
    }
}

#[test]
fn an_added_node_introduces_itself_to_those_that_nobody_else_tells_of_it() {
    for (is_killed, is_stale) in [(true, false), (false, false), (false, true)] {
        let mut nodes = Nodes::start();
        let met = nodes.add();
        for node in 0..3 {
            if is_stale {
                nodes.server.make_view_stale(node).expect("it is up");
            }
            let ended = if is_killed { nodes.server.kill_node(node) } else { nodes.server.pause_node(node) };
            ended.expect("it is up");
        }
        let added = nodes.add();
        assert_eq!(nodes.known(&[added]), ["5"]);
        nodes.server.remove_node(met).expect("it has no slots");
        for node in 0..3 {
            if is_killed {
                nodes.restart(node);
            } else {
                nodes.server.resume_node(node).expect("it is paused");
            }
            nodes.server.refresh_view(node).expect("it is up");
        }
        assert_eq!(nodes.known(&[0, 1, 2, added]), ["4"; 4], "killed: {is_killed}, stale: {is_stale}");
        nodes.advance_ms(5000);
        nodes.expect(&[(0, "DUNLIN WAIT CLUSTER AGREED", "OK")]);
    }
}

#[test]
fn a_node_that_is_added_to_a_divided_network_is_on_the_side_of_the_one_that_it_meets() {
    let mut nodes = Nodes::with_replicas();
    nodes.expect(&[(0, "DUNLIN PARTITION 2,5", "OK")]);
    let (primary, replica) = (nodes.add(), nodes.add_replica(2));
    assert_eq!(nodes.known(&[0, 1, 3, 4, primary]), ["7"; 5]);
    assert_eq!(nodes.known(&[2, 5, replica]), ["7"; 3]);
    assert_eq!(nodes.shown(replica, 0).1, "disconnected");
    nodes.expect(&[(0, "DUNLIN HEAL", "OK"), (0, "DUNLIN WAIT CLUSTER AGREED", "OK")]);
    assert_eq!(nodes.known(&[0, 1, 2, 3, 4, 5, primary, replica]), ["8"; 8]);
}

#[test]
fn a_node_that_has_learned_of_an_added_one_tells_all_that_it_hears() {
    let mut nodes = Nodes::start();
    nodes.expect(&[(0, "DUNLIN PARTITION 2", "OK")]);
    let added = nodes.add_replica(2);
    assert_eq!(nodes.known(&[0, 1, 2, added]), ["3", "3", "4", "4"]);
    nodes.expect(&[(0, "DUNLIN LINK 1 2 HEAL", "OK")]);
    assert_eq!(nodes.known(&[0, 1, 2, added]), ["4"; 4]);
    nodes.expect(&[(0, "DUNLIN LINK 1 3 HEAL", "OK"), (0, "DUNLIN LINK 0 3 HEAL", "OK")]);
    nodes.server.kill_node(2).expect("it is up");
    nodes.advance_ms(20_000);
    assert_eq!(nodes.replication(added, "role"), "master", "both others know it, and vote for it");
}

#[test]
fn a_node_that_is_added_while_one_link_is_cut_hears_both_of_its_ends() {
    let mut nodes = Nodes::start();
    nodes.expect(&[(0, "DUNLIN LINK 0 1 CUT", "OK")]);
    let added = nodes.add();
    assert_eq!([0, 1].map(|node| nodes.shown(added, node).1), ["connected", "connected"]);
    assert_eq!(nodes.known(&[0, 1, 2, added]), ["4"; 4]);
}

/// Its report would be the second of two that make a failure of a suspicion.
#[test]
fn an_added_node_does_not_report_a_node_that_it_hears() {
    let mut nodes = Nodes::start();
    nodes.expect(&[(0, "DUNLIN LINK 0 1 CUT", "OK")]);
    nodes.advance_ms(20_000);
    let added = nodes.add();
    let flags = [0, 2, added].map(|node| nodes.shown(node, 1).0);
    assert_eq!(flags, ["master,fail?", "master", "master"]);
}

#[test]
fn an_added_node_learns_which_nodes_have_failed() {
    // The two that are down leave one owner of slots that it knows, so that it is a majority itself.
    for (killed, advance_ms, flags) in
        [(&[3][..], 20_000, "slave,fail"), (&[0, 1][..], 20_000, "master,fail"), (&[3][..], 10_000, "slave")]
    {
        let mut nodes = Nodes::with_replicas();
        killed.iter().for_each(|node| nodes.server.kill_node(*node).expect("it is up"));
        nodes.advance_ms(advance_ms);
        let added = nodes.add_replica(2);
        assert_eq!(nodes.shown(added, killed[0]), (flags.to_owned(), "disconnected".to_owned()));
    }
}

#[test]
fn an_added_node_no_longer_takes_a_node_for_failed_when_it_hears_it() {
    let mut nodes = Nodes::with_replicas();
    nodes.server.kill_node(3).expect("it is up");
    nodes.advance_ms(20_000);
    let added = nodes.add();
    nodes.restart(3);
    assert_eq!(nodes.shown(added, 3), ("slave".to_owned(), "connected".to_owned()));
    nodes.advance_ms(5000);
    nodes.expect(&[(added, "DUNLIN WAIT CLUSTER AGREED", "OK")]);
}

#[test]
fn a_node_that_was_down_learns_that_an_added_one_has_failed() {
    let mut nodes = Nodes::with_replicas();
    nodes.server.kill_node(5).expect("it is up");
    let added = nodes.add_replica(0);
    nodes.server.kill_node(added).expect("it is up");
    nodes.advance_ms(20_000);
    nodes.restart(5);
    assert_eq!(nodes.shown(5, added), ("slave,fail".to_owned(), "disconnected".to_owned()));
    nodes.advance_ms(5000);
    nodes.expect(&[(5, "DUNLIN WAIT CLUSTER AGREED", "OK")]);
}

#[test]
fn the_journal_of_all_nodes_goes_on_at_an_added_node_and_without_a_removed_one() {
    let mut nodes = Nodes::start();
    nodes.expect(&[(0, "DUNLIN JOURNAL START ALL-NODES", "OK")]);
    let first = nodes.add();
    nodes.server.remove_node(first).expect("it owns no slot");
    let added = nodes.add();
    assert_eq!(nodes.nodes[added].node_number(), 4);
    assert!(nodes.text(added, "GET bar").starts_with("MOVED"));
    let journal = nodes.text(0, "DUNLIN JOURNAL LIST ALL-NODES COMMAND GET");
    assert!(journal.contains("node-4"), "{journal}");
    nodes.expect(&[(added, "DUNLIN JOURNAL EXPECT EXACTLY 1 ALL-NODES COMMAND GET", "OK")]);
    assert_eq!(nodes.server.journal_of_all_nodes().command("GET").count(), 1);
}

#[test]
fn a_node_is_added_only_to_a_cluster_and_as_a_replica_of_a_primary_that_is_up() {
    let mut nodes = Nodes::with_replicas();
    nodes.server.kill_node(1).expect("it is up");
    let usage = "ERR syntax error, usage: DUNLIN NODE <ADD [REPLICA-OF number] | number <KILL | PAUSE | RESUME | \
                 RESTART [EMPTY] | REMOVE>>";
    nodes.expect(&[
        (0, "DUNLIN NODE ADD REPLICA-OF 9", "ERR no node 9"),
        (0, "DUNLIN NODE ADD REPLICA-OF 1", "ERR node 1 is down"),
        (0, "DUNLIN NODE ADD REPLICA-OF 3", "ERR node 3 is a replica, and has none of its own"),
        (0, "DUNLIN NODE ADD 3", usage),
        (0, "DUNLIN NODE 3 REMOVE NOW", usage),
        (0, "DUNLIN NODE 9 REMOVE", "ERR no node 9"),
    ]);
    assert_eq!(numbers(&nodes.server), [0, 1, 2, 3, 4, 5], "nothing was added");
    (0..6).filter(|node| *node != 1).for_each(|node| nodes.server.kill_node(node).expect("it is up"));
    let alone = nodes.server.add_node().expect_err("there is none to meet");
    assert_eq!(alone.to_string(), "ERR no node can be added: no node is up");

    let server = Server::start().expect("it starts");
    let plain = server.add_node().expect_err("it is no cluster");
    assert_eq!(plain.to_string(), "ERR this server was not started with --cluster");
    assert!(server.remove_node(0).is_err());
}

#[test]
fn another_world_gets_a_node_behind_the_port_of_one_of_the_first_world() {
    let nodes = Nodes::start();
    let cart = nodes.server.world("cart").expect("it can be made");
    let alone = cart.add_node().expect_err("it has no port");
    let why = "it would have the port of node 3 of the world 'default', which has none";
    assert_eq!(alone.to_string(), format!("ERR no node can be added: {why}"));
    let (first, second) = (nodes.server.add_node(), nodes.server.add_node());
    let (_, second) = (first.expect("a port is free"), second.expect("a port is free"));
    nodes.server.remove_node(3).expect("it owns no slot");

    let added = cart.add_node().expect("node 4 has a port");
    assert_eq!((added.node_number(), added.name(), added.addr()), (4, "cart.node-4", second.addr()));
    cart.migrate_slot(5061, 4).expect("it moves");
    let connection = redis::Client::open(added.url()).and_then(|client| client.get_connection());
    let set: String = redis::cmd("SET").arg("bar").arg("1").query(&mut connection.expect("it listens")).expect("OK");
    assert_eq!(set, "OK");
    assert_eq!(text(&mut second.client().expect("there is room"), "DBSIZE"), "0");

    let north = nodes.server.world("north").expect("it can be made");
    assert_eq!(numbers(&north), [0, 1, 2], "a new world is what the server was started with");
    nodes.server.drop_world("cart").expect("it is there");
    let left: Vec<String> = nodes.server.worlds().into_iter().filter(|name| name.starts_with("cart")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_node_stays_while_another_world_uses_its_port_and_without_it_no_world_begins() {
    let nodes = Nodes::with_replicas();
    let cart = nodes.server.world("cart").expect("it can be made");
    let why = nodes.refusal_of_removal(4);
    assert_eq!(why, "ERR node 4 cannot be removed: a node of the world 'cart' is behind its port");
    cart.remove_node(4).expect("it owns no slot");
    nodes.server.remove_node(4).expect("it owns no slot");
    let why = "ERR no world can be made: node 4 of the world 'default' was removed, and its port is closed";
    assert_eq!(nodes.server.world("north").expect_err("it has no port").to_string(), why);
    nodes.server.world("cart").expect("it is there");
}

#[test]
fn a_login_to_a_node_that_its_world_does_not_have_is_refused() {
    let nodes = Nodes::start();
    let added = nodes.server.add_node().expect("a port is free");
    let cart = nodes.server.world("cart").expect("it can be made");
    let login = |client: &mut Client, name: &str| text(client, &format!("AUTH world.{name} any"));
    assert_eq!(login(&mut added.client().expect("there is room"), "cart"), "ERR no node 3");
    assert!(nodes.server.world("node-7").is_err());
    let replica = cart.add_replica(0).expect("node 3 has a port");
    drop(replica);
    assert_eq!(login(&mut added.client().expect("there is room"), "cart"), "OK");
    cart.remove_node(3).expect("it is a replica");
    assert_eq!(login(&mut added.client().expect("there is room"), "cart"), "ERR no node 3");
    assert_eq!(numbers(&cart), [0, 1, 2]);
}

#[test]
fn a_temporary_world_ends_with_the_nodes_that_were_added_to_it() {
    let nodes = Nodes::start();
    nodes.server.add_node().expect("a port is free");
    let mut client = nodes.server.client().expect("there is room");
    assert_eq!(text(&mut client, "DUNLIN WORLD brief TEMPORARY"), "OK");
    assert!(text(&mut client, "DUNLIN NODE ADD").starts_with("[3, "));
    assert_eq!(nodes.server.worlds().iter().filter(|name| name.starts_with("brief")).count(), 4);
    drop(client);
    wait_until("the world ends", || !nodes.server.worlds().iter().any(|name| name.starts_with("brief")));
}

#[test]
fn a_temporary_world_that_no_client_has_entered_stays_when_nodes_are_added_to_it() {
    let nodes = Nodes::start();
    let port = nodes.server.add_node().expect("a port is free");
    let brief = nodes.server.world("brief").expect("it can be made");
    brief.make_temporary();
    brief.add_replica(1).expect("node 3 has a port");
    // The end of a world is found on the event loop, which has done that when it has served a client that came later.
    let mut wire = redis::Client::open(port.url()).and_then(|client| client.get_connection()).expect("it listens");
    (0..10).for_each(|_| redis::cmd("PING").exec(&mut wire).expect("it answers"));
    assert_eq!(numbers(&brief), [0, 1, 2, 3]);
    let mut last = brief.node(3).and_then(|node| node.client()).expect("it is open");
    assert_eq!(
        text(&mut last, "DUNLIN NODE ADD"),
        "ERR no node can be added: it would have the port of node 4 of the \
        world 'default', which has none"
    );
    drop(last);
    wait_until("the world ends", || !nodes.server.worlds().iter().any(|name| name.starts_with("brief")));
}

#[test]
fn a_world_that_has_ended_gets_no_more_nodes() {
    let nodes = Nodes::start();
    nodes.server.add_node().expect("a port is free");
    let cart = nodes.server.world("cart").expect("it can be made");
    nodes.server.drop_world("cart").expect("it is there");
    assert_eq!(cart.add_node().expect_err("it has ended").to_string(), "ERR no world named 'cart'");
    nodes.server.world("cart").expect("it can be made again");
    assert_eq!(cart.add_node().expect_err("it has ended").to_string(), "ERR no world named 'cart'");
    assert_eq!(nodes.server.worlds().len(), 4 + 3);
}
