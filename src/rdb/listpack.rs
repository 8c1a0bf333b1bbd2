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

mod ahead;
#[cfg(test)]
mod tests;

use crate::value::item::{AHEAD, Outline, Sequence, ShortText, Visitor, Word, Words};
use crate::value::{Item, copy_short, listpack};
use ahead::Ahead;
use std::cell::Cell;

const HEAD: usize = 6;
const END: u8 = 0xff;
/// The fewest bytes of an element: a code, and the length.
const LEAST_BYTES: usize = 2;
/// The bytes that are allocated for a listpack at first.
const CAPACITY: usize = 512;
/// The most memory that is kept from one listpack to the next.
const MAX_KEPT: usize = 1 << 16;
/// The code of a text of [`AHEAD`] bytes.
const LAST_AHEAD: u8 = 0x80 | AHEAD as u8;
/// The number of elements that means: not counted.
const UNCOUNTED: u16 = u16::MAX;

/// A listpack that is being built, and the memory for the next one.
///
/// Invariant: from `end` on, `bytes` are of no meaning: they are room.
#[derive(Debug)]
pub(super) struct Builder {
    bytes: Vec<u8>,
    end: usize,
    count: usize,
}

impl Builder {
    pub(super) fn new() -> Builder {
        Builder { bytes: vec![0; CAPACITY], end: HEAD, count: 0 }
    }

    /// Builds a listpack of some elements.
    pub(super) fn of<'a>(items: impl IntoIterator<Item = Item<'a>>) -> Builder {
        let mut builder = Builder::new();
        builder.extend(items);
        builder
    }

    /// Whether its memory is little enough to be kept for the next listpack.
    pub(super) fn is_small(&self) -> bool {
        self.bytes.len() <= MAX_KEPT
    }

    /// Appends some elements.
    pub(super) fn extend<'a>(&mut self, items: impl IntoIterator<Item = Item<'a>>) {
        items.into_iter().for_each(|item| self.push(item));
    }

    #[inline]
    pub(super) fn push(&mut self, item: Item<'_>) {
        match item {
            Item::Int(number) => self.push_integer(number),
            Item::Text(first, second) => self.push_text(first, second),
        }
    }

    /// Appends three integers, which are small more often than not.
    #[inline(always)]
    pub(super) fn push_three(&mut self, numbers: [i64; 3]) {
        if let [one @ 0..=127, two @ 0..=127, three @ 0..=127] = numbers {
            self.count = self.count.wrapping_add(3);
            return self.put([one as u8, 1, two as u8, 1, three as u8, 1]);
        }
        numbers.into_iter().for_each(|number| self.push_integer(number));
    }

    #[inline(always)]
    pub(super) fn push_integer(&mut self, number: i64) {
        match number {
            0..=127 => {
                self.count = self.count.wrapping_add(1);
                self.put([number as u8, 1]);
            }
            _ => self.push_large_integer(number),
        }
    }

    fn push_large_integer(&mut self, number: i64) {
        self.count += 1;
        let [a, b, c, d, e, f, g, h] = number.to_le_bytes();
        match number {
            -4096..=4095 => self.put([0xc0 | b & 0x1f, a, 2]),
            -0x8000..=0x7fff => self.put([0xf1, a, b, 3]),
            -0x80_0000..=0x7f_ffff => self.put([0xf2, a, b, c, 4]),
            -0x8000_0000..=0x7fff_ffff => self.put([0xf3, a, b, c, d, 5]),
            _ => self.put([0xf4, a, b, c, d, e, f, g, h, 9]),
        }
    }

    #[inline]
    pub(super) fn push_text(&mut self, first: &[u8], second: &[u8]) {
        self.count += 1;
        let length = first.len() + second.len();
        if length >= 64 {
            return self.put_long(first, second);
        }
        let [code, content @ .., behind] = self.room(length + 2) else { return };
        *code = 0x80 | length as u8;
        *behind = length as u8 + 1;
        let (start, end) = content.split_at_mut(first.len());
        copy_short(start, first);
        copy_short(end, second);
        self.end += length + 2;
    }

    /// Appends items that can be visited as words. The end and the number of elements stay in registers.
    pub(super) fn extend_by_words<'a>(&mut self, items: impl Words<'a>) {
        let (mut end, mut texts) = (self.end, 0_usize);
        items.for_each_word(|word| match put_ahead(self.bytes.get_mut(end..), word) {
            Some(bytes) => {
                end = end.wrapping_add(bytes);
                texts = texts.wrapping_add(1);
            }
            None => {
                self.end = end;
                self.push(word.item());
                end = self.end;
            }
        });
        self.end = end;
        self.count += texts;
    }

    #[inline(always)]
    pub(super) fn push_word(&mut self, word: Word<'_>) {
        match put_ahead(self.bytes.get_mut(self.end..), word) {
            Some(bytes) => {
                self.end = self.end.wrapping_add(bytes);
                self.count = self.count.wrapping_add(1);
            }
            None => self.push(word.item()),
        }
    }

    #[inline(never)]
    fn put_long(&mut self, first: &[u8], second: &[u8]) {
        let (start, length) = (self.end, first.len() + second.len());
        match length {
            ..4096 => self.put((0xe000 | length as u16).to_be_bytes()),
            _ => {
                let [a, b, c, d] = (length as u32).to_le_bytes();
                self.put([0xf0, a, b, c, d]);
            }
        }
        for part in [first, second] {
            self.room(part.len()).copy_from_slice(part);
            self.end += part.len();
        }
        let (groups, count) = backlen(self.end - start);
        self.room(count).copy_from_slice(&groups[groups.len() - count..]);
        self.end += count;
    }

    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(target) = self.room(N).first_chunk_mut() {
            *target = bytes;
        }
        self.end = self.end.wrapping_add(N);
    }

    /// The next bytes, which are to be written.
    #[inline]
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.bytes.len() - self.end < bytes {
            self.grow(bytes);
        }
        &mut self.bytes[self.end..][..bytes]
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        self.bytes.resize((self.end + more).max(2 * self.bytes.len()), 0);
    }

    /// The listpack, to which nothing was added since; what is added from now on begins another.
    pub(super) fn finish(&mut self) -> &[u8] {
        self.put([END]);
        let total = (self.end as u32).to_le_bytes();
        let count = u16::try_from(self.count).unwrap_or(UNCOUNTED).to_le_bytes();
        self.bytes[..4].copy_from_slice(&total);
        self.bytes[4..HEAD].copy_from_slice(&count);
        self.count = 0;
        let end = std::mem::replace(&mut self.end, HEAD);
        &self.bytes[..end]
    }
}

