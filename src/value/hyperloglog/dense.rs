//! Registers side by side, 6 bits each, the lowest bits of the first byte first.
//!
//! Eight registers are six bytes. Taken as one word they are spread to a byte each, and packed again, in three steps of
//! shifts and masks, so whole sketches are read and written without a look at single registers.

use super::{Histogram, REGISTERS, Registers};

const REGISTER_BITS: usize = 6;
const MASK: u16 = (1 << REGISTER_BITS) - 1;
/// The bytes of all registers.
pub(super) const BYTES: usize = REGISTERS * REGISTER_BITS / 8;

/// The place of a register: its first byte, and how many bits of that belong to the one before.
fn place(index: usize) -> (usize, usize) {
    let bit = index * REGISTER_BITS;
    (bit / 8, bit % 8)
}

/// The two bytes that a register stands in; the last one has none behind it.
fn window(bytes: &[u8], first: usize) -> u16 {
    u16::from_le_bytes([bytes[first], bytes.get(first + 1).copied().unwrap_or(0)])
}

/// Raises a register; false if it is as great already.
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

/// How many registers hold each value.
pub(super) fn histogram(bytes: &[u8]) -> Histogram {
    // Two of them, as most registers hold one of a few values and would wait for each other.
    let mut halves: [Histogram; 2] = [[0; 64]; 2];
    for group in bytes.as_chunks::<6>().0 {
        let [first, second] = &mut halves;
        for pair in spread(*group).as_chunks::<2>().0 {
            first[usize::from(pair[0] % 64)] += 1;
            second[usize::from(pair[1] % 64)] += 1;
        }
    }
    std::array::from_fn(|value| halves[0][value] + halves[1][value])
}

/// Raises `registers` to these where these are greater.
pub(super) fn merge_into(bytes: &[u8], registers: &mut Registers) {
    let groups = registers.as_chunks_mut::<8>().0;
    for (eight, group) in groups.iter_mut().zip(bytes.as_chunks::<6>().0) {
        let values = spread(*group);
        eight.iter_mut().zip(values).for_each(|(register, value)| *register = (*register).max(value));
    }
}

/// Writes all registers.
pub(super) fn write(bytes: &mut [u8], registers: &Registers) {
    let groups = bytes.as_chunks_mut::<6>().0;
    for (group, eight) in groups.iter_mut().zip(registers.as_chunks::<8>().0) {
        *group = packed(*eight);
    }
}

/// Eight registers from their six bytes: halves, quarters and eighths move apart.
fn spread(group: [u8; 6]) -> [u8; 8] {
    let [a, b, c, d, e, f] = group;
    let bits = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
    let halves = bits & 0x00ff_ffff | (bits & 0xffff_ff00_0000) << 8;
    let quarters = halves & 0x0000_0fff_0000_0fff | (halves & 0x00ff_f000_00ff_f000) << 4;
    (quarters & 0x003f_003f_003f_003f | (quarters & 0x0fc0_0fc0_0fc0_0fc0) << 2).to_le_bytes()
}

/// The six bytes of eight registers.
fn packed(eight: [u8; 8]) -> [u8; 6] {
    let bits = u64::from_le_bytes(eight) & 0x3f3f_3f3f_3f3f_3f3f;
    let quarters = bits & 0x003f_003f_003f_003f | (bits & 0x3f00_3f00_3f00_3f00) >> 2;
    let halves = quarters & 0x0000_0fff_0000_0fff | (quarters & 0x0fff_0000_0fff_0000) >> 4;
    let [a, b, c, d, e, f, _, _] = (halves & 0x00ff_ffff | (halves & 0x00ff_ffff_0000_0000) >> 8).to_le_bytes();
    [a, b, c, d, e, f]
}
