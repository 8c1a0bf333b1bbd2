//! An item: one element of a packed hash, set or list, for reading.
//!
//! The packed forms store what looks like an integer as a number, and the common prefix of all items only once, so an
//! item is not always one slice of memory: it is a number, or two slices to be read one after the other. An item
//! borrows and is cheap to copy; only [`Item::to_cow`] and [`Item::to_vec`] allocate.
//!
//! Invariant: a number and its decimal digits are the same item, whichever way they are stored.

use crate::value::number::parse_i64;
use std::borrow::Cow;

/// The bytes of one element.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// The decimal digits of a number.
    Int(i64),
    /// Two slices, one after the other; either may be empty.
    Text(&'a [u8], &'a [u8]),
}

impl<'a> Item<'a> {
    /// The item of these bytes: a number if they are exactly the decimal digits of one.
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Item<'a> {
        if Item::may_be_number(bytes)
            && let Some(number) = parse_i64(bytes)
        {
            return Item::Int(number);
        }
        Item::Text(bytes, &[])
    }

    /// Whether bytes begin like the digits of a number.
    #[inline]
    pub fn may_be_number(bytes: &[u8]) -> bool {
        matches!(bytes.first(), Some(b'-' | b'0'..=b'9'))
    }

    /// The length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match *self {
            Item::Int(number) => itoa::Buffer::new().format(number).len(),
            Item::Text(first, second) => first.len() + second.len(),
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The integer that the bytes are, by Redis's strict rule.
    pub fn as_int(&self) -> Option<i64> {
        match *self {
            Item::Int(number) => Some(number),
            Item::Text(first, []) => parse_i64(first),
            Item::Text([], second) => parse_i64(second),
            // No more bytes than the longest integer has.
            Item::Text(..) if self.len() <= 20 => parse_i64(&self.to_cow()),
            Item::Text(..) => None,
        }
    }

    /// Appends the bytes to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match *self {
            Item::Int(number) => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
            Item::Text(first, second) => {
                out.extend_from_slice(first);
                out.extend_from_slice(second);
            }
        }
    }

    /// The bytes in one piece, copied into `scratch` unless they already are in one piece.
    pub fn as_bytes<'b>(&self, scratch: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        match *self {
            Item::Text(bytes, []) | Item::Text([], bytes) => bytes,
            _ => {
                scratch.clear();
                self.append_to(scratch);
                scratch
            }
        }
    }

    /// The bytes in one piece, copied unless they already are in one piece.
    #[inline]
    pub fn to_cow(&self) -> Cow<'a, [u8]> {
        match *self {
            Item::Text(bytes, []) | Item::Text([], bytes) => Cow::Borrowed(bytes),
            _ => Cow::Owned(self.to_vec()),
        }
    }

    /// A copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        self.append_to(&mut bytes);
        bytes
    }
}

/// Items in a row that can be read more than once: any iterator over items, or a form that visits all of them in fewer
/// steps.
pub trait Sequence<'a>: IntoIterator<Item = Item<'a>> + Clone {
    /// Calls the visitor with each item, one after the other, until it is done.
    fn visit(self, visitor: &mut impl Visitor<'a>);

    /// An outline of the items before they are visited, if they may be alike.
    fn outline(&self) -> Option<Outline<'a>> {
        None
    }
}

/// The bytes that are copied of a short text, with what is behind it.
pub const AHEAD: usize = 32;

/// An item in the form in which it can be copied fastest.
#[derive(Clone, Copy, Debug)]
pub enum Word<'a> {
    /// Any item.
    Item(Item<'a>),
    /// A text of a prefix and of the first `length` bytes, at most all, of `ahead`.
    Ahead {
        /// Its first bytes, often those of the words before and behind it, too.
        prefix: &'a [u8],
        /// The number of the others.
        length: usize,
        /// The others, and bytes that are behind them.
        ahead: &'a [u8; AHEAD],
    },
}

impl<'a> Word<'a> {
    /// The item.
    pub fn item(self) -> Item<'a> {
        match self {
            Word::Item(item) => item,
            Word::Ahead { prefix, length, ahead } => Item::Text(prefix, ahead.get(..length).unwrap_or_default()),
        }
    }
}

/// Items in a row that can be visited as words.
pub trait Words<'a>: ExactSizeIterator<Item = Item<'a>> + Clone {
    /// Visits all items.
    fn for_each_word(self, visit: impl FnMut(Word<'a>));
}

/// An outline of some items, before they are visited.
#[derive(Clone, Copy, Debug)]
pub struct Outline<'a> {
    /// Some of the items that are texts and not numbers: the first ones and the last. Their common prefix is mostly
    /// that of all texts.
    pub samples: [&'a [u8]; 3],
    /// A number of bytes that is not less than what the items take in a packed list.
    pub bytes: usize,
}

/// A text and the memory after it. Copying or comparing a fixed number of bytes from its start takes fewer steps than
/// exactly its own bytes.
#[derive(Clone, Copy, Debug)]
pub struct ShortText<'a> {
    /// The bytes of the text.
    pub length: usize,
    /// All bytes from the beginning of the text on, at least as many as it has.
    pub ahead: &'a [u8],
}

impl<'a> ShortText<'a> {
    /// The text by itself.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.ahead.get(..self.length).unwrap_or_default()
    }

