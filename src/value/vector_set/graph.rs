//! The graph of a vector set: which vectors are near which, so that a search looks at few of them.
//!
//! It is a hierarchical navigable small world. Layer 0 has all nodes, each linked with nodes near it; each layer above
//! has a quarter of the nodes of the one below. A search enters at the top, goes from node to node as long as that
//! leads nearer to the query, and continues a layer below. On layer 0 it keeps the `effort` nearest that it has
//! visited, and ends when the nearest one whose links it has not followed yet is farther than all of these. So it may
//! miss some: a larger effort misses fewer.
//!
//! - Invariant: links go both ways, lead to other nodes of the same layer, and no two of a node to the same one.
//! - Invariant: there is an entry if there is a node. After removals nodes may be linked on layers above the entry's;
//!   no search goes there.
//! - Memory: the vector, the element, some 180 bytes a node, and 4 bytes a link: about 20 links a node with the default
//!   of 16 (`M`).
//! - The nodes of a fork are in its base until they change ([`crate::value::base`]).
//!
//! Costs: a search or an insertion about O(log n) distances, a few hundred to a few thousand. A thread keeps a byte for
//! each node of the largest set that it has searched, to mark those that were visited.
//!
//! Source: Malkov and Yashunin, Efficient and robust approximate nearest neighbor search using HNSW graphs (2016).
//! As in Redis, links go both ways, so a node is removed without a trace.

use super::vector::{Quantization, Vector};
use crate::value::base::{Base, Fork};
use crate::value::slab::Slab;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::mem;

/// The nodes whose vectors a scan reads at a time.
const TOUCHED: usize = 16;

/// The bit of a float's sign.
const SIGN: u32 = 1 << 31;

/// The highest layer.
pub(super) const MAX_LEVEL: usize = 16;

/// What all vectors of a set have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) dimensions: u32,
    pub(super) quantization: Quantization,
    /// The number of links that a new node gets on each layer (`M`). A node has room for as many, on layer 0 for twice
    /// as many.
    pub(super) links: u16,
}

impl Shape {
    pub(super) fn distance(&self, one: &Vector, other: &Vector) -> f32 {
        one.distance(other, self.quantization, self.dimensions as usize)
    }

    /// The links for which a node has room on a layer.
    pub(super) fn room(&self, layer: usize) -> usize {
        usize::from(self.links) * if layer == 0 { 2 } else { 1 }
    }
}

/// An element of the set, and its links.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The number of the node among all that the set ever had.
    pub(super) id: u64,
    pub(super) element: Box<[u8]>,
    /// The JSON text of its attributes.
    pub(super) attributes: Option<Box<[u8]>>,
    pub(super) vector: Vector,
    ground: Layer,
    /// The layers above the lowest.
    upper: Box<[Layer]>,
}

/// The links of a node on one layer.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    pub(super) links: Vec<u32>,
    /// The distance of the farthest link, and its place.
    pub(super) worst: (f32, u16),
    /// The links for which there is room in addition to [`Shape::room`].
    pub(super) extra_room: u16,
}

impl Node {
    /// A node without links, on the layers up to `level`.
    pub(super) fn new(id: u64, element: &[u8], attributes: Option<&[u8]>, vector: Vector, level: usize) -> Node {
        let (attributes, upper) = (attributes.map(Box::from), vec![Layer::default(); level].into());
        Node { id, element: element.into(), attributes, vector, ground: Layer::default(), upper }
    }

    /// The highest layer that it is on.
    pub(super) fn level(&self) -> usize {
        self.upper.len()
    }

    /// Its layers, the lowest first.
    pub(super) fn layers(&self) -> impl DoubleEndedIterator<Item = &Layer> {
        std::iter::once(&self.ground).chain(&self.upper)
    }

    /// A layer that it is on.
    #[inline]
    pub(super) fn layer(&self, layer: usize) -> &Layer {
        if layer == 0 { &self.ground } else { &self.upper[layer - 1] }
    }

