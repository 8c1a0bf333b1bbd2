//! GEOADD: adds members with coordinates, which is ZADD with coordinates encoded as scores.

use super::position;
use crate::commands::sorted_set::add::{Mode, Pair, put_all};
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};

pub(super) const GEOADD: Command = Command {
    name: "GEOADD",
    syntax: "key condition:[NX|XX] [change:CH] longitude latitude member [longitude latitude member ...]",
    family: Family::Geo,
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::UPDATE))],
    since: "3.2.0",
    history: &[Change::brings("6.2.0", &["CH", "NX", "XX"])],
    cost: "O(log(N)) for each member, N being the members of the sorted set.",
    about: "Adds members with their coordinates, or moves existing members.",
    run: geoadd,
    ..Command::ROW
};

fn geoadd(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let mode = parse_mode(&mut args);
    let places = args;
    if args.is_empty() || !args.left().is_multiple_of(3) || mode.nx && mode.xx {
        return Err(Error::Syntax);
    }
    let first = pair(&mut args)?;
    let mut others = Vec::new();
    while !args.is_empty() {
        others.push(pair(&mut args)?);
    }
    let tally = put_all(cx, key, mode, first, &others)?;
    if tally.added + tally.moved > 0 && operations::is_propagating(cx) {
        propagate(cx, places)?;
    }
    cx.reply().count(if mode.ch { tally.added + tally.moved } else { tally.added });
    Ok(())
}

/// Propagates GEOADD as ZADD; `args` are its positions and members. A score is written with all its bits, of which a
/// double keeps 53.
fn propagate(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (mut words, mut digits) = (args.all(), Vec::new());
    words.truncate(args.position());
    let mut members = Vec::new();
    while !args.is_empty() {
        digits.push(position(&mut args)?.bits().to_string());
        members.push(args.word()?);
    }
    words[0] = b"zadd";
    words.extend(digits.iter().zip(members).flat_map(|(score, member)| [score.as_bytes(), member]));
    operations::propagate_instead(cx, &words);
    Ok(())
}

fn parse_mode(args: &mut Args<'_>) -> Mode {
    let mut mode = Mode::default();
    loop {
        if args.take("NX") {
            mode.nx = true;
        } else if args.take("XX") {
            mode.xx = true;
        } else if args.take("CH") {
            mode.ch = true;
        } else {
            return mode;
        }
    }
}

fn pair<'a>(args: &mut Args<'a>) -> Result<Pair<'a>, Error> {
    Ok((position(args)?.score(), args.word()?))
}
