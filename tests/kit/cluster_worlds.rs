//! Worlds of a server that is a cluster: each is a cluster of its own behind the same ports.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use dunlin::{CallError, Client, Server, World};
use redis::cluster::ClusterClient;

use crate::nodes::text;
use crate::timeout::wait_until;
use crate::worlds::clients_in;

/// A cluster with a world `cart`, and a direct client for each node of that.
fn with_cart() -> (Server, World, Vec<Client>) {
    let server = Server::cluster(3).replicas(1).seed(7).frozen().start().expect("the nodes start");
    let cart = server.world("cart").expect("it can be made");
    let clients = cart.nodes().iter().map(|node| node.client().expect("there is room")).collect();
    (server, cart, clients)
}

/// The replies of a node to lines over a connection that the client closes then.
fn answers(node: &World, lines: &str) -> String {
    let mut wire = TcpStream::connect(node.addr()).expect("it listens");
    wire.write_all(lines.replace('\n', "\r\n").as_bytes()).expect("it reads");
    wire.shutdown(std::net::Shutdown::Write).expect("it is open");
    let mut got = String::new();
    wire.read_to_string(&mut got).expect("it is ASCII");
    got.replace("\r\n", "\n")
}

#[test]
fn a_world_is_a_cluster_with_slots_and_data_of_its_own() {
    let (server, cart, mut clients) = with_cart();
    assert_eq!(text(&mut clients[0], "SET bar 1"), "OK");
    assert_eq!(text(&mut clients[3], "READONLY"), "OK");
    assert_eq!(text(&mut clients[3], "GET bar"), "1");
    assert_eq!(text(&mut clients[1], "GET bar"), format!("MOVED 5061 {}", cart.addr()));
    assert_eq!(text(&mut server.client().expect("there is room"), "GET bar"), "nil");

    cart.migrate_slot(5061, 2).expect("it moves");
    let moved = format!("MOVED 5061 {}", server.nodes()[2].addr());
    assert_eq!(text(&mut clients[0], "GET bar"), moved);
    assert_eq!(text(&mut clients[2], "GET bar"), "1");
    assert_eq!(
        text(&mut server.client().expect("there is room"), "GET bar"),
        "nil",
        "the first world has not moved it"
    );
}

#[test]
fn its_nodes_have_the_ports_of_the_server_and_ids_of_their_own() {
    let (server, cart, mut clients) = with_cart();
    let ports = |world: &World| world.nodes().iter().map(World::addr).collect::<Vec<_>>();
    assert_eq!(ports(&server), ports(&cart));
    let url = format!("redis://world.cart:any@{}/", server.nodes()[4].addr());
    assert_eq!((cart.nodes()[4].url(), cart.nodes()[4].name()), (url, "cart.node-4"));
    let ids: Vec<String> = clients.iter_mut().map(|client| text(client, "CLUSTER MYID")).collect();
    let (_again, _, mut others) = with_cart();
    let repeated: Vec<String> = others.iter_mut().map(|client| text(client, "CLUSTER MYID")).collect();
    assert_eq!(ids, repeated, "the seed and the name say it");
    assert_ne!(ids[0], text(&mut server.client().expect("there is room"), "CLUSTER MYID"));
}

#[test]
fn a_login_leads_to_the_node_of_its_port() {
    let (server, cart, _) = with_cart();
    for (number, node) in server.nodes().iter().enumerate() {
        let name = cart.nodes()[number].name().to_owned();
        let expected = format!("+OK\n${}\n{name}\n+OK\n+OK\n", name.len());
        let lines = "AUTH world.cart any\nDUNLIN WORLD\nDUNLIN WORLD default\nDUNLIN WORLD cart\n";
        assert_eq!(answers(node, lines), expected, "node {number}");
    }
    let refused = answers(&server, "AUTH world.cart.node-6 any\n");
    assert_eq!(refused, "-ERR no node 6\n");
    assert_eq!(answers(&server, "AUTH world.cart.node-2 any\nDUNLIN WORLD\n"), "+OK\n$11\ncart.node-2\n");
}

