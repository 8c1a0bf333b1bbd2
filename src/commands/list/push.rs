//! LPUSH and RPUSH add elements at the ends of a list; LPUSHX and RPUSHX only if the list exists.

use super::pushed;
use crate::engine::{Args, Arity, Change, Changed, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Missing};
use crate::value::List;
use crate::value::list::End;

pub(super) const LPUSH: Command = Command {
    name: "LPUSH",
    about: "Prepends elements to a list one after the other, and creates the list if needed.",
    run: |cx, args| push(cx, args, End::Head, Missing::Create),
    ..PUSHING
};

pub(super) const RPUSH: Command = Command {
    name: "RPUSH",
    about: "Appends elements to a list one after the other, and creates the list if needed.",
    run: |cx, args| push(cx, args, End::Tail, Missing::Create),
    ..PUSHING
};

pub(super) const LPUSHX: Command = Command {
    name: "LPUSHX",
    since: "2.2.0",
    history: &[Change::says("4.0.0", "Takes several elements.")],
    about: "Prepends elements to a list only if it exists.",
    run: |cx, args| push(cx, args, End::Head, Missing::Skip),
    ..PUSHING
};

pub(super) const RPUSHX: Command = Command {
    name: "RPUSHX",
    since: "2.2.0",
    history: &[Change::says("4.0.0", "Takes several elements.")],
    about: "Appends elements to a list only if it exists.",
    run: |cx, args| push(cx, args, End::Tail, Missing::Skip),
    ..PUSHING
};

const PUSHING: Command = Command {
    syntax: "key element [element ...]",
    family: Family::List,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::INSERT))],
    since: "1.0.0",
    history: &[Change::says("2.4.0", "Takes several elements.")],
    cost: "O(N), N being the elements that are put.",
    ..Command::ROW
};

fn push(cx: &mut Ctx<'_>, mut args: Args<'_>, end: End, missing: Missing) -> Result<(), Error> {
    let key = args.key()?;
    let limits = cx.settings().list_nodes;
    let only = args.peek().filter(|_| args.left() == 1);
    let shared = only.and_then(|element| args.share(element));
    let len = cx.update(key, missing, pushed(end), |list: &mut List, _| {
        match shared {
            Some(element) => list.push_shared(end, element, &limits),
            None => list.push(end, args.rest(), &limits),
        }
        Ok(Changed::by(args.left(), list.len()))
    })?;
    cx.reply().count(len.unwrap_or(0));
    Ok(())
}
