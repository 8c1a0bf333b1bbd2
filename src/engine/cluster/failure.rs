//! Failures: which nodes are not heard any more, since when, and whether enough others say the same.
//!
//! A node that was not heard for `cluster-node-timeout` is suspected by this node (`fail?`). When a majority of the
//! nodes that own slots suspect it, it has failed (`fail`), which is told to all. A node that is heard again is as
//! before at once, unless it had failed and owns slots: then the others wait for twice the timeout, in which a replica
//! might have replaced it.
//!
//! Source: the states of three nodes of Redis 8.0.6, one of which is killed and started again.

use std::collections::BTreeSet;

use super::{NodeId, View};
use crate::engine::spec::Now;

/// What a node thinks of another one that it does not hear, or did not for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Silence {
    node: NodeId,
    /// Since when it is not heard; `None` once it is heard again.
    since: Option<Now>,
    /// Whether it was not heard for so long that this node suspects it.
    is_suspected: bool,
    /// When a majority agreed, if it did.
    failed: Option<Now>,
    /// The other nodes that suspect it.
    reports: BTreeSet<NodeId>,
}

impl View {
    /// Records that a node is not heard any more, from now on.
    pub fn lose(&mut self, id: NodeId, now: Now) {
        if self.find(id.as_bytes()).is_some() && !self.is_myself_id(id) {
            self.silence_of(id).since = Some(now);
        }
    }

    /// Records that a node is heard again.
    pub fn hear(&mut self, id: NodeId) {
        let owns_slots = self.owns_slots(id);
        self.silences.retain_mut(|silence| {
            if silence.node != id {
                return true;
            }
            (silence.since, silence.is_suspected) = (None, false);
            silence.reports.clear();
            silence.failed.is_some() && owns_slots
        });
    }

    /// Records that another node suspects one.
    pub fn take_report(&mut self, from: NodeId, suspected: NodeId) {
        if self.owns_slots(from) && !self.is_myself_id(suspected) && self.find(suspected.as_bytes()).is_some() {
            self.silence_of(suspected).reports.insert(from);
        }
    }

    /// Records that a node has failed, as another one says.
    pub fn take_failure(&mut self, id: NodeId, now: Now) {
        if self.find(id.as_bytes()).is_some() && !self.is_myself_id(id) {
            self.silence_of(id).failed.get_or_insert(now);
        }
    }

    /// When the state of a silent node, or of this one, changes next by time alone.
    pub fn next_failure_step(&self, timeout_ms: i64) -> Option<Now> {
        let steps = self.silences.iter().filter_map(|silence| silence.next_step(timeout_ms));
        steps.chain(self.serves_from()).min()
    }

    /// Does what is due for silent nodes. Returns the nodes that are suspected only now.
    pub fn take_failure_steps(&mut self, now: Now, timeout_ms: i64) -> Vec<NodeId> {
        let mut suspected = Vec::new();
        self.silences.retain_mut(|silence| {
            if silence.next_step(timeout_ms).is_none_or(|due| due > now) {
                return true;
            }
            if silence.since.is_some() {
                silence.is_suspected = true;
                suspected.push(silence.node);
            }
            silence.since.is_some()
        });
        suspected
    }

    /// The nodes that a majority of those with slots suspects, this one among them, and that have not failed yet. They
    /// have failed from now on.
    pub fn take_majority(&mut self, now: Now) -> Vec<NodeId> {
        let needed = self.size() / 2 + 1;
        let own = usize::from(self.owns_slots(self.myself().id));
        let mut failed = Vec::new();
        for silence in self.silences.iter_mut().filter(|silence| silence.is_suspected && silence.failed.is_none()) {
            if silence.reports.len() + own >= needed {
                silence.failed = Some(now);
                failed.push(silence.node);
            }
        }
        failed
    }

    /// Whether this node suspects one that has not failed.
    pub fn suspects(&self, id: NodeId) -> bool {
        self.silence(id).is_some_and(|silence| silence.is_suspected && silence.failed.is_none())
    }

    /// Whether a node has failed.
    pub fn has_failed(&self, id: NodeId) -> bool {
        self.silence(id).is_some_and(|silence| silence.failed.is_some())
    }

    /// Whether a node is connected to this one.
    pub fn is_heard(&self, id: NodeId) -> bool {
        self.silence(id).is_none_or(|silence| silence.since.is_none())
    }

    /// When a node was heard last, if it is not heard now.
    pub fn heard_last(&self, id: NodeId) -> Option<Now> {
        self.silence(id)?.since
    }

    /// How many other nodes say that one is not heard.
    pub fn failure_reports(&self, id: NodeId) -> usize {
        self.silence(id).map_or(0, |silence| silence.reports.len())
    }

    fn silence(&self, id: NodeId) -> Option<&Silence> {
        self.silences.iter().find(|silence| silence.node == id)
    }

    fn silence_of(&mut self, id: NodeId) -> &mut Silence {
        let place = self.silences.iter().position(|silence| silence.node == id).unwrap_or_else(|| {
            let reports = BTreeSet::new();
            self.silences.push(Silence { node: id, since: None, is_suspected: false, failed: None, reports });
            self.silences.len() - 1
        });
        &mut self.silences[place]
    }
}

impl Silence {
    /// The node that it is about.
    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    /// Whether it is about that node.
    pub(super) fn is_of(&self, id: NodeId) -> bool {
        self.node == id
    }

    /// Whether the node is suspected or has failed.
    pub(super) fn is_doubted(&self) -> bool {
        self.is_suspected || self.failed.is_some()
    }

    /// When the node is to be suspected, or, if it is heard again after its failure, when that is over.
    fn next_step(&self, timeout_ms: i64) -> Option<Now> {
        match (self.since, self.failed) {
            (Some(since), _) if !self.is_suspected => Some(after_ms(since, timeout_ms)),
            (None, Some(failed)) => Some(after_ms(failed, timeout_ms.saturating_mul(2))),
            _ => None,
        }
    }
}

/// The moment so many milliseconds later.
pub(super) fn after_ms(moment: Now, ms: i64) -> Now {
    Now::from_us(moment.unix_us.saturating_add(ms.saturating_mul(1000)))
}