#[test]
fn a_client_for_clusters_stays_in_its_world() {
    let server = Server::cluster(3).replicas(1).start().expect("the nodes start");
    let (cart, stock) = (server.world("cart").expect("it can be made"), server.world("stock").expect("it can be made"));
    let connect = |world: &World| {
        let client = ClusterClient::new(vec![world.url()]).expect("it is a URL");
        client.get_connection().expect("it connects")
    };
    let (mut in_cart, mut in_stock) = (connect(&cart), connect(&stock));
    for key in 0..100 {
        let () = redis::cmd("SET").arg(key).arg("cart").query(&mut in_cart).expect("it answers");
    }
    cart.fail_over(3).expect("it can");
    for key in 0..100 {
        let here: String = redis::cmd("GET").arg(key).query(&mut in_cart).expect("it answers");
        let there: Option<String> = redis::cmd("GET").arg(key).query(&mut in_stock).expect("it answers");
        assert_eq!((here.as_str(), there), ("cart", None), "{key}");
    }
}

#[test]
fn a_failure_in_one_world_is_none_in_another() {
    let (server, cart, mut clients) = with_cart();
    let mut first = server.nodes()[1].client().expect("there is room");
    cart.kill_node(0).expect("it runs");
    cart.advance(Duration::from_secs(16));
    assert_eq!(text(&mut clients[1], "GET bar"), format!("MOVED 5061 {}", server.nodes()[3].addr()));
    assert_eq!(text(&mut first, "GET bar"), format!("MOVED 5061 {}", server.addr()));
    assert!(cart.now() > server.now() && cart.nodes()[4].now() == cart.now());
    cart.partition(&[&[1]]).expect("it can");
    cart.advance(Duration::from_secs(16));
    assert_eq!(text(&mut clients[1], "GET abc"), "CLUSTERDOWN The cluster is down");
    assert_eq!(text(&mut first, "GET abc"), "nil");
}

#[test]
fn a_node_that_was_killed_lets_nobody_in() {
    let (server, cart, mut clients) = with_cart();
    cart.kill_node(0).expect("it runs");
    assert_eq!(clients[0].call(["PING"]), Err(CallError::Closed));
    assert_eq!(answers(&server, "AUTH world.cart any\nPING\n"), "");
    assert_eq!(server.client().expect("there is room").call(["DUNLIN", "WORLD", "cart"]), Err(CallError::Closed));
    assert_eq!(answers(&server, "PING\n"), "+PONG\n");
    cart.restart_node(0).expect("it is down");
    assert_eq!(answers(&server, "AUTH world.cart any\nPING\n"), "+OK\n+PONG\n");
}

#[test]
fn a_node_that_is_paused_answers_its_world_alone_later() {
    let (server, cart, _) = with_cart();
    cart.pause_node(0).expect("it runs");
    let mut waiting = TcpStream::connect(server.addr()).expect("it listens");
    waiting.write_all(b"AUTH world.cart any\r\nPING\r\n").expect("it reads");
    assert_eq!(answers(&server, "PING\n"), "+PONG\n");
    cart.resume_node(0).expect("it is paused");
    let mut reply = [0; 12];
    waiting.read_exact(&mut reply).expect("it answers");
    assert_eq!(&reply, b"+OK\r\n+PONG\r\n");
}

#[test]
fn a_world_ends_with_all_its_nodes() {
    let (server, _, mut clients) = with_cart();
    assert_eq!(server.worlds().len(), 12);
    assert_eq!(text(&mut clients[0], "SET bar 1"), "OK");
    server.drop_world("cart").expect("it is there");
    assert!(clients.iter_mut().all(|client| client.call(["PING"]) == Err(CallError::Closed)));
    assert_eq!(server.worlds().len(), 6);
    assert_eq!(answers(&server, "AUTH world.cart any\nGET bar\n"), "+OK\n$-1\n");
    for name in ["default", "node-1"] {
        assert!(server.drop_world(name).is_err(), "{name}");
    }
    assert!(server.drop_world("nosuch").is_err());
}

