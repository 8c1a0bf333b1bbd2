//! How many messages a node has sent and received, by the types that Redis's nodes have, for CLUSTER INFO.
//!
//! Redis's nodes exchange pings all the time, these speak when there is something to say: a ping is here what asks for
//! an answer or passes on what was seen, a pong what announces the sender.
//!
//! Source: the order and the names of Redis 8.0.6.

use super::{Message, View};

/// The type of a message, in the order of CLUSTER INFO.
#[derive(Clone, Copy, Debug)]
pub enum MessageType {
    /// Asks for announcements, or passes on what the sender has seen of others.
    Ping,
    /// Announces the sender.
    Pong,
    /// CLUSTER MEET.
    Meet,
    /// A node has failed.
    Fail,
    /// PUBLISH.
    Publish,
    /// A replica asks for votes.
    VoteRequest,
    /// A vote.
    Vote,
    /// A claim that outranks that of the receiver.
    Update,
    /// A replica is ordered to replace the receiver.
    FailoverStart,
    /// SPUBLISH.
    PublishShard,
}

/// The names of the types in CLUSTER INFO, in the order of [`MessageType`].
const NAMES: [&str; 10] =
    ["ping", "pong", "meet", "fail", "publish", "auth-req", "auth-ack", "update", "mfstart", "publishshard"];

/// The numbers of messages of each type, in one direction.
#[derive(Clone, Debug, Default)]
pub struct MessageCounts([u64; NAMES.len()]);

impl MessageCounts {
    /// Counts messages of a type.
    pub fn add(&mut self, kind: MessageType, count: usize) {
        self.0[kind as usize] += count as u64;
    }

    /// The number of messages of all types.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The types of which there were messages, by their names in CLUSTER INFO.
    pub fn by_type(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }
}

impl Message {
    /// Its type; `None` if it belongs to the test kit.
    pub fn kind(&self) -> Option<MessageType> {
        Some(match self {
            Message::Claim(_) => MessageType::Pong,
            Message::Epoch { .. } | Message::ClaimsWanted | Message::Suspects { .. } | Message::Forgotten { .. } => {
                MessageType::Ping
            }
            Message::Update { .. } => MessageType::Update,
            Message::Meet { .. } => MessageType::Meet,
            Message::Failed { .. } => MessageType::Fail,
            Message::VoteRequest(_) => MessageType::VoteRequest,
            Message::Vote { .. } => MessageType::Vote,
            Message::Publish { shard: None, .. } => MessageType::Publish,
            Message::Publish { shard: Some(_), .. } => MessageType::PublishShard,
            Message::Redirected { .. } | Message::Followed { .. } => return None,
        })
    }
}

impl View {
    /// Counts a message that this node sends, once for each node that it goes to.
    pub fn count_sent(&mut self, message: &Message) {
        let others = self.nodes().iter().filter(|node| !self.is_myself(node) && self.is_connected(node.id));
        let count = match message {
            Message::Update { .. } | Message::Vote { .. } | Message::Meet { .. } => 1,
            Message::Publish { shard: Some(shard), .. } => others.filter(|node| node.shard == *shard).count(),
            _ => others.count(),
        };
        message.kind().into_iter().for_each(|kind| self.sent.add(kind, count));
    }
}
