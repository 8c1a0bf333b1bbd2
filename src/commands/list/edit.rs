//! LSET, LINSERT, LREM and LTRIM: change a list between its ends. A list that loses its last element is deleted.

use super::{position, positions};
use crate::engine::{
    Args, Arity, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Lookup, Missing,
};
use crate::value::list::{End, Side};
use crate::value::{List, Value};

pub(super) const LSET: Command = Command {
    name: "LSET",
    syntax: "key index element",
    family: Family::List,
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::UPDATE))],
    since: "1.0.0",
    cost: "O(N), N being the elements between the nearer end and the index.",
    about: "Replaces the element at an index.",
    run: lset,
    ..Command::ROW
};

/// The index is parsed last: the error for a missing list comes first.
fn lset(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    cx.lookup(key, Lookup::WRITE).ok_or(Error::NoSuchKey)?.read::<List>()?;
    // Redis keeps only the lowest 32 bits of this index, so 2^32 is the head.
    let (index, element) = (i64::from(args.integer()? as i32), args.word()?);
    let limits = cx.settings().list_nodes;
    cx.update(key, Missing::Skip, Event::list("lset"), |list: &mut List, _| {
        let position = position(list.len(), index).unwrap_or(usize::MAX);
        if list.set(position, element, &limits) { Ok(Changed::by(1, ())) } else { Err(Error::IndexOutOfRange) }
    })?;
    cx.reply().ok();
    Ok(())
}

pub(super) const LINSERT: Command = Command {
    name: "LINSERT",
    syntax: "key where:<BEFORE|AFTER> pivot element",
    family: Family::List,
    arity: Arity::Exactly(5),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::INSERT))],
    since: "2.2.0",
    cost: "O(N), N being the elements up to the pivot.",
    about: "Inserts an element before or after the first one that is equal to a pivot.",
    run: linsert,
    ..Command::ROW
};

fn linsert(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let side = side(&mut args)?;
    let (pivot, element) = (args.word()?, args.word()?);
    let limits = cx.settings().list_nodes;
    let len = cx.update(key, Missing::Skip, Event::list("linsert"), |list: &mut List, _| {
        let found = list.positions(pivot, End::Head, usize::MAX).next();
        let is_inserted = list.insert(found.unwrap_or(usize::MAX), side, element, &limits);
        Ok(Changed::by(usize::from(is_inserted), is_inserted.then_some(list.len())))
    })?;
    match len {
        Some(Some(len)) => cx.reply().count(len),
        Some(None) => cx.reply().integer(-1),
        None => cx.reply().integer(0),
    }
    Ok(())
}

fn side(args: &mut Args<'_>) -> Result<Side, Error> {
    if args.take("AFTER") {
        Ok(Side::After)
    } else if args.take("BEFORE") {
        Ok(Side::Before)
    } else {
        Err(Error::Syntax)
    }
}

pub(super) const LREM: Command = Command {
    name: "LREM",
    syntax: "key count element",
    cost: "O(N), N being the elements of the list.",
    about: "Removes elements equal to a value: from the head, from the tail if the count is negative, or all.",
    run: lrem,
    ..REMOVING
};

const REMOVING: Command = Command {
    family: Family::List,
    arity: Arity::Exactly(4),
    flags: Flags::WRITE,
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::DELETE))],
    since: "1.0.0",
    ..Command::ROW
};

fn lrem(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, count, element) = (args.key()?, args.integer()?, args.word()?);
    let (from, most) = match count {
        i64::MIN => return Err(Error::CountOutOfRange),
        0 => (End::Head, usize::MAX),
        _ => {
            (if count < 0 { End::Tail } else { End::Head }, usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX))
        }
    };
    let limits = cx.settings().list_nodes;
    let removed = cx.update(key, Missing::Skip, Event::list("lrem"), |list: &mut List, _| {
        let removed = list.remove_equal(element, from, most, &limits);
        Ok(Changed::by(removed, removed))
    })?;
    cx.reply().count(removed.unwrap_or(0));
    Ok(())
}

pub(super) const LTRIM: Command = Command {
    name: "LTRIM",
    syntax: "key start stop",
    cost: "O(N), N being the elements removed; what is large is freed elsewhere.",
    about: "Removes all elements outside of a range of indices.",
    run: ltrim,
    ..REMOVING
};

fn ltrim(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, start, stop) = (args.key()?, args.integer()?, args.integer()?);
    let limits = cx.settings().list_nodes;
    cx.update(key, Missing::Skip, Event::list("ltrim"), |list: &mut List, _| {
        let before = list.len();
        let gone = list.trim(positions(before, start, stop), &limits);
        Ok(Changed::by(before - list.len(), ()).announced().leaving(gone.map(Value::List)))
    })?;
    cx.reply().ok();
    Ok(())
}
