//! Vector sets: elements with a vector each, and a search for those whose vectors have nearly the same direction.
//!
//! ```text
//! element --hash--> index --number--> node: element, attributes, vector, links <--number-- graph
//! ```
//!
//! Vectors are quantized ([`Vector`]), and a [`graph`] finds the nearest ones without looking at all. An element may
//! have attributes, a JSON text, for conditions of a search.
//!
//! - Invariant: the nodes of the graph and those of the index are the same; no two elements are equal.
//! - Memory: 10,000 elements of 300 dimensions take 575 bytes each with [`Quantization::Q8`], 300 of them for the
//!   vector.
//! - Results are approximate, as in Redis, and the links are not the same ones: the level of an element is chosen at
//!   random. A scan of all ([`Search::is_exact`]) is exact.
//!
//! Costs: look-up O(1), search and change about O(log n).

mod graph;
mod links;
mod saved;
#[cfg(test)]
mod tests;
mod vector;

pub use saved::{Loader, SavedLayer, SavedNode};
pub use vector::{Quantization, Vector};

use super::base::{Base, Fork};
use super::hashing::Hashing;
use super::members::Members;
use fastrand::Rng;
use graph::{Graph, MAX_LEVEL, Node, NodeFilter, Shape};
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The least and the most links of a new element on each layer (`M`).
pub const LINKS: RangeInclusive<u16> = 4..=4096;

/// A sample of at most one in this many elements is drawn one by one.
const FEW: usize = 5;

/// A set of elements with vectors.
#[derive(Clone)]
pub struct VectorSet {
    /// A random number that tells the set from others; 0 for all that were loaded.
    id: u64,
    members: Members,
    graph: Graph,
    /// The elements that have attributes.
    attributed: usize,
    projection: Option<Projection>,
}

/// The parameters that all vectors of a set share.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// The components of a vector as it is given.
    pub dimensions: u32,
    /// The components that are stored, where that is another number: vectors are projected.
    pub reduced: Option<u32>,
    /// The form in which the components are stored.
    pub quantization: Quantization,
    /// The links of a new element on each layer of the graph (`M`), in [`LINKS`]; a file may have fewer.
    pub links: u16,
}

/// A condition for the attributes of an element.
pub type Condition<'f> = &'f dyn Fn(&[u8]) -> bool;

/// A search for the elements nearest to a vector.
#[derive(Default)]
pub struct Search<'f> {
    /// The number of elements that are kept on the way, and so found at most; more make the result more exact.
    pub effort: usize,
    /// A condition for the attributes of the elements; those without any do not meet it.
    pub filter: Option<Condition<'f>>,
    /// The most nodes whose links a search with a filter follows.
    pub max_visits: usize,
    /// Whether all elements are looked at.
    pub is_exact: bool,
}

/// An element of a vector set.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    /// The bytes by which it is added and found.
    pub name: &'a [u8],
    /// The JSON text of its attributes. One that was added with an empty text has that.
    pub attributes: Option<&'a [u8]>,
    /// Its vector.
    pub vector: &'a Vector,
}

/// The elements that an element is linked with on a layer, with their distances.
pub type Links<'a> = Vec<(&'a [u8], f32)>;

/// How vectors become shorter: each component of the result is a sum of those of the input, each with a sign.
#[derive(Clone, Debug)]
struct Projection {
    input_dimensions: u32,
    /// The factors row by row, where a file gave others than the usual ones ([`usual_factor`]).
    factors: Option<Arc<[f32]>>,
}

impl std::fmt::Debug for VectorSet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("VectorSet").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// An empty set without parameters, to be replaced by one with the parameters of the first vector.
impl Default for VectorSet {
    fn default() -> VectorSet {
        VectorSet::with(&Parameters { dimensions: 0, reduced: None, quantization: Quantization::Q8, links: 0 }, 0, 0)
    }
}

impl Fork for VectorSet {
    fn without_parts(&self) -> VectorSet {
        let (members, graph) = (self.members.without_parts(), self.graph.without_parts());
        VectorSet { members, graph, projection: self.projection.clone(), ..*self }
    }

