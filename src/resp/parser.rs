//! Finds the requests in the bytes that a client sends: RESP arrays of bulk strings, and inline lines.
//!
//! The parser copies no word of a RESP request: a [`Request`] is a list of spans in the bytes that it was given. Only
//! an inline line, which has quotes to remove, is written anew into a buffer of the parser.
//!
//! # Consumed and unconsumed bytes
//!
//! [`Parser::next`] gets all bytes that have arrived and were not yet consumed. It returns one request, or `None` if
//! the next one is not yet complete. In both cases [`Parser::consumed`] then returns the number of bytes at the front
//! that are consumed; the caller drops exactly those, and only appends to the rest. The parser keeps its progress in
//! an incomplete request, so bytes may arrive one at a time: no byte of a word is read twice, and a long line is not
//! searched again. The rest of one read may move to another buffer: offsets count from the first byte of the request,
//! not from an address.
//!
//! ```
//! use dunlin::resp::{Limits, Parser};
//!
//! let limits = Limits { max_bulk_bytes: 512 * 1024 * 1024, authenticated: true };
//! let mut parser = Parser::new();
//! let mut input: Vec<u8> = Vec::new();
//! let mut seen = Vec::new();
//!
//! for piece in [&b"PING\r\n*2\r\n$4\r\nEC"[..], &b"HO\r\n$2\r\nhi\r\n"[..]] {
//!     input.extend_from_slice(piece);
//!     let mut taken = 0;
//!     while let Some(request) = parser.next(&input[taken..], &limits)? {
//!         seen.push(request.iter().map(<[u8]>::to_vec).collect::<Vec<_>>());
//!         taken += parser.consumed();
//!     }
//!     taken += parser.consumed(); // empty requests that were skipped
//!     input.drain(..taken);
//! }
//!
//! assert_eq!(seen, [vec![b"PING".to_vec()], vec![b"ECHO".to_vec(), b"hi".to_vec()]]);
//! # Ok::<(), dunlin::resp::ProtocolError>(())
//! ```
//!
//! # As Redis does it
//!
//! Empty requests (`*0`, `*-1`, a blank line) are skipped and get no reply. A count line ends at its CR and the byte
//! after it, whatever that is; the two bytes after a bulk string are not checked either. An inline line ends at LF. A
//! NUL in a line hides the rest of it: the line never ends, and is refused once it is too long. A line may be longer
//! than 64 KiB if its end has come with it: up to 128 KiB here, up to what one read brings in Redis.
//!
//! # Bounds
//!
//! No memory is reserved by a size that a client declares: the list of spans grows as words arrive (16 bytes for a
//! word that took at least five), and it is freed after a request with many words. Arithmetic on lengths saturates.
//!
//! Not here: the size of the whole buffer, the guard against HTTP, and the meaning of any word. Sources: the replies of
//! Redis 8.0.6 to the cases in the tests below, and the RESP specification.

use memchr::memchr2;

use super::fast_parse::short_count;
use super::inline::split_words;
use super::protocol_error::ProtocolError;
use super::request::{Request, Span};
use crate::value::number::parse_i64;

/// The most bytes of a line, inline or count, that may wait for its end.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// The most bytes of a line that has come with its end.
const MAX_WHOLE_LINE_BYTES: usize = 2 * MAX_LINE_BYTES;
/// The most words, and the most bulk bytes, that a client may declare before it has logged in.
const MAX_WORDS_BEFORE_LOGIN: i64 = 10;
const MAX_BULK_BYTES_BEFORE_LOGIN: usize = 16 * 1024;
/// The capacity for words, and for bytes of an inline line, that a connection keeps between requests.
const KEPT_WORDS: usize = 256;
const KEPT_TEXT_BYTES: usize = 1024;

/// The limits for a client, at the time when its request is parsed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest bulk string in bytes: `proto-max-bulk-len`.
    pub max_bulk_bytes: usize,
    /// Whether the client has logged in or need not; if not, requests must be small.
    pub authenticated: bool,
}

/// Reads the requests of one connection, one after the other. The head of the module shows how to use it.
#[derive(Debug, Default)]
pub struct Parser {
    words: Vec<Span>,
    /// The words of an inline request, without their quotes.
    text: Vec<u8>,
    progress: Progress,
    consumed: usize,
}

