//! Claims: what a node announces of itself and its slots, and what another node's view makes of it.

use std::ops::RangeInclusive;

use super::{Node, NodeId, View};

/// A node's announcement to the others that it knows.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The node, as it sees itself.
    pub node: Node,
    /// The highest epoch that it has seen.
    pub current_epoch: u64,
    /// The slots that it owns.
    pub slots: Vec<RangeInclusive<u16>>,
}

impl View {
    /// What this node has to announce.
    pub fn claim(&self) -> Claim {
        let node = self.myself().clone();
        Claim { current_epoch: self.current_epoch, slots: self.ranges_of(node.id), node }
    }

    /// Takes the claim of another node, if that is known: a slot belongs to the claim with the highest epoch. Returns
    /// the slots that changed their owner from this node to the other.
    ///
    /// A slot that this node imports stays with its owner until this node says otherwise. Of two nodes with one epoch,
    /// the one with the smaller id takes a new epoch.
    pub fn take_claim(&mut self, claim: &Claim) -> Vec<u16> {
        let sender = claim.node.id;
        let met_ms = match self.find_mut(sender) {
            Some(known) => known.met_ms,
            None => return Vec::new(),
        };
        if self.myself().id == sender {
            return Vec::new();
        }
        if let Some(known) = self.find_mut(sender) {
            *known = Node { met_ms, ..claim.node.clone() };
        }
        self.current_epoch = self.current_epoch.max(claim.current_epoch).max(claim.node.config_epoch);
        let epoch = claim.node.config_epoch;
        let mut lost = Vec::new();
        let of_others = self.slots_of_others(claim.slots.iter().cloned().flatten(), sender);
        for slot in of_others {
            let is_newer = self.owner(slot).is_none_or(|owner| owner.config_epoch < epoch);
            if !is_newer || matches!(self.opening(slot), Some(super::Opening::Importing(_))) {
                continue;
            }
            if self.owns(slot) {
                lost.push(slot);
            }
            self.assign(slot, Some(sender));
        }
        self.resolve_collision(sender, epoch);
        lost
    }

    fn resolve_collision(&mut self, sender: NodeId, epoch: u64) {
        if self.myself().config_epoch == epoch && self.myself().id < sender {
            self.current_epoch = self.current_epoch.saturating_add(1);
            self.myself_mut().config_epoch = self.current_epoch;
        }
    }
}
