//! Reading: from the socket to the requests that can run.
//!
//! Bytes are read into a buffer that all connections of a thread share, and run there. The bytes of an
//! unfinished request are copied into the connection's query buffer. Of a long word only the beginning is: the rest is
//! read directly behind it, and a command that stores the word keeps that buffer instead of a copy
//! ([`ReceivedBuffer::share`]).
//!
//! Invariant: while requests run from a [`ReceivedBuffer`], the query buffer is empty; what did not run returns to it.

use std::io;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::ReadBuf;

use super::query_buffer::QueryBuffer;
use super::{Connection, Ended, LONG_BYTES, Scratch, State, TURN_READ_BYTES, Work};
use crate::value::ReceivedBuffer;

/// Bytes of requests, and the buffer that holds them if a long word may be stored in it.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) buffer: Option<&'a Arc<ReceivedBuffer>>,
}

impl<'a> Input<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes, buffer: None }
    }

    pub(super) fn from(self, start: usize) -> Input<'a> {
        Input { bytes: &self.bytes[start..], ..self }
    }
}

impl Connection {
    /// Reads and runs requests until the turn is over, or until the client has sent its last. `Pending` if the turn is
    /// over.
    pub(super) fn read_requests(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<Result<(), Ended>> {
        let (received, mut goes_on, mut is_within_word) = (self.buffers.received, false, false);
        while self.state != State::Closing {
            match self.read_word()? {
                Some(length) => {
                    self.note_read(length);
                    self.run_appended(cx, length, &mut scratch.work)?;
                }
                None => {
                    let length = ready!(self.poll_read(cx, &mut scratch.input, goes_on))?;
                    if length == 0 {
                        self.state = State::Closing;
                        break;
                    }
                    self.note_read(length);
                    self.take_in(cx, &scratch.input[..length], &mut scratch.work)?;
                }
            }
            self.guard_unauthenticated()?;
            let was_within_word = mem::replace(&mut is_within_word, self.missing_of_word() > 0);
            if is_within_word {
                self.turn_end.begin();
            }
            goes_on = is_within_word && self.buffers.received - received < TURN_READ_BYTES;
            // Short requests that stream are many in a read; of those with a long word, a turn takes several reads.
            let ends_word = was_within_word && !is_within_word;
            let may_read = !self.is_streaming() || goes_on || ends_word && !self.turn_end.is_reached();
            if self.has_more || !may_read {
                return self.go_on_after_others(cx);
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads what has arrived. Within a long word (`goes_on`) it also reads what arrived during the last read, as the
    /// system had no room for it before.
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut [u8], goes_on: bool) -> Poll<io::Result<usize>> {
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        if goes_on && let Some(length) = stream.read_on(input)? {
            return Poll::Ready(Ok(length));
        }
        let most = if goes_on { input.len() } else { self.read_bytes };
        let mut buffer = ReadBuf::new(&mut input[..most]);
        ready!(stream.poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// The number of bytes that are missing of a long word and the line end behind it.
    fn missing_of_word(&self) -> usize {
        let end = self.parser.word_end(LONG_BYTES).map_or(0, |end| end.saturating_add(2));
        end.saturating_sub(self.unread.len())
    }

    /// Reads more of a long word directly to where it will be stored; `None` if there is none, or nothing more has
    /// arrived.
    fn read_word(&mut self) -> Result<Option<usize>, Ended> {
        let missing = self.missing_of_word();
        if missing == 0 || self.unread.is_empty() {
            return Ok(None);
        }
        self.unread.reserve(missing);
        let stream = self.stream.as_ref().ok_or(Ended)?;
        let read = stream.read_behind(self.unread.bytes_mut())?;
        Ok(read.filter(|length| *length > 0))
    }

    /// Runs the requests in `arrived`, after those that had arrived before.
    fn take_in(&mut self, cx: &mut Context<'_>, arrived: &[u8], work: &mut Work) -> Result<(), Ended> {
        if self.unread.is_empty() && self.state == State::Open {
            let taken = self.run(cx, Input::of(arrived), work)?;
            if self.state != State::Closing {
                let rest = &arrived[taken..];
                self.unread.begin(rest, self.missing_of_word().saturating_sub(rest.len()));
            }
        } else {
            self.unread.append(arrived);
            self.run_appended(cx, arrived.len(), work)?;
        }
        Ok(())
    }

    /// Runs the unread requests after `length` bytes were added to them, if one of them may be complete now.
    fn run_appended(&mut self, cx: &mut Context<'_>, length: usize, work: &mut Work) -> Result<(), Ended> {
        self.guard_query()?;
        if self.state == State::Open && self.missing_of_word() == 0 {
            return self.run_unread(cx, work);
        }
        self.buffers.query += length;
        let mut engine = self.shared.engine();
        self.report(&mut engine);
        self.account_memory(&mut engine);
        Ok(())
    }

    pub(super) fn run_unread(&mut self, cx: &mut Context<'_>, work: &mut Work) -> Result<(), Ended> {
        let mut unread = mem::take(&mut self.unread);
        if unread.len() >= LONG_BYTES {
            return self.run_long(cx, unread, work);
        }
        let taken = self.run(cx, Input::of(unread.unread()), work)?;
        unread.take(taken);
        self.unread = unread;
        Ok(())
    }

    /// Runs unread requests of which a long word may be stored in the buffer that it is in.
    fn run_long(&mut self, cx: &mut Context<'_>, unread: QueryBuffer, work: &mut Work) -> Result<(), Ended> {
        let (bytes, before) = unread.into_parts();
        let buffer = Arc::new(ReceivedBuffer::new(bytes));
        let taken = self.run(cx, Input { bytes: &buffer.bytes()[before..], buffer: Some(&buffer) }, work)?;
        match Arc::try_unwrap(buffer) {
            Ok(buffer) => {
                self.unread = QueryBuffer::from_parts(buffer.into_bytes(), before);
                self.unread.take(taken);
            }
            Err(stored) => self.unread.append(&stored.bytes()[before + taken..]),
        }
        Ok(())
    }
}
