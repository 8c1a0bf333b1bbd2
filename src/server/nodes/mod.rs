//! The nodes of a cluster that run in this process.
//!
//! A node is one more world with a port of its own ([`super::worlds`]); the first world is the first node.
//! [`mod@start`] makes them, [`bus`] delivers what they send to each other, [`migrate`] restores keys that one moves to
//! another, and [`kit`] is what tests do with them, of which [`links`] and [`clock`] are parts.
//!
//! Lock order: that of delivery, then an engine's. A thread that holds the lock of one engine takes that of no other,
//! with one exception: MIGRATE to another node, which gives up after its timeout. So two nodes that move keys to each
//! other at once both fail, as two servers of Redis do.
//!
//! Costs: a server that is no such node reads one flag after each batch.

mod bus;
mod clock;
mod kit;
mod links;
mod migrate;
mod start;

pub(super) use bus::{Bus, BusMessage};
pub(super) use start::{open_tcp, start};

/// The address of this machine for its own clients.
const LOCAL: &str = "127.0.0.1";
