//! BZPOPMIN, BZPOPMAX and BZMPOP: blocking forms of pop.
//!
//! Each does what its namesake without a `B` does, on the first of its keys that is a sorted set. If none is, the
//! client blocks on the keys, and the command runs again from the start when one of them becomes a sorted set.

use super::pop::{End, POPPED, Wanted, propagate, take};
use crate::engine::{Args, Arity, Block, Change, Command, Ctx, Error, Family, Flags, KeySpec};
use crate::value::zset::Zset;

pub(super) const BZPOPMIN: Command = Command {
    name: "BZPOPMIN",
    about: "Removes and returns the member with the lowest score of the first sorted set that exists, with its key; \
            may block.",
    run: |cx, args| pop(cx, args, End::Min),
    ..POPPING
};

pub(super) const BZPOPMAX: Command = Command {
    name: "BZPOPMAX",
    about: "Removes and returns the member with the highest score of the first sorted set that exists, with its key; \
            may block.",
    run: |cx, args| pop(cx, args, End::Max),
    ..POPPING
};

const POPPING: Command = Command {
    syntax: "key [key ...] timeout",
    family: Family::SortedSet,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::BLOCKING).and(Flags::FAST),
    keys: &[KeySpec::range(1, -2, 1, POPPED)],
    since: "5.0.0",
    history: &[Change::says("6.0.0", "The timeout may have a fraction.")],
    cost: "O(log(N)), N being the members of the sorted set.",
    ..Command::ROW
};

fn pop(cx: &mut Ctx<'_>, mut args: Args<'_>, end: End) -> Result<(), Error> {
    let keys = args.words(args.left() - 1)?;
    let deadline_ms = args.timeout(cx.now())?;
    for key in &keys {
        let popped = take(cx, key, end, 1, |reply, entries| {
            for entry in entries {
                reply.array(3);
                reply.bulk(key);
                reply.bulk(entry.member);
                reply.double(entry.score);
            }
        })?;
        if popped.is_some() {
            propagate(cx, key, end, None);
            return Ok(());
        }
    }
    cx.block(Block::on::<Zset>(&keys, deadline_ms), |reply| reply.null_array());
    Ok(())
}

pub(super) const BZMPOP: Command = Command {
    name: "BZMPOP",
    syntax: "timeout numkeys key [key ...] where:<MIN|MAX> [COUNT count]",
    family: Family::SortedSet,
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.and(Flags::BLOCKING),
    keys: &[KeySpec::counted(2, POPPED)],
    since: "7.0.0",
    cost: "O(K) + O(M*log(N)), K being the keys, N the members of the sorted set and M those popped.",
    about: "Removes and returns the members with the lowest or highest scores of the first sorted set that exists; \
            may block.",
    run: bzmpop,
    ..Command::ROW
};

fn bzmpop(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let mut timeout = args;
    args.word()?;
    let wanted = Wanted::parse(&mut args)?;
    let deadline_ms = timeout.timeout(cx.now())?;
    if !wanted.pop(cx)? {
        cx.block(Block::on::<Zset>(&wanted.keys, deadline_ms), |reply| reply.null_array());
    }
    Ok(())
}
