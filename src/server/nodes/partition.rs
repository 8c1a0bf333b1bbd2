//! Partitions of a cluster: links between nodes that are cut, and heal.
//!
//! Nodes that are in different groups are disconnected from each other, as if either process had ended for the other:
//! what they send does not arrive. Clients reach all nodes, and so does MIGRATE, which is a client of its target.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::BusMessage;
use crate::engine::{KitError, WorldName};
use crate::server::shared::Shared;
use crate::server::worlds::Worlds;

impl Worlds {
    /// Cuts the links between nodes of different groups, which are lists of their numbers; all other nodes are a group,
    /// too. Links that were cut before heal.
    ///
    /// # Errors
    /// There is no such node, or one is in two groups; nothing has changed then.
    pub(crate) fn partition(&self, groups: &[Vec<usize>]) -> Result<(), KitError> {
        let mut by_name: BTreeMap<WorldName, usize> = BTreeMap::new();
        for (number, nodes) in groups.iter().enumerate() {
            for &node in nodes {
                if by_name.insert(self.node(node)?.world_name(), number).is_some() {
                    return Err(KitError::InTwoGroups(node));
                }
            }
        }
        let before = self.bus().set_groups(by_name.clone());
        let nodes = self.nodes();
        for one in &nodes {
            for other in nodes.iter().filter(|other| !Arc::ptr_eq(other, one)) {
                let [was_linked, is_linked] =
                    [&before, &by_name].map(|groups| groups.get(&one.world_name()) == groups.get(&other.world_name()));
                match (was_linked, is_linked) {
                    (true, false) => one.miss(other),
                    (false, true) if !other.is_down() => one.meet_again(other),
                    _ => {}
                }
            }
        }
        self.deliver();
        Ok(())
    }
}

impl Shared {
    /// Has this node find another one disconnected.
    pub(super) fn miss(&self, other: &Shared) {
        let id = other.engine().peers.cluster.as_ref().map(|view| view.myself().id);
        id.into_iter().for_each(|id| self.receive(&BusMessage::NodeDown(id)));
    }

    /// Has this node find another one connected again, with all that it claims.
    pub(super) fn meet_again(&self, other: &Shared) {
        let claim = other.engine().peers.cluster.as_ref().map(|view| view.claim());
        claim.into_iter().for_each(|claim| self.receive(&BusMessage::NodeUp(claim)));
    }
}
