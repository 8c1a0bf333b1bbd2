//! The messages of a primary and its replicas to each other.

use std::sync::Arc;

use super::{History, ReplicationId};
use crate::engine::cluster::NodeId;
use crate::keyspace::Database;

/// A message of a node about replication, for one other node or for the replicas of the sender.
#[derive(Clone, Debug)]
pub struct ReplicationMessage {
    /// The sender.
    pub from: NodeId,
    /// The only receiver; `None` for all replicas of the sender.
    pub to: Option<NodeId>,
    /// The content of the message.
    pub content: Content,
}

/// The content of a message.
#[derive(Clone, Debug)]
pub enum Content {
    /// The sender wants to follow the receiver, and has that much of a history (PSYNC).
    Synchronize(History),
    /// The receiver gets what it has missed of the history.
    Continue {
        /// The id of the history.
        id: ReplicationId,
        /// The offset before the first of these bytes.
        offset: u64,
        /// The stream behind it.
        bytes: Arc<[u8]>,
    },
    /// The receiver gets all data.
    FullSync(Arc<FullSync>),
    /// The receivers are to synchronize anew: the data have become other data, which no command says.
    Restart,
    /// The stream of changes goes on.
    Stream {
        /// The offset before the first of these bytes.
        offset: u64,
        /// Whole execution units, encoded as commands.
        bytes: Arc<[u8]>,
    },
    /// The sender has applied the stream up to that offset (REPLCONF ACK).
    Acknowledge(u64),
    /// The sender is no longer a replica of the receiver.
    Leave,
    /// The sender is ordered to replace the receiver, which is to hold back writes meanwhile.
    BeginFailover,
    /// The sender holds back writes; its stream ends at that offset until it is replaced.
    Paused(u64),
}

/// All data of a primary at a moment.
#[derive(Debug)]
pub struct FullSync {
    /// The name of these data.
    pub history: History,
    /// The databases.
    pub databases: Vec<Database>,
    /// The sources of the libraries of functions.
    pub functions: Vec<Arc<[u8]>>,
}
