//! SISMEMBER, SMISMEMBER, SCARD and SMEMBERS: read the members of a set.

use super::write_members;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::value::Set;

pub(super) const SISMEMBER: Command = Command {
    name: "SISMEMBER",
    syntax: "key member",
    family: Family::Set,
    arity: Arity::Exactly(3),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO)],
    about: "Returns whether a set has a member.",
    run: sismember,
    ..Command::ROW
};

fn sismember(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, member) = (args.key()?, args.word()?);
    let (set, reply) = cx.read::<Set>(key)?;
    reply.integer(i64::from(set.is_some_and(|set| set.contains(member))));
    Ok(())
}

pub(super) const SMISMEMBER: Command = Command {
    name: "SMISMEMBER",
    syntax: "key member [member ...]",
    family: Family::Set,
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "6.2.0",
    cost: "O(N), N being the members asked for.",
    about: "Returns for several members whether a set has them.",
    run: smismember,
    ..Command::ROW
};

fn smismember(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let (set, reply) = cx.read::<Set>(key)?;
    reply.array(args.left());
    for member in args.rest() {
        reply.integer(i64::from(set.is_some_and(|set| set.contains(member))));
    }
    Ok(())
}

pub(super) const SCARD: Command = Command {
    name: "SCARD",
    syntax: "key",
    family: Family::Set,
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO)],
    about: "Returns the number of members of a set.",
    run: scard,
    ..Command::ROW
};

fn scard(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (set, reply) = cx.read::<Set>(args.key()?)?;
    reply.count(set.map_or(0, Set::len));
    Ok(())
}

pub(super) const SMEMBERS: Command = Command {
    name: "SMEMBERS",
    syntax: "key",
    family: Family::Set,
    arity: Arity::Exactly(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    cost: "O(N), N being the members of the set.",
    about: "Returns all members of a set.",
    tips: &["nondeterministic_output_order"],
    run: smembers,
    ..Command::ROW
};

fn smembers(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (set, reply) = cx.read::<Set>(args.key()?)?;
    write_members(reply, set);
    Ok(())
}
