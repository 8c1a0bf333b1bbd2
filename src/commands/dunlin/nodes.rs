//! DUNLIN NODES and related commands: the nodes of a cluster in this process, from any of them.

use super::{ROW, count, explained, order_host};
use crate::engine::state::replication::{FailoverWay, Lag};
use crate::engine::{Args, Arity, Command, Ctx, Error, HostCall, HostReply, LinkOrder, NodeOrder, SlotMigrationStep};
use crate::value::hash_slot::HASH_SLOTS;
use crate::value::number;

pub(super) const NODES: Command = Command {
    name: "NODES",
    arity: Arity::Exactly(2),
    cost: "O(N), N being how many there are",
    about: "Lists the nodes of the cluster by their numbers, with port, id, shard, role, the number of its primary, \
            whether it is up, paused, and has a stale view, offset in the replication stream, lag, slots and keys.",
    run: list,
    ..ROW
};

fn list(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let Some(HostReply::Nodes(nodes)) = cx.call_host(HostCall::Nodes)? else { return Ok(()) };
    let reply = cx.reply();
    reply.array(nodes.len());
    for node in nodes {
        reply.map(14);
        for (field, number) in [("number", node.number), ("port", node.port.into())] {
            reply.bulk(field.as_bytes());
            reply.count(number);
        }
        for (field, id) in [("id", &node.id), ("shard", &node.shard)] {
            reply.bulk(field.as_bytes());
            reply.bulk(id.as_bytes());
        }
        reply.bulk(b"role");
        reply.bulk(if node.primary.is_some() { b"replica" } else { b"master" });
        reply.bulk(b"primary");
        match node.primary {
            Some(primary) => reply.count(primary),
            None => reply.null(),
        }
        let offset = usize::try_from(node.offset).unwrap_or(usize::MAX);
        let (lag_ms, lag_writes) = match node.lag {
            Lag::Milliseconds(lag_ms) => (usize::try_from(lag_ms).unwrap_or(0), 0),
            Lag::Writes(count) => (0, count),
        };
        let (up, paused, stale) = (node.is_up.into(), node.is_paused.into(), node.has_stale_view.into());
        for (field, number) in [
            ("up", up),
            ("paused", paused),
            ("stale", stale),
            ("offset", offset),
            ("lag-ms", lag_ms),
            ("lag-writes", lag_writes),
            ("slots", node.slots),
            ("keys", node.keys),
        ] {
            reply.bulk(field.as_bytes());
            reply.count(number);
        }
    }
    Ok(())
}

pub(super) const NODE: Command = Command {
    name: "NODE",
    syntax: "<ADD [REPLICA-OF number] | number <KILL | PAUSE | RESUME | RESTART [EMPTY] | REMOVE>>",
    arity: Arity::AtLeast(3),
    about: "KILL closes the port and the connections of a node of the cluster, and the others no longer hear it; PAUSE \
            keeps them open and answers nobody. RESUME lets it go on; RESTART starts it again, with its data or empty. \
            ADD starts one more node, without slots, and replies with its number and its address; REMOVE ends one \
            that has no slots, and the others forget it.",
    run: |cx, args| explained(&NODE, order(cx, args)),
    ..ROW
};

fn order(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if args.take("ADD") {
        return add(cx, args);
    }
    let number = count(&mut args)?;
    if args.take("REMOVE") {
        args.end()?;
        return order_host(cx, HostCall::RemoveNode(number));
    }
    let order = if args.take("KILL") {
        NodeOrder::Kill
    } else if args.take("PAUSE") {
        NodeOrder::Pause
    } else if args.take("RESUME") {
        NodeOrder::Resume
    } else if !args.take("RESTART") {
        return Err(Error::Syntax);
    } else if args.take("EMPTY") {
        NodeOrder::RestartEmpty
    } else {
        NodeOrder::Restart
    };
    args.end()?;
    order_host(cx, HostCall::Node(number, order))
}

fn add(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let primary = if args.take_with("REPLICA-OF", 1) { Some(count(&mut args)?) } else { None };
    args.end()?;
    let Some(HostReply::NewNode(number, address)) = cx.call_host(HostCall::AddNode(primary))? else { return Ok(()) };
    let reply = cx.reply();
    reply.array(2);
    reply.count(number);
    reply.bulk(address.as_bytes());
    Ok(())
}

pub(super) const FAILOVER: Command = Command {
    name: "FAILOVER",
    syntax: "number [GRACEFUL | FORCE | TAKEOVER | LOSING writes]",
    arity: Arity::AtLeast(3),
    about: "Makes a replica of the cluster replace its primary, as CLUSTER FAILOVER at that node does; or at once, and \
            without the last writes of the primary, which it must not have applied yet.",
    run: |cx, args| explained(&FAILOVER, fail_over(cx, args)),
    ..ROW
};

