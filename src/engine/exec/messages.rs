//! Messages of the other nodes of the cluster: what this node makes of each, and when they arrive over slow links.
//!
//! A message is taken at once ([`receive`]), unless a test has made the link slow ([`receive_later`]): then it is one
//! of the things that fall due. What is in flight when the link is cut, or when one of its ends is killed or paused, is
//! lost.

use crate::engine::Engine;
use crate::engine::cluster::{Message, NodeId};
use crate::engine::exec::kit::redirects;
use crate::engine::exec::{agreement, cluster, failover, replication};
use crate::engine::spec::Now;
use crate::engine::state::{InFlight, NodeMessage};

/// Whether a message is for this node.
pub fn concerns(engine: &Engine, message: &NodeMessage) -> bool {
    match message {
        NodeMessage::Replication(message) => replication::is_addressed_by(engine, message),
        NodeMessage::Cluster(Message::Vote { to, .. }) => cluster::is_myself(engine, *to),
        NodeMessage::Cluster(Message::Update { from, to, claim }) => cluster::is_news_for(engine, *from, *to, claim),
        NodeMessage::Cluster(Message::Epoch { from, epoch }) => cluster::is_later_epoch(engine, *from, *epoch),
        NodeMessage::Cluster(Message::Publish { shard: Some(shard), .. }) => cluster::is_in_shard(engine, *shard),
        NodeMessage::Cluster(_) => true,
    }
}

/// Takes a message that is for this node.
pub fn receive(engine: &mut Engine, message: &NodeMessage) {
    if let (Some(kind), Some(view)) = (message.kind(), &mut engine.peers.cluster) {
        view.received.add(kind, 1);
    }
    let message = match message {
        NodeMessage::Replication(message) => return replication::receive(engine, message),
        NodeMessage::Cluster(message) => message,
    };
    match message {
        Message::Claim(claim) => cluster::apply_claim(engine, claim),
        Message::Epoch { epoch, .. } => cluster::see_epoch(engine, *epoch),
        Message::Update { claim, .. } => cluster::apply_better_claim(engine, claim),
        Message::ClaimsWanted => cluster::announce(engine),
        // The host introduces the nodes at both ends to each other.
        Message::Meet { .. } => {}
        Message::Suspects { from, node, since } => cluster::apply_report(engine, *from, *node, *since),
        Message::Failed { from, node, since } => cluster::apply_failure(engine, *from, *node, *since),
        Message::Forgotten { from, node } => cluster::apply_forgotten(engine, *from, *node),
        Message::VoteRequest(request) => failover::vote(engine, request),
        Message::Vote { from, epoch, .. } => failover::take_vote(engine, *from, *epoch),
        Message::Redirected { from, number, digest, oldest } => {
            redirects::expect(engine, *from, *number, *digest, *oldest);
        }
        Message::Followed { from, number } => redirects::forget(engine, *from, *number),
        Message::Publish { from, shard, channel, payload } => {
            cluster::take_published(engine, *from, *shard, channel, payload);
        }
    }
}

/// Schedules a message of the node with that number to arrive after `delay_ms`.
pub fn receive_later(engine: &mut Engine, delay_ms: i64, from: usize, message: NodeMessage) {
    let due = engine.timing.now.after_ms(delay_ms);
    engine.peers.in_flight.get_or_insert_default().push(due, from, message);
    agreement::publish(engine);
}

/// Makes messages in flight from the node with that number arrive as if sent now over a link with that delay,
/// unless they arrive earlier.
pub fn deliver_within(engine: &mut Engine, delay_ms: i64, from: usize) {
    let due = engine.timing.now.after_ms(delay_ms);
    change(engine, |in_flight| in_flight.deliver_by(due, from));
    receive_due(engine);
}

/// Drops what is in flight from all others: this node no longer runs.
pub fn drop_all(engine: &mut Engine) {
    engine.peers.in_flight = None;
    agreement::publish(engine);
}

/// Drops what is in flight from the node with that number: it is disconnected.
pub fn drop_from(engine: &mut Engine, from: usize) {
    change(engine, |in_flight| in_flight.drop_some(|sender, _| sender == from));
}

/// Drops the claims in flight from the node with that number, of which this one gets a later claim.
pub fn drop_claims(engine: &mut Engine, from: usize) {
    let is_claim = |message: &NodeMessage| matches!(message, NodeMessage::Cluster(Message::Claim(_)));
    change(engine, |in_flight| in_flight.drop_some(|sender, message| sender == from && is_claim(message)));
}

/// Drops the news of the cluster that are in flight: this node is to keep its view.
pub fn drop_news(engine: &mut Engine) {
    let is_news = |message: &NodeMessage| matches!(message, NodeMessage::Cluster(message) if message.is_news());
    change(engine, |in_flight| in_flight.drop_some(|_, message| is_news(message)));
}

fn change(engine: &mut Engine, act: impl FnOnce(&mut InFlight)) {
    if let Some(in_flight) = &mut engine.peers.in_flight {
        act(in_flight);
        agreement::publish(engine);
    }
}

/// Makes the stream parts in flight from that primary arrive now.
pub(super) fn hasten_stream(engine: &mut Engine, primary: NodeId) {
    let parts = engine.peers.in_flight.as_mut().map(|in_flight| in_flight.take_stream_of(primary));
    parts.into_iter().flatten().for_each(|part| receive(engine, &part));
}

/// When the next message arrives.
pub(super) fn next_arrival(engine: &Engine) -> Option<Now> {
    engine.peers.in_flight.as_ref()?.next()
}

/// Takes the messages that have arrived by now.
pub(super) fn receive_due(engine: &mut Engine) {
    let now = engine.timing.now;
    while let Some(message) = engine.peers.in_flight.as_mut().and_then(|in_flight| in_flight.take_due(now)) {
        agreement::publish(engine);
        if concerns(engine, &message) {
            receive(engine, &message);
        }
    }
}
