//! Lengths and texts, of which everything in the format is made.
//!
//! ```text
//!   00llllll                 l bytes follow            10000000 and 4 bytes, 10000001 and 8: the length, high byte first
//!   01llllll llllllll        the same, l up to 16383   11000000, 1, 2: a number of 8, 16 or 32 bits instead of its digits
//!   11000011 length length   compressed: how many bytes that takes, and how many they are
//! ```

use super::lzf;

const SHORT_LENGTHS: usize = 1 << 6;
const MIDDLE_LENGTHS: usize = 1 << 14;
const LENGTH_32: u8 = 0x80;
const LENGTH_64: u8 = 0x81;
const COMPRESSED: u8 = 0xc3;
/// Shorter texts are never compressed.
const LEAST_COMPRESSED: usize = 21;
/// A number that is written as one has at most so many digits and a sign.
const NUMBER_DIGITS: usize = 11;

/// Appends a text, in the shortest form.
pub fn write_text(bytes: &[u8], out: &mut Vec<u8>) {
    if write_number(bytes, out) {
        return;
    }
    if bytes.len() >= LEAST_COMPRESSED
        && let Some(short) = lzf::compress(bytes)
    {
        out.push(COMPRESSED);
        write_length(short.len(), out);
        write_length(bytes.len(), out);
        return out.extend_from_slice(&short);
    }
    write_length(bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// Appends the number that the text is, if it is one that fits and reads the same again.
fn write_number(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    if bytes.len() > NUMBER_DIGITS {
        return false;
    }
    let Some(number) = crate::value::number::parse_i64(bytes).and_then(|number| i32::try_from(number).ok()) else {
        return false;
    };
    if let Ok(number) = i8::try_from(number) {
        out.push(0xc0);
        out.extend_from_slice(&number.to_le_bytes());
    } else if let Ok(number) = i16::try_from(number) {
        out.push(0xc1);
        out.extend_from_slice(&number.to_le_bytes());
    } else {
        out.push(0xc2);
        out.extend_from_slice(&number.to_le_bytes());
    }
    true
}

fn write_length(length: usize, out: &mut Vec<u8>) {
    let number = length as u64;
    match length {
        0..SHORT_LENGTHS => out.push(length as u8),
        SHORT_LENGTHS..MIDDLE_LENGTHS => out.extend_from_slice(&(0x4000 | length as u16).to_be_bytes()),
        _ => match u32::try_from(length) {
            Ok(length) => {
                out.push(LENGTH_32);
                out.extend_from_slice(&length.to_be_bytes());
            }
            Err(_) => {
                out.push(LENGTH_64);
                out.extend_from_slice(&number.to_be_bytes());
            }
        },
    }
}

/// A cursor over a payload. What it reads is `None` when the payload is damaged.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'p> {
    rest: &'p [u8],
}

/// A length, or how a text is written instead of by its bytes.
enum Length {
    Bytes(u64),
    Special(u8),
}

impl<'p> Reader<'p> {
    /// From the beginning.
    pub fn new(payload: &'p [u8]) -> Reader<'p> {
        Reader { rest: payload }
    }

    /// True at the end.
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// The next text.
    pub fn text(&mut self) -> Option<Vec<u8>> {
        match self.length()? {
            Length::Bytes(count) => self.bytes(count).map(<[u8]>::to_vec),
            Length::Special(0) => self.array().map(|[byte]| digits(i8::from_le_bytes([byte]).into())),
            Length::Special(1) => self.array().map(|bytes| digits(i16::from_le_bytes(bytes).into())),
            Length::Special(2) => self.array().map(|bytes| digits(i32::from_le_bytes(bytes))),
            Length::Special(3) => {
                let (Length::Bytes(short), Length::Bytes(length)) = (self.length()?, self.length()?) else {
                    return None;
                };
                lzf::decompress(self.bytes(short)?, usize::try_from(length).ok()?)
            }
            Length::Special(_) => None,
        }
    }

    fn length(&mut self) -> Option<Length> {
        let first = self.byte()?;
        let low = first & 0x3f;
        match (first >> 6, first) {
            (0, _) => Some(Length::Bytes(low.into())),
            (1, _) => Some(Length::Bytes(u16::from_be_bytes([low, self.byte()?]).into())),
            (_, LENGTH_32) => self.array().map(|bytes| Length::Bytes(u32::from_be_bytes(bytes).into())),
            (_, LENGTH_64) => self.array().map(|bytes| Length::Bytes(u64::from_be_bytes(bytes))),
            (3, _) => Some(Length::Special(low)),
            _ => None,
        }
    }

    fn bytes(&mut self, count: u64) -> Option<&'p [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(usize::try_from(count).ok()?)?;
        self.rest = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*bytes)
    }
}

fn digits(number: i32) -> Vec<u8> {
    itoa::Buffer::new().format(number).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write_text(text, &mut out);
        out
    }

    #[test]
    fn texts_come_back_as_they_were() {
        let mut generator = fastrand::Rng::with_seed(7);
        for length in [0, 1, 20, 63, 64, 16_383, 16_384, 70_000] {
            let text: Vec<u8> = (0..length).map(|_| generator.u8(..)).collect();
            let written = written(&text);
            let mut reader = Reader::new(&written);
            assert_eq!(reader.text(), Some(text));
            assert!(reader.is_at_end());
        }
    }

    #[test]
    fn numbers_are_written_as_such_if_they_read_the_same_again() {
        assert_eq!(written(b"-1"), b"\xc0\xff");
        assert_eq!(written(b"-129"), b"\xc1\x7f\xff");
        assert_eq!(written(b"70000"), b"\xc2\x70\x11\x01\x00");
        assert_eq!(written(b"01"), b"\x0201");
        for text in [&b"-1"[..], b"-129", b"70000", b"2147483648", b"-2147483648"] {
            assert_eq!(Reader::new(&written(text)).text().as_deref(), Some(text));
        }
    }

    #[test]
    fn damaged_texts_are_refused() {
        for bytes in
            [&b""[..], b"\x05ab", b"\x81\x80\0\0\0\0\0\0\0ab", b"\x82\0\0\0\0", b"\xc4\x01a", b"\xc3\x02\x05ab"]
        {
            assert_eq!(Reader::new(bytes).text(), None);
        }
    }
}
