//! Replies that a client has not taken yet.
//!
//! Nearly always there are none: a batch's replies go from the thread's scratch buffer straight into the socket. Only
//! what the socket does not take is kept here. There is no limit, as Redis has none for normal clients.

use std::io;
use std::task::{Context, Poll};

use super::stream::Stream;

/// From this size on, room is given back as soon as it is empty.
const KEPT_BYTES: usize = 4 << 10;

/// Bytes in the order in which they are to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outbox {
    /// How many bytes wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds to the end.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Sends `bytes` after what waits, and keeps what the socket does not take now. Answers how many bytes it took.
    pub(crate) fn send(&mut self, stream: &mut Stream, cx: &mut Context<'_>, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_empty() {
            self.push(bytes);
            return self.flush(stream, cx);
        }
        let mut taken = 0;
        while taken < bytes.len() {
            match stream.poll_write(cx, &bytes[taken..])? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(count) => taken += count,
                Poll::Pending => {
                    self.push(&bytes[taken..]);
                    break;
                }
            }
        }
        Ok(taken)
    }

    /// Sends what waits, as far as the socket takes it; if it does not take all, the task is woken when it will. Answers
    /// how many bytes it took.
    pub(crate) fn flush(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> io::Result<usize> {
        let before = self.sent;
        while self.sent < self.bytes.len() {
            match stream.poll_write(cx, &self.bytes[self.sent..])? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(count) => self.sent += count,
                Poll::Pending => break,
            }
        }
        let taken = self.sent - before;
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
            self.sent = 0;
        }
        Ok(taken)
    }
}
