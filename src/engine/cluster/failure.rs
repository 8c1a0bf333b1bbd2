//! Failure detection: which nodes are disconnected, since when, and whether a majority says the same.
//!
//! A node that was disconnected for `cluster-node-timeout` is suspected by this node (`fail?`). When as many nodes
//! suspect it as are a majority of those that own slots, it has failed (`fail`), which is told to all. A node that is
//! connected again is as before at once, unless it had failed and owns slots: then the others wait until twice the
//! timeout has passed since, in which a replica might have replaced it.
//!
//! Reports have the moment of their sender, which may be past when they are taken, as a test may move the clock far in
//! one step: so all nodes have one moment for a failure.
//!
//! Source: the states of three nodes of Redis 8.0.6, one of which is killed and started again.

use std::collections::BTreeMap;

use super::{NodeId, View};
use crate::engine::spec::Now;

/// What this node knows of the failure of another one: one that is disconnected, or was not long ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeFailure {
    node: NodeId,
    /// Since when it is disconnected; `None` once it is connected again.
    since: Option<Now>,
    /// Since when this node suspects it.
    suspected: Option<Now>,
    /// Since when it has failed.
    failed: Option<Now>,
    /// The other nodes that suspect it, each with the moment since when.
    reports: BTreeMap<NodeId, Now>,
}

impl NodeFailure {
    /// Forgets that the node is disconnected, if it is.
    pub(super) fn forget_link(&mut self) {
        self.since = None;
    }
}

impl View {
    /// Records that a node is disconnected from now on, unless it is already.
    pub fn disconnect(&mut self, id: NodeId, now: Now) {
        if self.knows_other(id) {
            self.failure_of(id).since.get_or_insert(now);
        }
    }

    /// Records that a node is connected again.
    pub fn reconnect(&mut self, id: NodeId, now: Now, timeout_ms: i64) {
        let owns_slots = self.owns_slots(id);
        self.failures.retain_mut(|failure| {
            if failure.node != id {
                return true;
            }
            (failure.since, failure.suspected) = (None, None);
            failure.reports.clear();
            owns_slots && failure.next_step(timeout_ms).is_some_and(|due| due > now)
        });
    }

    /// Records that another node suspects one since a moment. Only what primaries say counts.
    pub fn take_report(&mut self, from: NodeId, suspected: NodeId, since: Now) {
        let counts = self.knows_other(from) && self.get(from).is_some_and(|node| !node.is_replica());
        if counts && self.knows_other(suspected) {
            self.failure_of(suspected).reports.insert(from, since);
        }
    }

    /// Records that a node has failed at a moment, as another one says.
    pub fn take_failure(&mut self, id: NodeId, since: Now) {
        if self.knows_other(id) {
            self.failure_of(id).failed.get_or_insert(since);
        }
    }

    /// When the state of a disconnected node, or of this one, changes next by time alone.
    pub fn next_failure_step(&self, timeout_ms: i64) -> Option<Now> {
        let steps = self.failures.iter().filter_map(|failure| failure.next_step(timeout_ms));
        steps.chain(self.serves_from()).min()
    }

    /// Does what is due for disconnected nodes. Returns those that are suspected only now, each with the moment since
    /// when.
    pub fn take_failure_steps(&mut self, now: Now, timeout_ms: i64) -> Vec<(NodeId, Now)> {
        let mut suspected = Vec::new();
        self.failures.retain_mut(|failure| {
            let Some(due) = failure.next_step(timeout_ms).filter(|due| *due <= now) else { return true };
            if failure.since.is_some() {
                failure.suspected = Some(due);
                suspected.push((failure.node, due));
            }
            failure.since.is_some()
        });
        suspected
    }

    /// The nodes that this one and a majority of the primaries suspect, and that had not failed yet, each with the
    /// moment at which the majority was reached. They have failed from then on.
    pub fn take_majority(&mut self) -> Vec<(NodeId, Now)> {
        let (needed, counts) = (self.size() / 2 + 1, !self.myself().is_replica());
        let mut failed = Vec::new();
        for failure in self.failures.iter_mut().filter(|failure| failure.failed.is_none()) {
            let Some(own) = failure.suspected else { continue };
            let mut moments: Vec<Now> = failure.reports.values().copied().chain(counts.then_some(own)).collect();
            moments.sort();
            if let Some(reached) = needed.checked_sub(1).and_then(|last| moments.get(last)) {
                let since = own.max(*reached);
                failure.failed = Some(since);
                failed.push((failure.node, since));
            }
        }
        failed
    }

    /// The nodes that this one suspects, or that have failed, each with the moment since when.
    pub(super) fn suspected(&self) -> Vec<(NodeId, Now)> {
        let since = |failure: &NodeFailure| failure.failed.or(failure.suspected);
        let is_down = |failure: &&NodeFailure| failure.since.is_some();
        let suspected = self.failures.iter().filter(is_down);
        suspected.filter_map(|failure| Some((failure.node, since(failure)?))).collect()
    }

    /// Whether this node suspects one that has not failed.
    pub fn suspects(&self, id: NodeId) -> bool {
        self.failure(id).is_some_and(|failure| failure.suspected.is_some() && failure.failed.is_none())
    }

    /// Whether a node has failed.
    pub fn has_failed(&self, id: NodeId) -> bool {
        self.failure(id).is_some_and(|failure| failure.failed.is_some())
    }

    /// Whether a node is connected to this one.
    pub fn is_connected(&self, id: NodeId) -> bool {
        self.failure(id).is_none_or(|failure| failure.since.is_none())
    }

    /// Since when a node is disconnected, if it is.
    pub fn disconnected_since(&self, id: NodeId) -> Option<Now> {
        self.failure(id)?.since
    }

    /// How many other nodes suspect one.
    pub fn failure_reports(&self, id: NodeId) -> usize {
        self.failure(id).map_or(0, |failure| failure.reports.len())
    }

    fn failure(&self, id: NodeId) -> Option<&NodeFailure> {
        self.failures.iter().find(|failure| failure.node == id)
    }

    fn failure_of(&mut self, id: NodeId) -> &mut NodeFailure {
        let place = self.failures.iter().position(|failure| failure.node == id).unwrap_or_else(|| {
            let reports = BTreeMap::new();
            self.failures.push(NodeFailure { node: id, since: None, suspected: None, failed: None, reports });
            self.failures.len() - 1
        });
        &mut self.failures[place]
    }
}

impl NodeFailure {
    /// The node that is disconnected, or was.
    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    /// Whether the node is suspected or has failed.
    pub(super) fn is_doubted(&self) -> bool {
        self.suspected.is_some() || self.failed.is_some()
    }

    /// When the node is to be suspected, or, if it is connected again after its failure, when that is over.
    fn next_step(&self, timeout_ms: i64) -> Option<Now> {
        match (self.since, self.failed) {
            (Some(since), _) if self.suspected.is_none() => Some(since.after_ms(timeout_ms)),
            (None, Some(failed)) => Some(failed.after_ms(timeout_ms.saturating_mul(2))),
            _ => None,
        }
    }
}
