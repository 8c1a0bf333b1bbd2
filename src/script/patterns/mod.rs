//! The functions of `string` that could take too much time or memory: `find`, `match`, `gmatch`, `gsub` and `rep`.
//!
//! They behave as those of Lua 5.1, including the texts of their errors. Unlike those they need no more of the native
//! stack for a longer pattern, can be suspended and ended ([`Stack::step`]), and check that memory allows a result
//! before they make it. A pattern is interpreted: there is nothing to compile.

mod class;
mod matcher;
mod substitute;
#[cfg(test)]
mod tests;

use std::ops::{Range, RangeInclusive};

use self::matcher::{Captured, Captures, Matcher};
use super::arguments::{integer, integer_or, lower_half, register};
use crate::lua::{OUT_OF_MEMORY, Raise, Stack};

/// The bytes that make a text a pattern.
const SPECIAL: &[u8] = b"^$*+?.([%-";

/// Stores our functions in the table `string`.
///
/// # Errors
/// If memory has run out.
pub(crate) fn replace(stack: &mut Stack<'_>, table: i32) -> Result<(), Raise> {
    stack.push_copy(table);
    register(
        stack,
        &[
            ("find", find),
            ("match", match_once),
            ("gmatch", match_each),
            ("gfind", match_each),
            ("gsub", substitute::gsub),
            ("rep", repeat),
        ],
    )?;
    stack.pop(1);
    Ok(())
}

fn find(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let (subject, pattern) = (stack.text_argument(1)?, stack.text_argument(2)?);
    let start = start(stack, subject.len())?;
    if stack.truth(4) || is_plain(&pattern) {
        stack.work(subject.len() + pattern.len())?;
        return Ok(match memchr::memmem::find(&subject[start..], &pattern) {
            Some(offset) => push_bounds(stack, &(start + offset..start + offset + pattern.len())),
            None => push_nothing(stack),
        });
    }
    let Some((captures, whole)) = search(stack, &subject, &pattern, start)? else { return Ok(push_nothing(stack)) };
    let place = place_of(stack, 1, &subject);
    let count = push_bounds(stack, &whole);
    Ok(count + if captures.count() > 0 { push_captures(stack, place, &captures, &whole)? } else { 0 })
}

fn match_once(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let (subject, pattern) = (stack.text_argument(1)?, stack.text_argument(2)?);
    let start = start(stack, subject.len())?;
    let Some((captures, whole)) = search(stack, &subject, &pattern, start)? else { return Ok(push_nothing(stack)) };
    let place = place_of(stack, 1, &subject);
    push_captures(stack, place, &captures, &whole)
}

/// The start of a search by the third argument, counted from 0: a negative argument counts from the end.
fn start(stack: &Stack<'_>, length: usize) -> Result<usize, Raise> {
    let init = integer_or(stack, 3, 1)?;
    let from_end = || length.saturating_sub(usize::try_from(init.unsigned_abs()).unwrap_or(usize::MAX));
    let start = if init < 0 { from_end() } else { usize::try_from(init - 1).unwrap_or(0) };
    Ok(start.min(length))
}

/// Whether a text has no special bytes before its first NUL, where the pattern ends for C; then all of the text is
/// plain.
fn is_plain(pattern: &[u8]) -> bool {
    !pattern.iter().take_while(|&&byte| byte != 0).any(|byte| SPECIAL.contains(byte))
}

fn search(
    stack: &Stack<'_>,
    subject: &[u8],
    pattern: &[u8],
    start: usize,
) -> Result<Option<(Captures, Range<usize>)>, Raise> {
    let mut matcher = Matcher::new(subject, pattern);
    if matcher.take_anchor() {
        let end = matcher.match_at(stack, start)?;
        return Ok(end.map(|end| (matcher.captures, start..end)));
    }
    first_match(stack, &mut matcher, start..=subject.len())
}

/// The first match that begins at one of these positions: its captures and its extent.
fn first_match(
    stack: &Stack<'_>,
    matcher: &mut Matcher<'_>,
    starts: RangeInclusive<usize>,
) -> Result<Option<(Captures, Range<usize>)>, Raise> {
    let mut at = *starts.start();
    while at <= *starts.end() {
        at = matcher.next_start(stack, at)?;
        if let Some(end) = matcher.match_at(stack, at)? {
            return Ok(Some((matcher.captures, at..end)));
        }
        at += 1;
    }
    Ok(None)
}

fn push_nothing(stack: &mut Stack<'_>) -> usize {
    stack.push_nil();
    1
}

fn push_bounds(stack: &mut Stack<'_>, whole: &Range<usize>) -> usize {
    stack.push_number((whole.start + 1) as f64);
    stack.push_number(whole.end as f64);
    2
}

/// The index of a string with the text of an argument: the argument itself, or for a number a string of its text.
fn place_of(stack: &mut Stack<'_>, argument: usize, text: &[u8]) -> i32 {
    if stack.argument(argument).is_none() {
        stack.push_plain(text);
        return stack.absolute(-1);
    }
    i32::try_from(argument).unwrap_or(i32::MAX)
}

/// Pushes the captures in the string at `place`; the whole match if the pattern captures nothing.
fn push_captures(stack: &mut Stack<'_>, place: i32, captures: &Captures, whole: &Range<usize>) -> Result<usize, Raise> {
    let count = captures.count().max(1);
    stack.reserve(count).map_err(|_| Raise::here("stack overflow (too many captures)"))?;
    for number in 0..count {
        push_capture(stack, place, captures.get(number, whole)?)?;
    }
    Ok(count)
}

fn push_capture(stack: &mut Stack<'_>, place: i32, captured: Captured) -> Result<(), Raise> {
    match captured {
        Captured::Position(position) => stack.push_number(position as f64),
        Captured::Part(part) => stack.push_part(place, part)?,
    }
    Ok(())
}

/// `gmatch`: pushes a function whose upvalues are the subject, the pattern, and the position where it continues.
fn match_each(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let (subject, pattern) = (stack.text_argument(1)?, stack.text_argument(2)?);
    stack.push_bytes(&subject)?;
    stack.push_bytes(&pattern)?;
    stack.push_number(0.0);
    stack.push_closure(match_next, 3);
    Ok(1)
}

fn match_next(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let [subject, pattern, position] = [1, 2, 3].map(Stack::upvalue);
    let start = stack.number(position).unwrap_or(0.0) as usize;
    let found = {
        let mut matcher =
            Matcher::new(stack.bytes(subject).unwrap_or_default(), stack.bytes(pattern).unwrap_or_default());
        first_match(stack, &mut matcher, start..=stack.length(subject))?
    };
    let Some((captures, whole)) = found else { return Ok(0) };
    let next = if whole.is_empty() { whole.end + 1 } else { whole.end };
    stack.push_number(next as f64);
    stack.replace(position);
    push_captures(stack, subject, &captures, &whole)
}

fn repeat(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let text = stack.text_argument(1)?;
    let count = usize::try_from(lower_half(integer(stack, 2)?)).unwrap_or(0);
    let length = text.len().checked_mul(count).ok_or_else(|| Raise::text(OUT_OF_MEMORY))?;
    let mut repeated = stack.buffer(length)?;
    if length > 0 {
        repeated.extend_from_slice(&text);
    }
    while repeated.len() < length {
        let more = repeated.len().min(length - repeated.len());
        repeated.extend_from_within(..more);
    }
    stack.push_bytes(&repeated)?;
    Ok(1)
}
