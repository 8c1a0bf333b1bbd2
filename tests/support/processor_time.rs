//! The processor time that this thread has used, which does not depend on other processes.

use std::time::Duration;

#[cfg(unix)]
pub fn processor_time() -> Duration {
    use nix::time::{ClockId, clock_gettime};
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("threads have clocks"))
}

/// There is no such clock here: the time that passes, which is never less.
#[cfg(not(unix))]
#[expect(clippy::disallowed_methods, reason = "a measurement asks the clock")]
pub fn processor_time() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
