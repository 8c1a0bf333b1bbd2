//! A vector set as RDB files have it: its parameters, and node by node the element, the vector and the links.
//!
//! Nothing that was read is trusted: an id that no node has, a link to itself or one way only, an element twice, or a
//! vector of another size make no set.

use super::graph::{Graph, MAX_LEVEL, Node};
use super::{Parameters, Projection, Quantization, Vector, VectorSet, usual_factor};
use std::collections::{HashMap, HashSet};

/// The parameters of a set.
#[derive(Debug)]
pub struct Saved {
    /// The parameters of the vectors.
    pub parameters: Parameters,
    /// The factors of the projection, row by row, if it has one.
    pub factors: Vec<f32>,
}

/// An element with its links.
#[derive(Debug)]
pub struct SavedNode<'a> {
    /// The number by which others link it.
    pub id: u64,
    /// The element.
    pub element: &'a [u8],
    /// The JSON text of its attributes. A file does not tell none from an empty text.
    pub attributes: Option<&'a [u8]>,
    /// Its vector.
    pub vector: Vector,
    /// Its layers, the lowest first; there is at least that one.
    pub layers: Vec<SavedLayer>,
}

/// The links of an element on one layer.
#[derive(Debug)]
pub struct SavedLayer {
    /// The ids of the linked nodes.
    pub links: Vec<u64>,
    /// The number of links for which there is room.
    pub room: u64,
    /// The distance of the farthest link, and its place.
    pub worst: (f32, u32),
}

/// The rooms that a file may give a layer, as a multiple of `M`.
const MAX_ROOM: u64 = 4;

impl VectorSet {
    /// The parameters, to save them.
    pub fn saved(&self) -> Saved {
        let Some(Projection { input_dimensions, factors }) = &self.projection else {
            let parameters = Parameters {
                dimensions: self.dimensions(),
                reduced: None,
                quantization: self.quantization(),
                links: self.links(),
            };
            return Saved { parameters, factors: Vec::new() };
        };
        let parameters = Parameters {
            dimensions: *input_dimensions,
            reduced: Some(self.dimensions()),
            quantization: self.quantization(),
            links: self.links(),
        };
        let factors = factors.as_ref().map_or_else(|| usual_factors(&parameters).collect(), |factors| factors.to_vec());
        Saved { parameters, factors }
    }

    /// The nodes, to save them.
    pub fn saved_nodes(&self) -> impl Iterator<Item = SavedNode<'_>> {
        self.members.cells().map(|node| self.graph.saved(node))
    }
}

impl Graph {
    fn saved(&self, node: u32) -> SavedNode<'_> {
        let node = self.node(node);
        let layers = (0..).zip(node.layers()).map(|(place, layer)| SavedLayer {
            links: layer.links.iter().map(|&link| self.node(link).id).collect(),
            room: (self.shape.room(place) + usize::from(layer.extra_room)) as u64,
            worst: (layer.worst.0, layer.worst.1.into()),
        });
        let layers = layers.collect();
        SavedNode {
            id: node.id,
            element: &node.element,
            attributes: node.attributes.as_deref(),
            vector: node.vector.clone(),
            layers,
        }
    }
}

/// A vector set that is being read.
#[derive(Debug)]
pub struct Loader {
    set: VectorSet,
    /// The nodes that were read, by their ids.
    nodes: HashMap<u64, u32>,
    /// The links of each node that were read, by layers.
    links: Vec<(u32, Vec<Vec<u64>>)>,
}

impl Loader {
    /// A set with these parameters; `None` if they are not those of a set.
    pub fn new(saved: &Saved) -> Option<Loader> {
        let mut set = VectorSet::with(&saved.parameters, 0, 0);
        let is_usual = || usual_factors(&saved.parameters).eq(saved.factors.iter().copied());
        if let Some(projection) = &mut set.projection {
            let expected = saved.parameters.reduced?.checked_mul(saved.parameters.dimensions)?;
            (saved.factors.len() == expected as usize).then_some(())?;
            if !is_usual() {
                projection.factors = Some(saved.factors.clone().into());
            }
        }
        (set.dimensions() > 0).then(|| Loader { set, nodes: HashMap::new(), links: Vec::new() })
    }

    /// The form of the components.
    pub fn quantization(&self) -> Quantization {
        self.set.quantization()
    }

    /// The bytes of each vector.
    pub fn vector_bytes(&self) -> usize {
        self.quantization().bytes(self.set.dimensions() as usize)
    }

    /// Adds a node; `None` if it does not fit the others.
    pub fn push(&mut self, saved: SavedNode<'_>) -> Option<()> {
        let level = saved.layers.len().checked_sub(1).filter(|level| *level <= MAX_LEVEL)?;
        let is_new = self.set.find(saved.element).is_none() && !self.nodes.contains_key(&saved.id);
        (is_new && saved.vector.bytes.len() == self.vector_bytes()).then_some(())?;
        let shape = self.set.graph.shape;
        let mut node = Node::new(saved.id, saved.element, saved.attributes, saved.vector, level);
        for (place, layer) in saved.layers.iter().enumerate() {
            let usual = shape.room(place) as u64;
            let is_in_bounds =
                layer.room <= MAX_ROOM * u64::from(shape.links) && layer.links.len() as u64 <= layer.room;
            is_in_bounds.then_some(())?;
            node.layer_mut(place).extra_room = u16::try_from(layer.room.saturating_sub(usual)).ok()?;
        }
        let node = self.set.graph.add(node);
        self.set.index(node);
        self.set.attributed += usize::from(saved.attributes.is_some());
        if self.set.graph.entry.is_none() || level > self.set.graph.max_level() {
            self.set.graph.entry = Some(node);
        }
        self.nodes.insert(saved.id, node);
        self.links.push((node, saved.layers.into_iter().map(|layer| layer.links).collect()));
        Some(())
    }

    /// The set; `None` if links lead nowhere or one way.
    pub fn finish(mut self) -> Option<VectorSet> {
        let mut one_way = HashSet::new();
        for (node, layers) in self.links {
            for (layer, ids) in layers.into_iter().enumerate() {
                for id in ids {
                    let link = *self.nodes.get(&id)?;
                    let is_there = link != node && self.set.graph.node(link).level() >= layer;
                    (is_there && !self.set.graph.links(node, layer).contains(&link)).then_some(())?;
                    self.set.graph.push_link(node, layer, link);
                    let ends = (layer, node.min(link), node.max(link));
                    if !one_way.remove(&ends) {
                        one_way.insert(ends);
                    }
                }
                self.set.graph.find_worst(node, layer);
            }
        }
        one_way.is_empty().then_some(self.set)
    }
}

/// The factors of the usual projection, row by row.
fn usual_factors(parameters: &Parameters) -> impl Iterator<Item = f32> {
    let columns = parameters.dimensions;
    let rows = 0..parameters.reduced.unwrap_or_default();
    rows.flat_map(move |row| (0..columns).map(move |column| usual_factor(row, column, columns)))
}
