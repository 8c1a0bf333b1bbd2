//! Listeners that are changed while the server runs. The errors are those of Redis 8.0.6.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use dunlin::Server;

use crate::wire::connect;

/// A port that is free at this moment, and below those that a system gives to sockets by itself: otherwise another test
/// may get it before it is used, or while it is closed.
fn free_port() -> u16 {
    const FIRST: u16 = 12_000;
    const COUNT: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let of_process = (process::id() % u32::from(COUNT)) as u16;
    loop {
        let port = FIRST + (of_process + NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn is_open(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok()
}

#[test]
fn a_new_port_is_open_at_once_and_the_old_one_is_closed_but_keeps_its_clients() {
    for threads in ["1", "3"] {
        let server = Server::builder().port(free_port()).set("io-threads", threads).start().expect("it starts");
        let (old, port) = (server.addr(), free_port());
        let mut clients: Vec<_> = (0..4).map(|_| connect(old)).collect();
        // A client that got a reply stays connected; one that was not accepted yet is closed with the listener, as in
        // Redis.
        clients.iter_mut().for_each(|client| client.ask("PING\r\n", "+PONG\r\n"));
        clients[1].ask(format!("CONFIG SET port {port}\r\n"), "+OK\r\n");
        assert!(!is_open(old));
        clients.push(connect(SocketAddr::new(old.ip(), port)));
        for client in &mut clients {
            client.ask("PING\r\n", "+PONG\r\n");
        }
        clients[0].ask("CONFIG SET port 0\r\n", "+OK\r\n");
        assert!(!is_open(SocketAddr::new(old.ip(), port)));
        clients[4].ask(format!("CONFIG SET port {}\r\n", old.port()), "+OK\r\n");
        connect(old).ask("PING\r\n", "+PONG\r\n");
    }
}

#[test]
fn other_addresses_of_the_same_port_take_the_place_of_the_old_ones() {
    let server = Server::builder().set("io-threads", "2").start().expect("it starts");
    let mut client = connect(server.addr());
    for bind in ["*", "127.0.0.1", "127.0.0.1 -10.255.255.1", "* -::*"] {
        client.ask(format!("CONFIG SET bind \"{bind}\"\r\n"), "+OK\r\n");
        connect(server.addr()).ask("PING\r\n", "+PONG\r\n");
    }
    client.ask("CONFIG SET bind \"\"\r\n", "+OK\r\n");
    assert!(!is_open(server.addr()));
    client.ask("PING\r\n", "+PONG\r\n");
}

#[test]
fn a_failed_change_of_listeners_changes_nothing() {
    let server = Server::start().expect("it starts");
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = taken.local_addr().expect("it is bound").port();
    let mut client = connect(server.addr());
    client.ask(
        format!("CONFIG SET maxclients 77 port {port}\r\n"),
        "-ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. Check \
         server logs.\r\n",
    );
    client.ask(
        "CONFIG SET maxclients 77 bind 999.999.999.999\r\n",
        "-ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses.\r\n",
    );
    client.ask("CONFIG GET maxclients\r\n", "*2\r\n$10\r\nmaxclients\r\n$5\r\n10000\r\n");
    connect(server.addr()).ask("PING\r\n", "+PONG\r\n");
}

#[test]
#[cfg(target_os = "linux")]
fn a_failed_change_of_bind_and_port_names_the_first_and_both_change_together() {
    let server = Server::start().expect("it starts");
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = taken.local_addr().expect("it is bound").port();
    let mut client = connect(server.addr());
    let refusal =
        |name, reason| format!("-ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}\r\n");
    client.ask(
        format!("CONFIG SET bind \"127.0.0.2 127.0.0.1\" port {port}\r\n"),
        refusal("bind", "Failed to bind to specified addresses."),
    );
    client.ask(
        format!("CONFIG SET port {port} bind \"127.0.0.2 127.0.0.1\"\r\n"),
        refusal("port", "Unable to listen on this port. Check server logs."),
    );
    assert!(is_open(server.addr()));
    client.ask(format!("CONFIG SET port {port} bind 127.0.0.2\r\n"), "+OK\r\n");
    assert!(!is_open(server.addr()) && is_open(SocketAddr::from(([127, 0, 0, 2], port))));
}

#[test]
#[cfg(target_os = "linux")]
fn one_unavailable_address_refuses_the_whole_change() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    for addresses in ["127.0.0.1 203.0.113.1", "127.0.0.2 127.0.0.2", " 127.0.0.1", "127.0.0.1  127.0.0.2"] {
        client.ask(
            format!("CONFIG SET bind \"{addresses}\"\r\n"),
            "-ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses.\r\n",
        );
        connect(server.addr()).ask("PING\r\n", "+PONG\r\n");
    }
}

#[test]
fn many_clients_that_connect_at_once_are_all_accepted() {
    let server = Server::builder().set("max-new-connections-per-cycle", "1").start().expect("it starts");
    let mut clients: Vec<_> = (0..50).map(|_| connect(server.addr())).collect();
    clients.iter_mut().for_each(|client| client.send("PING\r\n"));
    clients.iter_mut().for_each(|client| client.expect("+PONG\r\n"));
}
