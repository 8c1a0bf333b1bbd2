//! Lengths and texts, of which everything in the format consists.
//!
//! ```text
//!   00llllll                 l bytes follow
//!   01llllll llllllll        the same, l up to 16383
//!   10000000 and 4 bytes     the length, high byte first; 10000001 and 8 likewise
//!   11000000, 1, 2           a number of 8, 16 or 32 bits instead of its digits
//!   11000011 length length   compressed: the compressed length, and the length
//! ```
//!
//! A length is also used as the number of things that follow; lengths that begin with 11 are then the value of their
//! other six bits.

use super::VERSION;
use super::listpack::Builder;
use super::lzf;
use super::part::Part;
use std::borrow::Cow;
use std::io;

const SHORT_LENGTHS: u64 = 1 << 6;
const MIDDLE_LENGTHS: u64 = 1 << 14;
const LENGTH_32: u8 = 0x80;
const LENGTH_64: u8 = 0x81;
const COMPRESSED: u8 = 0xc3;
/// The least length of a text that is compressed.
const MIN_COMPRESSED: usize = 21;
/// The most digits, with a sign, of a text that is written as a number.
const NUMBER_DIGITS: usize = 11;
/// The room that a text takes in addition to its bytes: the overhead of an element in a collection.
const ELEMENT_BYTES: usize = 32;

/// Takes what was written so far, and leaves the rest of the payload to come.
pub(super) type Sink<'s> = dyn FnMut(&mut Vec<u8>) -> io::Result<()> + 's;

/// A payload that is being written.
#[derive(Debug)]
pub struct Writer {
    pub(super) out: Vec<u8>,
    pub(super) compresses: bool,
    /// The version of the format in whose forms values are written.
    pub(super) version: u16,
    /// The least length of a part that is passed on.
    part_bytes: usize,
    /// The memory of the last listpack, for the next.
    builder: Option<Builder>,
}

impl Writer {
    /// An empty payload; `compresses` decides whether long texts are compressed.
    pub fn new(compresses: bool) -> Writer {
        Writer::in_parts(compresses, VERSION, usize::MAX)
    }

    /// Like [`Writer::new`], in the forms of a version, for what is passed on in parts of at least that many bytes
    /// ([`Writer::pass_on`]).
    pub(super) fn in_parts(compresses: bool, version: u16, part_bytes: usize) -> Writer {
        Writer { out: Vec::new(), compresses, version, part_bytes, builder: None }
    }

