//! Failure detection: which nodes are disconnected, since when, and whether a majority says the same.
//!
//! A node that was disconnected for `cluster-node-timeout` is suspected by this node (`fail?`). When the nodes that
//! suspect it are as many as a majority of the slot owners, it has failed (`fail`), which this node announces to all. A
//! node that reconnects is healthy again at once, unless it had failed and owns slots: then it stays failed until twice
//! the timeout after its failure, as a replica may have replaced it meanwhile.
//!
//! A report counts until its sender takes it back, as it is connected to that node again, or until the sender itself
//! has been disconnected for twice the timeout. Redis's nodes learn the former from the next gossip of the sender.
//!
//! A report carries the time of its sender, which may lie in the past when the report is applied, as a test may move
//! the clock far in one step. So all nodes date a failure to the same moment.
//!
//! Source: the states of three nodes of Redis 8.0.6, one of which is killed and started again.

use std::collections::BTreeMap;

use super::{NodeId, View};
use crate::engine::spec::Now;

/// The failure of another node as this one sees it: a node that is disconnected, or was not long ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeFailure {
    node: NodeId,
    /// Since when it is disconnected; `None` once it is connected again.
    since: Option<Now>,
    /// Whether it is connected all the same, and only does not answer.
    is_silent: bool,
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
        (self.since, self.is_silent) = (None, false);
    }

    /// Whether the entry still has any information; if not, it is dropped.
    fn is_needed(&self) -> bool {
        self.since.is_some() || self.failed.is_some() || !self.reports.is_empty()
    }
}

impl View {
    /// Records that a node is disconnected from now on, unless it is already.
    pub fn disconnect(&mut self, id: NodeId, now: Now) {
        if self.knows_other(id) {
            let failure = self.failure_of(id);
            failure.since.get_or_insert(now);
            failure.is_silent = false;
        }
    }

    /// Records that a node does not answer from now on, unless it is disconnected. It stays connected, and is suspected
    /// as a disconnected one is.
    pub fn note_silence(&mut self, id: NodeId, now: Now) {
        if self.knows_other(id) && self.failure_of(id).since.is_none() {
            let failure = self.failure_of(id);
            (failure.since, failure.is_silent) = (Some(now), true);
        }
    }

    /// Records that a node is connected again. Returns whether this node may have reported its failure to others.
    pub fn reconnect(&mut self, id: NodeId, now: Now, timeout_ms: i64) -> bool {
        let owns_slots = self.owns_slots(id);
        let Some(failure) = self.failures.iter_mut().find(|failure| failure.node == id) else { return false };
        let may_be_reported = failure.is_doubted();
        (failure.since, failure.is_silent, failure.suspected) = (None, false, None);
        if !owns_slots || failure.next_step(timeout_ms).is_some_and(|due| due <= now) {
            failure.failed = None;
        }
        self.failures.retain(NodeFailure::is_needed);
        may_be_reported
    }

    /// Records that node `from` has suspected another one since that moment, or no longer does. Only reports of
    /// primaries count.
    pub fn apply_report(&mut self, from: NodeId, suspected: NodeId, since: Option<Now>) {
        let counts = self.knows_other(from) && self.get(from).is_some_and(|node| !node.is_replica());
        match since {
            None => self.drop_reports(from, |node| node == suspected),
            Some(since) if counts && self.knows_other(suspected) => {
                self.failure_of(suspected).reports.insert(from, since);
            }
            Some(_) => {}
        }
    }

    /// Replaces all reports of a node by these.
    pub(super) fn apply_reports(&mut self, from: NodeId, suspected: &[(NodeId, Now)]) {
        self.drop_reports(from, |node| suspected.iter().all(|(other, _)| *other != node));
        suspected.iter().for_each(|(node, since)| self.apply_report(from, *node, Some(*since)));
    }

    /// Forgets what a node has reported about some nodes.
    pub(super) fn drop_reports(&mut self, from: NodeId, is_about: impl Fn(NodeId) -> bool) {
        for failure in self.failures.iter_mut().filter(|failure| is_about(failure.node)) {
            failure.reports.remove(&from);
        }
        self.failures.retain(NodeFailure::is_needed);
    }

    /// Records that a node has failed at a moment, as another one says.
    pub fn apply_failure(&mut self, id: NodeId, since: Now) {
        if self.knows_other(id) {
            self.failure_of(id).failed.get_or_insert(since);
        }
    }

    /// Takes over from another node that one is suspected, or has failed at that moment. It is disconnected until this
    /// node hears it.
    pub(super) fn take_over_failure(&mut self, id: NodeId, failed: Option<Now>, now: Now) {
        let failure = self.failure_of(id);
        failure.is_silent = false;
        (failure.since, failure.suspected, failure.failed) = (Some(now), Some(now), failed);
    }

