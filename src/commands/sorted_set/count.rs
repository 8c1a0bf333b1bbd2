//! ZCARD, ZCOUNT and ZLEXCOUNT: count members. None of them visits the members that it counts.

use super::bounds::{Bounds, By};
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::value::zset::Zset;

pub(super) const ZCARD: Command = Command {
    name: "ZCARD",
    syntax: "key",
    family: Family::SortedSet,
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO)],
    since: "1.2.0",
    cost: "O(1)",
    about: "Returns the number of members of a sorted set.",
    run: zcard,
    ..Command::ROW
};

fn zcard(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (zset, reply) = cx.read::<Zset>(args.key()?)?;
    reply.count(zset.map_or(0, Zset::len));
    Ok(())
}

pub(super) const ZCOUNT: Command = Command {
    name: "ZCOUNT",
    syntax: "key min max",
    since: "2.0.0",
    cost: "O(log(N)), N being the members of the sorted set.",
    about: "Returns the number of members in a range of scores.",
    run: |cx, args| count(cx, args, By::Score),
    ..COUNTING
};

pub(super) const ZLEXCOUNT: Command = Command {
    name: "ZLEXCOUNT",
    syntax: "key min max",
    since: "2.8.9",
    cost: "O(log(N)), N being the members of the sorted set.",
    about: "Returns the number of members in a lexicographic range, of a sorted set with equal scores.",
    run: |cx, args| count(cx, args, By::Lex),
    ..COUNTING
};

const COUNTING: Command = Command {
    family: Family::SortedSet,
    arity: Arity::Exactly(4),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    ..Command::ROW
};

fn count(cx: &mut Ctx<'_>, mut args: Args<'_>, by: By) -> Result<(), Error> {
    let key = args.key()?;
    let bounds = Bounds::parse(by, args.word()?, args.word()?)?;
    let (zset, reply) = cx.read::<Zset>(key)?;
    reply.count(zset.map_or(0, |zset| bounds.positions(zset, false).len()));
    Ok(())
}
