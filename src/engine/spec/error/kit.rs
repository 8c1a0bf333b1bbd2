//! Errors of the test kit: the replies to subcommands of DUNLIN that fail.

use thiserror::Error as Texts;

/// The reason why a subcommand of DUNLIN failed.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum KitError {
    /// The arguments of a subcommand do not match its syntax.
    #[error("ERR syntax error, usage: DUNLIN {0}")]
    Syntax(String),
    /// A filter or rule names a command that does not exist.
    #[error("ERR unknown command name '{0}'")]
    NoCommand(String),
    /// Push messages were asked for by a client that speaks RESP2.
    #[error("ERR DUNLIN FEED sends push messages, which need RESP3: call HELLO 3 first")]
    NeedsResp3,
    /// No snapshot has this name.
    #[error("ERR no snapshot named '{0}'")]
    NoSnapshot(String),
    /// A name is not valid for a world.
    #[error("ERR the name of a world must be 1 to 64 letters, digits, '-', '_' or '.'")]
    WorldName,
    /// No world has this name.
    #[error("ERR no world named '{0}'")]
    NoWorld(String),
    /// The number of worlds has reached its limit.
    #[error("ERR max number of worlds reached")]
    TooManyWorlds,
    /// A world was wanted of a server that is ending.
    #[error("ERR the server is ending")]
    Ending,
    /// A world that is a cluster was to have a port of its own.
    #[error("ERR a world that is a cluster has the ports of its server")]
    NoOwnPort,
    /// Worlds that are clusters were to start from a template.
    #[error("ERR a world that is a cluster cannot start from a template")]
    NoTemplate,
    /// The cluster has no node with this number, or the server is none of a cluster.
    #[error("ERR no node {0}")]
    NoNode(usize),
    /// The server is not started as a cluster.
    #[error("ERR this server was not started with --cluster")]
    NoNodes,
    /// The node is down.
    #[error("ERR node {0} is down")]
    NodeIsDown(usize),
    /// The node is paused.
    #[error("ERR node {0} is paused")]
    NodeIsPaused(usize),
    /// The node is up.
    #[error("ERR node {0} is up")]
    NodeIsUp(usize),
    /// A script runs at the node, and takes long.
    #[error("ERR node {0} runs a script")]
    NodeIsBusy(usize),
    /// The node was added after the snapshot that was to be rolled back to.
    #[error("ERR node {0} was added after that snapshot")]
    NodeIsNewer(usize),
    /// The node has another role or other slots than at the snapshot that was to be rolled back to.
    #[error("ERR node {0} has another role or other slots than at that snapshot")]
    NodeHasChanged(usize),
    /// The node is no replica.
    #[error("ERR node {0} is not a replica")]
    NotReplica(usize),
    /// A node was to be a replica of one that is a replica itself.
    #[error("ERR node {0} is a replica, and has none of its own")]
    IsReplica(usize),
    /// A node cannot be added to the cluster; the reason.
    #[error("ERR no node can be added: {0}")]
    NoNewNode(String),
    /// A world cannot be made, as a node of the first one was removed, behind whose port it would have one.
    #[error("ERR no world can be made: node {0} of the world 'default' was removed, and its port is closed")]
    NoPort(usize),
    /// A node cannot be removed from the cluster; the reason.
    #[error("ERR node {0} cannot be removed: {1}")]
    NodeStays(usize, String),
    /// The data of a replica are those of its primary, and cannot be replaced.
    #[error("ERR a replica has the data of its primary, and no others")]
    DataOfPrimary,
    /// The node cannot replace its primary; the reason.
    #[error("ERR node {0} cannot fail over: {1}")]
    NoFailover(usize, String),
    /// A node is in two groups of a partition.
    #[error("ERR node {0} is in two groups")]
    InTwoGroups(usize),
    /// No journal was started.
    #[error("ERR no journal; start one with DUNLIN JOURNAL START")]
    NoJournal,
    /// A node of a cluster has no journal.
    #[error("ERR node {0} has no journal; start all with DUNLIN JOURNAL START ALL-NODES")]
    NoJournalAt(usize),
    /// A node has no link to itself.
    #[error("ERR node {0} has no link to itself")]
    NoLink(usize),
    /// No node that is up owns a slot.
    #[error("ERR no node owns slot {0}")]
    NoOwner(u16),
    /// A slot cannot move; the reason.
    #[error("ERR slot {0} cannot move: {1}")]
    SlotStays(u16, String),
    /// A world has reached its `maxclients`.
    #[error("ERR max number of clients reached")]
    FullWorld,
    /// The world `default` was to be dropped, but it ends only with the server.
    #[error("ERR the world 'default' cannot be dropped")]
    LastingWorld,
    /// No port can be opened for a world; the reason.
    #[error("ERR cannot listen: {0}")]
    Listen(String),
    /// The data of the world `default` was requested from another world by a user without all permissions there.
    #[error("NOPERM the data of the world 'default' is shown only to users with all permissions there")]
    HiddenWorld,
    /// A transaction or a script tried to enter another world, or to read from one.
    #[error("ERR other worlds cannot be used inside MULTI or a script")]
    WorldWithin,
    /// A login that a fault delayed was to enter another world.
    #[error("ERR a command that a fault delays cannot enter another world")]
    WorldTooLate,
    /// The number of measures has reached its limit.
    #[error("ERR max number of measures reached")]
    TooManyMeasures,
    /// A line of a text is not a command that creates data.
    #[error("ERR line {number}: {reason}")]
    Line {
        /// The number of the line, from 1 on.
        number: usize,
        /// The reason why the line is invalid.
        reason: String,
    },
    /// An RDB file is damaged; what, where, and in which key.
    #[error("ERR {0}")]
    File(String),
}
