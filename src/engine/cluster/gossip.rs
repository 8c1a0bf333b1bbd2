//! Gossip: what a node passes on of the nodes that it knows, and what another one makes of that.
//!
//! A node that hears of one for the first time takes over that it is suspected or has failed, until it hears that node
//! itself; in Redis these are flags in the gossip. Of nodes that it knows already it learns by reports.
//!
//! A node may learn of one that it does not reach, and that has not heard of it. It introduces itself when the two hear
//! each other. In Redis this is a handshake: the first message to a node that was learned of is MEET.
//!
//! Source: nodes of Redis 8.0.6 that met a cluster of which some nodes had failed, or were suspected.

use super::{Node, NodeId, View};
use crate::engine::spec::Now;

/// What a node passes on of one that it knows.
#[derive(Clone, Debug)]
pub struct Gossip {
    /// The node.
    pub node: Node,
    /// Whether the sender suspects it.
    is_suspected: bool,
    /// Since when it has failed, if it has.
    failed: Option<Now>,
    /// Whether the sender introduces itself to it.
    is_handshake: bool,
}

impl Gossip {
    /// Whether the sender introduces itself to the node that this is about.
    pub fn is_handshake(&self) -> bool {
        self.is_handshake
    }

    /// Forgets that the node is suspected or has failed: whoever learns of it hears it.
    pub fn forget_failure(&mut self) {
        (self.is_suspected, self.failed) = (false, None);
    }
}

impl View {
    /// What this node passes on: all nodes that it knows, itself included.
    pub fn gossip(&self) -> Vec<Gossip> {
        let of = |node: &Node| Gossip {
            node: node.clone(),
            is_suspected: self.suspects(node.id),
            failed: self.failed_since(node.id),
            is_handshake: self.handshakes.contains(&node.id),
        };
        self.nodes().iter().map(of).collect()
    }

    /// Adds a node that another one has passed on; false if it is known, or there are too many.
    pub fn meet(&mut self, gossip: &Gossip, now: Now) -> bool {
        let Gossip { node, is_suspected, failed, .. } = gossip;
        let is_new = self.add(Node { met_ms: now.unix_ms(), ..node.clone() });
        if is_new {
            self.handshakes.insert(node.id);
        }
        if is_new && (*is_suspected || failed.is_some()) {
            self.take_over_failure(node.id, *failed, now);
        }
        is_new
    }

    /// Records that another node has learned of this one.
    pub fn end_handshake(&mut self, id: NodeId) {
        self.handshakes.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(seed: u64) -> Node {
        Node::of_seed(seed, Now::from_us(0))
    }

    fn second(seconds: i64) -> Now {
        Now::from_us(0).after_ms(seconds * 1000)
    }

    #[test]
    fn a_node_takes_over_failures_and_suspicions_of_nodes_that_it_did_not_know() {
        let mut view = View::of_cluster((1..6).map(node).collect(), 5).remove(0);
        let ids: Vec<_> = view.nodes().iter().map(|node| node.id).collect();
        view.disconnect(ids[1], second(0));
        view.suspect_overdue(second(15), 15_000);
        view.apply_failure(ids[2], second(10));
        view.disconnect(ids[3], second(14));

        let mut newcomer = View::alone(node(9));
        for gossip in view.gossip() {
            assert!(newcomer.meet(&gossip, second(20)));
            assert!(!newcomer.meet(&gossip, second(20)), "it is known");
        }
        let states = |view: &View| ids.iter().map(|id| (view.suspects(*id), view.has_failed(*id))).collect::<Vec<_>>();
        let (healthy, suspected, failed) = ((false, false), (true, false), (false, true));
        assert_eq!(states(&view), [healthy, suspected, failed, healthy, healthy]);
        assert_eq!(states(&newcomer), states(&view));
        assert_eq!(newcomer.failed_since(ids[2]), Some(second(10)), "all date it to the same moment");
        assert_eq!(newcomer.suspect_overdue(second(60), 15_000), [], "it says so from the beginning");

        let greeted = |view: &View| view.gossip().iter().filter(|about| about.is_handshake()).count();
        assert_eq!(greeted(&newcomer), 5, "none of them has heard of it");
        newcomer.end_handshake(ids[1]);
        newcomer.forget(ids[4], second(20));
        assert_eq!((greeted(&newcomer), greeted(&view)), (3, 0));
        newcomer.meet(&view.gossip()[4], second(20));

        newcomer.reconnect(ids[1], second(21), 15_000);
        newcomer.reconnect(ids[2], second(21), 15_000);
        assert_eq!(states(&newcomer), [healthy; 5]);
    }
}
