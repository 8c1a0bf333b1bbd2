//! The write queue of a connection: replies that its socket has not taken yet.
//!
//! Small replies are written at the end of the connection's turn (see [`super::connection`]), and nearly always the
//! socket takes all of them. The rest stays here. Large strings, and large frames that other clients receive too, are
//! not copied: the queue holds references, and sends them together with the bytes around them in one system call. The
//! engine limits how many bytes may wait.
//!
//! Invariant: the first piece is empty only when nothing waits.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::mem;
use std::task::{Context, Poll};

use super::fairness::{TURN_WRITE_BYTES, wake_after_others};
use super::stream::Stream;
use crate::engine::{Now, ReplyRoom};
use crate::resp::{ReplyBuffer, ReplyPiece};
use crate::value::SharedBytes;

/// The capacity that the first reply allocates, and the least that an empty queue keeps, in bytes.
const KEPT_BYTES: usize = 512;
/// The capacity up to which an emptied queue is not shrunk, as the next replies are often as long.
const LITTLE_BYTES: usize = 2 << 10;
/// From this size on, the unsent rest of replies is moved into the queue instead of copied, and a run of bytes in the
/// queue is not extended, as growing it would copy it.
const LARGE_BYTES: usize = 256 << 10;

/// The most pieces that one system call sends.
const MAX_PIECES: usize = 16;

/// The most capacity for replies that a thread keeps: freeing and allocating again would cost more than filling it.
const REUSED_BYTES: usize = 2 << 20;

/// A run of bytes with one owner: the queue itself, or several queues together.
#[derive(Debug)]
enum Piece {
    Own(Vec<u8>),
    Shared(SharedBytes),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Piece::Own(bytes) => bytes,
            Piece::Shared(frame) => frame,
        }
    }
}

/// The bytes to send, in order.
#[derive(Debug)]
pub(crate) struct WriteQueue {
    first: Piece,
    /// The number of bytes of the first piece that were sent.
    sent: usize,
    later: VecDeque<Piece>,
    later_bytes: usize,
    /// The capacity that is kept while the queue is empty.
    kept_bytes: Cell<usize>,
    /// The most bytes that were gathered, and the moment since which they count.
    peak: Cell<(usize, Now)>,
    /// Whether one byte is sent at a time, until nothing waits (a fault that tests order).
    is_bytewise: bool,
}

impl Default for WriteQueue {
    fn default() -> WriteQueue {
        WriteQueue {
            first: Piece::Own(Vec::new()),
            sent: 0,
            later: VecDeque::new(),
            later_bytes: 0,
            is_bytewise: false,
            kept_bytes: Cell::new(KEPT_BYTES),
            peak: Cell::new((0, Now::default())),
        }
    }
}

impl WriteQueue {
    /// The number of bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.first.bytes().len() - self.sent + self.later_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The capacity for gathered replies, in bytes.
    pub(crate) fn room(&self) -> usize {
        match &self.first {
            Piece::Own(bytes) => bytes.capacity(),
            Piece::Shared(_) => 0,
        }
    }

    /// The most bytes that were gathered lately (see [`WriteQueue::keep`]).
    pub(crate) fn peak(&self) -> usize {
        self.peak.get().0
    }

    /// Decides how much capacity is kept from now on when all is sent, and starts a new peak when the old one's time is
    /// over.
    pub(crate) fn keep(&self, rule: ReplyRoom, now: Now) {
        if rule.peak_ms.is_some_and(|peak_ms| now.since_us(self.peak.get().1) >= peak_ms.saturating_mul(1000)) {
            self.peak.set((self.len(), now));
        }
        self.kept_bytes.set(if rule.shrinks { self.peak().max(KEPT_BYTES) } else { usize::MAX });
    }

    /// Sends one byte in each turn from now on, until nothing waits (a fault).
    pub(crate) fn send_bytewise(&mut self) {
        self.is_bytewise = true;
    }

