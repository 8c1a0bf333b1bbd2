//! What is to be sent for requests: bytes, and between them large strings that are sent without a copy.
//!
//! A reply with a large string would copy it twice, here and into the socket, and the first copy costs as much again as
//! the second. So [`super::Reply::shared`] only notes where it belongs, and the connection sends its bytes from where
//! they are stored. A stored string that replies may hold on to is never changed, only replaced.
//!
//! Whoever wants to look at a reply, cut it or move it takes the bytes, and has the shared strings put in their places
//! first ([`ReplyBuffer::flatten`]).
//!
//! Invariant: what is sent without a copy stands in the order of its places.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

/// From so many bytes on a string is sent without a copy: below, to copy it is as cheap as what it takes to share it.
pub(super) const ZERO_COPY_BYTES: usize = 64 << 10;

/// Replies on their way to a client.
#[derive(Debug, Default)]
pub struct ReplyBuffer {
    pub(super) bytes: Vec<u8>,
    pub(super) shared_strings: SharedStrings,
}

/// Strings that belong between bytes.
#[derive(Debug, Default)]
pub(super) struct SharedStrings {
    strings: Vec<(usize, Arc<[u8]>)>,
    bytes: usize,
}

/// A piece of what is to be sent.
#[derive(Debug)]
pub enum ReplyPiece<'a> {
    /// Bytes that were written.
    Written(&'a [u8]),
    /// A string that is sent without a copy.
    Shared(Arc<[u8]>),
}

impl ReplyBuffer {
    /// How many bytes are to be sent.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.shared_strings.bytes
    }

    /// True when nothing is to be sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether any string is sent without a copy.
    pub fn has_zero_copy(&self) -> bool {
        !self.shared_strings.strings.is_empty()
    }

    /// What was written, without what is sent without a copy.
    pub fn written(&self) -> &[u8] {
        &self.bytes
    }

    /// The same, to be added to.
    pub fn written_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The same, to be changed from `start` on: shared strings there are put in their places.
    pub fn flatten(&mut self, start: usize) -> &mut Vec<u8> {
        if self.has_zero_copy() {
            self.flatten_from(start);
        }
        &mut self.bytes
    }

    #[cold]
    fn flatten_from(&mut self, start: usize) {
        let first = self.shared_strings.first_from(start);
        let strings = self.shared_strings.strings.split_off(first);
        let Some(&(from, _)) = strings.first() else { return };
        let behind = self.bytes.split_off(from);
        let mut done = 0;
        for (place, string) in strings {
            self.shared_strings.bytes -= string.len();
            let until = place - from;
            self.bytes.extend_from_slice(&behind[mem::replace(&mut done, until)..until]);
            self.bytes.extend_from_slice(&string);
        }
        self.bytes.extend_from_slice(&behind[done..]);
    }

    /// All bytes as they are to be sent.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.flatten(0);
        self.bytes
    }

    /// Hands over all that is to be sent, piece by piece, and keeps nothing.
    pub fn drain(&mut self, mut take: impl FnMut(ReplyPiece<'_>)) {
        let mut done = 0;
        for (place, string) in mem::take(&mut self.shared_strings).strings {
            take(ReplyPiece::Written(&self.bytes[done..place]));
            take(ReplyPiece::Shared(string));
            done = place;
        }
        take(ReplyPiece::Written(&self.bytes[done..]));
        self.bytes.clear();
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.shared_strings.cut(0);
    }
}

impl From<Vec<u8>> for ReplyBuffer {
    fn from(bytes: Vec<u8>) -> ReplyBuffer {
        ReplyBuffer { bytes, shared_strings: SharedStrings::default() }
    }
}

impl SharedStrings {
    /// Adds a string at `place`, which is behind all that were added before.
    pub(super) fn push(&mut self, place: usize, string: &Arc<[u8]>) {
        self.bytes += string.len();
        self.strings.push((place, Arc::clone(string)));
    }

