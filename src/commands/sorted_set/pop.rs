//! ZPOPMIN, ZPOPMAX and ZMPOP: remove the members with the lowest or highest scores.

use super::{Entries, write_entries, write_pair};
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Missing};
use crate::resp::Reply;
use crate::value::Value;
use crate::value::zset::Zset;
use std::ops::Range;

pub(super) const ZPOPMIN: Command = Command {
    name: "ZPOPMIN",
    about: "Removes and returns the members with the lowest scores.",
    run: |cx, args| pop(cx, args, End::Min),
    ..POPPING
};

pub(super) const ZPOPMAX: Command = Command {
    name: "ZPOPMAX",
    about: "Removes and returns the members with the highest scores.",
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

/// The flags of a key from which members are popped.
pub(super) const POPPED: KeyFlags = KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::DELETE);

fn pop(cx: &mut Ctx<'_>, mut args: Args<'_>, end: End) -> Result<(), Error> {
    let key = args.key()?;
    if args.left() > 1 {
        return Err(Error::Syntax);
    }
    let count = if args.is_empty() { None } else { Some(args.at_least(0, Error::NotPositive)?) };
    let popped = take(cx, key, end, count.unwrap_or(1), |reply, entries| match count {
        Some(_) => write_entries(reply, entries, true),
        // A single entry is not nested in an array, not even in RESP3.
        None => entries.for_each(|entry| write_pair(reply, entry)),
    })?;
    if popped.is_none() {
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
    about: "Removes and returns the members with the lowest or highest scores of the first sorted set that exists.",
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

/// The parsed arguments of ZMPOP.
pub(super) struct Wanted<'a> {
    /// The keys to try, in order.
    pub(super) keys: Vec<&'a [u8]>,
    end: End,
    count: usize,
}

impl<'a> Wanted<'a> {
    /// Parses `numkeys key [key ...] <MIN | MAX> [COUNT count]`, to the last word.
    pub(super) fn parse(args: &mut Args<'a>) -> Result<Wanted<'a>, Error> {
        let numkeys = args.at_least(1, Error::NumkeysNotPositive)?;
        let keys = args.words(numkeys)?;
        let end = End::parse(args)?;
        let count = if args.take_with("COUNT", 1) { args.at_least(1, Error::CountNotPositive)? } else { 1 };
        args.end()?;
        Ok(Wanted { keys, end, count })
    }

    /// Pops from the first key that is a sorted set; returns false, without a reply, if none is.
    pub(super) fn pop(&self, cx: &mut Ctx<'_>) -> Result<bool, Error> {
        for key in &self.keys {
            let popped = take(cx, key, self.end, self.count, |reply, entries| {
                reply.array(2);
                reply.bulk(key);
                reply.array(entries.len());
                entries.for_each(|entry| write_pair(reply, entry));
            })?;
            if popped.is_some() {
                propagate(cx, key, self.end, popped);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Pops up to `count` entries from the sorted set at `key`, after `answer` has replied with them, and returns their
/// number; `None` if there is no sorted set.
pub(super) fn take(
    cx: &mut Ctx<'_>,
    key: &[u8],
    end: End,
    count: usize,
    answer: impl FnOnce(&mut Reply<'_>, Entries<'_>),
) -> Result<Option<usize>, Error> {
    let popped = cx.update(key, Missing::Skip, end.event(), |zset: &mut Zset, reply| {
        let positions = end.positions(zset, count);
        answer(reply, Entries::new(zset, positions.clone(), end == End::Max));
        let (popped, rest) = zset.cut_range(positions);
        Ok(Changed::by(popped, popped).leaving(rest.map(Value::Zset)))
    })?;
    Ok(popped)
}

/// Propagates a pop from one sorted set as ZPOPMIN or ZPOPMAX, with the argument `count`, if any.
pub(super) fn propagate(cx: &mut Ctx<'_>, key: &[u8], end: End, count: Option<usize>) {
    if !operations::is_propagating(cx) {
        return;
    }
    let name = if end == End::Min { &b"ZPOPMIN"[..] } else { b"ZPOPMAX" };
    match count {
        Some(count) => operations::propagate_instead(cx, &[name, key, itoa::Buffer::new().format(count).as_bytes()]),
        None => operations::propagate_instead(cx, &[name, key]),
    }
}

/// The end of a sorted set to pop from.
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

    /// The positions of the `count` entries at this end, or of all if there are fewer.
    fn positions(self, zset: &Zset, count: usize) -> Range<usize> {
        let len = zset.len();
        match self {
            End::Min => 0..count.min(len),
            End::Max => len.saturating_sub(count)..len,
        }
    }
}
