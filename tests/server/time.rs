//! The clock of a server in tests: time passes when the test says so, and deadlines are exact.

use std::time::{Duration, SystemTime};

use dunlin::{Reply, Server};

use crate::timeout::wait_until;
use crate::wire::connect;

#[test]
fn a_key_lives_until_its_last_millisecond_and_not_longer() {
    let server = Server::builder().frozen().start().expect("it starts");
    let mut client = connect(server.addr());
    client.ask("SET key value PX 1500\r\n", "+OK\r\n");
    server.advance(Duration::from_millis(1499));
    client.ask("GET key\r\n", "$5\r\nvalue\r\n");
    server.advance(Duration::from_millis(1));
    client.ask("GET key\r\n", "$-1\r\n");
}

#[test]
fn a_running_clock_can_be_advanced_too() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    client.ask("SET key value EX 3600\r\n", "+OK\r\n");
    server.advance(Duration::from_secs(1800));
    client.ask("GET key\r\n", "$5\r\nvalue\r\n");
    server.advance(Duration::from_secs(1800));
    client.ask("GET key\r\n", "$-1\r\n");
}

#[test]
fn the_clock_starts_at_the_time_that_the_test_chooses() {
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let server = Server::builder().frozen_at(start).start().expect("it starts");
    assert_eq!(server.now(), start);
    let mut client = connect(server.addr());
    client.ask("SET key value EXAT 1000000010\r\n", "+OK\r\n");
    server.advance(Duration::from_secs(9));
    client.ask("GET key\r\n", "$5\r\nvalue\r\n");
    server.advance(Duration::from_secs(1));
    client.ask("GET key\r\n", "$-1\r\n");
    assert_eq!(server.now(), start + Duration::from_secs(10));
}

#[test]
fn a_hundred_thousand_keys_that_fall_due_together_are_gone_at_once() {
    let server = Server::builder().frozen().start().expect("it starts");
    let mut client = server.client().expect("there is room");
    for number in 0..100_000 {
        client.call(["SET", &format!("key:{number}"), "value", "PX", "1000"]).expect("it is set");
    }
    client.call(["SET", "key", "value", "PX", "1001"]).expect("it is set");
    server.advance(Duration::from_secs(1));
    for number in (0..100_000).step_by(997) {
        assert_eq!(client.call(["GET", &format!("key:{number}")]), Ok(Reply::Null));
    }
    assert_eq!(client.call(["GET", "key"]).expect("it is there"), "value");
}

#[test]
fn the_largest_time_can_be_reached() {
    let server = Server::builder().frozen().start().expect("it starts");
    let mut client = server.client().expect("there is room");
    client.call(["SET", "key", "value", "EX", "1000000"]).expect("it is set");
    server.advance(Duration::MAX);
    assert_eq!(client.call(["GET", "key"]), Ok(Reply::Null));
    server.advance(Duration::MAX);
}

/// Sends DBSIZE until no key is left: the server removes them on its own thread.
fn wait_until_empty(server: &Server) {
    let mut client = server.client().expect("there is room");
    wait_until("no key is left", || client.call(["DBSIZE"]).expect("it is answered") == 0);
}

#[test]
fn keys_expire_on_time_without_being_accessed() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    client.ask("SET later value PX 1000000\r\nSET key value PX 20\r\nPEXPIRE later 30\r\n", "+OK\r\n+OK\r\n:1\r\n");
    wait_until_empty(&server);
}

#[test]
fn keys_that_fall_due_during_a_pause_expire_when_it_ends() {
    let server = Server::builder().frozen().start().expect("it starts");
    let mut client = connect(server.addr());
    client.ask("SET key value PX 1000\r\nCLIENT PAUSE 100000 WRITE\r\n", "+OK\r\n+OK\r\n");
    server.advance(Duration::from_secs(2));
    client.ask("DBSIZE\r\nCLIENT UNPAUSE\r\n", ":1\r\n+OK\r\n");
    wait_until_empty(&server);
}

#[test]
fn keys_that_fall_due_while_expiry_is_off_expire_when_it_is_on_again() {
    let server = Server::builder().frozen().allow_debug().start().expect("it starts");
    let mut client = connect(server.addr());
    client.ask("DEBUG SET-ACTIVE-EXPIRE 0\r\nSET key value PX 1000\r\n", "+OK\r\n+OK\r\n");
    server.advance(Duration::from_secs(2));
    client.ask("DBSIZE\r\nDEBUG SET-ACTIVE-EXPIRE 1\r\n", ":1\r\n+OK\r\n");
    wait_until_empty(&server);
}

#[test]
fn a_pause_of_a_millisecond_resumes_the_clients_that_it_held_back() {
    let server = Server::start().expect("it starts");
    let (mut first, mut second) = (connect(server.addr()), connect(server.addr()));
    for round in 0..50 {
        let scope = if round % 2 == 0 { "WRITE" } else { "ALL" };
        first.send(format!("CLIENT PAUSE 1 {scope}\r\nSET key {round}\r\n"));
        second.ask("SET other 1\r\n", "+OK\r\n");
        first.expect("+OK\r\n+OK\r\n");
    }
}

#[test]
fn a_pause_that_a_jump_of_the_clock_skips_resumes_the_clients_that_it_held_back() {
    let server = Server::builder().frozen().start().expect("it starts");
    let (mut held, mut other) = (connect(server.addr()), connect(server.addr()));
    other.ask("CLIENT PAUSE 1000 WRITE\r\n", "+OK\r\n");
    held.send("SET key 1\r\n");
    wait_until("it is held", || {
        other.send("INFO clients\r\n");
        other.read_until(b"total_blocking_keys_on_nokey:0\r\n\r\n").contains("blocked_clients:1\r\n")
    });
    server.set_time(server.now() + Duration::from_secs(1));
    held.expect("+OK\r\n");
}
