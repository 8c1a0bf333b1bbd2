//! The options that give a string its deadline: `EX`, `PX`, `EXAT` and `PXAT`.
//!
//! Redis finds out what an option's word is, and whether it contradicts another, before it looks at any number; so
//! [`Expiration`] keeps the word, and [`Expiration::deadline_ms`] reads it once all options are known. The same option
//! twice is no contradiction: the last one holds.

use crate::engine::{Args, Error, Now};
use crate::value::number;

const MS_PER_S: i64 = 1000;

/// What the number of an option means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// `EX`: seconds from now.
    Seconds,
    /// `PX`: milliseconds from now.
    Milliseconds,
    /// `EXAT`: seconds since the Unix epoch.
    UnixSeconds,
    /// `PXAT`: milliseconds since the Unix epoch.
    UnixMilliseconds,
}

impl Unit {
    const OPTIONS: [(&'static str, Unit); 4] = [
        ("EX", Unit::Seconds),
        ("PX", Unit::Milliseconds),
        ("EXAT", Unit::UnixSeconds),
        ("PXAT", Unit::UnixMilliseconds),
    ];

    fn is_seconds(self) -> bool {
        matches!(self, Unit::Seconds | Unit::UnixSeconds)
    }

    fn is_from_now(self) -> bool {
        matches!(self, Unit::Seconds | Unit::Milliseconds)
    }
}

/// A deadline that was asked for, its number not read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiration<'a> {
    unit: Unit,
    word: &'a [u8],
}

impl<'a> Expiration<'a> {
    /// The number `word` in `unit`.
    pub(super) fn new(unit: Unit, word: &'a [u8]) -> Expiration<'a> {
        Expiration { unit, word }
    }

    /// Takes one of the four options with its number, if one stands next. An option without a number is left alone, as
    /// is one of another unit than `earlier`, which it contradicts.
    pub(super) fn take(args: &mut Args<'a>, earlier: Option<Expiration<'a>>) -> Result<Option<Expiration<'a>>, Error> {
        for (name, unit) in Unit::OPTIONS {
            let agrees = earlier.is_none_or(|earlier| earlier.unit == unit);
            if agrees && args.take_with(name, 1) {
                return Ok(Some(Expiration { unit, word: args.word()? }));
            }
        }
        Ok(None)
    }

    /// The deadline in unix milliseconds; it may have passed already. `command` is named by the error.
    ///
    /// # Errors
    /// No integer; not positive, or too far away to be counted in milliseconds.
    pub(super) fn deadline_ms(self, now: Now, command: &'static str) -> Result<i64, Error> {
        let number = number::parse_i64(self.word).ok_or(Error::NotAnInteger)?;
        let per_unit = if self.unit.is_seconds() { MS_PER_S } else { 1 };
        let origin_ms = if self.unit.is_from_now() { now.unix_ms() } else { 0 };
        Some(number)
            .filter(|&number| number > 0)
            .and_then(|number| number.checked_mul(per_unit)?.checked_add(origin_ms))
            .filter(|&deadline_ms| deadline_ms > 0)
            .ok_or(Error::InvalidExpireTime(command))
    }
}
