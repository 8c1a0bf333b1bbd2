//! The cluster bus between the nodes of this process: a queue of messages instead of connections.
//!
//! A node's messages are queued while it runs requests, and delivered when the thread has released the node's lock,
//! before any reply leaves. So a client that reads a reply finds all nodes informed, and a test that has one thread is
//! the same in every run. Over a link that a test has made slow, a message arrives when its receiver's clock says so.
//! The clock is one for all nodes: an order for that of one goes to all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::Cluster;
use super::links::{Link, Links, link};
use crate::engine::cluster::{Claim, Message, NodeId};
use crate::engine::exec::{cluster, messages, replication};
use crate::engine::{ClockOrder, NodeMessage};
use crate::server::shared::Shared;

/// The messages of the nodes to each other that are not delivered yet, each with the number of its sender.
#[derive(Debug, Default)]
pub(super) struct Bus {
    is_waiting: AtomicBool,
    queue: Mutex<VecDeque<(usize, BusMessage)>>,
    /// The links that are cut.
    cut_links: Mutex<Links>,
    /// The delays of links that are slow, in milliseconds.
    delays_ms: Mutex<BTreeMap<Link, i64>>,
    /// The nodes with a stale view: they ignore news about the cluster.
    stale: Mutex<BTreeSet<usize>>,
    /// The number and the replication offset of each node.
    offsets: Mutex<BTreeMap<NodeId, (usize, u64)>>,
    /// Held while messages are delivered, so that a thread that wants to deliver its own waits until they are.
    delivery: Mutex<()>,
}

/// A message of one node to all others.
#[derive(Clone, Debug)]
pub(in crate::server) enum BusMessage {
    /// A message of the cluster bus.
    Node(NodeMessage),
    /// An order for the clock.
    Clock(ClockOrder),
    /// The process of that node has ended.
    NodeDown(NodeId),
    /// The process of that node does not answer.
    NodeSilent(NodeId),
    /// The sender runs again, or answers again.
    NodeUp(Claim),
}

impl Bus {
    pub(super) fn push(&self, from: usize, message: BusMessage) {
        self.queue.lock().push_back((from, message));
        self.is_waiting.store(true, Ordering::Release);
    }

    /// Whether messages are not delivered yet.
    pub(super) fn is_delivering(&self) -> bool {
        let _queue = self.queue.lock();
        self.is_waiting.load(Ordering::Acquire)
    }

    /// Whether the link between two nodes is not cut.
    pub(super) fn are_linked(&self, one: usize, other: usize) -> bool {
        !self.cut_links.lock().contains(&link(one, other))
    }

    /// The links that are cut.
    pub(super) fn cut_links(&self) -> Links {
        self.cut_links.lock().clone()
    }

    /// Changes which links are cut; returns those before and after.
    pub(super) fn change_cut_links(&self, change: impl FnOnce(&mut Links)) -> (Links, Links) {
        let mut links = self.cut_links.lock();
        let before = links.clone();
        change(&mut links);
        (before, links.clone())
    }

    /// The delay of the link between two nodes, in milliseconds.
    fn delay_ms(&self, one: usize, other: usize) -> i64 {
        self.delays_ms.lock().get(&link(one, other)).copied().unwrap_or(0)
    }

    /// Changes the delay of a link; returns whether it was another one.
    pub(super) fn set_delay_ms(&self, link: Link, delay_ms: i64) -> bool {
        let mut delays_ms = self.delays_ms.lock();
        let before = if delay_ms > 0 { delays_ms.insert(link, delay_ms) } else { delays_ms.remove(&link) };
        before.unwrap_or(0) != delay_ms
    }

    /// The links that are slow.
    pub(super) fn slow_links(&self) -> Vec<Link> {
        self.delays_ms.lock().keys().copied().collect()
    }

