//! How long after their deadline the timer removes keys and fields of hashes: a histogram for the metrics.
//!
//! Cost: an addition or two for each removal, and no memory beyond a few numbers.

/// The bounds of the buckets, in microseconds; one more bucket has what is beyond the last.
const BOUNDS_US: [u64; 6] = [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The counts of removals, by their lag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpiryLag {
    counts: [u64; BOUNDS_US.len() + 1],
    /// The total lag of all removals, in microseconds.
    pub total_us: u64,
}

impl ExpiryLag {
    /// Counts removals of the same lag.
    pub fn add(&mut self, lag_us: u64, removals: u64) {
        self.counts[BOUNDS_US.partition_point(|bound_us| *bound_us < lag_us)] += removals;
        self.total_us = self.total_us.saturating_add(lag_us.saturating_mul(removals));
    }

    /// The number of removals.
    pub fn removals(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Bounds in microseconds, each with the number of removals whose lag was at most this.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut removals = 0;
        BOUNDS_US.into_iter().zip(self.counts).map(move |(bound_us, count)| {
            removals += count;
            (bound_us, removals)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lag_counts_in_the_bucket_whose_bound_it_does_not_exceed_and_in_all_greater_ones() {
        let mut lag = ExpiryLag::default();
        lag.add(0, 2);
        lag.add(1_000, 1);
        lag.add(1_001, 1);
        lag.add(u64::MAX, 1);
        let counts: Vec<u64> = lag.buckets().map(|(_, removals)| removals).collect();
        assert_eq!((counts, lag.removals(), lag.total_us), (vec![2, 3, 4, 4, 4, 4], 5, u64::MAX));
    }
}
