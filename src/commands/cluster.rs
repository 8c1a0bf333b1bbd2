//! CLUSTER and other commands of clusters, which this server does not support: they are refused with Redis's errors.
//!
//! The subcommands exist nevertheless, so that COMMAND reports them and ACL rules can name them as in Redis.

use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, ServerError};

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[ASKING, CLUSTER, READONLY, READWRITE];

/// Fields shared by all subcommands.
const ROW: Command = Command { family: Family::Cluster, since: "3.0.0", run: refuse, ..Command::ROW };

fn refuse(_: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    Err(ServerError::NoCluster.into())
}

const ASKING: Command = Command {
    name: "ASKING",
    flags: Flags::FAST.and(Flags::CONNECTION),
    about: "Would let the next command access a slot that is being imported; there is no cluster.",
    ..ROW
};

const READONLY: Command = Command {
    name: "READONLY",
    flags: Flags::FAST.and(Flags::CONNECTION).and(Flags::LOADING).and(Flags::STALE),
    about: "Would let this connection read from a cluster's replica; there is no cluster.",
    ..ROW
};

const READWRITE: Command = Command { name: "READWRITE", about: "Would end READONLY; there is no cluster.", ..READONLY };

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
    about: "Would assign slots to this node.",
    ..CHANGES
};

const ADDSLOTSRANGE: Command = Command {
    name: "ADDSLOTSRANGE",
    syntax: "range:<start-slot end-slot ...>",
    arity: Arity::AtLeast(4),
    since: "7.0.0",
    cost: "O(N), N being the number of slots",
    about: "Would assign ranges of slots to this node.",
    ..CHANGES
};

const BUMPEPOCH: Command =
    Command { name: "BUMPEPOCH", about: "Would advance the cluster's epoch.", tips: VARIES, ..CHANGES };

const COUNT_FAILURE_REPORTS: Command = Command {
    name: "COUNT-FAILURE-REPORTS",
    syntax: "node-id",
    arity: Arity::Exactly(3),
    flags: Flags::ADMIN.and(Flags::STALE),
    cost: "O(N), N being the number of reports",
    about: "Would return the number of failure reports about a node.",
    tips: VARIES,
    ..ROW
};

const COUNTKEYSINSLOT: Command = Command {
    name: "COUNTKEYSINSLOT",
    syntax: "slot",
    arity: Arity::Exactly(3),
    about: "Would return the number of keys in a slot.",
    ..READS
};

const DELSLOTS: Command = Command { name: "DELSLOTS", about: "Would unassign slots of this node.", ..ADDSLOTS };

const DELSLOTSRANGE: Command =
    Command { name: "DELSLOTSRANGE", about: "Would unassign ranges of slots of this node.", ..ADDSLOTSRANGE };

const FAILOVER: Command = Command {
    name: "FAILOVER",
    syntax: "options:[FORCE|TAKEOVER]",
    arity: Arity::AtLeast(2),
    about: "Would make this replica replace its primary.",
    ..CHANGES
};

const FLUSHSLOTS: Command = Command { name: "FLUSHSLOTS", about: "Would unassign all slots of this node.", ..CHANGES };

const FORGET: Command = Command {
    name: "FORGET",
    syntax: "node-id",
    arity: Arity::Exactly(3),
    about: "Would remove a node from the cluster.",
    ..CHANGES
};

const GETKEYSINSLOT: Command = Command {
    name: "GETKEYSINSLOT",
    syntax: "slot count",
    arity: Arity::Exactly(4),
    cost: "O(N), N being the number of keys asked for",
    about: "Would return keys of a slot.",
    tips: VARIES,
    ..READS
};

/// Redis refuses this one like the others.
const HELP: Command = Command {
    name: "HELP",
    flags: Flags::LOADING.and(Flags::STALE),
    since: "5.0.0",
    about: "Would list the subcommands and what they do.",
    ..READS
};

const INFO: Command = Command { name: "INFO", about: "Would return the state of the cluster.", tips: VARIES, ..READS };

const KEYSLOT: Command = Command {
    name: "KEYSLOT",
    syntax: "key",
    arity: Arity::Exactly(3),
    cost: "O(N), N being the number of bytes of the key",
    about: "Would return the slot of a key.",
    ..READS
};

const LINKS: Command = Command {
    name: "LINKS",
    since: "7.0.0",
    cost: "O(N), N being the number of nodes",
    about: "Would list the connections between nodes.",
    tips: VARIES,
    ..READS
};

const MEET: Command = Command {
    name: "MEET",
    syntax: "ip port [cluster-bus-port]",
    arity: Arity::AtLeast(4),
    history: &[Change::brings("4.0.0", &["cluster-bus-port"])],
    about: "Would add a node to the cluster.",
    ..CHANGES
};

const MYID: Command = Command { name: "MYID", about: "Would return the id of this node.", ..READS };

const MYSHARDID: Command = Command {
    name: "MYSHARDID",
    since: "7.2.0",
    about: "Would return the id of this node's shard.",
    tips: VARIES,
    ..READS
};

const NODES: Command = Command {
    name: "NODES",
    cost: "O(N), N being the number of nodes",
    about: "Would list all nodes.",
    tips: VARIES,
    ..READS
};

const REPLICAS: Command = Command {
    name: "REPLICAS",
    since: "5.0.0",
    about: "Would list the replicas of a node.",
    cost: "O(N), N being the number of replicas",
    ..COUNT_FAILURE_REPORTS
};

const REPLICATE: Command = Command { name: "REPLICATE", about: "Would make this node a replica of another.", ..FORGET };

const RESET: Command = Command {
    name: "RESET",
    syntax: "reset-type:[HARD|SOFT]",
    arity: Arity::AtLeast(2),
    flags: Flags::ADMIN.and(Flags::STALE).and(Flags::NOSCRIPT),
    cost: "O(N), N being the number of known nodes",
    about: "Would reset this node.",
    ..ROW
};

const SAVECONFIG: Command =
    Command { name: "SAVECONFIG", about: "Would save the cluster's configuration file.", ..CHANGES };

const SET_CONFIG_EPOCH: Command = Command {
    name: "SET-CONFIG-EPOCH",
    syntax: "config-epoch",
    arity: Arity::Exactly(3),
    about: "Would set the epoch of a new node.",
    ..CHANGES
};

const SETSLOT: Command = Command {
    name: "SETSLOT",
    syntax: "slot subcommand:<IMPORTING importing:node-id|MIGRATING migrating:node-id|NODE node:node-id|STABLE>",
    arity: Arity::AtLeast(4),
    about: "Would set the state of a slot.",
    ..CHANGES
};

const SHARDS: Command = Command {
    name: "SHARDS",
    flags: Flags::LOADING.and(Flags::STALE),
    since: "7.0.0",
    cost: "O(N), N being the number of nodes",
    about: "Would list the slots of each node.",
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
    about: "Would list the slots of each node.",
    deprecated: Some(("7.0.0", "`CLUSTER SHARDS`")),
    ..SHARDS
};
