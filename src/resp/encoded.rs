//! Elements of a reply that were encoded before, to be sent as often as they are wanted.

use super::Protocol;
use super::reply::Reply;
use crate::value::SharedBytes;
use std::ops::Range;

/// The line end behind each element.
const LINE_END: &[u8] = b"\r\n";

/// Elements of an array or a map, in the form in which a client receives them.
///
/// The line end of the last element is not among the bytes: [`Reply::encoded`] writes it behind them, so that bytes
/// that are sent without a copy have written ones on both sides.
#[derive(Debug)]
pub struct EncodedElements {
    bytes: SharedBytes,
    /// The place of each element, without its line end.
    places: Vec<Range<u32>>,
}

impl EncodedElements {
    /// Encodes `count` elements for `protocol`, each as `write` writes it: a reply, several for a map, or nothing.
    pub fn new(protocol: Protocol, count: usize, mut write: impl FnMut(&mut Reply<'_>, usize)) -> EncodedElements {
        let mut bytes = Vec::new();
        let mut places = Vec::with_capacity(count);
        for number in 0..count {
            let start = bytes.len() as u32;
            write(&mut Reply::new(&mut bytes, protocol), number);
            let end = bytes.len().saturating_sub(LINE_END.len()) as u32;
            places.push(start..end.max(start));
        }
        bytes.truncate(bytes.len().saturating_sub(LINE_END.len()));
        EncodedElements { bytes: bytes.into(), places }
    }

    /// All elements, without the last line end.
    pub(super) fn bytes(&self) -> &SharedBytes {
        &self.bytes
    }

    /// One element, without its line end.
    pub(super) fn element(&self, number: usize) -> &[u8] {
        let place = self.places.get(number).cloned().unwrap_or(0..0);
        self.bytes.get(place.start as usize..place.end as usize).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::ReplyBuffer;
    use crate::resp::reply_buffer::tests::sent;

    /// Writes an element of several kilobytes.
    fn write(reply: &mut Reply<'_>, number: usize) {
        reply.array(2);
        reply.count(number);
        reply.bulk(&vec![b'x'; 3_000]);
    }

    #[test]
    fn encoded_elements_are_sent_as_if_they_were_written() {
        for count in [1, 40] {
            let encoded = EncodedElements::new(Protocol::Resp2, count, write);
            let (mut output, mut whole) = (ReplyBuffer::default(), Vec::new());
            for mut reply in [Reply::zero_copy(&mut output, Protocol::Resp2), Reply::new(&mut whole, Protocol::Resp2)] {
                reply.array(count);
                reply.encoded(&encoded);
                reply.encoded_element(&encoded, count - 1);
                let end = reply.position();
                reply.encoded(&encoded);
                reply.rewind(end);
            }
            let mut expected = Vec::new();
            let mut reply = Reply::new(&mut expected, Protocol::Resp2);
            reply.array(count);
            (0..count).for_each(|number| write(&mut reply, number));
            write(&mut reply, count - 1);
            assert_eq!(whole, expected);
            assert_eq!(sent(&mut output), expected);
        }
    }
}
