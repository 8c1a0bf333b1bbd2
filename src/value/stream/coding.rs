//! The encoding of numbers and items in the bytes of a block.
//!
//! - A number takes seven bits a byte, the lowest first; the highest bit means that another byte follows.
//! - An item is a code and its content. Codes 0 to 8: that many bytes of an integer, its sign folded
//!   into the lowest bit. `9 + n`: a text of n bytes. What looks like an integer is always kept as one,
//!   so equal items have equal bytes.
//!
//! A reader only ever gets what the writers here wrote; from other bytes it reads zeros and empty items.

use crate::value::item::{AHEAD, Item, Word};

/// The code of an empty text.
pub(super) const TEXT: u64 = 9;

#[inline]
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[inline]
pub(super) fn put_item(out: &mut Vec<u8>, item: Item<'_>) {
    match item {
        Item::Int(number) => {
            let (width, digits) = folded(number);
            out.push(width);
            let end = out.len() + usize::from(width);
            out.extend_from_slice(&digits);
            out.truncate(end);
        }
        Item::Text(first, second) => {
            put_number(out, TEXT + (first.len() + second.len()) as u64);
            out.extend_from_slice(first);
            out.extend_from_slice(second);
        }
    }
}

/// The number of bytes of an integer, and these bytes with zeros behind them.
#[inline]
pub(super) fn folded(number: i64) -> (u8, [u8; 8]) {
    let folded = (number << 1 ^ number >> 63) as u64;
    ((64 - folded.leading_zeros()).div_ceil(8) as u8, folded.to_le_bytes())
}

/// Reads numbers and items one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// The bytes that have not been read yet.
    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(super) fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        byte
    }

    #[inline]
    pub(super) fn number(&mut self) -> u64 {
        let first = self.byte();
        if first <= 0x7f { u64::from(first) } else { self.long_number(first) }
    }

    fn long_number(&mut self, first: u8) -> u64 {
        let (mut number, mut shift) = (u64::from(first & 0x7f), 7);
        loop {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte <= 0x7f {
                return number;
            }
            shift += 7;
        }
    }

    /// The next `count` bytes.
    #[inline]
    pub(super) fn bytes(&mut self, count: u64) -> &'a [u8] {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let Some((bytes, rest)) = self.rest.split_at_checked(count) else { return &[] };
        self.rest = rest;
        bytes
    }

    /// The next item as it can be copied fastest.
    #[inline]
    pub(super) fn word(&mut self) -> Word<'a> {
        if let [code, rest @ ..] = self.rest
            && let length @ ..=AHEAD = usize::from(*code).wrapping_sub(TEXT as usize)
            && let Some(ahead) = rest.first_chunk()
        {
            self.rest = &rest[length..];
            return Word::Ahead { prefix: &[], length, ahead };
        }
        Word::Item(self.item())
    }

    pub(super) fn item(&mut self) -> Item<'a> {
        let code = self.number();
        match code.checked_sub(TEXT) {
            Some(length) => Item::Text(self.bytes(length), &[]),
            None => {
                let word = self.rest.first_chunk().map(|word| u64::from_le_bytes(*word));
                let bytes = self.bytes(code);
                let folded = match word {
                    // What comes after the integer is shifted out.
                    Some(word) if code > 0 => word << (64 - 8 * code) >> (64 - 8 * code),
                    _ => {
                        let mut digits = [0; 8];
                        digits[..bytes.len()].copy_from_slice(bytes);
                        u64::from_le_bytes(digits)
                    }
                };
                Item::Int((folded >> 1) as i64 ^ -((folded & 1) as i64))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn written_numbers_and_items_read_back(numbers: Vec<(u64, u32)>, texts: Vec<Vec<u8>>, integers: Vec<(i64, u32)>) {
            let numbers: Vec<u64> = numbers.into_iter().map(|(number, shift)| number >> (shift % 64)).collect();
            let integers: Vec<i64> = integers.into_iter().map(|(number, shift)| number >> (shift % 64)).collect();
            let mut out = Vec::new();
            numbers.iter().for_each(|&number| put_number(&mut out, number));
            texts.iter().for_each(|text| put_item(&mut out, Item::Text(text, &[])));
            integers.iter().for_each(|&number| put_item(&mut out, Item::Int(number)));
            let mut reader = Reader::of(&out);
            for number in numbers {
                prop_assert_eq!(reader.number(), number);
            }
            for text in &texts {
                prop_assert_eq!(reader.item(), Item::Text(text, &[]));
            }
            for number in integers {
                prop_assert!(matches!(reader.item(), Item::Int(read) if read == number));
            }
            prop_assert!(reader.rest().is_empty());
        }
    }
}
