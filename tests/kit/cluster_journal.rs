//! The journals of all nodes of a cluster, read as one.

use dunlin::{CallError, Client, Reply, Server, World};

use crate::guard::failure;
use crate::nodes::{Nodes, in_one_line, text};
use crate::timeout::TIMEOUT;
use crate::{ended, error, polled, served};

/// A client of a node with a name.
fn named(node: &World, name: &str) -> Client {
    let mut client = node.client().expect("there is room");
    assert_eq!(text(&mut client, &format!("CLIENT SETNAME {name}")), "OK");
    client
}

/// The value of a field of each listed command, in their order.
fn listed(nodes: &mut Nodes, line: &str, field: &str) -> Vec<String> {
    let Reply::Array(entries) = nodes.ask(1, line) else { panic!("{line} lists commands") };
    let value = |entry: &Reply| {
        let Reply::Map(fields) = entry else { panic!("a command is a map") };
        let (_, value) = fields.iter().find(|(name, _)| *name == field).expect("there is such a field");
        in_one_line(value)
    };
    entries.iter().map(value).collect()
}

#[test]
fn a_client_is_redirected_once_after_a_move_wherever_it_asks() {
    let mut three = Nodes::start();
    three.expect(&[(0, "SET bar 1", "OK"), (2, "DUNLIN JOURNAL START ALL-NODES", "OK")]);
    three.expect(&[(1, "DUNLIN MIGRATE-SLOT 5061 TO 2", "OK")]);
    let moved = three.moved(5061, 2);
    three.expect(&[
        (0, "GET bar", &moved),
        (2, "GET bar", "1"),
        (2, "DUNLIN JOURNAL EXPECT AT-MOST 1 ALL-NODES KEY bar REDIRECTED", "OK"),
        (1, "GET bar", &moved),
        (0, "DUNLIN JOURNAL COUNT ALL-NODES REDIRECTED", "2"),
        (0, "DUNLIN JOURNAL COUNT KEY bar REDIRECTED ALL-NODES", "2"),
        (0, "DUNLIN JOURNAL COUNT REDIRECTED", "1"),
    ]);
    let refused = three.text(2, "DUNLIN JOURNAL EXPECT AT-MOST 1 ALL-NODES KEY bar REDIRECTED");
    let place = |part: &str| refused.find(part).unwrap_or_else(|| panic!("no '{part}' in {refused}"));
    assert!(refused.starts_with("ERR expected at most 1 of KEY bar REDIRECTED, found 2: "), "{refused}");
    assert!(place(" at node 0 client ") < place(" at node 1 client "));
}

#[test]
fn commands_at_one_moment_are_listed_in_the_order_in_which_they_began() {
    let mut three = Nodes::start();
    three.expect(&[(0, "DUNLIN JOURNAL START ALL-NODES 100", "OK")]);
    let order = [2, 0, 1, 1, 0, 2];
    order.iter().for_each(|node| _ = three.text(*node, "PING"));
    assert_eq!(listed(&mut three, "DUNLIN JOURNAL LIST ALL-NODES", "node"), order.map(|node| node.to_string()));
    let worlds = listed(&mut three, "DUNLIN JOURNAL LIST ALL-NODES", "world");
    assert_eq!(worlds, ["node-2", "default", "node-1", "node-1", "default", "node-2"]);
    assert_eq!(
        listed(&mut three, "DUNLIN JOURNAL LIST ALL-NODES COMMAND ping", "number"),
        ["1", "1", "1", "2", "2", "2"]
    );
    assert_eq!(listed(&mut three, "DUNLIN JOURNAL LIST", "world"), ["node-1", "node-1"]);
    assert_eq!(listed(&mut three, "DUNLIN JOURNAL PATTERNS ALL-NODES", "count"), ["6"]);
    assert_eq!(listed(&mut three, "DUNLIN JOURNAL PATTERNS", "count"), ["2"]);
}

#[test]
fn the_journals_of_all_nodes_stop_and_are_cleared_together() {
    let mut three = Nodes::start();
    three.expect(&[(0, "DUNLIN JOURNAL START ALL-NODES", "OK"), (1, "PING", "PONG"), (2, "PING", "PONG")]);
    three.expect(&[(0, "DUNLIN JOURNAL STOP ALL-NODES", "OK"), (1, "PING", "PONG")]);
    three.expect(&[(0, "DUNLIN JOURNAL COUNT ALL-NODES", "2"), (1, "DUNLIN JOURNAL CLEAR ALL-NODES", "OK")]);
    let none = "ERR no journal; start one with DUNLIN JOURNAL START";
    three.expect(&[
        (0, "DUNLIN JOURNAL STOP ALL-NODES", none),
        (0, "DUNLIN JOURNAL CLEAR ALL-NODES", none),
        (0, "DUNLIN JOURNAL START", "OK"),
    ]);
    let some = "ERR node 1 has no journal; start all with DUNLIN JOURNAL START ALL-NODES";
    three.expect(&[
        (0, "DUNLIN JOURNAL COUNT ALL-NODES", some),
        (0, "DUNLIN JOURNAL EXPECT NONE ALL-NODES", some),
        (0, "DUNLIN JOURNAL LIST ALL-NODES", some),
        (0, "DUNLIN JOURNAL START ALL-NODES 0", "ERR the size of a journal must be 1 to 1000000 commands"),
    ]);
}

