//! Strings as bit arrays: the first bit is the highest bit of the first byte.
//!
//! This module knows no key and no argument: bit offsets start at 0, ranges are within the string, and bits behind a
//! string's end are zero. [`field`] reads and writes integers of any width at any bit offset.
//!
//! Costs: whatever reads many bits takes whole words. Bits are counted with wide instructions ([`count_ones`]);
//! [`find`] skips equal bytes 64 at a time; [`combine`] is a plain loop that the compiler turns into vector
//! instructions, over parts that the processor's caches hold.

pub mod field;

use std::ops::Range;

pub use crate::value::simd::count_ones;

/// The operation by which BITOP combines several strings into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Bits that are set in all strings.
    And,
    /// Bits that are set in any string.
    Or,
    /// Bits that are set in an odd number of strings.
    Xor,
    /// Bits that are not set in the first string.
    Not,
}

/// The bit at an offset.
pub fn get(bytes: &[u8], place: u64) -> bool {
    byte_of(place).and_then(|index| bytes.get(index)).is_some_and(|byte| byte & mask(place) != 0)
}

/// Sets the bit at an offset, and returns its previous value. Behind the end, nothing happens.
pub fn set(bytes: &mut [u8], place: u64, bit: bool) -> bool {
    let Some(byte) = byte_of(place).and_then(|index| bytes.get_mut(index)) else { return false };
    let before = *byte & mask(place) != 0;
    if bit {
        *byte |= mask(place);
    } else {
        *byte &= !mask(place);
    }
    before
}

fn byte_of(place: u64) -> Option<usize> {
    usize::try_from(place / 8).ok()
}

fn mask(place: u64) -> u8 {
    0x80 >> (place % 8)
}

/// The bytes that hold a range of bits, and the masks of the bits that count in the first and the last of them.
/// `None` if the range has no bits or is not within the string.
fn cut(bytes: &[u8], range: Range<u64>) -> Option<(&[u8], u8, u8)> {
    let last = range.end.checked_sub(1).filter(|&last| last >= range.start)?;
    let part = bytes.get(byte_of(range.start)?..=byte_of(last)?)?;
    Some((part, 0xff >> (range.start % 8), 0xff << (7 - last % 8)))
}

/// The number of bits of a range that are set; 0 if the range is not within the string.
pub fn count_in(bytes: &[u8], range: Range<u64>) -> u64 {
    let Some((part, first, last)) = cut(bytes, range) else { return 0 };
    let outside = match part {
        [] => 0,
        [only] => (only & !(first & last)).count_ones(),
        [head, .., tail] => (head & !first).count_ones() + (tail & !last).count_ones(),
    };
    count_ones(part) - u64::from(outside)
}

/// The first offset in a range with a bit of that value; none if the range is not within the string.
pub fn find(bytes: &[u8], range: Range<u64>, bit: bool) -> Option<u64> {
    let (part, first, last) = cut(bytes, range.clone())?;
    // With the bits of the other value turned to zeros, the first one is what is searched for.
    let others = if bit { 0 } else { 0xff };
    let start = range.start - range.start % 8;
    let (head, behind) = part.split_first()?;
    let in_head = (head ^ others) & first & if behind.is_empty() { last } else { 0xff };
    if in_head != 0 {
        return Some(start + u64::from(in_head.leading_zeros()));
    }
    let passed = run_of(behind, others);
    let found = behind.get(passed)? ^ others;
    let place = start + 8 * (passed as u64 + 1) + u64::from(found.leading_zeros());
    (place < range.end).then_some(place)
}

/// The number of bytes at the front that are `filler`.
fn run_of(bytes: &[u8], filler: u8) -> usize {
    let (blocks, _) = bytes.as_chunks::<64>();
    let differs = |block: &[u8; 64]| block.iter().fold(0, |differences, byte| differences | (byte ^ filler)) != 0;
    let passed = 64 * blocks.iter().take_while(|block| !differs(block)).count();
    passed + bytes[passed..].iter().take_while(|byte| **byte == filler).count()
}

/// The bytes that are combined before the next ones: few enough to stay in the processor's first cache.
const PART_BYTES: usize = 8 << 10;

