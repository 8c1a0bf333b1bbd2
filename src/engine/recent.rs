//! How busy the server is: rates over the last second or so, and the most memory there ever was.
//!
//! A sample is taken by the first request that comes a second or more after the last one, so an idle server takes none,
//! and a rate is the average since the sample before. It costs one comparison per request otherwise.

use crate::engine::host::Turns;
use crate::engine::{Now, Stats};

/// What the last sample found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recent {
    /// Commands per second.
    pub commands_per_s: u64,
    /// Bytes received per second.
    pub received_per_s: u64,
    /// Bytes sent per second.
    pub sent_per_s: u64,
    /// Turns of the event loops per second.
    pub turns_per_s: u64,
    /// How long one of them took, in microseconds.
    pub turn_us: u64,
    /// The most bytes that the data took in any sample.
    pub peak_memory_bytes: usize,
    sampled: Now,
    due: Now,
    commands: u64,
    received_bytes: u64,
    sent_bytes: u64,
    turns: Turns,
}

const BETWEEN_SAMPLES_US: i64 = 1_000_000;

impl Recent {
    /// True when it is time for a sample.
    #[inline]
    pub fn is_due(&self, now: Now) -> bool {
        now >= self.due
    }
}

impl Stats {
    /// Takes a sample; `memory_bytes` is what the data takes now, and `turns` are all so far. Between
    /// samples only the peak is looked at.
    pub fn sample(&mut self, now: Now, memory_bytes: usize, turns: Turns) {
        let last = self.recent;
        let peak_memory_bytes = last.peak_memory_bytes.max(memory_bytes);
        if !last.is_due(now) {
            self.recent.peak_memory_bytes = peak_memory_bytes;
            return;
        }
        let elapsed_us = now.since_us(last.sampled);
        let rate = |count: u64, before: u64| {
            let rate = u128::from(count.saturating_sub(before)) * 1_000_000 / u128::from(elapsed_us.max(1));
            u64::try_from(rate).unwrap_or(u64::MAX)
        };
        let turned = turns.since(last.turns);
        self.recent = Recent {
            commands_per_s: rate(self.commands, last.commands),
            received_per_s: rate(self.received_bytes, last.received_bytes),
            sent_per_s: rate(self.sent_bytes, last.sent_bytes),
            turns_per_s: rate(turns.count, last.turns.count),
            turn_us: turned.busy_us.checked_div(turned.count).unwrap_or(0),
            peak_memory_bytes,
            sampled: now,
            due: Now::from_us(now.unix_us.saturating_add(BETWEEN_SAMPLES_US)),
            commands: self.commands,
            received_bytes: self.received_bytes,
            sent_bytes: self.sent_bytes,
            turns,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_what_came_since_the_last_sample() {
        let mut stats = Stats::default();
        stats.sample(Now::from_us(10_000_000), 5, Turns::default());
        stats.commands = 300;
        stats.sample(Now::from_us(10_500_000), 9, Turns::default());
        assert_eq!(stats.recent.commands_per_s, 0);
        stats.sample(Now::from_us(12_000_000), 7, Turns { count: 40, busy_us: 1000 });
        assert_eq!(stats.recent.commands_per_s, 150);
        assert_eq!((stats.recent.turns_per_s, stats.recent.turn_us), (20, 25));
        assert_eq!(stats.recent.peak_memory_bytes, 9);
    }
}
