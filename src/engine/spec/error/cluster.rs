//! Errors of the nodes of a cluster: where a request is to go, and commands about the cluster that are refused.

use thiserror::Error as Texts;

/// Why a node of a cluster refuses a request. Its `Display` is the line that the client receives, code first.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum ClusterError {
    // Where a request is to go.
    /// The slot belongs to another node.
    #[error("MOVED {slot} {endpoint}:{port}")]
    Moved {
        /// The slot.
        slot: u16,
        /// The address or name of the node's host; may be empty.
        endpoint: String,
        /// The node's port.
        port: u16,
    },
    /// This request alone is to go to another node.
    #[error("ASK {slot} {endpoint}:{port}")]
    Ask {
        /// The slot.
        slot: u16,
        /// The address or name of the node's host; may be empty.
        endpoint: String,
        /// The node's port.
        port: u16,
    },
    /// Some keys of the request are here and some are at another node.
    #[error("TRYAGAIN Multiple keys request during rehashing of slot")]
    TryAgain,
    /// The keys of the request are in different slots.
    #[error("CROSSSLOT Keys in request don't hash to the same slot")]
    CrossSlot,
    /// The cluster is down.
    #[error("CLUSTERDOWN The cluster is down")]
    Down,
    /// The cluster is down, and the request writes.
    #[error("CLUSTERDOWN The cluster is down and only accepts read commands")]
    ReadsOnly,
    /// The slot has no owner.
    #[error("CLUSTERDOWN Hash slot not served")]
    Unowned,

    // The same within a script.
    /// A script accesses a key of another node.
    #[error("ERR Script attempted to access a non local key in a cluster node")]
    ScriptMoved,
    /// A script accesses keys of several slots, one after the other.
    #[error("ERR Script attempted to access keys that do not hash to the same slot")]
    ScriptSlots,
    /// A command of a script has keys of several slots; the command's name.
    #[error("ERR Command '{0}' in script attempted to access keys that don't hash to the same slot")]
    ScriptCrossSlot(String),
    /// A command of a script has keys of which some have moved; the command's name.
    #[error(
        "ERR Unable to execute command '{0}' in script because undeclared keys were accessed during rehashing of the \
         slot"
    )]
    ScriptTryAgain(String),
    /// A script accesses a slot without owner.
    #[error("ERR Script attempted to access a slot not served")]
    ScriptUnowned,
    /// A script accesses keys while the cluster is down.
    #[error("ERR Script attempted to execute a command while the cluster is down")]
    ScriptDown,
    /// A script writes while the cluster is down.
    #[error("ERR Script attempted to execute a write command while the cluster is down and readonly")]
    ScriptReadsOnly,
    /// The script says that it does not run in a cluster.
    #[error("ERR Can not run script on cluster, 'no-cluster' flag is set.")]
    ScriptRefused,

    // Commands that a node refuses.
    /// The command is not for nodes of a cluster; its name.
    #[error("ERR {0} is not allowed in cluster mode")]
    NotAllowed(&'static str),
    /// COPY names another database.
    #[error("ERR Copying to another database is not allowed in cluster mode")]
    CopyToDatabase,
    /// REPLICAOF is called.
    #[error("ERR REPLICAOF not allowed in cluster mode.")]
    ReplicaOf,
    /// FAILOVER is called.
    #[error("ERR FAILOVER not allowed in cluster mode. Use CLUSTER FAILOVER command instead.")]
    Failover,
    /// SORT has a pattern whose keys may be in other slots; the option.
    #[error("ERR {0} option of SORT denied in Cluster mode when keys formed by the pattern may be in different slots.")]
    SortPattern(&'static str),

    // CLUSTER.
    /// A slot is no number of a slot.
    #[error("ERR Invalid or out of range slot")]
    Slot,
    /// CLUSTER COUNTKEYSINSLOT has no number of a slot.
    #[error("ERR Invalid slot")]
    CountedSlot,
    /// CLUSTER GETKEYSINSLOT has no number of a slot, or a negative number of keys.
    #[error("ERR Invalid slot or number of keys")]
    SlotOrCount,
    /// A slot to be added has an owner.
    #[error("ERR Slot {0} is already busy")]
    Busy(u16),
    /// A slot to be removed has no owner.
    #[error("ERR Slot {0} is already unassigned")]
    Unassigned(u16),
    /// A slot is given more than once.
    #[error("ERR Slot {0} specified multiple times")]
    Repeated(u16),
    /// A range ends before it starts.
    #[error("ERR start slot number {0} is greater than end slot number {1}")]
    Range(u16, u16),
    /// CLUSTER FLUSHSLOTS is called while there are keys.
    #[error("ERR DB must be empty to perform CLUSTER FLUSHSLOTS.")]
    FlushWithKeys,
    /// A slot is to migrate from a node that does not own it.
    #[error("ERR I'm not the owner of hash slot {0}")]
    NotOwner(u16),
    /// A slot is to be imported by the node that owns it.
    #[error("ERR I'm already the owner of hash slot {0}")]
    AlreadyOwner(u16),
    /// The other node of a slot that moves is not known.
    #[error("ERR I don't know about node {0}")]
    NotKnown(String),
    /// No node has that id.
    #[error("ERR Unknown node {0}")]
    UnknownNode(String),
    /// A slot is to be given away while its keys are here.
    #[error("ERR Can't assign hashslot {0} to a different node while I still hold keys for this hash slot.")]
    SlotHasKeys(u16),
    /// CLUSTER SETSLOT has another action, or other words for it.
    #[error("ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP")]
    SetSlot,
    /// A primary is asked to replace its primary.
    #[error("ERR You should send CLUSTER FAILOVER to a replica")]
    NotReplica,
    /// A replica does not know its primary.
    #[error("ERR I'm a replica but my master is unknown to me")]
    UnknownPrimary,
    /// A replica is asked to replace a primary that does not run, with its help.
    #[error("ERR Master is down or failed, please use CLUSTER FAILOVER FORCE")]
    PrimaryIsDown,
    /// A node is asked to replicate a replica.
    #[error("ERR I can only replicate a master, not a replica.")]
    ReplicatesReplica,
    /// A node that is to have replicas is none itself.
    #[error("ERR The specified node is not a master")]
    NotPrimary,
    /// A replica is asked to move slots.
    #[error("ERR Please use SETSLOT only with masters.")]
    SetSlotAtReplica,
    /// A slot is to be given to a replica.
    #[error("ERR Target node is not a master")]
    TargetIsReplica,
    /// A replica is asked to forget its primary.
    #[error("ERR Can't forget my master!")]
    ForgetsPrimary,
    /// A node is asked to replicate itself.
    #[error("ERR Can't replicate myself")]
    ReplicatesItself,
    /// A node with slots or keys is asked to become a replica.
    #[error("ERR To set a master the node must be empty and without assigned slots.")]
    ReplicaNotEmpty,
    /// A node is asked to forget itself.
    #[error("ERR I tried hard but I can't forget myself...")]
    ForgetsItself,
    /// CLUSTER RESET is called while there are keys.
    #[error("ERR CLUSTER RESET can't be called with master nodes containing keys")]
    ResetWithKeys,
    /// The port of CLUSTER MEET is no number.
    #[error("ERR Invalid base port specified: {0}")]
    MeetPort(String),
    /// The bus port of CLUSTER MEET is no number.
    #[error("ERR Invalid bus port specified: {0}")]
    MeetBusPort(String),
    /// The address of CLUSTER MEET is none.
    #[error("ERR Invalid node address specified: {0}:{1}")]
    MeetAddress(String, String),
    /// CLUSTER MEET names an address where no node of this process listens.
    #[error("ERR this server meets only nodes of its own process, and none of them listens at {0}:{1}")]
    NobodyToMeet(String, i64),
    /// The epoch of CLUSTER SET-CONFIG-EPOCH is negative.
    #[error("ERR Invalid config epoch specified: {0}")]
    Epoch(i64),
    /// An epoch is to be set at a node that knows others.
    #[error("ERR The user can assign a config epoch only when the node does not know any other node.")]
    EpochAmongOthers,
    /// An epoch is to be set at a node that has one.
    #[error("ERR Node config epoch is already non-zero")]
    EpochIsSet,
}
