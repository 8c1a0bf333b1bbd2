//! INCR, DECR and related commands: strings as numbers. A missing key counts as 0, and the deadline stays.

use super::write_text;
use crate::engine::exec::operations;
use crate::engine::{
    Args, Arity, Command, Ctx, Deadline, Error, Event, Family, Flags, KeyFlags, KeySpec, Lookup, Peek,
};
use crate::keyspace::New;
use crate::value::TextView;
use crate::value::number::LongDouble;

const INCRBY_EVENT: Event = Event::string("incrby");
const INCRBYFLOAT_EVENT: Event = Event::string("incrbyfloat");

/// Fields shared by these rows.
const COUNTER: Command = Command {
    family: Family::String,
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE))],
    ..Command::ROW
};

pub(super) const INCR: Command = Command {
    name: "INCR",
    syntax: "key",
    arity: Arity::Exactly(2),
    about: "Increments an integer by one.",
    run: |cx, mut args| add(cx, args.key()?, 1),
    ..COUNTER
};

pub(super) const DECR: Command = Command {
    name: "DECR",
    syntax: "key",
    arity: Arity::Exactly(2),
    about: "Decrements an integer by one.",
    run: |cx, mut args| add(cx, args.key()?, -1),
    ..COUNTER
};

pub(super) const INCRBY: Command = Command {
    name: "INCRBY",
    syntax: "key increment",
    arity: Arity::Exactly(3),
    about: "Increments an integer by a number.",
    run: |cx, mut args| add(cx, args.key()?, args.integer()?),
    ..COUNTER
};

pub(super) const DECRBY: Command = Command {
    name: "DECRBY",
    syntax: "key decrement",
    arity: Arity::Exactly(3),
    about: "Decrements an integer by a number.",
    run: decrby,
    ..COUNTER
};

fn decrby(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, decrement) = (args.key()?, args.integer()?);
    add(cx, key, decrement.checked_neg().ok_or(Error::DecrementOverflow)?)
}

fn add(cx: &mut Ctx<'_>, key: &[u8], increment: i64) -> Result<(), Error> {
    let sum = cx.update_int(key, INCRBY_EVENT, |text| {
        let number = text.map_or(Some(0), |text| text.as_int()).ok_or(Error::NotAnInteger)?;
        number.checked_add(increment).ok_or(Error::IncrementOverflow)
    })?;
    cx.reply().integer(sum);
    Ok(())
}

pub(super) const INCRBYFLOAT: Command = Command {
    name: "INCRBYFLOAT",
    syntax: "key increment",
    arity: Arity::Exactly(3),
    since: "2.6.0",
    about: "Increments a floating-point number, with the precision of the x87's 80 bits.",
    run: incrbyfloat,
    ..COUNTER
};

fn incrbyfloat(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, increment) = (args.key()?, args.word()?);
    let old = match cx.lookup(key, Lookup::WRITE).map(Peek::text).transpose()? {
        Some(text) => LongDouble::parse(text.as_bytes(&mut itoa::Buffer::new())).ok_or(Error::NotAFloat)?,
        None => LongDouble::ZERO,
    };
    let increment = LongDouble::parse(increment).ok_or(Error::NotAFloat)?;
    let sum = old.checked_add(increment).ok_or(Error::NotFinite)?;
    let mut digits = Vec::new();
    sum.write(&mut digits);
    let text = TextView::Bytes(&digits);
    cx.put(key, New::Text(text), Deadline::Keep, INCRBYFLOAT_EVENT);
    write_text(cx.reply(), text);
    if operations::is_propagating(cx) {
        operations::propagate_instead(cx, &[b"SET", key, &digits, b"KEEPTTL"]);
    }
    Ok(())
}
