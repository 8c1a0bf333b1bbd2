//! A Redis-compatible server for development and tests, to run or to embed.
//!
//! ```
//! let server = dunlin::Server::start()?;
//! println!("any Redis client can connect to {}", server.url());
//! # Ok::<(), dunlin::StartError>(())
//! ```
//!
//! In tests, start one [`Server`] for each test, best with [`test()`]: it starts in less than a millisecond, has its
//! own port, and stops when it is dropped. [`World::advance`] moves its clock, so nothing has to sleep;
//! [`assert_reply`], [`assert_exists`], [`assert_missing`], [`assert_ttl`] and [`assert_journal`] print the commands
//! that were run when they fail.
//!
//! # The tour
//!
//! The modules in reading order, from the data structures to the server:
//!
//! 1. [`value`]: the types of values as pure data structures: text, sorted sets, hashes, sets, lists and streams; and
//!    numbers and globs as Redis parses them.
//! 2. [`keyspace`]: one numbered database: stores, finds, iterates over and expires keys.
//! 3. [`resp`]: the protocol: parses requests and writes replies; and [`rdb`], Redis's RDB format for values.
//! 4. [`engine`]: execution. It takes a request and the time, and returns a reply and effects for the server. Start
//!    with [`engine::Command`], the row that declares a command, then [`engine::Ctx`], the only access to the data.
//! 5. [`commands`]: the commands, one file or folder per family.
//! 6. [`config`]: the parameters of the configuration, one row each.
//!
//! All modules so far are deterministic and do no input or output.
//!
//! 7. [`server`]: sockets, threads and the clock around the engine.
//! 8. [`testkit`]: a server in the process of a test.

#![allow(rustdoc::private_intra_doc_links, reason = "module docs link private items for readers of the source")]

pub mod acl;
pub mod commands;
pub mod config;
pub mod engine;
pub mod keyspace;
pub mod lua;
pub mod rdb;
pub mod resp;
pub mod script;
pub mod server;
pub mod testkit;
pub mod value;

pub use testkit::{
    Builder, CallError, Client, Entry, Expected, FaultRule, Finding, Journal, Level, Message, Reply, Rule, Server,
    Source, StartError, State, Strict, TestServer, World, test,
};

/// The examples in README.md, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// The examples in the pages about the test kit, compiled and run as documentation tests.
#[cfg(doctest)]
pub mod test_kit {
    #[doc = include_str!("../docs/test-kit/random.md")]
    pub struct Random;
    #[doc = include_str!("../docs/test-kit/clock.md")]
    pub struct Clock;
    #[doc = include_str!("../docs/test-kit/faults.md")]
    pub struct Faults;
    #[doc = include_str!("../docs/test-kit/journal.md")]
    pub struct Journal;
    #[doc = include_str!("../docs/test-kit/README.md")]
    pub struct Overview;
    #[doc = include_str!("../docs/test-kit/rust.md")]
    pub struct Rust;
    #[doc = include_str!("../docs/test-kit/snapshots.md")]
    pub struct Snapshots;
    #[doc = include_str!("../docs/test-kit/state-as-text.md")]
    pub struct StateAsText;
    #[doc = include_str!("../docs/test-kit/strict.md")]
    pub struct Strict;
    #[doc = include_str!("../docs/test-kit/waits.md")]
    pub struct Waits;
    #[doc = include_str!("../docs/test-kit/worlds.md")]
    pub struct Worlds;
}
