//! ZSCORE, ZMSCORE, ZRANK and ZREVRANK: the score and the rank of a member.

use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::resp::Reply;
use crate::value::zset::Zset;

pub(super) const ZSCORE: Command = Command {
    name: "ZSCORE",
    syntax: "key member",
    arity: Arity::Exactly(3),
    since: "1.2.0",
    cost: "O(1)",
    about: "Returns the score of a member.",
    run: zscore,
    ..LOOKING
};

fn zscore(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, member) = (args.key()?, args.word()?);
    let (zset, reply) = cx.read::<Zset>(key)?;
    write_score(reply, zset.and_then(|zset| zset.score(member)));
    Ok(())
}

pub(super) const ZMSCORE: Command = Command {
    name: "ZMSCORE",
    syntax: "key member [member ...]",
    arity: Arity::AtLeast(3),
    since: "6.2.0",
    cost: "O(N), N being the members asked for.",
    about: "Returns the scores of several members.",
    run: zmscore,
    ..LOOKING
};

fn zmscore(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let (zset, reply) = cx.read::<Zset>(key)?;
    reply.array(args.left());
    for member in args.rest() {
        write_score(reply, zset.and_then(|zset| zset.score(member)));
    }
    Ok(())
}

pub(super) const ZRANK: Command = Command {
    name: "ZRANK",
    history: &[Change::says("7.2.0", "Accepts `WITHSCORE`.")],
    about: "Returns the rank of a member, by ascending score.",
    run: |cx, args| rank(cx, args, Order::Ascending),
    ..RANKING
};

pub(super) const ZREVRANK: Command = Command {
    name: "ZREVRANK",
    history: &[Change::says("7.2.0", "Accepts `WITHSCORE`.")],
    about: "Returns the rank of a member, by descending score.",
    run: |cx, args| rank(cx, args, Order::Descending),
    ..RANKING
};

const RANKING: Command = Command {
    syntax: "key member [WITHSCORE]",
    arity: Arity::AtLeast(3),
    since: "2.0.0",
    cost: "O(log(N)), N being the members of the sorted set.",
    ..LOOKING
};

const LOOKING: Command = Command {
    family: Family::SortedSet,
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    ..Command::ROW
};

/// The end from which ranks are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Ascending,
    Descending,
}

fn rank(cx: &mut Ctx<'_>, mut args: Args<'_>, order: Order) -> Result<(), Error> {
    let (key, member) = (args.key()?, args.word()?);
    if args.left() > 1 {
        let name = if order == Order::Ascending { "zrank" } else { "zrevrank" };
        return Err(Error::WrongArity(name.to_owned()));
    }
    let with_score = args.take("WITHSCORE");
    args.end()?;
    let (zset, reply) = cx.read::<Zset>(key)?;
    let found = zset.and_then(|zset| {
        let (position, score) = zset.rank(member)?;
        Some((if order == Order::Ascending { position } else { zset.len() - 1 - position }, score))
    });
    match found {
        Some((rank, score)) if with_score => {
            reply.array(2);
            reply.count(rank);
            reply.double(score);
        }
        Some((rank, _)) => reply.count(rank),
        None if with_score => reply.null_array(),
        None => reply.null(),
    }
    Ok(())
}

fn write_score(reply: &mut Reply<'_>, score: Option<f64>) {
    match score {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
}
