//! GET, STRLEN, GETRANGE, and the two commands that read a string and change its lifetime: GETDEL and GETEX.

use super::expire_args::Expiration;
use super::{write_text, write_text_or_null};
use crate::commands::keys::propagate_expiration;
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec};
use std::ops::Range;

pub(super) const GET: Command = Command {
    name: "GET",
    syntax: "key",
    family: Family::String,
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    about: "Returns the string value of a key.",
    run: get,
    ..Command::ROW
};

fn get(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (text, reply) = cx.text(args.key()?)?;
    write_text_or_null(reply, text);
    Ok(())
}

pub(super) const STRLEN: Command = Command {
    name: "STRLEN",
    syntax: "key",
    family: Family::String,
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO)],
    since: "2.2.0",
    about: "Returns the length of a string in bytes; 0 if the key does not exist.",
    run: strlen,
    ..Command::ROW
};

fn strlen(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (text, reply) = cx.text(args.key()?)?;
    reply.count(text.map_or(0, |text| text.len()));
    Ok(())
}

pub(super) const GETRANGE: Command = Command {
    name: "GETRANGE",
    syntax: "key start end",
    family: Family::String,
    arity: Arity::Exactly(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "2.4.0",
    cost: "O(N) where N is how many bytes are answered",
    about: "Returns the part of a string between two offsets, inclusive; negative offsets count from the end.",
    run: getrange,
    ..Command::ROW
};

pub(super) const SUBSTR: Command = Command {
    name: "SUBSTR",
    since: "1.0.0",
    about: "Returns a part of a string: the older name of GETRANGE.",
    deprecated: Some(("2.0.0", "`GETRANGE`")),
    ..GETRANGE
};

fn getrange(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, start, end) = (args.key()?, args.integer()?, args.integer()?);
    let (text, reply) = cx.text(key)?;
    let mut digits = itoa::Buffer::new();
    let bytes = text.as_ref().map_or(&b""[..], |text| text.as_bytes(&mut digits));
    reply.bulk(&bytes[part(bytes.len(), start, end)]);
    Ok(())
}

/// The bytes from `start` through `end` of `length`, negative ones counted from the end. A position before the first
/// byte means the first byte. This also applies to `end`, so a range that ends before the string returns its first
/// byte, unless the range is found empty before it is clamped.
fn part(length: usize, start: i64, end: i64) -> Range<usize> {
    if length == 0 || (start < 0 && end < 0 && start > end) {
        return 0..0;
    }
    let length = length as i64;
    let place = |index: i64| if index < 0 { (length + index).max(0) } else { index };
    let (first, last) = (place(start), place(end).min(length - 1));
    if first > last { 0..0 } else { first as usize..last as usize + 1 }
}

pub(super) const GETDEL: Command = Command {
    name: "GETDEL",
    syntax: "key",
    family: Family::String,
    arity: Arity::Exactly(2),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::DELETE))],
    since: "6.2.0",
    about: "Returns the string value of a key and deletes the key.",
    run: getdel,
    ..Command::ROW
};

fn getdel(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let (text, reply) = cx.text(key)?;
    write_text_or_null(reply, text);
    if cx.remove(key, Event::DEL) && operations::is_propagating(cx) {
        operations::propagate_instead(cx, &[b"DEL", key]);
    }
    Ok(())
}

pub(super) const GETEX: Command = Command {
    name: "GETEX",
    syntax: "key expiration:[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST]",
    family: Family::String,
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec {
        notes: "RW and UPDATE because it changes the TTL",
        ..KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE))
    }],
    since: "6.2.0",
    about: "Returns the string value of a key and sets or clears the key's deadline.",
    run: getex,
    ..Command::ROW
};

fn getex(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let change = Change::parse(&mut args)?;
    let now = cx.now();
    let (Some(text), reply) = cx.text(key)? else {
        cx.reply().null();
        return Ok(());
    };
    write_text(reply, text);
    match change {
        Change::None => {}
        Change::Persist => {
            if cx.set_deadline(key, None) && operations::is_propagating(cx) {
                operations::propagate_instead(cx, &[b"PERSIST", key]);
            }
        }
        Change::Expire(expiration) => {
            let deadline_ms = expiration.deadline_ms(now, "getex")?;
            if cx.set_deadline(key, Some(deadline_ms)) && operations::is_propagating(cx) {
                propagate_expiration(cx, &[b"PEXPIREAT", key], deadline_ms);
            }
        }
    }
    Ok(())
}

/// The change that GETEX makes to the deadline.
#[derive(Clone, Copy, Debug)]
enum Change<'a> {
    None,
    Persist,
    Expire(Expiration<'a>),
}

impl<'a> Change<'a> {
    fn parse(args: &mut Args<'a>) -> Result<Change<'a>, Error> {
        let mut change = Change::None;
        while !args.is_empty() {
            change = match change {
                Change::None | Change::Persist if args.take("PERSIST") => Change::Persist,
                Change::None => Change::Expire(Expiration::take(args, None)?.ok_or(Error::Syntax)?),
                Change::Expire(earlier) => Change::Expire(Expiration::take(args, Some(earlier))?.ok_or(Error::Syntax)?),
                Change::Persist => return Err(Error::Syntax),
            };
        }
        Ok(change)
    }
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn the_indices_of_a_range_count_from_either_end_and_are_cut_to_the_string() {
        assert_eq!(part(6, 0, -1), 0..6);
        assert_eq!(part(6, -3, -1), 3..6);
        assert_eq!(part(6, 5, 100), 5..6);
        assert_eq!(part(6, i64::MIN, i64::MAX), 0..6);
    }

    #[test]
    fn a_range_that_ends_before_the_string_selects_its_first_byte() {
        assert_eq!(part(6, -100, -50), 0..1);
        assert_eq!(part(6, -50, -100), 0..0);
    }

    #[test]
    fn every_range_of_an_empty_string_is_empty() {
        assert_eq!(part(0, 0, -1), 0..0);
        assert_eq!(part(0, i64::MAX, i64::MIN), 0..0);
    }
}
