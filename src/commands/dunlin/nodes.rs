//! DUNLIN NODES and related commands: the nodes of a cluster in this process, from any of them.

use super::{ROW, explained};
use crate::engine::{Args, Arity, Command, Ctx, Error, HostCall, HostReply, MoveStep, NodeOrder};
use crate::value::hash_slot::HASH_SLOTS;

pub(super) const NODES: Command = Command {
    name: "NODES",
    arity: Arity::Exactly(2),
    cost: "O(N), N being how many there are",
    about: "Lists the nodes of the cluster by their numbers, with port, id, whether it is up, slots and keys.",
    run: list,
    ..ROW
};

fn list(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let Some(HostReply::Nodes(nodes)) = cx.call_host(HostCall::Nodes)? else { return Ok(()) };
    let reply = cx.reply();
    reply.array(nodes.len());
    for node in nodes {
        reply.map(6);
        for (field, number) in [("number", node.number), ("port", node.port.into())] {
            reply.bulk(field.as_bytes());
            reply.count(number);
        }
        reply.bulk(b"id");
        reply.bulk(node.id.as_bytes());
        for (field, number) in [("up", usize::from(node.is_up)), ("slots", node.slots), ("keys", node.keys)] {
            reply.bulk(field.as_bytes());
            reply.count(number);
        }
    }
    Ok(())
}

pub(super) const NODE: Command = Command {
    name: "NODE",
    syntax: "number <KILL | RESTART [EMPTY]>",
    arity: Arity::AtLeast(4),
    about: "Kills a node of the cluster: its port and connections close, and the others no longer hear it. Or starts it \
            again, with its data or empty.",
    run: |cx, args| explained(&NODE, order(cx, args)),
    ..ROW
};

fn order(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let number = node_number(&mut args)?;
    let order = if args.take("KILL") {
        NodeOrder::Kill
    } else if !args.take("RESTART") {
        return Err(Error::Syntax);
    } else if args.take("EMPTY") {
        NodeOrder::RestartEmpty
    } else {
        NodeOrder::Restart
    };
    args.end()?;
    if cx.call_host(HostCall::Node(number, order))?.is_some() {
        cx.reply().ok();
    }
    Ok(())
}

pub(super) const MIGRATE_SLOT: Command = Command {
    name: "MIGRATE-SLOT",
    syntax: "slot TO number [BEGIN | KEYS count | FINISH | CANCEL]",
    arity: Arity::AtLeast(5),
    cost: "O(N), N being the keys that move",
    about: "Moves a slot from the node that owns it to another one, with its keys; or does a step of that.",
    run: |cx, args| explained(&MIGRATE_SLOT, migrate_slot(cx, args)),
    ..ROW
};

fn migrate_slot(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let slot = u16::try_from(args.integer()?).ok().filter(|slot| *slot < HASH_SLOTS).ok_or(Error::Syntax)?;
    if !args.take("TO") {
        return Err(Error::Syntax);
    }
    let to = node_number(&mut args)?;
    let step = if args.take("BEGIN") {
        MoveStep::Begin
    } else if args.take_with("KEYS", 1) {
        MoveStep::Keys(usize::try_from(args.integer()?).map_err(|_| Error::Syntax)?)
    } else if args.take("FINISH") {
        MoveStep::Finish
    } else if args.take("CANCEL") {
        MoveStep::Cancel
    } else {
        MoveStep::Whole
    };
    args.end()?;
    if cx.call_host(HostCall::MoveSlot { slot, to, step })?.is_some() {
        cx.reply().ok();
    }
    Ok(())
}

fn node_number(args: &mut Args<'_>) -> Result<usize, Error> {
    usize::try_from(args.integer()?).map_err(|_| Error::Syntax)
}
