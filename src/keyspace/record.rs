//! A record: one key with its value, or where to find it, its deadline and its access note, as the bytes of one cell.
//!
//! ```text
//! 0      1..4     4        5       6
//! flags  access   key len  spare | deadline 0, 6 or 8 | key, or its number 4 | payload
//! ```
//!
//! - flags: bits 0-2 the kind of payload, bits 3-4 the width of the deadline, bit 5 set if the key is stored apart,
//!   outside of the record;
//! - spare: the number of unused bytes of the cell behind the payload, from which a text's length follows;
//! - deadline: unsigned in six bytes until the year 10889, else an `i64`;
//! - payload: an integer in four or eight bytes, the bytes of a text or of a packed hash, or the number of a value
//!   that is stored apart.
//!
//! So a key of 16 bytes with a text of 32 takes 54 bytes, and with a deadline 60; a counter takes 26.
//! Everything is little-endian. This file reads and writes bytes; [`super::records`] decides where they are.
//!
//! Every command reads a record several times, and a read is some ten instructions; the functions for it are always
//! inlined, as calls would take as long again.

use super::cells::{MAX_CELL, MIN_CELL};

const HEADER: usize = 6;
/// Flags and access are read as a word.
const FLAGS: u32 = 0xff;
const ACCESS_SHIFT: u32 = 8;
const KIND: u8 = 0b111;
const KEY_APART: u8 = 1 << 5;
const WIDTH_SHIFT: u32 = 3;
const SHORT_DEADLINE: i64 = 1 << 48;

const INT_4: u8 = 0;
const INT_8: u8 = 1;
const TEXT: u8 = 2;
const RAW: u8 = 3;
const APART: u8 = 4;
const HASH: u8 = 5;

/// A deadline of either width is read as a word.
const _: () = assert!(HEADER + size_of::<i64>() <= MIN_CELL);

/// The longest key that is stored in the record, in bytes.
pub(super) const MAX_KEY: usize = 255;

/// The value of a record, as far as the record has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload<'a> {
    Int(i64),
    Text(&'a [u8]),
    Raw(&'a [u8]),
    /// The bytes of a packed hash.
    Hash(&'a [u8]),
    /// The number of a value that is stored apart.
    Apart(u32),
}

impl Payload<'_> {
    /// The bytes of the payload.
    pub(super) fn width(&self) -> usize {
        match *self {
            Payload::Int(number) if i32::try_from(number).is_ok() => 4,
            Payload::Int(_) => 8,
            Payload::Text(bytes) | Payload::Raw(bytes) | Payload::Hash(bytes) => bytes.len(),
            Payload::Apart(_) => 4,
        }
    }

    /// Whether a record whose payload starts at `start` has room for it.
    pub(super) fn fits(&self, start: usize) -> bool {
        self.width() <= MAX_CELL - start
    }
}

/// The key of a record, as far as the record has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key<'a> {
    Here(&'a [u8]),
    /// The number of a key that is stored apart.
    Apart(u32),
}

impl Key<'_> {
    fn width(&self) -> usize {
        match self {
            Key::Here(bytes) => bytes.len(),
            Key::Apart(_) => 4,
        }
    }

    /// The offset of the payload in a record with such a key and no deadline.
    pub(super) fn end(&self) -> usize {
        HEADER + self.width()
    }
}

/// The width of a deadline in bytes.
pub(super) fn deadline_width(deadline_ms: Option<i64>) -> usize {
    match deadline_ms {
        None => 0,
        Some(0..SHORT_DEADLINE) => 6,
        Some(_) => 8,
    }
}

/// The offset of everything behind a deadline that is `width` bytes wide.
pub(super) fn behind_deadline(width: usize) -> usize {
    HEADER + width
}

/// A record for reading: the bytes of its cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a>(pub(super) &'a [u8]);

impl<'a> Record<'a> {
    #[inline(always)]
    pub(super) fn deadline_width(self) -> usize {
        match (self.0[0] >> WIDTH_SHIFT) & 0b11 {
            0 => 0,
            1 => 6,
            _ => 8,
        }
    }

