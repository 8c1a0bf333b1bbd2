//! A bit set with one bit for each command.
//!
//! Bits that were never set individually all have the same value, so all commands are allowed or forbidden at once
//! without knowing how many there are.

/// A set of indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    words: Vec<u64>,
    rest: bool,
}

impl Bits {
    /// The set of all indices, or the empty one.
    pub(super) fn filled(with: bool) -> Bits {
        Bits { words: Vec::new(), rest: with }
    }

    /// Whether the index is in the set.
    pub(super) fn has(&self, index: usize) -> bool {
        self.words.get(index / 64).map_or(self.rest, |word| word >> (index % 64) & 1 == 1)
    }

    /// Adds or removes an index.
    pub(super) fn set(&mut self, index: usize, value: bool) {
        if index / 64 >= self.words.len() {
            self.words.resize(index / 64 + 1, if self.rest { u64::MAX } else { 0 });
        }
        let (word, bit) = (&mut self.words[index / 64], 1 << (index % 64));
        if value {
            *word |= bit;
        } else {
            *word &= !bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_individually_set_bits_change() {
        for rest in [false, true] {
            let mut bits = Bits::filled(rest);
            bits.set(70, !rest);
            assert_eq!((bits.has(70), bits.has(0), bits.has(69), bits.has(500)), (!rest, rest, rest, rest));
            bits.set(70, rest);
            assert_eq!(bits.has(70), rest);
        }
    }
}
