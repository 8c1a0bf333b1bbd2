//! ZADD and ZINCRBY: add members to a sorted set or change their scores.
//!
//! Each member is looked up once: its present score determines the new one ([`Mode::score_after`]). All scores are
//! parsed before the first is set, and a call with a single pair, by far the most frequent, allocates nothing.

use crate::engine::{
    Args, Arity, Change, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Missing,
};
use crate::value::zset::{Limits, Zset};

pub(super) const ZADD: Command = Command {
    name: "ZADD",
    syntax: "key condition:[NX|XX] comparison:[GT|LT] [change:CH] [increment:INCR] score member [score member ...]",
    family: Family::SortedSet,
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::UPDATE))],
    since: "1.2.0",
    history: &[
        Change::says("2.4.0", "Takes several members."),
        Change::brings("3.0.2", &["NX", "XX", "CH", "INCR"]),
        Change::brings("6.2.0", &["GT", "LT"]),
    ],
    cost: "O(log(N)) for each member, N being the members of the sorted set.",
    about: "Adds members with scores to a sorted set, or updates the scores of existing members.",
    run: |cx, args| add(cx, args, Mode::default()),
    ..Command::ROW
};

pub(super) const ZINCRBY: Command = Command {
    name: "ZINCRBY",
    syntax: "key increment member",
    family: Family::SortedSet,
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE))],
    since: "1.2.0",
    cost: "O(log(N)), N being the members of the sorted set.",
    about: "Increments the score of a member, from 0 if the member does not exist.",
    run: |cx, args| add(cx, args, Mode { incr: true, ..Mode::default() }),
    ..Command::ROW
};

/// A score and its member.
pub(in crate::commands) type Pair<'a> = (f64, &'a [u8]);

fn pair<'a>(args: &mut Args<'a>) -> Result<Pair<'a>, Error> {
    Ok((args.float()?, args.word()?))
}

/// ZADD and ZINCRBY. ZINCRBY has no options, but Redis parses a word that is one as an option, and then misses the
/// member.
fn add(cx: &mut Ctx<'_>, mut args: Args<'_>, mut mode: Mode) -> Result<(), Error> {
    let key = args.key()?;
    mode.parse(&mut args);
    if args.is_empty() || !args.left().is_multiple_of(2) {
        return Err(Error::Syntax);
    }
    mode.check(args.left() / 2)?;
    let first = pair(&mut args)?;
    let mut others = Vec::new();
    while !args.is_empty() {
        others.push(pair(&mut args)?);
    }
    let tally = put_all(cx, key, mode, first, &others)?;
    let reply = cx.reply();
    match (mode.incr, tally.score) {
        (true, Some(score)) => reply.double(score),
        (true, None) => reply.null(),
        (false, _) => reply.count(if mode.ch { tally.added + tally.moved } else { tally.added }),
    }
    Ok(())
}

/// Sets the scores of members, all of them or none. There is at least one pair.
///
/// # Errors
/// [`Error::WrongType`], or [`Error::ScoreNotANumber`] for a sum.
pub(in crate::commands) fn put_all(
    cx: &mut Ctx<'_>,
    key: &[u8],
    mode: Mode,
    first: Pair<'_>,
    others: &[Pair<'_>],
) -> Result<Tally, Error> {
    let limits = cx.settings().packed_zset;
    let tally = cx.update(key, Missing::create_if(!mode.xx), mode.event(), |zset: &mut Zset, _| {
        zset.make_room(1 + others.len(), &limits);
        let mut tally = Tally::default();
        tally.put(zset, mode, first, &limits)?;
        for &other in others {
            tally.put(zset, mode, other, &limits)?;
        }
        Ok(Changed::by(tally.added + tally.moved, tally))
    })?;
    Ok(tally.unwrap_or_default())
}

/// The result for the pairs.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::commands) struct Tally {
    pub(in crate::commands) added: usize,
    pub(in crate::commands) moved: usize,
    /// The present score of the last member, unless an option prevented the change.
    score: Option<f64>,
}

impl Tally {
    fn put(&mut self, zset: &mut Zset, mode: Mode, (given, member): Pair<'_>, limits: &Limits) -> Result<(), Error> {
        let mut score_after = None;
        let (before, after) = zset.update(member, limits, |before| {
            score_after = mode.score_after(before, given);
            score_after.filter(|after| !after.is_nan() && before != Some(*after))
        });
        if score_after.is_some_and(f64::is_nan) {
            return Err(Error::ScoreNotANumber);
        }
        match before {
            None => self.added += usize::from(after.is_some()),
            Some(_) => self.moved += usize::from(before != after),
        }
        self.score = score_after;
        Ok(())
    }
}

/// The options of ZADD.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::commands) struct Mode {
    pub(in crate::commands) nx: bool,
    pub(in crate::commands) xx: bool,
    gt: bool,
    lt: bool,
    pub(in crate::commands) ch: bool,
    incr: bool,
}

impl Mode {
    fn parse(&mut self, args: &mut Args<'_>) {
        if args.peek().is_none_or(|word| !word.first().is_some_and(u8::is_ascii_alphabetic)) {
            return;
        }
        let mut options = [
            ("NX", &mut self.nx),
            ("XX", &mut self.xx),
            ("GT", &mut self.gt),
            ("LT", &mut self.lt),
            ("CH", &mut self.ch),
            ("INCR", &mut self.incr),
        ];
        while let Some((_, is_given)) = options.iter_mut().find(|(name, _)| args.take(name)) {
            **is_given = true;
        }
    }

    /// Refuses contradictory options, or an invalid number of pairs.
    fn check(self, pairs: usize) -> Result<(), Error> {
        if self.nx && self.xx {
            return Err(Error::NxAndXx);
        }
        if self.gt && self.lt || self.nx && (self.gt || self.lt) {
            return Err(Error::GtLtNx);
        }
        if self.incr && pairs > 1 {
            return Err(Error::IncrOnePair);
        }
        Ok(())
    }

    /// The new score of a member, which may be NaN; `None` if an option prevents the change.
    fn score_after(self, before: Option<f64>, given: f64) -> Option<f64> {
        let Some(before) = before else { return (!self.xx).then_some(given) };
        let after = if self.incr { before + given } else { given };
        let refused = self.nx || self.gt && after <= before || self.lt && after >= before;
        (!refused).then_some(after)
    }

    fn event(self) -> Event {
        Event::sorted_set(if self.incr { "zincr" } else { "zadd" })
    }
}
