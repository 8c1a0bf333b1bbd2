//! Timeouts of tests: long, for the machine may be busy, but not endless. Waits are limited by time, never by a number
//! of attempts, which may be too few on a slow machine.

use std::thread;
use std::time::{Duration, Instant};

/// The timeout of all waits in tests.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until `is_so` returns true; panics with `what` after the timeout.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    #[expect(clippy::disallowed_methods, reason = "a test waits in its own time, whatever the server's clock shows")]
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < TIMEOUT, "waited in vain: {what}");
        thread::yield_now();
    }
}
