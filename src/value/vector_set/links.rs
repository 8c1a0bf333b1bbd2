//! How the nodes of the graph are linked: when one is added, and when one is removed.
//!
//! A new node is linked with nodes near it that lie in different directions: one that is nearer to a link of the new
//! node than to the node itself is passed over, as it can be reached from there. A node that has no room drops its
//! farthest link, unless the node at its other end would be left with too few. A node that gets too few links in this
//! way is linked with more [`Urgency`].

use super::graph::{Candidate, Graph, Node};
use super::vector::Vector;

/// How much is given up so that a node gets links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgency {
    /// Its links lie in different directions, and a full neighbour drops only a link that is farther away.
    Low,
    /// A full neighbour drops its farthest link, even if that is nearer than the new one.
    Medium,
    /// A full neighbour drops the farthest link whose other end can spare it, or gets more room.
    High,
}

/// The most places that a node has in excess of its room on a layer, as a multiple of `M`.
const MAX_EXTRA_ROOM: usize = 1;

/// The nodes that are paired with each other after a removal, each of which is compared with all others.
const MAX_PAIRED: usize = 256;

impl Graph {
    /// Adds a node on the layers up to `level`, and links it with the nearest of each.
    pub(super) fn insert(
        &mut self,
        element: &[u8],
        attributes: Option<&[u8]>,
        vector: Vector,
        level: usize,
        effort: usize,
    ) -> u32 {
        let shared = level.min(self.max_level());
        let nearest = self.nearest_by_layer(&vector, shared, effort);
        let is_higher = self.entry.is_none() || level > self.max_level();
        let node = self.add(Node::new(self.last_id + 1, element, attributes, vector, level));
        for (layer, candidates) in nearest.iter().enumerate().rev() {
            self.link(node, layer, candidates);
        }
        if is_higher {
            self.entry = Some(node);
        }
        node
    }

    /// The nodes nearest to a query on each layer up to `level`, the lowest layer first.
    fn nearest_by_layer(&self, query: &Vector, level: usize, effort: usize) -> Vec<Vec<Candidate>> {
        let Some(mut from) = self.descend(query, level) else { return Vec::new() };
        let mut nearest = Vec::new();
        for layer in (0..=level).rev() {
            let candidates = self.search_layer(query, from, layer, effort, None);
            from = candidates.first().map_or(from, |first| first.node());
            nearest.push(candidates);
        }
        nearest.reverse();
        nearest
    }

    /// Links a node with candidates. On layer 0, where every search ends, a node must get some links.
    fn link(&mut self, node: u32, layer: usize, candidates: &[Candidate]) {
        let wanted = usize::from(self.shape.links);
        self.link_with(node, layer, candidates, wanted, Urgency::Low);
        if layer == 0 && self.links(node, layer).len() < wanted / 2 {
            self.link_with(node, layer, candidates, wanted, Urgency::Medium);
            if self.links(node, layer).len() < wanted / 4 {
                self.link_with(node, layer, candidates, wanted / 4, Urgency::High);
            }
        }
    }

    /// Links a node with candidates, the first first, until it has as many links as wanted.
    fn link_with(&mut self, node: u32, layer: usize, candidates: &[Candidate], wanted: usize, urgency: Urgency) {
        for &candidate in candidates {
            if self.links(node, layer).len() >= wanted || !self.has_room(node, layer) {
                return;
            }
            let is_linked = candidate.node() == node || self.links(node, layer).contains(&candidate.node());
            if is_linked || urgency == Urgency::Low && self.is_nearer_to_a_link(candidate, node, layer) {
                continue;
            }
            if !self.has_room(candidate.node(), layer) {
                match self.link_to_drop(candidate, layer, urgency) {
                    Some(dropped) => self.disconnect(candidate.node(), dropped, layer),
                    None if urgency == Urgency::High => self.widen(candidate.node(), layer),
                    None => {}
                }
            }
            if self.has_room(candidate.node(), layer) {
                self.connect(node, candidate.node(), layer, candidate.distance());
            }
        }
    }

    fn has_room(&self, node: u32, layer: usize) -> bool {
        let links = self.node(node).layer(layer);
        links.links.len() < self.shape.room(layer) + usize::from(links.extra_room)
    }

    /// Whether a candidate is nearer to a link of the node than to the node.
    fn is_nearer_to_a_link(&self, candidate: Candidate, node: u32, layer: usize) -> bool {
        self.links(node, layer).iter().any(|&link| self.distance(candidate.node(), link) < candidate.distance())
    }

