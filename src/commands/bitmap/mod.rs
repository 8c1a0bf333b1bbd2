//! Bitmaps: the bits of a string, the first of them the highest of its first byte.
//!
//! There is no type of its own: a key holds a string, and what lies behind its end is zero. Setting a bit there makes
//! the string longer, and raw, as OBJECT ENCODING tells; what was set to what it was already is announced to nobody.
//! No bit stands beyond `proto-max-bulk-len` bytes.
//!
//! [`getbit_setbit`] reads and sets one bit, [`bitcount_bitpos`] looks at a range of them, [`combine`] makes one string
//! of several, and [`field`] reads and writes integers of any width.

mod bitcount_bitpos;
mod combine;
mod field;
mod getbit_setbit;

use crate::engine::{BitmapError, Changed, Command, Ctx, Error, Event};

/// The family's rows.
pub const COMMANDS: &[Command] = &[
    bitcount_bitpos::BITCOUNT,
    field::BITFIELD,
    field::BITFIELD_RO,
    combine::BITOP,
    bitcount_bitpos::BITPOS,
    getbit_setbit::GETBIT,
    getbit_setbit::SETBIT,
];

/// The place of a bit, from a number that a client sent.
fn place(cx: &Ctx<'_>, number: Option<i64>) -> Result<u64, Error> {
    let place = number.and_then(|number| u64::try_from(number).ok());
    let is_within = |place: &u64| place / 8 < cx.settings().max_bulk_bytes as u64;
    Ok(place.filter(is_within).ok_or(BitmapError::Offset)?)
}

/// Changes the bits of a string that reaches at least as far as the bit at `last`. `act` answers how many changes it
/// made; to have made the string longer is one.
fn edit<R>(
    cx: &mut Ctx<'_>,
    key: &[u8],
    last: u64,
    act: impl FnOnce(&mut [u8], bool) -> (usize, R),
) -> Result<R, Error> {
    let length = usize::try_from(last / 8 + 1).map_err(|_| Error::StringTooLong)?;
    cx.edit_text(key, Event::string("setbit"), |bytes| {
        let grows = bytes.len() < length;
        if grows {
            lengthen(bytes, length)?;
        }
        let (count, result) = act(bytes, grows);
        Ok(Changed::by(count, result))
    })
}

/// Adds zeros, for which there may be no memory: a client asks for many of them in a few bytes.
fn lengthen(bytes: &mut Vec<u8>, length: usize) -> Result<(), Error> {
    bytes.try_reserve(length - bytes.len()).map_err(|_| Error::StringTooLong)?;
    if bytes.is_empty() {
        // Fresh memory is zero already and takes no room before it is used.
        *bytes = vec![0; length];
    } else {
        bytes.resize(length, 0);
    }
    Ok(())
}
