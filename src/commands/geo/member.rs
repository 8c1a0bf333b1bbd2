//! GEOPOS, GEOHASH and GEODIST: the position of a member, and the distance between two members.

use super::{format_distance, unit};
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::resp::Reply;
use crate::value::Zset;
use crate::value::geo::Position;

const LOOKING: Command = Command {
    family: Family::Geo,
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "3.2.0",
    cost: "O(1) for each member",
    ..Command::ROW
};

pub(super) const GEODIST: Command = Command {
    name: "GEODIST",
    syntax: "key member1 member2 unit:[M|KM|FT|MI]",
    arity: Arity::AtLeast(4),
    cost: "O(1)",
    about: "Returns the distance between two members.",
    run: geodist,
    ..LOOKING
};

fn geodist(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, one, other) = (args.key()?, args.word()?, args.word()?);
    let metres = match args.left() {
        0 => 1.0,
        1 => unit(&mut args)?,
        _ => return Err(Error::Syntax),
    };
    let (zset, reply) = cx.read::<Zset>(key)?;
    match position_of(zset, one).zip(position_of(zset, other)) {
        Some((one, other)) => reply.bulk(format_distance(one.distance_m(other) / metres).as_bytes()),
        None => reply.null(),
    }
    Ok(())
}

pub(super) const GEOHASH: Command = Command {
    name: "GEOHASH",
    syntax: "key [member [member ...]]",
    about: "Returns the positions of members as geohashes of eleven characters.",
    run: |cx, args| {
        each(cx, args, |reply, position| match position {
            Some(position) => reply.bulk(&position.geohash()),
            None => reply.null(),
        })
    },
    ..LOOKING
};

pub(super) const GEOPOS: Command = Command {
    name: "GEOPOS",
    syntax: "key [member [member ...]]",
    about: "Returns the longitudes and latitudes of members.",
    run: |cx, args| {
        each(cx, args, |reply, position| match position {
            Some(position) => write_position(reply, position),
            None => reply.null_array(),
        })
    },
    ..LOOKING
};

/// Writes a reply for the position of each member.
fn each(cx: &mut Ctx<'_>, mut args: Args<'_>, write: impl Fn(&mut Reply<'_>, Option<Position>)) -> Result<(), Error> {
    let (zset, reply) = cx.read::<Zset>(args.key()?)?;
    reply.array(args.left());
    args.rest().for_each(|member| write(reply, position_of(zset, member)));
    Ok(())
}

/// The position of a member, if it exists.
pub(super) fn position_of(zset: Option<&Zset>, member: &[u8]) -> Option<Position> {
    zset.and_then(|zset| zset.score(member)).map(Position::of_score)
}

pub(super) fn write_position(reply: &mut Reply<'_>, position: Position) {
    reply.array(2);
    reply.double(position.longitude);
    reply.double(position.latitude);
}
