//! The nodes of the clusters that run in this process.
//!
//! On a server that is started as a cluster each world is one: the first world with the ports of the server, and any
//! other one behind the same ports, as clients send the same user name to all nodes. A node is a [`Shared`] with an
//! engine of its own, listed among the worlds under its own name ([`WorldName::of_node`]).
//!
//! [`mod@start`] makes the nodes, [`resize`] adds and removes some, and [`mod@end`] ends those of temporary worlds.
//! [`bus`] delivers what they send to each other, [`gossip`] tells them of each other, [`agreement`] compares what
//! they see, and [`migrate`] restores keys that one moves to another. [`kit`] is what tests do with them, of which
//! [`links`], [`faults`], [`journals`], [`snapshots`] and [`clock`] are parts. [`mod@sleep`] is DEBUG SLEEP.
//!
//! Lock order: that of orders to a cluster, that of the clock's ticks, that of delivery, then an engine's. A thread
//! that holds the lock of one engine waits for that of no other, with one exception: MIGRATE to another node, which
//! gives up after its timeout. So two nodes that move keys to each other at once both fail, as two servers of Redis do.
//!
//! Costs: a server without a cluster reads one flag after each batch. With a frozen clock, each batch checks all nodes
//! for what is due, unless it is a direct call that changes nothing.

mod agreement;
mod bus;
mod clock;
mod end;
mod faults;
mod gossip;
mod journals;
mod kit;
mod links;
mod migrate;
mod resize;
mod sleep;
mod snapshots;
mod start;

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::{Mutex, RwLock};

use super::shared::Shared;
use crate::engine::{KitError, WorldName};
use agreement::Agreement;
use bus::Bus;
use sleep::Sleepers;

pub(super) use bus::BusMessage;
pub(super) use start::{make_nodes, open_tcp, start};

/// The address of this machine for its own clients.
const LOCAL: &str = "127.0.0.1";

/// The nodes of one cluster, and what they say to each other.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    bus: Bus,
    sleepers: Sleepers,
    agreement: Agreement,
    /// The number of commands that any node has recorded.
    recorded: AtomicU64,
    /// Whether clients may wait for the journals of all nodes.
    awaits_journals: AtomicBool,
    /// Held by each tick of a timer, and alone by a test that moves the clock.
    ticks: RwLock<()>,
    /// The nodes by their numbers, once they are made; `None` for one that was removed.
    nodes: RwLock<Vec<Option<Weak<Shared>>>>,
    /// Held while an order of the test kit changes the cluster, so that one follows the other.
    orders: Mutex<()>,
}

/// The place of a node in its cluster.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) cluster: Arc<Cluster>,
    pub(super) number: usize,
    /// The port for clients. Several may have it: the nodes with one number, of each world.
    pub(super) port: u16,
}

impl Cluster {
    /// The nodes in the order of their numbers; none before they are made, and once their world has ended.
    pub(crate) fn nodes(&self) -> Vec<Arc<Shared>> {
        let nodes: Option<Vec<_>> = self.nodes.read().iter().flatten().map(Weak::upgrade).collect();
        nodes.unwrap_or_default()
    }

    /// The node with a number.
    ///
    /// # Errors
    /// There never was one, or it was removed.
    pub(crate) fn node(&self, number: usize) -> Result<Arc<Shared>, KitError> {
        let node = self.nodes.read().get(number).and_then(Option::as_ref).and_then(Weak::upgrade);
        node.ok_or(KitError::NoNode(number))
    }

    /// How many numbers were given out, those of removed nodes included: a number is given out once.
    pub(super) fn numbers(&self) -> usize {
        self.nodes.read().len()
    }
}

/// The part of a [`Shared`] that concerns its place among the nodes of a cluster.
impl Shared {
    /// The cluster that this is a node of; one without nodes if it is none.
    pub(crate) fn cluster(&self) -> &Cluster {
        static NONE: LazyLock<Cluster> = LazyLock::new(Cluster::default);
        self.membership().map_or(&NONE, |own| &own.cluster)
    }

    /// The number of this node; 0 if it is none.
    pub(crate) fn node_number(&self) -> usize {
        self.membership().map_or(0, |own| own.number)
    }

    /// The name of the world that this is, or that it is a node of.
    pub(crate) fn name_of_world(&self) -> WorldName {
        let name = self.world_name();
        if self.membership().is_some() { name.world_and_node().0 } else { name }
    }

    /// The port of this node; `None` if it is none.
    pub(crate) fn node_port(&self) -> Option<u16> {
        self.membership().map(|_| self.port())
    }
}