/// Combines strings into one that is as long as the longest of them.
pub fn combine(operation: Operation, sources: &[&[u8]]) -> Vec<u8> {
    let Some((first, others)) = sources.split_first() else { return Vec::new() };
    let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    let mut result = Vec::with_capacity(longest);
    for start in (0..longest).step_by(PART_BYTES) {
        let end = longest.min(start + PART_BYTES);
        let part_of = |source: &'_ [u8]| -> std::ops::Range<usize> { start.min(source.len())..end.min(source.len()) };
        result.extend_from_slice(&first[part_of(first)]);
        result.resize(end, 0);
        let part = &mut result[start..];
        if operation == Operation::Not {
            part.iter_mut().for_each(|byte| *byte = !*byte);
        }
        for other in others {
            combine_with(operation, part, &other[part_of(other)]);
        }
    }
    result
}

/// Combines a string with another one, which is at most as long.
fn combine_with(operation: Operation, bytes: &mut [u8], other: &[u8]) {
    let pairs = bytes.iter_mut().zip(other);
    match operation {
        Operation::And => pairs.for_each(|(byte, with)| *byte &= with),
        Operation::Or => pairs.for_each(|(byte, with)| *byte |= with),
        Operation::Xor => pairs.for_each(|(byte, with)| *byte ^= with),
        Operation::Not => {}
    }
    if operation == Operation::And {
        bytes[other.len()..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits_of(bytes: &[u8]) -> Vec<bool> {
        bytes.iter().flat_map(|byte| (0..8).map(move |place| byte << place & 0x80 != 0)).collect()
    }

    /// Strings with long runs of equal bytes, which random bytes do not have.
    fn strings() -> impl Strategy<Value = Vec<u8>> {
        let run = (prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 0usize..300);
        prop::collection::vec(run, 0..6)
            .prop_map(|runs| runs.into_iter().flat_map(|(byte, length)| vec![byte; length]).collect())
    }

    proptest! {
        #[test]
        fn a_count_equals_counting_bit_by_bit(bytes in strings(), start: u16, end: u16) {
            let bits = bits_of(&bytes);
            let (start, end) = (usize::from(start) % (bits.len() + 1), usize::from(end) % (bits.len() + 1));
            let expected = bits.get(start..end).unwrap_or_default().iter().filter(|bit| **bit).count() as u64;
            prop_assert_eq!(count_in(&bytes, start as u64..end as u64), expected);
        }

        #[test]
        fn a_search_finds_the_first_equal_bit_of_its_range(bytes in strings(), start: u16, end: u16, bit: bool) {
            let bits = bits_of(&bytes);
            let (start, end) = (usize::from(start) % (bits.len() + 1), usize::from(end) % (bits.len() + 1));
            let part = bits.get(start..end).unwrap_or_default();
            let expected = part.iter().position(|other| *other == bit).map(|place| (start + place) as u64);
            prop_assert_eq!(find(&bytes, start as u64..end as u64, bit), expected);
        }

        #[test]
        fn setting_a_bit_changes_no_other_bit(mut bytes in strings(), place: u16, bit: bool) {
            let mut bits = bits_of(&bytes);
            let place = usize::from(place);
            let before = bits.get(place).copied().unwrap_or(false);
            prop_assert_eq!(get(&bytes, place as u64), before);
            prop_assert_eq!(set(&mut bytes, place as u64, bit), before);
            if let Some(place) = bits.get_mut(place) {
                *place = bit;
            }
            prop_assert_eq!(bits_of(&bytes), bits);
        }

        #[test]
        fn strings_are_combined_bit_by_bit(sources in prop::collection::vec(strings(), 1..5)) {
            let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
            let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0);
            for operation in [Operation::And, Operation::Or, Operation::Xor, Operation::Not] {
                let expected: Vec<u8> = (0..longest).map(|index| {
                    let byte = |source: &&[u8]| source.get(index).copied().unwrap_or(0);
                    let bytes = sources.iter().map(byte);
                    match operation {
                        Operation::And => bytes.fold(0xff, |all, byte| all & byte),
                        Operation::Or => bytes.fold(0, |all, byte| all | byte),
                        Operation::Xor => bytes.fold(0, |all, byte| all ^ byte),
                        Operation::Not => !byte(&sources[0]),
                    }
                }).collect();
                prop_assert_eq!(combine(operation, &sources), expected);
            }
        }
    }

    #[test]
    fn bits_behind_the_end_of_a_string_are_zero() {
        assert!(!get(b"\xff", 8) && !get(b"\xff", u64::MAX));
        assert!(!set(&mut [0xff], u64::MAX, true));
        assert_eq!(count_in(b"\xff", 4..9), 0);
        assert_eq!(find(b"\xff", 0..u64::MAX, true), None);
        assert_eq!(find(b"", 0..0, false), None);
    }
}
