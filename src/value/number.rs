//! Numbers as Redis reads and writes them: which texts are numbers, and which bytes are replied for a number.
//!
//! - [`parse_i64`] and [`write_i64`]: integers in the one form that Redis takes for an integer.
//! - [`parse_u64`]: cursors and the parts of ids, where Redis is more lenient.
//! - [`parse_short_decimal`]: decimal numbers of few digits, as most are, without a detour.
//! - [`parse_f64`], [`parse_f64_bound`], [`write_f64`] and [`write_f64_by_digits`]: scores,
//!   coordinates and RESP3 doubles.
//! - [`LongDouble`]: the wider format that `INCRBYFLOAT` adds in.
//!
//! No function here allocates other than by appending to the caller's buffer, except [`LongDouble`]'s. Sources: the
//! replies of Redis 8.0.6; each test says how its cases were taken.

mod binary;
mod digits;
mod long_double;

pub use long_double::LongDouble;

use self::binary::{Format, parse_hexadecimal};
use self::digits::digits_of;

/// Doubles with a whole value up to 2^62 from zero are written as integers.
const MAX_WHOLE: f64 = 4_611_686_018_427_387_904.0;

/// Reads a whole number the way Redis does where it wants an integer: an optional `-`, then digits with no leading
/// zero; no `+`, no blank, no `-0`. `None` if it is not one, or does not fit.
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    let mut value: i64 = 0;
    for &byte in digits {
        let digit = i64::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?;
        value = if negative { value.checked_sub(digit)? } else { value.checked_add(digit)? };
    }
    Some(value)
}

/// Reads an unsigned number the way Redis does where it wants one (a cursor, a part of an id), by two rules, one after
/// the other: as the integer of [`parse_i64`], which must not be negative, and then as C's `strtoull`, which takes
/// blanks, a sign and zeros in front, and where a negative number counts down from 2^64. A NUL ends the text.
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    let text = until_nul(text);
    match parse_i64(text) {
        Some(number) => u64::try_from(number).ok(),
        None => parse_as_strtoull(text),
    }
}

/// The number that a text begins with, as C's `atoi` reads it; 0 if there is none, or one that does not fit.
pub fn leading_i64(text: &[u8]) -> i64 {
    let blanks = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let text = text[blanks..].strip_prefix(b"+").unwrap_or(&text[blanks..]);
    let digits = text.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    let number = str::from_utf8(&text[..text.len().min(1 + digits)]).ok().and_then(|text| text.parse().ok());
    number.unwrap_or(0)
}

fn parse_as_strtoull(text: &[u8]) -> Option<u64> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let text = &text[text.iter().take_while(|byte| blank(byte)).count()..];
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let number = digits.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })?;
    Some(if is_negative { number.wrapping_neg() } else { number })
}

/// Appends an integer in decimal digits.
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Reads a score or another double: decimal text with a point and an exponent, C's hexadecimal form, or infinity in any
/// case. `None` for NaN, blanks around the number, a number too large, and one so small that it would become zero.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let (sign, unsigned) = match text {
        [b'-', rest @ ..] => (-1.0, rest),
        [b'+', rest @ ..] => (1.0, rest),
        rest => (1.0, rest),
    };
    if let [b'0', b'x' | b'X', digits @ ..] = unsigned {
        let (mantissa, exponent) = parse_hexadecimal(digits)?.round(Format::DOUBLE)?;
        return Some(sign * compose(mantissa, exponent));
    }
    let value = parse_decimal(text)?;
    let in_range = match value {
        0.0 => !has_nonzero_digit(unsigned),
        value if value.is_infinite() => !has_nonzero_digit(unsigned),
        _ => true,
    };
    in_range.then_some(value)
}

/// Reads a bound of a score range (`ZRANGEBYSCORE`, without its `(`), or what SORT compares, where Redis is more
/// lenient than for a score: a number too large is infinite, one too small is zero, text ends at a NUL, and no text
/// is zero. There is no hexadecimal.
pub fn parse_f64_bound(text: &[u8]) -> Option<f64> {
    match until_nul(text) {
        [] => Some(0.0),
        text => parse_decimal(text),
    }
}

/// The part of a text that C sees: all before the first NUL.
pub fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Reads a decimal or infinite number; a number out of range becomes zero or infinity. An oddity of Redis 8.0:
/// `-+inf` is minus infinity.
fn parse_decimal(text: &[u8]) -> Option<f64> {
    if text.strip_prefix(b"-+").is_some_and(is_infinity) {
        return Some(f64::NEG_INFINITY);
    }
    if let Some(value) = parse_short_decimal(text) {
        return Some(value);
    }
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!value.is_nan()).then_some(value)
}

