//! A histogram of durations with a bucket for each power of ten, for the metrics.
//!
//! Cost: an addition or two for each duration, and no memory beyond a few numbers.

/// The bounds of the buckets, in microseconds; one more bucket has what is beyond the last.
const BOUNDS_US: [u64; 7] = [10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The counts of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoarseHistogram {
    counts: [u64; BOUNDS_US.len() + 1],
    /// The sum of all durations, in microseconds.
    pub total_us: u64,
}

impl CoarseHistogram {
    /// Counts a duration several times.
    pub fn add(&mut self, duration_us: u64, times: u64) {
        self.counts[BOUNDS_US.partition_point(|bound_us| *bound_us < duration_us)] += times;
        self.total_us = self.total_us.saturating_add(duration_us.saturating_mul(times));
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Bounds in microseconds, each with the number of durations that do not exceed it.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut sum = 0;
        BOUNDS_US.into_iter().zip(self.counts).map(move |(bound_us, count)| {
            sum += count;
            (bound_us, sum)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_bucket_whose_bound_it_does_not_exceed_and_in_all_greater_ones() {
        let mut durations = CoarseHistogram::default();
        durations.add(0, 2);
        durations.add(1_000, 1);
        durations.add(1_001, 1);
        durations.add(u64::MAX, 1);
        let counts: Vec<u64> = durations.buckets().map(|(_, count)| count).collect();
        assert_eq!((counts, durations.count(), durations.total_us), (vec![2, 2, 3, 4, 4, 4, 4], 5, u64::MAX));
    }
}
