//! The hash of an element: MurmurHash64A, little-endian, with the seed that Redis uses.
//!
//! It is not secret and protects against nobody: anyone can find elements that fill the same registers. Another hash
//! would give other bytes than Redis for the same elements.
//!
//! Source: Austin Appleby's MurmurHash2, 64-bit version A, which is in the public domain.

const SEED: u64 = 0xadc8_3b19;
const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

/// The hash of some bytes.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let start = SEED ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let mut hash = words.iter().fold(start, |hash, word| {
        let mixed = shifted(u64::from_le_bytes(*word).wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
        (hash ^ mixed).wrapping_mul(FACTOR)
    });
    if !rest.is_empty() {
        let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash ^ last).wrapping_mul(FACTOR);
    }
    shifted(shifted(hash).wrapping_mul(FACTOR))
}

fn shifted(word: u64) -> u64 {
    word ^ word >> SHIFT
}
