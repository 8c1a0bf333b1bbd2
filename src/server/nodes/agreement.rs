//! Whether the nodes of a cluster agree, for tests that wait for that.
//!
//! Each node publishes what it sees, so one whose test waits can compare all of them under its own lock alone. After
//! the delivery of messages, and after a test has changed a link or a node, the waiting tests look again.
//!
//! Costs: while nobody waits, a flag for each message.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::Cluster;
use crate::engine::cluster::{Disagreement, Opinion};
use crate::server::shared::Shared;

/// The latest opinion of each node, and whether a test waits for agreement.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    /// The opinion of each node that is up, by node number.
    opinions: Mutex<BTreeMap<usize, Opinion>>,
    /// A test waits for agreement.
    is_awaited: AtomicBool,
    /// Something has changed since the waiting tests looked last.
    has_changed: AtomicBool,
}

impl Agreement {
    /// Records that the nodes may agree now.
    pub(super) fn note_change(&self) {
        self.has_changed.store(true, Ordering::SeqCst);
    }

    /// Whether waiting tests have to look again, as far as this thread can see. Reads one flag while nobody waits.
    #[inline]
    pub(super) fn is_review_due(&self) -> bool {
        self.is_awaited.load(Ordering::SeqCst) && self.has_changed.load(Ordering::SeqCst)
    }

    /// Whether waiting tests have to look again. They are taken to do so.
    pub(super) fn is_to_be_reviewed(&self) -> bool {
        self.has_changed.swap(false, Ordering::SeqCst) && self.is_awaited.swap(false, Ordering::SeqCst)
    }
}

impl Cluster {
    /// The reason why the nodes that are up do not agree; `None` if they do. Takes no engine's lock.
    pub(in crate::server) fn disagreement(&self) -> Option<Disagreement> {
        // First, so that whoever changes something that is read below finds that a test waits.
        self.agreement.is_awaited.store(true, Ordering::SeqCst);
        // Before the opinions, which are those after the delivery then.
        let undelivered = (self.bus.is_delivering() || self.sleepers.have_mail()).then_some(Disagreement::Undelivered);
        let opinions = self.agreement.opinions.lock().clone();
        let is_up = |number: &usize| opinions.contains_key(number);
        let stale_view = self.bus.stale_nodes().into_iter().find(is_up).map(Disagreement::StaleView);
        let cut_link = self.bus.cut_links().into_iter().find(|(one, other)| is_up(one) && is_up(other));
        let why = stale_view.or(cut_link.map(|(one, other)| Disagreement::CutLink(one, other))).or(undelivered);
        why.or_else(|| Disagreement::among(&opinions))
    }

    /// Whether two nodes know the same others, in the same roles, as far as they have published that.
    pub(super) fn know_the_same_nodes(&self, one: usize, other: usize) -> bool {
        let opinions = self.agreement.opinions.lock();
        opinions.get(&one).zip(opinions.get(&other)).is_some_and(|(one, other)| one.has_same_roles(other))
    }

    /// Lets tests that wait for agreement look again at the next delivery, also if there is no message to deliver.
    pub(super) fn review_agreement(&self) {
        self.agreement.note_change();
    }
}

impl Shared {
    /// Publishes what this node sees, under its engine's lock.
    pub(in crate::server) fn publish_opinion(&self, opinion: Opinion) {
        if let Some(own) = self.membership().filter(|_| !self.is_down()) {
            let before = own.cluster.agreement.opinions.lock().insert(own.number, opinion);
            if before != Some(opinion) {
                own.cluster.review_agreement();
            }
        }
    }

    /// Takes back what this node has published, as it no longer runs.
    pub(super) fn withdraw_opinion(&self) {
        if let Some(own) = self.membership() {
            own.cluster.agreement.opinions.lock().remove(&own.number);
            own.cluster.review_agreement();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_that_is_due_is_not_a_message_that_is_not_delivered_yet() {
        let cluster = Cluster::default();
        assert_eq!(cluster.disagreement(), None);
        assert!(!cluster.agreement.is_review_due(), "nothing has changed");
        cluster.review_agreement();
        assert_eq!(cluster.disagreement(), None, "or a test that looks now would wait for a message that never comes");
        assert!(cluster.agreement.is_review_due());
        assert!(cluster.agreement.is_to_be_reviewed());
        assert!(!cluster.agreement.is_review_due(), "the tests have looked");
    }

    #[test]
    fn no_review_is_due_while_no_test_waits() {
        let cluster = Cluster::default();
        cluster.review_agreement();
        assert!(!cluster.agreement.is_review_due());
    }
}
