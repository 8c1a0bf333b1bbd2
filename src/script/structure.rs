//! The library `struct`: values to bytes, by a format, and back.
//!
//! A format is read while it is used: one letter for each value, some with a number behind. Sizes that a format
//! declares are checked against the data before anything is read or allocated. Zeros between values align them
//! (`!8`); `<` and `>` set the byte order, which is little-endian at first.

use super::arguments::{integer_or, register, to_i64};
use crate::lua::{Raise, Stack};

const LARGEST_INTEGER: i32 = 32;
const DEFAULT_ALIGNMENT: i32 = 8;

/// Pushes the library.
///
/// # Errors
/// If memory has run out.
pub(crate) fn open(stack: &mut Stack<'_>) -> Result<(), Raise> {
    stack.push_table(0, 3)?;
    register(stack, &[("pack", pack), ("unpack", unpack), ("size", size)])
}

/// A format and the offset up to which it has been read.
struct Format<'f> {
    rest: &'f [u8],
    is_big_endian: bool,
    alignment: usize,
}

/// A letter of a format, and the number of bytes that it declares.
struct Item {
    letter: u8,
    size: usize,
}

impl<'f> Format<'f> {
    fn new(text: &'f [u8]) -> Format<'f> {
        let rest = text.split(|&byte| byte == 0).next().unwrap_or_default();
        Format { rest, is_big_endian: false, alignment: 1 }
    }

    fn next(&mut self) -> Result<Option<Item>, Raise> {
        let Some((&letter, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        let size = match letter {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'f' => 4,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'c' => self.number(1)?,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > LARGEST_INTEGER {
                    let text = format!("integral size {size} is larger than limit of {LARGEST_INTEGER}");
                    return Err(Raise::here(text));
                }
                size
            }
            _ => 0,
        };
        Ok(Some(Item { letter, size: usize::try_from(size).unwrap_or(0) }))
    }

    /// The number at the beginning of the rest.
    fn number(&mut self, default: i32) -> Result<i32, Raise> {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Ok(default);
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        let mut number = 0_i32;
        for digit in digits {
            let sum = number.checked_mul(10).and_then(|number| number.checked_add(i32::from(digit - b'0')));
            number = sum.ok_or_else(|| Raise::here("integral size overflow"))?;
        }
        Ok(number)
    }

    /// The number of bytes by which an item at `position` is moved for alignment.
    fn padding(&self, position: usize, item: &Item) -> usize {
        if item.size == 0 || item.letter == b'c' {
            return 0;
        }
        let mask = item.size.min(self.alignment) - 1;
        (mask + 1).wrapping_sub(position & mask) & mask
    }

    /// Applies a letter that does not stand for a value.
    fn apply(&mut self, letter: u8) -> Result<(), Raise> {
        match letter {
            b' ' => {}
            b'>' => self.is_big_endian = true,
            b'<' => self.is_big_endian = false,
            b'!' => {
                let alignment = self.number(DEFAULT_ALIGNMENT)?;
                let is_power_of_two = alignment > 0 && alignment & (alignment - 1) == 0;
                if !is_power_of_two {
                    return Err(Raise::here(format!("alignment {alignment} is not a power of 2")));
                }
                self.alignment = usize::try_from(alignment).unwrap_or(1);
            }
            letter => return Err(Raise::argument(1, [b"invalid format option '", &[letter][..], b"'"].concat())),
        }
        Ok(())
    }

    /// Converts bytes from little-endian to the byte order of the format, or back.
    fn order<const N: usize>(&self, mut bytes: [u8; N]) -> [u8; N] {
        if self.is_big_endian {
            bytes.reverse();
        }
        bytes
    }
}

fn pack(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let text = stack.text_argument(1)?;
    stack.work(text.len())?;
    let mut format = Format::new(&text);
    // Missing arguments count as nil.
    stack.push_nil();
    let (mut out, mut argument) = (Vec::new(), 2);
    while let Some(item) = format.next()? {
        let padded = out.len() + format.padding(out.len(), &item);
        out.resize(padded, 0);
        match item.letter {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let value = to_u64(stack.number_argument(argument)?);
                write_integer(&mut out, value, item.size, format.is_big_endian);
            }
            b'x' => out.push(0),
            b'f' => out.extend_from_slice(&format.order((stack.number_argument(argument)? as f32).to_le_bytes())),
            b'd' => out.extend_from_slice(&format.order(stack.number_argument(argument)?.to_le_bytes())),
            b'c' | b's' => write_text(stack, &mut out, argument, &item)?,
            letter => format.apply(letter)?,
        }
        argument += usize::from(item.letter.is_ascii_alphabetic() && item.letter != b'x');
    }
    stack.push_bytes(&out)?;
    Ok(1)
}

/// A double as an unsigned integer; a negative one as its two's complement.
fn to_u64(number: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if number >= HALF { to_i64(number - HALF) as u64 ^ 1 << 63 } else { to_i64(number) as u64 }
}

/// Writes an integer; beyond eight bytes there are zeros.
fn write_integer(out: &mut Vec<u8>, value: u64, size: usize, is_big_endian: bool) {
    let bytes = value.to_le_bytes();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    if is_big_endian { out.extend((0..size).rev().map(byte)) } else { out.extend((0..size).map(byte)) }
}

fn write_text(stack: &mut Stack<'_>, out: &mut Vec<u8>, argument: usize, item: &Item) -> Result<(), Raise> {
    let text = stack.text_argument(argument)?;
    let size = if item.size == 0 { text.len() } else { item.size };
    // Redis reports the next argument here.
    let part = text.get(..size).ok_or_else(|| Raise::argument(argument + 1, "string too short"))?;
    stack.check_memory(out.len().saturating_add(size))?;
    out.extend_from_slice(part);
    if item.letter == b's' {
        out.push(0);
    }
    Ok(())
}

fn unpack(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let (text, data) = (stack.text_argument(1)?, stack.text_argument(2)?);
    stack.work(text.len())?;
    let mut format = Format::new(&text);
    let offset = integer_or(stack, 3, 1)?;
    if offset == 0 {
        return Err(Raise::argument(3, "offset must be 1 or greater"));
    }
    // A negative offset is beyond all data.
    let mut position = (offset as usize).wrapping_sub(1);
    let mut count = 0;
    while let Some(item) = format.next()? {
        position = position.wrapping_add(format.padding(position, &item));
        let mut part = part(&data, position, item.size)?;
        stack.reserve(2).map_err(|_| Raise::here("stack overflow (too many results)"))?;
        match item.letter {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let is_signed = item.letter.is_ascii_lowercase();
                stack.push_number(read_integer(part, is_signed, format.is_big_endian));
            }
            b'x' => {}
            b'f' => stack.push_number(f32::from_le_bytes(format.order(array(part))).into()),
            b'd' => stack.push_number(f64::from_le_bytes(format.order(array(part)))),
            b'c' => {
                if item.size == 0 {
                    part = self::part(&data, position, take_size(stack, &mut count)?)?;
                }
                stack.push_bytes(part)?;
            }
            b's' => {
                let rest = &data[position..];
                let end = memchr::memchr(0, rest).ok_or_else(|| Raise::here("unfinished string in data"))?;
                stack.push_bytes(&rest[..end])?;
                part = &rest[..=end];
            }
            letter => format.apply(letter)?,
        }
        count += usize::from(item.letter.is_ascii_alphabetic() && item.letter != b'x');
        position = position.wrapping_add(part.len());
    }
    stack.reserve(1)?;
    stack.push_number((position.wrapping_add(1)) as i64 as f64);
    Ok(count + 1)
}

