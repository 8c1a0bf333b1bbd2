//! XLEN, XRANGE and XREVRANGE: count and read entries.

use super::{count, interval_end, interval_start, write_entries};
use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::value::Stream;

pub(super) const XLEN: Command = Command {
    name: "XLEN",
    syntax: "key",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO)],
    history: &[],
    cost: "O(1)",
    about: "Returns the number of entries of a stream.",
    run: xlen,
    ..READING
};

const READING: Command = Command {
    family: Family::Stream,
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "5.0.0",
    history: &[Change::says("6.2.0", "An end of the interval may be excluded.")],
    cost: "O(N), N being the entries answered.",
    ..Command::ROW
};

fn xlen(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (stream, reply) = cx.read::<Stream>(args.key()?)?;
    reply.count(stream.map_or(0, |stream| stream.log().len()));
    Ok(())
}

pub(super) const XRANGE: Command = Command {
    name: "XRANGE",
    syntax: "key start end [COUNT count]",
    about: "Returns the entries in a range of ids.",
    run: |cx, args| range(cx, args, false),
    ..READING
};

pub(super) const XREVRANGE: Command = Command {
    name: "XREVRANGE",
    syntax: "key end start [COUNT count]",
    about: "Returns the entries in a range of ids, in reverse order.",
    run: |cx, args| range(cx, args, true),
    ..READING
};

fn range(cx: &mut Ctx<'_>, mut args: Args<'_>, is_reversed: bool) -> Result<(), Error> {
    let (key, one, other) = (args.key()?, args.word()?, args.word()?);
    let (start, end) = if is_reversed { (other, one) } else { (one, other) };
    let (start, end) = (interval_start(start)?, interval_end(end)?);
    let mut most = usize::MAX;
    while !args.is_empty() {
        if !args.take_with("COUNT", 1) {
            return Err(Error::Syntax);
        }
        most = count(&mut args)?;
    }
    let (stream, reply) = cx.read::<Stream>(key)?;
    match stream {
        None => reply.array(0),
        Some(_) if most == 0 => reply.null_array(),
        Some(stream) if is_reversed => write_entries(reply, stream.log().range_back(start, end).take(most)),
        Some(stream) => write_entries(reply, stream.log().range(start, end).take(most)),
    }
    Ok(())
}