    /// When the state of a disconnected node, or of this one, changes next by time alone.
    pub fn next_failure_step(&self, timeout_ms: i64) -> Option<Now> {
        let steps = self.failures.iter().filter_map(|failure| failure.next_step(timeout_ms));
        steps.chain(self.serves_from()).min()
    }

    /// Marks nodes as suspected, or as no longer failed, where the timeout has passed. Returns the newly suspected
    /// nodes, each with the moment since when.
    pub fn suspect_overdue(&mut self, now: Now, timeout_ms: i64) -> Vec<(NodeId, Now)> {
        let mut suspected = Vec::new();
        for failure in &mut self.failures {
            let Some(due) = failure.next_step(timeout_ms).filter(|due| *due <= now) else { continue };
            if failure.since.is_some() {
                failure.suspected = Some(due);
                suspected.push((failure.node, due));
            } else {
                failure.failed = None;
            }
        }
        self.failures.retain(NodeFailure::is_needed);
        suspected
    }

    /// Marks as failed the nodes that this one and a majority of the primaries suspect. Returns those that had not
    /// failed before, each with the moment at which the majority was reached.
    pub fn mark_failed_by_majority(&mut self, timeout_ms: i64) -> Vec<(NodeId, Now)> {
        // Nearly always.
        if self.failures.iter().all(|failure| failure.suspected.is_none() || failure.failed.is_some()) {
            return Vec::new();
        }
        let (needed, counts) = (self.size() / 2 + 1, !self.myself().is_replica());
        let reached = |failure: &NodeFailure| {
            let own = failure.suspected.filter(|_| failure.failed.is_none())?;
            let reports = self.reports(failure, timeout_ms, |since| own.max(since));
            let mut moments: Vec<Now> = reports.chain(counts.then_some(own)).collect();
            moments.sort();
            let reached = needed.checked_sub(1).and_then(|last| moments.get(last))?;
            Some((failure.node, own.max(*reached)))
        };
        let failed: Vec<(NodeId, Now)> = self.failures.iter().filter_map(reached).collect();
        failed.iter().for_each(|(node, since)| self.failure_of(*node).failed = Some(*since));
        failed
    }

    /// The moments since which other nodes have suspected the node of `failure`, without the reports that no longer
    /// count at the moment that `at` gives.
    fn reports(&self, failure: &NodeFailure, timeout_ms: i64, at: impl Fn(Now) -> Now) -> impl Iterator<Item = Now> {
        let last = move |from: NodeId| Some(self.disconnected_since(from)?.after_ms(timeout_ms.saturating_mul(2)));
        let reports = failure.reports.iter().map(|(from, since)| (*from, *since));
        let counting = reports.filter(move |(from, since)| last(*from).is_none_or(|last| at(*since) < last));
        counting.map(|(_, since)| since)
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
        self.failed_since(id).is_some()
    }

    /// Since when a node has failed, if it has.
    pub(super) fn failed_since(&self, id: NodeId) -> Option<Now> {
        self.failure(id)?.failed
    }

    /// Whether a node is connected to this one.
    pub fn is_connected(&self, id: NodeId) -> bool {
        self.failure(id).is_none_or(|failure| failure.since.is_none() || failure.is_silent)
    }

    /// Since when a node is disconnected, if it is.
    pub fn disconnected_since(&self, id: NodeId) -> Option<Now> {
        self.failure(id)?.since
    }

    /// How many other nodes suspect one.
    pub fn failure_reports(&self, id: NodeId, now: Now, timeout_ms: i64) -> usize {
        self.failure(id).map_or(0, |failure| self.reports(failure, timeout_ms, |_| now).count())
    }

    fn failure(&self, id: NodeId) -> Option<&NodeFailure> {
        self.failures.iter().find(|failure| failure.node == id)
    }

    fn failure_of(&mut self, id: NodeId) -> &mut NodeFailure {
        let place = self.failures.iter().position(|failure| failure.node == id).unwrap_or_else(|| {
            let reports = BTreeMap::new();
            self.failures.push(NodeFailure {
                node: id,
                since: None,
                is_silent: false,
                suspected: None,
                failed: None,
                reports,
            });
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

    /// The moment at which the node becomes suspected, or, if it reconnected after a failure, counts as healthy again.
    fn next_step(&self, timeout_ms: i64) -> Option<Now> {
        match (self.since, self.failed) {
            (Some(since), _) if self.suspected.is_none() => Some(since.after_ms(timeout_ms)),
            (None, Some(failed)) => Some(failed.after_ms(timeout_ms.saturating_mul(2))),
            _ => None,
        }
    }
}
