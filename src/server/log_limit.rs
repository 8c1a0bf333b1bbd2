//! A rate limit for log lines that clients can cause: one line in [`INTERVAL_NS`], with the number of dropped ones.
//!
//! The program's log queue bounds the memory of lines that nobody reads; this module bounds what reaches a disk.

use std::sync::atomic::{AtomicU64, Ordering};

/// The shortest time between two lines, in nanoseconds.
const INTERVAL_NS: u64 = 1_000_000_000;

/// The moment when the next line may be written, and the number of lines dropped since the last one.
#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    next_ns: AtomicU64,
    dropped: AtomicU64,
}

impl LogLimit {
    /// The number of lines dropped since the last one, if a line may be written now; `None` if it must be dropped.
    pub(crate) fn next(&self, now_ns: u64) -> Option<u64> {
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        let may_write = now_ns >= next_ns && {
            let after_ns = now_ns.saturating_add(INTERVAL_NS);
            self.next_ns.compare_exchange(next_ns, after_ns, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        if !may_write {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.dropped.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_is_written_with_the_number_of_dropped_ones() {
        let limit = LogLimit::default();
        assert_eq!(limit.next(5), Some(0));
        assert_eq!([limit.next(6), limit.next(5 + INTERVAL_NS - 1)], [None, None]);
        assert_eq!(limit.next(5 + INTERVAL_NS), Some(2));
        assert_eq!(limit.next(10 + 2 * INTERVAL_NS), Some(0));
    }
}
