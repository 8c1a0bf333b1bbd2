//! Numbers as Redis reads and writes them.

/// Reads a whole number the way Redis does where it wants an integer: an optional `-`, then digits with no leading zero;
/// no sign `+`, no blank, no `-0`. `None` if it is not one, or does not fit.
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

/// Reads a double.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok().filter(|value: &f64| !value.is_nan())
}

/// Writes a double.
pub fn write_f64(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(value.to_string().as_bytes());
}