/// The base of the spans of a request's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// That offset in the input.
    Input(usize),
    /// The beginning of [`Parser::text`], for an inline request.
    Text,
}

/// The progress in an unfinished request. Offsets count from its first byte.
#[derive(Debug, Default)]
struct Progress {
    /// The offset of the current part: a line, or the bytes of a bulk string.
    position: usize,
    /// The number of bytes from `position` on that do not end the line.
    searched: usize,
    words_left: usize,
    /// The bytes of the words before `position`.
    word_bytes: usize,
    /// The length of the bulk string at `position`, once its line has been read.
    bulk_bytes: Option<usize>,
}

impl Parser {
    /// A parser at the start of a connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next request in `input`, which holds all bytes not yet consumed; `None` if it is not complete yet.
    ///
    /// # Errors
    ///
    /// [`ProtocolError`]: nothing after it can be understood, so the parser must not be used again.
    pub fn next<'a>(&'a mut self, input: &'a [u8], limits: &Limits) -> Result<Option<Request<'a>>, ProtocolError> {
        let Some(origin) = self.find(input, limits)? else { return Ok(None) };
        let buffer = match origin {
            Origin::Input(start) => &input[start..],
            Origin::Text => &self.text,
        };
        Ok(Some(Request::new(buffer, &self.words)))
    }

    /// Finds the next request as [`Parser::next`] does, and returns the base of the spans of its words.
    pub(super) fn find(&mut self, input: &[u8], limits: &Limits) -> Result<Option<Origin>, ProtocolError> {
        self.consumed = 0;
        loop {
            let start = self.consumed;
            let request = &input[start..];
            let is_inline = request.first() != Some(&b'*');
            let end = match request {
                [] => None,
                _ if is_inline => self.take_inline(request)?,
                _ => self.take_multibulk(request, limits)?,
            };
            let Some(end) = end else { return Ok(None) };
            self.progress = Progress::default();
            self.consumed += end;
            if !self.words.is_empty() {
                return Ok(Some(if is_inline { Origin::Text } else { Origin::Input(start) }));
            }
        }
    }

    /// Whether nothing of a request has been read yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.progress.position == 0 && self.progress.searched == 0
    }

    /// The spans of the last request's words.
    pub(super) fn words(&self) -> &[Span] {
        &self.words
    }

    /// The unquoted words of the last request, if it was an inline one.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The number of bytes at the front of the last `input` that are consumed: the request that was returned, and
    /// empty ones before it. The caller drops them before the next call.
    pub fn consumed(&self) -> usize {
        self.consumed
    }

    /// The bytes of an incomplete request that have been read, behind the consumed ones, and how many of them belong
    /// to words.
    pub fn partial_request(&self) -> (usize, usize) {
        (self.progress.position, self.progress.word_bytes)
    }

    /// The offset in its request at which the current word will end, if it has `least_bytes` or more.
    pub fn word_end(&self, least_bytes: usize) -> Option<usize> {
        let length = self.progress.bulk_bytes.filter(|length| *length >= least_bytes)?;
        Some(self.progress.position.saturating_add(length))
    }

    /// Forgets the previous request, and frees its memory if that was much.
    fn begin(&mut self) {
        self.words.clear();
        self.words.shrink_to(KEPT_WORDS);
        self.text.clear();
        self.text.shrink_to(KEPT_TEXT_BYTES);
    }

    /// Reads an inline request; returns its end.
    fn take_inline(&mut self, input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let Some(end) = self.progress.line_end(input, b'\n', ProtocolError::TooBigInline)? else { return Ok(None) };
        self.begin();
        split_words(&input[..end], &mut self.text, &mut self.words)?;
        Ok(Some(end + 1))
    }

    /// Reads an array of bulk strings as far as it has arrived; returns its end.
    fn take_multibulk(&mut self, input: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        if self.progress.position == 0 {
            let Some(count) = self.progress.take_word_count(input, limits)? else { return Ok(None) };
            self.progress.words_left = count;
            self.begin();
        }
        while self.progress.words_left > 0 {
            let Some(word) = self.progress.take_bulk(input, limits)? else { return Ok(None) };
            self.words.push(word);
        }
        Ok(Some(self.progress.position))
    }
}

