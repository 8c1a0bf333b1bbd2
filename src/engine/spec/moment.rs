//! [`Now`]: a moment on the server's clock, as the caller passes it to the engine.

/// A moment: microseconds since the Unix epoch, on the server's clock, which a test may stop or move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Microseconds since 1970-01-01 00:00 UTC.
    pub unix_us: i64,
}

impl Now {
    /// The moment that is `unix_us` microseconds after the Unix epoch.
    pub fn from_us(unix_us: i64) -> Now {
        Now { unix_us }
    }

    /// The moment so many milliseconds later.
    pub fn after_ms(self, ms: i64) -> Now {
        Now::from_us(self.unix_us.saturating_add(ms.saturating_mul(1000)))
    }

    /// The moment so many microseconds earlier.
    pub(in crate::engine) fn before_us(self, us: i64) -> Now {
        Now::from_us(self.unix_us.saturating_sub(us))
    }

    /// The last millisecond that a clock reaches; deadlines of keys may be later.
    pub const LAST_MS: i64 = i64::MAX / 1000;

    /// The moment that is `unix_ms` milliseconds after the Unix epoch, or the first moment if it is before that; `None`
    /// if no clock ever reaches it.
    pub fn from_ms(unix_ms: i64) -> Option<Now> {
        let unix_us = if unix_ms < 0 { Some(unix_ms.saturating_mul(1000)) } else { unix_ms.checked_mul(1000) };
        unix_us.map(Now::from_us)
    }

    /// The end of a wait of `length_ms` that begins now, in Unix milliseconds, but not after [`Now::LAST_MS`]. `None`
    /// if it exceeds 64 bits.
    pub fn wait_end_ms(self, length_ms: i64) -> Option<i64> {
        Some(self.unix_ms().checked_add(length_ms)?.min(Now::LAST_MS))
    }

    /// Milliseconds since the Unix epoch: the unit of deadlines.
    pub fn unix_ms(self) -> i64 {
        self.unix_us.div_euclid(1000)
    }

    /// Whole seconds since the Unix epoch.
    pub fn unix_s(self) -> i64 {
        self.unix_us.div_euclid(1_000_000)
    }

    /// Microseconds from `earlier` until now, 0 if the clock went back meanwhile.
    pub fn since_us(self, earlier: Now) -> u64 {
        self.unix_us.saturating_sub(earlier.unix_us).max(0).cast_unsigned()
    }
}
