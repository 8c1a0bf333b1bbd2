//! Instantaneous metrics: rates over the last second or so (INFO's `instantaneous_*`), and the peak of memory.
//!
//! The first request that arrives a tenth of a second or more after the last sample takes a sample of all counters, so
//! an idle server takes none. A sample has the time at which the engine ran last before it, as nothing was counted
//! since; so a burst is not spread over the silence after it. A rate covers the last 1.6 seconds, as in Redis, and is
//! computed when INFO asks for it. Otherwise the cost is one comparison per request.

use std::collections::VecDeque;

use crate::engine::spec::Now;
use crate::engine::state::Stats;
use crate::engine::state::host::LoopCycles;

/// The samples of the last 1.6 seconds, and the peak of memory.
#[derive(Clone, Debug, Default)]
pub struct InstantMetrics {
    /// The largest size of the data in bytes at any sample.
    pub peak_memory_bytes: usize,
    samples: VecDeque<(Now, Counts)>,
    due: Now,
}

/// The counters: per second as a rate, or their totals at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of commands that ran.
    pub commands: u64,
    /// The number of bytes received.
    pub received_bytes: u64,
    /// The number of bytes sent.
    pub sent_bytes: u64,
    /// The number of cycles of the event loops.
    pub cycles: u64,
    /// The time that those cycles took, in microseconds.
    pub busy_us: u64,
}

const BETWEEN_SAMPLES_US: i64 = 100_000;

const WINDOW_US: i64 = 1_600_000;

impl Counts {
    /// Combines each counter with the same counter of `other` by `of`.
    fn with(self, other: Counts, of: impl Fn(u64, u64) -> u64) -> Counts {
        Counts {
            commands: of(self.commands, other.commands),
            received_bytes: of(self.received_bytes, other.received_bytes),
            sent_bytes: of(self.sent_bytes, other.sent_bytes),
            cycles: of(self.cycles, other.cycles),
            busy_us: of(self.busy_us, other.busy_us),
        }
    }
}

