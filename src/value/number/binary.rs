//! Rounding an exact number to the bits that a binary format has, once.
//!
//! [`Exact`] is the result of an exact computation; [`Exact::round`] cuts it to a [`Format`], to nearest and ties to
//! even, with the gradual underflow of IEEE 754. It knows no sign and no infinity: a number that is too large, or
//! that is not zero but would become so, is refused, because every caller refuses it.

/// `mantissa * 2^exponent`, and a little more, less than one unit of the mantissa, if `inexact`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    /// If `inexact`, at least 2^100, so that what is missing never decides more than a tie.
    pub(super) mantissa: u128,
    pub(super) exponent: i64,
    pub(super) inexact: bool,
}

/// A binary floating-point format, in terms of the last bit of its numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    /// The number of bits of a mantissa, at most 64.
    pub(super) precision: u32,
    pub(super) min_exponent: i64,
    pub(super) max_exponent: i64,
}

impl Format {
    /// IEEE 754 double precision.
    pub(super) const DOUBLE: Format = Format { precision: 53, min_exponent: -1074, max_exponent: 971 };
    /// The x87's extended precision, which C calls `long double` on x86.
    pub(super) const EXTENDED: Format = Format { precision: 64, min_exponent: -16445, max_exponent: 16320 };
}

impl Exact {
    /// The nearest number of `format`, as mantissa and exponent; `None` if it is out of range or rounds to zero.
    pub(super) fn round(self, format: Format) -> Option<(u64, i32)> {
        if self.mantissa == 0 {
            return Some((0, format.min_exponent as i32));
        }
        let shift = self.mantissa.leading_zeros();
        let mantissa = self.mantissa << shift;
        let exponent = self.exponent.checked_sub(i64::from(shift))?;
        let wanted = exponent.saturating_add(i64::from(128 - format.precision)).max(format.min_exponent);
        let (mut kept, mut exponent) = (drop_bits(mantissa, wanted.saturating_sub(exponent), self.inexact), wanted);
        if kept >> format.precision != 0 {
            kept >>= 1;
            exponent += 1;
        }
        if kept == 0 || exponent > format.max_exponent {
            return None;
        }
        Some((u64::try_from(kept).ok()?, i32::try_from(exponent).ok()?))
    }
}

/// Divides a number above zero by `2^count` and rounds.
fn drop_bits(mantissa: u128, count: i64, inexact: bool) -> u128 {
    if count > 128 {
        return 0;
    }
    let half = 1 << (count - 1);
    let kept = if count == 128 { 0 } else { mantissa >> count };
    let dropped = if count == 128 { mantissa } else { mantissa & ((1 << count) - 1) };
    let up = dropped > half || dropped == half && (inexact || kept & 1 == 1);
    kept + u128::from(up)
}

/// Reads what follows `0x` in C's hexadecimal floating-point text: hex digits, perhaps with a point, and
/// perhaps `p` and a power of two.
pub(super) fn parse_hexadecimal(text: &[u8]) -> Option<Exact> {
    let (digits, power) = match text.iter().position(|byte| matches!(byte, b'p' | b'P')) {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let mut exact = Exact { mantissa: 0, exponent: power, inexact: false };
    let (mut seen_digit, mut seen_point) = (false, false);
    for &byte in digits {
        let digit = match byte {
            b'.' if !seen_point => {
                seen_point = true;
                continue;
            }
            _ => char::from(byte).to_digit(16)?,
        };
        seen_digit = true;
        let fits = exact.mantissa >> 120 == 0;
        if fits {
            exact.mantissa = exact.mantissa << 4 | u128::from(digit);
        } else {
            exact.inexact |= digit != 0;
        }
        let step = i64::from(!fits) - i64::from(seen_point);
        exact.exponent = exact.exponent.saturating_add(4 * step);
    }
    seen_digit.then_some(exact)
}

/// Reads a signed decimal exponent; one that is out of range stays out of range.
pub(super) fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0_i64, |value, byte| (value * 10 + i64::from(byte - b'0')).min(1 << 40));
    Some(sign * value)
}
