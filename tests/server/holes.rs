//! Known vulnerabilities of other servers whose tests need sockets; tests/engine/known_holes.rs has the list.

use std::collections::VecDeque;
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

/// CVE-2025-48367: connections that fail before they are handled, some of them after a while in which they do nothing.
#[test]
fn clients_that_reset_their_connection_at_once_lock_out_no_client() {
    const ROUNDS: usize = 100_000;
    /// The number of connections that do nothing for a while.
    const SILENT: usize = 200;
    let server = Server::start().expect("it starts");
    let mut patient = connect(server.addr());
    let mut silent = VecDeque::new();
    for round in 0..ROUNDS {
        let quick = Socket::new(Domain::IPV4, Type::STREAM, None).expect("there are sockets");
        quick.set_linger(Some(Duration::ZERO)).expect("a socket has options");
        quick.connect(&server.addr().into()).expect("the server listens");
        if round % 10 == 0 {
            silent.push_back(quick);
        } else {
            drop(quick); // which sends no end, but that there is nobody
        }
        if silent.len() > SILENT {
            silent.pop_front();
        }
        if round % 100 == 0 {
            patient.ask("PING\r\n", "+PONG\r\n");
            connect(server.addr()).ask("PING\r\n", "+PONG\r\n");
        }
    }
    drop(silent);
    server.wait_for_clients(1, TIMEOUT).expect("all of them are gone");
}

#[test]
fn a_tls_port_is_refused() {
    assert!(Server::builder().set("tls-port", "6390").start().is_err());
}
