//! Replies that a client has not taken yet.
//!
//! Small replies wait for the end of their turn (see [`super::connection`]), and then nearly always none are left. What
//! the socket does not take is kept here. There is no limit, as Redis has none for normal clients.

use std::io;
use std::mem;
use std::task::{Context, Poll};

use super::stream::Stream;

/// Room that is kept while it is empty.
const KEPT_BYTES: usize = 512;
/// From this size on, replies are kept as they are instead of copied.
const LARGE_BYTES: usize = 256 << 10;

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

    /// Adds to the end, to be sent later.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Sends `bytes` after what waits, and keeps what the socket does not take now; `bytes` is empty then.
    pub(crate) fn send(&mut self, stream: &mut Stream, cx: &mut Context<'_>, bytes: &mut Vec<u8>) -> io::Result<()> {
        if self.is_empty() && bytes.len() >= LARGE_BYTES {
            // Whole, so that a large reply is not in memory twice.
            self.bytes = mem::take(bytes);
            return self.flush(stream, cx);
        }
        if self.is_empty() {
            let taken = write(stream, cx, bytes)?;
            self.push(&bytes[taken..]);
        } else {
            self.push(bytes);
            self.flush(stream, cx)?;
        }
        bytes.clear();
        Ok(())
    }

    /// Sends what waits, as far as the socket takes it; if it does not take all, the task is woken when it will.
    pub(crate) fn flush(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> io::Result<()> {
        self.sent += write(stream, cx, &self.bytes[self.sent..])?;
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
            self.sent = 0;
        }
        Ok(())
    }
}

/// Writes as much of `bytes` as the socket takes now, and answers how much that is.
fn write(stream: &mut Stream, cx: &mut Context<'_>, bytes: &[u8]) -> io::Result<usize> {
    let mut taken = 0;
    while taken < bytes.len() {
        match stream.poll_write(cx, &bytes[taken..])? {
            Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
            Poll::Ready(count) => taken += count,
            Poll::Pending => break,
        }
    }
    Ok(taken)
}