/// Writes a text that has bytes behind it, all of which are copied, in one instruction or two; returns the bytes of the
/// element. `None` if it is long, if the room is short, or if the word is another item.
#[inline(always)]
fn put_ahead(room: Option<&mut [u8]>, word: Word<'_>) -> Option<usize> {
    let Word::Ahead { prefix, length, ahead } = word else { return None };
    let (code, rest) = room?.split_first_mut()?;
    let (start, rest) = rest.split_at_mut_checked(prefix.len())?;
    let rest = rest.first_chunk_mut::<{ AHEAD + 1 }>()?;
    let in_all = prefix.len().wrapping_add(length);
    if in_all >= 64 {
        return None;
    }
    copy_short(start, prefix);
    let [target @ .., _] = rest;
    *target = *ahead;
    *rest.get_mut(length)? = in_all as u8 + 1;
    *code = 0x80 | in_all as u8;
    Some(in_all.wrapping_add(2))
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
    /// Checks the head of a listpack, for a caller that reads it only once: [`Items`] end before a damaged element, and
    /// [`Items::are_at_end`] tells whether there was any.
    pub(super) fn open(bytes: &'a [u8]) -> Option<Items<'a>> {
        match parts(bytes)? {
            (UNCOUNTED, _) => Listpack::check(bytes).map(|listpack| listpack.iter()),
            (count, left) => {
                let count = usize::from(count);
                // A caller may make room for as many elements as there are.
                (count <= left.len() / LEAST_BYTES).then_some(Items { left, count })
            }
        }
    }

    /// Checks bytes, from the first to the last, as a listpack; `None` if anything in them is wrong.
    pub(super) fn check(bytes: &'a [u8]) -> Option<Listpack<'a>> {
        let (count, elements) = parts(bytes)?;
        let (mut left, mut counted) = (elements, 0_usize);
        while let Some(bytes) = size(left) {
            left = left.get(bytes..)?;
            counted = counted.wrapping_add(1);
        }
        if !left.is_empty() {
            return None;
        }
        (count == UNCOUNTED || usize::from(count) == counted).then_some(Listpack { elements, count: counted })
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn iter(&self) -> Items<'a> {
        Items { left: self.elements, count: self.count }
    }
}

/// The number of elements that a listpack claims, and the bytes between its head and its end.
fn parts(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (total, rest) = bytes.split_first_chunk()?;
    let (count, rest) = rest.split_first_chunk()?;
    let (&END, elements) = rest.split_last()? else { return None };
    (u32::from_le_bytes(*total) as usize == bytes.len()).then_some((u16::from_le_bytes(*count), elements))
}

impl<'a> IntoIterator for Listpack<'a> {
    type Item = Item<'a>;
    type IntoIter = Items<'a>;

    fn into_iter(self) -> Items<'a> {
        self.iter()
    }
}

impl<'a> Sequence<'a> for Listpack<'a> {
    fn visit(self, visitor: &mut impl Visitor<'a>) {
        self.iter().visit_all(visitor);
    }
}