fn part(data: &[u8], position: usize, size: usize) -> Result<&[u8], Raise> {
    let part = position.checked_add(size).and_then(|end| data.get(position..end));
    part.ok_or_else(|| Raise::argument(2, "data string too short"))
}

fn array<const N: usize>(part: &[u8]) -> [u8; N] {
    part.try_into().expect("the letter declared as many bytes")
}

/// Pops the last result: it is the size of a text.
fn take_size(stack: &mut Stack<'_>, count: &mut usize) -> Result<usize, Raise> {
    let size = if *count == 0 { None } else { stack.number(-1) };
    let size = size.ok_or_else(|| Raise::here("format 'c0' needs a previous size"))?;
    stack.pop(1);
    *count -= 1;
    Ok(usize::try_from(to_u64(size)).unwrap_or(usize::MAX))
}

/// Reads an integer. Of more than eight bytes the lowest eight matter; which of their bits is the sign is then as on
/// processors.
fn read_integer(part: &[u8], is_signed: bool, is_big_endian: bool) -> f64 {
    let append = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    let value = if is_big_endian { part.iter().fold(0, append) } else { part.iter().rev().fold(0, append) };
    if !is_signed {
        return value as f64;
    }
    let sign_bit = (part.len() as u32 * 8).wrapping_sub(1);
    let mask = u64::MAX.wrapping_shl(sign_bit);
    let extended = if value & mask == 0 { value } else { value | mask };
    extended as i64 as f64
}