/// Reads a decimal number of few digits without an exponent, as most scores and most numbers of scripts are. The digits
/// as an integer, and the power of ten that divides them, are exact doubles, so their quotient is rounded correctly, as
/// `strtod` reads it. `None` for anything else.
pub fn parse_short_decimal(text: &[u8]) -> Option<f64> {
    const MAX_DIGITS: usize = 16;
    const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
    let (is_negative, unsigned) = match text {
        [b'-', unsigned @ ..] => (true, unsigned),
        unsigned => (false, unsigned),
    };
    if unsigned.len() > MAX_DIGITS + 1 {
        return None;
    }
    let (mut number, mut point) = (0_u64, None);
    for (place, byte) in unsigned.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        match digit {
            0..=9 => number = number * 10 + u64::from(digit),
            _ if *byte == b'.' && point.is_none() => point = Some(place),
            _ => return None,
        }
    }
    let digits = unsigned.len() - usize::from(point.is_some());
    if !(1..=MAX_DIGITS).contains(&digits) || number > EXACT {
        return None;
    }
    let value = match point {
        Some(place) => number as f64 / POWERS_OF_TEN[digits - place],
        None => number as f64,
    };
    Some(if is_negative { -value } else { value })
}

/// Powers of ten, which doubles hold exactly.
const POWERS_OF_TEN: [f64; 17] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16];

/// The two spellings of infinity, in any case and without a sign.
fn is_infinity(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"infinity")
}

/// Whether a decimal number has a digit other than zero before its exponent; the word `infinity` has none.
fn has_nonzero_digit(unsigned: &[u8]) -> bool {
    unsigned.iter().take_while(|byte| !matches!(byte, b'e' | b'E')).any(|byte| matches!(byte, b'1'..=b'9'))
}

/// The double with a rounded mantissa and exponent.
fn compose(mantissa: u64, exponent: i32) -> f64 {
    const FRACTION_BITS: u32 = 52;
    let subnormal = mantissa >> FRACTION_BITS == 0;
    let field = if subnormal { 0 } else { (exponent + 1075) as u64 };
    f64::from_bits(field << FRACTION_BITS | mantissa & ((1 << FRACTION_BITS) - 1))
}

/// Appends a double as Redis writes a score and a RESP3 double: whole numbers up to 2^62 in full, others with few
/// digits that read back as the same double, plain or with an exponent as `1e+20`; `inf`, `-inf`, `nan` and `-0`.
pub fn write_f64(out: &mut Vec<u8>, value: f64) {
    match whole(value) {
        Some(number) => write_i64(out, number),
        None => write_f64_by_digits(out, value),
    }
}

/// The integer that [`write_f64`] writes, if it writes one in full.
pub fn whole(value: f64) -> Option<i64> {
    // There and back, as baseline x86-64 rounds a double only in a call.
    let integer = value as i64;
    let is_whole = value.abs() <= MAX_WHOLE && value == integer as f64 && !(integer == 0 && value.is_sign_negative());
    is_whole.then_some(integer)
}

/// Appends a double as [`write_f64`] does, but whole numbers like all others: 10^15 is `1e+15`. Redis prints numbers
/// so in DEBUG DIGEST and where it hashes them.
pub fn write_f64_by_digits(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"nan");
        return;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if value.is_infinite() {
        out.extend_from_slice(b"inf");
    } else if value == 0.0 {
        out.push(b'0');
    } else {
        let digits = digits_of(value.abs());
        write_digits(out, digits.as_bytes(), digits.exponent);
    }
}

/// Appends `digits * 10^exponent`, plain if that is short.
fn write_digits(out: &mut Vec<u8>, digits: &[u8], exponent: i32) {
    let length = digits.len() as i32;
    let magnitude = exponent + length - 1;
    if exponent >= 0 && magnitude < length + 7 {
        out.extend_from_slice(digits);
        write_zeros(out, exponent);
    } else if exponent < 0 && (exponent > -7 || magnitude.abs() < 4) {
        write_fraction(out, digits, length + exponent);
    } else {
        write_scientific(out, digits, magnitude);
    }
}

