//! The embedding interface: a server in the process of a test.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use dunlin::{CallError, Reply, Server, StartError};
use redis::Commands;

use crate::wire::connect;

#[test]
fn redis_rs_connects_as_to_any_server() {
    let server = Server::builder().password("s€cret/:@").frozen().start().expect("it starts");
    let client = redis::Client::open(server.url()).expect("the URL is valid");
    let mut connection = client.get_connection().expect("it connects");
    let () = connection.set_ex("key", "value", 60).expect("it is set");
    assert_eq!(connection.get("key"), Ok(Some("value".to_owned())));
    server.advance(Duration::from_secs(60));
    assert_eq!(connection.get("key"), Ok(None::<String>));
}

#[test]
fn a_direct_client_reads_deep_replies_and_reports_those_that_are_too_deep() {
    let server = Server::start().expect("it starts");
    let mut client = server.client().expect("there is room");
    let script = "local reply = 'x' for depth = 1, ARGV[1] do reply = {reply} end return reply";
    let mut reply = client.call(["EVAL", script, "0", "1024"]).expect("it is read");
    for _ in 0..1024 {
        let Reply::Array(items) = reply else { panic!("it is an array: {reply}") };
        reply = items.into_iter().next().expect("it has one element");
    }
    assert_eq!(reply, "x");
    let refused = CallError::Refused("ERR the reply nests more than 1024 deep".to_owned());
    assert_eq!(client.call(["EVAL", script, "0", "1025"]), Err(refused));
    assert_eq!(client.call(["PING"]).expect("the client still works"), "PONG");
}

#[test]
fn a_direct_client_and_one_on_a_socket_see_the_same_data() {
    let server = Server::start().expect("it starts");
    let mut direct = server.client().expect("there is room");
    assert_eq!(direct.call(["SET", "key", "value"]).expect("it is set"), "OK");
    connect(server.addr()).ask("GET key\r\n", "$5\r\nvalue\r\n");
    assert_eq!(direct.call(["GET", "none"]), Ok(Reply::Null));
}

#[test]
fn an_error_has_the_text_of_the_server() {
    let server = Server::start().expect("it starts");
    let mut client = server.client().expect("there is room");
    let refused = client.call(["SET", "key"]);
    assert_eq!(refused, Err(CallError::Refused("ERR wrong number of arguments for 'set' command".to_owned())));
    assert_eq!(client.call(["SET", "key", "value"]).expect("the client still works"), "OK");
}

#[test]
fn many_servers_in_one_process_share_nothing() {
    thread::scope(|scope| {
        for number in 0..32 {
            scope.spawn(move || {
                for _ in 0..4 {
                    let server = Server::start().expect("it starts");
                    let mut client = connect(server.addr());
                    client.ask("GET key\r\n", "$-1\r\n");
                    client.ask(format!("SET key {number:02}\r\n"), "+OK\r\n");
                    client.ask("GET key\r\n", format!("$2\r\n{number:02}\r\n"));
                }
            });
        }
    });
}

#[test]
fn a_server_that_is_dropped_closes_its_clients_and_frees_its_port() {
    let server = Server::start().expect("it starts");
    let address = server.addr();
    let mut client = connect(address);
    client.ask("SET key value\r\n", "+OK\r\n");
    drop(server);
    assert_eq!(client.rest(), b"");
    let again = Server::builder().port(address.port()).start().expect("the port is free");
    connect(again.addr()).ask("GET key\r\n", "$-1\r\n");
}

#[test]
fn a_port_that_is_taken_is_an_error_that_names_it() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = taken.local_addr().expect("it is bound").port();
    let refused = Server::builder().port(port).start().expect_err("it cannot listen there");
    assert!(refused.to_string().contains(&format!("127.0.0.1:{port}")), "{refused}");
}

#[test]
fn an_unknown_setting_or_value_is_an_error() {
    let refused = Server::builder().set("no-such", "1").start();
    assert!(matches!(refused, Err(StartError::UnknownSetting(name)) if name == "no-such"));
    let refused = Server::builder().set("databases", "0").start();
    assert!(matches!(refused, Err(StartError::InvalidSetting { name, .. }) if name == "databases"));
}

#[test]
fn a_direct_client_may_outlive_its_server() {
    let server = Server::start().expect("it starts");
    let mut client = server.client().expect("there is room");
    drop(server);
    assert_eq!(client.call(["GET", "key"]), Ok(Reply::Null));
}

#[test]
fn a_server_starts_ends_and_fails_to_start_within_an_async_runtime_as_elsewhere() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("there is a runtime");
    runtime.block_on(async {
        drop(Server::start().expect("it starts"));
        let refused = Server::builder().unix_socket("/nowhere/at/all").start();
        assert!(matches!(refused, Err(StartError::System(_))), "{refused:?}");
    });
}
