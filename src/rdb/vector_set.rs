//! The form of vector sets: that of a module's type, in which a number before each field names its kind.
//!
//! ```text
//! value  = id, dimensions, nodes, quantization | M << 8, flags, [input dimensions, projection], node ..., end
//! node   = element, [attributes], vector, number of parameters, parameter ...
//! parameters = id, level | version << 24, layer ..., norm | range << 32
//! layer  = number of links, room, id ..., place of the farthest link | its distance << 32
//! ```
//!
//! All are unsigned numbers but elements, attributes, vectors and the projection, which are texts; floats are numbers
//! by their bits.
//!
//! Source: payloads that Redis 8.0.6 wrote.

use super::text::{Reader, Sink, Writer};
use crate::value::VectorSet;
use crate::value::vector_set::{LINKS, Loader, Parameters, Quantization, SavedLayer, SavedNode, Vector};
use std::borrow::Cow;
use std::io;

/// The name of the type, and its version of the form: nine letters of six bits, and ten bits.
pub(super) const ID: u64 = module_id(b"vectorset", 0);

/// The characters of names of types; the place of each is its number.
pub(super) const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The flags of a value.
const HAS_PROJECTION: u64 = 1;
const HAS_ATTRIBUTES: u64 = 1 << 1;

/// The version of the parameters, which since 1 have the farthest links.
const PARAMETERS_VERSION: u64 = 1;

/// The kinds of fields.
mod field {
    pub(super) const END: u64 = 0;
    pub(super) const SIGNED: u64 = 1;
    pub(super) const UNSIGNED: u64 = 2;
    pub(super) const FLOAT: u64 = 3;
    pub(super) const DOUBLE: u64 = 4;
    pub(super) const TEXT: u64 = 5;
}

/// The id of a module's type.
const fn module_id(name: &[u8; 9], version: u64) -> u64 {
    let (mut id, mut place) = (0, 0);
    while place < name.len() {
        let mut letter = 0;
        while LETTERS[letter] != name[place] {
            letter += 1;
        }
        id = id << 6 | letter as u64;
        place += 1;
    }
    id << 10 | version
}

impl Writer {
    pub(super) fn vector_set(&mut self, set: &VectorSet, sink: &mut Sink<'_>) -> io::Result<()> {
        let parameters = set.parameters();
        let has_attributes = set.attributed() > 0;
        self.length(ID);
        self.unsigned(set.dimensions().into());
        self.unsigned(set.len() as u64);
        self.unsigned(parameters.quantization as u64 | u64::from(parameters.links) << 8);
        let projection_flag = if parameters.reduced.is_some() { HAS_PROJECTION } else { 0 };
        self.unsigned(projection_flag | if has_attributes { HAS_ATTRIBUTES } else { 0 });
        if parameters.reduced.is_some() {
            self.unsigned(parameters.dimensions.into());
            self.text_field(&set.factors().flat_map(f32::to_le_bytes).collect::<Vec<u8>>());
        }
        for node in set.saved_nodes() {
            self.vector_set_node(&node, has_attributes);
            self.pass_on(sink)?;
        }
        self.length(field::END);
        Ok(())
    }

    fn vector_set_node(&mut self, node: &SavedNode<'_>, has_attributes: bool) {
        self.text_field(node.element);
        if has_attributes {
            self.text_field(node.attributes.unwrap_or_default());
        }
        self.text_field(&node.vector.bytes);
        let of_layers: usize = node.layers.iter().map(|layer| layer.links.len() + 3).sum();
        self.unsigned(of_layers as u64 + 3);
        self.unsigned(node.id);
        let level = node.layers.len() as u64 - 1;
        self.unsigned(level | PARAMETERS_VERSION << 24);
        for layer in &node.layers {
            self.unsigned(layer.links.len() as u64);
            self.unsigned(layer.room);
            layer.links.iter().for_each(|&link| self.unsigned(link));
            let (distance, place) = layer.worst.unwrap_or_default();
            self.unsigned(joined(place, distance));
        }
        self.unsigned(joined(node.vector.norm.to_bits(), node.vector.range));
    }

    fn unsigned(&mut self, number: u64) {
        self.length(field::UNSIGNED);
        self.length(number);
    }

    fn text_field(&mut self, text: &[u8]) {
        self.length(field::TEXT);
        self.text(text);
    }
}

/// A number whose upper half is a float.
fn joined(low: u32, high: f32) -> u64 {
    u64::from(high.to_bits()) << 32 | u64::from(low)
}

