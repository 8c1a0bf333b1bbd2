//! Replica migration: a replica of a primary with several replicas moves to a primary that has none left.
//!
//! A primary is an orphan if it owns slots, has not failed, has no working replica, and should have one: either all of
//! its replicas have failed, or it was a replica itself and has had none since it took over. After more than five
//! seconds a replica moves to it: of the replicas of the primaries with the most working ones, the one with the
//! smallest id; if that one has failed, none moves. Its own primary must have more working replicas than
//! `cluster-migration-barrier`, where a suspected replica does not count as working. The five seconds start, and the
//! move happens, only while this node serves keys.
//!
//! Here an orphan that has a replica again, and loses it, waits anew; Redis may go on from the first time.
//!
//! Costs: a pass over the nodes when something about the cluster changes, in a node that is a replica.
//!
//! Source: the code of Redis 8.0, and seven nodes of it, one of whose replicas is killed.

use std::collections::{BTreeMap, BTreeSet};

use super::{ClusterSettings, Health, Node, NodeId, View};
use crate::engine::spec::Now;

/// How long a primary has been an orphan when a replica goes to it: more than five seconds.
const ORPHANED_MS: i64 = 5001;

/// A node's memory of the replicas of others.
#[derive(Clone, Debug, Default)]
pub(super) struct Orphans {
    /// The primary of each node that was a replica when the node looked last.
    primaries: BTreeMap<NodeId, NodeId>,
    /// The nodes that should have replicas.
    should_have: BTreeSet<NodeId>,
    /// Since when this node has seen each orphan.
    since: BTreeMap<NodeId, Now>,
    /// The orphan to which this node goes, and when.
    migration: Option<(Now, NodeId)>,
}

impl Orphans {
    /// Begins anew, as a node does that starts.
    pub(super) fn restart(&mut self) {
        (self.since, self.migration) = (BTreeMap::new(), None);
        self.should_have = self.primaries.values().copied().collect();
    }

    /// Takes which nodes are replicas of whom at present, and which nodes there are.
    fn take_roles(&mut self, nodes: &[Node], myself: NodeId) {
        let replicas = || nodes.iter().filter_map(|node| Some((node.id, node.primary?)));
        let is_known = |(id, primary)| self.primaries.get(&id) == Some(&primary);
        if replicas().count() == self.primaries.len() && replicas().all(is_known) {
            return;
        }
        let before = std::mem::replace(&mut self.primaries, replicas().collect());
        let with_replicas: BTreeSet<NodeId> = self.primaries.values().copied().collect();
        self.should_have.retain(|id| with_replicas.contains(id) || !before.values().any(|primary| primary == id));
        let is_promoted = |node: &&Node| !node.is_replica() && before.contains_key(&node.id) && node.id != myself;
        self.should_have.extend(nodes.iter().filter(is_promoted).map(|node| node.id));
        self.should_have.extend(with_replicas);
        self.should_have.retain(|id| nodes.iter().any(|node| node.id == *id));
    }
}

impl View {
    /// Finds out which primaries are orphans, and whether this node goes to one of them, after the view, the settings
    /// or the health of this node may have changed.
    pub fn update_orphans(&mut self, settings: &ClusterSettings, now: Now) {
        let mut orphans = std::mem::take(&mut self.orphans);
        orphans.take_roles(self.nodes(), self.myself().id);
        orphans.migration = self.migration(&mut orphans, settings, now);
        self.orphans = orphans;
    }

    /// The moment at which this node becomes a replica of an orphan, and which orphan that is; `None` if it does not.
    /// The moment is later than the one at which this was decided.
    pub fn next_replica_migration(&self) -> Option<(Now, NodeId)> {
        self.orphans.migration
    }

    fn migration(&self, orphans: &mut Orphans, settings: &ClusterSettings, now: Now) -> Option<(Now, NodeId)> {
        let own = self.primary().map(|primary| primary.id).filter(|_| settings.allows_replica_migration);
        let Some(own) = own else {
            orphans.since.clear();
            return None;
        };
        let mut working: BTreeMap<NodeId, usize> = BTreeMap::new();
        let work = self.nodes().iter().filter(|node| !self.has_failed(node.id));
        work.filter_map(|node| node.primary).for_each(|primary| *working.entry(primary).or_default() += 1);
        let count = |id: NodeId| working.get(&id).copied().unwrap_or_default();
        let primaries = || self.nodes().iter().filter(|node| !node.is_replica()).map(|node| node.id);
        let is_orphan = |id: &NodeId| {
            count(*id) == 0 && orphans.should_have.contains(id) && !self.has_failed(*id) && self.owns_slots(*id)
        };
        let found: Vec<NodeId> = primaries().filter(is_orphan).collect();
        orphans.since.retain(|id, _| found.contains(id));
        let most = primaries().filter(|id| !self.has_failed(*id)).map(count).max().unwrap_or(0);
        let has_most = most >= 2 && count(own) == most && !self.has_failed(own);
        if self.health() == Health::Fail || !has_most || self.unsuspected_replicas(own) <= settings.migration_barrier {
            return None;
        }
        found.iter().for_each(|id| _ = orphans.since.entry(*id).or_insert(now));
        let candidates = self.nodes().iter().filter(|node| node.primary.is_some_and(|primary| count(primary) == most));
        if candidates.map(|node| node.id).min() != Some(self.myself().id) {
            return None;
        }
        let target = *found.first()?;
        match orphans.migration {
            // What is due stays so until the step is taken.
            Some((due, before)) if before == target => Some((due, target)),
            _ => Some((orphans.since.get(&target)?.after_ms(ORPHANED_MS).max(now.after_ms(1)), target)),
        }
    }

    /// The replicas of a node that have not failed and are not suspected.
    fn unsuspected_replicas(&self, id: NodeId) -> i64 {
        let works = |node: &&Node| !self.has_failed(node.id) && !self.suspects(node.id);
        i64::try_from(self.replicas_of(id).filter(works).count()).unwrap_or(i64::MAX)
    }
}
