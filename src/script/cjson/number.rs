//! Numbers as C prints and reads them.

use crate::value::number::parse_f64;

/// Appends a double with at most `precision` digits, as `%.14g` prints it: plain, or with an exponent where that is
/// shorter.
pub(super) fn write(out: &mut Vec<u8>, number: f64, precision: usize) {
    const PLAIN: f64 = 1e9;
    let whole = number as i64;
    if precision >= 10 && number.abs() < PLAIN && whole as f64 == number && (whole != 0 || number.is_sign_positive()) {
        return out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    }
    if number.is_sign_negative() {
        out.push(b'-');
    }
    if !number.is_finite() {
        return out.extend_from_slice(if number.is_nan() { b"nan" } else { b"inf" });
    }
    let text = format!("{:.*e}", precision - 1, number.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let length = digits.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
    write_digits(out, &digits[..length], exponent.parse().unwrap_or(0), precision);
}

/// Appends digits with an exponent, the first digit before the point.
fn write_digits(out: &mut Vec<u8>, digits: &[u8], exponent: i32, precision: usize) {
    let (first, rest) = digits.split_at(1);
    match usize::try_from(exponent) {
        Ok(exponent) if exponent < precision => {
            let whole = digits.len().min(exponent + 1);
            out.extend_from_slice(&digits[..whole]);
            out.resize(out.len() + exponent + 1 - whole, b'0');
            write_fraction(out, &digits[whole..]);
        }
        Err(_) if exponent >= -4 => {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', usize::try_from(-1 - exponent).unwrap_or(0)));
            out.extend_from_slice(digits);
        }
        _ => {
            out.extend_from_slice(first);
            write_fraction(out, rest);
            let sign = if exponent < 0 { '-' } else { '+' };
            out.extend_from_slice(format!("e{sign}{:02}", exponent.unsigned_abs()).as_bytes());
        }
    }
}

fn write_fraction(out: &mut Vec<u8>, digits: &[u8]) {
    if !digits.is_empty() {
        out.push(b'.');
        out.extend_from_slice(digits);
    }
}

/// Reads the number at the beginning of a text as `strtod` does, and returns its length too; `None` if there is none.
pub(crate) fn read(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let unsigned = &text[sign..];
    let word = |word: &str| {
        unsigned
            .get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
            .then_some(word.len())
    };
    let (value, length) = if let Some(length) = word("infinity").or_else(|| word("inf")) {
        (f64::INFINITY, length)
    } else if let Some(length) = word("nan") {
        (f64::NAN, length + payload_length(&unsigned[length..]))
    } else if let Some(length) = hexadecimal_length(unsigned) {
        (hexadecimal(&unsigned[..length]), length)
    } else {
        let length = decimal_length(unsigned)?;
        (std::str::from_utf8(&unsigned[..length]).ok()?.parse().ok()?, length)
    };
    let value = if text.first() == Some(&b'-') { -value } else { value };
    Some((value, sign + length))
}

fn digits(text: &[u8], is_digit: fn(&u8) -> bool) -> usize {
    text.iter().take_while(|byte| is_digit(byte)).count()
}

/// The length of `(chars)` behind `nan`.
fn payload_length(text: &[u8]) -> usize {
    let Some(inner) = text.strip_prefix(b"(") else { return 0 };
    let length = digits(inner, |byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    if inner.get(length) == Some(&b')') { length + 2 } else { 0 }
}

/// The length of digits, optionally with a point among them; `None` without any digit.
fn mantissa_length(text: &[u8], is_digit: fn(&u8) -> bool) -> Option<usize> {
    let whole = digits(text, is_digit);
    let fraction = match text.get(whole) {
        Some(b'.') => digits(&text[whole + 1..], is_digit),
        _ => return (whole > 0).then_some(whole),
    };
    (whole + fraction > 0).then_some(whole + 1 + fraction)
}

/// The length of an exponent behind `letter`, if there is one.
fn exponent_length(text: &[u8], letter: u8) -> usize {
    if text.first().is_none_or(|first| first.to_ascii_lowercase() != letter) {
        return 0;
    }
    let sign = usize::from(matches!(text.get(1), Some(b'+' | b'-')));
    match digits(&text[1 + sign..], u8::is_ascii_digit) {
        0 => 0,
        length => 1 + sign + length,
    }
}

fn decimal_length(text: &[u8]) -> Option<usize> {
    let length = mantissa_length(text, u8::is_ascii_digit)?;
    Some(length + exponent_length(&text[length..], b'e'))
}

fn hexadecimal_length(text: &[u8]) -> Option<usize> {
    let [b'0', b'x' | b'X', rest @ ..] = text else { return None };
    let length = mantissa_length(rest, u8::is_ascii_hexdigit)?;
    Some(2 + length + exponent_length(&rest[length..], b'p'))
}

/// Reads a hexadecimal number; one out of range becomes infinite or zero.
fn hexadecimal(text: &[u8]) -> f64 {
    let is_small = || text.windows(2).any(|pair| pair.eq_ignore_ascii_case(b"p-"));
    parse_f64(text).unwrap_or_else(|| if is_small() { 0.0 } else { f64::INFINITY })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(number: f64, precision: usize) -> String {
        let mut out = Vec::new();
        write(&mut out, number, precision);
        String::from_utf8(out).expect("it is ASCII")
    }

    #[test]
    fn numbers_are_written_with_the_configured_precision() {
        for (number, precision, text) in [
            (0.0, 14, "0"),
            (-0.0, 14, "-0"),
            (100.0, 14, "100"),
            (1e14, 14, "1e+14"),
            (99_999_999_999_999.0, 14, "99999999999999"),
            (0.1 + 0.2, 14, "0.3"),
            (0.0001, 14, "0.0001"),
            (0.00001, 14, "1e-05"),
            (123_456.0, 3, "1.23e+05"),
            (999.5, 3, "1e+03"),
            (1.5e300, 14, "1.5e+300"),
            (-2.25, 14, "-2.25"),
            (f64::NEG_INFINITY, 14, "-inf"),
        ] {
            assert_eq!(written(number, precision), text);
        }
    }

    #[test]
    fn the_longest_prefix_that_is_a_number_is_read() {
        for (text, expected) in [
            ("1e5x", Some((1e5, 3))),
            ("1ex", Some((1.0, 1))),
            ("-.5.", Some((-0.5, 3))),
            ("0x1p", Some((1.0, 3))),
            ("0xg", Some((0.0, 1))),
            ("0x.8p1", Some((1.0, 6))),
            ("+inFinite", Some((f64::INFINITY, 4))),
            (".", None),
            ("-", None),
            ("1e999", Some((f64::INFINITY, 5))),
        ] {
            assert_eq!(read(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(read(b"nan(x_1)").map(|(value, length)| (value.is_nan(), length)), Some((true, 8)));
    }
}
