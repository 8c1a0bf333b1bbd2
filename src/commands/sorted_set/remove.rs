//! ZREM and ZREMRANGEBY*: remove members by name or by range. A set that loses its last member is deleted.

use super::bounds::{Bounds, By};
use crate::engine::{
    Args, Arity, Change, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Missing,
};
use crate::value::Value;
use crate::value::zset::Zset;

pub(super) const ZREM: Command = Command {
    name: "ZREM",
    syntax: "key member [member ...]",
    family: Family::SortedSet,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::DELETE))],
    since: "1.2.0",
    history: &[Change::says("2.4.0", "Takes several members.")],
    cost: "O(M*log(N)), N being the members of the sorted set and M those to be removed.",
    about: "Removes members from a sorted set, and deletes the set with its last member.",
    run: zrem,
    ..Command::ROW
};

fn zrem(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let removed = cx.update(key, Missing::Skip, Event::sorted_set("zrem"), |zset: &mut Zset, _| {
        let removed = args.rest().filter(|member| zset.remove(member).is_some()).count();
        Ok(Changed::by(removed, removed))
    })?;
    cx.reply().count(removed.unwrap_or(0));
    Ok(())
}

pub(super) const ZREMRANGEBYRANK: Command = Command {
    name: "ZREMRANGEBYRANK",
    syntax: "key start stop",
    since: "2.0.0",
    about: "Removes the members in a range of ranks, and deletes the set with its last member.",
    run: |cx, args| remove_range(cx, args, By::Rank, Event::sorted_set("zremrangebyrank")),
    ..REMOVING_RANGE
};

pub(super) const ZREMRANGEBYSCORE: Command = Command {
    name: "ZREMRANGEBYSCORE",
    syntax: "key min max",
    since: "1.2.0",
    about: "Removes the members in a range of scores, and deletes the set with its last member.",
    run: |cx, args| remove_range(cx, args, By::Score, Event::sorted_set("zremrangebyscore")),
    ..REMOVING_RANGE
};

pub(super) const ZREMRANGEBYLEX: Command = Command {
    name: "ZREMRANGEBYLEX",
    syntax: "key min max",
    since: "2.8.9",
    about: "Removes the members between two, byte by byte, from a sorted set with equal scores, and the set with its \
            last member.",
    run: |cx, args| remove_range(cx, args, By::Lex, Event::sorted_set("zremrangebylex")),
    ..REMOVING_RANGE
};

const REMOVING_RANGE: Command = Command {
    family: Family::SortedSet,
    arity: Arity::Exactly(4),
    flags: Flags::WRITE,
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::DELETE))],
    cost: "O(log(N)+M), N being the members of the sorted set and M those removed.",
    ..Command::ROW
};

fn remove_range(cx: &mut Ctx<'_>, mut args: Args<'_>, by: By, event: Event) -> Result<(), Error> {
    let key = args.key()?;
    let bounds = Bounds::parse(by, args.word()?, args.word()?)?;
    let removed = cx.update(key, Missing::Skip, event, |zset: &mut Zset, _| {
        let (removed, rest) = zset.cut_range(bounds.positions(zset, false));
        Ok(Changed::by(removed, removed).leaving(rest.map(Value::Zset)))
    })?;
    cx.reply().count(removed.unwrap_or(0));
    Ok(())
}
