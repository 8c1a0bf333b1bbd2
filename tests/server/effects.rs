//! Effects of commands besides changes of data: on other clients, on the clock, on the server.

use std::thread;
use std::time::Duration;

use dunlin::{CallError, Server};

use crate::timeout::TIMEOUT;
use crate::wire::connect;

#[test]
fn a_client_that_another_one_kills_is_gone_at_once() {
    let server = Server::start().expect("it starts");
    let (mut killed, mut killer) = (connect(server.addr()), connect(server.addr()));
    killed.ask("CLIENT ID\r\n", ":1\r\n");
    killer.ask("CLIENT KILL ID 1\r\n", ":1\r\n");
    assert_eq!(killed.rest(), b"");
    killer.ask("PING\r\n", "+PONG\r\n");
}

#[test]
fn a_client_that_kills_itself_gets_the_reply_first_and_nothing_after_it() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    client.send("PING\r\nCLIENT KILL ID 1 SKIPME no\r\nSET a 1\r\n");
    assert_eq!(client.rest(), b"+PONG\r\n:1\r\n");
    connect(server.addr()).ask("GET a\r\n", "$-1\r\n");
}

#[test]
fn a_direct_client_that_is_killed_is_closed() {
    let server = Server::start().expect("it starts");
    let mut direct = server.client().expect("there is room");
    assert_eq!(direct.call(["CLIENT", "ID"]).expect("it has one"), 1);
    connect(server.addr()).ask("CLIENT KILL ID 1\r\n", ":1\r\n");
    assert_eq!(direct.call(["PING"]), Err(CallError::Closed));
    let mut other = server.client().expect("there is room");
    assert_eq!(other.call(["QUIT"]).expect("it is answered"), "OK");
    assert_eq!(other.call(["PING"]), Err(CallError::Closed));
}

#[test]
fn a_pause_ends_when_the_clock_reaches_its_end() {
    let server = Server::builder().frozen().start().expect("it starts");
    let (mut writer, mut reader) = (connect(server.addr()), connect(server.addr()));
    reader.ask("CLIENT PAUSE 5000 WRITE\r\n", "+OK\r\n");
    writer.send("GET a\r\nSET a 1\r\nGET a\r\n");
    writer.expect("$-1\r\n");
    server.advance(Duration::from_millis(4999));
    reader.ask("GET a\r\n", "$-1\r\n");
    writer.send("PING\r\n");
    server.advance(Duration::from_millis(1));
    writer.expect("+OK\r\n$1\r\n1\r\n+PONG\r\n");
}

#[test]
fn a_pause_ends_when_a_client_unpauses() {
    let server = Server::builder().frozen().start().expect("it starts");
    let (mut held, mut other) = (connect(server.addr()), connect(server.addr()));
    other.ask("CLIENT PAUSE 5000 WRITE\r\n", "+OK\r\n");
    held.send("PING\r\nSET a 1\r\n");
    held.expect("+PONG\r\n");
    other.ask("CLIENT UNPAUSE\r\n", "+OK\r\n");
    held.expect("+OK\r\n");
}

#[test]
fn a_pause_of_a_running_clock_ends_by_itself() {
    let server = Server::start().expect("it starts");
    let mut client = connect(server.addr());
    client.ask("CLIENT PAUSE 30 WRITE\r\nSET a 1\r\n", "+OK\r\n+OK\r\n");
}

#[test]
fn a_client_that_disconnects_during_a_pause_leaves_nothing_behind() {
    let server = Server::builder().frozen().start().expect("it starts");
    let mut other = connect(server.addr());
    other.ask("CLIENT PAUSE 5000 WRITE\r\n", "+OK\r\n");
    let mut held = connect(server.addr());
    held.ask("PING\r\n", "+PONG\r\n");
    held.send("SET a 1\r\n");
    drop(held);
    server.wait_for_clients(1, TIMEOUT).expect("the client is gone");
    server.advance(Duration::from_secs(5));
    other.ask("GET a\r\n", "$-1\r\n");
}

#[test]
fn a_direct_client_waits_out_a_pause_on_its_own_thread() {
    let server = Server::builder().frozen().start().expect("it starts");
    let mut client = server.client().expect("there is room");
    client.call(["CLIENT", "PAUSE", "5000", "WRITE"]).expect("it pauses");
    thread::scope(|scope| {
        let waits = scope.spawn(move || client.call(["SET", "a", "1"]).map(|reply| reply == "OK"));
        let mut other = connect(server.addr());
        other.ask("GET a\r\n", "$-1\r\n");
        server.advance(Duration::from_secs(5));
        assert_eq!(waits.join().expect("it does not panic"), Ok(true));
        other.ask("GET a\r\n", "$1\r\n1\r\n");
    });
}

#[test]
fn debug_sleep_moves_a_frozen_clock_instead_of_sleeping() {
    let server = Server::builder().frozen().allow_debug().start().expect("it starts");
    let before = server.now();
    let mut client = connect(server.addr());
    client.ask("SET a 1 EX 3600\r\nDEBUG SLEEP 3599\r\nGET a\r\n", "+OK\r\n+OK\r\n$1\r\n1\r\n");
    client.ask("DEBUG SLEEP 1\r\nGET a\r\n", "+OK\r\n$-1\r\n");
    assert_eq!(server.now().duration_since(before).expect("the clock moved forward"), Duration::from_secs(3600));
}