#[test]
fn a_server_by_itself_has_no_journals_of_all_nodes() {
    let (_server, mut client) = served();
    for action in ["START", "STOP", "CLEAR", "LIST", "COUNT", "EXPECT NONE"] {
        let words = format!("DUNLIN JOURNAL {action} ALL-NODES");
        assert_eq!(error(&mut client, words.split(' ')), "ERR this server was not started with --cluster", "{action}");
    }
}

#[test]
fn a_test_in_rust_reads_the_journals_of_all_nodes_as_one() {
    let mut three = Nodes::start();
    let nodes = three.nodes.clone();
    let journal = nodes[1].journal_of_all_nodes();
    let mut clients: Vec<Client> = nodes.iter().map(|node| named(node, "shop")).collect();
    journal.clear();
    let moved = three.moved(5061, 0);
    assert_eq!(text(&mut clients[2], "SET bar 1"), moved);
    assert_eq!(text(&mut clients[0], "SET bar 1"), "OK");
    assert_eq!(text(&mut clients[1], "GET foo extra"), "ERR wrong number of arguments for 'get' command");
    three.expect(&[(1, "GET abc", "nil")]);
    let at = |entries: &[dunlin::Entry]| entries.iter().map(|entry| entry.node).collect::<Vec<_>>();
    assert_eq!(at(&journal.entries()), [Some(2), Some(0), Some(1), Some(1)]);
    assert_eq!(at(&journal.command("set").redirected().key("b*").entries()), [Some(2)]);
    journal.client("shop").assert_exactly(3);
    journal.errors().assert_at_most(2);
    journal.command("GET").assert_at_least(2);
    journal.command("DEL").assert_none();
    assert_eq!(journal.command("SET").count(), 2);
    let text = failure(|| journal.redirected().assert_none());
    assert!(text.contains("expected exactly 0 of REDIRECTED, found 1:\n  #2 at node 2 client"), "{text}");
}

#[test]
fn a_server_by_itself_is_one_node_to_a_test_in_rust() {
    let server = Server::start().expect("it starts");
    let journal = server.journal_of_all_nodes();
    assert_eq!(text(&mut server.client().expect("there is room"), "PING"), "PONG");
    assert_eq!(journal.entries()[0].node, Some(0));
}

#[test]
fn a_test_waits_for_commands_at_any_node() {
    let mut three = Nodes::start();
    three.expect(&[(0, "DUNLIN JOURNAL START ALL-NODES", "OK"), (0, "DUNLIN WAIT JOURNAL 0 ALL-NODES", "OK")]);
    let mut waiting = three.nodes[0].client().expect("there is room");
    let words = "DUNLIN WAIT JOURNAL 2 ALL-NODES COMMAND set REDIRECTED";
    let mut wait = Box::pin(waiting.call_async(words.split(' ')));
    assert!(polled(wait.as_mut()).is_pending());
    let moved = three.moved(5061, 0);
    three.expect(&[(1, "SET bar 1", &moved), (0, "SET bar 1", "OK"), (0, "DUNLIN WAIT JOURNAL 1 COMMAND set", "OK")]);
    assert!(polled(wait.as_mut()).is_pending(), "one of two was redirected");
    three.expect(&[(2, "SET bar 1", &moved)]);
    assert_eq!(in_one_line(&ended(wait.as_mut()).expect("it was waited for")), "OK");
    drop(wait);
    let journal = three.nodes[2].journal_of_all_nodes();
    journal.redirected().wait_for(2, TIMEOUT).expect("there are two already");
}

#[test]
fn a_wait_for_all_journals_ends_with_its_time_or_where_there_is_none() {
    let mut three = Nodes::start();
    let none = "ERR node 0 has no journal; start all with DUNLIN JOURNAL START ALL-NODES";
    three.expect(&[(1, "DUNLIN WAIT JOURNAL 1 ALL-NODES", none), (1, "DUNLIN JOURNAL START ALL-NODES", "OK")]);
    three.expect(&[(2, "PING", "PONG")]);
    let mut waiting = three.nodes[1].client().expect("there is room");
    let words = "DUNLIN WAIT JOURNAL 2 COMMAND ping ALL-NODES TIMEOUT 1000";
    let mut wait = Box::pin(waiting.call_async(words.split(' ')));
    assert!(polled(wait.as_mut()).is_pending());
    three.advance_ms(1_000);
    let text = "ERR waited in vain: the journals of all nodes have 1 of 2 commands of COMMAND ping";
    assert!(matches!(ended(wait.as_mut()), Err(CallError::Refused(error)) if error.starts_with(text)));
    drop(wait);
    let (_server, mut client) = served();
    let refused = error(&mut client, ["DUNLIN", "WAIT", "JOURNAL", "1", "ALL-NODES"]);
    assert_eq!(refused, "ERR this server was not started with --cluster");
}
