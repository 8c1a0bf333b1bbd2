//! Character classes: the bytes that an item of a pattern matches, such as `%a`, and sets such as `[^%w_-]`. Letters
//! are those of ASCII, as scripts run in the locale `C`.

const ESCAPE: u8 = b'%';

/// Whether a byte belongs to a class: one of the letters `acdlpsuwxz`, as a capital for all other bytes; any other
/// byte stands for itself.
#[inline]
pub(super) fn is_in_class(byte: u8, class: u8) -> bool {
    let is_within = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte == b' ' || (0x09..=0x0d).contains(&byte),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return byte == class,
    };
    is_within == class.is_ascii_lowercase()
}

/// Whether a byte belongs to a set, which is given with its brackets.
pub(super) fn is_in_set(byte: u8, set: &[u8]) -> bool {
    let items = &set[1..set.len() - 1];
    match items.split_first() {
        Some((b'^', items)) => !is_among(byte, items),
        _ => is_among(byte, items),
    }
}

fn is_among(byte: u8, mut items: &[u8]) -> bool {
    loop {
        let (is_within, rest) = match items {
            [] => return false,
            // Behind a range up to `%`: it escapes the bracket at the end.
            [ESCAPE] => return byte == b']',
            [ESCAPE, class, rest @ ..] => (is_in_class(byte, *class), rest),
            [first, b'-', last, rest @ ..] => ((*first..=*last).contains(&byte), rest),
            [item, rest @ ..] => (*item == byte, rest),
        };
        if is_within {
            return true;
        }
        items = rest;
    }
}

/// The length of the set at the beginning of a pattern, with its brackets; `None` if it does not end. A bracket in
/// first position belongs to the set.
pub(super) fn set_length(pattern: &[u8]) -> Option<usize> {
    let mut at = if pattern.get(1) == Some(&b'^') { 2 } else { 1 };
    let first = at;
    loop {
        match *pattern.get(at)? {
            b']' if at > first => return Some(at + 1),
            ESCAPE => at += 2,
            _ => at += 1,
        }
    }
}
