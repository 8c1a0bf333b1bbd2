//! The source of random choices: a seed, which never ends, or bytes, which a fuzzer changes one by one.

/// A source of choices.
pub enum Choices<'b> {
    /// The state of a generator; not 0.
    Seed(u64),
    /// The bytes that are not used yet.
    Bytes(&'b [u8]),
}

impl Choices<'_> {
    /// A number below `bound`; 0 when there are no more bytes.
    pub fn below(&mut self, bound: usize) -> usize {
        match self {
            Choices::Seed(state) => {
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                (*state % bound as u64) as usize
            }
            Choices::Bytes(left) => {
                let (taken, rest) = left.split_at(left.len().min(if bound > 256 { 2 } else { 1 }));
                *left = rest;
                taken.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)) % bound
            }
        }
    }

    /// True when there are no more bytes.
    pub fn is_empty(&self) -> bool {
        matches!(self, Choices::Bytes([]))
    }
}
