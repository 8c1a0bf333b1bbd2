//! Replies that a client has not taken yet.
//!
//! Small replies wait for the end of their turn (see [`super::connection`]), and then nearly always none are left. What
//! the socket does not take is kept here, a large frame that others read too as it is, shared with them. How much may
//! wait is the engine's to say.
//!
//! Invariant: the first piece is empty only when nothing waits.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::stream::Stream;
use crate::engine::{Now, ReplyRoom};

/// The room that the first reply makes, and the least that is kept while it is empty.
const KEPT_BYTES: usize = 512;
/// Room of up to so many bytes is not worth giving back, as the next replies are often as long.
const LITTLE_BYTES: usize = 2 << 10;
/// From this size on, what is left of replies is kept as it is instead of copied.
const LARGE_BYTES: usize = 256 << 10;

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
pub(crate) struct Outbox {
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

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox {
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

impl Outbox {
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

    /// Sends `bytes` after what waits, and keeps what the socket does not take now; `bytes` is empty then.
    pub(crate) fn send(&mut self, stream: &mut Stream, cx: &mut Context<'_>, bytes: &mut Vec<u8>) -> io::Result<()> {
        if self.in_bytes {
            self.push(bytes);
            bytes.clear();
            return self.flush(stream, cx);
        }
        if self.is_empty() {
            let taken = write(stream, cx, bytes)?;
            if bytes.len() - taken >= LARGE_BYTES {
                // Whole, so that a large reply is not in memory twice.
                (self.first, self.sent) = (Piece::Own(mem::take(bytes)), taken);
                return Ok(());
            }
            self.push(&bytes[taken..]);
        } else {
            self.push(bytes);
            self.flush(stream, cx)?;
        }
        bytes.clear();
        if bytes.capacity() > REUSED_BYTES {
            bytes.shrink_to(REUSED_BYTES);
        }
        Ok(())
    }

    /// Sends a frame after what waits, and keeps a share of it while the socket does not take all.
    pub(crate) fn share(&mut self, stream: &mut Stream, cx: &mut Context<'_>, frame: Arc<[u8]>) -> io::Result<()> {
        if self.is_empty() {
            self.first = Piece::Shared(frame);
            return self.flush(stream, cx);
        }
        self.later_bytes += frame.len();
        self.later.push_back(Piece::Shared(frame));
        Ok(())
    }

    /// Sends what waits, as far as the socket takes it; if it does not take all, the task is woken when it will.
    pub(crate) fn flush(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> io::Result<()> {
        loop {
            let rest = &self.first.bytes()[self.sent..];
            let part = if self.in_bytes { rest.len().min(1) } else { rest.len() };
            let taken = write(stream, cx, &rest[..part])?;
            self.sent += taken;
            if taken > 0 && part < rest.len() {
                cx.waker().wake_by_ref();
            }
            if self.sent < self.first.bytes().len() {
                return Ok(());
            }
            if !self.next_piece() {
                return Ok(());
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

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 10_000;

    /// The room that an outbox keeps when it has sent a large reply.
    fn room_kept(outbox: &mut Outbox) -> usize {
        outbox.push(&[0; LARGE]);
        outbox.next_piece();
        outbox.room()
    }

    #[test]
    fn room_shrinks_as_soon_as_all_is_sent() {
        let mut outbox = Outbox::default();
        outbox.keep(ReplyRoom::default(), Now::from_us(1));
        assert_eq!(room_kept(&mut outbox), KEPT_BYTES);
        assert_eq!(outbox.peak(), LARGE);
        outbox.keep(ReplyRoom::default(), Now::from_us(2));
        assert_eq!(outbox.peak(), 0);
    }

    #[test]
    fn room_that_may_not_shrink_stays() {
        let mut outbox = Outbox::default();
        outbox.keep(ReplyRoom { shrinks: false, ..ReplyRoom::default() }, Now::from_us(1));
        assert!(room_kept(&mut outbox) >= LARGE);
    }

    #[test]
    fn room_for_the_largest_reply_stays_for_its_time() {
        let rule = ReplyRoom { peak_ms: Some(100), ..ReplyRoom::default() };
        let mut outbox = Outbox::default();
        outbox.keep(rule, Now::from_us(1_000_000));
        room_kept(&mut outbox);
        outbox.keep(rule, Now::from_us(1_099_999));
        assert!(room_kept(&mut outbox) >= LARGE);
        outbox.keep(rule, Now::from_us(1_100_000));
        assert_eq!(room_kept(&mut outbox), KEPT_BYTES);
        let forever = ReplyRoom { peak_ms: None, ..ReplyRoom::default() };
        outbox.keep(forever, Now::from_us(1_200_000));
        outbox.keep(forever, Now::from_us(i64::MAX));
        assert!(room_kept(&mut outbox) >= LARGE);
    }
}
