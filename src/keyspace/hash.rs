//! The hash of a key: rapidhash with a seed of the database's own, SipHash-1-3 once that was flooded.
//!
//! Both are fixed functions of seed and bytes on every platform, so the order of a scan is too; that is why it is not
//! foldhash, which is a third faster and promises no such thing. rapidhash takes 1.5 ns for a key of 16 bytes where
//! SipHash-1-3 takes 7.5, and a key is hashed twice on its way in and once more whenever its segment splits; but its
//! authors claim no more than "minimal" resistance to keys made to collide. The table notices when that happens
//! ([`super::table::Flood`]) and the database then changes over to the keyed function for good.
//!
//! Sources: De Carli, rapidhash v3; Aumasson and Bernstein, SipHash: a fast short-input PRF (2012).

use rapidhash::v3::{RapidSecrets, rapidhash_v3_micro_inline};

/// A hash function.
#[derive(Clone, Debug)]
pub(super) enum Hasher {
    Quick(RapidSecrets),
    Guarded(u64, u64),
}

impl Hasher {
    /// The quick function of that seed.
    pub(super) fn quick(seed: u64) -> Hasher {
        Hasher::Quick(RapidSecrets::seed(seed))
    }

    /// A keyed function that follows from this one, never the same twice.
    pub(super) fn guarded(&self) -> Hasher {
        let (one, other) = match self {
            Hasher::Quick(secrets) => (secrets.secrets[5], secrets.secrets[6]),
            Hasher::Guarded(one, other) => (*one, *other),
        };
        Hasher::Guarded(sip(one, other, b"one"), sip(one, other, b"other"))
    }

    /// The hash of `key`.
    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        match self {
            Hasher::Quick(secrets) => rapidhash_v3_micro_inline::<true, true>(key, secrets),
            Hasher::Guarded(one, other) => sip(*one, *other, key),
        }
    }
}

/// SipHash-1-3.
fn sip(one: u64, other: u64, bytes: &[u8]) -> u64 {
    let mut state = [
        one ^ 0x736f_6d65_7073_6575,
        other ^ 0x646f_7261_6e64_6f6d,
        one ^ 0x6c79_6765_6e65_7261,
        other ^ 0x7465_6462_7974_6573,
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{DefaultHasher, Hasher as _};

    #[test]
    fn the_guarded_hash_is_the_siphash_of_the_standard_library() {
        for len in 0..40u8 {
            let bytes: Vec<u8> = (0..len).collect();
            let mut standard = DefaultHasher::new();
            standard.write(&bytes);
            assert_eq!(Hasher::Guarded(0, 0).hash(&bytes), standard.finish());
        }
    }

    #[test]
    fn seeds_and_guards_give_different_functions() {
        let quick = Hasher::quick(1);
        let guarded = quick.guarded();
        let hashes = [&quick, &Hasher::quick(2), &guarded, &guarded.guarded()].map(|hasher| hasher.hash(b"key"));
        assert!(hashes.iter().enumerate().all(|(index, hash)| !hashes[..index].contains(hash)));
        assert_eq!(Hasher::quick(1).hash(b"key"), hashes[0]);
    }
}
