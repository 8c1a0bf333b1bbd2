//! The links between the nodes of a cluster: a test cuts them, one by one or between groups of nodes, and they heal.
//!
//! Two nodes whose link is cut are disconnected from each other, as if either process had ended for the other: what
//! they send does not arrive. Clients reach all nodes, and so does MIGRATE, which is a client of its target.

use std::collections::BTreeSet;

use super::BusMessage;
use crate::engine::KitError;
use crate::server::shared::Shared;
use crate::server::worlds::Worlds;

/// Links, each as the numbers of two nodes, the lower one first.
pub(super) type Links = BTreeSet<(usize, usize)>;

/// The link between two nodes.
pub(super) fn link(one: usize, other: usize) -> (usize, usize) {
    (one.min(other), one.max(other))
}

impl Worlds {
    /// Cuts the links between nodes of different groups, which are lists of their numbers; all other nodes are a
    /// group, too. Other links that were cut before heal.
    ///
    /// # Errors
    /// There is no such node, or one is in two groups; nothing has changed then.
    pub(crate) fn partition(&self, groups: &[Vec<usize>]) -> Result<(), KitError> {
        let mut group_of = vec![None; self.nodes().len()];
        for (number, nodes) in groups.iter().enumerate() {
            for &node in nodes {
                let group = group_of.get_mut(node).ok_or(KitError::NoNode(node))?;
                if group.replace(number).is_some() {
                    return Err(KitError::InTwoGroups(node));
                }
            }
        }
        let all = (0..group_of.len()).flat_map(|other| (0..other).map(move |one| (one, other)));
        let cut: Links = all.filter(|&(one, other)| group_of[one] != group_of[other]).collect();
        self.change_cut_links(|links| *links = cut);
        Ok(())
    }

    /// Cuts the link between two nodes, or heals it.
    ///
    /// # Errors
    /// There is no such node, or it is the same one twice.
    pub(crate) fn set_link(&self, one: usize, other: usize, is_cut: bool) -> Result<(), KitError> {
        self.node(one)?;
        self.node(other)?;
        if one == other {
            return Err(KitError::NoLink(one));
        }
        let link = link(one, other);
        self.change_cut_links(|links| _ = if is_cut { links.insert(link) } else { links.remove(&link) });
        Ok(())
    }

    fn change_cut_links(&self, change: impl FnOnce(&mut Links)) {
        let (before, now) = self.bus().change_cut_links(change);
        let nodes = self.nodes();
        for &(one, other) in before.symmetric_difference(&now) {
            for (node, peer) in [(&nodes[one], &nodes[other]), (&nodes[other], &nodes[one])] {
                if now.contains(&(one, other)) {
                    node.miss(peer);
                } else if !peer.is_down() {
                    node.meet_again(peer);
                }
            }
        }
        self.deliver();
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
