//! The number of `INCRBYFLOAT` and `HINCRBYFLOAT`: C's `long double` as the x87 has it, with 64 bits of mantissa.
//!
//! Redis adds in this format and prints 17 decimals, so `0.1 + 0.2` is `0.3` there and not the double's
//! `0.30000000000000004`. This is the same arithmetic, in integers: text is rounded once to 64 bits, a sum is exact and
//! rounded once, and output is exact and rounded once to 17 decimals; all to nearest, ties to even.
//!
//! Invariant: a finite number that is not zero has the first bit of its mantissa set, or the lowest exponent.
//!
//! Costs: a sum is a few instructions. Text takes big-integer arithmetic that grows with its length and its exponent,
//! at most 5119 bytes and 10^±4952, so a hostile one costs less than a millisecond.
//!
//! Sources: IEEE 754; the replies of Redis 8.0.6 on x86-64, in the tests below and for 300,000 random pairs.

use num_bigint::BigUint;

use super::binary::{Exact, Format, parse_exponent, parse_hexadecimal};
use super::is_infinity;

/// The most bytes of a text; longer text is refused.
const MAX_TEXT_BYTES: usize = 5 * 1024 - 1;
/// The number of decimals that are printed.
const DECIMALS: u32 = 17;
/// Beyond these powers of ten a number is out of range, whatever its digits are.
const MAX_POWER_OF_TEN: i64 = 4933;
const MIN_POWER_OF_TEN: i64 = -4952;

/// `mantissa * 2^exponent` with a sign, or an infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongDouble {
    negative: bool,
    mantissa: u64,
    /// The exponent of the mantissa's last bit; [`INFINITE`] for an infinity.
    exponent: i32,
}

const INFINITE: i32 = i32::MAX;

impl LongDouble {
    /// Zero.
    pub const ZERO: LongDouble =
        LongDouble { negative: false, mantissa: 0, exponent: Format::EXTENDED.min_exponent as i32 };