fn size(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let text = stack.text_argument(1)?;
    stack.work(text.len())?;
    let mut format = Format::new(&text);
    let mut position = 0_usize;
    while let Some(item) = format.next()? {
        position = position.wrapping_add(format.padding(position, &item));
        match item.letter {
            b's' => return Err(Raise::argument(1, "option 's' has no fixed size")),
            b'c' if item.size == 0 => return Err(Raise::argument(1, "option 'c0' has no fixed size")),
            letter if !letter.is_ascii_alphanumeric() => format.apply(letter)?,
            _ => {}
        }
        position = position.wrapping_add(item.size);
    }
    stack.push_number(position as i64 as f64);
    Ok(1)
}

#[cfg(test)]
mod tests {
    use crate::script::testing::{expect, shown};

    #[test]
    fn packed_values_unpack_as_they_were() {
        expect(&[
            ("hex(struct.pack('>bHil', -2, 258, 3, -4))", "fe010200000003fffffffffffffffc"),
            ("hex(struct.pack('<I3d', 0x10203, 1))", "030201000000000000f03f"),
            ("hex(struct.pack('sc2c0x f', 'ab', 'cde', 'fg', 0.5))", "61620063646667000000003f"),
            ("struct.unpack('>bHilf', struct.pack('>bHilf', -2, 258, 3, -4, 0.25))", "-2 258 3 -4 0.25 20"),
            ("struct.unpack('bc0s', '\\3abcde\\0rest')", "abc de 8"),
            ("struct.size('!8bd'), struct.size('bd'), struct.size('!4i16 b!i32')", "16 9 56"),
        ]);
    }

    #[test]
    fn invalid_formats_are_refused() {
        expect(&[
            ("fails(struct.pack, '=')", "bad argument #1 to '?' (invalid format option '=')"),
            ("fails(struct.size, '!3')", "alignment 3 is not a power of 2"),
            ("fails(struct.size, 's')", "bad argument #1 to '?' (option 's' has no fixed size)"),
            ("fails(struct.pack, 'b')", "bad argument #2 to '?' (number expected, got nil)"),
            ("fails(struct.pack, 'c3', 'ab')", "bad argument #3 to '?' (string too short)"),
            ("fails(struct.unpack, 'c0', 'ab')", "format 'c0' needs a previous size"),
            ("fails(struct.unpack, 's', 'ab')", "unfinished string in data"),
        ]);
    }

    /// Cases of CVE-2015-8080 and CVE-2020-14147.
    #[test]
    fn no_size_in_a_format_overflows() {
        for letter in ["i", "I", "c", "!"] {
            for size in ["2147483648", "9223372036854775808", "1234567890123456789012345678901234567890"] {
                for call in ["struct.pack, '_', 1, 1", "struct.unpack, '_', 'abc'", "struct.size, '_'"] {
                    let call = call.replace('_', &format!("{letter}{size}"));
                    assert_eq!(shown(&format!("fails({call})")), "integral size overflow", "{call}");
                }
            }
        }
        expect(&[
            ("fails(struct.size, 'i2147483647')", "integral size 2147483647 is larger than limit of 32"),
            ("struct.size('c2147483647')", "2147483647"),
            ("fails(struct.pack, 'c2147483647', 'a')", "bad argument #3 to '?' (string too short)"),
            ("fails(struct.unpack, 'c2147483647', 'a')", "bad argument #2 to '?' (data string too short)"),
            ("hex(struct.pack('i0b', 1, 2))", "02"),
        ]);
    }

    /// A case of CVE-2018-11219.
    #[test]
    fn no_offset_reaches_beyond_the_data() {
        const SHORT: &str = "bad argument #2 to '?' (data string too short)";
        expect(&[
            ("fails(struct.unpack, 'b', 'abc', 0)", "bad argument #3 to '?' (offset must be 1 or greater)"),
            ("struct.unpack('b', 'abc', 3)", "99 4"),
            ("struct.unpack('', 'abc', 2^53)", "9.007199254741e+15"),
            ("struct.unpack('', 'abc', -3)", "-3"),
        ]);
        for offset in ["-1", "4", "2^31", "2^32", "2^53", "-2^63", "2^63", "1/0", "0/0"] {
            assert_eq!(shown(&format!("fails(struct.unpack, 'b', 'abc', {offset})")), SHORT, "{offset}");
        }
        expect(&[("fails(struct.unpack, 'dc0', struct.pack('d', -1) .. 'abc')", SHORT)]);
        expect(&[("fails(struct.unpack, ('b'):rep(9000), ('x'):rep(9000))", "stack overflow (too many results)")]);
    }
}