impl Progress {
    /// Reads the line `*<count>`. A count below zero is an empty request, like zero.
    fn take_word_count(&mut self, input: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let Some(count) = self.take_count(input, ProtocolError::TooBigMultibulkCount)? else { return Ok(None) };
        match count {
            Some(count) if count > i64::from(i32::MAX) => Err(ProtocolError::InvalidMultibulkLength),
            Some(count) if count > MAX_WORDS_BEFORE_LOGIN && !limits.authenticated => {
                Err(ProtocolError::UnauthenticatedMultibulkLength)
            }
            Some(count) => Ok(Some(usize::try_from(count).unwrap_or(0))),
            None => Err(ProtocolError::InvalidMultibulkLength),
        }
    }

    /// Reads one word of an array: its line `$<length>`, its bytes, and the two bytes after them.
    fn take_bulk(&mut self, input: &[u8], limits: &Limits) -> Result<Option<Span>, ProtocolError> {
        if self.bulk_bytes.is_none() {
            self.bulk_bytes = self.take_bulk_length(input, limits)?;
        }
        let Some(length) = self.bulk_bytes else { return Ok(None) };
        let arrived = input.len().saturating_sub(self.position);
        if arrived < length.saturating_add(2) {
            return Ok(None);
        }
        let word = Span { start: self.position, end: self.position + length };
        self.position = word.end + 2;
        self.word_bytes += length;
        self.bulk_bytes = None;
        self.words_left -= 1;
        Ok(Some(word))
    }

    fn take_bulk_length(&mut self, input: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let first = input.get(self.position).copied();
        let Some(length) = self.take_count(input, ProtocolError::TooBigBulkCount)? else { return Ok(None) };
        match first {
            Some(b'$') | None => {}
            Some(other) => return Err(ProtocolError::ExpectedDollar(other)),
        }
        let length = length.and_then(|length| usize::try_from(length).ok());
        match length {
            Some(length) if length > limits.max_bulk_bytes => Err(ProtocolError::InvalidBulkLength),
            Some(length) if length > MAX_BULK_BYTES_BEFORE_LOGIN && !limits.authenticated => {
                Err(ProtocolError::UnauthenticatedBulkLength)
            }
            Some(length) => Ok(Some(length)),
            None => Err(ProtocolError::InvalidBulkLength),
        }
    }

    /// Reads the line at `position`, a type byte and a number, and moves on behind it. The inner `None`: it is not a
    /// number.
    fn take_count(&mut self, input: &[u8], too_long: ProtocolError) -> Result<Option<Option<i64>>, ProtocolError> {
        if let Some((count, line_bytes)) = short_count(input.get(self.position..).unwrap_or_default()) {
            self.step_to(self.position + line_bytes);
            return Ok(Some(Some(i64::from(count))));
        }
        let Some(end) = self.line_end(input, b'\r', too_long)? else { return Ok(None) };
        if input.len() < end + 2 {
            return Ok(None);
        }
        let count = parse_i64(input.get(self.position + 1..end).unwrap_or_default());
        self.step_to(end + 2);
        Ok(Some(count))
    }

    /// The end of the line at `position`: the offset of `terminator`, unless a NUL comes first.
    fn line_end(
        &mut self,
        input: &[u8],
        terminator: u8,
        too_long: ProtocolError,
    ) -> Result<Option<usize>, ProtocolError> {
        let line = input.get(self.position..).unwrap_or_default();
        let window = &line[..line.len().min(MAX_WHOLE_LINE_BYTES)];
        let unseen = window.get(self.searched..).unwrap_or_default();
        let stop = memchr2(terminator, 0, unseen);
        self.searched += stop.unwrap_or(unseen.len());
        match stop {
            Some(offset) if unseen[offset] == terminator => Ok(Some(self.position + self.searched)),
            _ if line.len() > MAX_LINE_BYTES => Err(too_long),
            _ => Ok(None),
        }
    }

    fn step_to(&mut self, position: usize) {
        self.position = position;
        self.searched = 0;
    }
}

#[cfg(test)]
mod tests;
