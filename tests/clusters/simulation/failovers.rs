//! Failovers that an administrator or a test orders in a simulation, and the writes that they lose: those that the
//! replica does not have when it replaces its primary.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{KEYS, Simulation};
use crate::history::Reason;

/// The most writes that a replica is ordered to leave out.
const MOST_LEFT_OUT: usize = 3;

/// How many clients write before a replica is ordered to leave out some of that.
const WRITES_BEFORE: usize = 12;

/// The ways in which a replica replaces its primary, and the reasons for which writes are lost by each. A failover
/// without a word loses none if it ends at once; if not, its primary may fail first.
const WAYS: [(&str, Option<Reason>); 3] =
    [("", None), (" FORCE", Some("lost by FORCE")), (" TAKEOVER", Some("lost by TAKEOVER"))];

impl Simulation {
    /// Makes a replica replace its primary.
    pub(super) fn fail_over(&mut self) {
        let (node, (way, reason)) = (self.any_node(), WAYS[self.generator.usize(..WAYS.len())]);
        let lists = self.lists_of_primary(node);
        let outcome = if self.generator.bool() {
            self.call(node, &format!("CLUSTER FAILOVER{way}"))
        } else {
            let by = self.any_node();
            self.call(by, &format!("DUNLIN FAILOVER {node}{way}"))
        };
        self.tell(&format!("fail over {node}{way}: {outcome:?}"));
        if outcome.is_ok() && way == " TAKEOVER" {
            self.note_unvoted_epoch(node);
        }
        if outcome.is_ok() && self.facts(node, 0).primary.is_none() {
            let missing = self.missing(node, &lists);
            match reason {
                Some(reason) => self.history.name_losses(reason, &missing),
                None => self.refuse("an ordered failover has ended at once, and lost", &missing),
            }
        }
        // An ordered failover holds back writes until it ends; over a slow link, until the primary's pause does.
        self.server.advance(Duration::from_secs(if self.has_slow_links { 15 } else { 5 }));
    }

    /// Makes a replica fall behind and replace its primary without the last writes of that.
    pub(super) fn fail_over_losing(&mut self) {
        let (node, count) = (self.any_node(), self.generator.usize(1..=MOST_LEFT_OUT));
        let outcome = self.server.set_lag_in_writes(node, count);
        self.tell(&format!("lag {node} {count} writes: {outcome:?}"));
        (0..WRITES_BEFORE).for_each(|_| self.write());
        let lists = self.lists_of_primary(node);
        let outcome = self.server.fail_over_losing(node, count);
        self.tell(&format!("fail over {node} losing {count}: {outcome:?}"));
        _ = self.server.set_lag_in_writes(node, 0);
        if outcome.is_err() {
            return;
        }
        self.note_unvoted_epoch(node);
        let missing = self.missing(node, &lists);
        self.left_out += missing.len();
        self.history.name_losses("lost by LOSING", &missing);
        // A key that is moved to the primary comes with all its writes, and one that is moved away does without them.
        if !self.has_moved_keys {
            let mut last: Vec<u64> = lists.into_iter().flatten().collect();
            last.sort_unstable();
            let meant: BTreeSet<u64> = last.into_iter().rev().take(count).collect();
            if missing != meant {
                self.fault =
                    Some(format!("{node} is to leave out the last writes, {meant:?}, and has not {missing:?}"));
            }
        }
    }

    /// Notes which writes have reached all nodes of their shard that did not have them at first.
    pub(super) fn note_arrived_writes(&mut self) {
        for node in self.members() {
            let facts = self.facts(node, 0);
            let mut keys = self.history.late_keys(facts.shard);
            keys.retain(|key| self.facts(node, KEYS[*key].1).owns_slot && !self.is_moving(*key));
            let is_safe = |key: &usize| self.risk_at(node, KEYS[*key].1).is_none();
            if self.is_up(node) && !keys.is_empty() && keys.iter().all(is_safe) {
                let lists = self.lists_at(node);
                keys.into_iter().for_each(|key| self.history.note_arrived(&lists[key]));
            }
        }
    }

    /// Ends the run with a fault if there are any such writes.
    fn refuse(&mut self, what: &str, writes: &BTreeSet<u64>) {
        if !writes.is_empty() {
            self.fault.get_or_insert_with(|| format!("{what}: {writes:?}"));
        }
    }

    /// The list of each key at the primary of a node, as the primary has it; empty lists if the node has none.
    fn lists_of_primary(&self, node: usize) -> Vec<Vec<u64>> {
        let id = self.facts(node, 0).primary;
        let primary = self.members.iter().find(|other| id == Some(self.facts(**other, 0).id));
        primary.map_or_else(Vec::new, |primary| self.lists_at(*primary))
    }

    /// The list of each key that a node has, whether it is up or not.
    fn lists_at(&self, node: usize) -> Vec<Vec<u64>> {
        let dump = self.nodes[node].dump();
        let list = |(name, _): (&str, u16)| {
            let start = format!("RPUSH {name} ");
            let lines = dump.lines().filter_map(|line| line.strip_prefix(&start));
            lines.flat_map(|line| line.split(' ')).filter_map(|number| number.parse().ok()).collect()
        };
        KEYS.into_iter().map(list).collect()
    }

    /// The numbers in these lists that a node does not have.
    fn missing(&self, node: usize, lists: &[Vec<u64>]) -> BTreeSet<u64> {
        let there: BTreeSet<u64> = self.lists_at(node).into_iter().flatten().collect();
        lists.iter().flatten().copied().filter(|number| !there.contains(number)).collect()
    }

    /// Notes which writes may be lost as a node has taken an epoch without asking anyone: by that it has all slots
    /// that are its own as far as it knows, and it may not know who has them now.
    pub(super) fn note_unvoted_epoch(&mut self, node: usize) {
        self.has_unvoted_epochs = true;
        let shard = self.facts(node, 0).shard;
        let owned = KEYS.map(|(_, slot)| self.facts(node, slot).owns_slot);
        self.history.endanger("unvoted epoch", |write| owned[write.key] && write.shard != shard);
    }

    /// Notes that an election may be won without a majority's votes: a node counts the primaries whose slots it has
    /// heard of, as in Redis, and one that joins only a part of the cluster hears of few.
    pub(super) fn note_partial_views(&mut self) {
        let lacks_an_owner = |node: &usize| {
            self.nodes[*node].with_engine(|engine| {
                let view = engine.peers.cluster.as_ref().expect("it is a node");
                KEYS.iter().any(|(_, slot)| view.owner(*slot).is_none())
            })
        };
        self.has_unvoted_epochs |= self.members.iter().any(lacks_an_owner);
    }
}
