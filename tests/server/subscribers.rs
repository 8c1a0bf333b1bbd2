//! Subscribers over sockets and in-process: those that do not read, and those that disconnect amid messages.

use std::time::Duration;

use dunlin::{CallError, Client, Reply, Server};

use crate::timeout::{TIMEOUT, wait_until};
use crate::wire::connect;

fn field(client: &mut Client, section: &str, name: &str) -> String {
    let info = client.call(["INFO", section]).expect("it is answered");
    let info = info.text().expect("it is text").into_owned();
    let line = info.lines().find_map(|line| line.strip_prefix(name)).expect("INFO has it");
    line.trim_start_matches(':').to_owned()
}

/// Publishes until only this number of subscribers is left: the system notifies the server of a closed connection.
fn publish_until(client: &mut Client, payload: &str, left: i64) {
    wait_until("fewer subscribers", || client.call(["PUBLISH", "news", payload]).expect("it is answered") == left);
}

#[test]
fn a_subscriber_that_does_not_read_is_closed_and_the_others_get_everything() {
    let server = Server::start().expect("it starts");
    let (mut publisher, mut ann) = (server.client().expect("there is room"), server.client().expect("there is room"));
    ann.call(["SUBSCRIBE", "news"]).expect("it subscribes");
    let mut deaf = connect(server.addr());
    deaf.ask("SUBSCRIBE news\r\n", "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    let limits = ["CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0"];
    publisher.call(limits).expect("it is a setting");
    let payload = "x".repeat(32 << 10);
    let mut received = 0;
    loop {
        let receivers = publisher.call(["PUBLISH", "news", &payload]).expect("it is answered");
        let message = ann.next_message().expect("ann is connected").expect("the message is there");
        assert_eq!(message.payload, payload.as_bytes());
        received += 1;
        if receivers == 1 {
            break;
        }
        assert!(received < 10_000, "who does not read was kept");
    }
    assert_eq!(field(&mut publisher, "stats", "client_output_buffer_limit_disconnections"), "1");
    assert_eq!(field(&mut publisher, "clients", "pubsub_clients"), "1");
}

#[test]
fn a_subscriber_over_the_soft_limit_is_kept_for_its_seconds_of_the_servers_clock() {
    let server = Server::builder().frozen().start().expect("it starts");
    let (mut publisher, mut ann) = (server.client().expect("there is room"), server.client().expect("there is room"));
    let limits = ["CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 64kb 60"];
    publisher.call(limits).expect("it is a setting");
    ann.call(["SUBSCRIBE", "news"]).expect("it subscribes");
    let payload = "x".repeat(100 << 10);
    publisher.call(["PUBLISH", "news", &payload]).expect("it is answered");
    server.advance(Duration::from_secs(59));
    assert!(ann.next_message().expect("ann is connected").is_some(), "who reads in time is kept");
    server.advance(Duration::from_secs(60));
    publisher.call(["PUBLISH", "news", &payload]).expect("it is answered");
    server.advance(Duration::from_secs(59));
    assert_eq!(field(&mut publisher, "clients", "pubsub_clients"), "1");
    server.advance(Duration::from_secs(1));
    assert_eq!(field(&mut publisher, "clients", "pubsub_clients"), "0");
    assert_eq!(ann.next_message(), Err(CallError::Closed));
}

#[test]
fn a_subscriber_that_disconnects_amid_messages_is_removed() {
    let server = Server::start().expect("it starts");
    let mut site = server.client().expect("there is room");
    let (mut stays, mut leaves) = (connect(server.addr()), connect(server.addr()));
    for page in [&mut stays, &mut leaves] {
        page.ask("SUBSCRIBE news\r\n", "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    }
    assert_eq!(site.call(["PUBLISH", "news", "1 visitor"]).expect("it is answered"), 2);
    drop(leaves);
    publish_until(&mut site, "0 visitors", 1);
    stays.ask("", "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$9\r\n1 visitor\r\n");
    stays.ask("", "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$10\r\n0 visitors\r\n");
}

#[test]
fn a_client_in_process_separates_messages_from_replies() {
    let server = Server::start().expect("it starts");
    let (mut ann, mut bob) = (server.client().expect("there is room"), server.client().expect("there is room"));
    ann.call(["PSUBSCRIBE", "n*"]).expect("it subscribes");
    bob.call(["PUBLISH", "news", "first"]).expect("it is answered");
    assert_eq!(ann.call(["PUBLISH", "now", "second"]).expect("it is answered"), 1);
    assert_eq!(ann.call(["GET", "nothing"]).expect("it is answered"), Reply::Null);
    for (channel, payload) in [("news", "first"), ("now", "second")] {
        let message = ann.next_message().expect("ann is connected").expect("it was published");
        assert_eq!((&message.channel[..], &message.payload[..]), (channel.as_bytes(), payload.as_bytes()));
        assert_eq!(message.pattern.as_deref(), Some(&b"n*"[..]));
    }
    assert_eq!(ann.next_message(), Ok(None));
    assert_eq!(ann.wait_for_message(Duration::ZERO), Ok(None));
}

#[test]
fn many_subscribers_get_all_messages_in_order_however_they_are_woken() {
    const LISTENERS: usize = 300;
    let server = Server::start().expect("it starts");
    let mut wires: Vec<_> = (0..LISTENERS).map(|_| connect(server.addr())).collect();
    let mut clients: Vec<Client> = (0..10).map(|_| server.client().expect("there is room")).collect();
    wires.iter_mut().for_each(|wire| {
        wire.ask("SUBSCRIBE news\r\n", "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    });
    clients.iter_mut().for_each(|client| _ = client.call(["SUBSCRIBE", "news"]).expect("it subscribes"));
    let (mut publisher, mut other) = (connect(server.addr()), connect(server.addr()));
    for number in 10..40 {
        publisher.ask(format!("PUBLISH news {number}\r\n"), format!(":{}\r\n", LISTENERS + 10));
        other.ask("PING\r\n", "+PONG\r\n");
    }
    let messages: String =
        (10..40).map(|number| format!("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\n{number}\r\n")).collect();
    wires.iter_mut().for_each(|wire| wire.expect(&messages));
    for client in &mut clients {
        for number in 10..40 {
            let message = client.wait_for_message(TIMEOUT).expect("it is connected").expect("it was published");
            assert_eq!(message.payload, number.to_string().as_bytes());
        }
    }
}

#[test]
fn a_client_in_process_waits_for_a_message_of_another_thread() {
    let server = Server::start().expect("it starts");
    let mut ann = server.client().expect("there is room");
    ann.call(["SUBSCRIBE", "__keyevent@0__:expired"]).expect("it subscribes");
    ann.call(["CONFIG", "SET", "notify-keyspace-events", "Ex"]).expect("it is a setting");
    ann.call(["SET", "visitor", "ann", "PX", "20"]).expect("it is set");
    let message = ann.wait_for_message(TIMEOUT).expect("ann is connected").expect("the key has ended");
    assert_eq!(message.payload, b"visitor");
}

#[test]
fn a_client_of_the_redis_crate_gets_published_messages() {
    let server = Server::start().expect("it starts");
    let client = redis::Client::open(server.url()).expect("it is a URL");
    let mut connection = client.get_connection().expect("it connects");
    let mut listening = connection.as_pubsub();
    listening.subscribe("news").expect("it subscribes");
    listening.set_read_timeout(Some(TIMEOUT)).expect("sockets have timeouts");
    server.client().expect("there is room").call(["PUBLISH", "news", "hello"]).expect("it is answered");
    let message = listening.get_message().expect("it was published");
    assert_eq!((message.get_channel_name(), message.get_payload_bytes()), ("news", &b"hello"[..]));
}
