//! The listpack: texts and integers one after the other, the form of small collections in a payload.
//!
//! ```text
//!   bytes in all, 4 | elements, 2 | element | element | ... | 0xff        numbers have their low byte first
//!   element:  code | content | the length of both, so that it can be read backwards
//!
//!   0nnnnnnn             an integer from 0 to 127         11110001 and 2 bytes, 2: 3, 3: 4, 4: 8: an integer
//!   110nnnnn nnnnnnnn    13 bits of one with a sign       10llllll              a text of l bytes
//!                                                         1110llll llllllll     the same, up to 4095
//!                                                         11110000 and 4 bytes: the same
//! ```
//!
//! The number of elements is 65535 when there are that many or more. The length behind an element is in groups of seven
//! bits, the lowest group last; all groups but the first have their high bit set.
//!
//! Invariant: a listpack that [`Listpack::check`] accepted can be read to its end. Costs: one pass to check, one to
//! read.
//!
//! Source: the format's specification by its author, Salvatore Sanfilippo.

use crate::value::{Item, listpack};

const HEAD: usize = 6;
const END: u8 = 0xff;
/// The bytes that are allocated for a listpack at first.
const CAPACITY: usize = 512;
/// The number of elements that means: not counted.
const UNCOUNTED: u16 = u16::MAX;

/// A listpack that is being built.
#[derive(Debug)]
pub(super) struct Builder {
    bytes: Vec<u8>,
    count: usize,
}

impl Builder {
    pub(super) fn new() -> Builder {
        let mut bytes = Vec::with_capacity(CAPACITY);
        bytes.extend_from_slice(&[0; HEAD]);
        Builder { bytes, count: 0 }
    }

    /// Builds a listpack of some elements.
    pub(super) fn of<'a>(items: impl IntoIterator<Item = Item<'a>>) -> Vec<u8> {
        let mut builder = Builder::new();
        items.into_iter().for_each(|item| builder.push(item));
        builder.finish()
    }

    #[inline]
    pub(super) fn push(&mut self, item: Item<'_>) {
        let start = self.bytes.len();
        match item {
            Item::Int(number) => self.integer(number),
            Item::Text(first, second) => self.text(first, second),
        }
        self.backlen(self.bytes.len() - start);
        self.count += 1;
    }

    fn integer(&mut self, number: i64) {
        let bytes = number.to_le_bytes();
        match number {
            0..=127 => self.bytes.push(number as u8),
            -4096..=4095 => self.bytes.extend_from_slice(&(0xc000 | number as u16 & 0x1fff).to_be_bytes()),
            -0x8000..=0x7fff => self.wide(0xf1, &bytes[..2]),
            -0x80_0000..=0x7f_ffff => self.wide(0xf2, &bytes[..3]),
            -0x8000_0000..=0x7fff_ffff => self.wide(0xf3, &bytes[..4]),
            _ => self.wide(0xf4, &bytes),
        }
    }

    fn wide(&mut self, code: u8, content: &[u8]) {
        self.bytes.push(code);
        self.bytes.extend_from_slice(content);
    }

    fn text(&mut self, first: &[u8], second: &[u8]) {
        let length = first.len() + second.len();
        match length {
            0..64 => self.bytes.push(0x80 | length as u8),
            64..4096 => self.bytes.extend_from_slice(&(0xe000 | length as u16).to_be_bytes()),
            _ => self.wide(0xf0, &(length as u32).to_le_bytes()),
        }
        self.bytes.extend_from_slice(first);
        self.bytes.extend_from_slice(second);
    }

    #[inline]
    fn backlen(&mut self, length: usize) {
        if length < 128 {
            return self.bytes.push(length as u8);
        }
        let (groups, count) = backlen(length);
        self.bytes.extend_from_slice(&groups[groups.len() - count..]);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(END);
        let total = (self.bytes.len() as u32).to_le_bytes();
        let count = u16::try_from(self.count).unwrap_or(UNCOUNTED).to_le_bytes();
        self.bytes[..4].copy_from_slice(&total);
        self.bytes[4..HEAD].copy_from_slice(&count);
        self.bytes
    }
}

/// A length in groups of seven bits at the end of five bytes, and the number of groups.
fn backlen(length: usize) -> ([u8; 5], usize) {
    let count = listpack::backlen(length);
    let group = |place: usize| (length >> (7 * (4 - place))) as u8 & 0x7f;
    let mut groups = [0, 1, 2, 3, 4].map(group);
    groups[6 - count..].iter_mut().for_each(|group| *group |= 0x80);
    (groups, count)
}

/// A listpack that has been checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listpack<'a> {
    elements: &'a [u8],
    count: usize,
}

