//! Host calls: requests of a command to the engine's host that cannot be answered while the engine is locked, such as
//! entering another world or listing all of them.
//!
//! A world is an engine of its own, and no thread holds the locks of two engines. So the command calls its host
//! ([`crate::engine::Ctx::call_host`]) and returns; its connection unlocks the engine, waits for the result, and runs
//! the same request again, in whichever world the session is by then. So a command that enters another world replies
//! there, by the same code as anywhere.

use std::sync::Arc;

use crate::acl::User;
use crate::engine::spec::{KitError, Now};
use crate::engine::state::Advance;
use crate::engine::state::kit::tree::{Tree, TreeQuery};
use crate::engine::state::kit::{Entry, Fault, Filter};
use crate::engine::state::replication::{FailoverWay, History, Lag};
use crate::engine::state::{Origin, RdbParts, RdbRequest, ReplyMode};
use crate::resp::Protocol;
use crate::value::SharedBytes;

/// The name of the world that a server starts with.
pub const FIRST_WORLD: &str = "default";

/// The longest name of a world, in bytes.
const LONGEST_NAME: usize = 64;

/// The name of a world: 1 to 64 letters, digits, `-`, `_` or `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorldName(Box<str>);

impl WorldName {
    /// The name that a client wrote.
    ///
    /// # Errors
    /// The text is not a valid name.
    pub fn parse(word: &[u8]) -> Result<WorldName, KitError> {
        let is_fit = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let name = std::str::from_utf8(word).ok().filter(|name| (1..=LONGEST_NAME).contains(&name.len()));
        let name = name.filter(|name| name.as_bytes().iter().all(is_fit)).ok_or(KitError::WorldName)?;
        Ok(WorldName(name.into()))
    }

    /// The name of the world that a server starts with.
    pub fn first() -> WorldName {
        WorldName(FIRST_WORLD.into())
    }

    /// The name of a node of the cluster that this world is: that of the world for node 0, `NAME.node-1` and so on for
    /// the others, and `node-1` and so on for those of the first world.
    pub fn of_node(&self, number: usize) -> WorldName {
        match (number, self.is_first()) {
            (0, _) => self.clone(),
            (_, true) => WorldName(format!("node-{number}").into()),
            (_, false) => WorldName(format!("{}.node-{number}", self.0).into()),
        }
    }

    /// The world and the number of the node whose name it is, on a server whose worlds are clusters.
    pub fn world_and_node(&self) -> (WorldName, usize) {
        let split = || {
            let (before, number) = self.0.rsplit_once("node-")?;
            let number = number.parse().ok().filter(|number| *number > 0)?;
            let world = WorldName(if before.is_empty() { FIRST_WORLD } else { before.strip_suffix('.')? }.into());
            // Other forms of these names are names of worlds.
            (world.of_node(number) == *self).then_some((world, number))
        };
        split().unwrap_or_else(|| (self.clone(), 0))
    }

