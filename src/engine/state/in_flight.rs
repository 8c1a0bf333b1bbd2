//! Messages in flight: what other nodes have sent to this one over links that a test has made slow.
//!
//! Invariant: the messages of one node arrive in the order in which they were sent, also if the clock was set back.

use std::collections::VecDeque;
use std::sync::Arc;

use super::replication::{Content, ReplicationMessage};
use crate::engine::cluster::{Message, MessageType, NodeId};
use crate::engine::spec::Now;

/// A message of a node to others.
#[derive(Clone, Debug)]
pub enum NodeMessage {
    /// A message of the cluster.
    Cluster(Message),
    /// A message of a primary and its replicas.
    Replication(ReplicationMessage),
}

impl NodeMessage {
    /// Whether it belongs to the test kit, so that slow links do not affect it.
    pub fn is_of_kit(&self) -> bool {
        matches!(self, NodeMessage::Cluster(message) if message.is_of_kit())
    }

    /// The type by which CLUSTER INFO counts it; `None` if it does not go over the cluster bus.
    pub fn kind(&self) -> Option<MessageType> {
        match self {
            NodeMessage::Cluster(message) => message.kind(),
            NodeMessage::Replication(message) => {
                matches!(message.content, Content::BeginFailover).then_some(MessageType::FailoverStart)
            }
        }
    }

    /// The part of the stream of that primary which it brings, if it is such a message.
    fn stream_of(&self, primary: NodeId) -> Option<&Arc<[u8]>> {
        match self {
            NodeMessage::Replication(ReplicationMessage { from, content: Content::Stream { bytes, .. }, .. })
                if *from == primary =>
            {
                Some(bytes)
            }
            _ => None,
        }
    }
}

/// The messages in flight to this node, in the order in which they arrive.
#[derive(Debug, Default)]
pub struct InFlight(VecDeque<Delayed>);

#[derive(Debug)]
struct Delayed {
    due: Now,
    /// The number of the sender.
    from: usize,
    message: NodeMessage,
}

impl InFlight {
    /// When the next message arrives.
    pub fn next(&self) -> Option<Now> {
        self.0.front().map(|delayed| delayed.due)
    }

    /// Adds a message, which arrives at that moment, or with the last one of its sender if that is later.
    pub fn push(&mut self, due: Now, from: usize, message: NodeMessage) {
        let last = self.0.iter().rev().find(|delayed| delayed.from == from);
        let due = last.map_or(due, |last| last.due.max(due));
        let place = self.0.partition_point(|delayed| delayed.due <= due);
        self.0.insert(place, Delayed { due, from, message });
    }

    /// Makes the messages of a node arrive at that moment at the latest.
    pub fn deliver_by(&mut self, due: Now, from: usize) {
        let of_sender = self.0.iter_mut().filter(|delayed| delayed.from == from);
        of_sender.for_each(|delayed| delayed.due = delayed.due.min(due));
        self.0.make_contiguous().sort_by_key(|delayed| delayed.due);
    }

    /// Removes the messages that `is_dropped` selects by their sender and by what they are.
    pub fn drop_some(&mut self, is_dropped: impl Fn(usize, &NodeMessage) -> bool) {
        self.0.retain(|delayed| !is_dropped(delayed.from, &delayed.message));
    }

    /// Removes and returns the next message, if it has arrived by that moment.
    pub fn take_due(&mut self, now: Now) -> Option<NodeMessage> {
        self.next().filter(|due| *due <= now)?;
        self.0.pop_front().map(|delayed| delayed.message)
    }

    /// Whether a message is in flight that may change what this node sees of the cluster.
    pub fn has_news(&self) -> bool {
        let is_news = |message: &NodeMessage| matches!(message, NodeMessage::Cluster(message) if message.is_news());
        self.0.iter().any(|delayed| is_news(&delayed.message))
    }

    /// Whether data or a part of the stream of that primary are in flight.
    pub fn has_data_of(&self, primary: NodeId) -> bool {
        self.0.iter().any(|delayed| match &delayed.message {
            NodeMessage::Replication(message) if message.from == primary => matches!(
                message.content,
                Content::Stream { .. } | Content::Continue { .. } | Content::FullSync(_) | Content::Restart
            ),
            _ => false,
        })
    }

    /// The parts of the stream of that primary.
    pub fn stream_of(&self, primary: NodeId) -> impl Iterator<Item = &Arc<[u8]>> {
        self.0.iter().filter_map(move |delayed| delayed.message.stream_of(primary))
    }

    /// Removes and returns the messages with parts of the stream of that primary.
    pub fn take_stream_of(&mut self, primary: NodeId) -> Vec<NodeMessage> {
        let (taken, left) = self.0.drain(..).partition(|delayed| delayed.message.stream_of(primary).is_some());
        self.0 = left;
        let taken: VecDeque<Delayed> = taken;
        taken.into_iter().map(|delayed| delayed.message).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A message that is told apart by a number.
    fn numbered(number: u64) -> NodeMessage {
        let id = NodeId::of([0; 20]);
        NodeMessage::Cluster(Message::Followed { from: id, number })
    }

    fn number(message: &NodeMessage) -> u64 {
        match message {
            NodeMessage::Cluster(Message::Followed { number, .. }) => *number,
            _ => unreachable!("there is no other message"),
        }
    }

    proptest! {
        #[test]
        fn messages_of_a_node_arrive_in_their_order_whatever_the_clock_and_the_delays_do(
            steps in prop::collection::vec((0..3usize, 0..100i64, 0..8u8), 1..60),
        ) {
            let mut in_flight = InFlight::default();
            let mut arrived: Vec<Vec<u64>> = vec![Vec::new(); 3];
            let mut take = |in_flight: &mut InFlight, until| {
                while let Some(message) = in_flight.take_due(until) {
                    let number = number(&message);
                    arrived[number as usize % 3].push(number);
                }
            };
            for (at, (from, ms, step)) in (0..).zip(&steps) {
                let due = Now::from_us(ms * 1000);
                match step {
                    0 => in_flight.deliver_by(due, *from),
                    1 => take(&mut in_flight, due),
                    _ => in_flight.push(due, *from, numbered(at * 3 + *from as u64)),
                }
            }
            take(&mut in_flight, Now::from_us(i64::MAX));
            prop_assert_eq!(in_flight.next(), None);
            let sent = steps.iter().filter(|(_, _, step)| *step > 1).count();
            prop_assert_eq!(arrived.iter().map(Vec::len).sum::<usize>(), sent);
            for numbers in arrived {
                prop_assert!(numbers.is_sorted(), "{:?}", numbers);
            }
        }
    }
}
