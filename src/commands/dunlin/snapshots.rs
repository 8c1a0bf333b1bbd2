//! DUNLIN SNAPSHOT and related commands: named snapshots of the state, to roll back to
//! ([`crate::engine::exec::snapshots::roll_back`]).

use super::ROW;
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Command, Ctx, Error};

pub(super) const SNAPSHOT: Command = Command {
    name: "SNAPSHOT",
    syntax: "name",
    arity: Arity::Exactly(3),
    about: "Takes a snapshot of the whole state under a name, and replaces a snapshot of that name.",
    run: snapshot,
    ..ROW
};

fn snapshot(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.word()?;
    operations::take_snapshot(cx, name);
    cx.reply().ok();
    Ok(())
}

pub(super) const ROLLBACK: Command = Command {
    name: "ROLLBACK",
    syntax: "name",
    arity: Arity::Exactly(3),
    cost: "O(N log N), N being the keys that changed since",
    about: "Restores the state of a snapshot, which remains. Later snapshots are dropped.",
    run: rollback,
    ..ROW
};

fn rollback(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.word()?;
    operations::roll_back(cx, name)?;
    cx.reply().ok();
    Ok(())
}

pub(super) const SNAPSHOTS: Command = Command {
    name: "SNAPSHOTS",
    arity: Arity::Exactly(2),
    cost: "O(N), N being how many there are",
    about: "Returns the names of the snapshots, the oldest first.",
    run: snapshots,
    ..ROW
};

fn snapshots(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let (engine, reply) = cx.engine_and_reply();
    reply.array(engine.databases.snapshots().len());
    engine.databases.snapshots().for_each(|name| reply.bulk(name));
    Ok(())
}

pub(super) const DROP_SNAPSHOT: Command = Command {
    name: "DROP-SNAPSHOT",
    syntax: "name",
    arity: Arity::Exactly(3),
    cost: "O(N log N), N being the keys that changed between it and the next one",
    about: "Drops a snapshot. Later changes stay.",
    run: drop_snapshot,
    ..ROW
};

fn drop_snapshot(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.word()?;
    operations::drop_snapshot(cx, name)?;
    cx.reply().ok();
    Ok(())
}
