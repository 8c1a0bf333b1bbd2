//! Replies under `appendfsync always` while a sync takes long: none leaves before its time, and none is lost or
//! overtakes another one.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use dunlin::{Disk, Server};

use crate::timeout::{TIMEOUT, wait_until};

fn start(disk: &Disk) -> Server {
    let builder = Server::builder().disk(disk).set("appendonly", "yes").set("appendfsync", "always");
    builder.start().expect("it starts")
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.addr()).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("it can be set");
    stream
}

/// Sends requests, and returns the connection when their sync has begun and nothing has come back.
fn held(server: &Server, disk: &Disk, requests: &str) -> TcpStream {
    disk.fault("sync").syncs().delay(Duration::from_secs(600));
    let mut stream = connect(server);
    stream.write_all(requests.as_bytes()).expect("it reads");
    let mut client = server.client().expect("there is room");
    let mut fired =
        || format!("{:?}", client.call(["DUNLIN", "FAULT", "LIST"]).expect("it does not wait for the disk"));
    wait_until("it is synced", || fired().contains("Integer(1)"));
    stream.set_nonblocking(true).expect("it can be set");
    let early = stream.read(&mut [0; 10]);
    assert!(early.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "{early:?}");
    stream.set_nonblocking(false).expect("it can be set");
    stream
}

#[test]
fn replies_that_wait_for_the_disk_leave_in_their_order_however_many_they_are() {
    let disk = Disk::new();
    let server = start(&disk);
    let requests = ["INCR n\r\n".repeat(100_000), "RESET\r\nHELLO 3\r\nQUIT\r\n".to_owned()].concat();
    let mut stream = held(&server, &disk, &requests);
    assert!(disk.remove_fault("sync"));
    let mut received = String::new();
    stream.read_to_string(&mut received).expect("it answers");
    let numbers: String = (1..=100_000).map(|number| format!(":{number}\r\n")).collect();
    let rest = received.strip_prefix(&numbers).expect("each number comes in its turn");
    assert!(rest.starts_with("+RESET\r\n%7\r\n") && rest.ends_with("+OK\r\n"), "{rest}");
}

#[test]
fn a_client_that_is_closed_while_its_reply_waits_for_the_disk_has_written_and_is_told_nothing() {
    let disk = Disk::new();
    let server = start(&disk);
    let mut stream = held(&server, &disk, "SET key written\r\n");
    let address = stream.local_addr().expect("it is connected");
    connect(&server).write_all(format!("CLIENT KILL ADDR {address}\r\n").as_bytes()).expect("it reads");
    let mut received = Vec::new();
    // The close may come as a reset.
    let _ = stream.read_to_end(&mut received);
    assert_eq!(received, b"");
    assert!(disk.remove_fault("sync"));
    let mut client = server.client().expect("there is room");
    assert_eq!(client.call(["GET", "key"]).expect("it answers").text().as_deref(), Some("written"));
}
