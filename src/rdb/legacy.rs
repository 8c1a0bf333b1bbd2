//! Forms of small collections that earlier versions of Redis wrote: read, never written.
//!
//! ```text
//! ziplist   bytes in all, 4 | place of the last element, 4 | elements, 2 | element | ... | 0xff       low bytes first
//!   element   bytes of the one before, 1, or 254 and 4 | code | content
//!     00llllll, 01llllll llllllll, 10...... and 4 bytes      a text of l bytes, high byte first
//!     11000000, 11010000, 11100000, 11110000, 11111110       an integer of 2, 4, 8, 3, 1 bytes, low byte first
//!     1111nnnn                                               n - 1, from 0 to 12
//!
//! zipmap    fields, 1, or 254 if they are more | field | value | field | ... | 0xff
//!   field     its length, 1, or 254 and 4 | content
//!   value     its length, likewise | unused bytes, 1 | content | those
//! ```
//!
//! Invariant: a checked ziplist can be read to its end.
//!
//! Source: the formats as Redis's documentation of RDB files describes them; payloads written by hand, checked by
//! Redis 8.0.

use super::listpack::signed;
use crate::value::Item;

const END: u8 = 0xff;
/// The length byte that means: the length follows in four bytes.
const LONG: u8 = 254;
/// The number of elements that means: not counted.
const UNCOUNTED: u16 = u16::MAX;
const ZIPLIST_HEAD: usize = 4 + 4 + 2;

/// A ziplist that has been checked.
#[derive(Clone, Debug)]
pub(super) struct Ziplist<'a> {
    left: &'a [u8],
}

impl<'a> Ziplist<'a> {
    /// Checks bytes, from the first to the last, as a ziplist; `None` if anything in them is wrong.
    pub(super) fn check(bytes: &'a [u8]) -> Option<Ziplist<'a>> {
        let (total, rest) = bytes.split_first_chunk()?;
        let (last, rest) = rest.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let (&END, elements) = rest.split_last()? else { return None };
        if u32::from_le_bytes(*total) as usize != bytes.len() {
            return None;
        }
        let (mut left, mut counted, mut before, mut place) = (elements, 0, 0, ZIPLIST_HEAD);
        while !left.is_empty() {
            let (stored, _, behind) = element(left)?;
            if stored != before {
                return None;
            }
            place = ZIPLIST_HEAD + elements.len() - left.len();
            before = left.len() - behind.len();
            left = behind;
            counted += 1;
        }
        let (count, last) = (u16::from_le_bytes(*count), u32::from_le_bytes(*last) as usize);
        let is_counted = count == UNCOUNTED || usize::from(count) == counted;
        let is_last = if counted == 0 { last < bytes.len() } else { last == place };
        (is_counted && is_last).then_some(Ziplist { left: elements })
    }
}

impl<'a> Iterator for Ziplist<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        let (_, item, behind) = element(self.left)?;
        self.left = behind;
        Some(item)
    }
}

/// The length of the previous element that the first element states, the element itself, and the rest behind it.
fn element(bytes: &[u8]) -> Option<(usize, Item<'_>, &[u8])> {
    let (before, rest) = length(bytes)?;
    let (&code, rest) = rest.split_first()?;
    let (content, behind) = match code {
        0..0x40 => rest.split_at_checked(code.into())?,
        0x40..0x80 => {
            let (&low, rest) = rest.split_first()?;
            rest.split_at_checked(usize::from(code & 0x3f) << 8 | usize::from(low))?
        }
        0x80..0xc0 => {
            let (length, rest) = rest.split_first_chunk()?;
            rest.split_at_checked(u32::from_be_bytes(*length) as usize)?
        }
        0xf1..=0xfd => return Some((before, Item::Int(i64::from(code & 0x0f) - 1), rest)),
        _ => {
            let width = match code {
                0xc0 => 2,
                0xd0 => 4,
                0xe0 => 8,
                0xf0 => 3,
                0xfe => 1,
                _ => return None,
            };
            let (number, behind) = rest.split_at_checked(width)?;
            return Some((before, Item::Int(signed(number)), behind));
        }
    };
    Some((before, Item::of(content), behind))
}

/// A length in one byte, or in five if one is too short for it, and the rest behind it.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes.split_first()? {
        (&LONG, rest) => {
            let (length, rest) = rest.split_first_chunk()?;
            let length = u32::from_le_bytes(*length);
            (length >= LONG.into()).then_some((length as usize, rest))
        }
        (&END, _) => None,
        (&length, rest) => Some((length.into(), rest)),
    }
}