/// A listpack that is checked when it is visited: `is_whole` is set to whether nothing in it was wrong.
#[derive(Clone, Debug)]
pub(super) struct Unchecked<'a, 'c> {
    pub(super) items: Items<'a>,
    pub(super) is_whole: &'c Cell<bool>,
}

impl<'a> IntoIterator for Unchecked<'a, '_> {
    type Item = Item<'a>;
    type IntoIter = Items<'a>;

    fn into_iter(self) -> Items<'a> {
        self.items
    }
}

impl<'a> Sequence<'a> for Unchecked<'a, '_> {
    fn visit(self, visitor: &mut impl Visitor<'a>) {
        self.is_whole.set(self.items.visit_all(visitor));
    }

    fn outline(&self) -> Option<Outline<'a>> {
        let left = self.items.left;
        // Of a hash, all values may be integers.
        let last = last_short_text(left).or_else(|| last_short_text(split_last(left)?.0))?;
        let mut items = self.items.clone();
        let first = items.next_short_text()?;
        items.next_short_integer();
        let samples = [first, items.next_short_text().unwrap_or(first), last];
        let are_texts = samples.iter().all(|text| !ShortText { length: text.len(), ahead: text }.may_be_number());
        are_texts.then_some(Outline { samples, bytes: left.len() })
    }
}

/// The elements before the last one, and that one, if its length takes a byte.
fn split_last(elements: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&back, before) = elements.split_last()?;
    before.split_at_checked(before.len().checked_sub(back.into())?)
}

/// The last of some elements if it is a text of less than 64 bytes.
fn last_short_text(elements: &[u8]) -> Option<&[u8]> {
    let [code @ 0x80..0xc0, text @ ..] = split_last(elements)?.1 else { return None };
    text.get(..usize::from(code & 0x3f))
}

/// Iterates over the elements of a listpack, up to a damaged one if there is any.
#[derive(Clone, Debug)]
pub(super) struct Items<'a> {
    left: &'a [u8],
    /// The number of elements left.
    count: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Item<'a>> {
        // Short texts and small numbers, of which most listpacks consist, take a byte for each of their lengths.
        match *self.left {
            [code @ 0..0x80, 1, ref rest @ ..] => {
                self.step(rest)?;
                Some(Item::Int(code.into()))
            }
            [0x80..0xc0, ..] => self.next_short_text().map(Item::of),
            _ => {
                let (item, ahead) = self.ahead().split_any()?;
                self.skip_to(ahead, 1)?;
                Some(item)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for Items<'_> {}

impl<'a> Items<'a> {
    /// Visits all elements that are left; returns whether that is a listpack to its end.
    #[inline]
    fn visit_all(mut self, visitor: &mut impl Visitor<'a>) -> bool {
        while !self.left.is_empty() && !visitor.is_done() {
            let before = self.left.len();
            let mut texts = ShortTexts { items: self };
            visitor.short_texts(&mut texts);
            let mut numbers = ShortIntegers { items: texts.items };
            visitor.integers(&mut numbers);
            self = numbers.items;
            if self.left.len() == before {
                match self.next() {
                    Some(item) => visitor.item(item),
                    None => break,
                }
            }
        }
        self.are_at_end()
    }

    /// Whether all elements have been read, and there are as many as the listpack claims.
    pub(super) fn are_at_end(&self) -> bool {
        self.left.is_empty() && self.count == 0
    }

    /// The next element if it is a text of less than 64 bytes; it may be a number's digits.
    #[inline(always)]
    pub(super) fn next_short_text(&mut self) -> Option<&'a [u8]> {
        let mut ahead = self.ahead();
        let text = ahead.text()?;
        self.skip_to(ahead, 1)?;
        Some(text)
    }

    /// The next elements, for a look ahead.
    #[inline(always)]
    pub(super) fn ahead(&self) -> Ahead<'a> {
        Ahead { left: self.left }
    }

    /// Goes on behind elements of which that many were looked at; `None` if they are more than the listpack claims.
    #[inline(always)]
    pub(super) fn skip_to(&mut self, ahead: Ahead<'a>, elements: usize) -> Option<()> {
        self.count = self.count.checked_sub(elements)?;
        self.left = ahead.left;
        Some(())
    }

    /// The next element as an integer; `None` if it is none.
    #[inline(always)]
    pub(super) fn next_integer(&mut self) -> Option<i64> {
        match self.next_short_integer() {
            Some(number) => Some(number),
            None => self.next()?.as_int(),
        }
    }

    /// The bytes of the elements that are left.
    pub(super) fn left_bytes(&self) -> usize {
        self.left.len()
    }

    /// The next element if it is an integer of at most 32 bits.
    #[inline(always)]
    fn next_short_integer(&mut self) -> Option<i64> {
        let mut ahead = self.ahead();
        let number = ahead.short_integer()?;
        self.skip_to(ahead, 1)?;
        Some(number)
    }

    /// Goes on behind an element; `None` if it is one more than the listpack claims.
    #[inline(always)]
    fn step(&mut self, rest: &'a [u8]) -> Option<()> {
        self.count = self.count.checked_sub(1)?;
        self.left = rest;
        Some(())
    }
}

