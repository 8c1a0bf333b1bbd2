//! What a session is told beside the replies to its own requests: messages, and replies it had to wait for.
//!
//! The engine has no sockets, so it queues frames here and wishes that the connection be woken
//! ([`crate::engine::Effect::Wake`]) when the first one comes. The connection takes them when its socket can: what a
//! client does not read stays here, shared with all others who are told the same, and is counted.

use std::collections::VecDeque;
use std::sync::Arc;

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

    /// Moves frames to the end of `out`, until there is none or `out` has `most` bytes.
    pub fn take(&mut self, out: &mut Vec<u8>, most: usize) {
        while out.len() < most
            && let Some(frame) = self.frames.pop_front()
        {
            self.bytes -= frame.len();
            out.extend_from_slice(&frame);
        }
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
}
