//! The roles of nodes: which are primaries, which replicas of whom.
//!
//! Source: the behaviour of nodes of Redis 8.0.6.

use super::{Node, NodeId, View};

impl View {
    /// The primary of this node; `None` if it is one itself.
    pub fn primary(&self) -> Option<&Node> {
        self.myself().primary.and_then(|id| self.get(id))
    }

    /// Whether this node is a replica of another one.
    pub fn is_replica_of(&self, id: NodeId) -> bool {
        self.myself().primary == Some(id)
    }

    /// The replicas of a node, in the order in which they became known.
    pub fn replicas_of(&self, id: NodeId) -> impl Iterator<Item = &Node> {
        self.nodes().iter().filter(move |node| node.primary == Some(id))
    }

    /// Makes this node a replica of another one, which is known.
    pub fn follow(&mut self, primary: NodeId) {
        let Some(shard) = self.get(primary).map(|node| node.shard) else { return };
        self.assign_all(self.ranges_of(self.myself().id), None);
        self.end_slot_migrations();
        self.election = None;
        let myself = self.myself_mut();
        (myself.primary, myself.shard) = (Some(primary), shard);
    }

    /// Makes this node the primary in the place of its own, whose slots it owns from then on, with that epoch.
    pub fn replace_primary(&mut self, epoch: u64) {
        let Some(before) = self.myself().primary else { return };
        let slots = self.ranges_of(before);
        let own = self.myself().id;
        self.election = None;
        let myself = self.myself_mut();
        (myself.primary, myself.config_epoch) = (None, epoch);
        self.current_epoch = self.current_epoch.max(epoch);
        self.assign_all(slots, Some(own));
    }
}
