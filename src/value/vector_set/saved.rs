//! A vector set as RDB files have it: its parameters, and node by node the element, the vector and the links.
//!
//! Nothing that was read is trusted: a set is refused if a link leads to an unknown id, to its own node or one way
//! only, if an element occurs twice, if a vector has another size, or if the farthest link is none of the links. Its
//! distance is taken as it is: a wrong one only makes a full node drop another link than the farthest.

use super::graph::{Graph, MAX_LEVEL, Node};
use super::{Parameters, Vector, VectorSet};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// An element with its links.
#[derive(Debug)]
pub struct SavedNode<'a> {
    /// The number by which others link it.
    pub id: u64,
    /// The element.
    pub element: &'a [u8],
    /// The JSON text of its attributes. A file cannot distinguish an empty text from none.
    pub attributes: Option<&'a [u8]>,
    /// Its vector.
    pub vector: Cow<'a, Vector>,
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
    /// The distance of the farthest link, and its place; computed when loaded if there is none.
    pub worst: Option<(f32, u32)>,
}

/// The highest id of a node: those of later ones are still higher, and VINFO shows them as signed numbers.
const MAX_ID: u64 = i64::MAX as u64 / 2;

/// The largest room of a layer in a file, as a multiple of `M`.
const MAX_ROOM: u64 = 4;

impl VectorSet {
    /// The parameters, to save them.
    pub fn parameters(&self) -> Parameters {
        let input = self.input_dimensions();
        Parameters {
            dimensions: input.unwrap_or(self.dimensions()),
            reduced: input.map(|_| self.dimensions()),
            quantization: self.quantization(),
            links: self.links(),
        }
    }

    /// The factors of the projection, row by row, to save them; none without a projection.
    pub fn factors(&self) -> impl Iterator<Item = f32> {
        self.projection.iter().flat_map(|projection| {
            let row = move |row| (0..projection.input_dimensions).map(move |column| projection.factor(row, column));
            (0..self.dimensions()).flat_map(row)
        })
    }

    /// The nodes, to save them.
    pub fn saved_nodes(&self) -> impl Iterator<Item = SavedNode<'_>> {
        self.graph.numbers().map(|node| self.graph.saved(node))
    }
}

impl Graph {
    fn saved(&self, node: u32) -> SavedNode<'_> {
        let node = self.node(node);
        let layers = (0..).zip(node.layers()).map(|(place, layer)| SavedLayer {
            links: layer.links.iter().map(|&link| self.node(link).id).collect(),
            room: (self.shape.room(place) + usize::from(layer.extra_room)) as u64,
            worst: Some((layer.worst.0, layer.worst.1.into())),
        });
        let layers = layers.collect();
        SavedNode {
            id: node.id,
            element: &node.element,
            attributes: node.attributes.as_deref(),
            vector: Cow::Borrowed(&node.vector),
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
    /// The layers of each node that were read.
    layers: Vec<(u32, Vec<SavedLayer>)>,
}

impl Loader {
    /// A loader of a set with these parameters, and the factors of its projection, row by row; `None` if no set can
    /// have them.
    pub fn new(parameters: &Parameters, factors: Vec<f32>) -> Option<Loader> {
        let mut set = VectorSet::with(parameters, 0, 0);
        if set.projection.is_some() {
            let expected = parameters.reduced?.checked_mul(parameters.dimensions)?;
            (factors.len() == expected as usize).then_some(())?;
            let is_usual = set.factors().eq(factors.iter().copied());
            if let Some(projection) = set.projection.as_mut().filter(|_| !is_usual) {
                projection.factors = Some(factors.into());
            }
        }
        (set.dimensions() > 0).then(|| Loader { set, nodes: HashMap::new(), layers: Vec::new() })
    }

    /// Adds a node; `None` if it does not fit the others.
    pub fn push(&mut self, saved: SavedNode<'_>) -> Option<()> {
        let level = saved.layers.len().checked_sub(1).filter(|level| *level <= MAX_LEVEL)?;
        let is_new = self.set.find(saved.element).is_none() && !self.nodes.contains_key(&saved.id);
        (saved.id <= MAX_ID).then_some(())?;
        let shape = self.set.graph.shape;
        let vector_bytes = shape.quantization.bytes(shape.dimensions as usize);
        (is_new && saved.vector.bytes.len() == vector_bytes).then_some(())?;
        let mut node = Node::new(saved.id, saved.element, saved.attributes, saved.vector.into_owned(), level);
        for (place, layer) in saved.layers.iter().enumerate() {
            let usual = shape.room(place) as u64;
            let is_in_bounds =
                layer.room <= MAX_ROOM * u64::from(shape.links) && layer.links.len() as u64 <= layer.room;
            let has_worst = |(_, worst): (f32, u32)| layer.links.is_empty() || (worst as usize) < layer.links.len();
            (is_in_bounds && layer.worst.is_none_or(has_worst)).then_some(())?;
            let loaded = node.layer_mut(place);
            loaded.extra_room = u16::try_from(layer.room.saturating_sub(usual)).ok()?;
            if let Some((distance, worst)) = layer.worst {
                // Without links, any place is possible, and none is looked at.
                loaded.worst = (distance, u16::try_from(worst).unwrap_or_default());
            }
        }
        let node = self.set.graph.add(node);
        self.set.index(node);
        self.set.attributed += usize::from(saved.attributes.is_some());
        if self.set.graph.entry.is_none() || level > self.set.graph.max_level() {
            self.set.graph.entry = Some(node);
        }
        self.nodes.insert(saved.id, node);
        self.layers.push((node, saved.layers));
        Some(())
    }

    /// The set; `None` if a link leads nowhere, or is there twice, or one way only.
    pub fn finish(mut self) -> Option<VectorSet> {
        let mut ways = HashSet::new();
        for (node, layers) in self.layers {
            for (layer, saved) in layers.into_iter().enumerate() {
                for id in saved.links {
                    let link = *self.nodes.get(&id)?;
                    let is_there = link != node && self.set.graph.node(link).level() >= layer;
                    (is_there && ways.insert((layer, node, link))).then_some(())?;
                    self.set.graph.push_link(node, layer, link);
                }
                if saved.worst.is_none() {
                    self.set.graph.find_worst(node, layer);
                }
            }
        }
        ways.iter().all(|&(layer, node, link)| ways.contains(&(layer, link, node))).then_some(())?;
        if self.set.graph.last_id > MAX_ID / 2 {
            // Later ids would be too high for another load.
            self.set.graph.number_anew();
        }
        Some(self.set)
    }
}
