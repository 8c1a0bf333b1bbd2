//! Registers side by side, 6 bits each, the lowest bits of the first byte first.
//!
//! Registers are spread to a byte each ([`raise_to_six_bits`]) and packed again ([`pack_six_bits`]) many at a time, so
//! sketches are read and written without access to single registers.

use std::array;

use crate::value::simd::{count_each, pack_six_bits, raise_to_six_bits};

use super::{Histogram, REGISTERS, Registers};

const REGISTER_BITS: usize = 6;
const MASK: u16 = (1 << REGISTER_BITS) - 1;
/// The number of values whose registers are counted in one pass.
const COUNTED: usize = 4;
/// The number of bytes of all registers.
pub(super) const BYTES: usize = REGISTERS * REGISTER_BITS / 8;

/// The position of a register: its first byte, and how many bits of that byte belong to the register before.
fn place(index: usize) -> (usize, usize) {
    let bit = index * REGISTER_BITS;
    (bit / 8, bit % 8)
}

/// The two bytes that hold a register; behind the last byte, a zero.
fn window(bytes: &[u8], first: usize) -> u16 {
    u16::from_le_bytes([bytes[first], bytes.get(first + 1).copied().unwrap_or(0)])
}

/// Raises a register; false if its value is as great already.
pub(super) fn raise(bytes: &mut [u8], index: usize, value: u8) -> bool {
    let (first, shift) = place(index);
    let before = window(bytes, first);
    if before >> shift & MASK >= u16::from(value) {
        return false;
    }
    let [low, high] = (before & !(MASK << shift) | u16::from(value) << shift).to_le_bytes();
    bytes[first] = low;
    if let Some(byte) = bytes.get_mut(first + 1) {
        *byte = high;
    }
    true
}

/// Counts how many registers hold each value.
pub(super) fn histogram(bytes: &[u8]) -> Histogram {
    let mut registers = [0; REGISTERS];
    merge_into(bytes, &mut registers);
    histogram_of(&registers)
}

/// Counts how many registers hold each value, where each register has a byte and no value is above 63.
pub(super) fn histogram_of(registers: &Registers) -> Histogram {
    let mut histogram: Histogram = [0; 64];
    let mut left = REGISTERS as u32;
    // The values of a sketch are close together, so after a few passes all registers are counted.
    for (first, counts) in (0..).step_by(COUNTED).zip(histogram.as_chunks_mut::<COUNTED>().0) {
        *counts = count_each(registers, array::from_fn(|index| first + index as u8));
        left -= counts.iter().sum::<u32>();
        if left == 0 {
            break;
        }
    }
    histogram
}

/// Raises `registers` to the registers in `bytes` where these are greater.
pub(super) fn merge_into(bytes: &[u8], registers: &mut Registers) {
    raise_to_six_bits(registers, bytes);
}

/// Writes all registers.
pub(super) fn write(bytes: &mut [u8], registers: &Registers) {
    pack_six_bits(bytes, registers);
}
