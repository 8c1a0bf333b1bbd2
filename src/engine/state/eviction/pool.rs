//! The eviction pool: the few best candidates seen so far, sorted, kept from one search to the next.
//!
//! A search samples only a handful of keys; that is enough because the best candidates of earlier searches are kept.
//! A key is stored as its hash, which takes the same few bytes for any key; a key deleted meanwhile, or another key
//! with an equal hash, does no harm.
//!
//! Invariant: at most [`MAX`] candidates, ascending by score, each key once.
//!
//! Source: Redis's eviction pool, as its documentation describes it.

/// The number of candidates in the pool.
const MAX: usize = 16;

/// A key that may be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Candidate {
    /// The score: the key with the highest one is evicted first.
    pub(in crate::engine) score: u64,
    pub(in crate::engine) database: usize,
    /// The hash of the key.
    pub(in crate::engine) hash: u64,
}

/// The candidates, ascending by score.
#[derive(Debug, Default)]
pub(in crate::engine) struct Pool {
    ascending: Vec<Candidate>,
}

impl Pool {
    /// Adds a candidate, if it is among the best.
    pub(in crate::engine) fn offer(&mut self, offered: Candidate) {
        self.ascending.retain(|known| (known.database, known.hash) != (offered.database, offered.hash));
        let place = self.ascending.partition_point(|known| known.score < offered.score);
        if self.ascending.len() < MAX {
            self.ascending.insert(place, offered);
        } else if place > 0 {
            self.ascending[..place].rotate_left(1);
            self.ascending[place - 1] = offered;
        }
    }

    /// Takes the best candidate out.
    pub(in crate::engine) fn take(&mut self) -> Option<Candidate> {
        self.ascending.pop()
    }

    /// Removes all candidates: scores of another policy are meaningless.
    pub(in crate::engine) fn clear(&mut self) {
        self.ascending.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn candidates_leave_the_pool_in_order_of_their_score(scores in prop::collection::vec(0u64..1000, 0..100)) {
            let mut pool = Pool::default();
            for (hash, &score) in (0..).zip(&scores) {
                pool.offer(Candidate { score, database: 0, hash });
            }
            let mut best = scores;
            best.sort_unstable_by(|one, other| other.cmp(one));
            best.truncate(MAX);
            let taken: Vec<u64> = std::iter::from_fn(|| pool.take()).map(|candidate| candidate.score).collect();
            prop_assert_eq!(taken, best);
        }
    }

    #[test]
    fn a_key_that_is_offered_again_is_in_the_pool_once_with_its_last_score() {
        let mut pool = Pool::default();
        let of = |score, hash| Candidate { score, database: 1, hash };
        [of(5, 1), of(7, 2), of(2, 1)].into_iter().for_each(|candidate| pool.offer(candidate));
        assert_eq!([pool.take(), pool.take(), pool.take()], [Some(of(7, 2)), Some(of(2, 1)), None]);
    }
}