/// Iterates over the next elements of a listpack for as long as they are integers of at most 32 bits.
struct ShortIntegers<'a> {
    items: Items<'a>,
}

impl Iterator for ShortIntegers<'_> {
    type Item = i64;

    #[inline(always)]
    fn next(&mut self) -> Option<i64> {
        self.items.next_short_integer()
    }
}

/// Iterates over the next elements of a listpack for as long as they are texts of less than 64 bytes.
struct ShortTexts<'a> {
    items: Items<'a>,
}

impl<'a> Iterator for ShortTexts<'a> {
    type Item = ShortText<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<ShortText<'a>> {
        let [code @ 0x80..0xc0, ahead @ ..] = self.items.left else { return None };
        let length = code & 0x3f;
        let [back, rest @ ..] = ahead.get(usize::from(length)..)? else { return None };
        if *back != length + 1 {
            return None;
        }
        self.items.step(rest)?;
        Some(ShortText { length: length.into(), ahead })
    }
}

/// The integer in an element of two bytes. Its sign is the highest of thirteen bits.
#[inline]
fn thirteen_bits(code: u8, low: u8) -> i64 {
    (i16::from_be_bytes([code << 3, 0]) >> 3 | i16::from(low)).into()
}

/// The bytes of the first element, with its length behind it; `None` if it is damaged, or there is none.
///
/// The sizes of numbers are constants behind branches: the processor guesses where the next element begins, and need
/// not wait for the code of this one.
#[inline(always)]
fn size(bytes: &[u8]) -> Option<usize> {
    let size = match *bytes.first()? {
        0..0x80 => 1,
        code @ 0x80..0xc0 => 1 + (code & 0x3f),
        0xc0..0xe0 => 2,
        0xf1 => 3,
        0xf2 => 4,
        0xf3 => 5,
        0xf4 => 9,
        _ => return long_size(bytes),
    };
    (bytes.get(usize::from(size)) == Some(&size)).then_some(usize::from(size) + 1)
}

/// The bytes of the first element if it is a text of more than 63 bytes or damaged.
#[inline(never)]
fn long_size(bytes: &[u8]) -> Option<usize> {
    let size = match *bytes {
        [code @ 0xe0..0xf0, low, ..] => 2 + (usize::from(code & 0x0f) << 8 | usize::from(low)),
        [0xf0, a, b, c, d, ..] => 5 + u32::from_le_bytes([a, b, c, d]) as usize,
        _ => return None,
    };
    let (groups, count) = backlen(size);
    bytes.get(size..)?.starts_with(&groups[groups.len() - count..]).then_some(size + count)
}

/// The first element, and the rest behind its content.
fn element(bytes: &[u8]) -> Option<(Item<'_>, &[u8])> {
    let (&code, rest) = bytes.split_first()?;
    match code {
        0..0x80 => Some((Item::Int(code.into()), rest)),
        0x80..0xc0 => text(rest, (code & 0x3f).into()),
        0xc0..0xe0 => {
            let (&low, rest) = rest.split_first()?;
            Some((Item::Int(thirteen_bits(code, low)), rest))
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
    Some((Item::of(text), rest))
}

/// The signed integer in up to eight bytes, low byte first.
pub(super) fn signed(bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[8 - bytes.len()..].copy_from_slice(bytes);
    i64::from_le_bytes(wide) >> (64 - 8 * bytes.len())
}