    /// Takes back the strings behind `place`.
    pub(super) fn cut(&mut self, place: usize) {
        let first = self.first_from(place);
        self.bytes -= self.strings.drain(first..).map(|(_, string)| string.len()).sum::<usize>();
    }

    /// The strings in `places` now stand so much further on.
    pub(super) fn shift(&mut self, places: Range<usize>, by: usize) {
        let first = self.first_from(places.start);
        self.strings[first..]
            .iter_mut()
            .take_while(|(place, _)| *place <= places.end)
            .for_each(|(place, _)| *place += by);
    }

    /// Which is the first one behind `place`: a string has its length before it, so it never stands there.
    fn first_from(&self, place: usize) -> usize {
        self.strings.partition_point(|(at, _)| *at < place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::{Protocol, Reply};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn text(letter: u8, len: usize) -> Arc<[u8]> {
        Arc::from(vec![letter; len])
    }

    /// Writes a short text, or a long one that is sent without a copy.
    fn write(reply: &mut Reply<'_>, letter: u8, is_long: bool) {
        reply.shared(&text(letter, if is_long { ZERO_COPY_BYTES } else { 3 }));
    }

    /// What the pieces of `output` are together.
    fn sent(output: &mut ReplyBuffer) -> Vec<u8> {
        let mut bytes = Vec::new();
        output.drain(|piece| match piece {
            ReplyPiece::Written(part) => bytes.extend_from_slice(part),
            ReplyPiece::Shared(string) => bytes.extend_from_slice(&string),
        });
        bytes
    }

    proptest! {
        #[test]
        fn what_is_sent_is_what_would_have_been_written(
            before in vec((any::<u8>(), any::<bool>()), 0..4),
            within in vec((any::<u8>(), any::<bool>()), 0..4),
            after in vec((any::<u8>(), any::<bool>()), 0..4),
            flattens_from in 0usize..3,
        ) {
            let (mut output, mut whole) = (ReplyBuffer::default(), Vec::new());
            let mut starts = vec![0];
            for (lends, starts) in [(true, &mut starts), (false, &mut Vec::new())] {
                let mut reply = match lends {
                    true => Reply::zero_copy(&mut output, Protocol::Resp2),
                    false => Reply::new(&mut whole, Protocol::Resp2),
                };
                before.iter().for_each(|&(letter, is_long)| write(&mut reply, letter, is_long));
                starts.push(reply.position());
                let open = reply.open_array();
                within.iter().for_each(|&(letter, is_long)| write(&mut reply, letter, is_long));
                reply.close_array(open, within.len());
                starts.push(reply.position());
                after.iter().for_each(|&(letter, is_long)| write(&mut reply, letter, is_long));
                let end = reply.position();
                write(&mut reply, b'x', true);
                reply.rewind(end);
            }
            prop_assert_eq!(output.len(), whole.len());
            output.flatten(starts[flattens_from]);
            prop_assert_eq!(output.len(), whole.len());
            let shared_strings = before.iter().filter(|(_, is_long)| *is_long).count();
            prop_assert_eq!(output.shared_strings.strings.len() >= shared_strings, flattens_from > 0 || shared_strings == 0);
            prop_assert_eq!(sent(&mut output), whole);
            prop_assert!(output.is_empty());
        }
    }

    #[test]
    fn a_string_is_sent_from_where_it_is_stored() {
        let stored = text(b'a', ZERO_COPY_BYTES);
        let mut output = ReplyBuffer::default();
        Reply::zero_copy(&mut output, Protocol::Resp2).shared(&stored);
        assert_eq!(Arc::strong_count(&stored), 2);
        output.drain(|piece| {
            if let ReplyPiece::Shared(string) = piece {
                assert!(Arc::ptr_eq(&string, &stored));
            }
        });
        assert_eq!(Arc::strong_count(&stored), 1);
    }
}