#[test]
fn a_temporary_world_ends_when_the_last_client_of_all_nodes_leaves() {
    let server = Server::cluster(3).start().expect("the nodes start");
    let mut wires =
        server.nodes().iter().map(|node| TcpStream::connect(node.addr()).expect("it listens")).collect::<Vec<_>>();
    for wire in &mut wires {
        wire.write_all(b"AUTH temporary-world.brief any\r\n").expect("it reads");
        let mut reply = [0; 5];
        wire.read_exact(&mut reply).expect("it answers");
        assert_eq!(&reply, b"+OK\r\n");
    }
    let last = wires.pop();
    drop(wires);
    let mut client = server.client().expect("there is room");
    wait_until("two clients leave", || {
        ["brief", "brief.node-1"].map(|world| clients_in(&mut client, world)) == [Some(0); 2]
    });
    assert_eq!(clients_in(&mut client, "brief.node-2"), Some(1));
    drop(last);
    wait_until("the world ends", || server.worlds().len() == 3);
}

#[test]
fn what_a_world_of_a_cluster_has_not_is_refused() {
    let (server, cart, mut clients) = with_cart();
    let no_port = "ERR a world that is a cluster has the ports of its server";
    assert_eq!(text(&mut clients[1], "DUNLIN LISTEN cart"), no_port);
    assert_eq!(cart.listen().map_err(|error| error.to_string()), Err(no_port.to_owned()));
    assert_eq!(server.listen(), Ok(server.addr()));
    assert_eq!(text(&mut clients[1], "DUNLIN TEMPLATE"), "ERR a world that is a cluster cannot start from a template");
}

#[test]
fn a_name_that_looks_like_that_of_a_node_replaces_none() {
    let (server, cart, mut clients) = with_cart();
    assert_eq!(text(&mut clients[0], "SET bar 1"), "OK");
    assert_eq!(text(&mut server.client().expect("there is room"), "SET bar 2"), "OK");
    for name in ["default.node-1", "node-01", "cart.node-02"] {
        assert_eq!(answers(&server, &format!("AUTH world.{name} any\nGET bar\n")), "+OK\n$-1\n", "{name}");
    }
    for name in ["node-1.node-2", "cart.node-1.node-2"] {
        assert!(answers(&server, &format!("AUTH world.{name} any\n")).starts_with("-ERR no world named"), "{name}");
    }
    assert_eq!(answers(&cart, "AUTH world.cart any\nGET bar\n"), "+OK\n$1\n1\n");
    assert_eq!(answers(&server, "GET bar\n"), "$1\n2\n");
    assert_eq!(text(&mut clients[0], "DUNLIN DROP-WORLD cart.node-9"), "ERR no world named 'cart.node-9'");
    assert_eq!(text(&mut clients[0], "GET bar"), "1");
}

#[test]
fn a_world_that_a_test_makes_temporary_ends_by_its_last_client_at_any_node() {
    let (server, cart, clients) = with_cart();
    let last = cart.nodes()[2].client().expect("there is room");
    cart.make_temporary();
    drop(clients);
    assert!(server.worlds().contains(&"cart".to_owned()));
    drop(last);
    wait_until("the world ends", || server.worlds().len() == 6);
}

#[test]
fn what_is_done_to_a_world_that_has_ended_harms_nobody() {
    let (server, cart, clients) = with_cart();
    cart.cut_link(0, 1).expect("there are such nodes");
    server.drop_world("cart").expect("it is there");
    drop(clients);
    cart.heal();
    // Its nodes may still be there, or not.
    _ = (cart.kill_node(1), cart.fail_over(3), cart.migrate_slot(5061, 1), cart.partition(&[&[1]]));
    cart.advance(Duration::from_secs(60));
    assert_eq!(answers(&server, "AUTH world.cart any\nSET bar 1\n"), "+OK\n+OK\n");
}

