//! BLPOP, BRPOP, BLMPOP, BLMOVE and BRPOPLPUSH: blocking forms of pop and move.
//!
//! Each does what its namesake without a `B` does. If there is no element, the client blocks on the keys, and the
//! command runs again from the start when one of them becomes a list.

use super::end;
use super::pop::{POPPED, Portion, Wanted, pop_first};
use super::transfer::{Ends, transfer};
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Block, Change, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::value::List;
use crate::value::list::End;

pub(super) const BLPOP: Command = Command {
    name: "BLPOP",
    about: "Removes and returns the first element of the first list that exists, with its key; may block.",
    run: |cx, args| pop(cx, args, End::Head),
    ..POPPING
};

pub(super) const BRPOP: Command = Command {
    name: "BRPOP",
    about: "Removes and returns the last element of the first list that exists, with its key; may block.",
    run: |cx, args| pop(cx, args, End::Tail),
    ..POPPING
};

const POPPING: Command = Command {
    syntax: "key [key ...] timeout",
    family: Family::List,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::BLOCKING),
    keys: &[KeySpec::range(1, -2, 1, POPPED)],
    since: "2.0.0",
    history: &[Change::says("6.0.0", "The timeout may have a fraction.")],
    cost: "O(N), N being the keys.",
    ..Command::ROW
};

fn pop(cx: &mut Ctx<'_>, mut args: Args<'_>, end: End) -> Result<(), Error> {
    let keys = args.words(args.left() - 1)?;
    let deadline_ms = args.timeout(cx.now())?;
    if !pop_first(cx, keys.iter().copied(), end, Portion::KeyAndOne)? {
        cx.block(Block::on::<List>(&keys, deadline_ms), |reply| reply.null_array());
    }
    Ok(())
}

pub(super) const BLMPOP: Command = Command {
    name: "BLMPOP",
    syntax: "timeout numkeys key [key ...] where:<LEFT|RIGHT> [COUNT count]",
    family: Family::List,
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.and(Flags::BLOCKING),
    keys: &[KeySpec::counted(2, POPPED)],
    since: "7.0.0",
    cost: "O(N+M), N being the keys and M the elements answered.",
    about: "Removes and returns elements from an end of the first list that exists; may block.",
    run: blmpop,
    ..Command::ROW
};

fn blmpop(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let mut timeout = args;
    args.word()?;
    let wanted = Wanted::parse(&mut args)?;
    let deadline_ms = timeout.timeout(cx.now())?;
    if !pop_first(cx, wanted.keys.iter().copied(), wanted.end, Portion::KeyAndSeveral(wanted.count))? {
        cx.block(Block::on::<List>(&wanted.keys, deadline_ms), |reply| reply.null_array());
    }
    Ok(())
}

pub(super) const BLMOVE: Command = Command {
    name: "BLMOVE",
    syntax: "source destination wherefrom:<LEFT|RIGHT> whereto:<LEFT|RIGHT> timeout",
    arity: Arity::Exactly(6),
    since: "6.2.0",
    about: "Moves and returns an element from an end of a list to an end of another; may block.",
    run: blmove,
    ..MOVING
};

pub(super) const BRPOPLPUSH: Command = Command {
    name: "BRPOPLPUSH",
    syntax: "source destination timeout",
    arity: Arity::Exactly(4),
    since: "2.2.0",
    history: &[Change::says("6.0.0", "The timeout may have a fraction.")],
    about: "Moves and returns the last element of a list to the head of another; may block.",
    deprecated: Some(("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments")),
    run: brpoplpush,
    ..MOVING
};

const MOVING: Command = Command {
    family: Family::List,
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::BLOCKING),
    keys: &[KeySpec::at(1, POPPED), KeySpec::at(2, KeyFlags::RW.and(KeyFlags::INSERT))],
    cost: "O(1)",
    ..Command::ROW
};

fn blmove(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (source, destination) = (args.key()?, args.key()?);
    let ends = Ends { from: end(&mut args)?, to: end(&mut args)? };
    let deadline_ms = args.timeout(cx.now())?;
    transfer_or_wait(cx, &args, [source, destination], ends, deadline_ms)
}

fn brpoplpush(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (source, destination) = (args.key()?, args.key()?);
    let deadline_ms = args.timeout(cx.now())?;
    let ends = Ends { from: End::Tail, to: End::Head };
    transfer_or_wait(cx, &args, [source, destination], ends, deadline_ms)
}

fn transfer_or_wait(
    cx: &mut Ctx<'_>,
    args: &Args<'_>,
    [source, destination]: [&[u8]; 2],
    ends: Ends,
    deadline_ms: Option<i64>,
) -> Result<(), Error> {
    if !transfer(cx, source, destination, ends)? {
        cx.block(Block::on::<List>(&[source], deadline_ms), |reply| reply.null());
    } else if operations::is_propagating(cx) {
        // The form that does not block has the same words, but for the timeout at the end.
        let mut words = args.all();
        words.pop();
        words[0] = if words.len() == 3 { b"RPOPLPUSH" } else { b"LMOVE" };
        operations::propagate_instead(cx, &words);
    }
    Ok(())
}
