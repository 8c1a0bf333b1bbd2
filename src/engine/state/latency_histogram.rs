//! The latency histogram of one command: its percentiles (INFO latencystats) and LATENCY HISTOGRAM.
//!
//! Redis counts nanoseconds in buckets that are exact to two digits, and shows the bounds of those buckets. This
//! histogram does so, too: from 256 on, each power of two has 128 buckets. Calls are timed in microseconds, so each
//! microsecond up to 131 has its own bucket; these are in a vector, so that the usual call costs one addition. The few
//! longer ones are in a map.
//!
//! Costs: O(1) for a short call, logarithmic in the number of buckets for a long one; no memory before the first call.
//! Source: the figures that Redis 8.0.6 shows for commands that take known times.

use std::collections::BTreeMap;

/// The counts of calls, by their duration.
#[derive(Clone, Debug, Default)]
pub struct LatencyHistogram {
    /// The counts of short calls, one bucket per microsecond.
    short: Vec<u64>,
    /// The counts of longer calls, by the first nanosecond of their bucket.
    #[expect(
        clippy::box_collection,
        reason = "most commands have none, and an empty map takes 24 bytes in each world"
    )]
    long: Option<Box<BTreeMap<u64, u64>>>,
    calls: u64,
}

/// The number of microseconds from which on a bucket is wider than a microsecond.
const LONG_US: u64 = 132;

/// The longest duration, one second: a longer call counts as one of this duration.
const LONGEST_NS: u64 = 1_000_000_000;

/// The bound of the first step of [`LatencyHistogram::steps`]; each further one is twice the last.
const FIRST_STEP_NS: u64 = 1024;

impl LatencyHistogram {
    /// A histogram without calls.
    pub const NONE: LatencyHistogram = LatencyHistogram { short: Vec::new(), long: None, calls: 0 };

    /// Counts a call that took `elapsed_us` microseconds.
    #[inline]
    pub fn add(&mut self, elapsed_us: u64) {
        self.add_several(elapsed_us, 1);
    }

    /// Counts `calls` that took `elapsed_us` microseconds each.
    #[inline]
    pub fn add_several(&mut self, elapsed_us: u64, calls: u64) {
        self.calls += calls;
        match usize::try_from(elapsed_us).ok().and_then(|us| self.short.get_mut(us)) {
            Some(count) => *count += calls,
            None if calls > 0 => self.add_first(elapsed_us, calls),
            None => {}
        }
    }

    /// Adds calls where no bucket for short calls exists yet.
    fn add_first(&mut self, elapsed_us: u64, calls: u64) {
        if elapsed_us < LONG_US {
            self.short.resize(elapsed_us as usize + 1, 0);
            self.short[elapsed_us as usize] = calls;
        } else {
            *self.long.get_or_insert_default().entry(first_of_bucket(nanoseconds(elapsed_us))).or_default() += calls;
        }
    }

    /// The number of calls.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// The time in nanoseconds that `percent` of the calls did not exceed.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        // The number of calls, rounded to the nearest, and at least one.
        let wanted = ((percent / 100.0 * self.calls as f64 + 0.5) as u64).max(1);
        let mut counted = 0;
        let bucket = self.buckets().find(|(_, count)| {
            counted += count;
            counted >= wanted
        });
        match bucket {
            Some((first_ns, _)) if percent == 0.0 => first_ns,
            Some((first_ns, _)) => last_of_bucket(first_ns),
            None => 0,
        }
    }

    /// The steps of LATENCY HISTOGRAM: times in microseconds, each twice the last, with the number of calls that took
    /// at most this long. A step with no more calls than the one before is left out.
    pub fn steps(&self) -> Vec<(u64, u64)> {
        let (mut steps, mut step_ns, mut counted) = (Vec::new(), FIRST_STEP_NS, 0);
        for (first_ns, count) in self.buckets() {
            while first_ns > step_ns {
                push_step(&mut steps, step_ns, counted);
                step_ns *= 2;
            }
            counted += count;
        }
        push_step(&mut steps, step_ns, counted);
        steps
    }

    /// The buckets that have calls: the first nanosecond of each, and its count.
    fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let short = self.short.iter().zip(0..).map(|(count, us)| (first_of_bucket(nanoseconds(us)), *count));
        let long = self.long.iter().flat_map(|long| long.iter()).map(|(first_ns, count)| (*first_ns, *count));
        short.filter(|(_, count)| *count > 0).chain(long)
    }
}

fn push_step(steps: &mut Vec<(u64, u64)>, step_ns: u64, counted: u64) {
    if counted > steps.last().map_or(0, |(_, before)| *before) {
        steps.push((last_of_bucket(step_ns) / 1000, counted));
    }
}

/// Converts a duration to nanoseconds; 0 counts as one nanosecond.
fn nanoseconds(elapsed_us: u64) -> u64 {
    elapsed_us.saturating_mul(1000).clamp(1, LONGEST_NS)
}

/// The width of the bucket of a duration, as the exponent of a power of two.
fn width(ns: u64) -> u32 {
    (u64::BITS - (ns | 0xff).leading_zeros()) - 8
}

fn first_of_bucket(ns: u64) -> u64 {
    ns >> width(ns) << width(ns)
}

fn last_of_bucket(ns: u64) -> u64 {
    first_of_bucket(ns) + (1 << width(ns)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram_of(all_us: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::default();
        all_us.iter().for_each(|us| histogram.add(*us));
        histogram
    }

    #[test]
    fn a_percentile_is_the_upper_bound_of_its_bucket() {
        let durations = histogram_of(&[1, 1, 1, 2, 1000]);
        let percentiles = [0.0, 50.0, 80.0, 99.9, 100.0].map(|percent| durations.percentile_ns(percent));
        assert_eq!(percentiles, [1000, 1003, 2007, 1_003_519, 1_003_519]);
    }

    #[test]
    fn durations_are_clamped_between_a_nanosecond_and_a_second() {
        assert_eq!(histogram_of(&[0]).percentile_ns(50.0), 1);
        assert_eq!(histogram_of(&[u64::MAX]).percentile_ns(50.0), last_of_bucket(LONGEST_NS));
        assert_eq!(histogram_of(&[]).percentile_ns(50.0), 0);
    }

    #[test]
    fn a_step_counts_the_calls_up_to_its_duration_and_empty_steps_are_left_out() {
        assert_eq!(histogram_of(&[0, 1, 1, 3, 40]).steps(), [(1, 3), (4, 4), (66, 5)]);
        assert_eq!(histogram_of(&[]).steps(), []);
    }

    #[test]
    fn short_and_long_calls_are_in_buckets_of_the_same_kind() {
        for us in 0..LONG_US {
            assert!(us < 2 || first_of_bucket(nanoseconds(us)) > last_of_bucket(nanoseconds(us - 1)), "{us}");
        }
        let (short, long) = (histogram_of(&[LONG_US - 1]), histogram_of(&[LONG_US]));
        assert!(short.percentile_ns(50.0) < long.percentile_ns(50.0));
    }
}
