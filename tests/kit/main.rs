//! The test kit, used as its users do: from Rust, and over the wire with DUNLIN.

mod added_nodes;
mod agreement;
mod application_faults;
mod assertions;
mod asynchronous;
mod bus;
mod cardinality;
mod client;
mod clock;
mod cluster;
mod cluster_journal;
mod cluster_snapshots;
mod cluster_worlds;
mod crossed_moves;
mod disk;
mod failures;
mod faults;
mod guard;
mod held_replies;
mod journal;
mod keys;
mod links;
mod lost_writes;
mod measures;
mod memory_metrics;
mod moved_files;
mod node_faults;
mod nodes;
mod orphans;
mod page;
mod pages;
mod partitions;
mod paused_nodes;
mod replicas;
mod rights;
mod saves;
mod seed;
mod simulated_states;
mod sleep;
mod snapshots;
mod state;
mod strict;
#[path = "../support/mod.rs"]
mod support;
mod syncs;
mod torn_logs;
mod views;
mod waits;
mod worlds;

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use dunlin::{CallError, Client, Reply, Server};
use support::timeout;

fn served() -> (Server, Client) {
    let server = Server::start().expect("the server starts");
    let client = server.client().expect("there is room for a client");
    (server, client)
}

fn call<'a>(client: &mut Client, words: impl IntoIterator<Item = &'a str>) -> Reply {
    client.call(words).expect("the server answers")
}

fn error<'a>(client: &mut Client, words: impl IntoIterator<Item = &'a str>) -> String {
    client.call(words).expect_err("the server refuses").to_string()
}

/// The reply of a call that may still wait.
fn polled(call: Pin<&mut (impl Future<Output = Result<Reply, CallError>> + ?Sized)>) -> Poll<Result<Reply, CallError>> {
    call.poll(&mut Context::from_waker(Waker::noop()))
}

/// The outcome of a call that ends now.
fn ended(mut call: Pin<&mut (dyn Future<Output = Result<Reply, CallError>> + '_)>) -> Result<Reply, CallError> {
    let mut outcome = Poll::Pending;
    timeout::wait_until("the call ends", || {
        outcome = polled(call.as_mut());
        outcome.is_ready()
    });
    match outcome {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => unreachable!("it was waited for"),
    }
}
