//! The clock: the system's, or one that a test moves: it can be frozen, run faster or slower, and be set.
//!
//! The server passes the time to the engine, and lends it this clock to measure commands within a batch. Nothing else
//! reads the system's clock. Every clock counts from the Unix epoch, so a deadline means the same under any. A clock
//! that was never slowed, frozen or set back is the system's plus a shift, by which it was moved on; reading it costs
//! about 20 ns, which one command can afford. Any other clock shows the moment that it was set to, plus the time passed
//! since then multiplied by its speed.
//!
//! Clocks are changed under the engine's lock only, so a request sees one time.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::engine::{ClockOrder, Now};

/// A clock that may be shifted, set, frozen, or run at another speed.
#[derive(Debug)]
pub(crate) struct Clock {
    /// Whether it shows the system's time plus `shift_us`, and `motion` is not used.
    is_plain: AtomicBool,
    shift_us: AtomicI64,
    /// The time that it shows when it is not plain.
    motion: Mutex<Motion>,
}

/// A clock that showed one moment when the system's showed another, and runs at a speed of its own.
#[derive(Clone, Copy, Debug, Default)]
struct Motion {
    shown: Now,
    system: Now,
    /// The speed, relative to the system's clock: 0 is frozen.
    speed: f64,
}

/// The earliest moment that a clock shows. Deadlines of fields, ids of streams and access times are counted from it.
const FIRST: Now = Now { unix_us: 0 };

impl Motion {
    fn at(self, system: Now) -> Now {
        let passed_us = system.since_us(self.system) as f64 * self.speed;
        Now::from_us(self.shown.unix_us.saturating_add(passed_us as i64))
    }
}

impl Clock {
    /// The system's clock.
    pub(crate) fn system() -> Clock {
        Clock { is_plain: AtomicBool::new(true), shift_us: AtomicI64::new(0), motion: Mutex::default() }
    }

    /// A clock that is frozen at `moment`.
    pub(crate) fn frozen(moment: Now) -> Clock {
        let moment = moment.max(FIRST);
        let motion = Motion { shown: moment, system: moment, speed: 0.0 };
        Clock { is_plain: AtomicBool::new(false), shift_us: AtomicI64::new(0), motion: Mutex::new(motion) }
    }

    /// A clock that shows `moment` now, and runs at `speed` times the system's speed.
    pub(crate) fn running(moment: Now, speed: f64) -> Clock {
        let clock = Clock::frozen(moment);
        clock.set(moment);
        clock.run_at(speed);
        clock
    }

    /// Creates another clock that shows the same time and runs at the same speed.
    pub(crate) fn like(&self) -> Clock {
        Clock {
            is_plain: AtomicBool::new(self.is_plain.load(Ordering::Acquire)),
            shift_us: AtomicI64::new(self.shift_us.load(Ordering::Acquire)),
            motion: Mutex::new(*self.motion()),
        }
    }

    /// The time that the clock shows now.
    pub(crate) fn now(&self) -> Now {
        if self.is_plain.load(Ordering::Acquire) {
            let shift_us = self.shift_us.load(Ordering::Acquire);
            Now::from_us(system_now().unix_us.saturating_add(shift_us))
        } else {
            let motion = *self.motion();
            if motion.speed == 0.0 { motion.shown } else { motion.at(system_now()) }
        }
    }

    /// How far it is ahead of the system's, in microseconds.
    #[cfg(feature = "page")]
    pub(crate) fn offset_us(&self) -> i64 {
        self.now().unix_us.saturating_sub(system_now().unix_us)
    }

    /// Moves on to `moment`, unless it is that late already.
    pub(crate) fn reach(&self, moment: Now) {
        if self.is_plain.load(Ordering::Acquire) {
            self.shift_us.fetch_max(moment.unix_us.saturating_sub(system_now().unix_us), Ordering::AcqRel);
        } else if self.now() < moment {
            self.set(moment);
        }
    }

    /// Changes the clock as ordered. Nothing that falls due on the way happens: that is the caller's task.
    pub(crate) fn apply_order(&self, order: ClockOrder) {
        match order {
            ClockOrder::Reach(moment) => self.reach(moment),
            ClockOrder::Set(moment) => self.set(moment),
            ClockOrder::Speed(speed) => self.run_at(speed),
        }
    }

    fn set(&self, moment: Now) {
        let (moment, system) = (moment.max(FIRST), system_now());
        let mut motion = self.motion();
        (motion.shown, motion.system) = (moment, system);
        self.shift_us.store(moment.unix_us.saturating_sub(system.unix_us), Ordering::Release);
    }

    fn run_at(&self, speed: f64) {
        self.set(self.now());
        self.motion().speed = speed;
        self.is_plain.store(speed == 1.0, Ordering::Release);
    }

    /// True when the clock's speed is 0: it moves only when it is set.
    pub(crate) fn is_frozen(&self) -> bool {
        self.speed() == 0.0
    }

