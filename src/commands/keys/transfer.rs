//! RENAME, RENAMENX, MOVE and COPY: move or copy a key to another name or database. The deadline moves, too.

use super::existing_database;
use crate::engine::{
    Args, Arity, Change, ClusterError, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Lookup,
};
use crate::value::View;

const RENAME_FROM: Event = Event::generic("rename_from");
const RENAME_TO: Event = Event::generic("rename_to");
const MOVE_FROM: Event = Event::generic("move_from");
const MOVE_TO: Event = Event::generic("move_to");
const COPY_TO: Event = Event::generic("copy_to");

const RENAMED: KeySpec = KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::DELETE));

pub(super) const RENAME: Command = Command {
    name: "RENAME",
    syntax: "key newkey",
    family: Family::Generic,
    arity: Arity::Exactly(3),
    flags: Flags::WRITE,
    keys: &[RENAMED, KeySpec::at(2, KeyFlags::OW.and(KeyFlags::UPDATE))],
    about: "Renames a key, and replaces the key that had the new name.",
    run: rename,
    ..Command::ROW
};

fn rename(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, name) = (args.key()?, args.key()?);
    if cx.lookup(key, Lookup::WRITE).is_none() {
        return Err(Error::NoSuchKey);
    }
    if key != name {
        let database = cx.database_index();
        cx.relocate(key, RENAME_FROM, name, database, RENAME_TO);
    }
    cx.reply().ok();
    Ok(())
}

pub(super) const RENAMENX: Command = Command {
    name: "RENAMENX",
    syntax: "key newkey",
    family: Family::Generic,
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[RENAMED, KeySpec::at(2, KeyFlags::OW.and(KeyFlags::INSERT))],
    history: &[Change::says("3.2.0", "A key may be renamed to itself.")],
    about: "Renames a key only if the new name does not exist.",
    run: renamenx,
    ..Command::ROW
};

fn renamenx(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, name) = (args.key()?, args.key()?);
    if cx.lookup(key, Lookup::WRITE).is_none() {
        return Err(Error::NoSuchKey);
    }
    let database = cx.database_index();
    let renamed = key != name
        && cx.lookup(name, Lookup::WRITE).is_none()
        && cx.relocate(key, RENAME_FROM, name, database, RENAME_TO);
    cx.reply().integer(i64::from(renamed));
    Ok(())
}

pub(super) const MOVE: Command = Command {
    name: "MOVE",
    syntax: "key db",
    family: Family::Generic,
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE))],
    about: "Moves a key to another database only if it does not exist there.",
    run: move_key,
    ..Command::ROW
};

fn move_key(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if cx.engine().peers.cluster.is_some() {
        return Err(ClusterError::NotAllowed("MOVE").into());
    }
    let (key, number) = (args.key()?, args.int32()?);
    let database = existing_database(cx, number)?;
    if database == cx.database_index() {
        return Err(Error::SameObject);
    }
    cx.stats_mut().cluster_incompatible_operations += 1;
    let moved = cx.lookup(key, Lookup::WRITE).is_some()
        && cx.lookup_in(database, key, Lookup::WRITE).is_none()
        && cx.relocate(key, MOVE_FROM, key, database, MOVE_TO);
    cx.reply().integer(i64::from(moved));
    Ok(())
}

pub(super) const COPY: Command = Command {
    name: "COPY",
    syntax: "source destination [DB destination-db] [REPLACE]",
    family: Family::Generic,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS)), KeySpec::at(2, KeyFlags::OW.and(KeyFlags::UPDATE))],
    since: "6.2.0",
    cost: "O(N) where N is the number of elements of the collection",
    about: "Copies the value of a key to another key, possibly in another database.",
    run: copy,
    ..Command::ROW
};

fn copy(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (from, to) = (args.key()?, args.key()?);
    let (mut database, mut replace) = (cx.database_index(), false);
    while !args.is_empty() {
        if args.take("REPLACE") {
            replace = true;
        } else if args.take_with("DB", 1) {
            let number = args.int32()?;
            database = existing_database(cx, number)?;
        } else {
            return Err(Error::Syntax);
        }
    }
    if database != 0 && cx.engine().peers.cluster.is_some() {
        return Err(ClusterError::CopyToDatabase.into());
    }
    if database == cx.database_index() && from == to {
        return Err(Error::SameObject);
    }
    if database != 0 || cx.database_index() != 0 {
        cx.stats_mut().cluster_incompatible_operations += 1;
    }
    let is_free =
        cx.lookup(from, Lookup::READ).is_some() && (replace || cx.lookup_in(database, to, Lookup::WRITE).is_none());
    let copied = is_free && copy_value(cx, from, to, database)?;
    cx.reply().integer(i64::from(copied));
    Ok(())
}

/// Copies the value of `from`, with its deadline, to `to` in database `database`; false when there is none.
fn copy_value(cx: &mut Ctx<'_>, from: &[u8], to: &[u8], database: usize) -> Result<bool, Error> {
    let Some(found) = cx.lookup(from, Lookup::NO_TRACE) else { return Ok(false) };
    if let View::VectorSet(_) = found.view() {
        return Err(Error::NotCopied);
    }
    let (value, deadline_ms) = (found.view().to_value(), found.deadline_ms());
    cx.restore(database, to, value, deadline_ms, None, COPY_TO);
    Ok(true)
}
