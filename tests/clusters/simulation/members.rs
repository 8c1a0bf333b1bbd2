//! Nodes that come and go in a simulation.

use std::collections::BTreeSet;

use dunlin::engine::cluster::NodeId;

use super::Simulation;

/// The most nodes that a simulation adds.
const MOST_ADDED: usize = 4;

impl Simulation {
    /// Adds a node: a primary without slots, or a replica.
    pub(super) fn add_node(&mut self) {
        let of = self.any_node();
        let primary = self.generator.bool().then_some(of);
        if self.added == MOST_ADDED {
            return;
        }
        let outcome = match primary {
            Some(of) => self.server.add_replica(of),
            None => self.server.add_node(),
        };
        self.tell(&format!("add, replica of {primary:?}: {:?}", outcome.as_ref().map(|node| node.node_number())));
        let Ok(node) = outcome else { return };
        self.added += 1;
        assert_eq!(node.node_number(), self.nodes.len(), "the numbers follow each other");
        self.members.insert(node.node_number());
        self.clients.push(node.client().ok());
        self.nodes.push(node);
        // It has had no shard yet, so that it joins its own in this step.
        self.shards.push(NodeId::named("no shard"));
    }

    /// Removes a node, if it may go.
    pub(super) fn remove_node(&mut self) {
        let node = self.any_node();
        let outcome = self.server.remove_node(node);
        self.tell(&format!("remove {node}: {outcome:?}"));
        if outcome.is_err() {
            return;
        }
        self.removed += 1;
        self.members.remove(&node);
        self.paused.remove(&node);
        self.clients[node] = None;
        if let Some(open) = self.open_move.take_if(|open| open.concerns(node)) {
            self.give_up_move(open.key);
        }
    }

    /// All nodes know the same ones: those that there are.
    pub(super) fn check_members(&self) -> Result<(), String> {
        let members: BTreeSet<NodeId> = self.members.iter().map(|node| self.facts(*node, 0).id).collect();
        for node in &self.members {
            let known: BTreeSet<NodeId> = self.nodes[*node].with_engine(|engine| {
                let view = engine.peers.cluster.as_ref().expect("it is a node");
                view.nodes().iter().map(|known| known.id).collect()
            });
            if known != members {
                return Err(format!("{node} knows {known:?}, and there are {members:?}"));
            }
        }
        Ok(())
    }
}