    #[inline(always)]
    pub(super) fn deadline(self) -> Option<i64> {
        let width = self.deadline_width();
        if width == 0 {
            return None;
        }
        let word = self.0[HEADER..].first_chunk().map_or(0, |word| i64::from_le_bytes(*word));
        Some(if width == 6 { word & (SHORT_DEADLINE - 1) } else { word })
    }

    #[inline(always)]
    pub(super) fn access(self) -> u32 {
        self.0.first_chunk().map_or(0, |word| u32::from_le_bytes(*word) >> ACCESS_SHIFT)
    }

    #[inline(always)]
    pub(super) fn key(self) -> Key<'a> {
        let start = HEADER + self.deadline_width();
        if self.0[0] & KEY_APART == 0 {
            Key::Here(&self.0[start..start + usize::from(self.0[4])])
        } else {
            Key::Apart(number_at(self.0, start))
        }
    }

    /// The offset at which the payload starts.
    #[inline(always)]
    pub(super) fn payload_start(self) -> usize {
        let key_width = if self.0[0] & KEY_APART == 0 { usize::from(self.0[4]) } else { 4 };
        HEADER + self.deadline_width() + key_width
    }

    /// The offset at which the payload ends.
    #[inline(always)]
    pub(super) fn end(self) -> usize {
        self.0.len() - usize::from(self.0[5])
    }

    /// Whether the value is a text that is not stored apart.
    #[inline(always)]
    pub(super) fn is_text(self) -> bool {
        matches!(self.0[0] & KIND, INT_4 | INT_8 | TEXT | RAW)
    }

    /// The length of a text, unless it is a number or is stored apart.
    #[inline(always)]
    pub(super) fn text_len(self) -> Option<usize> {
        matches!(self.0[0] & KIND, TEXT | RAW).then(|| self.end().saturating_sub(self.payload_start()))
    }

    #[inline(always)]
    pub(super) fn payload(self) -> Payload<'a> {
        let start = self.payload_start();
        match self.0[0] & KIND {
            INT_4 => Payload::Int(i64::from(number_at(self.0, start).cast_signed())),
            INT_8 => {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&self.0[start..start + 8]);
                Payload::Int(i64::from_le_bytes(bytes))
            }
            TEXT => Payload::Text(&self.0[start..self.end()]),
            RAW => Payload::Raw(&self.0[start..self.end()]),
            HASH => Payload::Hash(&self.0[start..self.end()]),
            _ => Payload::Apart(number_at(self.0, start)),
        }
    }
}

/// Writes a whole record without a deadline.
pub(super) fn write(cell: &mut [u8], key: Key<'_>, payload: Payload<'_>) {
    cell[..HEADER].fill(0);
    match key {
        Key::Here(bytes) => {
            cell[4] = bytes.len() as u8;
            cell[HEADER..HEADER + bytes.len()].copy_from_slice(bytes);
        }
        Key::Apart(number) => {
            cell[0] = KEY_APART;
            cell[HEADER..HEADER + 4].copy_from_slice(&number.to_le_bytes());
        }
    }
    write_payload(cell, key.end(), payload);
}

/// Writes a payload that starts at `start`, and the kind and spare bytes for it.
pub(super) fn write_payload(cell: &mut [u8], start: usize, payload: Payload<'_>) {
    let (kind, end) = match payload {
        Payload::Int(number) => match i32::try_from(number) {
            Ok(number) => (INT_4, put(cell, start, &number.to_le_bytes())),
            Err(_) => (INT_8, put(cell, start, &number.to_le_bytes())),
        },
        Payload::Text(bytes) => (TEXT, put(cell, start, bytes)),
        Payload::Raw(bytes) => (RAW, put(cell, start, bytes)),
        Payload::Hash(bytes) => (HASH, put(cell, start, bytes)),
        Payload::Apart(number) => (APART, put(cell, start, &number.to_le_bytes())),
    };
    cell[0] = cell[0] & !KIND | kind;
    set_end(cell, end);
}

