//! Many clients that have not logged in and declare or ask for much: together they get little memory, as the system
//! counts it (CVE-2021-32675, CVE-2025-21605).

use std::fs;
use std::net::TcpStream;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::program::{Running, start};
use crate::wire::{Wire, connect};

/// The number of clients that are connected at once.
const CLIENTS: usize = 1000;
/// The most memory by which the server may grow for all of them together.
const MAX_BYTES: usize = 16 << 20;
/// The bytes after which a client should have been closed.
const SENT_BYTES: usize = 64 << 20;

/// A server that wants a password.
fn server() -> Running {
    allow_sockets();
    start(&["--port", "0", "--requirepass", "secret"])
}

/// Lets this process have a socket for each client.
fn allow_sockets() {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("the system has limits");
    let wanted = (4 * CLIENTS as u64).min(hard);
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).expect("it may be raised up to the hard limit");
    }
}

/// The most memory that the server's process has had, in bytes.
fn peak_bytes(server: &Running) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).expect("it runs");
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix(" kB"));
    kilobytes.expect("the status has it").trim().parse::<usize>().expect("it is a number") << 10
}

/// Checks that the server has not grown by more than all clients together may take.
fn assert_little_growth(server: &Running, before: usize, what: &str) {
    let grown = peak_bytes(server) - before;
    assert!(grown <= MAX_BYTES, "{grown} bytes for {CLIENTS} clients {what}");
}

fn connected(server: &Running) -> Vec<Wire<TcpStream>> {
    (0..CLIENTS).map(|_| connect(server.address())).collect()
}

#[test]
fn a_thousand_unauthenticated_clients_that_declare_much_get_an_error_each_and_take_little_memory() {
    let server = server();
    connect(server.address()).ask("GET a\r\n", "-NOAUTH Authentication required.\r\n");
    let before = peak_bytes(&server);
    let mut clients = connected(&server);
    let heads = [("*1048576\r\n", "multibulk"), ("*2\r\n$536870912\r\n", "bulk")];
    for (client, (head, what)) in clients.iter_mut().zip(heads.into_iter().cycle()) {
        client.send(head);
        assert_eq!(client.rest(), format!("-ERR Protocol error: unauthenticated {what} length\r\n").as_bytes());
    }
    assert_little_growth(&server, before, "whose lengths are refused");
    // As much as a client may declare, of which nothing comes.
    let mut clients = connected(&server);
    clients.iter_mut().for_each(|client| client.send("*10\r\n$16384\r\n"));
    connect(server.address()).ask("GET a\r\n", "-NOAUTH Authentication required.\r\n");
    assert_little_growth(&server, before, "whose lengths are allowed");
}

#[test]
fn a_thousand_unauthenticated_clients_that_do_not_read_are_all_closed_and_take_little_memory() {
    let server = server();
    let before = peak_bytes(&server);
    let clients = connected(&server);
    let requests = "PING\r\n".repeat(20_000);
    for mut client in clients {
        let mut sent = 0;
        while client.sends(&requests) {
            sent += requests.len();
            assert!(sent < SENT_BYTES, "the server takes everything");
        }
    }
    connect(server.address()).ask("PING\r\n", "-NOAUTH Authentication required.\r\n");
    assert_little_growth(&server, before, "who do not read");
}
