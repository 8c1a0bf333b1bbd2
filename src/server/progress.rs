//! Log lines that show how far a save or a load is, so that long work can be told from a server that hangs.
//!
//! Work that ends within [`INTERVAL_US`] has no line.

use std::io;
use std::sync::atomic::AtomicBool;

use tracing::info;

use super::background_saver::{TestDelay, pause_or_stop};
use super::clock::monotonic_us;
use crate::engine::state::Checkpoint;

/// The time between two lines, in microseconds.
const INTERVAL_US: u64 = 3_000_000;

/// The keys that are saved before the clock is read again. They may be large.
const KEYS_BETWEEN_CLOCKS: usize = 1 << 6;

/// The moment of the next line.
#[derive(Debug)]
pub(crate) struct Progress {
    next_us: u64,
}

impl Progress {
    /// Starts to wait for the first line.
    pub(crate) fn begin() -> Progress {
        Progress { next_us: monotonic_us() + INTERVAL_US }
    }

    /// Whether a line is due; the next one is due an interval later then.
    pub(crate) fn is_due(&mut self) -> bool {
        self.is_due_at(monotonic_us())
    }

    fn is_due_at(&mut self, now_us: u64) -> bool {
        let is_due = now_us >= self.next_us;
        if is_due {
            self.next_us = now_us + INTERVAL_US;
        }
        is_due
    }
}

/// Makes a save's step after each key: it pauses for `delay`, fails when it is stopped, and logs progress.
pub(crate) fn after_each_key<'a>(
    checkpoint: &'a Checkpoint,
    delay: TestDelay,
    is_stopped: &'a AtomicBool,
) -> impl FnMut() -> io::Result<()> + 'a {
    let (mut progress, total) = (Progress::begin(), checkpoint.len());
    move || {
        let keys = checkpoint.saved_keys();
        if keys.is_multiple_of(KEYS_BETWEEN_CLOCKS) && progress.is_due() {
            info!("Saving the DB: {:.0} %, {keys} of {total} keys", 100.0 * keys as f64 / total.max(1) as f64);
        }
        pause_or_stop(delay, is_stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_for_each_interval_that_has_passed_and_none_before_the_first() {
        let mut progress = Progress { next_us: INTERVAL_US };
        let due: Vec<bool> = [0, 1, 2, 3, 6, 7].map(|half| progress.is_due_at(half * INTERVAL_US / 2)).into();
        assert_eq!(due, [false, false, true, false, true, false]);
    }
}
