//! Matches a pattern at one position of a subject.
//!
//! The pattern is read while it is matched. Where there are several ways to continue, the others are kept in a list
//! of our own, not on the native stack, and tried when the current one fails: the list grows by at most one entry for
//! each item of the pattern. C reads a NUL behind a text; that is emulated here: `%f` checks it.

use std::ops::Range;

use super::class;
use crate::lua::{Raise, Stack};

const MAX_CAPTURES: usize = 32;
const ESCAPE: u8 = b'%';

/// The extent of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Unfinished,
    Position,
    Length(usize),
}

/// The captures of a match.
#[derive(Clone, Copy, Debug)]
pub(super) struct Captures {
    starts: [usize; MAX_CAPTURES],
    extents: [Extent; MAX_CAPTURES],
    count: usize,
}

/// A value that was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Captured {
    /// A position, counted from 1.
    Position(usize),
    /// A part of the subject.
    Part(Range<usize>),
}

impl Captures {
    fn none() -> Captures {
        Captures { starts: [0; MAX_CAPTURES], extents: [Extent::Unfinished; MAX_CAPTURES], count: 0 }
    }

    /// The number of captures of the pattern.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// A capture, counted from 0; the first of a pattern without any is the whole match.
    pub(super) fn get(&self, number: usize, whole: &Range<usize>) -> Result<Captured, Raise> {
        if number >= self.count {
            return if number == 0 { Ok(Captured::Part(whole.clone())) } else { Err(invalid_index()) };
        }
        let start = self.starts[number];
        match self.extents[number] {
            Extent::Unfinished => Err(Raise::here("unfinished capture")),
            Extent::Position => Ok(Captured::Position(start + 1)),
            Extent::Length(length) => Ok(Captured::Part(start..start + length)),
        }
    }

    fn innermost_open(&self) -> Result<usize, Raise> {
        let open = self.extents[..self.count].iter().rposition(|&extent| extent == Extent::Unfinished);
        open.ok_or_else(|| Raise::here("invalid pattern capture"))
    }
}

fn invalid_index() -> Raise {
    Raise::here("invalid capture index")
}

/// The state of a match: its positions in the subject and in the pattern.
#[derive(Clone, Copy, Debug)]
struct Point {
    subject: usize,
    pattern: usize,
}

/// The result of one item of the pattern.
enum Step {
    On(Point),
    Done(usize),
    Back,
}

/// A way that is left to try, or a change to undo before.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// Without an optional item.
    Point(Point),
    /// With fewer repetitions: the rest of the pattern from `last` down to `first`.
    Fewer { first: usize, last: usize, rest: usize },
    /// With one repetition more of the item from `item` to `rest - 1`.
    More { at: usize, item: usize, rest: usize },
    /// The last capture was not opened.
    Open,
    /// The capture was not closed.
    Close(usize),
}

/// A pattern and a subject.
#[derive(Debug)]
pub(super) struct Matcher<'t> {
    subject: &'t [u8],
    pattern: &'t [u8],
    pub(super) captures: Captures,
    choices: Vec<Choice>,
    /// The item of the pattern that the first byte of each match fits, if there is one.
    first: Option<Range<usize>>,
}

