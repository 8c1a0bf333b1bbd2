//! Finds the requests in the bytes that a client sends: RESP arrays of bulk strings, and inline lines.
//!
//! The parser copies no word of a RESP request: a [`Request`] is a list of spans in the bytes that it was given. Only
//! an inline line, which has quotes to undo, is written anew into a buffer of the parser.
//!
//! # What is read and what is left
//!
//! [`Parser::next`] is given all bytes that have arrived and were not yet consumed. It answers with one request, or
//! with `None` when the next one is not yet complete. Either way [`Parser::consumed`] then says how many bytes at the
//! front are done with; the caller drops exactly those, and only appends to what remains. The parser remembers how far
//! it has come in a request that is not complete, so bytes may arrive one at a time: no byte of a word is looked at
//! twice, and a long line is not searched again. What is left of one read may move to another buffer: offsets count
//! from the first byte of the request, not from an address.
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
//! Empty requests (`*0`, `*-1`, a blank line) are stepped over and not answered. A count line ends at its CR and the
//! byte after it, whatever that is; the two bytes after a bulk string are not looked at either. An inline line ends at
//! LF. A NUL in a line hides the rest of it: the line never ends, and is refused once it is too long. One difference: a
//! line of more than 64 KiB is always refused here, where Redis still takes one whose end arrives in the same read.
//!
//! # Bounds
//!
//! Nothing is reserved by a size that a client announces: the list of spans grows as words arrive (16 bytes for a word
//! that took at least five), and it is let go again after a request with many words. Arithmetic on lengths saturates.
//!
//! Not here: the size of the whole buffer, the guard against HTTP, and the meaning of any word. Sources: the replies of
//! Redis 8.0.6 to the cases in the tests below, and the RESP specification.

use memchr::memchr2;

use super::inline::split_words;
use super::protocol_error::ProtocolError;
use super::request::{Request, Span};
use super::whole::short_count;
use crate::value::number::parse_i64;

/// The longest line, inline or count, in bytes.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// The most words and bulk bytes that a client may announce before it has logged in.
const MAX_WORDS_BEFORE_LOGIN: i64 = 10;
const MAX_BULK_BYTES_BEFORE_LOGIN: usize = 16 * 1024;
/// How many words, and bytes of an inline line, a connection keeps room for between requests.
const KEPT_WORDS: usize = 256;
const KEPT_TEXT_BYTES: usize = 1024;

/// What a client may send, as it stands when its request is parsed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest bulk string in bytes: `proto-max-bulk-len`.
    pub max_bulk_bytes: usize,
    /// Whether the client has logged in or needs not; if not, requests must be small.
    pub authenticated: bool,
}

/// Reads the requests of one connection, one after the other. See the module's head for how to drive it.
#[derive(Debug, Default)]
pub struct Parser {
    words: Vec<Span>,
    /// The words of an inline request, without their quotes.
    text: Vec<u8>,
    progress: Progress,
    consumed: usize,
}

