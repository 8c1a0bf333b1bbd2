//! A batch of requests of one client, all found before the first of them runs.
//!
//! A caller that runs requests under a lock finds them before it takes the lock, and knows the next ones while it
//! runs one. The requests of a batch run one after the other, without those of other clients in between.
//!
//! A batch is a list of words and where each request's words begin; it is reused, so its only cost is copying spans,
//! 16 bytes a word.

use super::parser::{Limits, Origin, Parser};
use super::protocol_error::ProtocolError;
use super::request::{Request, Span};

/// A batch only takes requests that begin within this many bytes, as those that do not run are parsed again.
const MAX_BYTES: usize = 64 << 10;
/// The capacity for words that is kept.
const KEPT_WORDS: usize = 4096;
/// The capacity for the text of inline requests that is kept, in bytes.
const KEPT_TEXT_BYTES: usize = 16 << 10;

/// Requests in the order in which they were sent.
#[derive(Debug, Default)]
pub struct Batch {
    words: Vec<Span>,
    /// The words of inline requests, without their quotes.
    text: Vec<u8>,
    requests: Vec<Found>,
    consumed: usize,
    is_last: bool,
}

#[derive(Clone, Copy, Debug)]
struct Found {
    /// The end of its words in the list.
    words_end: usize,
    /// The buffer that its spans refer to.
    buffer: Buffer,
    /// The end of the request in the input.
    end: usize,
}

#[derive(Clone, Copy, Debug)]
enum Buffer {
    /// The input from that offset on.
    Input(usize),
    /// The text from that offset on.
    Text(usize),
}

impl Batch {
    /// Replaces its contents by the requests at the front of `input`: all that are complete, but not more than `most`,
    /// and none that begins behind [`MAX_BYTES`]. A client that has not logged in gets one at a time, as that one may
    /// log it in.
    ///
    /// # Errors
    /// A protocol error behind the last request.
    pub fn fill(
        &mut self,
        parser: &mut Parser,
        input: &[u8],
        limits: &Limits,
        most: usize,
    ) -> Result<(), ProtocolError> {
        self.clear();
        let most = if limits.authenticated { most } else { 1 };
        while self.requests.len() < most && self.consumed < MAX_BYTES {
            let rest = &input[self.consumed..];
            if let Some(length) = parser.take_whole(rest, limits, &mut self.words) {
                let buffer = Buffer::Input(self.consumed);
                self.consumed += length;
                self.requests.push(Found { words_end: self.words.len(), buffer, end: self.consumed });
                continue;
            }
            let Some(origin) = parser.find(rest, limits)? else {
                self.consumed += parser.consumed();
                self.is_last = true;
                return Ok(());
            };
            self.words.extend_from_slice(parser.words());
            let buffer = match origin {
                Origin::Input(start) => Buffer::Input(self.consumed + start),
                Origin::Text => {
                    self.text.extend_from_slice(parser.text());
                    Buffer::Text(self.text.len() - parser.text().len())
                }
            };
            self.consumed += parser.consumed();
            self.requests.push(Found { words_end: self.words.len(), buffer, end: self.consumed });
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.words.clear();
        self.words.shrink_to(KEPT_WORDS);
        self.text.clear();
        self.text.shrink_to(KEPT_TEXT_BYTES);
        self.requests.clear();
        self.consumed = 0;
        self.is_last = false;
    }

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether the batch has no request.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether no complete request follows those in the batch.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// The request at an index; `input` must be the one that was given to [`Batch::fill`].
    #[inline]
    pub fn get<'a>(&'a self, input: &'a [u8], index: usize) -> Option<Request<'a>> {
        let found = self.requests.get(index)?;
        let words_start = index.checked_sub(1).map_or(0, |before| self.requests[before].words_end);
        let buffer = match found.buffer {
            Buffer::Input(start) => &input[start..],
            Buffer::Text(start) => &self.text[start..],
        };
        Some(Request::new(buffer, &self.words[words_start..found.words_end]))
    }

    /// The number of bytes at the front of the input that are consumed once the first `count` requests have run.
    pub fn end_of(&self, count: usize) -> usize {
        if count == self.requests.len() {
            self.consumed
        } else {
            count.checked_sub(1).map_or(0, |last| self.requests[last].end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { max_bulk_bytes: 1 << 20, authenticated: true };

    fn words(batch: &Batch, input: &[u8]) -> Vec<Vec<Vec<u8>>> {
        (0..batch.len())
            .filter_map(|index| batch.get(input, index))
            .map(|request| request.iter().map(<[u8]>::to_vec).collect())
            .collect()
    }

    #[test]
    fn a_batch_separates_inline_and_array_requests() {
        let input = b"GET 'a b'\r\n\r\n*2\r\n$3\r\nGET\r\n$1\r\nc\r\n*0\r\nSET d \"e\"\r\n\r\n*1\r\n$4\r\nPI";
        let (mut parser, mut batch) = (Parser::new(), Batch::default());
        batch.fill(&mut parser, input, &LIMITS, 32).expect("these are requests");
        let expected: [&[&[u8]]; 3] = [&[b"GET", b"a b"], &[b"GET", b"c"], &[b"SET", b"d", b"e"]];
        assert_eq!(
            words(&batch, input),
            expected.map(|words| words.iter().map(|word| word.to_vec()).collect::<Vec<_>>())
        );
        assert_eq!(&input[batch.end_of(0)..][..3], b"GET");
        assert_eq!(&input[batch.end_of(1)..][..4], b"\r\n*2");
        assert_eq!(&input[batch.end_of(3)..], b"*1\r\n$4\r\nPI");
    }

    #[test]
    fn requests_before_a_protocol_error_are_found() {
        let input = b"PING\r\n*1\r\n!\r\n";
        let (mut parser, mut batch) = (Parser::new(), Batch::default());
        assert_eq!(batch.fill(&mut parser, input, &LIMITS, 32), Err(ProtocolError::ExpectedDollar(b'!')));
        assert_eq!(words(&batch, input), [[b"PING"]]);
    }

    #[test]
    fn a_long_pipeline_is_several_batches() {
        let input = b"PING\r\n".repeat(3 * 32 + 1);
        let (mut parser, mut batch) = (Parser::new(), Batch::default());
        let (mut taken, mut lengths) = (0, Vec::new());
        while taken < input.len() {
            batch.fill(&mut parser, &input[taken..], &LIMITS, 32).expect("these are requests");
            taken += batch.end_of(batch.len());
            lengths.push(batch.len());
            assert_eq!(batch.is_last(), taken == input.len());
        }
        assert_eq!(lengths, [32, 32, 32, 1]);
    }

    #[test]
    fn requests_of_an_unauthenticated_client_are_read_one_at_a_time() {
        let (mut parser, mut batch) = (Parser::new(), Batch::default());
        let limits = Limits { authenticated: false, ..LIMITS };
        batch.fill(&mut parser, b"AUTH x\r\nPING\r\n", &limits, 32).expect("these are requests");
        assert_eq!((batch.len(), batch.end_of(1)), (1, 8));
    }
}
