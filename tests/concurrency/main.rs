//! The patterns that applications build, each with many real clients at once: their guarantees hold under concurrency.
//!
//! Clients run on threads of their own, over sockets, with redis-rs. Where a pattern depends on time, the server's
//! clock is frozen until the test moves it. Blocking queues are among the server's own tests.

mod collections;
mod scripts;
mod streams;
#[path = "../support/mod.rs"]
mod support;
mod windows;

use std::thread;

use dunlin::Server;
use redis::{Client, Connection};
use support::timeout;

/// A new connection.
fn connect(server: &Server) -> Connection {
    let client = Client::open(server.url()).expect("the URL is valid");
    client.get_connection().expect("it connects")
}

/// Runs `act` in this many clients at once, each with its number and its own connection.
fn at_once<R: Send>(server: &Server, clients: usize, act: impl Fn(usize, &mut Connection) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let act = &act;
        let started = (0..clients).map(|number| scope.spawn(move || act(number, &mut connect(server))));
        let threads: Vec<_> = started.collect();
        threads.into_iter().map(|thread| thread.join().expect("no client fails")).collect()
    })
}