/// How far an unfinished request has been read. Offsets count from its first byte.
#[derive(Debug, Default)]
struct Progress {
    /// Where the part under way begins: a line, or the bytes of a bulk string.
    position: usize,
    /// How many bytes from `position` on are known not to end the line.
    searched: usize,
    words_left: usize,
    /// Bytes of the words before `position`.
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
        let Some(start) = self.find(input, limits)? else { return Ok(None) };
        Ok(Some(Request::new(start.map_or(&self.text, |start| &input[start..]), &self.words)))
    }

    /// Finds the next request as [`Parser::next`] does, and answers from where on in `input` the places of its words
    /// are counted; `Some(None)` means in [`Parser::text`], as it was an inline request.
    pub(super) fn find(&mut self, input: &[u8], limits: &Limits) -> Result<Option<Option<usize>>, ProtocolError> {
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
                return Ok(Some((!is_inline).then_some(start)));
            }
        }
    }

    /// Whether nothing of a request has been read yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.progress.position == 0 && self.progress.searched == 0
    }

    /// Where the words of the last request are.
    pub(super) fn words(&self) -> &[Span] {
        &self.words
    }

    /// The unquoted words of the last request, if it was an inline one.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// How many bytes at the front of the last `input` are done with: the request that was returned, and empty ones
    /// before it. The caller drops them before the next call.
    pub fn consumed(&self) -> usize {
        self.consumed
    }

    /// How much of a request that is not complete is read, behind what is done with: so many
    /// bytes, of which so many are words.
    pub fn begun(&self) -> (usize, usize) {
        (self.progress.position, self.progress.word_bytes)
    }

    /// Where in its request the word under way is going to end, if it has so many bytes or more.
    pub fn word_end(&self, least_bytes: usize) -> Option<usize> {
        let length = self.progress.bulk_bytes.filter(|length| *length >= least_bytes)?;
        Some(self.progress.position.saturating_add(length))
    }

    /// Forgets the request before this one, and lets go of what it took if that was much.
    fn begin(&mut self) {
        self.words.clear();
        self.words.shrink_to(KEPT_WORDS);
        self.text.clear();
        self.text.shrink_to(KEPT_TEXT_BYTES);
    }

    /// Reads an inline request; returns where it ends.
    fn take_inline(&mut self, input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let Some(end) = self.progress.line_end(input, b'\n', ProtocolError::TooBigInline)? else { return Ok(None) };
        self.begin();
        split_words(&input[..end], &mut self.text, &mut self.words)?;
        Ok(Some(end + 1))
    }

    /// Reads an array of bulk strings as far as it has arrived; returns where it ends.
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

    /// Reads the line at `position`, a type byte and a number, and steps over it. The inner `None`: it is no number.
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

    /// Where the line at `position` ends: the offset of `terminator`, unless a NUL comes first.
    fn line_end(
        &mut self,
        input: &[u8],
        terminator: u8,
        too_long: ProtocolError,
    ) -> Result<Option<usize>, ProtocolError> {
        let line = input.get(self.position..).unwrap_or_default();
        let window = &line[..line.len().min(MAX_LINE_BYTES + 1)];
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
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use redis_protocol::resp2::decode::decode;
    use redis_protocol::resp2::types::OwnedFrame;

    type Words = Vec<Vec<u8>>;

    const LIMITS: Limits = Limits { max_bulk_bytes: 512 * 1024 * 1024, authenticated: true };
    const STRANGER: Limits = Limits { authenticated: false, ..LIMITS };

    /// Drives a parser as a connection does: each piece is one read. Returns the requests, then what ended the reading:
    /// an error, or how many bytes are left over.
    fn read<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
        limits: &Limits,
    ) -> (Vec<Words>, Result<usize, ProtocolError>) {
        let (mut parser, mut input, mut requests) = (Parser::new(), Vec::new(), Vec::new());
        for piece in pieces {
            input.extend_from_slice(piece);
            let mut taken = 0;
            loop {
                match parser.next(&input[taken..], limits) {
                    Ok(Some(request)) => {
                        assert!(!request.is_empty());
                        requests.push(request.iter().map(<[u8]>::to_vec).collect());
                        taken += parser.consumed();
                    }
                    Ok(None) => break,
                    Err(error) => return (requests, Err(error)),
                }
            }
            taken += parser.consumed();
            input.drain(..taken);
        }
        (requests, Ok(input.len()))
    }

    fn read_whole(input: &[u8]) -> (Vec<Words>, Result<usize, ProtocolError>) {
        read([input], &LIMITS)
    }

    fn error_text(input: &[u8], limits: &Limits) -> Option<String> {
        let error = read([input], limits).1.err()?;
        Some(error.text().escape_ascii().to_string())
    }

    fn encode(words: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }

    fn ping() -> Words {
        vec![b"PING".to_vec()]
    }

    /// Redis 8.0.6 answered each of these with one PONG and kept the connection.
    #[test]
    fn empty_requests_and_sloppy_line_ends_keep_the_connection_in_step() {
        let table: [&[u8]; 25] = [
            b"*0\r\nPING\r\n",
            b"*-1\r\nPING\r\n",
            b"*-2\r\nPING\r\n",
            b"*-9223372036854775808\r\nPING\r\n",
            b"*0\r\n*0\r\n\r\n\nPING\r\n",
            b"*0\rZPING\r\n",
            b"*-1\rQPING\r\n",
            b"\r\nPING\r\n",
            b"\nPING\r\n",
            b"   \r\nPING\r\n",
            b"\r\r\nPING\r\n",
            b"PING\n",
            b"PING\r\n",
            b"PING\r\r\n",
            b"PING \r\n",
            b" PING\r\n",
            b"\tPING\t\n",
            b"*1\r\n$4\r\nPING\r\n",
            b"*1\rX$4\r\nPING\r\n",
            b"*1\r\r$4\r\nPING\r\n",
            b"*1\r\0$4\r\nPING\r\n",
            b"*1\r\n$4\rXPING\r\n",
            b"*1\r\n$4\r\nPINGXX",
            b"*1\r\n$4\r\nPING\n\n",
            b"*0\r\n*1\r\n$4\r\nPING\r\n",
        ];
        for input in table {
            assert_eq!(read_whole(input), (vec![ping()], Ok(0)), "{}", input.escape_ascii());
        }
    }

    /// Redis 8.0.6 answered each of these with this error and closed the connection.
    #[test]
    fn each_fault_has_the_words_of_redis() {
        let table: [(&[u8], &str); 27] = [
            (b"*\r\nPING\r\n", "invalid multibulk length"),
            (b"*-\r\nPING\r\n", "invalid multibulk length"),
            (b"*+1\r\nPING\r\n", "invalid multibulk length"),
            (b"*01\r\n$4\r\nPING\r\n", "invalid multibulk length"),
            (b"*-0\r\nPING\r\n", "invalid multibulk length"),
            (b"* 1\r\nPING\r\n", "invalid multibulk length"),
            (b"*1 \r\nPING\r\n", "invalid multibulk length"),
            (b"*a\r\nPING\r\n", "invalid multibulk length"),
            (b"*1\n$4\r\nPING\r\n", "invalid multibulk length"),
            (b"*2147483648\r\n", "invalid multibulk length"),
            (b"*9223372036854775808\r\n", "invalid multibulk length"),
            (b"*-9223372036854775809\r\nPING\r\n", "invalid multibulk length"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*1\r\n$\r\n", "invalid bulk length"),
            (b"*1\r\n$a\r\n", "invalid bulk length"),
            (b"*1\r\n$04\r\nPING\r\n", "invalid bulk length"),
            (b"*1\r\n$+4\r\nPING\r\n", "invalid bulk length"),
            (b"*1\r\n$-0\r\n\r\n", "invalid bulk length"),
            (b"*1\r\n$536870913\r\n", "invalid bulk length"),
            (b"*1\r\n$9999999999999999999999\r\n", "invalid bulk length"),
            (b"*1\r\nPING\r\n", "expected \\'$\\', got \\'P\\'"),
            (b"*3\r\n$3\r\nSET\r\n$1\r\na\r\nx\r\n", "expected \\'$\\', got \\'x\\'"),
            (b"*1\r\n\r\n", "expected \\'$\\', got \\' \\'"),
            (b"*1\r\n\n\r\n", "expected \\'$\\', got \\' \\'"),
            (b"*1\r\n\xff\r\n", "expected \\'$\\', got \\'\\xff\\'"),
            (b"ECHO \"a\r\n", "unbalanced quotes in request"),
            (b"ECHO 'a'b\r\n", "unbalanced quotes in request"),
        ];
        for (input, text) in table {
            let expected = format!("Protocol error: {text}");
            assert_eq!(error_text(input, &LIMITS), Some(expected), "{}", input.escape_ascii());
        }
    }

    /// Redis 8.0.6 waited for more after each of these.
    #[test]
    fn what_is_not_complete_is_waited_for() {
        let table: [&[u8]; 13] = [
            b"",
            b"*",
            b"*1\r",
            b"*1\n$4\nPING\n",
            b"*2147483647\r\n",
            b"*1\r\n$536870912\r\n",
            b"*1\r\nP",
            b"*1\r\nPIN\r",
            b"*1\r\n\0\r\n",
            b"*1\0\r\n",
            b"PING\0\n",
            b"\0\r\nPING\r\n",
            b"*1\r\n$4\r\nPING\r",
        ];
        for input in table {
            assert_eq!(read_whole(input), (vec![], Ok(input.len())), "{}", input.escape_ascii());
        }
    }

    #[test]
    fn a_line_may_have_64_kib_and_not_one_byte_more() {
        let table = [
            ("", "", "A", "inline request"),
            ("", "\0", "A\n", "inline request"),
            ("", "*", "1", "mbulk count string"),
            ("*1\r\n", "$", "1", "bulk count string"),
            ("*1\r\n", "$\0", "1\r\n", "bulk count string"),
        ];
        for (before, start, filler, what) in table {
            let line = [start, &filler.repeat(MAX_LINE_BYTES + 1)].concat();
            let full = [before, &line[..MAX_LINE_BYTES]].concat();
            assert_eq!(read_whole(full.as_bytes()), (vec![], Ok(full.len())), "{what}");
            let over = [before, &line[..=MAX_LINE_BYTES]].concat();
            assert_eq!(error_text(over.as_bytes(), &LIMITS), Some(format!("Protocol error: too big {what}")));
        }
        let longest = "A".repeat(MAX_LINE_BYTES);
        let input = [&longest, "\n"].concat();
        assert_eq!(read_whole(input.as_bytes()), (vec![vec![longest.into_bytes()]], Ok(0)));
    }

    #[test]
    fn a_stranger_may_send_ten_words_of_16_kib_until_he_logs_in() {
        assert_eq!(read([&b"*10\r\n$16384\r\n"[..]], &STRANGER), (vec![], Ok(13)));
        let text = |input| error_text(input, &STRANGER);
        assert_eq!(text(b"*11\r\n").as_deref(), Some("Protocol error: unauthenticated multibulk length"));
        assert_eq!(text(b"*-1\r\n*11\r\n").as_deref(), Some("Protocol error: unauthenticated multibulk length"));
        assert_eq!(text(b"*2147483648\r\n").as_deref(), Some("Protocol error: invalid multibulk length"));
        assert_eq!(text(b"*1\r\n$16385\r\n").as_deref(), Some("Protocol error: unauthenticated bulk length"));
        assert_eq!(text(b"*1\r\n$536870913\r\n").as_deref(), Some("Protocol error: invalid bulk length"));
        let mut parser = Parser::new();
        let login = b"AUTH x\r\n*11\r\n";
        assert!(matches!(parser.next(login, &STRANGER), Ok(Some(_))));
        let after = &login[parser.consumed()..];
        assert!(matches!(parser.next(after, &LIMITS), Ok(None)));
    }

    #[test]
    fn announced_sizes_reserve_nothing() {
        let mut parser = Parser::new();
        assert!(matches!(parser.next(b"*2147483647\r\n$536870912\r\n", &LIMITS), Ok(None)));
        assert!(parser.words.capacity() <= KEPT_WORDS && parser.text.capacity() <= KEPT_TEXT_BYTES);
        let boundless = Limits { max_bulk_bytes: usize::MAX, authenticated: true };
        let mut parser = Parser::new();
        assert!(matches!(parser.next(b"*1\r\n$9223372036854775807\r\n", &boundless), Ok(None)));
    }

    #[test]
    fn a_request_of_many_words_does_not_keep_its_room() {
        let mut parser = Parser::new();
        let long = encode(&vec![b"x".to_vec(); 100_000]);
        assert_eq!(parser.next(&long, &LIMITS).ok().flatten().map(|request| request.len()), Some(100_000));
        assert!(matches!(parser.next(b"PING\r\n", &LIMITS), Ok(Some(_))));
        assert!(parser.words.capacity() < 2 * KEPT_WORDS);
    }

    #[test]
    fn a_word_that_is_not_there_is_none() {
        let spans = [Span { start: 0, end: 4 }, Span { start: 3, end: 9 }];
        let request = Request::new(b"PING", &spans);
        assert_eq!((request.len(), request.get(0)), (2, Some(&b"PING"[..])));
        assert_eq!((request.get(1), request.get(2)), (Some(&b""[..]), None));
    }

    /// Every order of up to five of these, which is where a parser with two request forms falls out of step.
    #[test]
    fn every_mix_of_empty_and_full_requests_stays_in_step() {
        let kinds: [&[u8]; 6] =
            [b"\r\n", b"*0\r\n", b"*-1\r\n", b"PING\r\n", b"*1\r\n$4\r\nPING\r\n", b"*1\r\n$4\r\nPI"];
        let mut sequences: Vec<Vec<usize>> = vec![vec![]];
        for _ in 0..5 {
            let longer: Vec<_> = sequences
                .iter()
                .flat_map(|sequence| (0..kinds.len()).map(move |kind| [&sequence[..], &[kind]].concat()))
                .collect();
            for sequence in &longer {
                // A partial request is completed by the piece after it.
                let mut pieces: Vec<Vec<u8>> = sequence.iter().map(|&kind| kinds[kind].to_vec()).collect();
                let mut unfinished = false;
                for (piece, &kind) in pieces.iter_mut().zip(sequence) {
                    if unfinished {
                        piece.splice(..0, *b"NG\r\n");
                    }
                    unfinished = kind == 5;
                }
                let full = sequence.iter().filter(|&&kind| kind >= 3).count() - usize::from(unfinished);
                let left = if unfinished { kinds[5].len() } else { 0 };
                let expected = (vec![ping(); full], Ok(left));
                assert_eq!(read(pieces.iter().map(Vec::as_slice), &LIMITS), expected, "{sequence:?} in pieces");
                assert_eq!(read_whole(&pieces.concat()), expected, "{sequence:?} in one read");
            }
            sequences = longer;
        }
    }

    fn any_request() -> impl Strategy<Value = Words> {
        vec(vec(any::<u8>(), 0..40), 1..6)
    }

    /// Bytes that look like requests often enough to reach every branch.
    fn near_requests() -> impl Strategy<Value = Vec<u8>> {
        let scrap = prop_oneof![
            4 => prop::sample::select(vec![
                "\r\n", "*", "$", "*1\r\n", "*2\r\n", "*-1\r\n", "$1\r\n", "$0\r\n\r\n", "$3\r\nabc\r\n", "PING\r\n",
                "\"", "'", "\\x4", "\r", "\n", "\0", "123456789", "-", "0",
            ]).prop_map(|text| text.as_bytes().to_vec()),
            1 => vec(any::<u8>(), 0..8),
        ];
        vec(scrap, 0..20).prop_map(|scraps| scraps.concat())
    }

    proptest! {
        #[test]
        fn valid_frames_read_as_another_decoder_reads_them(requests in vec(any_request(), 1..6)) {
            let input: Vec<u8> = requests.iter().flat_map(|words| encode(words)).collect();
            let (mut decoded, mut rest) = (Vec::new(), &input[..]);
            while let Some((OwnedFrame::Array(words), bytes)) = decode(rest).expect("valid frames") {
                decoded.push(words.into_iter().map(|word| match word {
                    OwnedFrame::BulkString(word) => word,
                    other => panic!("{other:?}"),
                }).collect::<Words>());
                rest = &rest[bytes..];
            }
            prop_assert_eq!(read_whole(&input), (decoded, Ok(0)));
        }

        #[test]
        fn where_the_bytes_are_split_makes_no_difference(input in near_requests(), cut: prop::sample::Index) {
            let whole = read_whole(&input);
            let (head, tail) = input.split_at(cut.index(input.len() + 1));
            prop_assert_eq!(read([head, tail], &LIMITS), whole.clone());
            prop_assert_eq!(read(input.chunks(1), &LIMITS), whole);
        }

        #[test]
        fn no_bytes_make_it_panic_or_take_more_than_there_is(input in vec(any::<u8>(), 0..200), login: bool) {
            let limits = Limits { max_bulk_bytes: 100, authenticated: login };
            let mut parser = Parser::new();
            let mut rest = &input[..];
            while let Ok(Some(_)) = parser.next(rest, &limits) {
                prop_assert!((1..=rest.len()).contains(&parser.consumed()));
                rest = &rest[parser.consumed()..];
            }
            prop_assert!(parser.consumed() <= rest.len());
        }
    }
}
