//! Building a block again from the entries of a listpack that Redis wrote.
//!
//! Invariant: up to `end`, the bytes are those of the block; behind it they are room for more. So most of what is
//! written is one store of a fixed size, and the vector's length does not change on the way.

use super::super::coding::{AHEAD, TEXT, folded, put_item, put_number};
use super::{Block, DELETED, Id, OWN_FIELDS};
use crate::value::item::Item;

/// The room that is allocated in addition to the bytes of the listpack. Few entries take more here than there.
const SPARE: usize = 64;

/// A block that is being built again, entry by entry.
#[derive(Debug)]
pub struct Rebuilding {
    block: Block,
    end: usize,
}

impl Rebuilding {
    /// A block for the entries of a listpack of that many bytes, with these fields.
    pub fn new<'a>(first: Id, fields: impl ExactSizeIterator<Item = &'a [u8]> + Clone, listpack: usize) -> Rebuilding {
        let mut block = Block::new(first, fields);
        let end = block.bytes.len();
        block.bytes.reserve_exact(listpack + SPARE);
        block.bytes.resize(block.bytes.capacity(), 0);
        Rebuilding { block, end }
    }

    /// Begins to append an entry, deleted or not. If it has fields of its own, as many as `own_fields`, each comes
    /// before its value; otherwise there are only the values.
    #[inline(always)]
    pub fn begin(&mut self, id: Id, is_deleted: bool, own_fields: Option<usize>) -> Adding<'_> {
        let Rebuilding { block, end } = self;
        *(if is_deleted { &mut block.deleted } else { &mut block.live }) += 1;
        block.last_at = *end as u32;
        let bits = if is_deleted { DELETED } else { 0 } | if own_fields.is_some() { OWN_FIELDS } else { 0 };
        let (head, numbers) = block.head(id, bits);
        block.last = id;
        let mut adding = Adding { bytes: &mut block.bytes, at: *end + 1, end: *end, block_end: end };
        adding.put([0, head]);
        numbers.into_iter().flatten().for_each(|number| adding.number(number));
        if let Some(fields) = own_fields {
            adding.number(fields as u64);
        }
        adding
    }

    /// The block of all entries that have been added, and of a listpack of that many bytes; `None` unless it has that
    /// many live and deleted ones.
    pub fn finish(mut self, live: usize, deleted: usize, listpack: usize) -> Option<Block> {
        self.block.bytes.truncate(self.end);
        self.block.seal_again(listpack);
        (live > 0 && (live, deleted) == (self.block.live(), self.block.deleted())).then_some(self.block)
    }
}

/// An entry whose words are being added to its block.
#[derive(Debug)]
#[must_use = "an entry must be ended"]
pub struct Adding<'b> {
    bytes: &'b mut Vec<u8>,
    /// The offset of the content.
    at: usize,
    end: usize,
    block_end: &'b mut usize,
}

impl Adding<'_> {
    /// Appends a field or value.
    #[inline(always)]
    pub fn word(&mut self, item: Item<'_>) {
        match item {
            Item::Int(number) => {
                let (width, [a, b, c, d, e, f, g, h]) = folded(number);
                self.put([width, a, b, c, d, e, f, g, h]);
                self.end -= 8 - usize::from(width);
            }
            Item::Text(..) => self.end = put_long(self.bytes, self.end, item),
        }
    }

    /// Appends the first `length` of some bytes, which are not the digits of a number.
    #[inline(always)]
    pub fn text_ahead(&mut self, length: usize, ahead: &[u8; AHEAD]) {
        let length = length.min(AHEAD);
        self.put([TEXT as u8 + length as u8]);
        self.put(*ahead);
        self.end -= AHEAD - length;
    }

    /// Writes the length of the entry into the byte before its content, and into more bytes if it needs them.
    #[inline(always)]
    pub fn end(self) {
        let length = self.end - self.at;
        *self.block_end = match u8::try_from(length) {
            Ok(short @ ..=0x7f) => {
                self.bytes[self.at - 1] = short;
                self.end
            }
            _ => put_long_length(self.bytes, self.at, self.end),
        };
    }

    #[inline(always)]
    fn number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.put([number as u8 | 0x80]);
            number >>= 7;
        }
        self.put([number as u8]);
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        if self.bytes.len() - self.end < N {
            grow(self.bytes);
        }
        if let Some(target) = self.bytes[self.end..].first_chunk_mut() {
            *target = bytes;
        }
        self.end += N;
    }
}

#[cold]
fn grow(bytes: &mut Vec<u8>) {
    bytes.resize(2 * bytes.len() + SPARE, 0);
}

/// Writes an item from `end` on; returns where it ends.
#[inline(never)]
fn put_long(bytes: &mut Vec<u8>, end: usize, item: Item<'_>) -> usize {
    let room = bytes.len();
    bytes.truncate(end);
    put_item(bytes, item);
    let end = bytes.len();
    bytes.resize(room.max(end + SPARE), 0);
    end
}

/// Writes a length of several bytes before the content of an entry; returns where the content ends then.
#[inline(never)]
fn put_long_length(bytes: &mut Vec<u8>, at: usize, end: usize) -> usize {
    let mut length = Vec::new();
    put_number(&mut length, (end - at) as u64);
    let more = length.len() - 1;
    bytes.truncate(end);
    bytes.splice(at - 1..at, length);
    bytes.resize(end + more + SPARE, 0);
    end + more
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Adds a word as a loader does: a short text from a place with bytes behind it, anything else as an item.
    fn add(adding: &mut Adding<'_>, word: &[u8]) {
        match (Item::of(word), word.len()) {
            (Item::Text(..), length @ ..=AHEAD) => {
                let mut ahead = [7; AHEAD];
                ahead[..length].copy_from_slice(word);
                adding.text_ahead(length, &ahead);
            }
            (item, _) => adding.word(item),
        }
    }

    proptest! {
        #[test]
        fn a_block_that_is_built_again_is_the_block_whatever_room_it_had(
            entries in prop::collection::vec(
                ((0..3_u8, any::<u64>()), any::<bool>(), prop_oneof!["[a-z]{0,40}", "-?[1-9][0-9]{0,17}", "[x-z]{100,300}"]),
                1..20,
            ),
            room in 0..500_usize,
        ) {
            let (first, fields) = (Id::new(5, 3), [&b"one"[..], b"two"]);
            let mut block = Block::new(first, fields.into_iter());
            let mut again = Rebuilding::new(first, fields.into_iter(), room);
            let mut id = first;
            for (at, ((shift, more), is_own, word)) in entries.iter().enumerate() {
                if at > 0 {
                    id = Id::new(id.ms + (*more >> 20 >> (20 * shift)), id.seq + 1 + (*more >> (60 - 20 * shift)));
                }
                let names = if *is_own { [&b"two"[..], b"one"] } else { fields };
                block.push(id, [names[0], word.as_bytes(), names[1], b"7"].into_iter());
                let mut adding = again.begin(id, false, is_own.then_some(2));
                for (name, value) in names.into_iter().zip([word.as_bytes(), b"7"]) {
                    if *is_own {
                        add(&mut adding, name);
                    }
                    add(&mut adding, value);
                }
                adding.end();
            }
            prop_assert!(again.block.bytes.len() >= again.end);
            let again = again.finish(entries.len(), 0, block.listpack_bytes()).expect("the counts are right");
            again.check();
            prop_assert_eq!((&again.bytes, again.last_at, again.spent), (&block.bytes, block.last_at, block.spent));
        }
    }
}
