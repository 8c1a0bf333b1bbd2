//! LMOVE and RPOPLPUSH: move an element from an end of a list to an end of another one, or of the same list.

use super::pop::POPPED;
use super::{end, popped, pushed};
use crate::engine::{
    Args, Arity, Changed, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Lookup, Missing, Peek,
};
use crate::value::List;
use crate::value::list::End;

pub(super) const LMOVE: Command = Command {
    name: "LMOVE",
    syntax: "source destination wherefrom:<LEFT|RIGHT> whereto:<LEFT|RIGHT>",
    arity: Arity::Exactly(5),
    since: "6.2.0",
    about: "Moves and returns an element from an end of a list to an end of another.",
    run: lmove,
    ..MOVING
};

pub(super) const RPOPLPUSH: Command = Command {
    name: "RPOPLPUSH",
    syntax: "source destination",
    arity: Arity::Exactly(3),
    since: "1.2.0",
    about: "Moves and returns the last element of a list to the head of another.",
    deprecated: Some(("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments")),
    run: rpoplpush,
    ..MOVING
};

const MOVING: Command = Command {
    family: Family::List,
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::at(1, POPPED), KeySpec::at(2, KeyFlags::RW.and(KeyFlags::INSERT))],
    cost: "O(1)",
    ..Command::ROW
};

fn lmove(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (source, destination) = (args.key()?, args.key()?);
    let ends = Ends { from: end(&mut args)?, to: end(&mut args)? };
    transfer_or_null(cx, source, destination, ends)
}

fn rpoplpush(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (source, destination) = (args.key()?, args.key()?);
    transfer_or_null(cx, source, destination, Ends { from: End::Tail, to: End::Head })
}

fn transfer_or_null(cx: &mut Ctx<'_>, source: &[u8], destination: &[u8], ends: Ends) -> Result<(), Error> {
    if !transfer(cx, source, destination, ends)? {
        cx.reply().null();
    }
    Ok(())
}

/// The end that an element leaves and the end where it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The end of the source.
    pub(crate) from: End,
    /// The end of the destination.
    pub(crate) to: End,
}

/// Moves an element and replies with it; returns false, without a reply, if `source` is missing. It counts as one
/// change, though both keys get events, the destination first.
///
/// # Errors
/// [`Error::WrongType`] if one of them has another type; a missing source is detected first.
pub(crate) fn transfer(cx: &mut Ctx<'_>, source: &[u8], destination: &[u8], ends: Ends) -> Result<bool, Error> {
    let Some(element) = last(cx, source, ends.from)? else { return Ok(false) };
    cx.lookup(destination, Lookup::NO_TRACE).map(Peek::read::<List>).transpose()?;
    let limits = cx.settings().list_nodes;
    if source == destination {
        rotate(cx, source, ends)?;
    } else {
        cx.update(destination, Missing::Create, pushed(ends.to), |list: &mut List, _| {
            list.push_moved(ends.to, &element, &limits);
            Ok(Changed::by(0, ()).announced())
        })?;
        cx.update(source, Missing::Skip, popped(ends.from), |list: &mut List, _| {
            list.pop(ends.from, &limits);
            Ok(Changed::by(1, ()))
        })?;
    }
    cx.reply().bulk(&element);
    Ok(true)
}

/// A copy of the element at an end of the list at `key`.
fn last(cx: &mut Ctx<'_>, key: &[u8], end: End) -> Result<Option<Vec<u8>>, Error> {
    let Some(found) = cx.lookup(key, Lookup::WRITE) else { return Ok(None) };
    let list = found.read::<List>()?;
    let element = match end {
        End::Head => list.get(0),
        End::Tail => list.get(list.len() - 1),
    };
    Ok(element.map(|element| element.to_vec()))
}

/// Moves an element of a list to an end of this list.
fn rotate(cx: &mut Ctx<'_>, key: &[u8], ends: Ends) -> Result<(), Error> {
    let limits = cx.settings().list_nodes;
    cx.update(key, Missing::Skip, pushed(ends.to), |list: &mut List, _| {
        list.rotate(ends.from, ends.to, &limits);
        Ok(Changed::by(0, ()).announced())
    })?;
    cx.update(key, Missing::Skip, popped(ends.from), |_: &mut List, _| Ok(Changed::by(1, ())))?;
    Ok(())
}
