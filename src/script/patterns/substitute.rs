//! `string.gsub`: a subject with its matches replaced.

use std::ops::Range;

use super::matcher::{Captured, Captures, Matcher};
use super::{place_of, push_capture, push_captures};
use crate::lua::{Kind, Raise, Stack};
use crate::script::arguments::{integer_or, lower_half};

const ESCAPE: u8 = b'%';
const REPLACEMENT: i32 = 3;

/// The replacement of a match.
enum Replacement<'c> {
    Text(std::borrow::Cow<'c, [u8]>),
    /// A text that stands for nothing but itself.
    Plain(std::borrow::Cow<'c, [u8]>),
    Table,
    Function,
}

/// A subject, and the index of the string from which its parts are pushed.
struct Subject<'s> {
    bytes: &'s [u8],
    place: i32,
}

pub(super) fn gsub(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let (bytes, pattern) = (stack.text_argument(1)?, stack.text_argument(2)?);
    let limit = lower_half(integer_or(stack, 4, i64::try_from(bytes.len()).unwrap_or(i64::MAX).saturating_add(1))?);
    let replacement = replacement(stack)?;
    let subject = Subject { bytes: &bytes, place: place_of(stack, 1, &bytes) };
    let mut matcher = Matcher::new(&bytes, &pattern);
    let is_anchored = matcher.take_anchor();
    let (mut out, mut at, mut count) = (Vec::new(), 0, 0);
    while count < limit {
        if !is_anchored {
            let start = matcher.next_start(stack, at)?;
            out.extend_from_slice(&bytes[at..start]);
            at = start;
        }
        let end = matcher.match_at(stack, at)?;
        if let Some(end) = end {
            count += 1;
            write_replacement(stack, &mut out, &replacement, &subject, &matcher.captures, at..end)?;
            stack.check_memory(out.len())?;
        }
        match end {
            Some(end) if end > at => at = end,
            _ if at < bytes.len() => {
                out.push(bytes[at]);
                at += 1;
            }
            _ => break,
        }
        if is_anchored {
            break;
        }
    }
    out.extend_from_slice(&bytes[at..]);
    stack.push_bytes(&out)?;
    stack.push_number(count.into());
    Ok(2)
}

fn replacement<'c>(stack: &mut Stack<'c>) -> Result<Replacement<'c>, Raise> {
    match stack.kind(REPLACEMENT) {
        Kind::String | Kind::Number => {
            let text = stack.text_argument(3)?;
            let is_plain = memchr::memchr(ESCAPE, &text).is_none();
            Ok(if is_plain { Replacement::Plain(text) } else { Replacement::Text(text) })
        }
        Kind::Table => Ok(Replacement::Table),
        Kind::Function => Ok(Replacement::Function),
        _ => Err(Raise::argument(3, "string/function/table expected")),
    }
}

fn write_replacement(
    stack: &mut Stack<'_>,
    out: &mut Vec<u8>,
    replacement: &Replacement<'_>,
    subject: &Subject<'_>,
    captures: &Captures,
    whole: Range<usize>,
) -> Result<(), Raise> {
    let has_answer = match replacement {
        Replacement::Plain(text) => {
            out.extend_from_slice(text);
            return Ok(());
        }
        Replacement::Text(text) => return write_text(stack, out, text, subject, captures, &whole),
        Replacement::Table => {
            push_capture(stack, subject.place, captures.get(0, &whole)?)?;
            stack.look_up(REPLACEMENT)
        }
        Replacement::Function => {
            stack.push_copy(REPLACEMENT);
            let count = push_captures(stack, subject.place, captures, &whole)?;
            stack.call(count, Some(1))
        }
    };
    if !has_answer {
        return Err(Raise::Top);
    }
    if !stack.truth(-1) {
        out.extend_from_slice(&subject.bytes[whole]);
    } else if !stack.write_text(-1, out) {
        return Err(Raise::here(format!("invalid replacement value (a {})", stack.type_name(-1))));
    }
    stack.pop(1);
    Ok(())
}

/// Writes a text in which `%1` stands for a capture, `%0` for the whole match, and `%` before any other byte for that
/// byte.
fn write_text(
    stack: &Stack<'_>,
    out: &mut Vec<u8>,
    text: &[u8],
    subject: &Subject<'_>,
    captures: &Captures,
    whole: &Range<usize>,
) -> Result<(), Raise> {
    let mut rest = text;
    while let Some(at) = memchr::memchr(ESCAPE, rest) {
        out.extend_from_slice(&rest[..at]);
        // For C, a NUL is behind a text.
        let item = rest.get(at + 1).copied().unwrap_or(0);
        rest = rest.get(at + 2..).unwrap_or_default();
        match item {
            b'0' => out.extend_from_slice(&subject.bytes[whole.clone()]),
            b'1'..=b'9' => match captures.get(usize::from(item - b'1'), whole)? {
                Captured::Position(position) => {
                    out.extend_from_slice(itoa::Buffer::new().format(position).as_bytes());
                }
                Captured::Part(part) => out.extend_from_slice(&subject.bytes[part]),
            },
            _ => out.push(item),
        }
        stack.check_memory(out.len())?;
    }
    out.extend_from_slice(rest);
    Ok(())
}