    /// Whether it is the name of the world that a server starts with.
    pub fn is_first(&self) -> bool {
        &*self.0 == FIRST_WORLD
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A call of a command to the host.
#[derive(Clone, Debug, PartialEq)]
pub enum HostCall {
    /// Enter that world, which is created if it does not exist.
    Enter {
        /// The name of the world.
        world: WorldName,
        /// Whether the world, new or not, ends from now on when its last client leaves.
        is_temporary: bool,
    },
    /// List all worlds.
    Worlds,
    /// Open a port for that world, which is created if it does not exist.
    Listen(WorldName),
    /// End that world.
    DropWorld(WorldName),
    /// Return the data of that world as text.
    Dump(WorldName),
    /// Read all data of this world.
    Read(DataQuery),
    /// Move the clock of all nodes of the cluster on.
    Advance(Advance),
    /// List the nodes of the cluster.
    Nodes,
    /// Give the node with that number an order.
    Node(usize, NodeOrder),
    /// Add a node to the cluster, as a replica of the one with that number or as a primary without slots.
    AddNode(Option<usize>),
    /// Remove the node with that number from the cluster.
    RemoveNode(usize),
    /// Cut the links between nodes of different groups, which are lists of their numbers; all others are a group, too.
    Partition(Vec<Vec<usize>>),
    /// Connect all nodes again, without delays.
    HealLinks,
    /// Change the link between two nodes.
    Link {
        /// The number of one.
        one: usize,
        /// The number of the other.
        other: usize,
        /// The change of the link.
        order: LinkOrder,
    },
    /// Read or change the journals of all nodes.
    Journals(JournalOrder),
    /// Take a snapshot of all nodes, roll back to one, or drop it.
    Snapshots(SnapshotOrder),
    /// List or change the fault rules of the nodes.
    Faults(FaultOrder),
    /// Move a slot to a node.
    MigrateSlot {
        /// The slot.
        slot: u16,
        /// The number of the node.
        to: usize,
        /// The step.
        step: SlotMigrationStep,
    },
}

/// What is read of all data of a world, which takes long.
#[derive(Clone, Debug, PartialEq)]
pub enum DataQuery {
    /// The counts of keys.
    Tree(TreeQuery),
    /// These parts of the data, as an RDB file.
    Rdb(RdbParts),
}

/// A change of the link between two nodes of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOrder {
    /// The nodes no longer hear each other.
    Cut,
    /// They hear each other, without a delay.
    Heal,
    /// Their messages to each other arrive after that many milliseconds.
    Delay(i64),
}

/// An order about the journals of all nodes of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum JournalOrder {
    /// Start a new one at each node, of that many commands.
    Start(usize),
    /// End recording.
    Stop,
    /// Delete the recorded commands.
    Clear,
    /// Return the commands that the filter selects.
    Read(Filter),
}

/// An order about the snapshots of a server, or of all nodes of a cluster; with the name of the snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotOrder {
    /// Take it.
    Take(Vec<u8>),
    /// Restore its state.
    RollBack(Vec<u8>),
    /// Drop it.
    Drop(Vec<u8>),
}

/// An order about the fault rules of all nodes of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultOrder {
    /// Add a rule at the node with that number.
    Add(usize, Box<Fault>),
    /// Remove the rules of that name.
    Remove(Vec<u8>),
    /// Remove all rules.
    Clear,
    /// List all rules.
    List,
}

/// An order for a node of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeOrder {
    /// End, as a process that is killed.
    Kill,
    /// Answer nobody, clients or nodes, while its port and its connections stay open.
    Pause,
    /// Go on after a pause, with the requests that came meanwhile.
    Resume,
    /// Start again with its data.
    Restart,
    /// Start again without its data.
    RestartEmpty,
    /// Replace its primary.
    FailOver(FailoverWay),
    /// Apply the stream of its primary late.
    Lag(Lag),
    /// Go on with its present view: miss what others say of the cluster.
    StaleView,
    /// Hear again what others say, and find out what it has missed.
    FreshView,
}

/// A step of the migration of a slot to another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotMigrationStep {
    /// Migrate the whole slot.
    Whole,
    /// Mark the slot as migrating and importing; no key moves.
    Begin,
    /// Migrate at most that many keys.
    Keys(usize),
    /// Move these keys in one MIGRATE.
    Named(Vec<Vec<u8>>),
    /// Migrate the keys that are left, and give the slot to the new node.
    Finish,
    /// End the migration, and move the keys back that have moved.
    Cancel,
}

/// The result of a host call.
#[derive(Clone, Debug)]
pub enum HostReply {
    /// The call succeeded.
    Done,
    /// The state of all worlds, by name.
    Worlds(Vec<WorldFigures>),
    /// The port of a world.
    Port(u16),
    /// The data of a world as text.
    Text(String),
    /// The counts of keys.
    Tree(Box<Tree>),
    /// The data as an RDB file, and their name.
    Rdb(SharedBytes, History),
    /// Recorded commands of all nodes, in the order in which they began.
    Journal(Vec<Entry>),
    /// The fault rules of all nodes, each with the number of its node.
    Faults(Vec<(usize, Fault)>),
    /// Whether there was something to be removed.
    Removed(bool),
    /// The state of all nodes of the cluster, by number.
    Nodes(Vec<NodeFigures>),
    /// The number of the node that was added, and its address for clients.
    NewNode(usize, String),
    /// Where the clock is; `None` if nothing falls due to which it could go.
    Moment(Option<Now>),
    /// The call failed.
    Refused(KitError),
}

