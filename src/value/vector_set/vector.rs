//! A vector of a vector set: its direction, quantized, and its length.
//!
//! The distance of two vectors is 1 minus the cosine of their angle: 0 for the same direction, 2 for opposite ones. So
//! a vector is normalized first, and its length is kept beside it. Distances are equal to Redis's to the last digit,
//! so sums of floats are taken in its order.

use crate::value::simd::{dot_product, hamming_distance};

/// The largest number of a byte with a sign, to which the largest component is scaled.
const MAX_BYTE: f32 = 127.0;

/// The greatest distance: that of opposite directions.
const OPPOSITE: f32 = 2.0;

/// The form in which the components of a vector are stored, in the order of their numbers in RDB files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quantization {
    /// A float of 32 bits each.
    None,
    /// A byte each, with a sign, in proportion to the largest.
    #[default]
    Q8,
    /// A bit each: whether it is positive.
    Binary,
}

impl Quantization {
    /// All of them, in their order.
    pub const ALL: [Quantization; 3] = [Quantization::None, Quantization::Q8, Quantization::Binary];

    /// The name that VINFO and VEMB show.
    pub fn name(self) -> &'static str {
        match self {
            Quantization::None => "f32",
            Quantization::Q8 => "int8",
            Quantization::Binary => "bin",
        }
    }

    /// The bytes of a vector of that many dimensions.
    pub fn bytes(self, dimensions: usize) -> usize {
        match self {
            Quantization::None => dimensions.saturating_mul(4),
            Quantization::Q8 => dimensions,
            Quantization::Binary => dimensions.div_ceil(64) * 8,
        }
    }
}

/// A quantized vector.
#[derive(Clone, Debug)]
pub struct Vector {
    /// The components: floats and bits are stored low byte first.
    pub bytes: Box<[u8]>,
    /// The length of the vector before it was normalized; 1 if it has only zeros, or components whose squares are too
    /// small for a float.
    pub norm: f32,
    /// For [`Quantization::Q8`] the largest magnitude of a component, which is stored as 127 or -127; else 0.
    pub range: f32,
}

impl Vector {
    /// Quantizes the components of a vector.
    pub fn of(components: &[f32], quantization: Quantization) -> Vector {
        let mut components = components.to_vec();
        let norm = normalize(&mut components);
        let (bytes, range) = match quantization {
            Quantization::None => (components.iter().flat_map(|component| component.to_le_bytes()).collect(), 0.0),
            Quantization::Q8 => to_bytes(&components),
            Quantization::Binary => (to_bits(&components), 0.0),
        };
        Vector { bytes, norm, range }
    }

    /// The components with the length that they had, as exact as their quantization allows. A binary vector has only
    /// signs, so its components are 1 and -1.
    pub fn components(&self, quantization: Quantization, dimensions: usize) -> Vec<f32> {
        match quantization {
            Quantization::None => self.floats().map(|component| component * self.norm).collect(),
            Quantization::Q8 => {
                let components = self.bytes.iter().map(|byte| f32::from(byte.cast_signed()) * self.range / MAX_BYTE);
                components.map(|component| component * self.norm).collect()
            }
            Quantization::Binary => {
                let is_positive = |place: usize| self.bytes[place / 8] >> (place % 8) & 1 == 1;
                (0..dimensions).map(|place| if is_positive(place) { 1.0 } else { -1.0 }).collect()
            }
        }
    }

    /// The distance of two vectors that were quantized in the same way.
    pub fn distance(&self, other: &Vector, quantization: Quantization, dimensions: usize) -> f32 {
        match quantization {
            Quantization::None => 1.0 - self.dot_product_of_floats(other),
            Quantization::Q8 if self.range == 0.0 || other.range == 0.0 => 1.0,
            Quantization::Q8 => {
                let scale = (self.range / MAX_BYTE) * (other.range / MAX_BYTE);
                (1.0 - dot_product(&self.bytes, &other.bytes) as f32 * scale).clamp(0.0, OPPOSITE)
            }
            Quantization::Binary => hamming_distance(&self.bytes, &other.bytes) as f32 * OPPOSITE / dimensions as f32,
        }
    }

    fn floats(&self) -> impl Iterator<Item = f32> {
        self.bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
    }

