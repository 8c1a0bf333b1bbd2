//! LRU and LFU: when, or how often, a key was accessed, in 24 bits of its record with the meaning that they have in
//! Redis.
//!
//! Under most policies they are a clock of seconds, which wraps after 194 days: the time of the last access. Under an
//! LFU policy they are 16 bits of minutes and 8 bits of a counter, which grows more slowly the larger it is and loses
//! one for every `lfu-decay-time` minutes without an access. A change between the two kinds of policies leaves the bits
//! as they are, as in Redis; they are meaningful again after the next access of the key.
//!
//! Every read and write that counts as an access updates the bits; OBJECT IDLETIME and FREQ report them, and eviction
//! is based on them.
//!
//! Source: Redis's documentation of `lfu-log-factor` and `lfu-decay-time`, and the answers of Redis 8.0.6.

use crate::engine::spec::Now;
use crate::engine::state::Settings;
pub use crate::rdb::file::LruHint;

const CLOCK_MASK: i64 = (1 << 24) - 1;

const MINUTES_MASK: u32 = 0xffff;

/// The counter of a new key: high enough that it is not evicted first.
const FIRST_COUNT: u8 = 5;

/// The value of the clock of seconds at a moment.
#[inline]
pub fn clock(now: Now) -> u32 {
    (now.unix_s() & CLOCK_MASK) as u32
}

/// The number of seconds since the last access, from a key's access bits.
pub fn idle_s(access: u32, now: Now) -> i64 {
    i64::from(clock(now).wrapping_sub(access)) & CLOCK_MASK
}

/// The counter in a key's access bits, less one for every `decay_minutes` that have passed; 0 means no decay.
pub fn frequency(access: u32, now: Now, decay_minutes: u32) -> u8 {
    let (then, now) = (access >> 8, minutes(now));
    let elapsed = if now >= then { now - then } else { MINUTES_MASK - then + now };
    let periods = elapsed.checked_div(decay_minutes).unwrap_or(0);
    (access as u8).saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX))
}

/// The value of the clock of minutes at a moment.
fn minutes(now: Now) -> u32 {
    now.unix_s().div_euclid(60) as u32 & MINUTES_MASK
}

fn counted(count: u8, now: Now) -> u32 {
    minutes(now) << 8 | u32::from(count)
}

/// The counter after one more access, which is counted with a probability that falls as the counter grows.
fn raised(count: u8, log_factor: u32, generator: &mut fastrand::Rng) -> u8 {
    let beyond_first = f64::from(count.saturating_sub(FIRST_COUNT));
    let probability = 1.0 / (beyond_first * f64::from(log_factor) + 1.0);
    count.saturating_add(u8::from(count < u8::MAX && generator.f64() < probability))
}

/// The new bits of a key that is accessed now; `access` returns the old ones.
#[inline]
pub(in crate::engine) fn used(
    access: impl FnOnce() -> u32,
    settings: &Settings,
    now: Now,
    generator: &mut fastrand::Rng,
) -> u32 {
    if !settings.policy.counts_uses() {
        return clock(now);
    }
    let count = frequency(access(), now, settings.lfu.decay_minutes);
    counted(raised(count, settings.lfu.log_factor, generator), now)
}

/// The bits of a new key, from `hint` if it fits the policy in force.
pub(in crate::engine) fn initial(hint: Option<LruHint>, settings: &Settings, now: Now) -> u32 {
    match (hint, settings.policy.counts_uses()) {
        (Some(LruHint::Frequency(count)), true) => counted(count, now),
        (_, true) => counted(FIRST_COUNT, now),
        (Some(LruHint::Idle(seconds)), false) => {
            clock(now).wrapping_sub((seconds % CLOCK_MASK) as u32) & CLOCK_MASK as u32
        }
        (_, false) => clock(now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_minute(minute: i64) -> Now {
        Now::from_us(minute * 60_000_000)
    }

    #[test]
    fn a_counter_loses_one_for_every_period_that_passes() {
        let access = counted(100, at_minute(10));
        for (minute, decay, expected) in [(10, 1, 100), (13, 1, 97), (13, 2, 99), (13, 0, 100), (500, 1, 0)] {
            assert_eq!(frequency(access, at_minute(minute), decay), expected, "minute {minute}, decay {decay}");
        }
    }

    #[test]
    fn the_clock_of_minutes_wraps_around_as_in_redis() {
        let access = counted(100, at_minute(65_530));
        assert_eq!(frequency(access, at_minute(65_536 + 4), 1), 100 - 9);
    }

    #[test]
    fn a_larger_counter_grows_more_slowly() {
        let mut generator = fastrand::Rng::with_seed(1);
        let mut after =
            |uses: usize, factor: u32| (0..uses).fold(FIRST_COUNT, |count, _| raised(count, factor, &mut generator));
        assert_eq!(after(100, 0), 105);
        assert_eq!(after(1_000, 0), 255);
        // The table of Redis's documentation has 10, 18, 142 and 255 for a factor of 10.
        for (uses, least, most) in [(100, 7, 14), (1_000, 15, 24), (100_000, 130, 155), (1_000_000, 255, 255)] {
            let count = after(uses, 10);
            assert!((least..=most).contains(&count), "{uses} uses give {count}");
        }
    }

    #[test]
    fn idle_seconds_are_right_across_the_wraparound_of_the_clock() {
        let end = Now::from_us(((1 << 24) - 2) * 1_000_000);
        assert_eq!(idle_s(clock(end), Now::from_us(end.unix_us + 5_000_000)), 5);
    }
}
