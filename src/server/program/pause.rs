//! Pauses between two looks at what cannot be awaited.

use std::thread;
use std::time::Duration;

/// Waits for this long.
#[expect(clippy::disallowed_methods, reason = "neither another process nor the absence of clients can be awaited")]
pub(super) fn pause(length: Duration) {
    thread::sleep(length);
}
