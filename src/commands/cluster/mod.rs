//! CLUSTER and other commands of the nodes of a cluster. A server that is none refuses them with Redis's error.
//!
//! Source: the answers of a cluster of Redis 8.0.6.

mod nodes;
mod report;
mod slots;

pub(in crate::commands) use report::{figures, message_figures};

use slots::Assignment;

use super::help;
use crate::engine::cluster::{Node, View};
use crate::engine::{
    Args, Arity, Asking, Change, ClusterError, Command, Ctx, Error, Family, Flags, ServerError, shown,
};

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[ASKING, CLUSTER, READONLY, READWRITE];

/// Fields shared by all subcommands.
const ROW: Command = Command { family: Family::Cluster, since: "3.0.0", ..Command::ROW };

/// The cluster as this node sees it.
fn view<'c>(cx: &'c Ctx<'_>) -> Result<&'c View, Error> {
    cx.engine().peers.cluster.as_deref().ok_or_else(|| ServerError::NoCluster.into())
}

/// The node with that id.
fn known_node<'c>(cx: &'c Ctx<'_>, id: &[u8]) -> Result<&'c Node, Error> {
    view(cx)?.find(id).ok_or_else(|| ClusterError::UnknownNode(shown(id)).into())
}

const ASKING: Command = Command {
    name: "ASKING",
    flags: Flags::FAST.and(Flags::CONNECTION),
    about: "Lets the next command access a slot that is being imported.",
    run: asking,
    ..ROW
};

fn asking(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    if !cx.is_in_script() {
        // In a transaction it holds for the scripts that follow there: all other commands were let in before.
        cx.session_mut().asking = if cx.is_nested() { Asking::Now } else { Asking::Next };
    }
    cx.reply().ok();
    Ok(())
}

const READONLY: Command = Command {
    name: "READONLY",
    flags: Flags::FAST.and(Flags::CONNECTION).and(Flags::LOADING).and(Flags::STALE),
    about: "Lets this connection read from a cluster's replica.",
    run: |cx, args| set_read_only(cx, args, true),
    ..ROW
};

const READWRITE: Command =
    Command { name: "READWRITE", about: "Ends READONLY.", run: |cx, args| set_read_only(cx, args, false), ..READONLY };

fn set_read_only(cx: &mut Ctx<'_>, _: Args<'_>, is_on: bool) -> Result<(), Error> {
    view(cx)?;
    cx.session_mut().reads_replicas = is_on;
    cx.reply().ok();
    Ok(())
}

const CLUSTER: Command = Command {
    name: "CLUSTER",
    arity: Arity::AtLeast(2),
    cost: "Depends on subcommand.",
    about: "A container for cluster commands.",
    subcommands: &[
        ADDSLOTS,
        ADDSLOTSRANGE,
        BUMPEPOCH,
        COUNT_FAILURE_REPORTS,
        COUNTKEYSINSLOT,
        DELSLOTS,
        DELSLOTSRANGE,
        FAILOVER,
        FLUSHSLOTS,
        FORGET,
        GETKEYSINSLOT,
        HELP,
        INFO,
        KEYSLOT,
        LINKS,
        MEET,
        MYID,
        MYSHARDID,
        NODES,
        REPLICAS,
        REPLICATE,
        RESET,
        SAVECONFIG,
        SET_CONFIG_EPOCH,
        SETSLOT,
        SHARDS,
        SLAVES,
        SLOTS,
    ],
    ..ROW
};

const VARIES: &[&str] = &["nondeterministic_output"];

/// Fields shared by subcommands that report something.
const READS: Command = Command { arity: Arity::Exactly(2), flags: Flags::STALE, ..ROW };

/// Fields shared by subcommands that change the cluster.
const CHANGES: Command =
    Command { flags: Flags::ADMIN.and(Flags::STALE).and(Flags::NO_ASYNC_LOADING), arity: Arity::Exactly(2), ..ROW };

