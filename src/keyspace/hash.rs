//! The hash of a key: rapidhash with a seed of the database's own, SipHash-1-3 after a flood.
//!
//! Both are fixed functions of seed and bytes on every platform, so the order of a scan is fixed too. That is why it
//! is not foldhash, which is a third faster but does not promise that. rapidhash takes 1.5 ns for a key of 16 bytes
//! where SipHash-1-3 takes 7.5, and a key is hashed twice on its way in and once more whenever its segment splits;
//! but its authors claim no more than "minimal" resistance to keys made to collide. The table notices when that
//! happens ([`crate::value::hashing::Flood`]) and the database then changes over to the keyed function for good.
//!
//! Sources: De Carli, rapidhash v3; Aumasson and Bernstein, SipHash: a fast short-input PRF (2012).

use crate::value::hashing::Key;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_micro_inline};

/// A hash function of a database.
#[derive(Clone, Debug)]
pub(super) enum Hasher {
    Quick(RapidSecrets),
    Guarded { key: Key, generation: u8, first: Box<RapidSecrets> },
}

impl Hasher {
    /// The quick function with that seed.
    pub(super) fn quick(seed: u64) -> Hasher {
        Hasher::Quick(RapidSecrets::seed(seed))
    }

    /// The next keyed function derived from this one, never the same twice.
    pub(super) fn guarded(&self) -> Hasher {
        let (key, first) = match self {
            Hasher::Quick(secrets) => (Key(secrets.secrets[5], secrets.secrets[6]), Box::new(*secrets)),
            Hasher::Guarded { key, first, .. } => (*key, first.clone()),
        };
        Hasher::Guarded { key: key.next(), generation: self.generation().saturating_add(1), first }
    }

    /// The quick function from which this one was derived.
    pub(super) fn first(&self) -> Hasher {
        Hasher::Quick(*self.first_secrets())
    }

    /// Whether it was derived from the same seed as another one.
    pub(super) fn has_seed_of(&self, other: &Hasher) -> bool {
        self.first_secrets() == other.first_secrets()
    }

    fn first_secrets(&self) -> &RapidSecrets {
        match self {
            Hasher::Quick(secrets) => secrets,
            Hasher::Guarded { first, .. } => first,
        }
    }

    /// The number of times that the function was changed. Two functions of one seed are equal if their generations are.
    pub(super) fn generation(&self) -> u8 {
        match *self {
            Hasher::Quick(_) => 0,
            Hasher::Guarded { generation, .. } => generation,
        }
    }

    /// The hash of `key`.
    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        match self {
            Hasher::Quick(secrets) => rapidhash_v3_micro_inline::<true, true>(key, secrets),
            Hasher::Guarded { key: secret, .. } => secret.hash(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_and_guards_give_different_functions() {
        let quick = Hasher::quick(1);
        let guarded = quick.guarded();
        let hashes = [&quick, &Hasher::quick(2), &guarded, &guarded.guarded()].map(|hasher| hasher.hash(b"key"));
        assert!(hashes.iter().enumerate().all(|(index, hash)| !hashes[..index].contains(hash)));
        assert_eq!(Hasher::quick(1).hash(b"key"), hashes[0]);
        assert!(guarded.has_seed_of(&quick) && !guarded.has_seed_of(&Hasher::quick(2)));
        assert_eq!([&quick, &guarded, &guarded.guarded()].map(|hasher| hasher.first().hash(b"key")), [hashes[0]; 3]);
    }
}