    fn set_base(&mut self, base: Option<Base<VectorSet>>) {
        self.members.set_base(base.as_ref().map(|base| base.part(|set| &set.members)));
        self.graph.set_base(base.map(|base| base.part(|set| &set.graph)));
    }

    fn is_fork(&self) -> bool {
        self.graph.is_fork()
    }

    fn own_bytes(&self) -> usize {
        self.members.own_bytes() + self.graph.own_bytes()
    }

    fn reclaim(&mut self, base: &mut VectorSet) {
        self.members.reclaim(&mut base.members);
        self.graph.reclaim(&mut base.graph);
    }
}

impl VectorSet {
    /// An empty set. `seed` is for the hash function of a set that is flooded.
    pub fn with(parameters: &Parameters, id: u64, seed: u64) -> VectorSet {
        let dimensions = parameters.reduced.unwrap_or(parameters.dimensions);
        let shape = Shape { dimensions, quantization: parameters.quantization, links: parameters.links };
        let members = Members::with_room(0, Hashing::Quick { seed });
        let projection =
            parameters.reduced.map(|_| Projection { input_dimensions: parameters.dimensions, factors: None });
        VectorSet { id, members, graph: Graph::new(shape), attributed: 0, projection }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.graph.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that it has allocated.
    pub fn memory(&self) -> usize {
        let factors = self.projection.as_ref().and_then(|projection| projection.factors.as_deref());
        self.members.memory() + self.graph.memory() + factors.map_or(0, size_of_val)
    }

    /// A random number that tells the set from others; 0 for all that were loaded.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The form in which components are stored.
    pub fn quantization(&self) -> Quantization {
        self.graph.shape.quantization
    }

    /// The components that are stored of a vector.
    pub fn dimensions(&self) -> u32 {
        self.graph.shape.dimensions
    }

    /// The components of a vector as it is given, if it is projected.
    pub fn input_dimensions(&self) -> Option<u32> {
        self.projection.as_ref().map(|projection| projection.input_dimensions)
    }

    /// The links of a new element on each layer (`M`).
    pub fn links(&self) -> u16 {
        self.graph.shape.links
    }

    /// The highest layer of the graph.
    pub fn max_level(&self) -> usize {
        self.graph.max_level()
    }

    /// The number of elements that have attributes.
    pub fn attributed(&self) -> usize {
        self.attributed
    }

    /// The highest id that an element has had.
    pub fn last_element_id(&self) -> u64 {
        self.graph.last_id
    }

    /// The element of that name.
    pub fn get(&self, name: &[u8]) -> Option<Element<'_>> {
        self.find(name).map(|node| self.element(node))
    }