const ADDSLOTS: Command = Command {
    name: "ADDSLOTS",
    syntax: "slot [slot ...]",
    arity: Arity::AtLeast(3),
    cost: "O(N), N being the number of slots",
    about: "Assigns slots to this node.",
    run: |cx, args| slots::assign(cx, args, Assignment::Add),
    ..CHANGES
};

const ADDSLOTSRANGE: Command = Command {
    name: "ADDSLOTSRANGE",
    syntax: "range:<start-slot end-slot ...>",
    arity: Arity::AtLeast(4),
    since: "7.0.0",
    cost: "O(N), N being the number of slots",
    about: "Assigns ranges of slots to this node.",
    run: |cx, args| slots::assign_ranges(cx, args, Assignment::Add),
    ..CHANGES
};

const BUMPEPOCH: Command = Command {
    name: "BUMPEPOCH",
    about: "Gives this node the highest epoch.",
    run: nodes::bump_epoch,
    tips: VARIES,
    ..CHANGES
};

const COUNT_FAILURE_REPORTS: Command = Command {
    name: "COUNT-FAILURE-REPORTS",
    syntax: "node-id",
    arity: Arity::Exactly(3),
    flags: Flags::ADMIN.and(Flags::STALE),
    cost: "O(N), N being the number of reports",
    about: "Returns the number of failure reports about a node.",
    run: nodes::count_failure_reports,
    tips: VARIES,
    ..ROW
};

const COUNTKEYSINSLOT: Command = Command {
    name: "COUNTKEYSINSLOT",
    syntax: "slot",
    arity: Arity::Exactly(3),
    about: "Returns the number of keys in a slot.",
    run: slots::count_keys,
    ..READS
};

const DELSLOTS: Command = Command {
    name: "DELSLOTS",
    about: "Takes slots from their owners.",
    run: |cx, args| slots::assign(cx, args, Assignment::Delete),
    ..ADDSLOTS
};

const DELSLOTSRANGE: Command = Command {
    name: "DELSLOTSRANGE",
    about: "Takes ranges of slots from their owners.",
    run: |cx, args| slots::assign_ranges(cx, args, Assignment::Delete),
    ..ADDSLOTSRANGE
};

const FAILOVER: Command = Command {
    name: "FAILOVER",
    syntax: "options:[FORCE|TAKEOVER]",
    arity: Arity::AtLeast(2),
    about: "Makes a replica replace its primary.",
    run: nodes::failover,
    ..CHANGES
};

const FLUSHSLOTS: Command =
    Command { name: "FLUSHSLOTS", about: "Takes all slots from this node.", run: slots::flush, ..CHANGES };

const FORGET: Command = Command {
    name: "FORGET",
    syntax: "node-id",
    arity: Arity::Exactly(3),
    about: "Makes this node forget another one.",
    run: nodes::forget,
    ..CHANGES
};

const GETKEYSINSLOT: Command = Command {
    name: "GETKEYSINSLOT",
    syntax: "slot count",
    arity: Arity::Exactly(4),
    cost: "O(N), N being the number of keys asked for",
    about: "Returns keys of a slot.",
    run: slots::get_keys,
    tips: VARIES,
    ..READS
};

/// A server that is no node refuses this one like the others.
const HELP: Command = Command {
    name: "HELP",
    flags: Flags::LOADING.and(Flags::STALE),
    since: "5.0.0",
    about: "Lists the subcommands and what they do.",
    run: help_in_cluster,
    ..READS
};

fn help_in_cluster(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    view(cx)?;
    help::write(cx, args)
}

const INFO: Command =
    Command { name: "INFO", about: "Returns the state of the cluster.", run: report::info, tips: VARIES, ..READS };

const KEYSLOT: Command = Command {
    name: "KEYSLOT",
    syntax: "key",
    arity: Arity::Exactly(3),
    cost: "O(N), N being the number of bytes of the key",
    about: "Returns the slot of a key.",
    run: slots::key_slot,
    ..READS
};

