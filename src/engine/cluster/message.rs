//! Messages: what a node says to the others of its cluster.

use super::{Claim, NodeId, VoteRequest};
use crate::engine::spec::Now;

/// A message of a node to all others of its process; those that do not know the sender take no notice.
#[derive(Clone, Debug)]
pub enum Message {
    /// The sender announces itself and its slots.
    Claim(Claim),
    /// Sends a node the claim of the node that owns, with a higher epoch, slots which the receiver claims or has lost
    /// in the sender's view: the receiver may not hear that owner itself (Redis's UPDATE).
    Update {
        /// The id of the sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// The claim of the owner, as the sender knows it.
        claim: Claim,
    },
    /// The highest epoch that the sender has seen; the receiver may not hear the node that has it.
    Epoch {
        /// The id of the sender.
        from: NodeId,
        /// The highest epoch that the sender has seen.
        epoch: u64,
    },
    /// Asks the other nodes to announce their claims again, which Redis's nodes do all the time.
    ClaimsWanted,
    /// Introduces the sender and all nodes that it knows to the node at that port and all nodes that one knows (CLUSTER
    /// MEET).
    Meet {
        /// The address by which the nodes are reached that do not know theirs.
        ip: String,
        /// The port of the node for clients.
        port: u16,
    },
    /// The sender suspects a node, which is disconnected, or no longer does.
    Suspects {
        /// The id of the sender.
        from: NodeId,
        /// The suspected node.
        node: NodeId,
        /// Since when the sender suspects it; `None` if it is connected again.
        since: Option<Now>,
    },
    /// A node has failed, as a majority says.
    Failed {
        /// The id of the sender.
        from: NodeId,
        /// The failed node.
        node: NodeId,
        /// When it failed.
        since: Now,
    },
    /// The sender has forgotten a node (CLUSTER FORGET).
    Forgotten {
        /// The id of the sender.
        from: NodeId,
        /// The forgotten node.
        node: NodeId,
    },
    /// A replica asks the primaries for their votes, to replace its own.
    VoteRequest(VoteRequest),
    /// The sender votes for a replica.
    Vote {
        /// The id of the sender.
        from: NodeId,
        /// The id of the replica.
        to: NodeId,
        /// The epoch of its election.
        epoch: u64,
    },
    /// The sender has answered a command with a redirect; strict mode checks whether the client sends it to another
    /// node.
    Redirected {
        /// The id of the sender.
        from: NodeId,
        /// The number of the command at the node that redirected it.
        number: u64,
        /// The digest of its words.
        digest: u64,
        /// The number of the oldest one that the sender still remembers.
        oldest: u64,
    },
    /// A command that a node has redirected has come to the sender.
    Followed {
        /// The id of the node that has redirected it.
        from: NodeId,
        /// The number of the command at the node that redirected it.
        number: u64,
    },
    /// A message for the subscribers of a channel (PUBLISH), or of a shard channel (SPUBLISH).
    Publish {
        /// The id of the sender.
        from: NodeId,
        /// The shard whose nodes are meant; `None` for all nodes.
        shard: Option<NodeId>,
        /// The channel.
        channel: Vec<u8>,
        /// The message.
        payload: Vec<u8>,
    },
}

impl Message {
    /// Whether it belongs to the test kit, so that links that are cut or slow, and stale views, do not affect it.
    pub fn is_of_kit(&self) -> bool {
        matches!(self, Message::Redirected { .. } | Message::Followed { .. })
    }

    /// Whether it carries news of the cluster, which a node with a stale view (DUNLIN VIEW) ignores.
    pub fn is_news(&self) -> bool {
        !matches!(self, Message::Publish { .. } | Message::ClaimsWanted) && !self.is_of_kit()
    }
}
