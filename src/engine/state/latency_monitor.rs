//! The latency monitor (LATENCY): the longest delay of each second, by kind of event.
//!
//! Each kind keeps its last 160 samples, at most one per second: the longest of that second. The engine decides which
//! delays are recorded; while `latency-monitor-threshold` is 0, none is.

use std::collections::{BTreeMap, VecDeque};

/// The maximum number of samples of each kind.
pub const MAX_SAMPLES: usize = 160;

/// The samples of all kinds.
#[derive(Debug, Default)]
pub struct LatencyMonitor {
    series: BTreeMap<&'static str, Series>,
}

/// The samples of one kind.
#[derive(Debug, Default)]
pub struct Series {
    samples: VecDeque<Sample>,
    /// The longest delay ever, in milliseconds.
    pub longest_ms: u64,
}

/// The longest delay of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The second, counted from the Unix epoch.
    pub unix_s: i64,
    /// The delay in milliseconds.
    pub elapsed_ms: u64,
}

impl LatencyMonitor {
    /// Records a delay.
    pub fn add(&mut self, kind: &'static str, sample: Sample) {
        self.series.entry(kind).or_default().add(sample);
    }

    /// The samples of that kind.
    pub fn get(&self, kind: &[u8]) -> Option<&Series> {
        self.series.get(std::str::from_utf8(kind).ok()?)
    }

    /// All kinds with their samples, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, &Series)> {
        self.series.iter().map(|(kind, series)| (*kind, series))
    }

    /// Removes the samples of that kind; false when there are none.
    pub fn forget(&mut self, kind: &[u8]) -> bool {
        std::str::from_utf8(kind).is_ok_and(|kind| self.series.remove(kind).is_some())
    }

    /// Removes all samples; returns the number of kinds that had some.
    pub fn clear(&mut self) -> usize {
        std::mem::take(&mut self.series).len()
    }
}

impl Series {
    /// The samples, the oldest first.
    pub fn samples(&self) -> impl ExactSizeIterator<Item = &Sample> + Clone {
        self.samples.iter()
    }

    fn add(&mut self, sample: Sample) {
        self.longest_ms = self.longest_ms.max(sample.elapsed_ms);
        if let Some(last) = self.samples.back_mut().filter(|last| last.unix_s == sample.unix_s) {
            last.elapsed_ms = last.elapsed_ms.max(sample.elapsed_ms);
            return;
        }
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(unix_s: i64, elapsed_ms: u64) -> Sample {
        Sample { unix_s, elapsed_ms }
    }

    #[test]
    fn each_second_has_one_sample_the_longest() {
        let mut latency_monitor = LatencyMonitor::default();
        for added in [sample(1, 5), sample(1, 9), sample(1, 7), sample(2, 3)] {
            latency_monitor.add("command", added);
        }
        let series = latency_monitor.get(b"command").expect("it was added");
        assert_eq!(series.samples().copied().collect::<Vec<_>>(), [sample(1, 9), sample(2, 3)]);
        assert_eq!(series.longest_ms, 9);
        assert!(latency_monitor.get(b"fork").is_none());
    }

    #[test]
    fn the_oldest_samples_are_dropped_and_the_longest_time_is_kept() {
        let mut series = Series::default();
        (0..200).for_each(|second| series.add(sample(second, 200 - second as u64)));
        assert_eq!((series.samples().len(), series.longest_ms), (MAX_SAMPLES, 200));
        assert_eq!(series.samples().next(), Some(&sample(40, 160)));
    }

    #[test]
    fn events_are_reset_one_by_one_or_all_together() {
        let mut latency_monitor = LatencyMonitor::default();
        latency_monitor.add("command", sample(1, 1));
        latency_monitor.add("fast-command", sample(1, 1));
        assert!(
            latency_monitor.forget(b"command")
                && !latency_monitor.forget(b"command")
                && !latency_monitor.forget(b"\xff")
        );
        assert_eq!((latency_monitor.clear(), latency_monitor.clear()), (1, 0));
    }
}
