//! Worlds with a port of their own.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use dunlin::{CallError, Client, Reply, Server};

use super::{clients_in, ok, two};
use crate::timeout::wait_until;
use crate::{call, error, served};

/// The bytes that come from `address` for `requests` when the client closes its sending half after them.
fn answers(address: SocketAddr, requests: &str) -> String {
    let mut wire = TcpStream::connect(address).expect("it listens");
    wire.write_all(requests.replace('\n', "\r\n").as_bytes()).expect("it reads");
    wire.shutdown(Shutdown::Write).expect("it is open");
    let mut got = String::new();
    wire.read_to_string(&mut got).expect("it is ASCII");
    got.replace("\r\n", "\n")
}

/// The address that DUNLIN LISTEN answers for a world.
fn listen(client: &mut Client, world: &str) -> SocketAddr {
    let Reply::Integer(port) = call(client, ["DUNLIN", "LISTEN", world]) else { panic!("a port is a number") };
    ([127, 0, 0, 1], u16::try_from(port).expect("it is a port")).into()
}

#[test]
fn clients_of_a_port_are_in_its_world_without_a_login() {
    let (server, mut client) = served();
    let [ann, ben] = ["ann", "ben"].map(|world| listen(&mut client, world));
    assert_eq!(server.worlds(), ["default", "ann", "ben"]);
    assert_eq!(answers(ann, "DUNLIN WORLD\nSET key value\n"), "$3\nann\n+OK\n");
    assert_eq!(answers(ben, "DUNLIN WORLD\nDBSIZE\nRESET\nDUNLIN WORLD\n"), "$3\nben\n:0\n+RESET\n$3\nben\n");
    assert_eq!(answers(ann, "GET key\n"), "$5\nvalue\n");
    assert_eq!(answers(ann, "DUNLIN WORLD default\nDBSIZE\n"), "+OK\n:0\n");
}

#[test]
fn a_world_has_one_port_and_the_first_world_that_of_the_server() {
    let (server, [world, _], [mut client, _]) = two();
    let ann = listen(&mut client, "ann");
    assert_eq!([listen(&mut client, "ann"), world.listen().expect("it listens")], [ann, ann]);
    assert_eq!(listen(&mut client, "default"), server.addr());
    assert_eq!(server.listen(), Ok(server.addr()));
}

#[test]
fn every_event_loop_serves_the_clients_of_a_port_in_its_world() {
    let server = Server::builder().set("io-threads", "3").start().expect("it starts");
    let mut client = server.client().expect("there is room");
    let ann = listen(&mut client, "ann");
    let mut wires: Vec<TcpStream> = (0..12).map(|_| TcpStream::connect(ann).expect("it listens")).collect();
    for wire in &mut wires {
        wire.write_all(b"DUNLIN WORLD\r\n").expect("it reads");
        let mut got = [0; 9];
        wire.read_exact(&mut got).expect("it answers");
        assert_eq!(got, *b"$3\r\nann\r\n");
    }
    assert_eq!((clients_in(&mut client, "ann"), clients_in(&mut client, "default")), (Some(12), Some(1)));
}

#[test]
fn a_port_closes_with_its_world() {
    let (server, [world, _], [_, mut ben]) = two();
    let ann = listen(&mut ben, "ann");
    let mut wire = TcpStream::connect(ann).expect("it listens");
    // One that is not accepted yet when the world ends is told so first.
    wire.write_all(b"PING\n").expect("it is open");
    wire.read_exact(&mut [0; b"+PONG\r\n".len()]).expect("it is served");
    assert_eq!(call(&mut ben, ["DUNLIN", "DROP-WORLD", "ann"]), ok());
    assert!(TcpStream::connect(ann).is_err());
    assert_eq!(wire.read(&mut [0; 1]).unwrap_or_default(), 0);
    assert_eq!(world.listen(), Err(CallError::Closed));
    let again = listen(&mut ben, "ann");
    assert_eq!(answers(again, "DUNLIN WORLD\n"), "$3\nann\n");
    drop((server, wire));
    assert!(TcpStream::connect(again).is_err());
}

#[test]
fn the_port_of_a_temporary_world_closes_when_its_last_client_leaves() {
    let (server, mut client) = served();
    let mut brief = server.client().expect("there is room");
    call(&mut brief, ["DUNLIN", "WORLD", "brief", "TEMPORARY"]);
    let address = listen(&mut client, "brief");
    assert_eq!(answers(address, "SET key value\n"), "+OK\n");
    assert_eq!(call(&mut brief, ["GET", "key"]), "value");
    drop(brief);
    wait_until("the world has ended", || server.worlds() == ["default"]);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_port_asks_for_the_password_and_keeps_the_rules_of_the_server() {
    let server = Server::builder().password("secret").set("maxclients", "2").start().expect("it starts");
    let ann = listen(&mut server.client().expect("there is room"), "ann");
    assert_eq!(answers(ann, "DBSIZE\nAUTH secret\nDBSIZE\n"), "-NOAUTH Authentication required.\n+OK\n:0\n");
    let world = server.world("ann").expect("it is there");
    let _clients = [world.client().expect("there is room"), world.client().expect("there is room")];
    wait_until("nobody else is there", || answers(ann, "") == "-ERR max number of clients reached\n");
}

#[test]
fn a_port_that_cannot_be_opened_is_refused() {
    let (server, mut client) = served();
    call(&mut client, ["CONFIG", "SET", "bind", ""]);
    assert_eq!(error(&mut client, ["DUNLIN", "LISTEN", "ann"]), "ERR cannot listen: 'bind' has no address");
    assert_eq!(call(&mut client, ["MULTI"]), ok());
    assert_eq!(error(&mut client, ["DUNLIN", "LISTEN", "ann"]), "ERR Command not allowed inside a transaction");
    let refused = "ERR the name of a world must be 1 to 64 letters, digits, '-', '_' or '.'";
    let mut other = server.client().expect("there is room");
    assert_eq!(error(&mut other, ["DUNLIN", "LISTEN", "a b"]), refused);
}
