//! Elements of a collection as replies, many in a row.
//!
//! Frames of short elements are put together in a block on the stack, with copies of fixed sizes that may write more
//! than they have to, each over what the one before wrote too much; the block goes out as a whole. For the few bytes
//! that elements have, that is quicker than to append exactly as many to a buffer that has to be asked for room.
//!
//! Elements of one collection are often alike: they begin with the same prefix, which a packed collection keeps once, and
//! are equally long. So the front of a frame, its length and the prefix, is made once and copied for each element that
//! has the same.
//!
//! It writes what [`Reply::item`] writes for each element, byte for byte.

use super::Reply;
use crate::value::Item;

/// Bytes that are put together before they go out.
const BLOCK_BYTES: usize = 1024;
/// Bytes that one frame of a short element takes at most: a front, the rest of the element, the line's end.
const FRAME_BYTES: usize = 64;
/// Where the last frame of a block may begin.
const LAST_FRAME: usize = BLOCK_BYTES - FRAME_BYTES;
/// Bytes of a front, and of the rest of an element, that is short.
const FRONT_BYTES: usize = 32;
const REST_BYTES: usize = 28;

/// Frames on their way out.
struct Block<'o, 'i> {
    out: &'o mut Vec<u8>,
    bytes: [u8; BLOCK_BYTES],
    used: usize,
    front: Front<'i>,
}

/// The front of the frames of elements that are alike.
struct Front<'i> {
    prefix: &'i [u8],
    /// The length of an element.
    len: usize,
    bytes: [u8; FRONT_BYTES],
    used: usize,
}

impl Reply<'_> {
    /// Elements of a collection, each as a bulk string. The header is the caller's.
    pub fn items<'i>(&mut self, items: impl Iterator<Item = Item<'i>>) {
        if self.is_of_values() {
            return items.for_each(|item| self.item(item));
        }
        let mut block = Block::new(self.out);
        items.for_each(|item| match item {
            Item::Text(prefix, rest) => block.put(prefix, rest),
            Item::Int(number) => block.put(&[], itoa::Buffer::new().format(number).as_bytes()),
        });
        block.flush();
    }

    /// Byte strings, each as a bulk string. The header is the caller's.
    pub fn bulks<'i>(&mut self, strings: impl Iterator<Item = &'i [u8]>) {
        if self.is_of_values() {
            return strings.for_each(|bytes| self.bulk(bytes));
        }
        let mut block = Block::new(self.out);
        strings.for_each(|bytes| block.put(&[], bytes));
        block.flush();
    }
}

impl<'o, 'i> Block<'o, 'i> {
    fn new(out: &'o mut Vec<u8>) -> Block<'o, 'i> {
        Block { out, bytes: [0; BLOCK_BYTES], used: 0, front: Front::of(&[], 0) }
    }

    /// Adds an element that begins with `prefix`.
    #[inline]
    fn put(&mut self, prefix: &'i [u8], rest: &[u8]) {
        let len = prefix.len() + rest.len();
        if len != self.front.len || !std::ptr::eq(prefix, self.front.prefix) {
            self.front = Front::of(prefix, len);
        }
        let front = self.front.used;
        // Said once, so that nothing below has to be checked again.
        if front == 0 || front > FRONT_BYTES || rest.len() > REST_BYTES {
            return self.put_long(prefix, rest);
        }
        let start = match self.used {
            used @ ..=LAST_FRAME => used,
            _ => self.begin_anew(),
        };
        let Some(frame) = self.bytes.get_mut(start..).and_then(|room| room.first_chunk_mut::<FRAME_BYTES>()) else {
            return;
        };
        frame[..FRONT_BYTES].copy_from_slice(&self.front.bytes);
        let end = front + rest.len();
        place(frame, front, rest);
        frame[end..end + 2].copy_from_slice(b"\r\n");
        self.used = start + end + 2;
    }

    /// Sends what is put together; answers where the next frame begins.
    #[inline(never)]
    fn begin_anew(&mut self) -> usize {
        self.flush();
        0
    }

    #[cold]
    fn put_long(&mut self, prefix: &[u8], rest: &[u8]) {
        self.flush();
        Reply::new(self.out, super::Protocol::Resp2).item(Item::Text(prefix, rest));
    }

    fn flush(&mut self) {
        self.out.extend_from_slice(&self.bytes[..self.used]);
        self.used = 0;
    }
}

impl<'i> Front<'i> {
    /// The front of an element of `len` bytes; an empty one if that is long.
    fn of(prefix: &'i [u8], len: usize) -> Front<'i> {
        let mut front = Front { prefix, len, bytes: [0; FRONT_BYTES], used: 0 };
        let (header, used) = match len as u8 {
            _ if len > 99 => return front,
            digit @ ..10 => ([b'$', b'0' + digit, b'\r', b'\n', 0], 4),
            number => ([b'$', b'0' + number / 10, b'0' + number % 10, b'\r', b'\n'], 5),
        };
        front.bytes[..5].copy_from_slice(&header);
        if let Some(room) = front.bytes.get_mut(used..used + prefix.len()) {
            room.copy_from_slice(prefix);
            front.used = used + prefix.len();
        }
        front
    }
}

/// Puts a few bytes into a frame: up to twice as many as a word has as two words, which may overlap.
#[inline]
fn place(frame: &mut [u8; FRAME_BYTES], at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>())
        && bytes.len() <= 16
    {
        frame[at..at + 8].copy_from_slice(first);
        frame[end - 8..end].copy_from_slice(last);
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>())
        && bytes.len() <= 8
    {
        frame[at..at + 4].copy_from_slice(first);
        frame[end - 4..end].copy_from_slice(last);
    } else {
        frame[at..end].copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use crate::resp::{Protocol, Reply};
    use crate::value::Item;
    use proptest::prelude::*;

    fn prefixes() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..3)
    }

    proptest! {
        #[test]
        fn elements_in_a_row_are_written_as_each_alone(
            prefixes in prefixes(),
            rests in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..130)), 0..100),
        ) {
            let item = |(at, rest): &'_ (prop::sample::Index, Vec<u8>)| -> (usize, Vec<u8>) {
                (at.index(prefixes.len()), rest.iter().copied().take(rest.len() % 40).collect())
            };
            let all: Vec<(usize, Vec<u8>)> = rests.iter().map(item).collect();
            let items = || all.iter().map(|(at, rest)| Item::Text(&prefixes[*at], rest)).chain([Item::Int(7)]);
            let (mut together, mut alone) = (Vec::new(), Vec::new());
            Reply::new(&mut together, Protocol::Resp2).items(items());
            items().for_each(|item| Reply::new(&mut alone, Protocol::Resp2).item(item));
            prop_assert_eq!(&together, &alone);
            let (mut together, mut alone) = (Vec::new(), Vec::new());
            Reply::new(&mut together, Protocol::Resp2).bulks(all.iter().map(|(_, rest)| &rest[..]));
            all.iter().for_each(|(_, rest)| Reply::new(&mut alone, Protocol::Resp2).bulk(rest));
            prop_assert_eq!(together, alone);
        }
    }
}