/// Appends digits with a point after the first `whole` of them, which may be zero or fewer.
fn write_fraction(out: &mut Vec<u8>, digits: &[u8], whole: i32) {
    match usize::try_from(whole) {
        Ok(whole) if whole > 0 => {
            out.extend_from_slice(&digits[..whole]);
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
        _ => {
            out.extend_from_slice(b"0.");
            write_zeros(out, -whole);
            out.extend_from_slice(digits);
        }
    }
}

fn write_scientific(out: &mut Vec<u8>, digits: &[u8], magnitude: i32) {
    let (first, others) = digits.split_at(1);
    out.extend_from_slice(first);
    if !others.is_empty() {
        out.push(b'.');
        out.extend_from_slice(others);
    }
    out.extend_from_slice(if magnitude < 0 { b"e-" } else { b"e+" });
    write_i64(out, i64::from(magnitude.abs()));
}

fn write_zeros(out: &mut Vec<u8>, count: i32) {
    out.extend(std::iter::repeat_n(b'0', usize::try_from(count).unwrap_or(0)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(value: f64) -> String {
        let mut out = Vec::new();
        write_f64(&mut out, value);
        String::from_utf8(out).expect("digits are text")
    }

    #[test]
    fn a_short_decimal_number_is_parsed_as_by_the_standard_library() {
        let texts =
            ["0", "007", "9007199254740992", "1600000000000000", "42", "-1", "1.0", ".5", "-5.", "1700000000.123456"];
        for text in texts {
            assert_eq!(parse_short_decimal(text.as_bytes()), text.parse().ok(), "{text}");
        }
        assert_eq!(parse_short_decimal(b"-0.0").map(f64::to_bits), Some((-0.0_f64).to_bits()));
        let others =
            ["", "-", ".", "-.", "+1", "1e3", "9007199254740993", "00000000000000001", "inf", "1 ", "1.2.3", "\u{664}"];
        for text in others {
            assert_eq!(parse_short_decimal(text.as_bytes()), None, "{text}");
        }
    }

    /// Expected: what INCRBY of Redis 8.0.6 accepts as an integer, and what it refuses.
    #[test]
    fn a_leading_number_may_be_followed_by_anything() {
        for (text, number) in
            [("12", 12), (" +7x", 7), ("-3.5", -3), ("", 0), ("x1", 0), ("-", 0), ("9223372036854775808", 0)]
        {
            assert_eq!(leading_i64(text.as_bytes()), number, "{text}");
        }
    }

    #[test]
    fn an_unsigned_number_is_parsed_as_in_redis() {
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b" +007"), Some(7));
        assert_eq!(parse_u64(b"-0"), Some(0));
        assert_eq!(parse_u64(b"7\0x"), Some(7));
        for word in ["", "\0", "-1", "x", "1x", "1 ", "18446744073709551616", "0x10", "+-1"] {
            assert_eq!(parse_u64(word.as_bytes()), None, "{word}");
        }
    }

    #[test]
    fn only_the_canonical_form_of_an_integer_is_read() {
        let table: [(&[u8], Option<i64>); 18] = [
            (b"0", Some(0)),
            (b"7", Some(7)),
            (b"-1", Some(-1)),
            (b"9223372036854775807", Some(i64::MAX)),
            (b"-9223372036854775808", Some(i64::MIN)),
            (b"9223372036854775808", None),
            (b"-9223372036854775809", None),
            (b"99999999999999999999", None),
            (b"-0", None),
            (b"+1", None),
            (b"01", None),
            (b"", None),
            (b"-", None),
            (b" 1", None),
            (b"1 ", None),
            (b"1\0", None),
            (b"1a", None),
            (b"0x1", None),
        ];
        for (text, value) in table {
            assert_eq!(parse_i64(text), value, "{}", text.escape_ascii());
        }
    }

    /// Expected: `ZADD key <text> member` and ZSCORE of Redis 8.0.6, the member long enough for a skiplist.
    #[test]
    fn a_score_is_read_and_written_as_in_redis() {
        let table = [
            ("0", "0"),
            ("-0", "-0"),
            ("+1", "1"),
            ("01", "1"),
            ("1.", "1"),
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("5.e3", "5000"),
            ("1E+5", "100000"),
            ("1e-5", "0.00001"),
            ("inf", "inf"),
            ("+INF", "inf"),
            ("-Infinity", "-inf"),
            ("-+inf", "-inf"),
            ("0x1p3", "8"),
            ("-0x10", "-16"),
            ("0X1P-3", "0.125"),
            ("0x.8", "0.5"),
            ("0x1.p1", "2"),
            ("0x0p99999", "0"),
            ("0x1p1023", "8.98846567431158e+307"),
            ("0x1p-1074", "5e-324"),
            ("0x1.8p-1075", "5e-324"),
            ("0e-400", "0"),
            ("0e999999999999999999999", "0"),
            ("2.5e-324", "5e-324"),
            ("1.7976931348623158e308", "1.7976931348623157e+308"),
            ("1e18", "1000000000000000000"),
            ("1e19", "1e+19"),
            ("1e23", "99999999999999990000000"),
            ("1.2345678901234567e22", "12345678901234568000000"),
            ("4611686018427387904", "4611686018427387904"),
            ("-4611686018427388928", "-4611686018427389000"),
            ("9007199254740993", "9007199254740992"),
            ("12345678901234567890", "12345678901234567000"),
            ("3.0000000000000004", "3.0000000000000004"),
            ("1234.56789012345", "1234.56789012345"),
            ("123456.78901234", "1.2345678901234e+5"),
            ("0.000015", "0.000015"),
            ("1.23e-5", "1.23e-5"),
            ("0.0000001", "1e-7"),
            ("-1.2345678901234567e-300", "-1.2345678901234568e-300"),
            ("2.2250738585072014e-308", "2.2250738585072014e-308"),
        ];
        for (text, answer) in table {
            assert_eq!(parse_f64(text.as_bytes()).map(written).as_deref(), Some(answer), "{text}");
        }
    }

    /// Redis 8.0.6 replied to ZADD with "value is not a valid float".
    #[test]
    fn texts_that_are_not_scores_are_refused() {
        let table = [
            "",
            " ",
            ".",
            "1e",
            "1e+",
            "e5",
            "infin",
            "infinityx",
            "nan",
            "-nan",
            "NAN",
            "nan(12)",
            "0x",
            "0x1p",
            "0x.",
            "1e309",
            "-1e309",
            "1.7976931348623159e308",
            "2.4e-324",
            "1e-400",
            "1e999999999999999999999",
            "1e-999999999999999999999",
            "0x1p1024",
            "0x1p-1075",
            "1_0",
            "1,0",
            "1f",
            "0b1",
            "1e5.0",
            "--1",
            "+-1",
            "-+1",
            "++inf",
            "1-",
            " 1",
            "1 ",
            "\t1",
            "1\n",
            "1\0",
            "\x001",
            "\u{ff11}",
        ];
        for text in table {
            assert_eq!(parse_f64(text.as_bytes()), None, "{}", text.escape_debug());
        }
    }

    /// Expected: `ZRANGEBYSCORE key <text> <text>` of Redis 8.0.6.
    #[test]
    fn the_end_of_a_range_is_read_leniently() {
        let table = [
            ("1.5", Some(1.5)),
            ("", Some(0.0)),
            ("\x001", Some(0.0)),
            ("1\x002", Some(1.0)),
            ("1e309", Some(f64::INFINITY)),
            ("-1e309", Some(f64::NEG_INFINITY)),
            ("-+inf", Some(f64::NEG_INFINITY)),
            ("1e-400", Some(0.0)),
            ("nan", None),
            ("0x1", None),
            (" 1", None),
            ("1 ", None),
            ("(1", None),
        ];
        for (text, value) in table {
            assert_eq!(parse_f64_bound(text.as_bytes()), value, "{}", text.escape_debug());
        }
    }

    proptest! {
        #[test]
        fn a_written_double_reads_back_as_the_same_double(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(!value.is_nan());
            let text = written(value);
            prop_assert_eq!(parse_f64(text.as_bytes()).map(f64::to_bits), Some(bits), "{}", text);
        }

        #[test]
        fn decimal_fractions_keep_their_digits(whole in 0_u32..1000, thousandths in 0_u32..1000) {
            let text = format!("{whole}.{thousandths:03}");
            let value = parse_f64(text.as_bytes()).expect("a decimal fraction");
            let kept = text.trim_end_matches('0').trim_end_matches('.');
            prop_assert_eq!(written(value), kept);
        }

        #[test]
        fn a_short_decimal_number_is_the_nearest_double(text in "-?[0-9]{0,9}[.]?[0-9]{0,9}") {
            if let Some(value) = parse_short_decimal(text.as_bytes()) {
                prop_assert_eq!(Some(value.to_bits()), text.parse().ok().map(f64::to_bits), "{}", text);
            }
        }

        #[test]
        fn every_integer_reads_back_and_no_other_text_is_an_integer(value in any::<i64>(), text in "[-+0-9]{0,5}") {
            let mut out = Vec::new();
            write_i64(&mut out, value);
            prop_assert_eq!(parse_i64(&out), Some(value));
            let canonical = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
            prop_assert_eq!(parse_i64(text.as_bytes()), canonical);
        }
    }
}