/// The figure of that name among those of INFO.
fn figure(client: &mut dunlin::Client, name: &str) -> u64 {
    let info = client.call(["INFO", "stats"]).expect("it is answered").text().expect("it is text").into_owned();
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("there is such a figure").parse().expect("it is a number")
}

#[test]
fn the_cycles_of_the_event_loops_are_counted_and_timed() {
    let server = Server::builder().allow_debug().start().expect("it starts");
    let (mut client, mut observer) = (connect(server.addr()), server.client().expect("there is room"));
    client.ask("PING\r\n", "+PONG\r\n");
    let before = figure(&mut observer, "eventloop_cycles");
    (0..100).for_each(|_| client.ask("PING\r\n", "+PONG\r\n"));
    let after = figure(&mut observer, "eventloop_cycles");
    // The turn that has answered last may still be about to end.
    assert!((99..1000).contains(&(after - before)), "{before} {after}");
    client.ask("DEBUG SLEEP 0.02\r\nPING\r\n", "+OK\r\n+PONG\r\n");
    client.ask("PING\r\n", "+PONG\r\n");
    let [all, commands] =
        ["eventloop_duration_sum", "eventloop_duration_cmd_sum"].map(|name| figure(&mut observer, name));
    assert!(commands >= 20_000 && all >= commands, "{all} {commands}");
    server.advance(Duration::from_secs(1));
    assert!(figure(&mut observer, "instantaneous_eventloop_cycles_per_sec") > 0);
    assert!(figure(&mut observer, "instantaneous_eventloop_duration_usec") > 0);
    server.advance(Duration::from_secs(2));
    assert_eq!(figure(&mut observer, "instantaneous_ops_per_sec"), 0);
    observer.call(["CONFIG", "RESETSTAT"]).expect("it is answered");
    assert!(figure(&mut observer, "eventloop_cycles") < 100);
    assert!(figure(&mut observer, "eventloop_duration_cmd_sum") < 20_000);
}

#[test]
fn the_reply_buffer_shrinks_unless_that_is_off() {
    let server = Server::builder().allow_debug().start().expect("it starts");
    let mut client = connect(server.addr());
    client.ask("PING\r\n", "+PONG\r\n");
    let mut observer = server.client().expect("there is room");
    let room = |observer: &mut dunlin::Client| -> usize {
        let list = observer
            .call(["CLIENT", "LIST", "ID", "1"])
            .expect("it is answered")
            .text()
            .expect("it is text")
            .into_owned();
        let room = list.split(" rbs=").nth(1).and_then(|rest| rest.split(' ').next()).expect("there is such a field");
        room.parse().expect("it is a number")
    };
    observer.call(["SET", "a", &"x".repeat(8000)]).expect("it is answered");
    let mut reply_room = |observer: &mut dunlin::Client| {
        client.send("GET a\r\n");
        drop(client.read_bytes(8000 + "$8000\r\n\r\n".len()));
        client.ask("PING\r\n", "+PONG\r\n");
        room(observer)
    };
    assert!(reply_room(&mut observer) <= 512);
    observer.call(["DEBUG", "REPLYBUFFER", "RESIZING", "0"]).expect("it is answered");
    reply_room(&mut observer);
    assert!(reply_room(&mut observer) >= 8000);
}

#[test]
fn shutdown_ends_an_embedded_server_and_not_the_process() {
    let server = Server::start().expect("it starts");
    let (mut client, mut other) = (connect(server.addr()), connect(server.addr()));
    other.ask("PING\r\n", "+PONG\r\n");
    client.send("SHUTDOWN NOSAVE\r\n");
    assert_eq!((client.rest(), other.rest()), (vec![], vec![]));
}

#[test]
fn client_list_shows_the_input_and_the_unread_output_of_clients() {
    let server = Server::start().expect("it starts");
    let mut first = connect(server.addr());
    first.ask("SET a 1\r\n", "+OK\r\n");
    first.send("*2\r\n$3\r\nGET\r\n$5\r\nab");
    // Redis 8.0.6 counts the complete word separately from the beginning of the next one.
    let mut lister = server.client().expect("there is room");
    let line = loop {
        let list = lister.call(["CLIENT", "LIST", "ID", "1"]).expect("it is answered");
        let text = list.text().expect("it is text").into_owned();
        if !text.contains(" qbuf=0 ") {
            break text;
        }
    };
    assert!(line.contains(" qbuf=2 ") && line.contains(" argv-mem=3 ") && line.contains(" cmd=set "), "{line}");
    let stats = lister.call(["INFO", "stats"]).expect("it is answered").text().expect("it is text").into_owned();
    assert!(
        stats.contains("total_net_input_bytes:28\r\n") && stats.contains("total_net_output_bytes:5\r\n"),
        "{stats}"
    );
}
