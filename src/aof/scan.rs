//! Reads a log of commands, and alone decides what is valid in it, for loading, checking and tests alike.
//!
//! A log consists of commands in RESP and of annotations: lines that begin with `#`. A *unit* is what takes effect
//! as a whole: one command, or all from MULTI to EXEC. What was being written when a machine stopped is the *tail*
//! behind the last whole unit ([`Tail`]). It must be cut off, or what is appended later would become part of it, so
//! the valid bytes end at a unit's end: not within a transaction and not within an annotation.
//!
//! File systems leave zeros where bytes had not arrived. No command ends with a zero, so zeros up to the end of the
//! file are a tail as well, and so is a command that reaches into them.
//!
//! The format is read as Redis reads it: the two bytes behind a word are not looked at (but for that zero), and a
//! number ends where its digits end.
//!
//! Annotations of our own have checksums of what stands before them ([`super::checksum`]).
//!
//! The scanner sees the log through a window, which grows until a command is in it as a whole. Lengths that the log
//! claims take no memory: only bytes that have arrived do.
//!
//! Source: what Redis 8.0.6 does when it starts with the logs in the tests.

use std::io::{self, Read};

use thiserror::Error;

use super::checksum::{Check, Disagreement};
use super::leading_integer;
use crate::resp::{Request, Span};

/// The least that is read at once.
const WINDOW_BYTES: usize = 64 << 10;
/// The most bytes of a line, its line end among them.
const LINE_BYTES: usize = 1023;
/// The bytes behind a word: the line end, which is not looked at.
const LINE_END_BYTES: usize = 2;

/// A part of a log.
#[derive(Clone, Copy, Debug)]
pub enum Item<'w> {
    /// A command.
    Command(Command<'w>),
    /// A line that begins with `#`, with its line end.
    Annotation {
        /// The bytes of the log before it.
        offset: u64,
        /// Its bytes.
        line: &'w [u8],
    },
}

/// A command of a log.
#[derive(Clone, Copy, Debug)]
pub struct Command<'w> {
    /// The bytes of the log before it.
    pub offset: u64,
    /// The bytes of the log up to its end.
    pub end: u64,
    /// Its bytes in the log.
    pub bytes: &'w [u8],
    /// Its words; at least one.
    pub request: Request<'w>,
}

impl<'w> Command<'w> {
    /// Its words; at least one.
    pub fn words(&self) -> impl ExactSizeIterator<Item = &'w [u8]> + DoubleEndedIterator + Clone + use<'w> {
        self.request.iter()
    }

    /// The name: its first word.
    pub fn name(&self) -> &'w [u8] {
        self.request.get(0).unwrap_or_default()
    }
}

/// The state of a log behind its valid bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    Clean,
    /// A command or an annotation that is not whole.
    Truncated,
    /// Zeros to the end, and what they begin in.
    Zeros,
    /// A transaction of whole commands without its EXEC.
    OpenTransaction,
    /// Bytes that are no command, at an offset.
    Malformed(u64),
}

/// Why a log cannot be read on.
#[derive(Debug, Error)]
#[error("{reason}")]
pub struct Fault {
    /// The bytes of the log before what is wrong.
    pub offset: u64,
    /// The reason why it is refused.
    pub reason: FaultReason,
}

/// A reason why a log is refused.
#[derive(Debug, Error)]
pub enum FaultReason {
    /// There is no command where one should begin or go on.
    #[error("bad file format")]
    Malformed,
    /// The bytes from the offset on are not those that were written.
    #[error("wrong checksum")]
    Checksum,
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads a log, command by command.
#[derive(Debug)]
pub struct Scanner<R> {
    source: R,
    window: Vec<u8>,
    /// Where the next part begins in the window.
    start: usize,
    /// The bytes of the log before the window.
    before_window: u64,
    is_at_end: bool,
    /// The words of the last command, in the window.
    words: Vec<Span>,
    valid_bytes: u64,
    /// Where the transaction that is open began.
    transaction: Option<u64>,
    tail: Option<Tail>,
    /// Checks annotations of checksums, if that is wanted.
    check: Option<Check>,
}

/// The part at the start of the window. Positions count from there.
enum Found {
    Command { end: usize },
    Annotation { end: usize },
    End(Tail),
    Malformed { at: usize },
}

/// A line from some position on, with the position where it ends.
enum Line {
    Whole(usize),
    /// The log ends before the line does.
    Truncated(usize),
    TooLong,
}

impl<R: Read> Scanner<R> {
    /// A scanner at the start of a log.
    pub fn new(source: R) -> Scanner<R> {
        Scanner::at(source, 0)
    }

    /// A scanner of the commands behind the first `offset` bytes of a file, which are read already. All offsets count
    /// from the start of the file.
    pub fn at(source: R, offset: u64) -> Scanner<R> {
        Scanner {
            source,
            window: Vec::new(),
            start: 0,
            before_window: offset,
            is_at_end: false,
            words: Vec::new(),
            valid_bytes: offset,
            transaction: None,
            tail: None,
            check: None,
        }
    }

