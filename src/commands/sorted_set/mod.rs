//! Sorted sets: members with scores, in order of (score, member bytes), under a key.
//!
//! Every range of a set, by rank, score or member, is first converted to positions (`bounds`), and positions are
//! counted, returned, copied or removed; so each kind of range is handled in one place. Scores are never NaN: an
//! argument that is NaN is refused, and arithmetic that would give NaN is refused (`ZINCRBY`) or gives 0 (`ZUNION`,
//! `ZINTER`), as in Redis.
//!
//! [`add`] adds members, [`remove`], [`pop`] and [`blocking`] remove them, [`score`], [`count`], [`range`], [`random`]
//! and [`scan`] read, and [`combine`] combines several sets.

pub(super) mod add;
mod blocking;
mod bounds;
mod combine;
mod count;
mod pop;
mod random;
mod range;
mod remove;
mod scan;
mod score;

use crate::engine::Command;
use crate::resp::{Protocol, Reply};
use crate::value::zset::{self, Entry, Zset};
use std::ops::Range;

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[
    blocking::BZMPOP,
    blocking::BZPOPMAX,
    blocking::BZPOPMIN,
    add::ZADD,
    count::ZCARD,
    count::ZCOUNT,
    combine::ZDIFF,
    combine::ZDIFFSTORE,
    add::ZINCRBY,
    combine::ZINTER,
    combine::ZINTERCARD,
    combine::ZINTERSTORE,
    count::ZLEXCOUNT,
    pop::ZMPOP,
    score::ZMSCORE,
    pop::ZPOPMAX,
    pop::ZPOPMIN,
    random::ZRANDMEMBER,
    range::ZRANGE,
    range::ZRANGEBYLEX,
    range::ZRANGEBYSCORE,
    range::ZRANGESTORE,
    score::ZRANK,
    remove::ZREM,
    remove::ZREMRANGEBYLEX,
    remove::ZREMRANGEBYRANK,
    remove::ZREMRANGEBYSCORE,
    range::ZREVRANGE,
    range::ZREVRANGEBYLEX,
    range::ZREVRANGEBYSCORE,
    score::ZREVRANK,
    scan::ZSCAN,
    score::ZSCORE,
    combine::ZUNION,
    combine::ZUNIONSTORE,
];

/// Entries of a sorted set, from either end.
#[derive(Clone)]
struct Entries<'a> {
    entries: zset::Iter<'a>,
    reversed: bool,
}

impl<'a> Entries<'a> {
    /// The entries at `positions`, the highest first if `reversed`.
    fn new(zset: &'a Zset, positions: Range<usize>, reversed: bool) -> Entries<'a> {
        Entries { entries: zset.range(positions), reversed }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        if self.reversed { self.entries.next_back() } else { self.entries.next() }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }

    fn fold<B, F: FnMut(B, Entry<'a>) -> B>(self, start: B, add: F) -> B {
        if self.reversed { self.entries.rfold(start, add) } else { self.entries.fold(start, add) }
    }
}

impl ExactSizeIterator for Entries<'_> {}

/// Replies with entries: their members, or with scores each member and its score, which RESP3 nests in an array of two.
fn write_entries<'a>(reply: &mut Reply<'_>, entries: impl ExactSizeIterator<Item = Entry<'a>>, with_scores: bool) {
    write_header(reply, entries.len(), with_scores);
    if with_scores {
        entries.for_each(|entry| write_entry(reply, entry, true));
    } else {
        reply.bulks(entries.map(|entry| entry.member));
    }
}

/// Writes the header of `count` entries, each of which [`write_entry`] writes.
fn write_header(reply: &mut Reply<'_>, count: usize, with_scores: bool) {
    let is_flat = with_scores && reply.protocol() == Protocol::Resp2;
    reply.array(if is_flat { count.saturating_mul(2) } else { count });
}

fn write_entry(reply: &mut Reply<'_>, entry: Entry<'_>, with_scores: bool) {
    if !with_scores {
        return reply.bulk(entry.member);
    }
    if reply.protocol() == Protocol::Resp3 {
        reply.array(2);
    }
    reply.bulk(entry.member);
    reply.double(entry.score);
}

/// Replies with an array of a member and its score.
fn write_pair(reply: &mut Reply<'_>, entry: Entry<'_>) {
    reply.array(2);
    reply.bulk(entry.member);
    reply.double(entry.score);
}
