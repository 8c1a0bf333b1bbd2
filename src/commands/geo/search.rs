//! GEOSEARCH and GEOSEARCHSTORE, and the code that the older commands share with them.
//!
//! Cells of the map are ranges of the sorted set, and each member in them is tested; so the cost of a search depends on
//! the number of near members, not on the size of the set. Without an order members are returned cell by cell.

use super::format_distance;
use super::member::write_position;
use super::query::{Kind, Order, Query, Target};
use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec};
use crate::resp::Reply;
use crate::value::Zset;
use crate::value::geo::nearest::sort_first;
use crate::value::geo::{Area, Cell, Position};
use crate::value::zset::ScoreRange;
use std::cmp::Ordering;
use std::ops::Bound;

pub(super) const GEOSEARCH: Command = Command {
    name: "GEOSEARCH",
    syntax: "key from:<FROMMEMBER member|FROMLONLAT fromlonlat:<longitude latitude>> \
             by:<circle:<BYRADIUS radius unit:<M|KM|FT|MI>>|box:<BYBOX width height unit:<M|KM|FT|MI>>> \
             order:[ASC|DESC] count-block:[COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]",
    family: Family::Geo,
    arity: Arity::AtLeast(7),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    about: "Returns the members in a circle or a box.",
    run: |cx, args| search(cx, args, Kind::Search),
    ..SEARCHING
};

pub(super) const GEOSEARCHSTORE: Command = Command {
    name: "GEOSEARCHSTORE",
    syntax: "destination source from:<FROMMEMBER member|FROMLONLAT fromlonlat:<longitude latitude>> \
             by:<circle:<BYRADIUS radius unit:<M|KM|FT|MI>>|box:<BYBOX width height unit:<M|KM|FT|MI>>> \
             order:[ASC|DESC] count-block:[COUNT count [ANY]] [STOREDIST]",
    arity: Arity::AtLeast(8),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::one(KeyFlags::OW.and(KeyFlags::UPDATE)), KeySpec::at(2, KeyFlags::RO.and(KeyFlags::ACCESS))],
    about: "Stores the members in a circle or a box in a key.",
    run: |cx, args| search(cx, args, Kind::Store),
    ..SEARCHING
};

const SEARCHING: Command = Command {
    family: Family::Geo,
    since: "6.2.0",
    history: &[Change::says("7.0.0", "Units may be in upper case.")],
    cost: "O(N+log(M)), N being the members in and around the shape and M those of the sorted set.",
    ..Command::ROW
};

/// The common implementation of all six commands.
pub(super) fn search(cx: &mut Ctx<'_>, mut args: Args<'_>, kind: Kind) -> Result<(), Error> {
    let name = args.previous();
    let target = if kind == Kind::Store { Some(args.key()?) } else { None };
    let key = args.key()?;
    let limits = cx.settings().packed_zset;
    let (zset, reply) = cx.read::<Zset>(key)?;
    let query = Query::parse(&mut args, kind, name, target, zset)?;
    let found = zset.zip(query.area()).map(|(zset, area)| find(zset, &area, &query)).unwrap_or_default();
    let Some(Target { key: target, with_distances }) = query.target else {
        write_all(reply, &found, &query);
        return Ok(());
    };
    let score = |found: &Found<'_>| if with_distances { found.distance_m / query.unit_m } else { found.score };
    let stored = Zset::from_entries(found.iter().map(|found| (found.member, score(found))), &limits);
    let count = stored.len();
    let event = if kind == Kind::Store { "geosearchstore" } else { "georadiusstore" };
    cx.store(target, stored, Event::sorted_set(event));
    // Each stored member counts as a change; the first is already counted.
    cx.stats_mut().changes += count.saturating_sub(1) as u64;
    cx.reply().count(count);
    Ok(())
}

/// A member in the area.
#[derive(Clone, Copy, Debug)]
struct Found<'z> {
    member: &'z [u8],
    score: f64,
    position: Position,
    distance_m: f64,
}

/// The members that a query returns, in its order.
fn find<'z>(zset: &'z Zset, area: &Area, query: &Query<'_>) -> Vec<Found<'z>> {
    let enough = query.count.filter(|_| query.any).unwrap_or(usize::MAX);
    let mut found = collect(zset, area, enough);
    let wanted = query.count.unwrap_or(usize::MAX).min(found.len());
    let order = match query.order {
        None if query.count.is_some() && !query.any => Some(Order::Ascending),
        order => order,
    };
    let compare = |one: &Found<'_>, other: &Found<'_>| one.distance_m.total_cmp(&other.distance_m);
    match order {
        None => {}
        Some(Order::Ascending) => sort(&mut found, wanted, compare),
        Some(Order::Descending) => sort(&mut found, wanted, |one, other| compare(other, one)),
    }
    found.truncate(wanted);
    found
}

/// Sorts all members, or as many as requested; equal distances have Redis's order.
fn sort(found: &mut [Found<'_>], wanted: usize, compare: impl Fn(&Found<'_>, &Found<'_>) -> Ordering) {
    if wanted == found.len() {
        found.sort_by(compare);
    } else {
        sort_first(found, wanted, compare);
    }
}

/// The members in an area, cell by cell, up to the maximum.
fn collect<'z>(zset: &'z Zset, area: &Area, enough: usize) -> Vec<Found<'z>> {
    let mut all = Vec::new();
    for cell in area.cells() {
        let members = zset.range(zset.by_score(&scores(cell)));
        let near = members.filter_map(|entry| {
            let position = Position::of_score(entry.score);
            let distance_m = area.distance_m(position)?;
            Some(Found { member: entry.member, score: entry.score, position, distance_m })
        });
        all.extend(near.take(enough - all.len()));
        if all.len() == enough {
            break;
        }
    }
    all
}

fn scores(cell: Cell) -> ScoreRange {
    ScoreRange { min: Bound::Included(cell.first_score() as f64), max: Bound::Excluded(cell.end_score() as f64) }
}

fn write_all(reply: &mut Reply<'_>, found: &[Found<'_>], query: &Query<'_>) {
    let details = [query.with_distance, query.with_score, query.with_position];
    let details = details.into_iter().filter(|is_wanted| *is_wanted).count();
    reply.array(found.len());
    if details == 0 {
        return reply.bulks(found.iter().map(|found| found.member));
    }
    for found in found {
        reply.array(1 + details);
        reply.bulk(found.member);
        if query.with_distance {
            reply.bulk(format_distance(found.distance_m / query.unit_m).as_bytes());
        }
        if query.with_score {
            reply.integer(found.score as i64);
        }
        if query.with_position {
            write_position(reply, found.position);
        }
    }
}
