//! The sleep of a node (DEBUG SLEEP): what it and the others send to each other meanwhile waits until it ends.
//!
//! Its process runs, so nothing is lost, as of a process whose sockets nobody reads: what others send arrives at the
//! end, in order, and what the request sends that has begun the sleep leaves then. The others do not hear the node, and
//! suspect it if that takes too long.
//!
//! On a clock that runs, the node's timer ends the sleep. A frozen one goes on to the end by itself, before the client
//! is answered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::{BusMessage, Cluster};
use crate::engine::exec::sleep;
use crate::engine::{Engine, Now};
use crate::server::shared::Shared;

/// The nodes that sleep.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    /// How many there are: nothing is locked for messages while all nodes are awake.
    count: AtomicUsize,
    /// What waits for the end of each one's sleep, by its number.
    mail: Mutex<BTreeMap<usize, Mail>>,
}

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
    /// The nodes that sleep; `None` if all are awake.
    fn lock(&self) -> Option<MutexGuard<'_, BTreeMap<usize, Mail>>> {
        (self.count.load(Ordering::SeqCst) > 0).then(|| self.mail.lock())
    }

    fn add(&self, number: usize) {
        let mut mail = self.mail.lock();
        mail.entry(number).or_default();
        self.count.store(mail.len(), Ordering::SeqCst);
    }

    /// Removes a node; returns what waits for it.
    fn remove(&self, number: usize) -> Mail {
        let mut mail = self.mail.lock();
        let removed = mail.remove(&number).unwrap_or_default();
        self.count.store(mail.len(), Ordering::SeqCst);
        removed
    }

    /// Whether messages to sleeping nodes wait.
    pub(super) fn have_mail(&self) -> bool {
        self.lock().is_some_and(|mail| mail.values().any(|mail| !mail.from_others.is_empty()))
    }

    /// Keeps a message of a node if that sleeps; returns it if not.
    pub(super) fn keep_sent(&self, number: usize, message: BusMessage) -> Option<BusMessage> {
        match self.lock().as_mut().and_then(|mail| mail.get_mut(&number)) {
            Some(mail) => mail.to_others.push(message),
            None => return Some(message),
        }
        None
    }

    /// Keeps a message to a node if that sleeps; whether it does.
    fn keep_received(&self, number: usize, received: impl FnOnce() -> Received) -> bool {
        let mut sleepers = self.lock();
        let mail = sleepers.as_mut().and_then(|mail| mail.get_mut(&number));
        mail.map(|mail| mail.from_others.push(received())).is_some()
    }
}

impl Cluster {
    /// Whether that node sleeps.
    pub(super) fn is_asleep(&self, number: usize) -> bool {
        self.sleepers.lock().is_some_and(|mail| mail.contains_key(&number))
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
        let received = || Received { from, sent: self.clock().now(), message: message.clone() };
        self.cluster().sleepers.keep_received(self.node_number(), received)
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
        let mail = own.cluster.sleepers.remove(own.number);
        mail.to_others.into_iter().for_each(|message| self.send_to_nodes(message));
        for Received { from, sent, message } in mail.from_others {
            let on_way_ms = self.clock().now().since_us(sent) as i64 / 1000;
            self.receive_late(from, on_way_ms, &message);
        }
        drop(delivery);
        self.broadcast_up();
        self.act_without_delivery(sleep::end);
    }

    /// Ends the sleep of this node, whose process has ended.
    pub(super) fn forget_sleep(&self, engine: &mut Engine) {
        sleep::forget(engine);
        self.cluster().sleepers.remove(self.node_number());
    }
}
