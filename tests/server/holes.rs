//! Holes of other servers that take sockets to be tried; tests/engine/known_holes.rs has the list.

use std::net::TcpStream;

use dunlin::Server;

use crate::wire::connect;

#[test]
fn clients_that_come_and_go_at_once_keep_nobody_out() {
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

#[test]
fn there_is_no_tls_to_be_held_up_by() {
    assert!(Server::builder().set("tls-port", "6390").start().is_err());
}
