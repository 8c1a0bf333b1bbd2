//! The page of a server in a test: where it is, what it does, and that it ends with the server.

use std::net::{SocketAddr, TcpStream};

use dunlin::Server;

use crate::call;
use crate::support::http;

/// The address of a page, and its token.
fn place(url: &str) -> (SocketAddr, &str) {
    let (address, token) = url.strip_prefix("http://").and_then(|rest| rest.split_once("/#token=")).expect(url);
    (address.parse().expect("it is an address"), token)
}

#[test]
fn a_page_looks_at_the_server_of_a_test_and_ends_with_it() {
    let server = Server::builder().page(0).frozen().start().expect("it starts");
    let mut client = server.client().expect("there is room");
    call(&mut client, ["SET", "greeting", "hello"]);
    let url = server.page_url().expect("it has a page");
    let (address, token) = place(&url);
    assert_eq!(token.len(), 32, "128 bits");
    let get = |path: &str| http::get(address, path, "").expect("it answers");
    assert_eq!(get("/ready").body, "ready\n");
    assert!(get("/metrics").body.contains("\nredis_db_keys{db=\"db0\"} 1\n"));
    let headers = format!("Content-Type: application/json\r\nX-Dunlin: {token}\r\n");
    let answer = http::post(address, "/command", &headers, br#"{"commands":[["GET","greeting"]]}"#);
    assert_eq!(answer.expect("it answers").body, r#"{"replies":["hello"]}"#);
    drop(server);
    assert!(TcpStream::connect(address).is_err(), "nobody listens");
}

#[test]
fn a_server_has_a_page_only_if_it_is_asked_for() {
    assert_eq!(Server::start().expect("it starts").page_url(), None);
    let server = Server::builder().page(0).set("page-token", "no").start().expect("it starts");
    let url = server.page_url().expect("it has a page");
    assert!(url.ends_with('/'), "{url}");
    let port = url.trim_end_matches('/').rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    assert!(Server::builder().page(port.expect("it has a port")).start().is_err(), "the port is taken");
}
