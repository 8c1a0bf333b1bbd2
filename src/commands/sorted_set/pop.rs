//! Popping members with the lowest or highest scores: ZPOPMIN, ZPOPMAX and ZMPOP.

use super::{Entries, write_entries, write_pair};
use crate::engine::{Args, Arity, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec};
use crate::resp::Reply;
use crate::value::Value;
use crate::value::zset::Zset;
use std::ops::Range;

pub(super) const ZPOPMIN: Command = Command {
    name: "ZPOPMIN",
    about: "Removes the members with the lowest scores and answers them.",
    run: |cx, args| pop(cx, args, End::Min),
    ..POPPING
};

pub(super) const ZPOPMAX: Command = Command {
    name: "ZPOPMAX",
    about: "Removes the members with the highest scores and answers them.",
    run: |cx, args| pop(cx, args, End::Max),
    ..POPPING
};

const POPPING: Command = Command {
    syntax: "key [count]",
    family: Family::SortedSet,
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(POPPED)],
    since: "5.0.0",
    cost: "O(log(N)*M), N being the members of the sorted set and M those popped.",
    ..Command::ROW
};

/// What happens to a key that members are popped from.
pub(super) const POPPED: KeyFlags = KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::DELETE);

fn pop(cx: &mut Ctx<'_>, mut args: Args<'_>, end: End) -> Result<(), Error> {
    let key = args.key()?;
    if args.left() > 1 {
        return Err(Error::Syntax);
    }
    let count = if args.is_empty() { None } else { Some(args.at_least(0, Error::NotPositive)?) };
    let is_done = take(cx, key, end, count.unwrap_or(1), |reply, entries| match count {
        Some(_) => write_entries(reply, entries, true),
        // One alone is not put into an array of its own, not even in RESP3.
        None => entries.for_each(|entry| write_pair(reply, entry)),
    })?;
    if !is_done {
        cx.reply().array(0);
    }
    Ok(())
}

pub(super) const ZMPOP: Command = Command {
    name: "ZMPOP",
    syntax: "numkeys key [key ...] where:<MIN|MAX> [COUNT count]",
    family: Family::SortedSet,
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE,
    keys: &[KeySpec::counted(1, POPPED)],
    since: "7.0.0",
    cost: "O(K) + O(M*log(N)), K being the keys, N the members of the sorted set and M those popped.",
    about: "Removes the members with the lowest or highest scores from the first sorted set that is there, and answers \
            them.",
    run: zmpop,
    ..Command::ROW
};

fn zmpop(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let wanted = Wanted::parse(&mut args)?;
    if !wanted.pop(cx)? {
        cx.reply().null_array();
    }
    Ok(())
}

/// What ZMPOP is asked for.
pub(super) struct Wanted<'a> {
    /// The keys to look at, in order.
    pub(super) keys: Vec<&'a [u8]>,
    end: End,
    count: usize,
}

impl<'a> Wanted<'a> {
    /// Reads `numkeys key [key ...] <MIN | MAX> [COUNT count]`, to the last word.
    pub(super) fn parse(args: &mut Args<'a>) -> Result<Wanted<'a>, Error> {
        let numkeys = args.at_least(1, Error::NumkeysNotPositive)?;
        let keys = args.words(numkeys)?;
        let end = End::parse(args)?;
        let count = if args.take_with("COUNT", 1) { args.at_least(1, Error::CountNotPositive)? } else { 1 };
        args.end()?;
        Ok(Wanted { keys, end, count })
    }

    /// Pops from the first key that holds a sorted set; false, with nothing answered, when none does.
    pub(super) fn pop(&self, cx: &mut Ctx<'_>) -> Result<bool, Error> {
        for key in &self.keys {
            let is_done = take(cx, key, self.end, self.count, |reply, entries| {
                reply.array(2);
                reply.bulk(key);
                reply.array(entries.len());
                entries.for_each(|entry| write_pair(reply, entry));
            })?;
            if is_done {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Pops up to `count` entries from the sorted set that `key` holds, after `answer` has answered
/// them; false when it holds none.
pub(super) fn take(
    cx: &mut Ctx<'_>,
    key: &[u8],
    end: End,
    count: usize,
    answer: impl FnOnce(&mut Reply<'_>, Entries<'_>),
) -> Result<bool, Error> {
    let popped = cx.edit_and_reply(key, end.event(), |zset: &mut Zset, reply| {
        let positions = end.positions(zset, count);
        answer(reply, Entries::new(zset, positions.clone(), end == End::Max));
        let (popped, rest) = zset.cut_range(positions);
        Ok(Changed::by(popped, ()).leaving(rest.map(Value::Zset)))
    })?;
    Ok(popped.is_some())
}

/// The end of a sorted set that is popped from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Min,
    Max,
}

impl End {
    fn parse(args: &mut Args<'_>) -> Result<End, Error> {
        if args.take("MIN") {
            Ok(End::Min)
        } else if args.take("MAX") {
            Ok(End::Max)
        } else {
            Err(Error::Syntax)
        }
    }

    fn event(self) -> Event {
        Event::sorted_set(if self == End::Min { "zpopmin" } else { "zpopmax" })
    }

    /// Where the `count` entries at this end are, or all if there are fewer.
    fn positions(self, zset: &Zset, count: usize) -> Range<usize> {
        let len = zset.len();
        match self {
            End::Min => 0..count.min(len),
            End::Max => len.saturating_sub(count)..len,
        }
    }
}
