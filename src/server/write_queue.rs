//! The write queue of a connection: replies that its client has not taken yet.
//!
//! Small replies are written at the end of the connection's turn (see [`super::connection`]), and nearly always all of
//! them go out. What the socket does not take stays here. Large strings, and large frames that other clients get too,
//! are not copied: the queue holds references and sends them with what lies around them by one system call. The engine
//! limits how much may wait.
//!
//! Invariant: the first piece is empty only when nothing waits.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::fairness::{TURN_WRITE_BYTES, wake_after_others};
use super::stream::Stream;
use crate::engine::{Now, ReplyRoom};
use crate::resp::{ReplyBuffer, ReplyPiece};

/// The room that the first reply makes, and the least that is kept while it is empty.
const KEPT_BYTES: usize = 512;
/// Room of up to so many bytes is not worth giving back, as the next replies are often as long.
const LITTLE_BYTES: usize = 2 << 10;
/// From this size on, what is left of replies is kept as it is instead of copied.
const LARGE_BYTES: usize = 256 << 10;

/// How many pieces one system call sends at most.
const PARTS: usize = 16;

/// Room for replies that a thread keeps: what is given back and asked for again costs more than to fill it.
const REUSED_BYTES: usize = 2 << 20;

/// Bytes of one owner.
#[derive(Debug)]
enum Piece {
    Own(Vec<u8>),
    Shared(Arc<[u8]>),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Piece::Own(bytes) => bytes,
            Piece::Shared(frame) => frame,
        }
    }
}

/// Bytes in the order in which they are to be sent.
#[derive(Debug)]
pub(crate) struct WriteQueue {
    first: Piece,
    /// How much of the first piece is sent.
    sent: usize,
    later: VecDeque<Piece>,
    later_bytes: usize,
    /// Room that is kept while it is empty.
    kept_bytes: Cell<usize>,
    /// The most bytes that were gathered since then.
    peak: Cell<(usize, Now)>,
    /// One byte is sent at a time, until nothing waits.
    in_bytes: bool,
}

impl Default for WriteQueue {
    fn default() -> WriteQueue {
        WriteQueue {
            first: Piece::Own(Vec::new()),
            sent: 0,
            later: VecDeque::new(),
            later_bytes: 0,
            in_bytes: false,
            kept_bytes: Cell::new(KEPT_BYTES),
            peak: Cell::new((0, Now::default())),
        }
    }
}

