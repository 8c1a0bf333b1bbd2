//! The fast path of parsing, for the form of nearly every request: an array of bulk strings that has arrived as a
//! whole, with lengths of a few digits.
//!
//! Every other request is left, from its first byte, to the complete parser of [`super::parser`], which alone handles
//! errors and unfinished requests. Both find the same words.

use super::parser::{Limits, Parser};
use super::request::Span;

impl Parser {
    /// Reads a request of the common form that has arrived as a whole, adds the spans of its words to `words` and
    /// returns its length. For any other request, it changes nothing: [`Parser::find`] reads it.
    pub(super) fn take_whole(&self, input: &[u8], limits: &Limits, words: &mut Vec<Span>) -> Option<usize> {
        if !self.is_fresh() || !limits.authenticated || input.first() != Some(&b'*') {
            return None;
        }
        let (count, mut position) = short_count(input).filter(|&(count, _)| count > 0)?;
        let before = words.len();
        for _ in 0..count {
            let Some(word) = whole_bulk(input, position).filter(|word| word.end - word.start <= limits.max_bulk_bytes)
            else {
                words.truncate(before);
                return None;
            };
            position = word.end + 2;
            words.push(word);
        }
        Some(position)
    }
}

/// The span of a bulk string's bytes that begins at `position` and has arrived as a whole.
fn whole_bulk(input: &[u8], position: usize) -> Option<Span> {
    let bulk = input.get(position..).filter(|bulk| bulk.first() == Some(&b'$'))?;
    let (length, line_bytes) = short_count(bulk)?;
    let word = Span { start: position + line_bytes, end: position + line_bytes + length as usize };
    (word.end + 2 <= input.len()).then_some(word)
}

/// The common case of a count line: one to eight digits after the type byte, CR and one more byte. Returns the count
/// and the length of the line; anything else is left to the complete parser.
#[inline]
pub(super) fn short_count(line: &[u8]) -> Option<(u32, usize)> {
    let &[_, first, second, third, ..] = line else { return None };
    let (first, second) = (u32::from(first.wrapping_sub(b'0')), second.wrapping_sub(b'0'));
    match second {
        END if first <= 9 => Some((first, 4)),
        0..=9 if third == b'\r' && (1..=9).contains(&first) && line.len() > 4 => {
            Some((first * 10 + u32::from(second), 5))
        }
        _ => longer_count(line),
    }
}

/// The distance of CR from the digit 0.
const END: u8 = b'\r'.wrapping_sub(b'0');

#[inline(never)]
fn longer_count(line: &[u8]) -> Option<(u32, usize)> {
    let digits = line.get(1..)?;
    let mut count = 0;
    for (index, &byte) in digits.iter().take(9).enumerate() {
        if byte == b'\r' && index > 0 && digits.len() > index + 1 {
            return Some((count, index + 3));
        }
        let padded = index > 0 && count == 0;
        if !byte.is_ascii_digit() || padded {
            return None;
        }
        count = count * 10 + u32::from(byte - b'0');
    }
    None
}
