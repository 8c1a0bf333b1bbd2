//! The output buffer of a client's replies: bytes, and between them large strings that are sent without a copy.
//!
//! A reply with a large string would copy it twice, here and into the socket, and the first copy costs as much again
//! as the second. So [`super::Reply::shared`] only notes its place, and the connection sends its bytes from where
//! they are stored. A stored string that replies may share is never changed, only replaced.
//!
//! To read, cut or move a reply, its bytes are needed; [`ReplyBuffer::flatten`] copies the shared strings into their
//! places first.
//!
//! Invariant: shared strings are in the order of their places.

use std::mem;
use std::ops::Range;

use crate::value::SharedBytes;

/// The least size of a string that is sent without a copy: below it, copying is as cheap as sharing.
pub(super) const ZERO_COPY_BYTES: usize = 64 << 10;

/// Replies that are to be sent to a client.
#[derive(Debug, Default)]
pub struct ReplyBuffer {
    pub(super) bytes: Vec<u8>,
    pub(super) shared_strings: SharedStrings,
}

/// The shared strings and their places between the bytes.
#[derive(Debug, Default)]
pub(super) struct SharedStrings {
    strings: Vec<(usize, SharedBytes)>,
    bytes: usize,
}

/// A piece of the output.
#[derive(Debug)]
pub enum ReplyPiece<'a> {
    /// Bytes that were written into the buffer.
    Written(&'a [u8]),
    /// A string that is sent without a copy.
    Shared(SharedBytes),
}

impl ReplyBuffer {
    /// The number of bytes to be sent.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.shared_strings.bytes
    }

    /// Whether nothing is to be sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether any string is sent without a copy.
    pub fn has_zero_copy(&self) -> bool {
        !self.shared_strings.strings.is_empty()
    }

    /// The bytes written, without the strings that are sent without a copy.
    pub fn written(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes written, without the strings that are sent without a copy, for appending.
    pub fn written_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes written, for changing from `start` on: shared strings there are copied into their places first.
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

    /// All bytes in the order in which they are to be sent.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.flatten(0);
        self.bytes
    }

    /// Passes the whole output to `take`, piece by piece, and leaves the buffer empty.
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

    /// Removes everything.
    pub fn clear(&mut self) {
        self.bytes.clear();
        if self.has_zero_copy() {
            self.shared_strings.cut(0);
        }
    }
}

impl From<Vec<u8>> for ReplyBuffer {
    fn from(bytes: Vec<u8>) -> ReplyBuffer {
        ReplyBuffer { bytes, shared_strings: SharedStrings::default() }
    }
}

impl SharedStrings {
    /// Adds a string at `place`, which must be behind all those before.
    pub(super) fn push(&mut self, place: usize, string: &SharedBytes) {
        self.bytes += string.len();
        self.strings.push((place, string.clone()));
    }

    /// Removes the strings behind `place`.
    pub(super) fn cut(&mut self, place: usize) {
        let first = self.first_from(place);
        self.bytes -= self.strings.drain(first..).map(|(_, string)| string.len()).sum::<usize>();
    }

    /// Moves the strings in `places` on by `by` bytes, after bytes were inserted before them.
    pub(super) fn shift(&mut self, places: Range<usize>, by: usize) {
        let first = self.first_from(places.start);
        self.strings[first..]
            .iter_mut()
            .take_while(|(place, _)| *place <= places.end)
            .for_each(|(place, _)| *place += by);
    }

    /// The index of the first string behind `place`: a string has its length in front, so none is exactly there.
    fn first_from(&self, place: usize) -> usize {
        self.strings.partition_point(|(at, _)| *at < place)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::resp::{Protocol, Reply};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn text(letter: u8, len: usize) -> SharedBytes {
        SharedBytes::from(vec![letter; len])
    }

    /// Writes a short text, or a long one that is sent without a copy.
    fn write(reply: &mut Reply<'_>, letter: u8, is_long: bool) {
        reply.shared(&text(letter, if is_long { ZERO_COPY_BYTES } else { 3 }));
    }

    /// The pieces of `output`, concatenated.
    pub(in crate::resp) fn sent(output: &mut ReplyBuffer) -> Vec<u8> {
        let mut bytes = Vec::new();
        output.drain(|piece| match piece {
            ReplyPiece::Written(part) => bytes.extend_from_slice(part),
            ReplyPiece::Shared(string) => bytes.extend_from_slice(&string),
        });
        bytes
    }

    proptest! {
        #[test]
        fn a_reply_buffer_sends_the_bytes_that_were_written(
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
        output.drain(|piece| {
            if let ReplyPiece::Shared(string) = piece {
                assert!(string.is_same(&stored));
            }
        });
    }
}
