//! Looking ahead in a listpack: several elements are read, and counted together or not at all.

use super::{LAST_AHEAD, element, size, thirteen_bits};
use crate::value::Item;
use crate::value::item::{AHEAD, ShortText};

/// Elements of a listpack that are looked at, and counted by whoever goes on behind them.
#[derive(Clone, Copy, Debug)]
pub(in crate::rdb) struct Ahead<'a> {
    pub(super) left: &'a [u8],
}

impl<'a> Ahead<'a> {
    /// The next three elements as integers; `None` if one is none. Three of one byte are told by one comparison.
    #[inline(always)]
    pub(in crate::rdb) fn three_integers(&mut self) -> Option<[i64; 3]> {
        if let Some(eight) = self.left.first_chunk() {
            let word = u64::from_le_bytes(*eight);
            if word & 0xff80_ff80_ff80 == 0x0100_0100_0100 {
                self.left = &self.left[6..];
                return Some([(word & 0x7f) as i64, (word >> 16 & 0x7f) as i64, (word >> 32 & 0x7f) as i64]);
            }
        }
        Some([self.integer()?, self.integer()?, self.integer()?])
    }

    /// The next element if it is a text of less than 64 bytes; it may be a number's digits.
    #[inline(always)]
    pub(in crate::rdb) fn text(&mut self) -> Option<&'a [u8]> {
        let [code @ 0x80..0xc0, rest @ ..] = self.left else { return None };
        let length = code & 0x3f;
        let (text, [back, rest @ ..]) = rest.split_at_checked(length.into())? else { return None };
        if *back != length + 1 {
            return None;
        }
        self.left = rest;
        Some(text)
    }

    /// The next element if it is a text of at most [`AHEAD`] bytes, cannot be a number, and is not near the end: its
    /// length, and these bytes and those behind them.
    #[inline(always)]
    pub(in crate::rdb) fn short_text(&mut self) -> Option<(usize, &'a [u8; AHEAD])> {
        let [code @ 0x80..=LAST_AHEAD, rest @ ..] = self.left else { return None };
        let (length, ahead) = (usize::from(code & 0x3f), rest.first_chunk()?);
        if (ShortText { length, ahead }).may_be_number() {
            return None;
        }
        let [back, rest @ ..] = rest.get(length..)? else { return None };
        if usize::from(*back) != length + 1 {
            return None;
        }
        self.left = rest;
        Some((length, ahead))
    }

    /// The next element as an integer; `None` if it is none.
    #[inline(always)]
    pub(in crate::rdb) fn integer(&mut self) -> Option<i64> {
        match self.short_integer() {
            Some(number) => Some(number),
            None => self.item()?.as_int(),
        }
    }

    /// The next element, of any kind.
    #[inline(always)]
    pub(in crate::rdb) fn item(&mut self) -> Option<Item<'a>> {
        let (item, ahead) = self.split_any()?;
        *self = ahead;
        Some(item)
    }

    /// The next element, of any kind, and those behind it. It takes and returns the elements by value, so that a loop
    /// over them keeps its place in registers.
    #[inline(never)]
    pub(super) fn split_any(mut self) -> Option<(Item<'a>, Ahead<'a>)> {
        if let Some(number) = self.short_integer() {
            return Some((Item::Int(number), self));
        }
        let (element, left) = self.left.split_at_checked(size(self.left)?)?;
        Some((self::element(element)?.0, Ahead { left }))
    }

    /// The next element if it is an integer of at most 32 bits.
    #[inline(always)]
    pub(in crate::rdb) fn short_integer(&mut self) -> Option<i64> {
        let (number, rest) = match *self.left {
            [code @ 0..0x80, 1, ref rest @ ..] => (i64::from(code), rest),
            [code @ 0xc0..0xe0, low, 2, ref rest @ ..] => (thirteen_bits(code, low), rest),
            [0xf1, a, b, 3, ref rest @ ..] => (i16::from_le_bytes([a, b]).into(), rest),
            [0xf2, a, b, c, 4, ref rest @ ..] => ((i32::from_le_bytes([0, a, b, c]) >> 8).into(), rest),
            [0xf3, a, b, c, d, 5, ref rest @ ..] => (i32::from_le_bytes([a, b, c, d]).into(), rest),
            _ => return None,
        };
        self.left = rest;
        Some(number)
    }
}
