//! One bit for each command there is.
//!
//! Places beyond those that were set apart all have the same bit, so all commands are allowed or forbidden at once
//! without knowing how many they are.

/// A set of places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    words: Vec<u64>,
    rest: bool,
}

impl Bits {
    /// All places, or none.
    pub(super) fn filled(with: bool) -> Bits {
        Bits { words: Vec::new(), rest: with }
    }

    /// Whether the place is in it.
    pub(super) fn has(&self, index: usize) -> bool {
        self.words.get(index / 64).map_or(self.rest, |word| word >> (index % 64) & 1 == 1)
    }

    /// Adds the place or takes it out.
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
    fn what_was_not_set_apart_stays_as_it_was() {
        for rest in [false, true] {
            let mut bits = Bits::filled(rest);
            bits.set(70, !rest);
            assert_eq!((bits.has(70), bits.has(0), bits.has(69), bits.has(500)), (!rest, rest, rest, rest));
            bits.set(70, rest);
            assert_eq!(bits.has(70), rest);
        }
    }
}
