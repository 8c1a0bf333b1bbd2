//! ZRANGE, the six older commands that its options replace, and ZRANGESTORE: ranges of a sorted set.
//!
//! All of them are one [`Query`] with some options fixed by the command's name ([`Fixed`]). A query becomes positions,
//! and the entries there are written straight into the reply, from either end, without a copy in between.

use super::bounds::{Bounds, By, among_scores, is_among_scores};
use super::{Entries, write_entries};
use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec};
use crate::value::zset::{Entry, Limits, Zset};
use std::ops::Range;

pub(super) const ZRANGE: Command = Command {
    name: "ZRANGE",
    syntax: "key start stop sortby:[BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
    since: "1.2.0",
    history: &[Change::brings("6.2.0", &["BYSCORE", "BYLEX", "REV", "LIMIT"])],
    cost: COST,
    about: "Returns the members in a range of ranks, of scores or of members.",
    run: |cx, args| range(cx, args, Fixed::NOTHING),
    ..ANSWERING
};

pub(super) const ZREVRANGE: Command = Command {
    name: "ZREVRANGE",
    syntax: "key start stop [WITHSCORES]",
    since: "1.2.0",
    cost: COST,
    about: "Returns the members in a range of ranks, in descending order.",
    deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` argument")),
    run: |cx, args| range(cx, args, Fixed::descending(By::Rank)),
    ..ANSWERING
};

pub(super) const ZRANGEBYSCORE: Command = Command {
    name: "ZRANGEBYSCORE",
    syntax: "key min max [WITHSCORES] [LIMIT offset count]",
    since: "1.0.5",
    history: &[Change::brings("2.0.0", &["WITHSCORES"])],
    about: "Returns the members in a range of scores.",
    deprecated: Some(("6.2.0", "`ZRANGE` with the `BYSCORE` argument")),
    run: |cx, args| range(cx, args, Fixed::ascending(By::Score)),
    ..ANSWERING
};

pub(super) const ZREVRANGEBYSCORE: Command = Command {
    name: "ZREVRANGEBYSCORE",
    syntax: "key max min [WITHSCORES] [LIMIT offset count]",
    since: "2.2.0",
    history: &[Change::says("2.1.6", "Exclusive bounds.")],
    about: "Returns the members in a range of scores, in descending order.",
    deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments")),
    run: |cx, args| range(cx, args, Fixed::descending(By::Score)),
    ..ANSWERING
};

pub(super) const ZRANGEBYLEX: Command = Command {
    name: "ZRANGEBYLEX",
    syntax: "key min max [LIMIT offset count]",
    since: "2.8.9",
    about: "Returns the members in a lexicographic range, of a sorted set with equal scores.",
    deprecated: Some(("6.2.0", "`ZRANGE` with the `BYLEX` argument")),
    run: |cx, args| range(cx, args, Fixed::ascending(By::Lex)),
    ..ANSWERING
};

pub(super) const ZREVRANGEBYLEX: Command = Command {
    name: "ZREVRANGEBYLEX",
    syntax: "key max min [LIMIT offset count]",
    since: "2.8.9",
    about: "Returns the members in a lexicographic range, of a sorted set with equal scores, in descending order.",
    deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments")),
    run: |cx, args| range(cx, args, Fixed::descending(By::Lex)),
    ..ANSWERING
};

const ANSWERING: Command = Command {
    family: Family::SortedSet,
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    cost: "O(log(N)+M), N being the members of the sorted set and M those answered: O(log(N)) when LIMIT keeps M \
           constant.",
    ..Command::ROW
};

const COST: &str = "O(log(N)+M), N being the members of the sorted set and M those answered.";

fn range(cx: &mut Ctx<'_>, mut args: Args<'_>, fixed: Fixed) -> Result<(), Error> {
    let key = args.key()?;
    let query = Query::parse(&mut args, fixed)?;
    let (zset, reply) = cx.read::<Zset>(key)?;
    match zset {
        Some(zset) => {
            let entries = Entries::new(zset, query.positions(zset), query.reversed);
            write_entries(reply, entries, query.with_scores);
        }
        None => reply.array(0),
    }
    Ok(())
}

pub(super) const ZRANGESTORE: Command = Command {
    name: "ZRANGESTORE",
    syntax: "dst src min max sortby:[BYSCORE|BYLEX] [REV] [LIMIT offset count]",
    family: Family::SortedSet,
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::one(KeyFlags::OW.and(KeyFlags::UPDATE)), KeySpec::at(2, KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "6.2.0",
    cost: "O(log(N)+M), N being the members of the sorted set and M those stored.",
    about: "Stores the members in a range of ranks, of scores or of members in another key.",
    run: zrangestore,
    ..Command::ROW
};

fn zrangestore(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (target, key) = (args.key()?, args.key()?);
    let query = Query::parse(&mut args, Fixed { is_stored: true, ..Fixed::NOTHING })?;
    let limits = cx.settings().packed_zset;
    let (zset, _) = cx.read::<Zset>(key)?;
    let stretch = match zset {
        Some(zset) => {
            let entries = Entries::new(zset, query.positions(zset), query.reversed);
            let is_listpack = !matches!(query.bounds, Bounds::Rank(..)) || entries.len() <= limits.entries;
            Zset::from_entries(as_stored(entries, is_listpack, limits), &limits)
        }
        None => Zset::new(),
    };
    let count = stretch.len();
    cx.store(target, stretch, Event::sorted_set("zrangestore"));
    cx.reply().count(count);
    Ok(())
}

/// The set that Redis stores when it adds `entries` one after another: its small encoding has no -0, so entries that
/// come before the set becomes large get 0. For ranges of scores and members Redis does not know their number and
/// always starts with the small encoding.
fn as_stored<'a>(entries: Entries<'a>, mut is_listpack: bool, limits: Limits) -> impl Iterator<Item = (&'a [u8], f64)> {
    entries.enumerate().map(move |(count, Entry { member, score })| {
        is_listpack &= count < limits.entries && member.len() <= limits.bytes;
        (member, if is_listpack && score == 0.0 { 0.0 } else { score })
    })
}

/// The options that a command's name implies, so that they cannot be given again.
#[derive(Clone, Copy, Debug)]
struct Fixed {
    by: Option<By>,
    reversed: Option<bool>,
    /// There is no reply that WITHSCORES could change.
    is_stored: bool,
}

impl Fixed {
    const NOTHING: Fixed = Fixed { by: None, reversed: None, is_stored: false };

    fn ascending(by: By) -> Fixed {
        Fixed { by: Some(by), reversed: Some(false), is_stored: false }
    }

    fn descending(by: By) -> Fixed {
        Fixed { by: Some(by), reversed: Some(true), is_stored: false }
    }
}

/// A range of a sorted set, the part of it that LIMIT selects, and the form of the reply.
#[derive(Clone, Copy, Debug)]
struct Query<'a> {
    bounds: Bounds<'a>,
    reversed: bool,
    limit: Limit,
    with_scores: bool,
}

impl<'a> Query<'a> {
    fn parse(args: &mut Args<'a>, fixed: Fixed) -> Result<Query<'a>, Error> {
        let (first, second) = (args.word()?, args.word()?);
        let Fixed { mut by, mut reversed, is_stored } = fixed;
        let mut limit = Limit::NONE;
        let mut with_scores = false;
        while !args.is_empty() {
            if !is_stored && args.take("WITHSCORES") {
                with_scores = true;
            } else if args.take_with("LIMIT", 2) {
                limit = Limit { offset: args.integer()?, count: args.integer()? };
            } else if reversed.is_none() && args.take("REV") {
                reversed = Some(true);
            } else if by.is_none() && args.take("BYLEX") {
                by = Some(By::Lex);
            } else if by.is_none() && args.take("BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(Error::Syntax);
            }
        }
        let (by, reversed) = (by.unwrap_or(By::Rank), reversed.unwrap_or(false));
        if by == By::Rank && limit.count != Limit::NONE.count {
            return Err(Error::LimitByRank);
        }
        if by == By::Lex && with_scores {
            return Err(Error::ScoresByLex);
        }
        // A reversed range of scores or members has the upper bound first; ranks just count from the other end.
        let (min, max) = if reversed && by != By::Rank { (second, first) } else { (first, second) };
        Ok(Query { bounds: Bounds::parse(by, min, max)?, reversed, limit, with_scores })
    }

    fn positions(&self, zset: &Zset) -> Range<usize> {
        let stretch = self.bounds.positions(zset, self.reversed);
        match &self.bounds {
            Bounds::Rank(..) => stretch,
            Bounds::Lex(range) if is_among_scores(zset) => {
                let passed_over = usize::try_from(self.limit.offset).unwrap_or(usize::MAX);
                let stretch = among_scores(zset, range, self.reversed, passed_over);
                Limit { offset: 0, ..self.limit }.within(stretch, self.reversed, true)
            }
            _ => self.limit.within(stretch, self.reversed, zset.is_listpack()),
        }
    }
}

/// LIMIT: the number of entries to skip, and the maximum to return.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// If negative, nothing remains of a packed set, and of a large one as many entries as the limit allows: Redis
    /// documents neither, and does both.
    offset: i64,
    /// If negative, all entries.
    count: i64,
}

impl Limit {
    const NONE: Limit = Limit { offset: 0, count: -1 };

    fn within(self, stretch: Range<usize>, reversed: bool, is_listpack: bool) -> Range<usize> {
        let len = stretch.len();
        let offset = match usize::try_from(self.offset) {
            Ok(offset) => offset.min(len),
            Err(_) if is_listpack => len,
            Err(_) => {
                usize::try_from(self.offset.unsigned_abs()).ok().and_then(|kept| len.checked_sub(kept)).unwrap_or(len)
            }
        };
        let count = usize::try_from(self.count).unwrap_or(usize::MAX).min(len - offset);
        if reversed {
            let end = stretch.end - offset;
            end - count..end
        } else {
            let start = stretch.start + offset;
            start..start + count
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_skips_entries_at_the_end_where_the_reply_begins() {
        let limit = Limit { offset: 1, count: 2 };
        assert_eq!(limit.within(10..20, false, true), 11..13);
        assert_eq!(limit.within(10..20, true, true), 17..19);
    }

    #[test]
    fn an_offset_and_count_of_any_size_do_not_overflow() {
        let limit = Limit { offset: i64::MAX, count: i64::MAX };
        assert!(limit.within(3..9, false, true).is_empty());
        assert!(limit.within(3..9, true, false).is_empty());
        assert_eq!(Limit { offset: 2, count: i64::MAX }.within(3..9, true, false), 3..7);
        assert_eq!(Limit { offset: 0, count: i64::MIN }.within(2..9, false, true), 2..9);
    }

    #[test]
    fn a_negative_offset_selects_nothing_of_a_packed_set_and_the_far_end_of_a_large_one() {
        let limit = Limit { offset: -2, count: 5 };
        assert!(limit.within(0..9, false, true).is_empty());
        assert_eq!(limit.within(0..9, false, false), 7..9);
        assert_eq!(limit.within(0..9, true, false), 0..2);
        assert!(Limit { offset: i64::MIN, count: 5 }.within(0..9, false, false).is_empty());
    }
}
