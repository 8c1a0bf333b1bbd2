//! HGET, HMGET, HLEN and others: read some fields of a hash, or their number.

use super::{fields, remove_expired, write_field};
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::value::hash::Hash;

pub(super) const HGET: Command = Command {
    name: "HGET",
    syntax: "key field",
    family: Family::Hash,
    arity: Arity::Exactly(3),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "2.0.0",
    about: "Returns the value of a field.",
    run: hget,
    ..Command::ROW
};

fn hget(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, field) = (args.key()?, args.word()?);
    remove_expired(cx, key, std::iter::once(field));
    let (fields, reply) = fields(cx, key)?;
    write_field(reply, fields, field);
    Ok(())
}

pub(super) const HMGET: Command = Command {
    name: "HMGET",
    syntax: "key field [field ...]",
    arity: Arity::AtLeast(3),
    cost: "O(N) where N is how many fields are asked for.",
    about: "Returns the values of several fields.",
    run: hmget,
    ..HGET
};

fn hmget(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    remove_expired(cx, key, args.rest());
    let (fields, reply) = fields(cx, key)?;
    reply.array(args.left());
    for field in args.rest() {
        write_field(reply, fields, field);
    }
    Ok(())
}

pub(super) const HEXISTS: Command = Command {
    name: "HEXISTS",
    syntax: "key field",
    family: Family::Hash,
    arity: Arity::Exactly(3),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO)],
    since: "2.0.0",
    about: "Returns whether a hash has a field.",
    run: hexists,
    ..Command::ROW
};

fn hexists(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, field) = (args.key()?, args.word()?);
    remove_expired(cx, key, std::iter::once(field));
    let (fields, reply) = fields(cx, key)?;
    reply.integer(fields.is_some_and(|fields| fields.contains(field)).into());
    Ok(())
}

pub(super) const HSTRLEN: Command = Command {
    name: "HSTRLEN",
    since: "3.2.0",
    about: "Returns the length of the value of a field in bytes.",
    run: hstrlen,
    ..HEXISTS
};

fn hstrlen(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, field) = (args.key()?, args.word()?);
    remove_expired(cx, key, std::iter::once(field));
    let (fields, reply) = fields(cx, key)?;
    reply.count(fields.and_then(|fields| fields.get(field)).map_or(0, |value| value.len()));
    Ok(())
}

pub(super) const HLEN: Command = Command {
    name: "HLEN",
    syntax: "key",
    arity: Arity::Exactly(2),
    about: "Returns the number of fields of a hash.",
    run: hlen,
    ..HEXISTS
};

/// Counts expired fields that are still stored, as Redis does.
fn hlen(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (hash, reply) = cx.read::<Hash>(args.key()?)?;
    reply.count(hash.map_or(0, |hash| hash.len()));
    Ok(())
}