impl<'a> Listpack<'a> {
    /// Checks bytes, from the first to the last, as a listpack; `None` if anything in them is wrong.
    pub(super) fn check(bytes: &'a [u8]) -> Option<Listpack<'a>> {
        let (total, rest) = bytes.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let (&END, elements) = rest.split_last()? else { return None };
        if u32::from_le_bytes(*total) as usize != bytes.len() {
            return None;
        }
        let (mut left, mut counted) = (elements, 0_usize);
        while let Some(bytes) = size(left) {
            left = left.get(bytes..)?;
            counted = counted.wrapping_add(1);
        }
        if !left.is_empty() {
            return None;
        }
        let count = u16::from_le_bytes(*count);
        (count == UNCOUNTED || usize::from(count) == counted).then_some(Listpack { elements, count: counted })
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn iter(&self) -> Items<'a> {
        Items { left: self.elements }
    }
}

/// Iterates over the elements of a listpack.
#[derive(Clone, Debug)]
pub(super) struct Items<'a> {
    left: &'a [u8],
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        let left = self.left;
        // Short texts and small numbers, of which most listpacks consist, take a byte for each of their lengths.
        match *left.first()? {
            code @ 0..0x80 => {
                self.left = left.get(2..)?;
                Some(Item::Int(code.into()))
            }
            code @ 0x80..0xc0 => {
                let (element, behind) = left.split_at_checked(usize::from(code & 0x3f) + 1)?;
                self.left = behind.get(1..)?;
                Some(item_of(&element[1..]))
            }
            _ => self.next_of_any(),
        }
    }
}

impl<'a> Items<'a> {
    #[inline(never)]
    fn next_of_any(&mut self) -> Option<Item<'a>> {
        let (item, left) = next(self.left)?;
        self.left = left;
        Some(item)
    }
}

/// The item of a text, which is hardly ever a number: those are written as such.
#[inline]
fn item_of(text: &[u8]) -> Item<'_> {
    match text.first() {
        Some(b'-' | b'0'..=b'9') => Item::of(text),
        _ => Item::Text(text, &[]),
    }
}

/// The bytes that an element takes by its code, without its length behind it; 0 where that follows from more bytes.
const SIZES: [u8; 256] = {
    let mut sizes = [0; 256];
    let mut code = 0;
    while code < 256 {
        sizes[code] = match code {
            0..0x80 => 1,
            0x80..0xc0 => 1 + (code as u8 & 0x3f),
            0xc0..0xe0 => 2,
            0xf1..=0xf3 => 2 + (code as u8 & 0x0f),
            0xf4 => 9,
            _ => 0,
        };
        code += 1;
    }
    sizes
};

/// The bytes of the first element, with its length behind it; `None` if it is damaged, or there is none.
#[inline]
fn size(bytes: &[u8]) -> Option<usize> {
    match SIZES[usize::from(*bytes.first()?)] {
        0 => long_size(bytes),
        size => (bytes.get(usize::from(size)) == Some(&size)).then_some(usize::from(size) + 1),
    }
}

/// The bytes of the first element if it is a text of more than 63 bytes or damaged.
fn long_size(bytes: &[u8]) -> Option<usize> {
    let size = match *bytes {
        [code @ 0xe0..0xf0, low, ..] => 2 + (usize::from(code & 0x0f) << 8 | usize::from(low)),
        [0xf0, a, b, c, d, ..] => 5 + u32::from_le_bytes([a, b, c, d]) as usize,
        _ => return None,
    };
    let (groups, count) = backlen(size);
    bytes.get(size..)?.starts_with(&groups[groups.len() - count..]).then_some(size + count)
}

/// The first element, and the rest behind it, where that is undamaged.
fn next(bytes: &[u8]) -> Option<(Item<'_>, &[u8])> {
    let (item, behind) = element(bytes)?;
    let count = listpack::backlen(bytes.len() - behind.len());
    Some((item, behind.get(count..)?))
}

/// The first element, and the rest behind its content.
fn element(bytes: &[u8]) -> Option<(Item<'_>, &[u8])> {
    let (&code, rest) = bytes.split_first()?;
    match code {
        0..0x80 => Some((Item::Int(code.into()), rest)),
        0x80..0xc0 => text(rest, (code & 0x3f).into()),
        0xc0..0xe0 => {
            let (&low, rest) = rest.split_first()?;
            // The sign is the highest of thirteen bits.
            let number = i16::from_be_bytes([code << 3, 0]) >> 3 | i16::from(low);
            Some((Item::Int(number.into()), rest))
        }
        0xe0..0xf0 => {
            let (&low, rest) = rest.split_first()?;
            text(rest, usize::from(code & 0x0f) << 8 | usize::from(low))
        }
        0xf0 => {
            let (length, rest) = rest.split_first_chunk()?;
            text(rest, u32::from_le_bytes(*length) as usize)
        }
        0xf1 => {
            let (number, rest) = rest.split_first_chunk()?;
            Some((Item::Int(i16::from_le_bytes(*number).into()), rest))
        }
        0xf2 => {
            let (&[low, middle, high], rest) = rest.split_first_chunk()?;
            Some((Item::Int((i32::from_le_bytes([0, low, middle, high]) >> 8).into()), rest))
        }
        0xf3 => {
            let (number, rest) = rest.split_first_chunk()?;
            Some((Item::Int(i32::from_le_bytes(*number).into()), rest))
        }
        0xf4 => {
            let (number, rest) = rest.split_first_chunk()?;
            Some((Item::Int(i64::from_le_bytes(*number)), rest))
        }
        0xf5.. => None,
    }
}