    /// Reads text as C's `strtold` does, and refuses what Redis refuses: not a number, blanks around it, more than 5119
    /// bytes, a number too large, or one so small that it would become zero. Infinity is a number here.
    pub fn parse(text: &[u8]) -> Option<LongDouble> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        let (negative, unsigned) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        if is_infinity(unsigned) {
            return Some(LongDouble { negative, mantissa: 0, exponent: INFINITE });
        }
        let exact = match unsigned {
            [b'0', b'x' | b'X', digits @ ..] => parse_hexadecimal(digits)?,
            digits => parse_decimal(digits)?,
        };
        LongDouble::rounded(negative, exact)
    }

    /// Whether it is not an infinity.
    pub fn is_finite(self) -> bool {
        self.exponent != INFINITE
    }

    /// The sum; `None` if it is not finite.
    pub fn checked_add(self, other: LongDouble) -> Option<LongDouble> {
        if !self.is_finite() || !other.is_finite() {
            return None;
        }
        let (large, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        // 62 bits below the larger number hold every bit of the smaller, unless the smaller is too small to matter.
        let distance = large.exponent.abs_diff(small.exponent);
        let minuend = u128::from(large.mantissa) << 62;
        let wide = u128::from(small.mantissa) << 62;
        let addend = wide.checked_shr(distance).unwrap_or(0);
        let inexact = addend.checked_shl(distance).unwrap_or(0) != wide;
        let (negative, mantissa) = if large.negative == small.negative {
            (large.negative, minuend + addend)
        } else if minuend >= addend {
            // The part that was cut off the smaller number is subtracted as a whole unit, and added back as `inexact`.
            (large.negative, minuend - addend - u128::from(inexact))
        } else {
            (small.negative, addend - minuend)
        };
        let cancelled = mantissa == 0 && large.negative != small.negative;
        let exact = Exact { mantissa, exponent: i64::from(large.exponent) - 62, inexact };
        LongDouble::rounded(negative && !cancelled, exact)
    }

    /// A thousand times the number, rounded up to a whole one, as seconds become milliseconds. Values below the
    /// smallest 64-bit integer become that integer; `None` above the largest.
    pub fn to_ms_rounded_up(self) -> Option<i64> {
        let out_of_range = self.negative.then_some(i64::MIN);
        if !self.is_finite() {
            return out_of_range;
        }
        let mantissa = u128::from(self.mantissa) * 1000;
        let exact = Exact { mantissa, exponent: i64::from(self.exponent), inexact: false };
        let Some(product) = LongDouble::rounded(self.negative, exact) else { return out_of_range };
        let mantissa = u128::from(product.mantissa);
        let whole = match u32::try_from(product.exponent) {
            Ok(0) => mantissa,
            // More than 64 bits, or zero.
            Ok(_) if mantissa > 0 => return out_of_range,
            Ok(_) => 0,
            Err(_) => {
                let power = product.exponent.unsigned_abs();
                let floor = mantissa.checked_shr(power).unwrap_or(0);
                let is_whole = floor.checked_shl(power).unwrap_or(0) == mantissa;
                floor + u128::from(!is_whole && !product.negative)
            }
        };
        match i64::try_from(whole) {
            Ok(whole) => Some(if product.negative { -whole } else { whole }),
            Err(_) => out_of_range,
        }
    }

    /// Appends the number with up to 17 decimals, without trailing zeros and never as `-0`. A power of ten is written
    /// out, up to 4933 digits.
    pub fn write(self, out: &mut Vec<u8>) {
        let start = out.len();
        if self.negative {
            out.push(b'-');
        }
        if !self.is_finite() {
            out.extend_from_slice(b"inf");
        } else if let Ok(shift) = u32::try_from(self.exponent) {
            let whole = BigUint::from(self.mantissa) << shift;
            out.extend_from_slice(whole.to_str_radix(10).as_bytes());
        } else {
            self.write_decimals(out);
        }
        if out[start..] == *b"-0" {
            out.remove(start);
        }
    }

    fn write_decimals(self, out: &mut Vec<u8>) {
        let unit = 10_u128.pow(DECIMALS);
        let scaled = divide_by_power_of_two(u128::from(self.mantissa) * unit, self.exponent.unsigned_abs());
        let (whole, fraction) = (scaled / unit, scaled % unit);
        let digits = format!("{whole}.{fraction:017}");
        out.extend_from_slice(digits.trim_end_matches('0').trim_end_matches('.').as_bytes());
    }

    fn rounded(negative: bool, exact: Exact) -> Option<LongDouble> {
        let (mantissa, exponent) = exact.round(Format::EXTENDED)?;
        Some(LongDouble { negative, mantissa, exponent })
    }
}

/// Rounds to nearest, ties to even.
fn divide_by_power_of_two(value: u128, power: u32) -> u128 {
    let quotient = value.checked_shr(power).unwrap_or(0);
    let half = 1_u128.checked_shl(power - 1).unwrap_or(u128::MAX);
    let rest = value - quotient.checked_shl(power).unwrap_or(0);
    quotient + u128::from(rest > half || rest == half && quotient & 1 == 1)
}

/// Reads decimal digits, perhaps with a point and a power of ten, and keeps 128 bits of the number.
fn parse_decimal(text: &[u8]) -> Option<Exact> {
    let (significand, power) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let point = significand.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&significand[..at], &significand[at + 1..]),
        None => (significand, &[][..]),
    };
    let digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let leading_zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    let digits = &digits[leading_zeros..];
    if digits.is_empty() {
        return Some(Exact { mantissa: 0, exponent: 0, inexact: false });
    }
    let power = power - fraction.len() as i64;
    if !(MIN_POWER_OF_TEN..=MAX_POWER_OF_TEN).contains(&(power + digits.len() as i64)) {
        return None;
    }
    let ten = BigUint::from(10_u32).pow(u32::try_from(power.unsigned_abs()).ok()?);
    let significand = BigUint::parse_bytes(digits, 10)?;
    Some(if power >= 0 { first_bits(significand * ten, 0, false) } else { ratio(significand, ten) })
}

