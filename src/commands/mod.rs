//! The commands: one file or folder per family, one `const` row per command, its function below the row.
//!
//! Only this module knows which commands exist. [`FAMILIES`] is passed to [`crate::engine::Table::of`]; everything that
//! is reported or checked about a command derives from its row. A handler parses all of its arguments before it writes
//! anything, accesses the data only through [`crate::engine::Ctx`], and writes one reply.

pub mod acl;
pub mod bitmap;
pub mod cluster;
pub mod command;
pub mod config;
pub mod connection;
pub mod debug;
pub mod dunlin;
pub mod geo;
pub mod hash;
mod help;
pub mod hyperloglog;
pub mod info;
pub mod keys;
pub mod latency;
pub mod list;
pub mod memory;
pub mod module;
pub mod monitor;
pub mod persistence;
pub mod pubsub;
mod random;
pub mod replication;
pub mod scanning;
pub mod scripting;
pub mod server;
pub mod set;
pub mod shutdown;
pub mod slowlog;
pub mod sorted_set;
pub mod stream;
pub mod string;
pub mod transactions;
pub mod vector_set;

use crate::engine::Command;

/// Every command of Redis, family by family.
pub const FAMILIES: &[&[Command]] = &[
    acl::COMMANDS,
    bitmap::COMMANDS,
    cluster::COMMANDS,
    command::COMMANDS,
    config::COMMANDS,
    connection::COMMANDS,
    debug::COMMANDS,
    geo::COMMANDS,
    hash::COMMANDS,
    hyperloglog::COMMANDS,
    info::COMMANDS,
    keys::COMMANDS,
    latency::COMMANDS,
    list::COMMANDS,
    memory::COMMANDS,
    module::COMMANDS,
    monitor::COMMANDS,
    persistence::COMMANDS,
    pubsub::COMMANDS,
    replication::COMMANDS,
    scripting::COMMANDS,
    server::COMMANDS,
    set::COMMANDS,
    shutdown::COMMANDS,
    slowlog::COMMANDS,
    sorted_set::COMMANDS,
    stream::COMMANDS,
    string::COMMANDS,
    transactions::COMMANDS,
    vector_set::COMMANDS,
];

/// All families of [`FAMILIES`], and DUNLIN, the command of the test kit.
pub const WITH_TEST_KIT: &[&[Command]] = &{
    let mut families = [dunlin::COMMANDS; FAMILIES.len() + 1];
    let mut index = 0;
    while index < FAMILIES.len() {
        families[index] = FAMILIES[index];
        index += 1;
    }
    families
};

/// The commands of a server, with those of the test kit or without.
pub fn families(has_test_kit: bool) -> &'static [&'static [Command]] {
    if has_test_kit { WITH_TEST_KIT } else { FAMILIES }
}