    /// The first and the last four of each eight products have a sum of their own.
    fn dot_product_of_floats(&self, other: &Vector) -> f32 {
        const EIGHT: usize = 8 * size_of::<f32>();
        let ((ones, one), (others, other)) = (self.bytes.as_chunks::<EIGHT>(), other.bytes.as_chunks::<EIGHT>());
        let (mut first, mut second) = (0.0, 0.0);
        for (one, other) in ones.iter().zip(others) {
            let [a, b, c, d, e, f, g, h] = products(one.as_chunks().0, other.as_chunks().0);
            first += a + b + c + d;
            second += e + f + g + h;
        }
        for (one, other) in one.as_chunks().0.iter().zip(other.as_chunks().0) {
            first += f32::from_le_bytes(*one) * f32::from_le_bytes(*other);
        }
        first + second
    }
}

/// The products of eight floats each.
#[inline]
fn products(one: &[[u8; 4]], other: &[[u8; 4]]) -> [f32; 8] {
    let mut products = [0.0; 8];
    for (product, (one, other)) in products.iter_mut().zip(one.iter().zip(other)) {
        *product = f32::from_le_bytes(*one) * f32::from_le_bytes(*other);
    }
    products
}

/// Scales a vector to the length 1; returns the length that it had, or 1 if it has only zeros.
fn normalize(components: &mut [f32]) -> f32 {
    let (fours, rest) = components.as_chunks::<4>();
    let in_fours = fours.iter().fold(0.0, |sum, [a, b, c, d]| sum + (a * a + b * b + c * c + d * d));
    let norm = rest.iter().fold(in_fours, |sum, component| sum + component * component).sqrt();
    if norm == 0.0 {
        return 1.0;
    }
    components.iter_mut().for_each(|component| *component /= norm);
    norm
}

/// The components as bytes, and the magnitude of the largest.
fn to_bytes(components: &[f32]) -> (Box<[u8]>, f32) {
    let range = components.iter().fold(0.0, |largest: f32, component| largest.max(component.abs()));
    let scale = if range == 0.0 { 0.0 } else { MAX_BYTE / range };
    (components.iter().map(|component| ((component * scale).round() as i8).cast_unsigned()).collect(), range)
}

/// The components as bits, filled up to whole words.
fn to_bits(components: &[f32]) -> Box<[u8]> {
    let mut bytes = vec![0; Quantization::Binary.bytes(components.len())];
    for (place, component) in components.iter().enumerate() {
        bytes[place / 8] |= u8::from(*component > 0.0) << (place % 8);
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(one: &[f32], other: &[f32], quantization: Quantization) -> f32 {
        let [one_vector, other_vector] = [one, other].map(|components| Vector::of(components, quantization));
        one_vector.distance(&other_vector, quantization, one.len())
    }

    /// Numbers that Redis 8.0.6 answers to VSIM: its similarity is 1 - distance / 2.
    #[test]
    fn distances_are_those_of_redis() {
        let similarity = |one: &[f32], other: &[f32]| 1.0 - f64::from(distance(one, other, Quantization::Q8)) / 2.0;
        assert_eq!(similarity(&[1.0, 2.0], &[1.0, 2.0]), 0.998_431_354_761_123_7);
        assert_eq!(similarity(&[1.0, 2.0], &[1.0, 3.0]), 0.993_865_519_762_039_2);
    }

    #[test]
    fn opposite_directions_are_two_apart_whatever_the_lengths() {
        for quantization in Quantization::ALL {
            let one: Vec<f32> = (0..70).map(|place| if place % 3 == 0 { -1.0 } else { 1.0 }).collect();
            let opposite: Vec<f32> = one.iter().map(|component| component * -5.0).collect();
            assert!((distance(&one, &opposite, quantization) - 2.0).abs() < 1e-5, "{quantization:?}");
            assert!(distance(&one, &one, quantization).abs() < 1e-5, "{quantization:?}");
        }
    }

    #[test]
    fn components_come_back_as_exact_as_their_quantization() {
        let components = [1.0, -2.0, 0.5];
        let read = |quantization| Vector::of(&components, quantization).components(quantization, 3);
        assert!(
            read(Quantization::None).iter().zip(components).all(|(read, component)| (read - component).abs() < 1e-6)
        );
        assert!(read(Quantization::Q8).iter().zip(components).all(|(read, component)| (read - component).abs() < 0.01));
        assert_eq!(read(Quantization::Binary), [1.0, -1.0, 1.0]);
    }

    #[test]
    fn zeros_have_no_direction_and_numbers_without_bounds_do_no_harm() {
        assert_eq!(distance(&[0.0, 0.0], &[1.0, 2.0], Quantization::Q8), 1.0);
        assert_eq!(distance(&[0.0, 0.0], &[0.0, 0.0], Quantization::None), 1.0);
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE] {
            for quantization in Quantization::ALL {
                _ = distance(&[odd, 1.0, 0.0], &[1.0, odd, -1.0], quantization);
            }
        }
    }
}
