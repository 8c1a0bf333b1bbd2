//! Bitmaps: the bits of a string, from the highest bit of its first byte on.
//!
//! They are no type of their own: a key holds a string, and bits after its end are zero. Setting such a bit makes the
//! string longer, and raw, as OBJECT ENCODING shows. A bit that is set to its present value causes no notification. No
//! bit can be beyond `proto-max-bulk-len` bytes.
//!
//! [`getbit_setbit`] reads and sets one bit, [`bitcount_bitpos`] searches a range, [`combine`] combines several
//! strings, and [`field`] reads and writes integers of any width.

mod bitcount_bitpos;
mod combine;
mod field;
mod getbit_setbit;

use crate::engine::{BitmapError, Changed, Command, Ctx, Error, Event};

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[
    bitcount_bitpos::BITCOUNT,
    field::BITFIELD,
    field::BITFIELD_RO,
    combine::BITOP,
    bitcount_bitpos::BITPOS,
    getbit_setbit::GETBIT,
    getbit_setbit::SETBIT,
];

/// The position of a bit, from a number that a client sent.
fn place(cx: &Ctx<'_>, number: Option<i64>) -> Result<u64, Error> {
    let place = number.and_then(|number| u64::try_from(number).ok());
    let is_within = |place: &u64| place / 8 < cx.settings().max_bulk_bytes as u64;
    Ok(place.filter(is_within).ok_or(BitmapError::Offset)?)
}

/// Changes the bits of a string after extending it to the bit at `last`. `act` returns the number of changes that it
/// made; an extension counts as a change, too.
fn edit<R>(
    cx: &mut Ctx<'_>,
    key: &[u8],
    last: u64,
    act: impl FnOnce(&mut [u8], bool) -> (usize, R),
) -> Result<R, Error> {
    let length = usize::try_from(last / 8 + 1).map_err(|_| Error::StringTooLong)?;
    cx.update_text(key, Event::string("setbit"), |bytes| {
        let grows = bytes.len() < length;
        if grows {
            lengthen(bytes, length)?;
        }
        let (count, result) = act(bytes, grows);
        Ok(Changed::by(count, result))
    })
}

/// Appends zeros, for which there may be no memory: a client can request many of them with a few bytes.
fn lengthen(bytes: &mut Vec<u8>, length: usize) -> Result<(), Error> {
    bytes.try_reserve(length - bytes.len()).map_err(|_| Error::StringTooLong)?;
    if bytes.is_empty() {
        // Fresh memory is already zero and is not resident before it is used.
        *bytes = vec![0; length];
    } else {
        bytes.resize(length, 0);
    }
    Ok(())
}
