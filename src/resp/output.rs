//! What is to be sent for requests: bytes, and between them large strings that are lent instead of copied.
//!
//! A reply with a large string would copy it twice, here and into the socket, and the first copy costs as much again as
//! the second. So [`super::Reply::shared`] only notes where it belongs, and the connection sends its bytes from where
//! they are stored. A stored string that replies may hold on to is never changed, only replaced.
//!
//! Whoever wants to look at a reply, cut it or move it takes the bytes, and has what was lent put in its place first
//! ([`Output::settle`]).
//!
//! Invariant: what is lent stands in the order of its places.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

/// From so many bytes on a string is lent: below, to copy it is as cheap as what lending takes.
pub(super) const LENT_BYTES: usize = 64 << 10;

/// Replies on their way to a client.
#[derive(Debug, Default)]
pub struct Output {
    pub(super) bytes: Vec<u8>,
    pub(super) lent: Lent,
}

/// Strings that belong between bytes.
#[derive(Debug, Default)]
pub(super) struct Lent {
    strings: Vec<(usize, Arc<[u8]>)>,
    bytes: usize,
}

/// A piece of what is to be sent.
#[derive(Debug)]
pub enum OutputPiece<'a> {
    /// Bytes that were written.
    Written(&'a [u8]),
    /// A string that is lent.
    Lent(Arc<[u8]>),
}

impl Output {
    /// How many bytes are to be sent.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.lent.bytes
    }

    /// True when nothing is to be sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether any string is lent.
    pub fn is_lending(&self) -> bool {
        !self.lent.strings.is_empty()
    }

    /// What was written, without what is lent.
    pub fn written(&self) -> &[u8] {
        &self.bytes
    }

    /// The same, to be added to.
    pub fn written_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The same, to be changed from `start` on: what was lent there is put in its place.
    pub fn settle(&mut self, start: usize) -> &mut Vec<u8> {
        if self.is_lending() {
            self.put_in_place(start);
        }
        &mut self.bytes
    }

    #[cold]
    fn put_in_place(&mut self, start: usize) {
        let first = self.lent.first_from(start);
        let strings = self.lent.strings.split_off(first);
        let Some(&(from, _)) = strings.first() else { return };
        let behind = self.bytes.split_off(from);
        let mut done = 0;
        for (place, string) in strings {
            self.lent.bytes -= string.len();
            let until = place - from;
            self.bytes.extend_from_slice(&behind[mem::replace(&mut done, until)..until]);
            self.bytes.extend_from_slice(&string);
        }
        self.bytes.extend_from_slice(&behind[done..]);
    }

    /// All bytes as they are to be sent.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.settle(0);
        self.bytes
    }

    /// Hands over all that is to be sent, piece by piece, and keeps nothing.
    pub fn drain(&mut self, mut take: impl FnMut(OutputPiece<'_>)) {
        let mut done = 0;
        for (place, string) in mem::take(&mut self.lent).strings {
            take(OutputPiece::Written(&self.bytes[done..place]));
            take(OutputPiece::Lent(string));
            done = place;
        }
        take(OutputPiece::Written(&self.bytes[done..]));
        self.bytes.clear();
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.lent.cut(0);
    }
}

impl From<Vec<u8>> for Output {
    fn from(bytes: Vec<u8>) -> Output {
        Output { bytes, lent: Lent::default() }
    }
}

impl Lent {
    /// Lends a string at `place`, which is behind all that was lent before.
    pub(super) fn push(&mut self, place: usize, string: &Arc<[u8]>) {
        self.bytes += string.len();
        self.strings.push((place, Arc::clone(string)));
    }

    /// Takes back what was lent behind `place`.
    pub(super) fn cut(&mut self, place: usize) {
        let first = self.first_from(place);
        self.bytes -= self.strings.drain(first..).map(|(_, string)| string.len()).sum::<usize>();
    }

    /// What was lent in `places` now stands so much further on.
    pub(super) fn shift(&mut self, places: Range<usize>, by: usize) {
        let first = self.first_from(places.start);
        self.strings[first..]
            .iter_mut()
            .take_while(|(place, _)| *place <= places.end)
            .for_each(|(place, _)| *place += by);
    }

    /// Which is the first that was lent behind `place`: a string has its length before it, so it never stands there.
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

    /// Writes a short text, or a long one that is lent.
    fn write(reply: &mut Reply<'_>, letter: u8, is_long: bool) {
        reply.shared(&text(letter, if is_long { LENT_BYTES } else { 3 }));
    }

    /// What the pieces of `output` are together.
    fn sent(output: &mut Output) -> Vec<u8> {
        let mut bytes = Vec::new();
        output.drain(|piece| match piece {
            OutputPiece::Written(part) => bytes.extend_from_slice(part),
            OutputPiece::Lent(string) => bytes.extend_from_slice(&string),
        });
        bytes
    }

    proptest! {
        #[test]
        fn what_is_sent_is_what_would_have_been_written(
            before in vec((any::<u8>(), any::<bool>()), 0..4),
            within in vec((any::<u8>(), any::<bool>()), 0..4),
            after in vec((any::<u8>(), any::<bool>()), 0..4),
            settles_from in 0usize..3,
        ) {
            let (mut output, mut whole) = (Output::default(), Vec::new());
            let mut starts = vec![0];
            for (lends, starts) in [(true, &mut starts), (false, &mut Vec::new())] {
                let mut reply = match lends {
                    true => Reply::lending(&mut output, Protocol::Resp2),
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
            output.settle(starts[settles_from]);
            prop_assert_eq!(output.len(), whole.len());
            let lent = before.iter().filter(|(_, is_long)| *is_long).count();
            prop_assert_eq!(output.lent.strings.len() >= lent, settles_from > 0 || lent == 0);
            prop_assert_eq!(sent(&mut output), whole);
            prop_assert!(output.is_empty());
        }
    }

    #[test]
    fn a_string_is_sent_from_where_it_is_stored() {
        let stored = text(b'a', LENT_BYTES);
        let mut output = Output::default();
        Reply::lending(&mut output, Protocol::Resp2).shared(&stored);
        assert_eq!(Arc::strong_count(&stored), 2);
        output.drain(|piece| {
            if let OutputPiece::Lent(string) = piece {
                assert!(Arc::ptr_eq(&string, &stored));
            }
        });
        assert_eq!(Arc::strong_count(&stored), 1);
    }
}
