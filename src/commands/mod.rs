//! What each command does: one file or folder per family, one `const` row per command, its function below the row.
//!
//! This is the only place that knows which commands exist. [`FAMILIES`] is handed to [`crate::engine::Table::of`];
//! everything that is told or checked about a command derives from its row. A handler parses all of its arguments
//! before it writes anything, reaches the data only through [`crate::engine::Ctx`], and writes one reply.

pub mod command;
pub mod config;
pub mod connection;
pub mod debug;
pub mod hash;
mod help;
pub mod info;
pub mod keys;
pub mod list;
pub mod memory;
pub mod monitor;
pub mod pubsub;
pub mod scanning;
pub mod scripting;
pub mod server;
pub mod set;
pub mod shutdown;
pub mod sorted_set;
pub mod string;
pub mod transactions;

use crate::engine::Command;

/// Every command there is, family by family.
pub const FAMILIES: &[&[Command]] = &[
    command::COMMANDS,
    config::COMMANDS,
    connection::COMMANDS,
    debug::COMMANDS,
    hash::COMMANDS,
    info::COMMANDS,
    keys::COMMANDS,
    list::COMMANDS,
    memory::COMMANDS,
    monitor::COMMANDS,
    pubsub::COMMANDS,
    scripting::COMMANDS,
    server::COMMANDS,
    set::COMMANDS,
    shutdown::COMMANDS,
    sorted_set::COMMANDS,
    string::COMMANDS,
    transactions::COMMANDS,
];