fn fail_over(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let number = count(&mut args)?;
    let way = if args.take("FORCE") {
        FailoverWay::Force
    } else if args.take("TAKEOVER") {
        FailoverWay::TakeOver
    } else if args.take_with("LOSING", 1) {
        FailoverWay::Losing(count(&mut args)?)
    } else {
        args.take("GRACEFUL");
        FailoverWay::Graceful
    };
    args.end()?;
    order_host(cx, HostCall::Node(number, NodeOrder::FailOver(way)))
}

pub(super) const LAG: Command = Command {
    name: "LAG",
    syntax: "number <milliseconds | WRITES count | NONE>",
    arity: Arity::AtLeast(4),
    about: "Makes a replica of the cluster apply the writes of its primary later, by the virtual clock, or stay a \
            number of writes behind; NONE ends that.",
    run: |cx, args| explained(&LAG, lag(cx, args)),
    ..ROW
};

fn lag(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let number = count(&mut args)?;
    let lag = if args.take("WRITES") {
        Lag::Writes(count(&mut args)?)
    } else if args.take("NONE") {
        Lag::NONE
    } else {
        Lag::Milliseconds(count::<u64>(&mut args)?.cast_signed())
    };
    args.end()?;
    order_host(cx, HostCall::Node(number, NodeOrder::Lag(lag)))
}

pub(super) const VIEW: Command = Command {
    name: "VIEW",
    syntax: "number <STALE | FRESH>",
    arity: Arity::Exactly(4),
    about: "Freezes a node's view of the cluster: it ignores messages about slots, roles and failures, and does not \
            vote, until the view is fresh again.",
    run: |cx, args| explained(&VIEW, view(cx, args)),
    ..ROW
};

fn view(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let number = count(&mut args)?;
    let order = if args.take("STALE") {
        NodeOrder::StaleView
    } else if args.take("FRESH") {
        NodeOrder::FreshView
    } else {
        return Err(Error::Syntax);
    };
    order_host(cx, HostCall::Node(number, order))
}

pub(super) const LINK: Command = Command {
    name: "LINK",
    syntax: "number number <CUT | HEAL | DELAY milliseconds>",
    arity: Arity::AtLeast(5),
    about: "Cuts the link between two nodes of the cluster, connects them again, or delays their messages by the \
            virtual clock. Clients reach both.",
    run: |cx, args| explained(&LINK, link(cx, args)),
    ..ROW
};

fn link(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (one, other) = (count(&mut args)?, count(&mut args)?);
    let order = if args.take("CUT") {
        LinkOrder::Cut
    } else if args.take("HEAL") {
        LinkOrder::Heal
    } else if args.take_with("DELAY", 1) {
        LinkOrder::Delay(count::<u64>(&mut args)?.cast_signed())
    } else {
        return Err(Error::Syntax);
    };
    args.end()?;
    order_host(cx, HostCall::Link { one, other, order })
}

pub(super) const PARTITION: Command = Command {
    name: "PARTITION",
    syntax: "numbers [numbers ...]",
    arity: Arity::AtLeast(3),
    cost: "O(N^2), N being the number of nodes",
    about: "Cuts the links between groups of nodes, each written as 0,3; nodes that are in none are a group, too. Clients \
            reach all nodes.",
    run: |cx, args| explained(&PARTITION, partition(cx, args)),
    ..ROW
};

fn partition(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let number =
        |word: &[u8]| number::parse_i64(word).and_then(|number| usize::try_from(number).ok()).ok_or(Error::Syntax);
    let group = |word: &[u8]| word.split(|byte| *byte == b',').map(number).collect::<Result<Vec<usize>, Error>>();
    let groups = args.rest().map(group).collect::<Result<Vec<Vec<usize>>, Error>>()?;
    order_host(cx, HostCall::Partition(groups))
}

pub(super) const HEAL: Command = Command {
    name: "HEAL",
    arity: Arity::Exactly(2),
    about: "Connects all nodes of the cluster again that DUNLIN PARTITION and DUNLIN LINK have separated, without delays.",
    run: |cx, _| order_host(cx, HostCall::HealLinks),
    ..ROW
};

pub(super) const MIGRATE_SLOT: Command = Command {
    name: "MIGRATE-SLOT",
    syntax: "slot TO number [BEGIN | KEYS count | KEY key [key ...] | FINISH | CANCEL]",
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
    let to = count(&mut args)?;
    let step = if args.take("BEGIN") {
        SlotMigrationStep::Begin
    } else if args.take_with("KEYS", 1) {
        SlotMigrationStep::Keys(count(&mut args)?)
    } else if args.take_with("KEY", 1) {
        SlotMigrationStep::Named(args.words(args.left())?.into_iter().map(<[u8]>::to_vec).collect())
    } else if args.take("FINISH") {
        SlotMigrationStep::Finish
    } else if args.take("CANCEL") {
        SlotMigrationStep::Cancel
    } else {
        SlotMigrationStep::Whole
    };
    args.end()?;
    order_host(cx, HostCall::MigrateSlot { slot, to, step })
}