    /// All elements, in no meaningful order.
    pub fn iter(&self) -> impl Iterator<Item = Element<'_>> {
        self.graph.numbers().map(|node| self.element(node))
    }

    /// Shortens a vector as the set does with all.
    pub fn project(&self, components: &[f32]) -> Vec<f32> {
        let Some(projection) = &self.projection else { return components.to_vec() };
        let row = |row: u32| {
            let products = (0..).zip(components).map(|(column, component)| projection.factor(row, column) * component);
            products.sum()
        };
        (0..self.dimensions()).map(row).collect()
    }

    /// Adds an element, or replaces the vector of one, and its attributes unless they are `None`; true when it was
    /// added. An empty text removes the attributes of an element that was there. The vector has the dimensions of the
    /// set.
    pub fn insert(
        &mut self,
        name: &[u8],
        components: &[f32],
        attributes: Option<&[u8]>,
        effort: usize,
        generator: &mut Rng,
    ) -> bool {
        let vector = Vector::of(components, self.quantization());
        let old = self.find(name).map(|node| self.remove_node(node));
        let attributes = match &old {
            Some(old) => attributes.or(old.as_deref()).filter(|attributes| !attributes.is_empty()),
            None => attributes,
        };
        let level = (0..MAX_LEVEL).take_while(|_| generator.u8(..4) == 0).count();
        let node = self.graph.insert(name, attributes, vector, level, effort);
        self.attributed += usize::from(attributes.is_some());
        self.index(node);
        old.is_none()
    }

    /// Removes an element; false if there is none of that name.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        self.find(name).map(|node| self.remove_node(node)).is_some()
    }

    /// Sets the attributes of an element, or removes them; false if there is none of that name.
    pub fn set_attributes(&mut self, name: &[u8], attributes: Option<&[u8]>) -> bool {
        let Some(node) = self.find(name) else { return false };
        self.attributed -= usize::from(self.graph.node(node).attributes.is_some());
        self.attributed += usize::from(attributes.is_some());
        self.graph.set_attributes(node, attributes);
        true
    }

    /// A random element.
    pub fn random(&self, generator: &mut Rng) -> Option<&[u8]> {
        (!self.is_empty()).then(|| self.element(self.members.random(generator)).name)
    }

    /// Random distinct elements, all if there are not more.
    pub fn sample(&self, count: usize, generator: &mut Rng) -> Vec<&[u8]> {
        if count >= self.len() {
            return self.iter().map(|element| element.name).collect();
        }
        let mut nodes: Vec<u32> = Vec::new();
        if count <= self.len() / FEW {
            let mut drawn = HashSet::new();
            while nodes.len() < count {
                let node = self.members.random(generator);
                nodes.extend(drawn.insert(node).then_some(node));
            }
        } else {
            nodes.extend(self.graph.numbers());
            generator.shuffle(&mut nodes);
            nodes.truncate(count);
        }
        nodes.into_iter().map(|node| self.element(node).name).collect()
    }

    /// The elements nearest to a vector of the set's dimensions, the nearest first, with their distances from 0 to 2.
    pub fn nearest(&self, components: &[f32], search: &Search<'_>) -> Vec<(Element<'_>, f32)> {
        let query = Vector::of(components, self.quantization());
        let accepts = |node: &Node| match search.filter {
            Some(filter) => node.attributes.as_deref().is_some_and(filter),
            None => true,
        };
        let found = if search.is_exact {
            self.graph.scan(&query, search.effort, accepts)
        } else {
            let filter = NodeFilter { accepts: &accepts, max_visits: search.max_visits };
            self.graph.nearest(&query, search.effort, search.filter.map(|_| &filter))
        };
        found.into_iter().map(|found| (self.element(found.node()), found.distance())).collect()
    }

    /// The links of an element, by layers, the highest first, with their distances.
    pub fn links_of(&self, name: &[u8]) -> Option<Vec<Links<'_>>> {
        let node = self.find(name)?;
        let named = |&link: &u32| (self.element(link).name, self.graph.distance(node, link));
        Some(self.graph.node(node).layers().rev().map(|layer| layer.links.iter().map(named).collect()).collect())
    }

    fn find(&self, name: &[u8]) -> Option<u32> {
        self.members.find(self.members.hash(name), |node| *self.graph.node(node).element == *name)
    }

    fn element(&self, node: u32) -> Element<'_> {
        let Node { element, attributes, vector, .. } = self.graph.node(node);
        Element { name: element, attributes: attributes.as_deref(), vector }
    }

    /// Adds a node of the graph to the index.
    fn index(&mut self, node: u32) {
        let hash = self.members.hash(&self.graph.node(node).element);
        self.members.insert(hash, node, |node| &self.graph.node(node).element);
    }

    /// Removes a node; returns its attributes.
    fn remove_node(&mut self, node: u32) -> Option<Box<[u8]>> {
        self.members.remove(self.members.hash(&self.graph.node(node).element), node);
        let attributes = self.graph.remove(node);
        self.attributed -= usize::from(attributes.is_some());
        if self.graph.entry.is_none() {
            self.graph.entry = self.graph.numbers().max_by_key(|&node| self.graph.node(node).level());
        }
        attributes
    }
}

impl Projection {
    fn factor(&self, row: u32, column: u32) -> f32 {
        match &self.factors {
            Some(factors) => factors[row as usize * self.input_dimensions as usize + column as usize],
            None => usual_factor(row, column, self.input_dimensions),
        }
    }
}

/// The factor of an input's component in one of the output: Redis takes the signs of a Hadamard matrix.
fn usual_factor(row: u32, column: u32, input_dimensions: u32) -> f32 {
    let scale = (1.0 / f64::from(input_dimensions).sqrt()) as f32;
    if (row & column).count_ones().is_multiple_of(2) { scale } else { -scale }
}
