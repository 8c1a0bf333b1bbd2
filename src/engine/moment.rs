//! The time, as the engine is told it.

/// A moment: microseconds since the Unix epoch, on the server's clock, which a test may hold still or move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Microseconds since 1970-01-01 00:00 UTC.
    pub unix_us: i64,
}

impl Now {
    /// That many microseconds since the Unix epoch.
    pub fn from_us(unix_us: i64) -> Now {
        Now { unix_us }
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
