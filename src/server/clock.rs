//! The clock: the system's, or one that stands still until a test moves it.
//!
//! The engine never asks for the time; it is told. This is the only place that looks. Both clocks count from the Unix
//! epoch, so a deadline means the same under either. Reading the system's costs about 20 ns, which one command can
//! afford; reading a manual one is a load.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::engine::Now;

/// Tells the time.
#[derive(Debug)]
pub(crate) enum Clock {
    /// The system's clock.
    Wall,
    /// A clock that moves only when it is told to: microseconds since the Unix epoch.
    Manual(AtomicI64),
}

impl Clock {
    /// A clock that stands at that moment.
    pub(crate) fn manual(start: Now) -> Clock {
        Clock::Manual(AtomicI64::new(start.unix_us))
    }

    /// The time.
    pub(crate) fn now(&self) -> Now {
        match self {
            Clock::Wall => wall_time(),
            Clock::Manual(unix_us) => Now::from_us(unix_us.load(Ordering::Acquire)),
        }
    }

    /// Moves a manual clock to `moment` unless it is there or beyond; the system's clock moves by itself.
    pub(crate) fn reach(&self, moment: Now) {
        if let Clock::Manual(unix_us) = self {
            unix_us.fetch_max(moment.unix_us, Ordering::AcqRel);
        }
    }

    /// True when only a call moves it.
    pub(crate) fn is_manual(&self) -> bool {
        matches!(self, Clock::Manual(_))
    }
}

/// The system's time.
#[expect(clippy::disallowed_methods, reason = "this is the place that asks the system what time it is")]
pub(crate) fn wall_time() -> Now {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => Now::from_us(micros(since)),
        Err(before) => Now::from_us(-micros(before.duration())),
    }
}

/// The moment `by` after `moment`, or the last one there is.
pub(crate) fn later(moment: Now, by: Duration) -> Now {
    Now::from_us(moment.unix_us.saturating_add(micros(by)))
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_stands_still_and_never_goes_back() {
        let clock = Clock::manual(Now::from_us(5));
        clock.reach(Now::from_us(9));
        clock.reach(Now::from_us(7));
        assert_eq!(clock.now(), Now::from_us(9));
    }

    #[test]
    fn the_end_of_time_is_not_passed() {
        assert_eq!(later(Now::from_us(1), Duration::MAX), Now::from_us(i64::MAX));
    }
}
