//! The test kit: a server in the test's own process, for the tests of other programs.
//!
//! [`Server`] listens on its own port and runs on its own thread until it is dropped. Any Redis client can connect to
//! it; a [`Client`] calls it without a socket. Its clock can be moved forward or frozen, so a test of something that
//! takes an hour takes no time.

pub mod assertions;
mod asynchronous;
mod builder;
mod client;
mod cluster;
mod commands;
mod disk;
mod expected;
mod faults;
mod guard;
mod journal;
mod message;
mod reply;
mod server;
mod strict;
mod wait;
mod world;

pub use crate::engine::state::kit::{Entry, Finding, Level, Rule, Source, State};
pub use builder::{Builder, StartError};
pub use client::{CallError, Client};
pub use disk::{Disk, DiskFaultRule};
pub use expected::Expected;
pub use faults::FaultRule;
pub use guard::{TestServer, test};
pub use journal::{ClusterJournal, Journal};
pub use message::Message;
pub use reply::Reply;
pub use server::Server;
pub use strict::Strict;
pub use world::World;
