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
//! # Features
//!
//! - `program` (on by default): the `dunlin` program, with its log, command line and signals. A test does not need it:
//!   with `default-features = false` the crate and its dependencies compile faster; the only other difference is that
//!   there is no page.
//! - `page` (part of `program`): the page for the browser and the metrics, for tests that stop to be looked at
//!   (`Builder::page`).

#![allow(rustdoc::private_intra_doc_links, reason = "module docs link private items for readers of the source")]

// The modules in reading order, from the data structures to the server.
//
//  1. `value`: the types of values as pure data structures: text, sorted sets, hashes, sets, lists and streams; and
//     numbers and globs as Redis parses them. `lua` wraps the Lua interpreter: it has all
//     unsafe code but that of `value::simd` and one system call.
//  2. `keyspace`: one numbered database: stores, finds, iterates over and expires keys.
//  3. `resp`: the protocol: parses requests and writes replies; `rdb`, Redis's RDB format for values and files;
//     `storage`, an interface to file systems; and `aof`, the append-only file.
//  4. `acl`: users and their rights; `script`: Lua scripts as Redis runs them.
//  5. `engine`: execution. It takes a request and the time, and returns a reply and effects for the server. Start with
//     `engine::Command`, the row that declares a command, then `engine::Ctx`, the only access to the data.
//  6. `commands`: the commands, one file or folder per family; `config`: the parameters, one row each.
//
// All modules so far are deterministic and do no input or output.
//
//  7. `server`: sockets, threads and the clock around the engine; and `server::program`, the `dunlin` program.
//  8. `testkit`: a server in the process of a test.
//
// What users of this crate need is exported below, from `testkit`, under one name each. The other modules are internal
// and unstable: they are public only because this project's tests, benches and fuzz targets are crates of their own, so
// the documentation hides them, and any version may change them. `bash check doc` sets `document_internals` to render
// them and to check their links.
#[cfg_attr(not(document_internals), doc(hidden))]
pub mod acl;
#[cfg_attr(not(document_internals), doc(hidden))]
pub mod aof;
#[cfg_attr(not(document_internals), doc(hidden))]
pub mod commands;
#[cfg_attr(not(document_internals), doc(hidden))]
pub mod config;
#[cfg_attr(not(document_internals), doc(hidden))]
pub mod engine;
#[cfg_attr(not(document_internals), doc(hidden))]
pub mod keyspace;
#[cfg_attr(not(document_internals), doc(hidden))]
pub mod lua;
#[cfg_attr(not(document_internals), doc(hidden))]
pub mod rdb;
#[cfg_attr(not(document_internals), doc(hidden))]
pub mod resp;
#[cfg_attr(not(document_internals), doc(hidden))]
pub mod script;
#[cfg_attr(not(document_internals), doc(hidden))]
pub mod server;
#[cfg_attr(not(document_internals), doc(hidden))]
pub mod storage;
#[cfg_attr(not(document_internals), doc(hidden))]
pub mod value;

mod testkit;

pub use testkit::{
    Builder, CallError, Client, ClusterJournal, Disk, DiskFaultRule, Entry, Expected, FaultRule, Finding, Journal,
    Level, Message, Reply, Rule, Server, Source, StartError, State, Strict, TestServer, World, test,
};

/// The functions behind the macros, which call them in the user's crate.
#[doc(hidden)]
pub use testkit::assertions;

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
    #[doc = include_str!("../docs/test-kit/cluster.md")]
    pub struct Cluster;
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