/// The first 128 bits or more of a quotient.
fn ratio(dividend: BigUint, divisor: BigUint) -> Exact {
    let shift = (divisor.bits() + 130).saturating_sub(dividend.bits());
    let shifted = dividend << shift;
    let quotient = &shifted / &divisor;
    let inexact = &quotient * divisor != shifted;
    first_bits(quotient, -(shift as i64), inexact)
}

/// The first 128 bits of `value * 2^exponent`.
fn first_bits(value: BigUint, exponent: i64, inexact: bool) -> Exact {
    let excess = value.bits().saturating_sub(128);
    let cut = value.trailing_zeros().unwrap_or(0) < excess;
    let mantissa = u128::try_from(value >> excess).expect("128 bits are left after the excess is shifted out");
    Exact { mantissa, exponent: exponent + excess as i64, inexact: inexact || cut }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(number: LongDouble) -> String {
        let mut out = Vec::new();
        number.write(&mut out);
        String::from_utf8(out).expect("digits are text")
    }

    fn sum(left: &str, right: &str) -> Option<String> {
        let (left, right) = (LongDouble::parse(left.as_bytes())?, LongDouble::parse(right.as_bytes())?);
        left.checked_add(right).map(written)
    }

    /// Expected: `SET key <left>` and `INCRBYFLOAT key <right>` of Redis 8.0.6 on x86-64; `None` is any error.
    #[test]
    fn seconds_become_milliseconds_rounded_up() {
        let table = [
            ("0.001", Some(1)),
            ("0.07", Some(70)),
            ("0.0701", Some(71)),
            ("-0.0001", Some(0)),
            ("-1.0005", Some(-1000)),
            ("0x10", Some(16_000)),
            ("5e-4940", Some(1)),
            ("9223372036854775.807", Some(i64::MAX)),
            ("9223372036854776", None),
            ("1e30", None),
            ("inf", None),
            ("-inf", Some(i64::MIN)),
            ("-1e4000", Some(i64::MIN)),
        ];
        for (text, milliseconds) in table {
            let number = LongDouble::parse(text.as_bytes()).expect("these are numbers");
            assert_eq!(number.to_ms_rounded_up(), milliseconds, "{text}");
        }
    }

    #[test]
    fn sums_have_the_digits_of_redis() {
        let table = [
            ("0.1", "0.2", Some("0.3")),
            ("10.50", "0.1", Some("10.6")),
            ("3.0e3", "-1e-17", Some("3000")),
            ("5.0e3", "200", Some("5200")),
            ("0", "-0", Some("0")),
            ("-1", "1", Some("0")),
            ("-0x10", "0x1.8p3", Some("-4")),
            ("1e-17", "0", Some("0.00000000000000001")),
            ("4e-18", "0", Some("0")),
            ("5e-18", "0", Some("0")),
            ("6e-18", "0", Some("0.00000000000000001")),
            ("0.5e-17", "1", Some("1")),
            ("1.5e-17", "0", Some("0.00000000000000002")),
            ("2.5e-17", "0", Some("0.00000000000000002")),
            ("-1e-30", "0", Some("0")),
            ("1e20", "1", Some("100000000000000000000")),
            ("18446744073709551615", "1", Some("18446744073709551616")),
            ("18446744073709551616", "1", Some("18446744073709551616")),
            ("18446744073709551617", "2", Some("18446744073709551618")),
            ("9223372036854775807", "0.5", Some("9223372036854775807.5")),
            ("9223372036854775807", "0.25", Some("9223372036854775807")),
            ("36893488147419103233", "0", Some("36893488147419103232")),
            ("0.123456789012345678901234567890", "0", Some("0.12345678901234568")),
            ("3.141592653589793238462643383279", "1e-19", Some("3.14159265358979324")),
            ("1e18", "0.123456789", Some("1000000000000000000.125")),
            ("1e10", "1e-10", Some("10000000000")),
            ("0x1p64", "-0x1p0", Some("18446744073709551615")),
            ("0x1p64", "-0x1p-1", Some("18446744073709551616")),
            ("0x1p64", "-0x1.8p-1", Some("18446744073709551615")),
            ("0x1p63", "0x1p-1", Some("9223372036854775808")),
            ("0x1.0000000000000002p64", "0x1p0", Some("18446744073709551620")),
            ("1e100", "-1e100", Some("0")),
            ("inf", "1", None),
            ("-inf", "1", None),
            ("1e4932", "1e4932", None),
            ("1.18e4932", "1.18e4932", None),
            ("1e-4950", "1e-4950", Some("0")),
            ("1e-4951", "0", None),
            ("1.9e-4951", "0", Some("0")),
            ("nan", "1", None),
            ("1e", "0", None),
            ("", "0", None),
            ("1", "1x", None),
            ("+5", "+.5", Some("5.5")),
            ("12e-1", ".e1", None),
            ("infinit", "0", None),
            ("0x", "0", None),
            ("0x.", "0", None),
            ("0x1p", "0", None),
        ];
        for (left, right, answer) in table {
            assert_eq!(sum(left, right).as_deref(), answer, "{left} + {right}");
        }
    }

    #[test]
    fn the_largest_number_is_written_in_full() {
        let text = sum("0x1.fffffffffffffffep16383", "0").expect("it is finite");
        assert_eq!((text.len(), &text[..20]), (4933, "11897314953572317650"));
        assert_eq!(sum("0x1.ffffffffffffffffp16383", "0"), None);
    }

    #[test]
    fn a_number_longer_than_the_limit_is_refused() {
        let longest = format!("1.{}", "1".repeat(MAX_TEXT_BYTES - 2));
        assert_eq!(sum(&longest, "0").as_deref(), Some("1.11111111111111111"));
        assert_eq!(sum(&format!("{longest}1"), "0"), None);
    }

    #[test]
    fn an_infinity_is_read_but_cannot_be_added() {
        let infinity = LongDouble::parse(b"-Infinity").expect("a number");
        assert!(!infinity.is_finite());
        assert_eq!((written(infinity).as_str(), infinity.checked_add(LongDouble::ZERO)), ("-inf", None));
    }

    proptest! {
        #[test]
        fn integers_add_as_integers(left in any::<i64>(), right in any::<i64>()) {
            let expected = i128::from(left) + i128::from(right);
            prop_assert_eq!(sum(&left.to_string(), &right.to_string()), Some(expected.to_string()));
        }

        #[test]
        fn the_order_of_a_sum_makes_no_difference(
            left in "-?[0-9]{1,20}(e-?[0-9]{1,2})?",
            right in "-?[0-9]{0,9}[.][0-9]{1,20}",
        ) {
            prop_assert_eq!(sum(&left, &right), sum(&right, &left));
        }

        #[test]
        fn a_written_sum_reads_back_as_the_same_text(mantissa: u64, power in -16400..16300, minus: bool) {
            let text = format!("{}0x{mantissa:x}p{power}", if minus { "-" } else { "" });
            let once = written(LongDouble::parse(text.as_bytes()).expect("in range"));
            let again = written(LongDouble::parse(once.as_bytes()).expect("the written text is a number"));
            prop_assert_eq!(once, again);
        }

        #[test]
        fn no_text_makes_the_addition_panic(text in "[-+]{0,2}(0x)?[0-9a-f.]{0,30}([ep][-+]?[0-9]{0,6})?") {
            let _ = sum(&text, "1");
        }
    }
}
