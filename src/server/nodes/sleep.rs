//! The sleep of a node (DEBUG SLEEP): what it and the others send to each other meanwhile waits until it ends.
//!
//! Its process runs, so nothing is lost, as of a process whose sockets nobody reads: what others send arrives at the
//! end, in order, and what the request sends that has begun the sleep leaves then. The others do not hear the node, and
//! suspect it if that takes too long.
//!
//! On a clock that runs, the node's timer ends the sleep. A frozen one goes on to the end by itself, before the client
//! is answered.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::{BusMessage, Cluster};
use crate::engine::exec::sleep;
use crate::engine::{Engine, Now};
use crate::server::shared::Shared;

/// The nodes that sleep, by their numbers, each with what waits for its end.
#[derive(Debug, Default)]
pub(super) struct Sleepers(Mutex<BTreeMap<usize, Mail>>);

/// What a sleeping node and the others have sent to each other.
#[derive(Debug, Default)]
struct Mail {
    to_others: Vec<BusMessage>,
    from_others: Vec<Received>,
}

/// A message to a sleeping node, with the number of its sender and the moment at which it was sent.
#[derive(Debug)]
struct Received {
    from: usize,
    sent: Now,
    message: BusMessage,
}

impl Sleepers {
    fn add(&self, number: usize) {
        self.0.lock().entry(number).or_default();
    }

    /// Forgets a node, and what waits for it.
    pub(super) fn remove(&self, number: usize) {
        self.0.lock().remove(&number);
    }

    /// Whether a node sleeps.
    pub(super) fn has(&self, number: usize) -> bool {
        self.0.lock().contains_key(&number)
    }

    /// Whether messages to sleeping nodes wait.
    pub(super) fn have_mail(&self) -> bool {
        self.0.lock().values().any(|mail| !mail.from_others.is_empty())
    }

    /// Keeps a message of a node if that sleeps; returns it if not.
    pub(super) fn keep_sent(&self, number: usize, message: BusMessage) -> Option<BusMessage> {
        match self.0.lock().get_mut(&number) {
            Some(mail) => mail.to_others.push(message),
            None => return Some(message),
        }
        None
    }

    /// Keeps a message to a node if that sleeps; whether it does.
    fn keep_received(&self, number: usize, from: usize, sent: Now, message: &BusMessage) -> bool {
        let mut sleepers = self.0.lock();
        let mail = sleepers.get_mut(&number);
        mail.map(|mail| mail.from_others.push(Received { from, sent, message: message.clone() })).is_some()
    }
}

impl Cluster {
    /// Whether that node sleeps.
    pub(super) fn is_asleep(&self, number: usize) -> bool {
        self.sleepers.has(number)
    }
}

impl Shared {
    /// Begins to keep what this node and the others send to each other, as it sleeps.
    pub(in crate::server) fn fall_asleep(&self, engine: &Engine) {
        let (Some(own), Some(end)) = (self.membership(), sleep::ends(engine)) else { return };
        let id = engine.peers.cluster.as_ref().map(|view| view.myself().id);
        id.into_iter().for_each(|id| own.cluster.bus.push(own.number, BusMessage::NodeSilent(id)));
        own.cluster.sleepers.add(own.number);
        self.wakeup().no_later_than(end);
    }

    /// Keeps a message of another node if this one sleeps; whether it does.
    pub(super) fn keep_for_later(&self, from: usize, message: &BusMessage) -> bool {
        let sent = self.clock().now();
        self.cluster().sleepers.keep_received(self.node_number(), from, sent, message)
    }

    /// When the sleep of this node ends, if it sleeps and runs.
    pub(super) fn sleep_ends(&self) -> Option<Now> {
        self.membership().filter(|own| own.cluster.is_asleep(own.number) && !self.is_down())?;
        sleep::ends(&self.engine())
    }

    /// Ends the sleep of this node if that is over: first all that was sent meanwhile arrives, then clients are
    /// answered.
    pub(super) fn end_sleep_by(&self, moment: Now) {
        let Some(own) = self.membership().filter(|_| self.sleep_ends().is_some_and(|end| end <= moment)) else {
            return;
        };
        let delivery = own.cluster.bus.hold_delivery();
        let mail = own.cluster.sleepers.0.lock().remove(&own.number).unwrap_or_default();
        mail.to_others.into_iter().for_each(|message| self.send_to_nodes(message));
        mail.from_others.iter().for_each(|kept| self.receive_since(kept.from, kept.sent, &kept.message));
        drop(delivery);
        self.broadcast_up();
        self.act_alone(sleep::end);
    }

    /// Ends the sleep of this node, whose process has ended.
    pub(super) fn forget_sleep(&self, engine: &mut Engine) {
        sleep::forget(engine);
        self.cluster().sleepers.remove(self.node_number());
    }
}
