//! The cluster as one of its nodes sees it: which nodes there are, who owns each slot, and the rules that follow.
//!
//! A node acts by its own [`View`], which may differ from those of other nodes; what a client sees of a failover or of
//! a slot that moves comes from such differences. The rules are pure functions of a view: whether a request is served
//! here ([`redirect()`]), what another node's announcement changes ([`View::apply_claim`]), when a disconnected node
//! has failed ([`View::suspect_overdue`]), which replica replaces it ([`View::vote`]), and when a replica moves to a
//! primary that has none left ([`View::next_replica_migration`]).
//!
//! Nothing here knows a session, a command's name or a reply.
//!
//! Source: the behaviour of nodes of Redis 8.0.6.

mod agreement;
mod claim;
mod election;
mod failure;
mod gossip;
mod message;
mod message_counts;
mod node;
mod owners;
mod redirect;
mod replica_migration;
mod roles;
mod settings;
mod view;

pub use agreement::{Disagreement, Opinion};
pub use claim::{Claim, Consequences};
pub use election::{MAX_RANDOM_DELAY_MS, VoteRequest};
pub use gossip::Gossip;
pub use message::Message;
pub use message_counts::{MessageCounts, MessageType};
pub use node::{Address, BUS_OFFSET, Node, NodeId};
pub use redirect::{QueriedKey, Query, Refusal, redirect};
pub use settings::{ClusterSettings, EndpointType};
pub use view::{Before, Changes, Health, MAX_NODES, SlotMigration, View};