/// The upper half of a number as a float.
fn high_float(number: u64) -> f32 {
    f32::from_bits((number >> 32) as u32)
}

impl<'p> Reader<'p> {
    /// Reads a vector set behind its id.
    pub(super) fn vector_set(&mut self) -> Option<VectorSet> {
        let dimensions = u32::try_from(self.unsigned()?).ok()?;
        let nodes = self.unsigned()?;
        let (shape, flags) = (self.unsigned()?, self.unsigned()?);
        let quantization = *Quantization::ALL.get((shape & 0xff) as usize)?;
        // Early versions had no choice of M.
        let links = match (shape >> 8 & 0xffff) as u16 {
            0 => 16,
            links => links.min(*LINKS.end()),
        };
        let mut parameters = Parameters { dimensions, reduced: None, quantization, links };
        let mut factors = Vec::new();
        if flags & HAS_PROJECTION != 0 {
            parameters =
                Parameters { dimensions: self.unsigned()?.try_into().ok()?, reduced: Some(dimensions), ..parameters };
            let bytes = self.text_field()?;
            let (whole, rest) = bytes.as_chunks();
            rest.is_empty().then_some(())?;
            factors = whole.iter().map(|factor| f32::from_le_bytes(*factor)).collect();
        }
        let mut loader = Loader::new(&parameters, factors)?;
        for _ in 0..nodes {
            self.vector_set_node(&mut loader, flags & HAS_ATTRIBUTES != 0)?;
        }
        (self.length()? == field::END).then_some(())?;
        loader.finish()
    }

    fn vector_set_node(&mut self, loader: &mut Loader, has_attributes: bool) -> Option<()> {
        let element = self.text_field()?;
        let attributes = if has_attributes { Some(self.text_field()?) } else { None };
        let attributes = attributes.as_deref().filter(|attributes| !attributes.is_empty());
        let bytes = self.text_field()?.into_owned().into();
        let mut left = self.unsigned()?;
        let mut parameter = |reader: &mut Self| {
            left = left.checked_sub(1)?;
            reader.unsigned()
        };
        let (id, level_and_version) = (parameter(self)?, parameter(self)?);
        let (level, version) = (level_and_version & 0xff, level_and_version >> 24 & 0xff);
        (version <= PARAMETERS_VERSION).then_some(())?;
        let mut layers = Vec::new();
        for _ in 0..=level {
            let (count, room) = (parameter(self)?, parameter(self)?);
            let links = (0..count).map(|_| parameter(self)).collect::<Option<Vec<u64>>>()?;
            self.take_room(1, links.len() * size_of::<u64>())?;
            let worst = if version == PARAMETERS_VERSION { Some(parameter(self)?) } else { None };
            let worst = worst.map(|worst| (high_float(worst), worst as u32));
            layers.push(SavedLayer { links, room, worst });
        }
        let norm_and_range = parameter(self)?;
        let norm = f32::from_bits(norm_and_range as u32);
        let vector = Vector { bytes, norm, range: high_float(norm_and_range) };
        (left == 0).then_some(())?;
        loader.push(SavedNode { id, element: &element, attributes, vector: Cow::Owned(vector), layers })
    }

    fn unsigned(&mut self) -> Option<u64> {
        (self.length()? == field::UNSIGNED).then(|| self.length())?
    }