    /// Forgets a node that was removed: its links, its view and its offset.
    pub(super) fn forget(&self, number: usize, id: Option<NodeId>) {
        let is_kept = |&(one, other): &Link| one != number && other != number;
        self.cut_links.lock().retain(is_kept);
        self.delays_ms.lock().retain(|link, _| is_kept(link));
        self.stale.lock().remove(&number);
        self.offsets.lock().retain(|known, _| Some(*known) != id);
    }

    /// Stops the delivery of messages while the guard is held, so that a change of several links looks atomic to them.
    pub(super) fn hold_delivery(&self) -> MutexGuard<'_, ()> {
        self.delivery.lock()
    }

    /// Sets whether a node ignores messages about the cluster (its view is stale); returns whether it did before.
    pub(super) fn set_stale(&self, node: usize, is_stale: bool) -> bool {
        let mut stale = self.stale.lock();
        if is_stale { !stale.insert(node) } else { stale.remove(&node) }
    }

    /// The nodes that ignore messages about the cluster.
    pub(super) fn stale_nodes(&self) -> BTreeSet<usize> {
        self.stale.lock().clone()
    }

    /// Records how much of the replication stream the node of that number has, for other nodes to look up.
    fn publish_offset(&self, number: usize, id: NodeId, offset: u64) {
        self.offsets.lock().insert(id, (number, offset));
    }

    /// The replication offset of a node; `None` if its messages reach `asking` late or not at all.
    fn offset_of(&self, node: NodeId, asking: NodeId) -> Option<u64> {
        let offsets = self.offsets.lock();
        let (&(one, _), &(other, offset)) = (offsets.get(&asking)?, offsets.get(&node)?);
        let is_heard = self.are_linked(one, other) && self.delay_ms(one, other) == 0 && !self.is_stale(one);
        is_heard.then_some(offset)
    }

    /// Whether a node ignores a message.
    fn is_ignored_by(&self, node: usize, message: &BusMessage) -> bool {
        let BusMessage::Node(NodeMessage::Cluster(message)) = message else { return false };
        message.is_news() && self.is_stale(node)
    }

    /// Whether a node ignores messages about the cluster.
    fn is_stale(&self, node: usize) -> bool {
        self.stale.lock().contains(&node)
    }

    /// The next message. The one before has been delivered: until there is none, other threads wait for the delivery.
    fn pop(&self) -> Option<(usize, BusMessage)> {
        let mut queue = self.queue.lock();
        let next = queue.pop_front();
        self.is_waiting.store(next.is_some(), Ordering::Release);
        next
    }
}

impl Cluster {
    /// The replication offset of a node, as `asking` knows it.
    pub(in crate::server) fn offset_of(&self, node: NodeId, asking: NodeId) -> Option<u64> {
        self.bus.offset_of(node, asking)
    }

    /// Delivers what the nodes have sent, and their answers, once they are all made. The caller holds no engine's lock.
    #[inline]
    pub(in crate::server) fn deliver(&self) {
        let is_due = self.bus.is_waiting.load(Ordering::Acquire) || self.agreement.is_review_due();
        if (is_due || self.are_journals_awaited()) && self.numbers() > 0 {
            self.deliver_all();
        }
    }

    #[cold]
    fn deliver_all(&self) {
        let _delivery = self.bus.delivery.lock();
        loop {
            self.deliver_queue();
            if !self.agreement.is_to_be_reviewed() {
                break;
            }
            self.nodes().iter().for_each(|node| node.act_without_delivery(|_| ()));
        }
        if self.are_journals_awaited() {
            self.count_journals();
        }
    }

    fn deliver_queue(&self) {
        while let Some((from, message)) = self.bus.pop() {
            self.agreement.note_change();
            if let BusMessage::Node(NodeMessage::Cluster(Message::Meet { ip, port })) = &message {
                let met = self.nodes().into_iter().find(|node| node.port() == *port);
                met.into_iter().for_each(|node| node.receive(from, &message));
                self.introduce(from, ip, *port);
                continue;
            }
            let is_for_all = match &message {
                BusMessage::Clock(_) => true,
                BusMessage::Node(message) => message.is_of_kit(),
                _ => false,
            };
            let is_meant = |node: &Arc<Shared>| {
                let number = node.node_number();
                let is_linked = is_for_all || self.bus.are_linked(number, from);
                number != from && is_linked && !self.bus.is_ignored_by(number, &message)
            };
            self.nodes().iter().filter(|node| is_meant(node)).for_each(|node| node.receive(from, &message));
        }
    }
}