    pub(super) fn layer_mut(&mut self, layer: usize) -> &mut Layer {
        if layer == 0 { &mut self.ground } else { &mut self.upper[layer - 1] }
    }

    /// The bytes that it has allocated, without its links.
    fn memory(&self) -> usize {
        let attributes = self.attributes.as_ref().map_or(0, |attributes| attributes.len());
        self.element.len() + attributes + self.vector.bytes.len() + self.upper.len() * size_of::<Layer>()
    }
}

/// A node and its distance from a query, in one number whose order is that of the distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate(u64);

impl Candidate {
    /// A distance that is not a number comes last, whatever its sign.
    pub(super) fn new(distance: f32, node: u32) -> Candidate {
        let distance = if distance.is_nan() { f32::NAN } else { distance };
        Candidate(u64::from(ordered(distance.to_bits())) << 32 | u64::from(node))
    }

    pub(super) fn distance(self) -> f32 {
        f32::from_bits(unordered((self.0 >> 32) as u32))
    }

    pub(super) fn node(self) -> u32 {
        self.0 as u32
    }
}

/// The bits of a float as a number that grows with the float.
fn ordered(bits: u32) -> u32 {
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The bits of the float of which [`ordered`] has made a number.
fn unordered(number: u32) -> u32 {
    if number & SIGN == 0 { !number } else { number & !SIGN }
}

/// Adds a candidate to the nearest ones, of which at most `count` are kept.
fn keep_nearest(nearest: &mut BinaryHeap<Candidate>, candidate: Candidate, count: usize) {
    if nearest.len() < count {
        nearest.push(candidate);
    } else if let Some(mut farthest) = nearest.peek_mut().filter(|farthest| candidate < **farthest) {
        *farthest = candidate;
    }
}

/// A condition for the results of a search.
pub(super) struct NodeFilter<'f> {
    pub(super) accepts: &'f dyn Fn(&Node) -> bool,
    /// The most nodes whose links the search follows (FILTER-EF).
    pub(super) max_visits: usize,
}

/// The nodes that a search has visited: those whose mark is the number of the search.
///
/// A thread keeps the marks from one search to the next, of whatever set, so that only every 255th has to clear them.
#[derive(Default)]
struct Visited {
    marks: Vec<u8>,
    search: u8,
}

/// The marks that a thread begins with.
const LEAST_MARKS: usize = 64 << 10;
/// The most marks that a thread keeps, a byte each: more nodes take many gigabytes.
const KEPT_MARKS: usize = 16 << 20;

thread_local! {
    static VISITED: Cell<Visited> = Cell::default();
}

impl Visited {
    /// Begins a search of a set with so many nodes.
    fn begin(nodes: usize) -> Visited {
        let mut visited = VISITED.take();
        if visited.search == u8::MAX {
            visited = Visited { marks: vec![0; visited.marks.len()], search: 0 };
        }
        if visited.marks.len() < nodes {
            visited.marks.resize(nodes.max(LEAST_MARKS), 0);
        }
        visited.search += 1;
        visited
    }

    fn end(self) {
        if self.marks.len() <= KEPT_MARKS {
            VISITED.set(self);
        }
    }

    fn insert(&mut self, node: u32) {
        self.marks[node as usize] = self.search;
    }

    /// Marks nodes; `unvisited` gets those that were not marked yet. A branch for each would be mispredicted often.
    fn insert_all(&mut self, nodes: &[u32], unvisited: &mut Vec<u32>) {
        unvisited.resize(nodes.len(), 0);
        let (marks, search, new) = (&mut self.marks[..], self.search, &mut unvisited[..]);
        let mut count = 0;
        for &node in nodes {
            new[count] = node;
            count += usize::from(mem::replace(&mut marks[node as usize], search) != search);
        }
        unvisited.truncate(count);
    }
}

/// The nodes of a set, with their links.
#[derive(Clone, Default)]
pub(super) struct Graph {
    pub(super) shape: Shape,
    nodes: Slab<Node>,
    pub(super) entry: Option<u32>,
    /// The highest id that a node has had.
    pub(super) last_id: u64,
    /// The bytes that the nodes have allocated.
    bytes: usize,
}

