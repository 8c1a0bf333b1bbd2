//! A Redis-compatible server for development and tests, to run or to embed.
//!
//! ```
//! let server = dunlin::Server::start()?;
//! println!("any Redis client can connect to {}", server.url());
//! # Ok::<(), dunlin::StartError>(())
//! ```
//!
//! In tests, start one [`Server`] for each, best by [`test()`]: it takes less than a millisecond, has a port
//! of its own, and is gone when it goes out of scope. [`World::advance`] moves its clock, so nothing has to
//! sleep; [`assert_reply`], [`assert_exists`], [`assert_missing`], [`assert_ttl`] and [`assert_journal`]
//! tell what was run when they fail.
//!
//! # The tour
//!
//! In reading order, from what is stored to what is served:
//!
//! 1. [`value`]: the types a key can hold, pure structures: text, sorted sets, hashes, sets and
//!    lists; and numbers and globs as Redis reads them.
//! 2. [`keyspace`]: one numbered database: where values are stored, found, walked, and when they fall due.
//! 3. [`resp`]: the wire: requests out of bytes, replies into bytes; and [`rdb`], Redis's own format of data as bytes.
//! 4. [`engine`]: what happens. A request and the time go in, a reply and wishes for the world outside come out. Start
//!    with [`engine::Command`], the row that declares a command, then [`engine::Ctx`], the one door to the data.
//! 5. [`commands`]: what each command does, one file or folder per family.
//! 6. [`config`]: what each parameter of a configuration means, one row each.
//!
//! Everything up to here is deterministic and does no input or output.
//!
//! 7. [`server`]: sockets, threads and the clock around the engine.
//! 8. [`testkit`]: a server in the process of a test.

#![allow(rustdoc::private_intra_doc_links, reason = "heads of modules lead those who read the source")]

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

/// The code in README.md, compiled with the examples of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// The code in the pages about the test kit, run with the examples of the documentation.
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
