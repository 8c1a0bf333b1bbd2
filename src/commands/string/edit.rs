//! APPEND and SETRANGE: change the bytes of a string in place. The string is raw afterwards; its deadline stays.

use super::put_word;
use crate::engine::{
    Args, Arity, Changed, Command, Ctx, Deadline, Error, Event, Family, Flags, KeyFlags, KeySpec, Lookup, Peek,
};

const APPEND_EVENT: Event = Event::string("append");
const SETRANGE_EVENT: Event = Event::string("setrange");

pub(super) const APPEND: Command = Command {
    name: "APPEND",
    syntax: "key value",
    family: Family::String,
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::INSERT))],
    since: "2.0.0",
    cost: "O(1) on average, as a string that grows keeps room to grow",
    about: "Appends bytes to a string, which is created if it does not exist.",
    run: append,
    ..Command::ROW
};

fn append(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, value) = (args.key()?, args.word()?);
    let Some(text) = cx.lookup(key, Lookup::WRITE).map(Peek::text).transpose()? else {
        put_word(cx, &args, key, value, Deadline::Clear, APPEND_EVENT);
        cx.reply().count(value.len());
        return Ok(());
    };
    let length = text.len();
    admit_length(cx, length, value.len())?;
    cx.update_text(key, APPEND_EVENT, |bytes| {
        bytes.extend_from_slice(value);
        Ok(Changed::by(1, ()))
    })?;
    cx.reply().count(length + value.len());
    Ok(())
}

pub(super) const SETRANGE: Command = Command {
    name: "SETRANGE",
    syntax: "key offset value",
    family: Family::String,
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::UPDATE))],
    since: "2.2.0",
    cost: "O(M) where M is how many bytes are written, those before the offset counted if they are new",
    about: "Overwrites a part of a string from an offset on, padded with zeros if it was shorter.",
    run: setrange,
    ..Command::ROW
};

fn setrange(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, offset, value) = (args.key()?, args.integer()?, args.word()?);
    let offset = usize::try_from(offset).map_err(|_| Error::OffsetOutOfRange)?;
    let length = cx.lookup(key, Lookup::WRITE).map(Peek::text).transpose()?.map_or(0, |text| text.len());
    if value.is_empty() {
        cx.reply().count(length);
        return Ok(());
    }
    admit_length(cx, offset, value.len())?;
    let end = offset + value.len();
    if end > length {
        admit_memory(end)?;
    }
    cx.update_text(key, SETRANGE_EVENT, |bytes| {
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset..end].copy_from_slice(value);
        Ok(Changed::by(1, ()))
    })?;
    cx.reply().count(length.max(end));
    Ok(())
}

/// Refuses a string of `length` and `more` bytes if that exceeds the maximum.
fn admit_length(cx: &Ctx<'_>, length: usize, more: usize) -> Result<(), Error> {
    match length.checked_add(more) {
        Some(total) if total <= cx.settings().max_bulk_bytes => Ok(()),
        _ => Err(Error::StringTooLong),
    }
}

/// Refuses a string for which there is no memory: the only length that a client can request without sending as many
/// bytes.
fn admit_memory(length: usize) -> Result<(), Error> {
    Vec::<u8>::new().try_reserve_exact(length).map_err(|_| Error::StringTooLong)
}
