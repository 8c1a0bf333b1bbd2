//! How long a test waits for what comes in its own time: long, for the machine may be busy, but not for ever. Waits are
//! bounded by time, never by a count of attempts, which a slow machine makes too few.

use std::thread;
use std::time::{Duration, Instant};

/// What takes longer than this does not come.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Returns when `is_so`; `what` tells what was waited for in vain.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    #[expect(clippy::disallowed_methods, reason = "a test waits in its own time, whatever the server's clock shows")]
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::yield_now();
    }
}