fn text(bytes: &[u8], length: usize) -> Option<(Item<'_>, &[u8])> {
    let (text, rest) = bytes.split_at_checked(length)?;
    Some((item_of(text), rest))
}

/// The signed integer in up to eight bytes, low byte first.
pub(super) fn signed(bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[8 - bytes.len()..].copy_from_slice(bytes);
    i64::from_le_bytes(wide) >> (64 - 8 * bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: &[i64] = &[
        0,
        1,
        127,
        128,
        -1,
        -4096,
        -4097,
        4095,
        4096,
        32_767,
        -32_768,
        32_768,
        -32_769,
        8_388_607,
        -8_388_608,
        8_388_608,
        2_147_483_647,
        -2_147_483_648,
        2_147_483_648,
        i64::MAX,
        i64::MIN,
    ];

    fn sample() -> Vec<u8> {
        let texts: Vec<Vec<u8>> =
            [0, 1, 63, 64, 125, 126, 4095, 4096, 16_377, 16_378, 70_000].map(|length| vec![b'x'; length]).to_vec();
        let numbers = NUMBERS.iter().map(|&number| Item::Int(number));
        Builder::of(texts.iter().map(|text| Item::Text(text, &[])).chain(numbers))
    }

    #[test]
    fn elements_read_back_as_they_were_written() {
        let bytes = sample();
        let listpack = Listpack::check(&bytes).expect("it was just made");
        assert_eq!(listpack.len(), 11 + NUMBERS.len());
        let lengths: Vec<usize> = listpack.iter().take(11).map(|item| item.len()).collect();
        assert_eq!(lengths, [0, 1, 63, 64, 125, 126, 4095, 4096, 16_377, 16_378, 70_000]);
        let numbers: Vec<Option<i64>> = listpack.iter().skip(11).map(|item| item.as_int()).collect();
        assert_eq!(numbers, NUMBERS.iter().map(|&number| Some(number)).collect::<Vec<_>>());
    }

    #[test]
    fn elements_have_the_bytes_of_the_specification() {
        let bytes = Builder::of([Item::Int(5), Item::Int(-1), Item::Int(4096), Item::Text(b"a", b"b")]);
        assert_eq!(bytes, b"\x14\0\0\0\x04\0\x05\x01\xdf\xff\x02\xf1\0\x10\x03\x82ab\x03\xff");
    }

    #[test]
    fn a_listpack_of_65535_elements_or_more_has_no_count_in_its_header() {
        for (count, head) in [(65_534, [0xfe, 0xff]), (65_535, [0xff, 0xff]), (65_536, [0xff, 0xff])] {
            let bytes = Builder::of((0..count).map(|_| Item::Int(7)));
            assert_eq!(bytes[4..6], head);
            assert_eq!(Listpack::check(&bytes).map(|listpack| listpack.len()), Some(count));
        }
    }

    #[test]
    fn every_change_of_a_byte_is_refused_or_changes_an_element() {
        let bytes = Builder::of([Item::Text(b"abc", b""), Item::Int(300), Item::Text(&[b'y'; 70], b"")]);
        let before: Vec<Vec<u8>> = Items { left: &bytes[HEAD..bytes.len() - 1] }.map(|item| item.to_vec()).collect();
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[place] ^= 1 << bit;
                if let Some(listpack) = Listpack::check(&damaged) {
                    let after: Vec<Vec<u8>> = listpack.iter().map(|item| item.to_vec()).collect();
                    assert_eq!(after.len(), before.len());
                    assert_ne!(after, before, "byte {place}, bit {bit}");
                }
            }
        }
    }

    #[test]
    fn a_listpack_that_is_cut_off_or_too_long_is_refused() {
        let bytes = sample();
        for end in (0..200).chain(bytes.len() - 200..bytes.len()) {
            assert!(Listpack::check(&bytes[..end]).is_none());
        }
        assert!(Listpack::check(&[bytes.as_slice(), b"\xff"].concat()).is_none());
        assert!(Listpack::check(b"\x07\0\0\0\0\0\xff").is_some_and(|listpack| listpack.len() == 0));
    }

    #[test]
    fn texts_of_every_length_are_written_in_one_part_or_two() {
        let bytes: Vec<u8> = (1..=200).collect();
        for length in 0..bytes.len() {
            for cut in [0, length / 3, length] {
                let (first, second) = bytes[..length].split_at(cut);
                let written = Builder::of([Item::Text(first, second), Item::Int(-9)]);
                let items: Vec<_> = Listpack::check(&written).expect("it is whole").iter().collect();
                assert_eq!(items, [Item::Text(&bytes[..length], &[]), Item::Int(-9)]);
            }
        }
    }
}