fn share(count: u64, part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(count) * u128::from(part) / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

impl InstantMetrics {
    /// True when it is time for a sample.
    #[inline]
    pub fn is_due(&self, now: Now) -> bool {
        now >= self.due
    }

    /// Forgets all samples, because the clock was moved.
    pub fn forget(&mut self) {
        *self = InstantMetrics { peak_memory_bytes: self.peak_memory_bytes, ..InstantMetrics::default() };
    }

    /// The rates per second over the last 1.6 seconds before `now`.
    pub fn rates(&self, now: Now) -> Counts {
        let Some(&(_, last)) = self.samples.back() else { return Counts::default() };
        let before = self.counts_at(Now::from_us(now.unix_us.saturating_sub(WINDOW_US)));
        let since = last.with(before, u64::saturating_sub);
        let rates = since.with(since, |count, _| share(count, 1_000_000, WINDOW_US.unsigned_abs()));
        // An idle server has so few cycles that they would be rounded to 0.
        Counts {
            cycles: rates.cycles.max(since.cycles.min(1)),
            busy_us: rates.busy_us.max(since.busy_us.min(1)),
            ..rates
        }
    }

    /// The totals at a moment, interpolated evenly between two samples.
    fn counts_at(&self, moment: Now) -> Counts {
        let place = self.samples.partition_point(|(sampled, _)| *sampled <= moment);
        let (before, after) = (place.checked_sub(1).and_then(|place| self.samples.get(place)), self.samples.get(place));
        match (before, after) {
            (Some(&(sampled, counts)), Some(&(next, later))) => {
                let (part, whole) = (moment.since_us(sampled), next.since_us(sampled));
                counts.with(later, |count, later| count.saturating_add(share(later.saturating_sub(count), part, whole)))
            }
            (Some(&(_, counts)), None) | (None, Some(&(_, counts))) => counts,
            (None, None) => Counts::default(),
        }
    }

    fn add_sample(&mut self, moment: Now, counts: Counts) {
        let start = Now::from_us(moment.unix_us.saturating_sub(WINDOW_US));
        while self.samples.get(1).is_some_and(|(sampled, _)| *sampled <= start) {
            self.samples.pop_front();
        }
        self.samples.push_back((moment, counts));
    }
}

impl Stats {
    /// Takes a sample of the counters, if one is due. Nothing was counted since `before`, when the engine last got the
    /// time. `memory_bytes` is the size of the data now, and `cycles` counts all cycles so far. Between samples only
    /// the peak is updated.
    pub fn sample(&mut self, before: Now, now: Now, memory_bytes: usize, cycles: LoopCycles) {
        let metrics = &mut self.instant_metrics;
        metrics.peak_memory_bytes = metrics.peak_memory_bytes.max(memory_bytes);
        if !metrics.is_due(now) {
            return;
        }
        let counts = Counts {
            commands: self.commands,
            received_bytes: self.received_bytes,
            sent_bytes: self.sent_bytes,
            cycles: cycles.count,
            busy_us: cycles.busy_us,
        };
        metrics.add_sample(before.min(now), counts);
        metrics.add_sample(now, counts);
        metrics.due = Now::from_us(now.unix_us.saturating_add(BETWEEN_SAMPLES_US));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does as the engine does: gets the time, then runs a number of commands.
    fn run(stats: &mut Stats, before_ms: &mut i64, now_ms: i64, commands: u64) {
        let moment = |ms: i64| Now::from_us(ms * 1000);
        if stats.instant_metrics.is_due(moment(now_ms)) {
            stats.sample(moment(*before_ms), moment(now_ms), 0, LoopCycles::default());
        }
        (stats.commands, *before_ms) = (stats.commands + commands, now_ms);
    }

    fn rate(stats: &mut Stats, before_ms: &mut i64, now_ms: i64) -> u64 {
        run(stats, before_ms, now_ms, 0);
        stats.instant_metrics.rates(Now::from_us(now_ms * 1000)).commands
    }

    #[test]
    fn a_rate_covers_the_samples_of_the_last_second_and_a_half() {
        let (mut stats, mut before_ms) = (Stats::default(), 9_900);
        (10_000..14_000).for_each(|now_ms| run(&mut stats, &mut before_ms, now_ms, 3));
        let found = rate(&mut stats, &mut before_ms, 14_000);
        assert!((2_800..=3_000).contains(&found), "{found}");
    }

    #[test]
    fn a_rate_falls_while_no_command_runs() {
        let (mut stats, mut before_ms) = (Stats::default(), 0);
        (10_000..10_080).for_each(|now_ms| run(&mut stats, &mut before_ms, now_ms, 100));
        assert_eq!(rate(&mut stats, &mut before_ms, 10_400), 5_000);
        assert_eq!(rate(&mut stats, &mut before_ms, 16_000), 0);
        assert_eq!(rate(&mut stats, &mut before_ms, 16_300), 0);
    }

    #[test]
    fn a_rate_after_a_silence_does_not_include_the_silence() {
        let (mut stats, mut before_ms) = (Stats::default(), 0);
        run(&mut stats, &mut before_ms, 1_000, 1);
        (60_000..60_050).for_each(|now_ms| run(&mut stats, &mut before_ms, now_ms, 160));
        assert_eq!(rate(&mut stats, &mut before_ms, 60_200), 5_000);
    }

    #[test]
    fn the_metrics_keep_only_recent_samples() {
        let (mut stats, mut before_ms) = (Stats::default(), 0);
        (0..100_000).for_each(|now_ms| run(&mut stats, &mut before_ms, now_ms, 1));
        assert!(stats.instant_metrics.samples.len() < 40, "{}", stats.instant_metrics.samples.len());
    }

    #[test]
    fn resetting_the_metrics_keeps_the_peak_of_memory() {
        let mut stats = Stats::default();
        for (now_us, bytes) in [(10, 5), (20, 9), (30, 7)] {
            stats.sample(Now::from_us(now_us), Now::from_us(now_us), bytes, LoopCycles::default());
        }
        stats.instant_metrics.forget();
        assert_eq!(stats.instant_metrics.peak_memory_bytes, 9);
    }
}
