//! When a fault rule fires: from which match on, how often, and how probably.

use std::fmt::{self, Display};

/// When a fault rule fires.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// The first match for which it fires, counted from 1: earlier ones pass.
    pub nth: u64,
    /// The most times that it fires.
    pub times: Option<u64>,
    /// The probability that it fires, in percent.
    pub percent: Option<f64>,
    /// The number of matches so far.
    pub matched: u64,
    /// The number of times that it fired.
    pub fired: u64,
}

impl Default for Trigger {
    /// Fires for every match.
    fn default() -> Trigger {
        Trigger { nth: 1, times: None, percent: None, matched: 0, fired: 0 }
    }
}

impl Trigger {
    /// Lets it fire from the n-th match on, and once unless another number of times is set.
    pub fn set_nth(&mut self, nth: u64) {
        self.nth = nth;
        self.times = self.times.or(Some(1));
    }

    /// Counts a match; whether it fires for it.
    pub fn is_due(&mut self, generator: &mut fastrand::Rng) -> bool {
        self.matched += 1;
        let is_used_up = self.times.is_some_and(|times| self.fired >= times);
        if self.matched < self.nth || is_used_up {
            return false;
        }
        if self.percent.is_some_and(|percent| generator.f64() * 100.0 >= percent) {
            return false;
        }
        self.fired += 1;
        true
    }
}

impl Display for Trigger {
    /// The words of DUNLIN FAULT ADD, each with a space behind it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nth > 1 {
            write!(formatter, "NTH {} ", self.nth)?;
        }
        if let Some(times) = self.times {
            write!(formatter, "TIMES {times} ")?;
        }
        if let Some(percent) = self.percent {
            write!(formatter, "PERCENT {percent} ")?;
        }
        Ok(())
    }
}
