//! The form in which a table stores a field with its value: `field length, 1 byte (or 255 and 8 more) | field | value`.

use super::Entry;
use crate::value::item::Item;
use crate::value::table::Layout;

/// The cell layout of a field with its value.
#[derive(Clone)]
pub(super) struct Pair;

/// The first byte of a cell whose field length takes eight more bytes.
const LONG: u8 = u8::MAX;

impl Pair {
    /// Calls `store` with the cell of a field and its value, in parts.
    pub(super) fn cell<R>(field: &[u8], value: &[u8], store: impl FnOnce([&[u8]; 3]) -> R) -> R {
        match u8::try_from(field.len()) {
            Ok(length) if length < LONG => store([&[length], field, value]),
            _ => {
                let [a, b, c, d, e, f, g, h] = (field.len() as u64).to_le_bytes();
                store([&[LONG, a, b, c, d, e, f, g, h], field, value])
            }
        }
    }

    fn split(cell: &[u8]) -> (&[u8], &[u8]) {
        match *cell {
            [LONG, ref rest @ ..] => {
                let (length, rest) = rest.split_first_chunk().unwrap_or((&[0; 8], rest));
                rest.split_at(u64::from_le_bytes(*length) as usize)
            }
            [length, ref rest @ ..] => rest.split_at(length.into()),
            [] => (&[], &[]),
        }
    }

    pub(super) fn entry(cell: &[u8]) -> Entry<'_> {
        let (field, value) = Pair::split(cell);
        Entry { field: Item::Text(field, &[]), value: Item::Text(value, &[]) }
    }
}

impl Layout for Pair {
    fn key(cell: &[u8]) -> &[u8] {
        Pair::split(cell).0
    }
}