    /// Checks what was not read yet against its annotations of checksums, if `checks`.
    #[must_use]
    pub fn checking(mut self, checks: bool) -> Scanner<R> {
        self.check = checks.then(|| Check::at(self.offset()));
        self
    }

    /// The next command; `None` at the end, where [`Scanner::tail`] says how the log ends. The commands of a
    /// transaction are returned one by one, with MULTI and EXEC.
    ///
    /// # Errors
    /// The log is malformed, or cannot be read.
    pub fn next_command(&mut self) -> Result<Option<Command<'_>>, Fault> {
        loop {
            match self.find_next()? {
                None => return Ok(None),
                Some(Found::Command { end }) => return Ok(Some(self.command(end))),
                Some(_) => {}
            }
        }
    }

    /// The next command or annotation; `None` at the end.
    ///
    /// # Errors
    /// The log is malformed, or cannot be read.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, Fault> {
        Ok(match self.find_next()? {
            Some(Found::Command { end }) => Some(Item::Command(self.command(end))),
            Some(Found::Annotation { end }) => {
                let line = &self.window[self.start - end..self.start];
                Some(Item::Annotation { offset: self.offset() - end as u64, line })
            }
            _ => None,
        })
    }

    /// The bytes of the log up to the end of its last whole unit so far.
    pub fn valid_bytes(&self) -> u64 {
        self.valid_bytes
    }

    /// The state behind the valid bytes; `None` while there is more to read.
    pub fn tail(&self) -> Option<Tail> {
        self.tail
    }

    /// Whether the last MULTI has had no EXEC so far.
    pub fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// The bytes of the log that were read as commands and annotations.
    pub fn offset(&self) -> u64 {
        self.before_window + self.start as u64
    }

    /// The bytes read of a part that is neither a command nor an annotation. At a [`Tail::Truncated`] that is all there
    /// is.
    pub fn rest(&self) -> &[u8] {
        &self.window[self.start..]
    }

    /// The command that the last `bytes` bytes before the start are.
    fn command(&self, bytes: usize) -> Command<'_> {
        let end = self.offset();
        let request = Request::new(&self.window, &self.words);
        Command { offset: end - bytes as u64, end, bytes: &self.window[self.start - bytes..self.start], request }
    }

    /// Steps over the next part; `None` at the end.
    fn find_next(&mut self) -> Result<Option<Found>, Fault> {
        if self.tail.is_some() {
            return Ok(None);
        }
        let mut found = self.find().map_err(|error| Fault { offset: self.offset(), reason: error.into() })?;
        if let Found::Malformed { at } = found
            && self.zeros_begin_in(at).map_err(|error| Fault { offset: self.offset(), reason: error.into() })?
        {
            found = Found::End(Tail::Zeros);
        }
        if let Found::Command { end } | Found::Annotation { end } = found {
            self.check(end)?;
        }
        match found {
            Found::Command { end } => self.pass_command(end),
            Found::Annotation { end } => {
                self.start += end;
                if self.transaction.is_none() {
                    self.valid_bytes = self.offset();
                }
            }
            Found::End(tail) => {
                self.tail = Some(tail);
                return Ok(None);
            }
            Found::Malformed { at } => {
                let offset = self.offset() + at as u64;
                self.tail = Some(Tail::Malformed(offset));
                return Err(Fault { offset, reason: FaultReason::Malformed });
            }
        }
        Ok(Some(found))
    }

    /// Checks the next part, which ends at a position. What does not agree with its checksum is not valid.
    fn check(&mut self, end: usize) -> Result<(), Fault> {
        let (offset, part) = (self.offset(), &self.window[self.start..self.start + end]);
        let Some(Err(Disagreement(first))) = self.check.as_mut().map(|check| check.take(offset, part)) else {
            return Ok(());
        };
        (self.tail, self.valid_bytes) = (Some(Tail::Malformed(first)), self.valid_bytes.min(first));
        Err(Fault { offset: first, reason: FaultReason::Checksum })
    }

    fn pass_command(&mut self, end: usize) {
        let offset = self.offset();
        self.start += end;
        let name = self.command(end).name();
        if name.eq_ignore_ascii_case(b"MULTI") {
            self.transaction.get_or_insert(offset);
        } else if name.eq_ignore_ascii_case(b"EXEC") {
            self.transaction = None;
        }
        if self.transaction.is_none() {
            self.valid_bytes = self.offset();
        }
    }

    /// Finds out what is at the start of the window.
    fn find(&mut self) -> io::Result<Found> {
        if !self.has(1)? {
            let tail = if self.transaction.is_some() { Tail::OpenTransaction } else { Tail::Clean };
            return Ok(Found::End(tail));
        }
        match self.window[self.start] {
            b'#' => Ok(match self.line(0)? {
                Line::Whole(end) => Found::Annotation { end },
                Line::Truncated(_) => Found::End(Tail::Truncated),
                Line::TooLong => Found::Malformed { at: 0 },
            }),
            b'*' => self.find_command(),
            _ => Ok(Found::Malformed { at: 0 }),
        }
    }

    fn find_command(&mut self) -> io::Result<Found> {
        let (end, is_truncated) = match self.line(0)? {
            Line::Whole(end) => (end, false),
            Line::Truncated(end) => (end, true),
            Line::TooLong => return Ok(Found::Malformed { at: 0 }),
        };
        let count = leading_integer(self.part(1, end));
        let is_only_begun = is_truncated && end == 1;
        if !(1..=i64::from(i32::MAX)).contains(&count) && !is_only_begun {
            return Ok(Found::Malformed { at: 0 });
        }
        if is_truncated {
            return Ok(Found::End(Tail::Truncated));
        }
        self.words.clear();
        let mut at = end;
        for _ in 0..count {
            match self.find_word(at)? {
                Ok(next) => at = next,
                Err(found) => return Ok(found),
            }
        }
        // Whether a command is valid must not depend on what follows it, as that may be cut off.
        let ends_in_zero = self.window[self.start + at - 1] == 0;
        Ok(if ends_in_zero { Found::Malformed { at: at - 1 } } else { Found::Command { end: at } })
    }

    /// Adds the word that begins at a position; returns the position behind it.
    fn find_word(&mut self, at: usize) -> io::Result<Result<usize, Found>> {
        if !self.has(at + 1)? {
            return Ok(Err(Found::End(Tail::Truncated)));
        }
        if self.window[self.start + at] != b'$' {
            return Ok(Err(Found::Malformed { at }));
        }
        let (text, is_truncated) = match self.line(at)? {
            Line::Whole(end) => (end, false),
            Line::Truncated(end) => (end, true),
            Line::TooLong => return Ok(Err(Found::Malformed { at })),
        };
        let Ok(length) = usize::try_from(leading_integer(self.part(at + 1, text))) else {
            return Ok(Err(Found::Malformed { at }));
        };
        let end = text.saturating_add(length);
        if is_truncated || !self.has(end.saturating_add(LINE_END_BYTES))? {
            return Ok(Err(Found::End(Tail::Truncated)));
        }
        self.words.push(Span { start: self.start + text, end: self.start + end });
        Ok(Ok(end + LINE_END_BYTES))
    }

    /// The line that begins at a position.
    fn line(&mut self, at: usize) -> io::Result<Line> {
        let mut searched = at;
        loop {
            let unread = &self.window[self.start..];
            let limit = unread.len().min(at + LINE_BYTES);
            if let Some(length) = unread[searched..limit].iter().position(|&byte| byte == b'\n') {
                return Ok(Line::Whole(searched + length + 1));
            }
            if limit == at + LINE_BYTES {
                return Ok(Line::TooLong);
            }
            searched = limit;
            if !self.extend()? {
                return Ok(Line::Truncated(searched));
            }
        }
    }

    /// Whether what should go on at a position begins and then is zeros, to the end of the log.
    fn zeros_begin_in(&mut self, at: usize) -> io::Result<bool> {
        let unread = &self.window[self.start + at..];
        let Some(begun) = unread.iter().take(LINE_BYTES).position(|&byte| byte == 0) else { return Ok(false) };
        let is_plausible = match &unread[..begun] {
            [] => true,
            [b'#', line @ ..] => !line.contains(&b'\n'),
            [b'*' | b'$', number @ ..] => number.iter().all(|byte| byte.is_ascii_digit() || *byte == b'\r'),
            _ => false,
        };
        Ok(is_plausible && self.is_zero_from(at + begun)?)
    }

    /// Whether there are only zeros from a position to the end of the log.
    fn is_zero_from(&mut self, at: usize) -> io::Result<bool> {
        let mut searched = at;
        loop {
            let unread = &self.window[self.start..];
            if unread[searched..].iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
            searched = unread.len();
            if !self.extend()? {
                return Ok(true);
            }
        }
    }

    /// The bytes between two positions.
    fn part(&self, start: usize, end: usize) -> &[u8] {
        &self.window[self.start + start..self.start + end]
    }

    /// Reads until the window has this many bytes from its start on; returns whether it has.
    fn has(&mut self, bytes: usize) -> io::Result<bool> {
        while self.window.len() - self.start < bytes {
            if !self.extend()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads more into the window, as much as it has or [`WINDOW_BYTES`]; false at the end of the log. The start
    /// moves to the start of the window.
    fn extend(&mut self) -> io::Result<bool> {
        if self.is_at_end {
            return Ok(false);
        }
        if self.start > 0 {
            self.window.drain(..self.start);
            self.before_window += self.start as u64;
            for word in &mut self.words {
                // Those of a former command are no longer there.
                *word = Span { start: word.start.saturating_sub(self.start), end: word.end.saturating_sub(self.start) };
            }
            self.start = 0;
        }
        let most = self.window.len().max(WINDOW_BYTES) as u64;
        self.is_at_end = (&mut self.source).take(most).read_to_end(&mut self.window)? == 0;
        Ok(!self.is_at_end)
    }
}

#[cfg(test)]
mod tests;
