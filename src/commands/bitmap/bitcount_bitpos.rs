//! The bits of a range: BITCOUNT and BITPOS.
//!
//! A range is given in bytes or in bits; negative positions count from the end. It is parsed first and cut to the
//! string later, because only then the length is known.

use crate::engine::{Args, Arity, BitmapError, Change, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::value::bits;
use std::ops::Range;

const UNIT: &[Change] = &[Change::brings("7.0.0", &["BYTE", "BIT"])];

pub(super) const BITCOUNT: Command = Command {
    name: "BITCOUNT",
    syntax: "key range:[start end unit:[BYTE|BIT]]",
    family: Family::Bitmap,
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "2.6.0",
    history: UNIT,
    cost: "O(N)",
    about: "Counts the set bits in a string or in a part of it.",
    run: bitcount,
    ..Command::ROW
};

fn bitcount(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let part = match args.left() {
        0 => None,
        2 | 3 => Some(Part { start: args.integer()?, end: args.integer()?, unit: Unit::parse(&mut args)? }),
        _ => return Err(Error::Syntax),
    };
    let (text, reply) = cx.text(key)?;
    let mut digits = itoa::Buffer::new();
    let bytes = text.as_ref().map_or(&b""[..], |text| text.as_bytes(&mut digits));
    let count = match part {
        None => bits::count_ones(bytes),
        Some(Part { start, end, .. }) if start < 0 && end < start => 0,
        Some(part) => bits::count_in(bytes, part.range(bytes.len())),
    };
    reply.integer(count as i64);
    Ok(())
}

pub(super) const BITPOS: Command = Command {
    name: "BITPOS",
    syntax: "key bit range:[start end-unit-block:[end unit:[BYTE|BIT]]]",
    family: Family::Bitmap,
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "2.8.7",
    history: UNIT,
    cost: "O(N)",
    about: "Finds the first set or clear bit in a string or in a part of it.",
    run: bitpos,
    ..Command::ROW
};

fn bitpos(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let bit = match args.integer()? {
        0 => false,
        1 => true,
        _ => return Err(BitmapError::SoughtBit.into()),
    };
    let (part, has_end) = sought_part(&mut args)?;
    let (text, reply) = cx.text(key)?;
    let Some(text) = text else {
        reply.integer(if bit { -1 } else { 0 });
        return Ok(());
    };
    let mut digits = itoa::Buffer::new();
    let bytes = text.as_bytes(&mut digits);
    let range = part.range(bytes.len());
    let found = match bits::find(bytes, range.clone(), bit) {
        // A string whose end was not given counts as followed by zeros.
        None if !bit && !has_end && !range.is_empty() => Some(range.end),
        found => found,
    };
    reply.integer(found.map_or(-1, |place| place as i64));
    Ok(())
}

/// The range that BITPOS searches, and whether its end was given.
fn sought_part(args: &mut Args<'_>) -> Result<(Part, bool), Error> {
    if args.left() > 3 {
        return Err(Error::Syntax);
    }
    let has_end = args.left() >= 2;
    let start = if args.is_empty() { 0 } else { args.integer()? };
    // Redis checks the unit before the end.
    let mut ahead = *args;
    if has_end {
        ahead.word()?;
    }
    let unit = Unit::parse(&mut ahead)?;
    let end = if has_end { args.integer()? } else { -1 };
    Ok((Part { start, end, unit }, has_end))
}

/// The unit of the ends of a range: bytes or bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Bytes,
    Bits,
}

impl Unit {
    /// Parses the optional unit.
    fn parse(args: &mut Args<'_>) -> Result<Unit, Error> {
        if args.take("BIT") {
            return Ok(Unit::Bits);
        }
        if args.take("BYTE") || args.is_empty() {
            return Ok(Unit::Bytes);
        }
        Err(Error::Syntax)
    }
}

/// A range of a string as a client gives it: its first and last position, negative ones counted from the end.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: i64,
    end: i64,
    unit: Unit,
}

impl Part {
    /// The range's bits in a string of that many bytes; empty if it starts after its end.
    fn range(self, length: usize) -> Range<u64> {
        let width = if self.unit == Unit::Bits { 1 } else { 8 };
        let total = length as i64 * (8 / width);
        let place = |index: i64| if index < 0 { (total + index).max(0) } else { index };
        let (first, last) = (place(self.start), place(self.end).min(total - 1));
        if first > last { 0..0 } else { (first * width) as u64..((last + 1) * width) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i64, end: i64, unit: Unit) -> Range<u64> {
        Part { start, end, unit }.range(3)
    }

    #[test]
    fn a_range_is_cut_to_the_string_in_bytes_and_in_bits() {
        assert_eq!(range(0, -1, Unit::Bytes), 0..24);
        assert_eq!(range(1, 1, Unit::Bytes), 8..16);
        assert_eq!(range(-5, -3, Unit::Bits), 19..22);
        assert_eq!(range(i64::MIN, i64::MAX, Unit::Bits), 0..24);
        assert_eq!(range(i64::MIN, i64::MAX, Unit::Bytes), 0..24);
    }

    #[test]
    fn a_range_behind_the_end_of_the_string_is_empty() {
        assert!(range(2, 1, Unit::Bytes).is_empty());
        assert!(range(3, 9, Unit::Bytes).is_empty());
        assert!(range(i64::MAX, i64::MIN, Unit::Bits).is_empty());
        assert!(Part { start: 0, end: -1, unit: Unit::Bytes }.range(0).is_empty());
    }
}
