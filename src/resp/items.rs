//! Writes the elements of a collection as replies, many in a row.
//!
//! Frames of short elements are put together in a block on the stack, with copies of fixed sizes that may write more
//! than they have to, each over the excess of the one before; the block is appended as a whole. For the few bytes of
//! an element, that is faster than appending exactly as many to a buffer whose capacity has to be checked.
//!
//! Elements of one collection often share a prefix, which a packed collection stores once. It is copied into the
//! block's own memory once, and from there to each element that has it.
//!
//! It writes what [`Reply::item`] writes for each element, byte for byte.

use super::Reply;
use crate::value::Item;

/// The bytes that are put together before they are appended.
const BLOCK_BYTES: usize = 1024;
/// The most bytes of a short element's frame: a header, the prefix, the rest of the element, the line end.
const FRAME_BYTES: usize = 64;
/// The last offset at which a frame of a block may begin.
const LAST_FRAME: usize = BLOCK_BYTES - FRAME_BYTES;
/// The most bytes of a short prefix, and of a short rest of an element.
const PREFIX_BYTES: usize = 32;
const REST_BYTES: usize = 24;

/// `$length` and the line end, for each length of a short element.
const HEADERS: [[u8; 8]; PREFIX_BYTES + REST_BYTES + 1] = headers();

const fn headers() -> [[u8; 8]; PREFIX_BYTES + REST_BYTES + 1] {
    let mut headers = [[0; 8]; PREFIX_BYTES + REST_BYTES + 1];
    let mut len = 0;
    while len < headers.len() {
        let (ten, digit) = (b'0' + (len / 10) as u8, b'0' + (len % 10) as u8);
        headers[len] = match len {
            ..10 => [b'$', digit, b'\r', b'\n', 0, 0, 0, 0],
            _ => [b'$', ten, digit, b'\r', b'\n', 0, 0, 0],
        };
        len += 1;
    }
    headers
}

/// A block of frames that have not been appended yet.
struct Block<'o, 'i> {
    out: &'o mut Vec<u8>,
    bytes: [u8; BLOCK_BYTES],
    used: usize,
    /// The prefix of the last element, and a copy of it if it is short.
    prefix: &'i [u8],
    copy: [u8; PREFIX_BYTES],
}

impl Reply<'_> {
    /// Writes elements of a collection, each as a bulk string. The caller writes the header.
    pub fn items<'i>(&mut self, items: impl Iterator<Item = Item<'i>>) {
        if self.writes_each() {
            return items.for_each(|item| self.item(item));
        }
        let mut block = Block::new(self.out);
        items.for_each(|item| match item {
            Item::Text(prefix, rest) => block.put(prefix, rest),
            Item::Int(number) => block.put(&[], itoa::Buffer::new().format(number).as_bytes()),
        });
        block.flush();
    }

    /// Writes byte strings, each as a bulk string. The caller writes the header.
    pub fn bulks<'i>(&mut self, strings: impl Iterator<Item = &'i [u8]>) {
        if self.writes_each() {
            return strings.for_each(|bytes| self.bulk(bytes));
        }
        let mut block = Block::new(self.out);
        strings.for_each(|bytes| block.put(&[], bytes));
        block.flush();
    }
}

impl<'o, 'i> Block<'o, 'i> {
    fn new(out: &'o mut Vec<u8>) -> Block<'o, 'i> {
        Block { out, bytes: [0; BLOCK_BYTES], used: 0, prefix: &[], copy: [0; PREFIX_BYTES] }
    }

    /// Adds an element that begins with `prefix`.
    #[inline]
    fn put(&mut self, prefix: &'i [u8], rest: &[u8]) {
        // This check makes all bounds below known.
        if prefix.len() > PREFIX_BYTES || rest.len() > REST_BYTES {
            return self.put_long(prefix, rest);
        }
        if !std::ptr::eq(prefix, self.prefix) {
            self.prefix = prefix;
            self.copy[..prefix.len()].copy_from_slice(prefix);
        }
        let start = match self.used {
            used @ ..=LAST_FRAME => used,
            _ => self.begin_anew(),
        };
        let Some(frame) = self.bytes.get_mut(start..).and_then(|room| room.first_chunk_mut::<FRAME_BYTES>()) else {
            return;
        };
        let len = prefix.len() + rest.len();
        frame[..8].copy_from_slice(&HEADERS[len]);
        let content = if len < 10 { 4 } else { 5 };
        frame[content..content + PREFIX_BYTES].copy_from_slice(&self.copy);
        place(frame, content + prefix.len(), rest);
        let end = content + len;
        frame[end..end + 2].copy_from_slice(b"\r\n");
        self.used = start + end + 2;
    }

    /// Appends the block to the output; returns where the next frame begins.
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

/// Copies a few bytes into a frame: up to twice as many as a word has, as two words, which may overlap.
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
        fn elements_written_in_a_row_have_the_bytes_of_each_written_alone(
            prefixes in prefixes(),
            rests in prop::collection::vec(
                (any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..130)),
                0..100,
            ),
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