    fn text_field(&mut self) -> Option<Cow<'p, [u8]>> {
        (self.length()? == field::TEXT).then(|| self.text())?
    }

    /// Skips a value of a module's type, with its id.
    pub(super) fn skip_module_value(&mut self) -> Option<()> {
        self.length()?;
        loop {
            match self.length()? {
                field::END => return Some(()),
                field::SIGNED | field::UNSIGNED => self.length().map(drop)?,
                field::FLOAT => self.bytes(4).map(drop)?,
                field::DOUBLE => self.bytes(8).map(drop)?,
                field::TEXT => self.skip_text()?,
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::joined;
    use crate::rdb::{Forms, dump, restore, without_footer};
    use crate::value::vector_set::{Loader, Parameters, Quantization, SavedLayer, SavedNode, Search, Vector};
    use crate::value::{Value, VectorSet};
    use fastrand::Rng;
    use std::borrow::Cow;

    const DIMENSIONS: u32 = 6;

    fn set_with(reduced: Option<u32>, quantization: Quantization, generator: &mut Rng) -> VectorSet {
        let mut set = VectorSet::with(&Parameters { dimensions: DIMENSIONS, reduced, quantization, links: 4 }, 9, 0);
        for number in 0..40_u8 {
            let vector: Vec<f32> = (0..DIMENSIONS).map(|_| generator.f32() - 0.5).collect();
            let attributes = number.is_multiple_of(3).then_some(&b"{}"[..]);
            set.insert(&[number], &set.project(&vector), attributes, 30, generator);
        }
        set
    }

    fn read(payload: &[u8]) -> Option<VectorSet> {
        match restore(payload, &Forms::default(), 1 << 20) {
            Ok(Value::VectorSet(set)) => Some(*set),
            _ => None,
        }
    }

    fn search(set: &VectorSet) -> Vec<Vec<u8>> {
        let query = vec![1.0; set.dimensions() as usize];
        let found = set.nearest(&query, &Search { effort: 10, ..Search::default() });
        found.into_iter().map(|(element, _)| element.name.to_vec()).collect()
    }

    #[test]
    fn a_set_comes_back_and_a_damaged_one_is_refused_or_another_set() {
        let mut generator = Rng::with_seed(11);
        for (reduced, quantization) in
            [(None, Quantization::Q8), (Some(3), Quantization::None), (None, Quantization::Binary)]
        {
            let set = set_with(reduced, quantization, &mut generator);
            let payload = dump(Value::VectorSet(set.clone().into()).view(), false);
            let payload = without_footer(&payload, true).expect("it has a footer");
            let whole = read(payload).expect("it is whole");
            let facts =
                |set: &VectorSet| (set.len(), set.dimensions(), set.input_dimensions(), set.links(), set.attributed());
            assert_eq!(facts(&whole), facts(&set));
            for element in set.iter() {
                let other = whole.get(element.name).expect("it was written");
                assert_eq!((&other.vector.bytes, other.attributes), (&element.vector.bytes, element.attributes));
                assert_eq!(whole.links_of(element.name), set.links_of(element.name));
            }
            assert_eq!(search(&whole), search(&set));
            for place in 0..payload.len() {
                assert!(read(&payload[..place]).is_none(), "{place}");
                let mut damaged = payload.to_vec();
                damaged[place] ^= 1 << generator.u8(..8);
                if let Some(other) = read(&damaged) {
                    assert!(other.iter().all(|element| other.get(element.name).is_some()));
                    search(&other);
                    take_apart(other, &mut generator);
                }
            }
        }
    }

    fn payload_of(set: VectorSet) -> Vec<u8> {
        let payload = dump(Value::VectorSet(set.into()).view(), false);
        without_footer(&payload, true).expect("it has a footer").to_vec()
    }

    /// As a file of the first version of the parameters.
    #[test]
    fn the_farthest_links_are_found_if_they_are_not_saved() {
        let set = set_with(None, Quantization::Q8, &mut Rng::with_seed(3));
        let mut loader = Loader::new(&set.parameters(), Vec::new()).expect("the parameters are possible");
        for mut node in set.saved_nodes() {
            node.layers.iter_mut().for_each(|layer| layer.worst = None);
            loader.push(node).expect("it is whole");
        }
        let loaded = loader.finish().expect("all links go both ways");
        assert_eq!(payload_of(loaded), payload_of(set));
    }

    /// Redis 8.0.6 refuses a place behind the links, if there are any, and saves what it has loaded.
    #[test]
    fn the_farthest_link_is_one_of_the_links_and_its_distance_as_it_was_saved() {
        let parameters = Parameters { dimensions: 2, reduced: None, quantization: Quantization::Q8, links: 4 };
        let payload_with = |links: u32, place: u32, distance: f32| {
            let mut loader = Loader::new(&parameters, Vec::new()).expect("the parameters are possible");
            let ids: Vec<u64> = (1..=u64::from(links) + 1).collect();
            for &id in &ids {
                let vector = Cow::Owned(Vector::of(&[1.0, id as f32], Quantization::Q8));
                let links = ids.iter().copied().filter(|other| *other != id).collect();
                let layers = vec![SavedLayer { links, room: 8, worst: Some((0.5, 0)) }];
                let element = &id.to_le_bytes();
                loader.push(SavedNode { id, element, attributes: None, vector, layers }).expect("it is whole");
            }
            let payload = payload_of(loader.finish().expect("all links go both ways"));
            let (saved, other) = (joined(0, 0.5).to_be_bytes(), joined(place, distance).to_be_bytes());
            let start = payload.windows(8).position(|bytes| bytes == saved).expect("it has the farthest link");
            [&payload[..start], &other, &payload[start + 8..]].concat()
        };
        for (links, place, distance) in
            [(2, 0, 0.25), (2, 1, 1e30), (2, 1, f32::NAN), (2, 1, f32::NEG_INFINITY), (0, 1, 0.25)]
        {
            let payload = payload_with(links, place, distance);
            let loaded = read(&payload).expect("the place is one of the links");
            assert_eq!(payload_of(loaded), payload, "{links} {place} {distance}");
        }
        for (links, place) in [(2, 2), (2, 1 << 16), (2, u32::MAX), (1, 1)] {
            assert!(read(&payload_with(links, place, 0.5)).is_none(), "{links} {place}");
        }
        assert!(read(&payload_with(0, u32::MAX, 0.5)).is_some());
    }

    /// Adds an element, and removes all in random order.
    fn take_apart(mut set: VectorSet, generator: &mut Rng) {
        set.insert(b"new", &vec![1.0; set.dimensions() as usize], None, 10, generator);
        let mut names: Vec<Vec<u8>> = set.iter().map(|element| element.name.to_vec()).collect();
        generator.shuffle(&mut names);
        names.iter().for_each(|name| assert!(set.remove(name)));
    }

    /// Ids that are too high for a load go on from 1.
    #[test]
    fn a_set_with_high_ids_can_be_saved_again() {
        let parameters = Parameters { dimensions: DIMENSIONS, reduced: None, quantization: Quantization::Q8, links: 4 };
        let mut loader = Loader::new(&parameters, Vec::new()).expect("the parameters are possible");
        let vector = Cow::Owned(Vector::of(&[1.0; DIMENSIONS as usize], Quantization::Q8));
        let layers = vec![SavedLayer { links: Vec::new(), room: 8, worst: None }];
        let node = SavedNode { id: i64::MAX as u64 / 2, element: b"old", attributes: None, vector, layers };
        loader.push(node).expect("it is whole");
        let mut set = loader.finish().expect("there are no links");
        set.insert(b"new", &[2.0; DIMENSIONS as usize], None, 10, &mut Rng::with_seed(0));
        let payload = dump(Value::VectorSet(set.into()).view(), false);
        let loaded = read(without_footer(&payload, true).expect("it has a footer")).expect("it is whole");
        assert_eq!((loaded.len(), loaded.last_element_id()), (2, 2));
    }

    /// Links that no insertion would have made, but that go both ways; the farthest ones and their distances are
    /// anything.
    #[test]
    fn a_set_with_any_links_takes_every_change() {
        for seed in 0..2_000 {
            let mut generator = Rng::with_seed(seed);
            let parameters = Parameters {
                dimensions: DIMENSIONS,
                reduced: None,
                quantization: Quantization::Q8,
                links: generator.u16(1..6),
            };
            let count = generator.usize(1..12);
            let levels: Vec<usize> = (0..count).map(|_| generator.usize(..4)).collect();
            let mut links: Vec<Vec<Vec<u64>>> = levels.iter().map(|level| vec![Vec::new(); level + 1]).collect();
            for (one, other) in (0..count).flat_map(|one| (0..one).map(move |other| (one, other))) {
                let [one_links, other_links] = links.get_disjoint_mut([one, other]).expect("they are two");
                for (one_links, other_links) in one_links.iter_mut().zip(other_links) {
                    if generator.u8(..3) == 0 {
                        one_links.push(other as u64);
                        other_links.push(one as u64);
                    }
                }
            }
            let mut loader = Loader::new(&parameters, Vec::new()).expect("the parameters are possible");
            let all = (0..).zip(links).try_for_each(|(id, links): (u64, Vec<Vec<u64>>)| {
                let vector: Vec<f32> = (0..DIMENSIONS).map(|_| generator.f32() - 0.5).collect();
                let layer = |links: Vec<u64>| {
                    let worst = (f32::from_bits(generator.u32(..)), generator.u32(..links.len().max(1) as u32));
                    let worst = generator.bool().then_some(worst);
                    SavedLayer { links, room: 4 * u64::from(parameters.links), worst }
                };
                let layers = links.into_iter().map(layer).collect();
                let vector = Cow::Owned(Vector::of(&vector, parameters.quantization));
                loader.push(SavedNode { id, element: &id.to_le_bytes(), attributes: None, vector, layers })
            });
            // More links than there is room for are refused.
            if all.is_some() {
                take_apart(loader.finish().expect("all links go both ways"), &mut generator);
            }
        }
    }
}
