//! DUNLIN SNAPSHOT and related commands: named snapshots of the state, to roll back to
//! ([`crate::engine::exec::snapshots::roll_back`]).

use super::{ROW, has_nodes, order_host};
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Command, Ctx, Error, HostCall, SnapshotOrder};

pub(super) const SNAPSHOT: Command = Command {
    name: "SNAPSHOT",
    syntax: "name",
    arity: Arity::Exactly(3),
    about: "Takes a snapshot of the whole state under a name, and replaces a snapshot of that name.",
    run: |cx, args| order(cx, args, SnapshotOrder::Take),
    ..ROW
};

pub(super) const ROLLBACK: Command = Command {
    name: "ROLLBACK",
    syntax: "name",
    arity: Arity::Exactly(3),
    cost: "O(N log N), N being the keys that changed since",
    about: "Restores the state of a snapshot, which remains. Later snapshots are dropped.",
    run: |cx, args| order(cx, args, SnapshotOrder::RollBack),
    ..ROW
};

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
    run: |cx, args| order(cx, args, SnapshotOrder::Drop),
    ..ROW
};

/// Carries out an order, at all nodes of a cluster.
fn order(cx: &mut Ctx<'_>, mut args: Args<'_>, order: fn(Vec<u8>) -> SnapshotOrder) -> Result<(), Error> {
    let order = order(args.word()?.to_vec());
    if has_nodes(cx) {
        return order_host(cx, HostCall::Snapshots(order));
    }
    operations::order_snapshots(cx, &order)?;
    cx.reply().ok();
    Ok(())
}
