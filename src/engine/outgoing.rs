//! What a session is told beside the replies to its own requests: messages, and replies it had to wait for.
//!
//! The engine has no sockets, so it queues frames here and wishes that the connection be woken
//! ([`crate::engine::Effect::Wake`]) when the first one comes. The connection takes them when its socket can: what a
//! client does not read stays here, shared with all others who are told the same, and is counted.

use std::collections::VecDeque;
use std::sync::Arc;

/// From this size on a frame is handed to the connection as it is, instead of copied.
const LARGE_BYTES: usize = 16 << 10;

/// Frames in the order in which they are to be sent.
#[derive(Debug, Default)]
pub struct Outgoing {
    frames: VecDeque<Arc<[u8]>>,
    bytes: usize,
}

impl Outgoing {
    /// Adds a frame; tells whether it is the first.
    pub fn push(&mut self, frame: Arc<[u8]>) -> bool {
        self.bytes += frame.len();
        self.frames.push_back(frame);
        self.frames.len() == 1
    }

    /// Adds a frame behind the first `place` ones, which were there before it.
    pub fn insert(&mut self, place: usize, frame: Arc<[u8]>) {
        self.bytes += frame.len();
        self.frames.insert(place, frame);
    }

    /// Moves frames to the end of `out`, until there is none or `out` has `most` bytes.
    pub fn take(&mut self, out: &mut Vec<u8>, most: usize) {
        while out.len() < most
            && let Some(frame) = self.pop()
        {
            out.extend_from_slice(&frame);
        }
    }

    /// The same, which stops before a frame that is large. That one is the answer, to be
    /// sent after `out` without a copy.
    pub fn take_or_share(&mut self, out: &mut Vec<u8>, most: usize) -> Option<Arc<[u8]>> {
        while out.len() < most
            && let Some(frame) = self.pop()
        {
            if frame.len() >= LARGE_BYTES {
                return Some(frame);
            }
            out.extend_from_slice(&frame);
        }
        None
    }

    fn pop(&mut self) -> Option<Arc<[u8]>> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.len();
        Some(frame)
    }

    /// Forgets all frames: nobody is going to read them.
    pub fn clear(&mut self) {
        *self = Outgoing::default();
    }

    /// True when there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// How many bytes wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many frames wait.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_leave_whole_in_their_order_and_are_counted() {
        let mut outgoing = Outgoing::default();
        assert!(outgoing.push(Arc::from(*b"one")));
        assert!(!outgoing.push(Arc::from(*b"three")));
        let mut out = Vec::new();
        outgoing.take(&mut out, 1);
        assert_eq!((out.as_slice(), outgoing.bytes(), outgoing.frames()), (&b"one"[..], 5, 1));
        outgoing.take(&mut out, 100);
        assert_eq!((out.as_slice(), outgoing.is_empty()), (&b"onethree"[..], true));
    }

    #[test]
    fn a_large_frame_is_shared_and_small_ones_are_gathered() {
        let (mut outgoing, large) = (Outgoing::default(), Arc::from(vec![7; LARGE_BYTES]));
        outgoing.push(Arc::from(*b"one"));
        outgoing.push(Arc::clone(&large));
        outgoing.insert(1, Arc::from(*b"two"));
        let mut out = Vec::new();
        let shared = outgoing.take_or_share(&mut out, usize::MAX).expect("a large frame follows");
        assert!(Arc::ptr_eq(&shared, &large));
        assert_eq!((out.as_slice(), outgoing.bytes()), (&b"onetwo"[..], 0));
    }
}