impl Fork for Graph {
    fn without_parts(&self) -> Graph {
        Graph { nodes: self.nodes.without_parts(), ..*self }
    }

    fn set_base(&mut self, base: Option<Base<Graph>>) {
        self.nodes.set_base(base.map(|base| base.part(|graph| &graph.nodes)));
    }

    fn is_fork(&self) -> bool {
        self.nodes.is_fork()
    }

    /// As if all nodes were of the same size.
    fn own_bytes(&self) -> usize {
        let own = self.nodes.own_bytes() / size_of::<Node>();
        self.nodes.own_bytes() + (self.bytes as u128 * own as u128 / self.len().max(1) as u128) as usize
    }

    fn reclaim(&mut self, base: &mut Graph) {
        self.nodes.reclaim(&mut base.nodes);
    }
}

impl Graph {
    pub(super) fn new(shape: Shape) -> Graph {
        Graph { shape, ..Graph::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn memory(&self) -> usize {
        self.nodes.memory() + self.bytes
    }

    /// The bytes that the nodes have allocated.
    #[cfg(test)]
    pub(super) fn bytes_of_nodes(&self) -> usize {
        self.bytes
    }

    pub(super) fn node(&self, node: u32) -> &Node {
        &self.nodes[node]
    }

    /// The highest layer that has nodes.
    pub(super) fn max_level(&self) -> usize {
        self.entry.map_or(0, |entry| self.nodes[entry].level())
    }

    /// Adds a node that has no links yet.
    pub(super) fn add(&mut self, node: Node) -> u32 {
        self.bytes += node.memory();
        self.last_id = self.last_id.max(node.id);
        self.nodes.insert(node)
    }

    /// Gives all nodes new ids, from 1 on.
    pub(super) fn number_anew(&mut self) {
        let nodes: Vec<u32> = self.numbers().collect();
        self.last_id = nodes.len() as u64;
        for (id, node) in (1..).zip(nodes) {
            self.nodes[node].id = id;
        }
    }

    /// Takes a node away that has no links any more; returns its attributes.
    pub(super) fn take(&mut self, node: u32) -> Option<Box<[u8]>> {
        let taken = &self.nodes[node];
        self.bytes -= taken.memory();
        let attributes = taken.attributes.clone();
        self.nodes.remove(node);
        attributes
    }

    /// Replaces the attributes of a node.
    pub(super) fn set_attributes(&mut self, node: u32, attributes: Option<&[u8]>) {
        let node = &mut self.nodes[node];
        self.bytes -= node.memory();
        node.attributes = attributes.map(Box::from);
        self.bytes += node.memory();
    }

    /// The links of a node on a layer that it is on.
    pub(super) fn links(&self, node: u32, layer: usize) -> &[u32] {
        &self.nodes[node].layer(layer).links
    }

    /// A layer of a node, to be changed. Only [`Graph::push_link`] and [`Graph::remove_link`] change how many links it
    /// has, as they count the bytes.
    pub(super) fn layer_mut(&mut self, node: u32, layer: usize) -> &mut Layer {
        self.nodes[node].layer_mut(layer)
    }

    /// Appends a link, without spare capacity.
    pub(super) fn push_link(&mut self, node: u32, layer: usize, link: u32) {
        let links = &mut self.nodes[node].layer_mut(layer).links;
        links.reserve_exact(1);
        links.push(link);
        self.bytes += size_of::<u32>();
    }

    /// Removes a link and its capacity; returns its index.
    pub(super) fn remove_link(&mut self, node: u32, layer: usize, link: u32) -> Option<usize> {
        let links = &mut self.nodes[node].layer_mut(layer).links;
        let place = links.iter().position(|&other| other == link)?;
        links.remove(place);
        links.shrink_to_fit();
        self.bytes -= size_of::<u32>();
        Some(place)
    }

    pub(super) fn distance(&self, one: u32, other: u32) -> f32 {
        self.shape.distance(&self.nodes[one].vector, &self.nodes[other].vector)
    }

    /// A node and its distance from the query.
    pub(super) fn candidate(&self, query: &Vector, node: u32) -> Candidate {
        Candidate::new(self.shape.distance(query, &self.nodes[node].vector), node)
    }

    /// The nodes nearest to a query, the nearest first, at most `effort`.
    pub(super) fn nearest(&self, query: &Vector, effort: usize, filter: Option<&NodeFilter<'_>>) -> Vec<Candidate> {
        let Some(from) = self.descend(query, 0) else { return Vec::new() };
        self.search_layer(query, from, 0, effort, filter)
    }

    /// The node near a query at which the search of a layer begins; `None` on layers above the entry's.
    pub(super) fn descend(&self, query: &Vector, layer: usize) -> Option<u32> {
        let layers = layer + 1..=self.max_level();
        let nearest =
            |from, layer| self.search_layer(query, from, layer, 1, None).first().map_or(from, |first| first.node());
        // A node may be linked on layers that the entry is not on.
        let entry = self.entry.filter(|&entry| self.nodes[entry].level() >= layer)?;
        Some(layers.rev().fold(entry, nearest))
    }

    /// Reads the first byte of the vector of each node, so that their waits for memory overlap.
    fn touch(&self, nodes: &[u32]) {
        black_box(nodes.iter().fold(0, |sum, &node| sum ^ self.nodes[node].vector.bytes.first().copied().unwrap_or(0)));
    }

    /// The nodes of a layer nearest to a query, the nearest first, at most `effort`, as far as the search
    /// from a node comes to them.
    pub(super) fn search_layer(
        &self,
        query: &Vector,
        from: u32,
        layer: usize,
        effort: usize,
        filter: Option<&NodeFilter<'_>>,
    ) -> Vec<Candidate> {
        let accepts = |node: u32| filter.is_none_or(|filter| (filter.accepts)(&self.nodes[node]));
        let max_visits = filter.map_or(usize::MAX, |filter| filter.max_visits);
        let mut visited = Visited::begin(self.nodes.end());
        let (mut candidates, mut results) = (BinaryHeap::new(), BinaryHeap::new());
        visited.insert(from);
        let first = self.candidate(query, from);
        candidates.push(Reverse(first));
        results.extend(accepts(from).then_some(first));
        let (mut visits, mut unvisited) = (1, Vec::new());
        while let Some(Reverse(current)) = candidates.pop() {
            let is_done =
                results.len() >= effort && results.peek().is_some_and(|worst| current.distance() > worst.distance());
            if is_done || visits >= max_visits {
                break;
            }
            visits += 1;
            visited.insert_all(self.links(current.node(), layer), &mut unvisited);
            self.touch(&unvisited);
            for &link in &unvisited {
                let candidate = self.candidate(query, link);
                let is_near = results.len() < effort
                    || results.peek().is_some_and(|worst| candidate.distance() < worst.distance());
                // Nodes that are not accepted lead to others.
                if is_near || filter.is_some() && candidates.len() < effort {
                    candidates.push(Reverse(candidate));
                }
                if is_near && accepts(link) {
                    keep_nearest(&mut results, candidate, effort);
                }
            }
        }
        visited.end();
        results.into_sorted_vec()
    }

    /// The nodes nearest to a query, the nearest first, at most `count`: all of them are looked at.
    pub(super) fn scan(&self, query: &Vector, count: usize, accepts: impl Fn(&Node) -> bool) -> Vec<Candidate> {
        let mut results: BinaryHeap<Candidate> = BinaryHeap::new();
        let nodes: Vec<u32> = self.numbers().collect();
        for nodes in nodes.chunks(TOUCHED) {
            self.touch(nodes);
            for &node in nodes.iter().filter(|&&node| accepts(&self.nodes[node])) {
                keep_nearest(&mut results, self.candidate(query, node), count);
            }
        }
        results.into_sorted_vec()
    }

    /// The numbers of all nodes.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.nodes.numbers()
    }
}
