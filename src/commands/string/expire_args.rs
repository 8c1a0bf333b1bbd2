//! The options that give a string its deadline: `EX`, `PX`, `EXAT` and `PXAT`.
//!
//! Redis first recognizes all option words and their contradictions, and only then parses the numbers; so
//! [`Expiration`] stores the word, and [`Expiration::deadline_ms`] parses it once all options are known. A repeated
//! option is no contradiction: the last one is used.

use crate::engine::{Args, Error, Now};
use crate::value::number;

const MS_PER_S: i64 = 1000;

/// The unit and the origin of an option's number.
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

/// A requested deadline whose number is not parsed yet.
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

    /// Whether the number is the deadline itself, in unix milliseconds.
    pub(super) fn is_in_unix_ms(self) -> bool {
        self.unit == Unit::UnixMilliseconds
    }

    /// Parses one of the four options with its number, if the next word is one. An option without a number is not
    /// consumed, nor is one of another unit than `earlier`, which it contradicts.
    pub(super) fn take(args: &mut Args<'a>, earlier: Option<Expiration<'a>>) -> Result<Option<Expiration<'a>>, Error> {
        for (name, unit) in Unit::OPTIONS {
            let agrees = earlier.is_none_or(|earlier| earlier.unit == unit);
            if agrees && args.take_with(name, 1) {
                return Ok(Some(Expiration { unit, word: args.word()? }));
            }
        }
        Ok(None)
    }

    /// The deadline in unix milliseconds; it may have passed already. The error names `command`.
    ///
    /// # Errors
    /// The number is not an integer, is not positive, or is too large to be counted in milliseconds.
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
