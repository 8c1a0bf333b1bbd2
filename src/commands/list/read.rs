//! LLEN, LINDEX, LRANGE and LPOS: read a list.

use super::{position, positions, write_element};
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::value::List;
use crate::value::list::End;

pub(super) const LLEN: Command = Command {
    name: "LLEN",
    syntax: "key",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO)],
    cost: "O(1)",
    about: "Returns the number of elements of a list.",
    run: llen,
    ..READING
};

const READING: Command = Command {
    family: Family::List,
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "1.0.0",
    ..Command::ROW
};

fn llen(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (list, reply) = cx.read::<List>(args.key()?)?;
    reply.count(list.map_or(0, List::len));
    Ok(())
}

pub(super) const LINDEX: Command = Command {
    name: "LINDEX",
    syntax: "key index",
    arity: Arity::Exactly(3),
    cost: "O(N), N being the elements between the nearer end and the index.",
    about: "Returns the element at an index.",
    run: lindex,
    ..READING
};

/// The index is parsed last: for a missing list or another type, no word is an invalid index.
fn lindex(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (list, reply) = cx.read::<List>(args.key()?)?;
    let Some(list) = list else {
        reply.null();
        return Ok(());
    };
    let index = args.integer()?;
    match position(list.len(), index).and_then(|position| list.element(position)) {
        Some(element) => write_element(reply, element),
        None => reply.null(),
    }
    Ok(())
}

pub(super) const LRANGE: Command = Command {
    name: "LRANGE",
    syntax: "key start stop",
    arity: Arity::Exactly(4),
    cost: "O(S+N), S being the elements between the nearer end and start, and N those answered.",
    about: "Returns the elements in a range of indices.",
    run: lrange,
    ..READING
};

fn lrange(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, start, stop) = (args.key()?, args.integer()?, args.integer()?);
    let (list, reply) = cx.read::<List>(key)?;
    let Some(list) = list else {
        reply.array(0);
        return Ok(());
    };
    let positions = positions(list.len(), start, stop);
    reply.array(positions.len());
    reply.items(list.range(positions));
    Ok(())
}

pub(super) const LPOS: Command = Command {
    name: "LPOS",
    syntax: "key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
    arity: Arity::AtLeast(3),
    since: "6.0.6",
    cost: "O(N), N being the elements looked at: all of them, but for MAXLEN or where enough are found before.",
    about: "Returns the indices of elements equal to a value.",
    run: lpos,
    ..READING
};

fn lpos(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, element) = (args.key()?, args.word()?);
    let search = Search::parse(&mut args)?;
    let (list, reply) = cx.read::<List>(key)?;
    let found =
        list.into_iter().flat_map(|list| list.positions(element, search.from, search.within).skip(search.passed_over));
    match search.most {
        None => match found.into_iter().next() {
            Some(position) => reply.count(position),
            None => reply.null(),
        },
        Some(most) => {
            let array = reply.open_array();
            let count = found.take(most).map(|position| reply.count(position)).count();
            reply.close_array(array, count);
        }
    }
    Ok(())
}

/// The options of LPOS.
#[derive(Clone, Copy, Debug)]
struct Search {
    from: End,
    /// The number of matches to skip before the first returned one.
    passed_over: usize,
    /// The maximum number of matches, returned in an array; `None` for a single one.
    most: Option<usize>,
    /// The maximum number of elements to compare.
    within: usize,
}

impl Search {
    fn parse(args: &mut Args<'_>) -> Result<Search, Error> {
        let mut search = Search { from: End::Head, passed_over: 0, most: None, within: usize::MAX };
        while !args.is_empty() {
            if args.take_with("RANK", 1) {
                search.rank(args.integer()?)?;
            } else if args.take_with("COUNT", 1) {
                search.most = Some(unbounded_if_zero(args, Error::CountNegative)?);
            } else if args.take_with("MAXLEN", 1) {
                search.within = unbounded_if_zero(args, Error::MaxlenNegative)?;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(search)
    }

    fn rank(&mut self, rank: i64) -> Result<(), Error> {
        match rank {
            i64::MIN => return Err(Error::CountOutOfRange),
            0 => return Err(Error::RankZero),
            _ => {}
        }
        self.from = if rank < 0 { End::Tail } else { End::Head };
        self.passed_over = usize::try_from(rank.unsigned_abs()).unwrap_or(usize::MAX) - 1;
        Ok(())
    }
}

/// Parses the next word as a number of elements, where 0 means all.
fn unbounded_if_zero(args: &mut Args<'_>, refusal: Error) -> Result<usize, Error> {
    let number = args.at_least(0, refusal)?;
    Ok(if number == 0 { usize::MAX } else { number })
}