const LINKS: Command = Command {
    name: "LINKS",
    since: "7.0.0",
    cost: "O(N), N being the number of nodes",
    about: "Lists the connections to other nodes.",
    run: report::links,
    tips: VARIES,
    ..READS
};

const MEET: Command = Command {
    name: "MEET",
    syntax: "ip port [cluster-bus-port]",
    arity: Arity::AtLeast(4),
    history: &[Change::brings("4.0.0", &["cluster-bus-port"])],
    about: "Makes this node and another one know each other.",
    run: nodes::meet,
    ..CHANGES
};

const MYID: Command = Command {
    name: "MYID",
    about: "Returns the id of this node.",
    run: |cx, _| nodes::my_id(cx, |node| node.id),
    ..READS
};

const MYSHARDID: Command = Command {
    name: "MYSHARDID",
    since: "7.2.0",
    about: "Returns the id of this node's shard.",
    run: |cx, _| nodes::my_id(cx, |node| node.shard),
    tips: VARIES,
    ..READS
};

const NODES: Command = Command {
    name: "NODES",
    cost: "O(N), N being the number of nodes",
    about: "Lists all nodes.",
    run: report::nodes,
    tips: VARIES,
    ..READS
};

const REPLICAS: Command = Command {
    name: "REPLICAS",
    since: "5.0.0",
    about: "Lists the replicas of a node.",
    run: nodes::replicas,
    cost: "O(N), N being the number of replicas",
    ..COUNT_FAILURE_REPORTS
};

const REPLICATE: Command =
    Command { name: "REPLICATE", about: "Makes this node a replica of another one.", run: nodes::replicate, ..FORGET };

const RESET: Command = Command {
    name: "RESET",
    syntax: "reset-type:[HARD|SOFT]",
    arity: Arity::AtLeast(2),
    flags: Flags::ADMIN.and(Flags::STALE).and(Flags::NOSCRIPT),
    cost: "O(N), N being the number of known nodes",
    about: "Makes this node forget all others and its slots.",
    run: nodes::reset,
    ..ROW
};

const SAVECONFIG: Command = Command {
    name: "SAVECONFIG",
    about: "Keeps what this node knows of its cluster for its next start; it is kept at each change.",
    run: nodes::save_config,
    ..CHANGES
};

const SET_CONFIG_EPOCH: Command = Command {
    name: "SET-CONFIG-EPOCH",
    syntax: "config-epoch",
    arity: Arity::Exactly(3),
    about: "Sets the epoch of a node that knows no other.",
    run: nodes::set_config_epoch,
    ..CHANGES
};

const SETSLOT: Command = Command {
    name: "SETSLOT",
    syntax: "slot subcommand:<IMPORTING importing:node-id|MIGRATING migrating:node-id|NODE node:node-id|STABLE>",
    arity: Arity::AtLeast(4),
    about: "Sets the owner of a slot, or whether it moves.",
    run: slots::set_slot,
    ..CHANGES
};

const SHARDS: Command = Command {
    name: "SHARDS",
    flags: Flags::LOADING.and(Flags::STALE),
    since: "7.0.0",
    cost: "O(N), N being the number of nodes",
    about: "Lists the nodes of each shard, and their slots.",
    run: report::shards,
    tips: VARIES,
    ..READS
};

const SLAVES: Command = Command {
    name: "SLAVES",
    since: "3.0.0",
    about: "Older name of CLUSTER REPLICAS.",
    deprecated: Some(("5.0.0", "`CLUSTER REPLICAS`")),
    ..REPLICAS
};

const SLOTS: Command = Command {
    name: "SLOTS",
    since: "3.0.0",
    history: &[
        Change::says("4.0.0", "Returns the ids of nodes."),
        Change::says("7.0.0", "Returns more about how nodes are reached."),
    ],
    about: "Lists the slots of each node.",
    run: report::slots,
    deprecated: Some(("7.0.0", "`CLUSTER SHARDS`")),
    ..SHARDS
};
