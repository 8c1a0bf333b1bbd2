//! CLUSTER and what else belongs to clusters, of which this server is no part: refused in Redis's words.
//!
//! Its subcommands are known all the same, so that what is told of commands, and what rules
//! about them say, is as in Redis.

use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, ServerError};

/// The family's rows.
pub const COMMANDS: &[Command] = &[ASKING, CLUSTER, READONLY, READWRITE];

/// What all of them share.
const ROW: Command = Command { family: Family::Cluster, since: "3.0.0", run: refuse, ..Command::ROW };

fn refuse(_: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    Err(ServerError::NoCluster.into())
}

const ASKING: Command = Command {
    name: "ASKING",
    flags: Flags::FAST.and(Flags::CONNECTION),
    about: "Would let the next command reach a slot that moves here.",
    ..ROW
};

const READONLY: Command = Command {
    name: "READONLY",
    flags: Flags::FAST.and(Flags::CONNECTION).and(Flags::LOADING).and(Flags::STALE),
    about: "Would let this connection read from a replica.",
    ..ROW
};

const READWRITE: Command =
    Command { name: "READWRITE", about: "Would let this connection read from a replica no longer.", ..READONLY };

const CLUSTER: Command = Command {
    name: "CLUSTER",
    arity: Arity::AtLeast(2),
    cost: "Depends on subcommand.",
    about: "Commands of clusters.",
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

/// What tells something shares.
const READS: Command = Command { arity: Arity::Exactly(2), flags: Flags::STALE, ..ROW };

/// What changes the cluster shares.
const CHANGES: Command =
    Command { flags: Flags::ADMIN.and(Flags::STALE).and(Flags::NO_ASYNC_LOADING), arity: Arity::Exactly(2), ..ROW };

const ADDSLOTS: Command = Command {
    name: "ADDSLOTS",
    syntax: "slot [slot ...]",
    arity: Arity::AtLeast(3),
    cost: "O(N), N being the number of slots",
    about: "Would give this node slots.",
    ..CHANGES
};

const ADDSLOTSRANGE: Command = Command {
    name: "ADDSLOTSRANGE",
    syntax: "range:<start-slot end-slot ...>",
    arity: Arity::AtLeast(4),
    since: "7.0.0",
    cost: "O(N), N being the number of slots",
    about: "Would give this node all slots from one to another.",
    ..CHANGES
};

const BUMPEPOCH: Command = Command { name: "BUMPEPOCH", about: "Would begin another epoch.", tips: VARIES, ..CHANGES };

const COUNT_FAILURE_REPORTS: Command = Command {
    name: "COUNT-FAILURE-REPORTS",
    syntax: "node-id",
    arity: Arity::Exactly(3),
    flags: Flags::ADMIN.and(Flags::STALE),
    cost: "O(N), N being the number of reports",
    about: "Would tell how many nodes say that a node has failed.",
    tips: VARIES,
    ..ROW
};

const COUNTKEYSINSLOT: Command = Command {
    name: "COUNTKEYSINSLOT",
    syntax: "slot",
    arity: Arity::Exactly(3),
    about: "Would tell how many keys a slot has.",
    ..READS
};

const DELSLOTS: Command = Command { name: "DELSLOTS", about: "Would take slots from this node.", ..ADDSLOTS };

const DELSLOTSRANGE: Command = Command {
    name: "DELSLOTSRANGE",
    about: "Would take all slots from one to another from this node.",
    ..ADDSLOTSRANGE
};

const FAILOVER: Command = Command {
    name: "FAILOVER",
    syntax: "options:[FORCE|TAKEOVER]",
    arity: Arity::AtLeast(2),
    about: "Would let this replica take its primary's place.",
    ..CHANGES
};

const FLUSHSLOTS: Command = Command { name: "FLUSHSLOTS", about: "Would take all slots from this node.", ..CHANGES };

const FORGET: Command = Command {
    name: "FORGET",
    syntax: "node-id",
    arity: Arity::Exactly(3),
    about: "Would remove a node from those that are known.",
    ..CHANGES
};

const GETKEYSINSLOT: Command = Command {
    name: "GETKEYSINSLOT",
    syntax: "slot count",
    arity: Arity::Exactly(4),
    cost: "O(N), N being the number of keys asked for",
    about: "Would tell keys of a slot.",
    tips: VARIES,
    ..READS
};

/// In Redis it is refused like the others.
const HELP: Command = Command {
    name: "HELP",
    flags: Flags::LOADING.and(Flags::STALE),
    since: "5.0.0",
    about: "Would tell what the subcommands are and do.",
    ..READS
};

const INFO: Command = Command { name: "INFO", about: "Would tell how the cluster is.", tips: VARIES, ..READS };

const KEYSLOT: Command = Command {
    name: "KEYSLOT",
    syntax: "key",
    arity: Arity::Exactly(3),
    cost: "O(N), N being the number of bytes of the key",
    about: "Would tell the slot of a key.",
    ..READS
};

const LINKS: Command = Command {
    name: "LINKS",
    since: "7.0.0",
    cost: "O(N), N being the number of nodes",
    about: "Would tell of the connections between nodes.",
    tips: VARIES,
    ..READS
};

const MEET: Command = Command {
    name: "MEET",
    syntax: "ip port [cluster-bus-port]",
    arity: Arity::AtLeast(4),
    history: &[Change::brings("4.0.0", &["cluster-bus-port"])],
    about: "Would make another node known.",
    ..CHANGES
};

const MYID: Command = Command { name: "MYID", about: "Would tell the id of this node.", ..READS };

const MYSHARDID: Command = Command {
    name: "MYSHARDID",
    since: "7.2.0",
    about: "Would tell the id of this node's shard.",
    tips: VARIES,
    ..READS
};

const NODES: Command = Command {
    name: "NODES",
    cost: "O(N), N being the number of nodes",
    about: "Would tell of all nodes.",
    tips: VARIES,
    ..READS
};

const REPLICAS: Command = Command {
    name: "REPLICAS",
    since: "5.0.0",
    about: "Would tell the replicas of a node.",
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
    about: "Would make this a fresh node.",
    ..ROW
};

const SAVECONFIG: Command = Command { name: "SAVECONFIG", about: "Would write the cluster's file.", ..CHANGES };

const SET_CONFIG_EPOCH: Command = Command {
    name: "SET-CONFIG-EPOCH",
    syntax: "config-epoch",
    arity: Arity::Exactly(3),
    about: "Would set the epoch of a fresh node.",
    ..CHANGES
};

const SETSLOT: Command = Command {
    name: "SETSLOT",
    syntax: "slot subcommand:<IMPORTING importing:node-id|MIGRATING migrating:node-id|NODE node:node-id|STABLE>",
    arity: Arity::AtLeast(4),
    about: "Would tell what becomes of a slot.",
    ..CHANGES
};

const SHARDS: Command = Command {
    name: "SHARDS",
    flags: Flags::LOADING.and(Flags::STALE),
    since: "7.0.0",
    cost: "O(N), N being the number of nodes",
    about: "Would tell which nodes have which slots.",
    tips: VARIES,
    ..READS
};

const SLAVES: Command = Command {
    name: "SLAVES",
    since: "3.0.0",
    about: "Is CLUSTER REPLICAS by an older name.",
    deprecated: Some(("5.0.0", "`CLUSTER REPLICAS`")),
    ..REPLICAS
};

const SLOTS: Command = Command {
    name: "SLOTS",
    since: "3.0.0",
    history: &[
        Change::says("4.0.0", "Tells the ids of nodes."),
        Change::says("7.0.0", "Tells more of how nodes are reached."),
    ],
    about: "Would tell which nodes have which slots.",
    deprecated: Some(("7.0.0", "`CLUSTER SHARDS`")),
    ..SHARDS
};
