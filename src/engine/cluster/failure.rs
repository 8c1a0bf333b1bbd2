//! Failures: which nodes are not heard any more, since when, and whether enough others say the same.
//!
//! A node that was not heard for `cluster-node-timeout` is suspected by this node (`fail?`). When as many nodes suspect
//! it as are a majority of those that own slots, it has failed (`fail`), which is told to all. A node that is heard
//! again is as before at once, unless it had failed and owns slots: then the others wait until twice the timeout has
//! passed since, in which a replica might have replaced it.
//!
//! Reports have the moment of their sender, which may be past when they are taken, as a test may move the clock far in
//! one step: so all nodes have one moment for a failure.
//!
//! Source: the states of three nodes of Redis 8.0.6, one of which is killed and started again.

use std::collections::BTreeMap;

use super::{NodeId, View};
use crate::engine::spec::Now;

/// What a node thinks of another one that it does not hear, or did not for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Silence {
    node: NodeId,
    /// Since when it is not heard; `None` once it is heard again.
    since: Option<Now>,
    /// Since when this node suspects it, as it was not heard for so long.
    suspected: Option<Now>,
    /// Since when it has failed.
    failed: Option<Now>,
    /// The other nodes that suspect it, each with the moment since when.
    reports: BTreeMap<NodeId, Now>,
}

impl View {
    /// Records that a node is not heard any more, from now on.
    pub fn lose(&mut self, id: NodeId, now: Now) {
        if self.knows_other(id) {
            self.silence_of(id).since = Some(now);
        }
    }

    /// Records that a node is heard again.
    pub fn hear(&mut self, id: NodeId, now: Now, timeout_ms: i64) {
        let owns_slots = self.owns_slots(id);
        self.silences.retain_mut(|silence| {
            if silence.node != id {
                return true;
            }
            (silence.since, silence.suspected) = (None, None);
            silence.reports.clear();
            owns_slots && silence.next_step(timeout_ms).is_some_and(|due| due > now)
        });
    }

    /// Records that another node suspects one since a moment.
    pub fn take_report(&mut self, from: NodeId, suspected: NodeId, since: Now) {
        if self.knows_other(from) && self.knows_other(suspected) {
            self.silence_of(suspected).reports.insert(from, since);
        }
    }

    /// Records that a node has failed at a moment, as another one says.
    pub fn take_failure(&mut self, id: NodeId, since: Now) {
        if self.knows_other(id) {
            self.silence_of(id).failed.get_or_insert(since);
        }
    }

    /// When the state of a silent node, or of this one, changes next by time alone.
    pub fn next_failure_step(&self, timeout_ms: i64) -> Option<Now> {
        let steps = self.silences.iter().filter_map(|silence| silence.next_step(timeout_ms));
        steps.chain(self.serves_from()).min()
    }

    /// Does what is due for silent nodes. Returns the nodes that are suspected only now, each with the moment since
    /// when.
    pub fn take_failure_steps(&mut self, now: Now, timeout_ms: i64) -> Vec<(NodeId, Now)> {
        let mut suspected = Vec::new();
        self.silences.retain_mut(|silence| {
            let Some(due) = silence.next_step(timeout_ms).filter(|due| *due <= now) else { return true };
            if silence.since.is_some() {
                silence.suspected = Some(due);
                suspected.push((silence.node, due));
            }
            silence.since.is_some()
        });
        suspected
    }

    /// The nodes that a majority suspects, this one among them, and that had not failed yet, each with the moment at
    /// which the majority was reached. They have failed from then on.
    pub fn take_majority(&mut self) -> Vec<(NodeId, Now)> {
        let needed = self.size() / 2 + 1;
        let mut failed = Vec::new();
        for silence in self.silences.iter_mut().filter(|silence| silence.failed.is_none()) {
            let Some(own) = silence.suspected else { continue };
            let mut moments: Vec<Now> = silence.reports.values().copied().chain([own]).collect();
            moments.sort();
            if let Some(reached) = moments.get(needed - 1) {
                let since = own.max(*reached);
                silence.failed = Some(since);
                failed.push((silence.node, since));
            }
        }
        failed
    }

    /// Whether this node suspects one that has not failed.
    pub fn suspects(&self, id: NodeId) -> bool {
        self.silence(id).is_some_and(|silence| silence.suspected.is_some() && silence.failed.is_none())
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
            let reports = BTreeMap::new();
            self.silences.push(Silence { node: id, since: None, suspected: None, failed: None, reports });
            self.silences.len() - 1
        });
        &mut self.silences[place]
    }
}

impl Silence {
    /// The node that is silent, or was.
    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    /// Whether the node is suspected or has failed.
    pub(super) fn is_doubted(&self) -> bool {
        self.suspected.is_some() || self.failed.is_some()
    }

    /// When the node is to be suspected, or, if it is heard again after its failure, when that is over.
    fn next_step(&self, timeout_ms: i64) -> Option<Now> {
        match (self.since, self.failed) {
            (Some(since), _) if self.suspected.is_none() => Some(after_ms(since, timeout_ms)),
            (None, Some(failed)) => Some(after_ms(failed, timeout_ms.saturating_mul(2))),
            _ => None,
        }
    }
}

/// The moment so many milliseconds later.
pub(super) fn after_ms(moment: Now, ms: i64) -> Now {
    Now::from_us(moment.unix_us.saturating_add(ms.saturating_mul(1000)))
}