/// The part of a [`Shared`] that concerns it as one of the nodes of a cluster.
impl Shared {
    /// Queues a message of this node to the others.
    pub(in crate::server) fn send_to_nodes(&self, message: BusMessage) {
        // The clock of a node that is down goes on.
        let is_sent = !self.is_down() || matches!(message, BusMessage::Clock(_));
        let Some(own) = self.membership().filter(|_| is_sent) else { return };
        let is_kept = !matches!(message, BusMessage::Clock(_));
        let sent = if is_kept { own.cluster.sleepers.keep_sent(own.number, message) } else { Some(message) };
        sent.into_iter().for_each(|message| own.cluster.bus.push(own.number, message));
    }

    /// Records how much of the replication stream this node has, whose id is given, for the others to look up.
    pub(in crate::server) fn publish_offset(&self, id: NodeId, offset: u64) {
        if let Some(own) = self.membership() {
            own.cluster.bus.publish_offset(own.number, id, offset);
        }
    }

    /// Whether this node has a stale view: it ignores news about the cluster.
    pub(super) fn has_stale_view(&self) -> bool {
        self.cluster().bus.is_stale(self.node_number())
    }

    /// Receives a message of another node, which is on its way for so long, after the delay of the link between them.
    fn hear(&self, from: usize, on_way_ms: i64, message: &NodeMessage) {
        let is_concerned = messages::concerns(&self.engine(), message);
        let delay_ms = if message.is_of_kit() { 0 } else { self.cluster().bus.delay_ms(self.node_number(), from) };
        match (delay_ms - on_way_ms).max(0) {
            _ if !is_concerned => {}
            0 => self.act_without_delivery(|engine| messages::receive(engine, message)),
            left_ms => self.act_without_delivery(|engine| {
                if !self.is_down() {
                    messages::receive_later(engine, left_ms, from, message.clone());
                }
            }),
        }
    }

    /// Takes a message of another node, at once or when this one no longer sleeps.
    pub(super) fn receive(&self, from: usize, message: &BusMessage) {
        match message {
            BusMessage::Clock(order) => self.apply_to_this_node(*order),
            _ if self.is_down() || self.keep_for_later(from, message) => {}
            message => self.receive_late(from, 0, message),
        }
    }

    /// Takes a message of another node, which is on its way for so long.
    pub(super) fn receive_late(&self, from: usize, on_way_ms: i64, message: &BusMessage) {
        match message {
            BusMessage::Clock(_) => {}
            BusMessage::Node(message) => self.hear(from, on_way_ms, message),
            BusMessage::NodeSilent(_) if self.has_stale_view() => {}
            BusMessage::NodeSilent(node) => self.act_without_delivery(|engine| cluster::note_silence(engine, *node)),
            // A stale view does not change, but the stream of a primary ends and begins again.
            BusMessage::NodeDown(node) => {
                let disconnect = if self.has_stale_view() { replication::disconnect } else { cluster::disconnect };
                self.act_without_delivery(|engine| {
                    messages::drop_from(engine, from);
                    disconnect(engine, *node);
                });
            }
            BusMessage::NodeUp(claim) if self.has_stale_view() => {
                self.act_without_delivery(|engine| replication::reconnect(engine, claim.node.id));
            }
            BusMessage::NodeUp(claim) => self.act_without_delivery(|engine| {
                messages::drop_claims(engine, from);
                cluster::reconnect(engine, claim.node.id);
                if !self.cluster().bus.is_stale(from) {
                    cluster::end_handshake(engine, claim.node.id);
                }
                cluster::apply_claim(engine, claim);
            }),
        }
    }
}
