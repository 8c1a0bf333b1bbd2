//! The nodes that each node of a cluster knows, and those that it hears.
//!
//! Redis's nodes learn this from gossip and from their connections. Here they are told when something changes: a node
//! meets another one ([`Cluster::introduce`]), runs again ([`Cluster::inform`]), or a link heals ([`Cluster::gossip`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{BusMessage, Cluster};
use crate::engine::cluster::{Gossip, NodeId};
use crate::engine::exec::cluster;
use crate::server::shared::Shared;

impl Cluster {
    /// Makes two nodes, and all that they know, known to each other, as far as they are within reach of the first one.
    pub(super) fn introduce(&self, from: usize, ip: &str, port: u16) {
        let within_reach = self.within_reach(from);
        let is_there = |node: &Arc<Shared>| !node.is_down() && within_reach.contains(&node.node_number());
        let nodes: Vec<Arc<Shared>> = self.nodes().into_iter().filter(is_there).collect();
        let is_end = |node: &Shared| node.node_number() == from || node.port() == port;
        let mut met: Vec<Gossip> = Vec::new();
        for gossip in nodes.iter().filter(|node| is_end(node)).flat_map(|node| node.known_nodes()) {
            if met.iter().all(|known| known.node.id != gossip.node.id) {
                met.push(gossip);
            }
        }
        let addresses = met.iter_mut().map(|gossip| &mut gossip.node.address);
        addresses.filter(|address| address.ip.is_empty()).for_each(|address| ip.clone_into(&mut address.ip));
        for node in nodes.iter().filter(|node| is_end(node) || !node.has_stale_view()) {
            let told = self.as_heard_by(node, met.clone());
            let learned = node.act_without_delivery(|engine| cluster::introduce(engine, &told, ip));
            self.record_link_states(node, &learned);
        }
    }

    /// Exchanges the known nodes of two nodes that hear and know each other. A node that has learned of one passes it
    /// on.
    pub(super) fn gossip(&self, one: &Arc<Shared>, other: &Arc<Shared>) {
        let mut pairs = vec![[Arc::clone(one), Arc::clone(other)]];
        while let Some([one, other]) = pairs.pop() {
            for learner in self.exchange(&one, &other) {
                pairs.extend(self.nodes().into_iter().map(|peer| [Arc::clone(&learner), peer]));
            }
        }
    }

    /// Exchanges the known nodes of two nodes that hear each other; returns those of the two that have learned of one.
    fn exchange(&self, one: &Arc<Shared>, other: &Arc<Shared>) -> Vec<Arc<Shared>> {
        let (first, second) = (one.node_number(), other.node_number());
        let hear_each_other = !one.is_down() && !other.is_down() && self.bus.are_linked(first, second);
        if first == second || !hear_each_other || self.know_the_same_nodes(first, second) {
            return Vec::new();
        }
        let has_learned = |(node, peer): &(&Arc<Shared>, &Arc<Shared>)| {
            let (from, known) = (peer.node_id(), self.as_heard_by(node, peer.known_nodes()));
            let learned = from.map(|from| node.act_without_delivery(|engine| cluster::learn(engine, from, &known)));
            let learned = learned.unwrap_or_default();
            self.record_link_states(node, &learned);
            !learned.is_empty()
        };
        let ways = [(one, other), (other, one)].into_iter().filter(|(node, _)| !node.has_stale_view());
        ways.filter(has_learned).map(|(node, _)| Arc::clone(node)).collect()
    }

    /// What a node makes of gossip about nodes that it hears: they have not failed. A suspicion that it takes over
    /// would count as a report of its own, until it hears them.
    fn as_heard_by(&self, node: &Shared, mut gossip: Vec<Gossip>) -> Vec<Gossip> {
        let is_heard =
            |other: &&Arc<Shared>| !other.is_down() && self.bus.are_linked(node.node_number(), other.node_number());
        let heard: Vec<NodeId> = self.nodes().iter().filter(is_heard).filter_map(|other| other.node_id()).collect();
        gossip.iter_mut().filter(|about| heard.contains(&about.node.id)).for_each(Gossip::forget_failure);
        gossip
    }

    /// Tells a node which others there are, their claims, and which of them are disconnected.
    pub(super) fn inform(&self, node: &Arc<Shared>) {
        let others: Vec<_> =
            self.nodes().into_iter().filter(|other| other.node_number() != node.node_number()).collect();
        others.iter().for_each(|other| self.gossip(node, other));
        others.iter().for_each(|other| self.record_link_state(node, other));
    }

    /// Records at a node whether it hears another one, with all that this one claims.
    pub(super) fn record_link_state(&self, node: &Shared, other: &Shared) {
        let is_linked = self.bus.are_linked(node.node_number(), other.node_number());
        if other.is_down() || !is_linked { node.mark_disconnected(other) } else { node.mark_connected(other) }
    }

    /// Records at a node whether it hears those with these ids.
    fn record_link_states(&self, node: &Shared, ids: &[NodeId]) {
        if !ids.is_empty() {
            let is_meant = |other: &Arc<Shared>| other.node_id().is_some_and(|id| ids.contains(&id));
            self.nodes().iter().filter(|other| is_meant(other)).for_each(|other| self.record_link_state(node, other));
        }
    }

    /// The nodes that one reaches, itself included, by way of others if need be. Those that are down pass nothing on.
    pub(super) fn within_reach(&self, from: usize) -> BTreeSet<usize> {
        let mut others: Vec<(usize, bool)> =
            self.nodes().iter().map(|node| (node.node_number(), !node.is_down())).collect();
        let (mut reached, mut next) = (BTreeSet::from([from]), vec![from]);
        while let Some(one) = next.pop() {
            for (other, is_up) in others.extract_if(.., |(other, _)| self.bus.are_linked(one, *other)) {
                reached.insert(other);
                next.extend(is_up.then_some(other));
            }
        }
        reached
    }
}

impl Shared {
    /// The nodes that this one knows, itself included, as it passes them on.
    fn known_nodes(&self) -> Vec<Gossip> {
        self.engine().peers.cluster.as_ref().map(|view| view.gossip()).unwrap_or_default()
    }

    /// Records at this node that another one is disconnected.
    pub(super) fn mark_disconnected(&self, other: &Shared) {
        other.node_id().into_iter().for_each(|id| self.receive(other.node_number(), &BusMessage::NodeDown(id)));
    }

    /// Records at this node that another one is connected again, with all that it claims.
    fn mark_connected(&self, other: &Shared) {
        let claim = other.engine().peers.cluster.as_ref().map(|view| view.claim());
        claim.into_iter().for_each(|claim| self.receive(other.node_number(), &BusMessage::NodeUp(claim)));
    }
}
