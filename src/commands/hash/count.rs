//! HINCRBY and HINCRBYFLOAT: increment numeric fields. A missing field counts as 0; its deadline stays.

use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Missing};
use crate::value::Item;
use crate::value::hash::Hash;
use crate::value::number::LongDouble;

const HINCRBY_EVENT: Event = Event::hash("hincrby");
const HINCRBYFLOAT_EVENT: Event = Event::hash("hincrbyfloat");

pub(super) const HINCRBY: Command = Command {
    name: "HINCRBY",
    syntax: "key field increment",
    family: Family::Hash,
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE))],
    since: "2.0.0",
    about: "Increments the integer value of a field.",
    run: hincrby,
    ..Command::ROW
};

fn hincrby(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, field, increment) = (args.key()?, args.word()?, args.integer()?);
    let sum = change(cx, key, field, HINCRBY_EVENT, |value, digits| {
        let number = value.map_or(Some(0), |value| value.as_int()).ok_or(Error::HashValueNotAnInteger)?;
        let sum = number.checked_add(increment).ok_or(Error::IncrementOverflow)?;
        digits.extend_from_slice(itoa::Buffer::new().format(sum).as_bytes());
        Ok(sum)
    })?;
    cx.reply().integer(sum);
    Ok(())
}

pub(super) const HINCRBYFLOAT: Command = Command {
    name: "HINCRBYFLOAT",
    since: "2.6.0",
    about: "Increments the floating-point value of a field, with the precision of the x87's 80 bits.",
    run: hincrbyfloat,
    ..HINCRBY
};

fn hincrbyfloat(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, field, increment) = (args.key()?, args.word()?, args.word()?);
    let increment = LongDouble::parse(increment).ok_or(Error::NotAFloat)?;
    if !increment.is_finite() {
        return Err(Error::NanOrInfinity);
    }
    let digits = change(cx, key, field, HINCRBYFLOAT_EVENT, |value, digits| {
        let number = match value {
            Some(value) => LongDouble::parse(&value.to_cow()).ok_or(Error::HashValueNotAFloat)?,
            None => LongDouble::ZERO,
        };
        number.checked_add(increment).ok_or(Error::NotFinite)?.write(digits);
        Ok(digits.clone())
    })?;
    cx.reply().bulk(&digits);
    if operations::is_propagating(cx) {
        operations::propagate_instead(cx, &[b"HSETEX", key, b"KEEPTTL", b"FIELDS", b"1", field, &digits]);
    }
    Ok(())
}

/// Sets a field to the digits that `act` writes; `act` receives the field's present value.
fn change<R>(
    cx: &mut Ctx<'_>,
    key: &[u8],
    field: &[u8],
    event: Event,
    act: impl FnOnce(Option<Item<'_>>, &mut Vec<u8>) -> Result<R, Error>,
) -> Result<R, Error> {
    let (limits, due_ms) = (cx.settings().packed_hash, cx.due_ms());
    super::remove_expired(cx, key, std::iter::once(field));
    let result = cx.update(key, Missing::Create, event, |hash: &mut Hash, _| {
        let mut digits = Vec::new();
        let result = act(hash.at(due_ms).get(field), &mut digits)?;
        hash.update(field, &digits, &limits);
        Ok(Changed::by(1, result))
    })?;
    Ok(result.expect("a hash is made where there is none"))
}