    /// The text as an item.
    pub fn item(&self) -> Item<'a> {
        Item::of(self.bytes())
    }

    /// The first eight bytes from the beginning of the text on, low byte first, if there are so many.
    #[inline(always)]
    pub fn front(&self) -> Option<u64> {
        self.ahead.first_chunk().map(|front| u64::from_le_bytes(*front))
    }

    /// Whether it may be the digits of a number. If not, it is none. Eight bytes tell most ids from numbers that begin
    /// with the same digit.
    #[inline(always)]
    pub fn may_be_number(&self) -> bool {
        Item::may_be_number(self.ahead)
            && match self.front() {
                Some(front) if self.length >= 8 && front as u8 != b'-' => are_digits(front),
                _ => true,
            }
    }
}

/// Whether eight bytes are all digits.
#[inline(always)]
fn are_digits(eight: u64) -> bool {
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    const DIGITS: u64 = 0x3030_3030_3030_3030;
    // 0x3a to 0x3f, behind the digits, become 0x40 and more. A carry comes only from bytes that are no digits.
    eight & HIGH == DIGITS && eight.wrapping_add(0x0606_0606_0606_0606) & HIGH == DIGITS
}

/// A consumer of the items of a [`Sequence`].
pub trait Visitor<'a> {
    /// Visits an item.
    fn item(&mut self, item: Item<'a>);

    /// Visits some texts of less than 64 bytes, which may be the digits of numbers. They come together so that a
    /// visitor can keep what it counts in registers.
    fn short_texts(&mut self, texts: &mut impl Iterator<Item = ShortText<'a>>);

    /// Visits some integers, together for the same reason.
    fn integers(&mut self, numbers: &mut impl Iterator<Item = i64>);

    /// Whether it needs no more items.
    fn is_done(&self) -> bool {
        false
    }
}

impl<'a, I: Iterator<Item = Item<'a>> + Clone> Sequence<'a> for I {
    fn visit(self, visitor: &mut impl Visitor<'a>) {
        self.for_each(|item| visitor.item(item));
    }
}

impl PartialEq for Item<'_> {
    fn eq(&self, other: &Item<'_>) -> bool {
        match (*self, *other) {
            (Item::Text(a, b), Item::Text(c, d)) => {
                self.len() == other.len() && a.iter().chain(b).eq(c.iter().chain(d))
            }
            (Item::Int(number), other) | (other, Item::Int(number)) => other.as_int() == Some(number),
        }
    }
}

impl Eq for Item<'_> {}

impl PartialEq<[u8]> for Item<'_> {
    fn eq(&self, bytes: &[u8]) -> bool {
        match *self {
            Item::Int(number) => itoa::Buffer::new().format(number).as_bytes() == bytes,
            Item::Text(first, second) => {
                has_prefix(bytes, first)
                    && has_prefix(&bytes[first.len()..], second)
                    && bytes.len() == first.len() + second.len()
            }
        }
    }
}

/// Whether `bytes` begin with `prefix`, without a comparison of no bytes. An empty slice may have no address, and
/// glibc's `memcmp` reads there with wide instructions, of which the processor has to suppress the fault: that takes
/// 50 ns.
#[inline]
pub(crate) fn has_prefix(bytes: &[u8], prefix: &[u8]) -> bool {
    prefix.is_empty() || bytes.starts_with(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_and_its_digits_are_the_same_item() {
        assert_eq!(Item::of(b"-12"), Item::Text(b"-", b"12"));
        assert_ne!(Item::of(b"12"), Item::Text(b"0", b"12"));
        assert_eq!(Item::Text(b"1", b"2").as_int(), Some(12));
        assert!(matches!(Item::of(b"9223372036854775808"), Item::Text(..)));
        assert!(matches!(Item::of(b"+1"), Item::Text(..)));
    }

    #[test]
    fn an_item_equals_the_bytes_that_its_parts_are_together() {
        let parts: [&[u8]; 4] = [b"", b"a", b"ab", b"b"];
        for (first, second, bytes) in parts
            .iter()
            .flat_map(|first| parts.iter().map(move |second| (first, second)))
            .flat_map(|(first, second)| parts.iter().map(move |bytes| (*first, *second, *bytes)))
        {
            assert_eq!(Item::Text(first, second) == *bytes, [first, second].concat() == bytes, "{first:?} {second:?}");
        }
    }

    #[test]
    fn eight_bytes_tell_a_text_from_a_number() {
        let may_be_number = |ahead: &[u8], length| ShortText { length, ahead }.may_be_number();
        for position in 1..8 {
            for other in [b'/', b':', b'?', b' ', b'p', 0xfa, 0xff] {
                let mut id = *b"012345678";
                id[position] = other;
                assert!(!may_be_number(&id, 8), "{id:?}");
                assert!(may_be_number(&id, position), "what is behind a text does not count: {id:?}");
            }
        }
        assert!(may_be_number(b"99999999", 8) && may_be_number(b"-1234567x", 8));
    }

    proptest! {
        #[test]
        fn every_reader_sees_the_same_bytes(bytes in "[-0-9a]{0,24}", cut: prop::sample::Index) {
            let bytes = bytes.as_bytes();
            let (first, second) = bytes.split_at(cut.index(bytes.len() + 1));
            for item in [Item::of(bytes), Item::Text(first, second)] {
                prop_assert_eq!(item.len(), bytes.len());
                prop_assert_eq!(&item.to_cow()[..], bytes);
                let mut scratch = vec![7; 3];
                prop_assert_eq!(item.as_bytes(&mut scratch), bytes);
                prop_assert_eq!(item.as_int(), parse_i64(bytes));
                let text = ShortText { length: bytes.len(), ahead: bytes };
                prop_assert!(item.as_int().is_none() || text.may_be_number());
                prop_assert_eq!(item, Item::of(bytes));
                prop_assert!(item == *bytes);
            }
        }
    }
}