    /// Copies bytes to the end, to be sent later.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match (self.later.back_mut(), &mut self.first) {
            (None, Piece::Own(first)) if first.len() < LARGE_BYTES => {
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
            (Some(Piece::Own(last)), _) if last.len() < LARGE_BYTES => last.extend_from_slice(bytes),
            _ => self.later.push_back(Piece::Own(bytes.to_vec())),
        }
        self.later_bytes += bytes.len();
    }

    /// Queues bytes without copying them.
    fn push_piece(&mut self, piece: Piece) {
        if self.is_empty() {
            (self.first, self.sent) = (piece, 0);
            return;
        }
        self.later_bytes += piece.bytes().len();
        self.later.push_back(piece);
    }

    /// Sends `output` after the waiting bytes, and queues what the socket does not take now. Leaves `output` empty.
    pub(crate) fn send(
        &mut self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
        output: &mut ReplyBuffer,
    ) -> io::Result<()> {
        if self.is_empty() && !self.is_bytewise && !output.has_zero_copy() {
            return self.send_written(stream, cx, output.written_mut());
        }
        self.queue(output);
        self.flush(stream, cx)
    }

    /// Queues `output`, to be sent later. Leaves `output` empty.
    pub(crate) fn queue(&mut self, output: &mut ReplyBuffer) {
        if output.len() >= LARGE_BYTES && !output.has_zero_copy() {
            return self.push_piece(Piece::Own(mem::take(output.written_mut())));
        }
        output.drain(|piece| match piece {
            ReplyPiece::Written(bytes) => self.push(bytes),
            ReplyPiece::Shared(string) => self.push_shared(string),
        });
        limit_capacity(output.written_mut());
    }

    /// Writes bytes directly, while nothing waits in the queue.
    fn send_written(&mut self, stream: &mut Stream, cx: &mut Context<'_>, bytes: &mut Vec<u8>) -> io::Result<()> {
        let mut taken = 0;
        while taken < bytes.len().min(TURN_WRITE_BYTES) {
            match stream.poll_write(cx, &bytes[taken..])? {
                Poll::Ready(count) => taken += not_zero(count)?,
                Poll::Pending => break,
            }
        }
        if taken < bytes.len() && taken >= TURN_WRITE_BYTES {
            wake_after_others(cx);
        }
        if bytes.len() - taken >= LARGE_BYTES {
            // Moved as a whole, so that a large reply is not in memory twice.
            (self.first, self.sent) = (Piece::Own(mem::take(bytes)), taken);
            return Ok(());
        }
        self.push(&bytes[taken..]);
        bytes.clear();
        limit_capacity(bytes);
        Ok(())
    }

    /// Queues a reference to bytes, until the socket has taken all of them.
    pub(crate) fn push_shared(&mut self, bytes: SharedBytes) {
        self.push_piece(Piece::Shared(bytes));
    }

    /// Sends the waiting bytes, as far as the socket takes them; the task is woken when it takes more. A socket that
    /// keeps taking is written to again after others were served.
    pub(crate) fn flush(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> io::Result<()> {
        let mut written = 0;
        while !self.is_empty() {
            let Poll::Ready(count) = self.poll_write(stream, cx)? else { return Ok(()) };
            let is_bytewise = self.is_bytewise;
            self.advance(not_zero(count)?);
            written += count;
            if (is_bytewise || written >= TURN_WRITE_BYTES) && !self.is_empty() {
                wake_after_others(cx);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Writes the first pieces in one system call.
    fn poll_write(&self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let rest = &self.first.bytes()[self.sent..];
        if self.is_bytewise {
            return stream.poll_write(cx, &rest[..1]);
        }
        if self.later.is_empty() {
            return stream.poll_write(cx, rest);
        }
        let mut parts = [IoSlice::new(rest); MAX_PIECES];
        let pieces = parts[1..].iter_mut().zip(&self.later);
        let count = 1 + pieces.map(|(part, piece)| *part = IoSlice::new(piece.bytes())).count();
        stream.poll_write_vectored(cx, &parts[..count])
    }

    /// Removes the first `count` bytes, which were sent.
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

    /// Replaces the first piece, which was sent, by the next one; false if there is none.
    fn next_piece(&mut self) -> bool {
        self.sent = 0;
        if let Some(next) = self.later.pop_front() {
            self.later_bytes -= next.bytes().len();
            self.first = next;
            return true;
        }
        self.later = VecDeque::new();
        self.is_bytewise = false;
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

/// Shrinks an empty buffer to [`REUSED_BYTES`] at most.
fn limit_capacity(bytes: &mut Vec<u8>) {
    if bytes.capacity() > REUSED_BYTES {
        bytes.shrink_to(REUSED_BYTES);
    }
}

/// The number of bytes that a socket took; an error if it took none.
fn not_zero(count: usize) -> io::Result<usize> {
    if count == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LARGE: usize = 10_000;

    /// How bytes come into a write queue, or leave it.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Push,
        Queue,
        Share,
        Send,
    }

    fn step() -> impl Strategy<Value = (Step, usize)> {
        let sizes = prop_oneof![0..100usize, 0..2 * LARGE_BYTES];
        (prop_oneof![Just(Step::Push), Just(Step::Queue), Just(Step::Share), Just(Step::Send)], sizes)
    }

    /// The first `count` bytes that wait, which are sent.
    fn sent(write_queue: &mut WriteQueue, count: usize) -> Vec<u8> {
        let mut bytes = write_queue.first.bytes()[write_queue.sent..].to_vec();
        write_queue.later.iter().for_each(|piece| bytes.extend_from_slice(piece.bytes()));
        bytes.truncate(count);
        write_queue.advance(bytes.len());
        bytes
    }

    proptest! {
        #[test]
        fn bytes_leave_in_the_order_in_which_they_came(steps in prop::collection::vec(step(), 1..20)) {
            let (mut write_queue, mut model) = (WriteQueue::default(), VecDeque::new());
            let mut next = (0..=250).cycle();
            for (step, size) in steps {
                if let Step::Send = step {
                    let count = size.min(model.len());
                    let expected: Vec<u8> = model.drain(..count).collect();
                    prop_assert!(sent(&mut write_queue, size) == expected);
                    continue;
                }
                let bytes: Vec<u8> = next.by_ref().take(size).collect();
                model.extend(&bytes);
                match step {
                    Step::Push => write_queue.push(&bytes),
                    Step::Queue => write_queue.queue(&mut bytes.into()),
                    Step::Share => write_queue.push_shared(bytes[..].into()),
                    Step::Send => {}
                }
                prop_assert_eq!(write_queue.len(), model.len());
            }
            prop_assert!(model == sent(&mut write_queue, usize::MAX));
            prop_assert!(write_queue.is_empty());
        }
    }

    /// The capacity that a write queue keeps when it has sent a large reply.
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