    /// The real time until the clock shows `moment`; `None` if it never will.
    pub(crate) fn time_until(&self, moment: Now) -> Option<Duration> {
        let (speed, rest) = (self.speed(), Duration::from_micros(moment.since_us(self.now())));
        // A time too long for a `Duration` (also one divided by speed 0) counts as never.
        Duration::try_from_secs_f64(rest.as_secs_f64() / speed).ok()
    }

    /// The clock's speed, relative to the system's clock.
    pub(crate) fn speed(&self) -> f64 {
        if self.is_plain.load(Ordering::Acquire) { 1.0 } else { self.motion().speed }
    }

    fn motion(&self) -> MutexGuard<'_, Motion> {
        // A panic of a thread that held this lock cannot leave it half written.
        self.motion.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The system's time, read directly: by way of `SystemTime`, reading and converting takes twice as long.
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

/// The system's time as a `SystemTime`.
#[expect(clippy::disallowed_methods, reason = "this is the place that asks the system what time it is")]
pub(crate) fn system_time() -> SystemTime {
    SystemTime::now()
}

/// Microseconds since the first call in this process, on the monotonic clock.
pub(crate) fn monotonic_us() -> u64 {
    monotonic_ns() / 1000
}

/// Nanoseconds since the first call in this process, on the monotonic clock. Each script reads it, so it is read as
/// [`system_now`] is.
#[cfg(unix)]
pub(crate) fn monotonic_ns() -> u64 {
    static START: OnceLock<i64> = OnceLock::new();
    let time = nix::time::ClockId::CLOCK_MONOTONIC.now();
    let now_ns = time.map_or(0, |time| time.tv_sec() * 1_000_000_000 + time.tv_nsec());
    u64::try_from(now_ns - START.get_or_init(|| now_ns)).unwrap_or(0)
}

/// Nanoseconds since the first call in this process, on the monotonic clock.
#[cfg(not(unix))]
#[expect(clippy::disallowed_methods, reason = "this is the place that asks the system what time it is")]
pub(crate) fn monotonic_ns() -> u64 {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    let elapsed = START.get_or_init(std::time::Instant::now).elapsed();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

/// Converts a `SystemTime` to a [`Now`].
pub(crate) fn from_system(time: SystemTime) -> Now {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Now::from_us(micros(since)),
        Err(before) => Now::from_us(-micros(before.duration())),
    }
}

/// Converts a [`Now`] to a `SystemTime`.
pub(crate) fn to_system(moment: Now) -> SystemTime {
    let distance = Duration::from_micros(moment.unix_us.unsigned_abs());
    let time = if moment.unix_us < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    time.unwrap_or(UNIX_EPOCH)
}

/// The moment `by` after `moment`, or the last possible one.
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
    fn a_frozen_clock_moves_only_on_request_and_never_back() {
        let clock = Clock::frozen(Now::from_us(5));
        clock.reach(Now::from_us(9));
        clock.reach(Now::from_us(7));
        assert_eq!(clock.now(), Now::from_us(9));
    }

    #[test]
    fn a_running_clock_can_be_advanced_and_runs_on_from_there() {
        let clock = Clock::system();
        let target = later(clock.now(), Duration::from_secs(3600));
        clock.reach(target);
        assert!(target <= clock.now() && clock.now() < later(target, Duration::from_secs(60)));
    }

    #[test]
    fn a_stopped_clock_runs_on_from_its_time() {
        let clock = Clock::system();
        clock.apply_order(ClockOrder::Set(Now::from_us(5_000_000)));
        clock.apply_order(ClockOrder::Speed(0.0));
        let shown = clock.now();
        assert!(clock.is_frozen() && clock.time_until(later(shown, Duration::from_secs(1))).is_none());
        clock.apply_order(ClockOrder::Speed(1.0));
        assert!(shown <= clock.now() && clock.now() < later(shown, Duration::from_secs(60)));
    }

    #[test]
    fn at_twice_the_speed_a_time_is_reached_in_half_the_wait() {
        let clock = Clock::frozen(Now::from_us(0));
        clock.apply_order(ClockOrder::Speed(2.0));
        let rest = clock.time_until(later(clock.now(), Duration::from_secs(3600))).expect("the clock runs");
        assert!(rest <= Duration::from_secs(1800) && rest > Duration::from_secs(1700), "{rest:?}");
    }

    #[test]
    fn a_clock_can_be_set_back_whether_it_runs_or_not() {
        for clock in [Clock::system(), Clock::frozen(Now::from_us(9_000_000))] {
            clock.apply_order(ClockOrder::Set(Now::from_us(7_000_000)));
            assert!(clock.now().since_us(Now::from_us(7_000_000)) < 60_000_000);
        }
    }

    #[test]
    fn the_clock_stops_at_the_largest_time() {
        assert_eq!(later(Now::from_us(1), Duration::MAX), Now::from_us(i64::MAX));
    }

    #[test]
    fn a_time_converts_to_the_systems_type_and_back() {
        for unix_us in [0, 1, -1, 1_600_000_000_123_456] {
            assert_eq!(from_system(to_system(Now::from_us(unix_us))), Now::from_us(unix_us));
        }
    }
}
