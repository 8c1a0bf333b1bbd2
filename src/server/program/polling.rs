//! Pauses between two looks at what cannot be awaited, and how long a user says that they may last.

use std::thread;
use std::time::Duration;

/// Waits for this long.
#[expect(clippy::disallowed_methods, reason = "neither another process nor the absence of clients can be awaited")]
pub(super) fn sleep_before_next_poll(length: Duration) {
    thread::sleep(length);
}

/// The time that a word of the command line names, such as `60` or `0.5`; `None` if it is no number of seconds.
pub(super) fn seconds(word: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(word.parse().ok()?).ok()
}