    /// The link that a full neighbour drops for one of this distance.
    fn link_to_drop(&self, neighbor: Candidate, layer: usize, urgency: Urgency) -> Option<u32> {
        let links = self.node(neighbor.node()).layer(layer);
        let (worst_distance, worst) = (links.worst.0, *links.links.get(usize::from(links.worst.1))?);
        let needed = usize::from(self.shape.links) / if urgency == Urgency::Low { 2 } else { 4 };
        let can_spare = |link: u32| self.links(link, layer).len() > needed;
        match urgency {
            Urgency::Low if neighbor.distance() >= worst_distance => None,
            _ if can_spare(worst) => Some(worst),
            Urgency::Low | Urgency::Medium => None,
            Urgency::High => {
                let spared = links.links.iter().copied().filter(|&link| can_spare(link));
                spared.max_by_key(|&link| Candidate::new(self.distance(neighbor.node(), link), link))
            }
        }
    }

    /// Gives a node room for one more link, up to a limit.
    fn widen(&mut self, node: u32, layer: usize) {
        let max_extra = MAX_EXTRA_ROOM * usize::from(self.shape.links);
        let links = self.layer_mut(node, layer);
        if usize::from(links.extra_room) < max_extra {
            links.extra_room += 1;
        }
    }

    /// Links two nodes with each other.
    fn connect(&mut self, one: u32, other: u32, layer: usize, distance: f32) {
        for (node, link) in [(one, other), (other, one)] {
            self.push_link(node, layer, link);
            let links = self.layer_mut(node, layer);
            let place = links.links.len() - 1;
            if place == 0 || distance > links.worst.0 {
                links.worst = (distance, place as u16);
            }
        }
    }

    /// Removes the link of two nodes with each other.
    fn disconnect(&mut self, one: u32, other: u32, layer: usize) {
        for (node, link) in [(one, other), (other, one)] {
            let Some(removed) = self.remove_link(node, layer, link) else { continue };
            let worst = usize::from(self.node(node).layer(layer).worst.1);
            if worst == removed {
                self.find_worst(node, layer);
            } else if removed < worst {
                self.layer_mut(node, layer).worst.1 -= 1;
            }
        }
    }

    /// Finds the farthest link of a node.
    pub(super) fn find_worst(&mut self, node: u32, layer: usize) {
        let mut worst = (0.0, 0);
        for (place, &link) in (0..).zip(self.links(node, layer)) {
            let distance = self.distance(node, link);
            if place == 0 || distance > worst.0 {
                worst = (distance, place);
            }
        }
        self.layer_mut(node, layer).worst = worst;
    }

    /// Removes a node, and links those that were linked with it with each other; returns its attributes.
    pub(super) fn remove(&mut self, node: u32) -> Option<Box<[u8]>> {
        let neighbors: Vec<Vec<u32>> = self.node(node).layers().map(|layer| layer.links.clone()).collect();
        for (layer, neighbors) in neighbors.iter().enumerate() {
            neighbors.iter().for_each(|&neighbor| self.disconnect(node, neighbor, layer));
        }
        let attributes = self.take(node);
        if self.entry == Some(node) {
            self.entry = neighbors.iter().rev().find_map(|neighbors| neighbors.first().copied());
        }
        for (layer, neighbors) in neighbors.iter().enumerate() {
            self.reconnect(neighbors, layer);
        }
        attributes
    }

    /// Gives nodes that have each lost a link another one: each is linked with the nearest of the others that has none
    /// yet. What is left over is linked with the nodes near it, if it has few links.
    fn reconnect(&mut self, nodes: &[u32], layer: usize) {
        let paired = &nodes[..nodes.len().min(MAX_PAIRED)];
        let mut is_left = vec![true; nodes.len()];
        for (place, &node) in paired.iter().enumerate() {
            let is_fitting = |other: usize| {
                let is_linked = || self.links(node, layer).contains(&paired[other]);
                is_left[other] && self.has_room(paired[other], layer) && !is_linked()
            };
            let others = (place + 1..paired.len()).filter(|&other| is_fitting(other));
            let by_distance = |&other: &usize| Candidate::new(self.distance(node, paired[other]), paired[other]);
            let nearest = others.min_by_key(by_distance).filter(|_| is_left[place] && self.has_room(node, layer));
            if let Some(other) = nearest {
                self.connect(node, paired[other], layer, self.distance(node, paired[other]));
                is_left[place] = false;
                is_left[other] = false;
            }
        }
        for (&node, _) in nodes.iter().zip(is_left).filter(|(_, is_left)| *is_left) {
            if self.links(node, layer).len() < usize::from(self.shape.links) / 2 {
                self.link_with_nearest(node, layer);
            }
        }
    }

    /// Links a node that has few links with the nodes near it.
    fn link_with_nearest(&mut self, node: u32, layer: usize) {
        let vector = self.node(node).vector.clone();
        let Some(from) = self.descend(&vector, layer) else { return };
        let candidates = self.search_layer(&vector, from, layer, self.shape.room(layer), None);
        self.link(node, layer, &candidates);
    }
}
