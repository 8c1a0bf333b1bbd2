//! The hash functions of members: rapidhash with fixed secrets, and SipHash-1-3 with a key in a collection that was
//! flooded.
//!
//! rapidhash takes a fifth of the time and no key, so the order of a scan is the same everywhere; but anyone who has
//! read it can write any number of members with the same hash. The index notices ([`Flood`]) and its collection
//! changes over to the keyed function ([`crate::value::members`]). The key follows from a seed that comes with the
//! collection's limits: the same seed and history give the same order, and no client knows the seed.
//!
//! The keyspace has a quick function with a seed of its own, and uses the keyed one from here.
//!
//! Sources: De Carli, rapidhash v3; Aumasson and Bernstein, SipHash: a fast short-input PRF (2012).

use rapidhash::v3::{RapidSecrets, rapidhash_v3_micro_inline};

/// An error of inserting: the hashes are more alike than chance explains. The entry was not inserted, and all must be
/// hashed with another function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flood;

/// The key of SipHash-1-3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) u64, pub(crate) u64);

impl Key {
    /// Derives a key from a seed.
    pub(crate) fn of(seed: u64) -> Key {
        Key(seed, 0).next()
    }

    /// Derives the next key from this one.
    pub(crate) fn next(self) -> Key {
        Key(self.hash(b"one"), self.hash(b"other"))
    }

    /// SipHash-1-3 of `bytes`.
    pub(crate) fn hash(self, bytes: &[u8]) -> u64 {
        let mut state = [
            self.0 ^ 0x736f_6d65_7073_6575,
            self.1 ^ 0x646f_7261_6e64_6f6d,
            self.0 ^ 0x6c79_6765_6e65_7261,
            self.1 ^ 0x7465_6462_7974_6573,
        ];
        let mut absorb = |word: u64| {
            state[3] ^= word;
            round(&mut state);
            state[0] ^= word;
        };
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|&word| absorb(u64::from_le_bytes(word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last[7] = bytes.len() as u8;
        absorb(u64::from_le_bytes(last));
        state[2] ^= 0xff;
        (0..3).for_each(|_| round(&mut state));
        state.iter().fold(0, |hash, word| hash ^ word)
    }
}

fn round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *c = c.wrapping_add(*d);
    *b = b.rotate_left(13) ^ *a;
    *d = d.rotate_left(16) ^ *c;
    *a = a.rotate_left(32).wrapping_add(*d);
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(17) ^ *c;
    *d = d.rotate_left(21) ^ *a;
    *c = c.rotate_left(32);
}

/// Fixed secrets, so that the order of a scan is fixed too.
static SECRETS: RapidSecrets = RapidSecrets::seed(0);

/// The quick hash of a member.
#[inline]
pub(super) fn quick(member: &[u8]) -> u64 {
    rapidhash_v3_micro_inline::<true, false>(member, &SECRETS)
}

/// The hash function for the members of one collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hashing {
    /// The quick one; the seed is that of the key to come.
    Quick { seed: u64 },
    /// A keyed one, and its generation: how often the function was changed.
    Keyed { key: Key, generation: u8 },
}

impl Hashing {
    #[inline]
    pub(super) fn hash(&self, member: &[u8]) -> u64 {
        match self {
            Hashing::Quick { .. } => quick(member),
            Hashing::Keyed { key, .. } => key.hash(member),
        }
    }

    /// The number of times that the function was changed. Two functions of one seed are equal if their generations are.
    pub(super) fn generation(&self) -> u8 {
        match *self {
            Hashing::Quick { .. } => 0,
            Hashing::Keyed { generation, .. } => generation,
        }
    }

    /// The next function to change to.
    pub(super) fn next(&self) -> Hashing {
        match *self {
            Hashing::Quick { seed } => Hashing::Keyed { key: Key::of(seed), generation: 1 },
            Hashing::Keyed { key, generation } => {
                Hashing::Keyed { key: key.next(), generation: generation.saturating_add(1) }
            }
        }
    }
}

/// Different members that all have one quick hash: their first half cancels the multiplication that mixes in the
/// second.
#[cfg(test)]
pub(super) fn flood() -> impl Iterator<Item = Vec<u8>> {
    (0u64..).map(|number| [SECRETS.secrets[1].to_le_bytes(), number.to_le_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{DefaultHasher, Hasher as _};

    #[test]
    fn the_keyed_hash_is_the_siphash_of_the_standard_library() {
        for len in 0..40u8 {
            let bytes: Vec<u8> = (0..len).collect();
            let mut standard = DefaultHasher::new();
            standard.write(&bytes);
            assert_eq!(Key(0, 0).hash(&bytes), standard.finish());
        }
    }

    #[test]
    fn a_function_follows_from_its_seed_and_generation() {
        let quick = Hashing::Quick { seed: 7 };
        let functions = [quick, quick.next(), quick.next().next(), Hashing::Quick { seed: 8 }.next()];
        let hashes = functions.map(|function| function.hash(b"member"));
        assert!(hashes.iter().enumerate().all(|(index, hash)| !hashes[..index].contains(hash)));
        assert_eq!(functions.map(|function| function.generation()), [0, 1, 2, 1]);
        assert_eq!(Hashing::Quick { seed: 7 }.next(), functions[1]);
    }

    #[test]
    fn the_members_of_the_test_flood_have_one_hash() {
        assert!(flood().take(100).all(|member| quick(&member) == quick(&flood().next().expect("endless"))));
    }
}