impl WriteQueue {
    /// How many bytes wait.
    pub(crate) fn len(&self) -> usize {
        self.first.bytes().len() - self.sent + self.later_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Room for gathered replies.
    pub(crate) fn room(&self) -> usize {
        match &self.first {
            Piece::Own(bytes) => bytes.capacity(),
            Piece::Shared(_) => 0,
        }
    }

    /// The most that were gathered lately.
    pub(crate) fn peak(&self) -> usize {
        self.peak.get().0
    }

    /// Decides how much room is kept from now on when all is sent.
    pub(crate) fn keep(&self, rule: ReplyRoom, now: Now) {
        if rule.peak_ms.is_some_and(|peak_ms| now.since_us(self.peak.get().1) >= peak_ms.saturating_mul(1000)) {
            self.peak.set((self.len(), now));
        }
        self.kept_bytes.set(if rule.shrinks { self.peak().max(KEPT_BYTES) } else { usize::MAX });
    }

    /// Sends one byte in each turn from now on, until nothing waits (a fault).
    pub(crate) fn split(&mut self) {
        self.in_bytes = true;
    }

    /// Adds to the end, to be sent later.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match (self.later.back_mut(), &mut self.first) {
            (None, Piece::Own(first)) => {
                if self.sent > first.len() / 2 {
                    first.drain(..self.sent);
                    self.sent = 0;
                }
                if first.capacity() == 0 && !bytes.is_empty() {
                    first.reserve(KEPT_BYTES);
                }
                first.extend_from_slice(bytes);
                let (peak, since) = self.peak.get();
                self.peak.set((peak.max(first.len()), since));
                return;
            }
            (Some(Piece::Own(last)), _) => last.extend_from_slice(bytes),
            _ => self.later.push_back(Piece::Own(bytes.to_vec())),
        }
        self.later_bytes += bytes.len();
    }

    /// Sends `output` after what waits, and keeps what the socket does not take now; `output` is empty then.
    pub(crate) fn send(
        &mut self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
        output: &mut ReplyBuffer,
    ) -> io::Result<()> {
        if self.is_empty() && !self.in_bytes && !output.has_zero_copy() {
            return self.send_written(stream, cx, output.written_mut());
        }
        output.drain(|piece| match piece {
            ReplyPiece::Written(bytes) => self.push(bytes),
            ReplyPiece::Shared(string) => self.push_shared(string),
        });
        give_back(output.written_mut());
        self.flush(stream, cx)
    }

    /// Writes bytes behind which nothing waits.
    fn send_written(&mut self, stream: &mut Stream, cx: &mut Context<'_>, bytes: &mut Vec<u8>) -> io::Result<()> {
        let mut taken = 0;
        while taken < bytes.len().min(TURN_WRITE_BYTES) {
            match stream.poll_write(cx, &bytes[taken..])? {
                Poll::Ready(count) => taken += some(count)?,
                Poll::Pending => break,
            }
        }
        if taken < bytes.len() && taken >= TURN_WRITE_BYTES {
            wake_after_others(cx);
        }
        if bytes.len() - taken >= LARGE_BYTES {
            // Whole, so that a large reply is not in memory twice.
            (self.first, self.sent) = (Piece::Own(mem::take(bytes)), taken);
            return Ok(());
        }
        self.push(&bytes[taken..]);
        bytes.clear();
        give_back(bytes);
        Ok(())
    }

    /// Sends a frame after what waits, and holds on to it while the socket does not take all.
    pub(crate) fn share(&mut self, stream: &mut Stream, cx: &mut Context<'_>, frame: Arc<[u8]>) -> io::Result<()> {
        let was_empty = self.is_empty();
        self.push_shared(frame);
        if was_empty { self.flush(stream, cx) } else { Ok(()) }
    }

    fn push_shared(&mut self, bytes: Arc<[u8]>) {
        if self.is_empty() {
            self.first = Piece::Shared(bytes);
            return;
        }
        self.later_bytes += bytes.len();
        self.later.push_back(Piece::Shared(bytes));
    }

    /// Sends what waits, as far as the socket takes it; if it does not take all, the task is woken when it will. One
    /// that always takes more is written to again after others were served.
    pub(crate) fn flush(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> io::Result<()> {
        let mut written = 0;
        while !self.is_empty() {
            let Poll::Ready(count) = self.poll_write(stream, cx)? else { return Ok(()) };
            let split = self.in_bytes;
            self.advance(some(count)?);
            written += count;
            if (split || written >= TURN_WRITE_BYTES) && !self.is_empty() {
                wake_after_others(cx);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Writes the first pieces, by one system call.
    fn poll_write(&self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let rest = &self.first.bytes()[self.sent..];
        if self.in_bytes {
            return stream.poll_write(cx, &rest[..1]);
        }
        if self.later.is_empty() {
            return stream.poll_write(cx, rest);
        }
        let mut parts = [IoSlice::new(rest); PARTS];
        let pieces = parts[1..].iter_mut().zip(&self.later);
        let count = 1 + pieces.map(|(part, piece)| *part = IoSlice::new(piece.bytes())).count();
        stream.poll_write_vectored(cx, &parts[..count])
    }

    /// The first `count` bytes are sent.
    fn advance(&mut self, mut count: usize) {
        loop {
            let rest = self.first.bytes().len() - self.sent;
            if count < rest {
                self.sent += count;
                return;
            }
            count -= rest;
            if !self.next_piece() {
                return;
            }
        }
    }

    /// Goes on to the next piece, the first being sent; false if there is none.
    fn next_piece(&mut self) -> bool {
        self.sent = 0;
        if let Some(next) = self.later.pop_front() {
            self.later_bytes -= next.bytes().len();
            self.first = next;
            return true;
        }
        self.later = VecDeque::new();
        self.in_bytes = false;
        match &mut self.first {
            Piece::Own(bytes) => {
                bytes.clear();
                if bytes.capacity() > LITTLE_BYTES {
                    bytes.shrink_to(self.kept_bytes.get());
                }
            }
            Piece::Shared(_) => self.first = Piece::Own(Vec::new()),
        }
        false
    }
}

/// Keeps no more room than is worth it in a buffer that is empty.
fn give_back(bytes: &mut Vec<u8>) {
    if bytes.capacity() > REUSED_BYTES {
        bytes.shrink_to(REUSED_BYTES);
    }
}

/// How much a socket took, which is never nothing.
fn some(count: usize) -> io::Result<usize> {
    if count == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 10_000;

    /// The room that an write_queue keeps when it has sent a large reply.
    fn room_kept(write_queue: &mut WriteQueue) -> usize {
        write_queue.push(&[0; LARGE]);
        write_queue.next_piece();
        write_queue.room()
    }

    #[test]
    fn room_shrinks_as_soon_as_all_is_sent() {
        let mut write_queue = WriteQueue::default();
        write_queue.keep(ReplyRoom::default(), Now::from_us(1));
        assert_eq!(room_kept(&mut write_queue), KEPT_BYTES);
        assert_eq!(write_queue.peak(), LARGE);
        write_queue.keep(ReplyRoom::default(), Now::from_us(2));
        assert_eq!(write_queue.peak(), 0);
    }

    #[test]
    fn room_that_may_not_shrink_stays() {
        let mut write_queue = WriteQueue::default();
        write_queue.keep(ReplyRoom { shrinks: false, ..ReplyRoom::default() }, Now::from_us(1));
        assert!(room_kept(&mut write_queue) >= LARGE);
    }

    #[test]
    fn room_for_the_largest_reply_stays_for_its_time() {
        let rule = ReplyRoom { peak_ms: Some(100), ..ReplyRoom::default() };
        let mut write_queue = WriteQueue::default();
        write_queue.keep(rule, Now::from_us(1_000_000));
        room_kept(&mut write_queue);
        write_queue.keep(rule, Now::from_us(1_099_999));
        assert!(room_kept(&mut write_queue) >= LARGE);
        write_queue.keep(rule, Now::from_us(1_100_000));
        assert_eq!(room_kept(&mut write_queue), KEPT_BYTES);
        let forever = ReplyRoom { peak_ms: None, ..ReplyRoom::default() };
        write_queue.keep(forever, Now::from_us(1_200_000));
        write_queue.keep(forever, Now::from_us(i64::MAX));
        assert!(room_kept(&mut write_queue) >= LARGE);
    }
}
