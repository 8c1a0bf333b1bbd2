//! Known vulnerabilities of other servers whose tests need sockets; tests/engine/known_holes.rs has the list.

use std::net::TcpStream;
use std::time::Duration;

use dunlin::Server;
use socket2::{Domain, Socket, Type};

use crate::timeout::TIMEOUT;
use crate::wire::connect;

#[test]
fn clients_that_connect_and_leave_at_once_lock_out_no_client() {
    let server = Server::start().expect("it starts");
    let mut patient = connect(server.addr());
    for round in 0..2000 {
        drop(TcpStream::connect(server.addr()).expect("the server listens"));
        if round % 100 == 0 {
            patient.ask("PING\r\n", "+PONG\r\n");
            connect(server.addr()).ask("PING\r\n", "+PONG\r\n");
        }
    }
}

/// CVE-2025-48367: connections that fail before they are handled.
#[test]
fn clients_that_reset_their_connection_at_once_lock_out_no_client() {
    let server = Server::start().expect("it starts");
    let mut patient = connect(server.addr());
    // The row requires 100,000, which DUNLIN_HOLE_ROUNDS sets.
    let usual = 10_000;
    let rounds = std::env::var("DUNLIN_HOLE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    for round in 0..rounds {
        let quick = Socket::new(Domain::IPV4, Type::STREAM, None).expect("there are sockets");
        quick.set_linger(Some(Duration::ZERO)).expect("a socket has options");
        quick.connect(&server.addr().into()).expect("the server listens");
        drop(quick); // which sends no end, but that there is nobody
        if round % 100 == 0 {
            patient.ask("PING\r\n", "+PONG\r\n");
            connect(server.addr()).ask("PING\r\n", "+PONG\r\n");
        }
    }
    server.wait_for_clients(1, TIMEOUT).expect("all of them are gone");
}

#[test]
fn a_tls_port_is_refused() {
    assert!(Server::builder().set("tls-port", "6390").start().is_err());
}