#[test]
fn a_node_of_a_world_ends_meets_and_is_shown_as_one_of_its_own_cluster() {
    let (server, cart, mut clients) = with_cart();
    let port = server.nodes()[1].addr().port();
    assert_eq!(text(&mut clients[0], &format!("CLUSTER MEET 127.0.0.1 {port}")), "OK");
    assert_eq!(text(&mut clients[0], "CLUSTER NODES").lines().count(), 6);
    assert_eq!(text(&mut clients[0], "SET bar 1"), "OK");
    let source = text(&mut clients[0], "CLUSTER MYID");
    assert_eq!(text(&mut clients[1], &format!("CLUSTER SETSLOT 5061 IMPORTING {source}")), "OK");
    assert_eq!(text(&mut clients[0], &format!("MIGRATE 127.0.0.1 {port} bar 0 1000")), "OK");
    assert_eq!((text(&mut clients[1], "ASKING"), text(&mut clients[1], "GET bar")), ("OK".into(), "1".into()));
    assert_eq!(clients[1].call(["SHUTDOWN", "NOSAVE"]), Err(CallError::Closed));
    assert_eq!(answers(&server.nodes()[1], "AUTH world.cart any\n"), "");
    assert_eq!(answers(&server.nodes()[1], "PING\n"), "+PONG\n");
    assert_eq!(cart.nodes().len(), 6);
}

#[test]
fn clients_that_come_to_all_nodes_at_once_find_one_world() {
    let server = Server::cluster(3).replicas(1).start().expect("the nodes start");
    let logged_in = |node: World| {
        let mut wire = TcpStream::connect(node.addr()).expect("it listens");
        wire.write_all(b"AUTH world.cart any\r\n").expect("it reads");
        wire.read_exact(&mut [0; 5]).expect("it answers");
        wire
    };
    let wires: Vec<TcpStream> = std::thread::scope(|scope| {
        let threads: Vec<_> = server.nodes().into_iter().map(|node| scope.spawn(|| logged_in(node))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it is let in")).collect()
    });
    assert_eq!(server.worlds().len(), 12);
    let names = server.world("cart").expect("it is there").nodes();
    let mut client = server.client().expect("there is room");
    let clients: Vec<_> = names.iter().map(|node| clients_in(&mut client, node.name())).collect();
    assert_eq!(clients, [Some(1); 6], "each came into the same cluster");
    let known = answers(&server, "AUTH world.cart any\nDUNLIN NODES\nCLUSTER INFO\n");
    assert!(known.starts_with("+OK\n*6\n") && known.contains("cluster_state:ok"), "{known}");
    drop(wires);
}

#[test]
fn the_names_of_all_its_nodes_are_names_of_worlds() {
    let server = Server::cluster(3).start().expect("the nodes start");
    assert!(server.world(&"x".repeat(57)).is_ok());
    let refused = server.world(&"x".repeat(58)).expect_err("that of its second node has 65 letters");
    assert!(refused.to_string().contains("1 to 64 letters"), "{refused}");
}

#[test]
fn a_temporary_world_in_use_refuses_no_commands_that_nodes_without_clients_get() {
    let server = Server::cluster(3).start().expect("the nodes start");
    let cart = server.world("cart").expect("it can be made");
    let mut last = cart.nodes()[2].client().expect("there is room");
    cart.make_temporary();
    std::thread::scope(|scope| {
        // Each of these clients is the last one of its node.
        let others = cart.nodes()[1].clone();
        scope.spawn(move || (0..2000).for_each(|_| drop(others.client().expect("the world is in use"))));
        for target in (0..500).map(|round| round % 2) {
            assert_eq!(text(&mut last, &format!("DUNLIN MIGRATE-SLOT 100 TO {}", 1 - target)), "OK");
        }
    });
}