    /// The number of bytes written so far.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether nothing was written")]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// A reader of the bytes written so far.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(&self.out)
    }

    /// Passes on what was written if it is enough for a part.
    #[inline]
    pub(super) fn pass_on(&mut self, sink: &mut Sink<'_>) -> io::Result<()> {
        if self.out.len() < self.part_bytes { Ok(()) } else { sink(&mut self.out) }
    }

    /// Appends a byte.
    pub fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    /// Appends a text, in the shortest form.
    pub fn text(&mut self, bytes: &[u8]) {
        if self.number(bytes) {
            return;
        }
        let is_long = self.compresses && bytes.len() >= MIN_COMPRESSED;
        if is_long && lzf::compress(bytes, |short| self.compressed(short, bytes.len())).is_some() {
            return;
        }
        self.length(bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    fn compressed(&mut self, short: &[u8], length: usize) {
        self.byte(COMPRESSED);
        self.length(short.len() as u64);
        self.length(length as u64);
        self.out.extend_from_slice(short);
    }

    /// Appends a listpack, as a text.
    pub(super) fn listpack(&mut self, build: impl FnOnce(&mut Builder)) {
        let mut builder = self.builder.take().unwrap_or_else(Builder::new);
        build(&mut builder);
        self.text(builder.finish());
        self.builder = Some(builder).filter(Builder::is_small);
    }

    /// Appends the number that the text is, if it is one that fits and whose digits are the text again.
    fn number(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > NUMBER_DIGITS {
            return false;
        }
        let Some(number) = crate::value::number::parse_i64(bytes).and_then(|number| i32::try_from(number).ok()) else {
            return false;
        };
        if let Ok(number) = i8::try_from(number) {
            self.byte(0xc0);
            self.out.extend_from_slice(&number.to_le_bytes());
        } else if let Ok(number) = i16::try_from(number) {
            self.byte(0xc1);
            self.out.extend_from_slice(&number.to_le_bytes());
        } else {
            self.byte(0xc2);
            self.out.extend_from_slice(&number.to_le_bytes());
        }
        true
    }

    /// Appends a length.
    pub fn length(&mut self, length: u64) {
        if length < SHORT_LENGTHS {
            self.byte(length as u8);
        } else if length < MIDDLE_LENGTHS {
            self.out.extend_from_slice(&(0x4000 | length as u16).to_be_bytes());
        } else if let Ok(length) = u32::try_from(length) {
            self.byte(LENGTH_32);
            self.out.extend_from_slice(&length.to_be_bytes());
        } else {
            self.byte(LENGTH_64);
            self.out.extend_from_slice(&length.to_be_bytes());
        }
    }

    /// Appends a time, in unix milliseconds.
    pub(super) fn moment(&mut self, unix_ms: i64) {
        self.out.extend_from_slice(&unix_ms.to_le_bytes());
    }

    /// Appends a score.
    pub(super) fn double(&mut self, number: f64) {
        self.out.extend_from_slice(&number.to_le_bytes());
    }
}

/// A cursor over a payload. Its methods return `None` if the payload is damaged, or if there is no room for the
/// result: a few bytes can stand for many.
#[derive(Clone, Debug)]
pub struct Reader<'p> {
    rest: &'p [u8],
    room_bytes: usize,
    is_full: bool,
    is_short: bool,
    /// Whether a value was refused only because it is a collection without elements.
    pub(super) is_empty_value: bool,
}

/// A length, or the special encoding of a text.
enum Length {
    Bytes(u64),
    Special(u8),
}

impl<'p> Reader<'p> {
    /// A reader from the beginning of a payload.
    pub fn new(payload: &'p [u8]) -> Reader<'p> {
        Reader::within(payload, usize::MAX)
    }

    /// A reader from the beginning, with room for that many bytes of results.
    pub fn within(payload: &'p [u8], room_bytes: usize) -> Reader<'p> {
        Reader { rest: payload, room_bytes, is_full: false, is_short: false, is_empty_value: false }
    }

    /// Whether it is at the end of the payload.
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The number of bytes that have not been read.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Whether the room was not enough.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Whether it was asked for more bytes than there are.
    pub(super) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Reads the next byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    /// Reads the next text, which is needed only until a value has been built of it.
    pub(super) fn part(&mut self) -> Option<Part<'p>> {
        if self.rest.first() != Some(&COMPRESSED) {
            return self.text().map(Part::of);
        }
        self.byte()?;
        let part = self.compressed(Part::decompressed)?;
        self.take_room(1, part.len())?;
        Some(part)
    }

    /// Reads the next text.
    pub fn text(&mut self) -> Option<Cow<'p, [u8]>> {
        let text = match self.any_length()? {
            Length::Bytes(count) => self.bytes(count).map(Cow::Borrowed),
            Length::Special(0) => self.array().map(|[byte]| digits(i8::from_le_bytes([byte]).into())),
            Length::Special(1) => self.array().map(|bytes| digits(i16::from_le_bytes(bytes).into())),
            Length::Special(2) => self.array().map(|bytes| digits(i32::from_le_bytes(bytes))),
            Length::Special(3) => self.compressed(lzf::decompress).map(Cow::Owned),
            Length::Special(_) => None,
        }?;
        self.take_room(1, text.len())?;
        Some(text)
    }

