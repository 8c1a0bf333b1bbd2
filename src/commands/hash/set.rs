//! HSET, its older name HMSET, and HSETNX: set fields. A field that is set loses its deadline.

use crate::engine::{
    Args, Arity, Change, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Missing,
};
use crate::value::hash::Hash;

/// The event for fields that were set.
pub(super) const HSET_EVENT: Event = Event::hash("hset");

pub(super) const HSET: Command = Command {
    name: "HSET",
    syntax: "key field value [field value ...]",
    family: Family::Hash,
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::UPDATE))],
    since: "2.0.0",
    history: &[Change::says("4.0.0", "Takes several fields.")],
    cost: "O(1) for each field, so O(N) for N fields.",
    about: "Sets the values of fields of a hash.",
    run: hset,
    ..Command::ROW
};

fn hset(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let added = set(cx, args, "hset")?;
    cx.reply().count(added);
    Ok(())
}

pub(super) const HMSET: Command = Command {
    name: "HMSET",
    history: &[],
    cost: "O(N) where N is how many fields are set.",
    about: "Sets the values of fields of a hash.",
    deprecated: Some(("4.0.0", "`HSET` with multiple field-value pairs")),
    run: hmset,
    ..HSET
};

fn hmset(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    set(cx, args, "hmset")?;
    cx.reply().ok();
    Ok(())
}

/// Sets all remaining pairs and returns how many of their fields are new.
fn set(cx: &mut Ctx<'_>, mut args: Args<'_>, command: &str) -> Result<usize, Error> {
    let key = args.key()?;
    if !args.left().is_multiple_of(2) {
        return Err(Error::WrongArity(command.to_owned()));
    }
    let limits = cx.settings().packed_hash;
    let pairs = args.left() / 2;
    let added = cx.update(key, Missing::Create, HSET_EVENT, |hash: &mut Hash, _| {
        hash.make_room(pairs, &limits);
        let mut added = 0;
        while let (Ok(field), Ok(value)) = (args.word(), args.word()) {
            added += usize::from(hash.insert(field, value, &limits));
        }
        Ok(Changed::by(pairs, added))
    })?;
    Ok(added.unwrap_or_default())
}

pub(super) const HSETNX: Command = Command {
    name: "HSETNX",
    syntax: "key field value",
    arity: Arity::Exactly(4),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::INSERT))],
    history: &[],
    cost: "O(1)",
    about: "Sets the value of a field only if the field does not exist.",
    run: hsetnx,
    ..HSET
};

fn hsetnx(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, field, value) = (args.key()?, args.word()?, args.word()?);
    let (limits, due_ms) = (cx.settings().packed_hash, cx.due_ms());
    super::remove_expired(cx, key, std::iter::once(field));
    let added = cx.update(key, Missing::Create, HSET_EVENT, |hash: &mut Hash, _| {
        let is_new = !hash.at(due_ms).contains(field);
        if is_new {
            hash.insert(field, value, &limits);
        }
        Ok(Changed::by(is_new.into(), is_new))
    })?;
    cx.reply().integer(added.unwrap_or_default().into());
    Ok(())
}
