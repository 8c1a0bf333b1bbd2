//! Snapshots of all nodes of a cluster: one order takes, drops or rolls back to those of all.
//!
//! Meanwhile all engines are locked, so no client sees some nodes before and some behind it. The engine that is waited
//! for is locked first, and the others only if they are free: whoever holds the lock of one and wants another (MIGRATE)
//! gets it.

use std::sync::Arc;

use parking_lot::MutexGuard;

use super::Cluster;
use crate::engine::exec::snapshots;
use crate::engine::{Engine, Error, KitError, SnapshotOrder};
use crate::server::shared::Shared;

impl Cluster {
    /// Carries out an order about the snapshots of all nodes, those that are down included.
    ///
    /// # Errors
    /// There is no such snapshot; or, for a rollback, a node runs a script, was added after the snapshot, or has
    /// another role or other slots. Nothing has changed then.
    pub(crate) fn order_snapshots(&self, order: &SnapshotOrder) -> Result<(), KitError> {
        let _orders = self.orders.lock();
        let _ticks = self.ticks.write();
        self.deliver();
        let nodes = self.nodes();
        {
            let mut engines = locked(&nodes);
            for (node, engine) in nodes.iter().zip(&engines) {
                check(engine, node.node_number(), order)?;
            }
            for (node, engine) in nodes.iter().zip(&mut engines) {
                // A node that was added after a snapshot has none to drop.
                let _ = node.act_on_locked(engine, |engine| snapshots::carry_out(engine, order));
            }
        }
        self.review_agreement();
        self.deliver();
        Ok(())
    }
}

/// Checks whether an order can be carried out at a node. A snapshot that the first node has, and another one has not,
/// is older than that one.
fn check(engine: &Engine, number: usize, order: &SnapshotOrder) -> Result<(), KitError> {
    let (name, is_rollback) = match order {
        SnapshotOrder::Take(_) => return Ok(()),
        SnapshotOrder::RollBack(name) => (name, true),
        SnapshotOrder::Drop(name) => (name, false),
    };
    match snapshots::has_same_part(engine, name) {
        Err(error) if number == 0 => Err(error),
        _ if !is_rollback => Ok(()),
        Err(_) => Err(KitError::NodeIsNewer(number)),
        Ok(false) => Err(KitError::NodeHasChanged(number)),
        Ok(true) if engine.scripts.is_busy() => Err(KitError::NodeIsBusy(number)),
        Ok(true) => Ok(()),
    }
}

/// The engines of all nodes, locked.
fn locked(nodes: &[Arc<Shared>]) -> Vec<MutexGuard<'_, Engine>> {
    let mut awaited = 0;
    loop {
        let mut first = nodes.get(awaited).map(|node| node.engine());
        let mut engines = Vec::with_capacity(nodes.len());
        for (number, node) in nodes.iter().enumerate() {
            match if number == awaited { first.take() } else { node.try_engine() } {
                Some(engine) => engines.push(engine),
                None => break,
            }
        }
        if engines.len() == nodes.len() {
            engines.iter_mut().for_each(|engine| engine.observers.end_direct_calls());
            return engines;
        }
        awaited = engines.len();
    }
}

impl Shared {
    /// Carries out an order about the snapshots of this server, or of all nodes of its cluster.
    ///
    /// # Errors
    /// Those of [`snapshots::carry_out`] and [`Cluster::order_snapshots`].
    pub(crate) fn order_snapshots(&self, order: &SnapshotOrder) -> Result<(), Error> {
        match self.membership() {
            Some(own) => own.cluster.order_snapshots(order)?,
            None => self.act_without_delivery(|engine| snapshots::carry_out(engine, order))?,
        }
        self.deliver_and_settle();
        Ok(())
    }
}