/// Sets the end of the payload; at most 255 bytes may follow.
pub(super) fn set_end(cell: &mut [u8], end: usize) {
    debug_assert!(cell.len() - end <= usize::from(u8::MAX));
    cell[5] = (cell.len() - end) as u8;
}

/// Writes a deadline over one of the same width, or into the room that [`super::records`] made for it.
pub(super) fn write_deadline(cell: &mut [u8], deadline_ms: Option<i64>) {
    let width = deadline_width(deadline_ms);
    let code = (width.div_ceil(6) as u8) << WIDTH_SHIFT;
    cell[0] = cell[0] & !(0b11 << WIDTH_SHIFT) | code;
    let bytes = deadline_ms.unwrap_or(0).to_le_bytes();
    cell[HEADER..HEADER + width].copy_from_slice(&bytes[..width]);
}

/// Writes the low 24 bits of `access`, if they differ: most uses are in the same second as the last, and an unchanged
/// line need not be written back to memory.
#[inline(always)]
pub(super) fn write_access(cell: &mut [u8], access: u32) {
    let Some(word) = cell.first_chunk_mut() else { return };
    let noted = u32::from_le_bytes(*word);
    let changed = noted & FLAGS | access << ACCESS_SHIFT;
    if changed != noted {
        *word = changed.to_le_bytes();
    }
}

fn put(cell: &mut [u8], start: usize, bytes: &[u8]) -> usize {
    let end = start + bytes.len();
    cell[start..end].copy_from_slice(bytes);
    end
}

#[inline(always)]
fn number_at(bytes: &[u8], start: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[start..start + 4]);
    u32::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn payloads() -> impl Strategy<Value = (u8, i64, Vec<u8>)> {
        (
            0u8..6,
            any::<i64>().prop_flat_map(|number| (0u32..64).prop_map(move |shift| number >> shift)),
            any::<Vec<u8>>(),
        )
    }

    proptest! {
        #[test]
        fn a_record_reads_back_as_it_was_written(
            (kind, number, bytes) in payloads(),
            key: Vec<u8>,
            apart: bool,
            access: u32,
            spare: u8,
        ) {
            let payload = match kind {
                0 | 1 => Payload::Int(number),
                2 => Payload::Text(&bytes),
                3 => Payload::Raw(&bytes),
                4 => Payload::Hash(&bytes),
                _ => Payload::Apart(number as u32),
            };
            let key = if apart { Key::Apart(access) } else { Key::Here(&key) };
            let mut cell = vec![0xee; key.end() + payload.width() + usize::from(spare)];
            write(&mut cell, key, payload);
            write_access(&mut cell, access);
            let record = Record(&cell);
            prop_assert_eq!(record.key(), key);
            prop_assert_eq!(record.payload(), payload);
            prop_assert_eq!(record.payload_start(), key.end());
            prop_assert_eq!(record.end(), key.end() + payload.width());
            prop_assert_eq!(record.access(), access & 0xff_ffff);
            prop_assert_eq!(record.deadline(), None);
        }

        #[test]
        fn a_record_stores_any_deadline(deadline_ms: i64, shift in 0u32..64) {
            let deadline_ms = Some(deadline_ms >> shift);
            let mut cell = vec![0; 64];
            write(&mut cell, Key::Here(b""), Payload::Int(1));
            write_deadline(&mut cell, deadline_ms);
            prop_assert_eq!(Record(&cell).deadline(), deadline_ms);
            prop_assert_eq!(Record(&cell).deadline_width(), deadline_width(deadline_ms));
            write_deadline(&mut cell, None);
            prop_assert_eq!(Record(&cell).deadline(), None);
        }
    }

    #[test]
    fn a_small_key_costs_six_bytes_beside_itself_and_its_value() {
        assert_eq!(Key::Here(&[0; 16]).end() + Payload::Text(&[0; 32]).width(), 54);
        assert_eq!(Key::Here(&[0; 16]).end() + Payload::Int(1_000_000).width(), 26);
        assert_eq!(deadline_width(Some(1_800_000_000_000)), 6);
    }
}