/// The fields and values of a zipmap, which is not empty; `None` if anything in it is wrong.
pub(super) fn zipmap(bytes: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let (&count, rest) = bytes.split_first()?;
    let (&END, mut left) = rest.split_last()? else { return None };
    let mut pairs = Vec::new();
    while !left.is_empty() {
        let (field_length, rest) = length(left)?;
        let (field, rest) = rest.split_at_checked(field_length)?;
        let (value_length, rest) = length(rest)?;
        let (&unused, rest) = rest.split_first()?;
        let (value, rest) = rest.split_at_checked(value_length)?;
        left = rest.get(unused.into()..)?;
        pairs.push((field, value));
    }
    (!pairs.is_empty() && (count >= LONG || usize::from(count) == pairs.len())).then_some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ziplist of encoded elements.
    fn ziplist(elements: &[&[u8]]) -> Vec<u8> {
        let (mut body, mut before, mut last) = (Vec::new(), 0, ZIPLIST_HEAD);
        for element in elements {
            last = ZIPLIST_HEAD + body.len();
            body.push(before as u8);
            body.extend_from_slice(element);
            before = 1 + element.len();
        }
        let mut bytes = (ZIPLIST_HEAD as u32 + body.len() as u32 + 1).to_le_bytes().to_vec();
        bytes.extend_from_slice(&(last as u32).to_le_bytes());
        bytes.extend_from_slice(&(elements.len() as u16).to_le_bytes());
        [bytes, body, vec![END]].concat()
    }

    fn read(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
        Ziplist::check(bytes).map(|list| list.map(|item| item.to_vec()).collect())
    }

    #[test]
    fn every_encoding_of_a_ziplist_element_is_read() {
        let bytes = ziplist(&[
            b"\x03abc",
            b"\x40\x02de",
            b"\x80\0\0\0\x01f",
            b"\xc0\xff\xff",
            b"\xd0\0\0\x01\0",
            b"\xe0\0\0\0\0\0\0\0\x80",
            b"\xf0\0\0\x80",
            b"\xfe\x80",
            b"\xf1",
            b"\xfd",
        ]);
        let expected: [&[u8]; 10] =
            [b"abc", b"de", b"f", b"-1", b"65536", b"-9223372036854775808", b"-8388608", b"-128", b"0", b"12"];
        assert_eq!(read(&bytes), Some(expected.map(<[u8]>::to_vec).to_vec()));
    }

    #[test]
    fn a_ziplist_whose_lengths_do_not_agree_is_refused() {
        let whole = ziplist(&[b"\x03abc", b"\xf1"]);
        for place in [0, 4, 8, 10, 11, 15, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            assert_eq!(read(&damaged), None, "byte {place}");
        }
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end]), None);
        }
        assert_eq!(read(&ziplist(&[b"\xff"])), None);
        assert_eq!(read(&ziplist(&[])), Some(vec![]));
        assert_eq!(read(b"\x0b\0\0\0\x0b\0\0\0\0\0\xff"), None);
    }

    #[test]
    fn a_zipmap_is_read_with_its_unused_bytes() {
        let long = [b'k'; 254];
        let bytes = [&b"\x02\x01a\x02\x00bc\xfe\xfe\0\0\0"[..], &long, b"\x01\x02v??\xff"].concat();
        assert_eq!(zipmap(&bytes), Some(vec![(&b"a"[..], &b"bc"[..]), (&long, b"v")]));
        let mut uncounted = bytes;
        uncounted[0] = 254;
        assert!(zipmap(&uncounted).is_some());
    }

    #[test]
    fn a_damaged_zipmap_is_refused() {
        let whole = b"\x01\x01a\x02\x00bc\xff";
        for end in 0..whole.len() {
            assert_eq!(zipmap(&whole[..end]), None);
        }
        let long_form_of_a_short_length = b"\x01\xfe\x03\0\0\0key\x01\x00v\xff";
        for damaged in [
            &b"\x02\x01a\x02\x00bc\xff"[..],
            b"\x01\x01a\x02\x05bc\xff",
            b"\x01\x01a\xff",
            b"\0\xff",
            long_form_of_a_short_length,
        ] {
            assert_eq!(zipmap(damaged), None);
        }
    }
}
