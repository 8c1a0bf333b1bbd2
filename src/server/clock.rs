//! The clock: the system's, or one that stands still; and either can be moved on.
//!
//! The engine never asks for the time; it is told. This is the only place that looks. A clock has a source, which runs
//! or stands still, and a shift, by which it was moved on. Both kinds count from the Unix epoch, so a deadline means the
//! same under either. Reading the system's costs about 20 ns, which one command can afford.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::engine::Now;

/// Tells the time.
#[derive(Debug)]
pub(crate) struct Clock {
    source: Source,
    shift_us: AtomicI64,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    System,
    Frozen(Now),
}

impl Clock {
    /// The system's clock.
    pub(crate) fn system() -> Clock {
        Clock { source: Source::System, shift_us: AtomicI64::new(0) }
    }

    /// A clock that stands still at that moment.
    pub(crate) fn frozen(moment: Now) -> Clock {
        Clock { source: Source::Frozen(moment), shift_us: AtomicI64::new(0) }
    }

    /// The time.
    pub(crate) fn now(&self) -> Now {
        Now::from_us(self.source.now().unix_us.saturating_add(self.shift_us.load(Ordering::Acquire)))
    }

    /// Moves on to `moment`, unless it is that late already.
    pub(crate) fn reach(&self, moment: Now) {
        let shift_us = moment.unix_us.saturating_sub(self.source.now().unix_us);
        self.shift_us.fetch_max(shift_us, Ordering::AcqRel);
    }

    /// True when it moves only when it is told to.
    pub(crate) fn is_frozen(&self) -> bool {
        matches!(self.source, Source::Frozen(_))
    }
}

impl Source {
    fn now(self) -> Now {
        match self {
            Source::System => system_now(),
            Source::Frozen(moment) => moment,
        }
    }
}

/// The system's time, as it counts it: SystemTime takes twice as long to be asked and to be told from the epoch.
#[cfg(unix)]
fn system_now() -> Now {
    let time = nix::time::ClockId::CLOCK_REALTIME.now();
    time.map_or_else(
        |_| from_system(system_time()),
        |time| Now::from_us(time.tv_sec() * 1_000_000 + time.tv_nsec() / 1000),
    )
}

#[cfg(not(unix))]
fn system_now() -> Now {
    from_system(system_time())
}

/// The system's time.
#[expect(clippy::disallowed_methods, reason = "this is the place that asks the system what time it is")]
pub(crate) fn system_time() -> SystemTime {
    SystemTime::now()
}

/// Microseconds since this was asked first, by a clock that nobody sets.
#[expect(clippy::disallowed_methods, reason = "this is the place that asks the system what time it is")]
pub(crate) fn monotonic_us() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}

/// The moment that the system calls `time`.
pub(crate) fn from_system(time: SystemTime) -> Now {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Now::from_us(micros(since)),
        Err(before) => Now::from_us(-micros(before.duration())),
    }
}

/// `moment` as the system calls it.
pub(crate) fn to_system(moment: Now) -> SystemTime {
    let distance = Duration::from_micros(moment.unix_us.unsigned_abs());
    let time = if moment.unix_us < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    time.unwrap_or(UNIX_EPOCH)
}

/// The moment `by` after `moment`, or the last one there is.
pub(crate) fn later(moment: Now, by: Duration) -> Now {
    Now::from_us(moment.unix_us.saturating_add(micros(by)))
}

fn micros(duration: Duration) -> i64 {
    let whole_us = i64::try_from(duration.as_secs()).ok().and_then(|seconds| seconds.checked_mul(1_000_000));
    whole_us.and_then(|us| us.checked_add(duration.subsec_micros().into())).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frozen_clock_moves_when_it_is_told_to_and_never_back() {
        let clock = Clock::frozen(Now::from_us(5));
        clock.reach(Now::from_us(9));
        clock.reach(Now::from_us(7));
        assert_eq!(clock.now(), Now::from_us(9));
    }

    #[test]
    fn a_running_clock_can_be_moved_on_and_runs_on_from_there() {
        let clock = Clock::system();
        let target = later(clock.now(), Duration::from_secs(3600));
        clock.reach(target);
        assert!(target <= clock.now() && clock.now() < later(target, Duration::from_secs(60)));
    }

    #[test]
    fn the_end_of_time_is_not_passed() {
        assert_eq!(later(Now::from_us(1), Duration::MAX), Now::from_us(i64::MAX));
    }

    #[test]
    fn a_moment_is_the_same_to_the_system() {
        for unix_us in [0, 1, -1, 1_600_000_000_123_456] {
            assert_eq!(from_system(to_system(Now::from_us(unix_us))), Now::from_us(unix_us));
        }
    }
}
