//! The fault rules of all nodes of a cluster: each is one of its node, and any node lists and removes them.

use std::sync::Arc;

use super::Cluster;
use crate::engine::exec::kit::faults;
use crate::engine::state::kit::Fault;
use crate::engine::{FaultOrder, HostReply, KitError};
use crate::server::shared::Shared;

impl Cluster {
    /// Carries out an order about the rules of all nodes.
    ///
    /// # Errors
    /// There is no such node.
    pub(crate) fn order_faults(&self, order: &FaultOrder) -> Result<HostReply, KitError> {
        Ok(match order {
            FaultOrder::Add(number, rule) => {
                self.add_fault(*number, Fault::clone(rule))?;
                HostReply::Done
            }
            FaultOrder::Remove(name) => HostReply::Removed(self.remove_faults(name)),
            FaultOrder::Clear => {
                self.clear_faults();
                HostReply::Done
            }
            FaultOrder::List => HostReply::Faults(self.faults()),
        })
    }

    /// Adds a rule at a node; it replaces the one of its name there.
    ///
    /// # Errors
    /// There is no such node.
    pub(crate) fn add_fault(&self, number: usize, rule: Fault) -> Result<(), KitError> {
        self.node(number)?.engine().observers.kit().faults.add(rule);
        Ok(())
    }

    /// Removes the rules of that name; whether there were any.
    pub(crate) fn remove_faults(&self, name: &[u8]) -> bool {
        self.nodes().iter().filter(|node| faults::remove(&mut node.engine(), name)).count() > 0
    }

    /// Removes all rules.
    pub(crate) fn clear_faults(&self) {
        self.nodes().iter().for_each(|node| faults::clear(&mut node.engine()));
    }

    /// All rules, those of one node together, each with the number of its node.
    fn faults(&self) -> Vec<(usize, Fault)> {
        let rules = |node: Arc<Shared>| {
            let (engine, number) = (node.engine(), node.node_number());
            let rules = engine.observers.kit.as_ref().map_or(&[][..], |kit| kit.faults.rules());
            rules.iter().map(|rule| (number, rule.clone())).collect::<Vec<_>>()
        };
        self.nodes().into_iter().flat_map(rules).collect()
    }
}