impl<'t> Matcher<'t> {
    /// A matcher; a pattern ends at its first NUL.
    pub(super) fn new(subject: &'t [u8], pattern: &'t [u8]) -> Matcher<'t> {
        let length = memchr::memchr(0, pattern).unwrap_or(pattern.len());
        let pattern = &pattern[..length];
        let mut matcher = Matcher { subject, pattern, captures: Captures::none(), choices: Vec::new(), first: None };
        matcher.first = matcher.first_item();
        matcher
    }

    /// The item at the beginning of the pattern, behind brackets that open captures, if it matches exactly one byte or
    /// at least one.
    fn first_item(&self) -> Option<Range<usize>> {
        let start = self.pattern.iter().position(|&byte| byte != b'(').filter(|&start| start <= MAX_CAPTURES)?;
        match self.pattern[start] {
            b'^' if start == 0 => return None,
            b')' | b'$' => return None,
            ESCAPE if matches!(self.item(start + 1), b'b' | b'f' | b'0'..=b'9') => return None,
            _ => {}
        }
        let end = self.item_end(start).ok()?;
        (!matches!(self.item(end), b'*' | b'?' | b'-')).then_some(start..end)
    }

    /// The first position from `at` on at which a match may begin, or the end of the subject.
    ///
    /// # Errors
    /// If the script has to end.
    pub(super) fn next_start(&self, stack: &Stack<'_>, at: usize) -> Result<usize, Raise> {
        let Some(Range { start, end }) = self.first else { return Ok(at) };
        let skipped = count(self.pattern, start, end, self.subject.get(at..).unwrap_or_default(), false);
        stack.step(skipped)?;
        Ok(at + skipped)
    }

    /// Skips `^` at the beginning of the pattern: true if it was there.
    pub(super) fn take_anchor(&mut self) -> bool {
        let rest = self.pattern.strip_prefix(b"^");
        self.pattern = rest.unwrap_or(self.pattern);
        rest.is_some()
    }

    /// Matches at one position, and returns where the match ends.
    ///
    /// # Errors
    /// If the pattern is malformed, or the script has to end.
    pub(super) fn match_at(&mut self, stack: &Stack<'_>, start: usize) -> Result<Option<usize>, Raise> {
        self.captures.count = 0;
        self.choices.clear();
        let mut point = Point { subject: start, pattern: 0 };
        loop {
            stack.step(1)?;
            match self.step(stack, point)? {
                Step::On(next) => point = next,
                Step::Done(end) => return Ok(Some(end)),
                Step::Back => match self.next_choice() {
                    Some(next) => point = next,
                    None => return Ok(None),
                },
            }
        }
    }

    /// The byte of the pattern at an offset; behind its end, a NUL.
    fn item(&self, at: usize) -> u8 {
        self.pattern.get(at).copied().unwrap_or(0)
    }

    #[inline]
    fn step(&mut self, stack: &Stack<'_>, point: Point) -> Result<Step, Raise> {
        let at = point.pattern;
        match self.item(at) {
            0 => Ok(Step::Done(point.subject)),
            b'(' => self.open(point),
            b')' => self.close(point),
            b'$' if at + 1 == self.pattern.len() => {
                Ok(if point.subject == self.subject.len() { Step::Done(point.subject) } else { Step::Back })
            }
            ESCAPE => match self.item(at + 1) {
                b'b' => self.balance(stack, point),
                b'f' => self.frontier(point),
                digit if digit.is_ascii_digit() => self.repeat(stack, point, digit),
                _ => self.single(stack, point),
            },
            _ => self.single(stack, point),
        }
    }

    /// Takes the last way that has not been tried yet.
    fn next_choice(&mut self) -> Option<Point> {
        loop {
            match self.choices.last_mut()? {
                Choice::Point(point) => {
                    let point = *point;
                    self.choices.pop();
                    return Some(point);
                }
                Choice::Fewer { first, last, rest } => {
                    let point = Point { subject: *last, pattern: *rest };
                    if first == last {
                        self.choices.pop();
                    } else {
                        *last -= 1;
                    }
                    return Some(point);
                }
                Choice::More { at, item, rest } => {
                    let (item, end) = (*item, *rest - 1);
                    if is_fitting(self.pattern, item, end, self.subject.get(*at)) {
                        *at += 1;
                        return Some(Point { subject: *at, pattern: *rest });
                    }
                    self.choices.pop();
                }
                Choice::Open => {
                    self.captures.count -= 1;
                    self.choices.pop();
                }
                Choice::Close(number) => {
                    self.captures.extents[*number] = Extent::Unfinished;
                    self.choices.pop();
                }
            }
        }
    }

    fn open(&mut self, point: Point) -> Result<Step, Raise> {
        let is_position = self.item(point.pattern + 1) == b')';
        let number = self.captures.count;
        if number == MAX_CAPTURES {
            return Err(Raise::here("too many captures"));
        }
        self.captures.starts[number] = point.subject;
        self.captures.extents[number] = if is_position { Extent::Position } else { Extent::Unfinished };
        self.captures.count += 1;
        self.choices.push(Choice::Open);
        let width = if is_position { 2 } else { 1 };
        Ok(Step::On(Point { pattern: point.pattern + width, ..point }))
    }

    fn close(&mut self, point: Point) -> Result<Step, Raise> {
        let number = self.captures.innermost_open()?;
        self.captures.extents[number] = Extent::Length(point.subject - self.captures.starts[number]);
        self.choices.push(Choice::Close(number));
        Ok(Step::On(Point { pattern: point.pattern + 1, ..point }))
    }

    /// Matches `%bxy`: from an `x` to the matching `y`.
    fn balance(&mut self, stack: &Stack<'_>, point: Point) -> Result<Step, Raise> {
        let (open, close) = (self.item(point.pattern + 2), self.item(point.pattern + 3));
        if open == 0 || close == 0 {
            return Err(Raise::here("unbalanced pattern"));
        }
        let rest = self.subject.get(point.subject..).unwrap_or_default();
        if rest.first() != Some(&open) {
            return Ok(Step::Back);
        }
        let mut depth = 1_usize;
        for (count, &byte) in rest.iter().enumerate().skip(1) {
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    stack.step(count)?;
                    return Ok(Step::On(Point { subject: point.subject + count + 1, pattern: point.pattern + 4 }));
                }
            } else if byte == open {
                depth += 1;
            }
        }
        stack.step(rest.len())?;
        Ok(Step::Back)
    }

    /// Matches `%f[set]`: between a byte outside of the set and one in it.
    fn frontier(&mut self, point: Point) -> Result<Step, Raise> {
        let set = point.pattern + 2;
        if self.item(set) != b'[' {
            return Err(Raise::here("missing '[' after '%f' in pattern"));
        }
        let end = self.item_end(set)?;
        let set = &self.pattern[set..end];
        let before = point.subject.checked_sub(1).map_or(0, |before| self.subject[before]);
        let after = self.subject.get(point.subject).copied().unwrap_or(0);
        let is_frontier = !class::is_in_set(before, set) && class::is_in_set(after, set);
        Ok(if is_frontier { Step::On(Point { pattern: end, ..point }) } else { Step::Back })
    }

    /// Matches `%1`: the text of the capture once more.
    fn repeat(&mut self, stack: &Stack<'_>, point: Point, digit: u8) -> Result<Step, Raise> {
        let number = usize::from(digit).checked_sub(usize::from(b'1')).ok_or_else(invalid_index)?;
        if number >= self.captures.count {
            return Err(invalid_index());
        }
        let start = self.captures.starts[number];
        match self.captures.extents[number] {
            Extent::Unfinished => Err(invalid_index()),
            Extent::Position => Ok(Step::Back),
            Extent::Length(length) => {
                stack.step(length)?;
                let is_there = self.subject[point.subject..].starts_with(&self.subject[start..start + length]);
                let next = Point { subject: point.subject + length, pattern: point.pattern + 2 };
                Ok(if is_there { Step::On(next) } else { Step::Back })
            }
        }
    }

    /// Matches an item for single bytes, with its repetitions.
    #[inline]
    fn single(&mut self, stack: &Stack<'_>, point: Point) -> Result<Step, Raise> {
        let Point { subject: at, pattern: item } = point;
        let end = self.item_end(item)?;
        let repetition = self.item(end);
        if repetition == b'-' {
            self.choices.push(Choice::More { at, item, rest: end + 1 });
            return Ok(Step::On(Point { subject: at, pattern: end + 1 }));
        }
        let is_there = is_fitting(self.pattern, item, end, self.subject.get(at));
        match repetition {
            b'?' => {
                let without = Point { subject: at, pattern: end + 1 };
                if !is_there {
                    return Ok(Step::On(without));
                }
                self.choices.push(Choice::Point(without));
                Ok(Step::On(Point { subject: at + 1, pattern: end + 1 }))
            }
            b'+' if !is_there => Ok(Step::Back),
            b'*' | b'+' => {
                let first = if repetition == b'+' { at + 1 } else { at };
                let count = count(self.pattern, item, end, &self.subject[first..], true);
                stack.step(count)?;
                let last = first + count;
                if count > 0 {
                    self.choices.push(Choice::Fewer { first, last: last - 1, rest: end + 1 });
                }
                Ok(Step::On(Point { subject: last, pattern: end + 1 }))
            }
            _ if is_there => Ok(Step::On(Point { subject: at + 1, pattern: end })),
            _ => Ok(Step::Back),
        }
    }

    /// The end of the item that begins at `at`.
    #[inline]
    fn item_end(&self, at: usize) -> Result<usize, Raise> {
        match self.item(at) {
            ESCAPE if at + 1 >= self.pattern.len() => Err(Raise::here("malformed pattern (ends with '%')")),
            ESCAPE => Ok(at + 2),
            b'[' => {
                let length = class::set_length(&self.pattern[at..]);
                Ok(at + length.ok_or_else(|| Raise::here("malformed pattern (missing ']')"))?)
            }
            _ => Ok(at + 1),
        }
    }
}

/// Whether there is a byte that matches the item of the pattern from `item` to `end`.
#[inline]
fn is_fitting(pattern: &[u8], item: usize, end: usize, byte: Option<&u8>) -> bool {
    let Some(&byte) = byte else { return false };
    match pattern[item] {
        b'.' => true,
        ESCAPE => class::is_in_class(byte, pattern[item + 1]),
        b'[' => class::is_in_set(byte, &pattern[item..end]),
        literal => literal == byte,
    }
}

/// The number of bytes at the beginning of `text` that match the item, or that do not, as `fits` says.
fn count(pattern: &[u8], item: usize, end: usize, text: &[u8], fits: bool) -> usize {
    let other = match pattern[item] {
        b'.' => (!fits).then_some(0),
        ESCAPE => {
            let class = pattern[item + 1];
            text.iter().position(|&byte| class::is_in_class(byte, class) != fits)
        }
        b'[' => {
            let set = &pattern[item..end];
            text.iter().position(|&byte| class::is_in_set(byte, set) != fits)
        }
        literal if fits => text.iter().position(|&byte| byte != literal),
        literal => memchr::memchr(literal, text),
    };
    other.unwrap_or(text.len())
}