    /// Skips the next text.
    pub(super) fn skip_text(&mut self) -> Option<()> {
        let bytes = match self.any_length()? {
            Length::Bytes(count) => count,
            Length::Special(width @ 0..=2) => 1 << width,
            Length::Special(3) => {
                let short = self.length()?;
                self.length()?;
                short
            }
            Length::Special(_) => return None,
        };
        self.bytes(bytes).map(drop)
    }

    /// Reads a compressed text behind its first byte, and has it decompressed to its length.
    fn compressed<T>(&mut self, decompress: impl FnOnce(&[u8], usize) -> Option<T>) -> Option<T> {
        let (short, length) = (self.length()?, usize::try_from(self.length()?).ok()?);
        let short = self.bytes(short)?;
        if !lzf::is_plausible(short.len(), length) {
            return None;
        }
        if length > self.room_bytes {
            self.is_full = true;
            return None;
        }
        decompress(short, length)
    }

    /// Takes the room that some elements with that many bytes in all will need.
    pub(super) fn take_room(&mut self, elements: usize, bytes: usize) -> Option<()> {
        match self
            .room_bytes
            .checked_sub(elements.saturating_mul(ELEMENT_BYTES).saturating_add(bytes.saturating_mul(2)))
        {
            Some(left) => self.room_bytes = left,
            None => self.is_full = true,
        }
        (!self.is_full).then_some(())
    }

    /// Reads the next length, as a number of things.
    pub fn length(&mut self) -> Option<u64> {
        match self.any_length()? {
            Length::Bytes(count) => Some(count),
            Length::Special(count) => Some(count.into()),
        }
    }

    /// Reads the next time, in unix milliseconds.
    pub(super) fn moment(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads the next score.
    pub(super) fn double(&mut self) -> Option<f64> {
        self.array().map(f64::from_le_bytes)
    }

    fn any_length(&mut self) -> Option<Length> {
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

    /// Reads that many bytes.
    pub(super) fn bytes(&mut self, count: u64) -> Option<&'p [u8]> {
        let split = usize::try_from(count).ok().and_then(|count| self.rest.split_at_checked(count));
        self.is_short |= split.is_none();
        let (bytes, rest) = split?;
        self.rest = rest;
        Some(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let split = self.rest.split_first_chunk::<N>();
        self.is_short |= split.is_none();
        let (bytes, rest) = split?;
        self.rest = rest;
        Some(*bytes)
    }
}

fn digits(number: i32) -> Cow<'static, [u8]> {
    Cow::Owned(itoa::Buffer::new().format(number).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &[u8]) -> Vec<u8> {
        let mut writer = Writer::new(true);
        writer.text(text);
        writer.out
    }

    #[test]
    fn texts_read_back_as_they_were_written() {
        let mut generator = fastrand::Rng::with_seed(7);
        for length in [0, 1, 20, 63, 64, 16_383, 16_384, 70_000] {
            let text: Vec<u8> = (0..length).map(|_| generator.u8(..)).collect();
            let written = written(&text);
            let mut reader = Reader::new(&written);
            assert_eq!(reader.text().as_deref(), Some(text.as_slice()));
            assert!(reader.is_at_end());
        }
    }

    #[test]
    fn only_texts_that_an_integer_prints_as_are_written_as_integers() {
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

    #[test]
    fn a_text_is_decompressed_only_within_its_memory_limit() {
        let payload = written(&[b'a'; 100_000]);
        assert!(payload.len() < 1500);
        let mut reader = Reader::within(&payload, 100_000);
        assert_eq!((reader.text(), reader.is_full()), (None, true));
        assert!(Reader::within(&payload, 200_100).text().is_some());
    }

    #[test]
    fn a_length_that_no_compression_reaches_counts_as_damage_not_as_lack_of_memory() {
        let mut reader = Reader::within(b"\xc3\x02\x81\x7f\xff\xff\xff\xff\xff\xff\xff\0a", 1000);
        assert_eq!((reader.text(), reader.is_full()), (None, false));
    }
}