/// The state of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldFigures {
    /// The name of the world.
    pub name: WorldName,
    /// The number of clients in it, without those of the page.
    pub clients: usize,
    /// The number of keys in it.
    pub keys: usize,
    /// It ends when its last client leaves.
    pub is_temporary: bool,
}

/// The state of a node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFigures {
    /// Its number, from 0 on.
    pub number: usize,
    /// Its port for clients.
    pub port: u16,
    /// Its id.
    pub id: String,
    /// Whether it runs, and is not paused.
    pub is_up: bool,
    /// Whether it is paused.
    pub is_paused: bool,
    /// Whether it misses what the others say of the cluster.
    pub has_stale_view: bool,
    /// The number of its primary; `None` if it is a primary, as it sees it.
    pub primary: Option<usize>,
    /// The id of its shard.
    pub shard: String,
    /// The lag with which it applies the stream of its primary.
    pub lag: Lag,
    /// The bytes of the replication stream that it has applied.
    pub offset: u64,
    /// The number of slots that it owns, as it sees it.
    pub slots: usize,
    /// The number of keys in it.
    pub keys: usize,
}

/// The host call of a session.
#[derive(Clone, Debug)]
pub enum PendingHostCall {
    /// It waits for its result.
    Asked(HostCall),
    /// It has its result, and the request that made it is to be run again.
    Answered(HostCall, HostReply),
}

/// The state that a session keeps when it enters another world: what the client has set about itself.
#[derive(Debug)]
pub struct SessionTransfer {
    pub(in crate::engine) origin: Origin,
    pub(in crate::engine) protocol: Protocol,
    pub(in crate::engine) database: usize,
    pub(in crate::engine) first_user: Option<Arc<User>>,
    pub(in crate::engine) name: Vec<u8>,
    pub(in crate::engine) library_name: Vec<u8>,
    pub(in crate::engine) library_version: Vec<u8>,
    pub(in crate::engine) reply_mode: ReplyMode,
    pub(in crate::engine) skips_next: bool,
    pub(in crate::engine) no_evict: bool,
    pub(in crate::engine) no_touch: bool,
    pub(in crate::engine) rdb_request: RdbRequest,
    pub(in crate::engine) buffers: super::Buffers,
}

impl SessionTransfer {
    /// Where the session comes from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_has_a_short_and_plain_name() {
        for name in ["a", "Cart-17_b.c", &"x".repeat(64)] {
            assert_eq!(WorldName::parse(name.as_bytes()).map(|name| name.as_str().to_owned()), Ok(name.to_owned()));
        }
        for name in ["", "a b", "a/b", "a:b", "ä", &"x".repeat(65)] {
            assert_eq!(WorldName::parse(name.as_bytes()), Err(KitError::WorldName), "{name}");
        }
        assert_eq!(WorldName::parse(b"\xff"), Err(KitError::WorldName));
    }

    #[test]
    fn the_name_of_a_node_has_that_of_its_world_and_its_number() {
        let named = |name: &str| WorldName::parse(name.as_bytes()).expect("it is a name");
        for (world, number, node) in
            [("default", 0, "default"), ("default", 12, "node-12"), ("cart", 0, "cart"), ("cart", 2, "cart.node-2")]
        {
            assert_eq!(named(world).of_node(number), named(node));
            assert_eq!(named(node).world_and_node(), (named(world), number));
        }
        let others =
            ["node-0", "node-x", "node-01", "default.node-1", "cart.node-0", "cartnode-1", "a-node-1", "cart.node-"];
        for name in others {
            assert_eq!(named(name).world_and_node(), (named(name), 0), "{name}");
        }
    }
}
