//! Writes of clients, and which of them may be lost.
//!
//! Each write appends a number to the list of its key, a greater one than all before. Redis promises nothing of a
//! write that not all nodes of its shard have, so such a write may be lost, and so may one of which a node has lost
//! its copy. All others must be there in the end.

use std::collections::{BTreeMap, BTreeSet};

use dunlin::engine::cluster::NodeId;

/// Why a write may be lost.
pub type Reason = &'static str;

/// Why a write may be lost that not all nodes of its shard had when it was acknowledged: one is down, or late.
const REPLICATION: [Reason; 2] = ["down", "late"];

/// A write that was acknowledged.
#[derive(Debug)]
pub struct Write {
    pub key: usize,
    /// The shard that has the key now.
    pub shard: NodeId,
    number: u64,
    /// Why it may be lost, if it may.
    risk: Option<Reason>,
}

/// All writes that were acknowledged, in their order.
#[derive(Debug, Default)]
pub struct History {
    writes: Vec<Write>,
    last: u64,
}

impl History {
    /// The number that the next write appends.
    pub fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Adds the write of the last number.
    pub fn acknowledge(&mut self, key: usize, shard: NodeId, risk: Option<Reason>) {
        self.writes.push(Write { key, shard, number: self.last, risk });
    }

    /// Notes that some writes may be lost from now on.
    pub fn endanger(&mut self, reason: Reason, is_meant: impl Fn(&Write) -> bool) {
        for write in self.writes.iter_mut().filter(|write| is_meant(write)) {
            write.risk = write.risk.or(Some(reason));
        }
    }

    /// The keys with writes that not all nodes of a shard had when they were acknowledged.
    pub fn late_keys(&self, shard: NodeId) -> BTreeSet<usize> {
        let is_late =
            |write: &&Write| write.shard == shard && write.risk.is_some_and(|risk| REPLICATION.contains(&risk));
        self.writes.iter().filter(is_late).map(|write| write.key).collect()
    }

    /// Notes that all nodes of a shard have these writes by now: none may be lost because a node is down or late.
    pub fn note_arrived(&mut self, numbers: &[u64]) {
        for write in self.writes.iter_mut().filter(|write| numbers.contains(&write.number)) {
            write.risk = write.risk.filter(|risk| !REPLICATION.contains(risk));
        }
    }

    /// Notes that a replica has replaced its primary without these writes. Those that not all nodes had may be lost,
    /// and this is why.
    pub fn name_losses(&mut self, reason: Reason, numbers: &BTreeSet<u64>) {
        let is_meant = |write: &&mut Write| numbers.contains(&write.number);
        for write in self.writes.iter_mut().filter(is_meant) {
            write.risk = write.risk.map(|risk| if REPLICATION.contains(&risk) { reason } else { risk });
        }
    }

    /// Notes that a key has moved to another shard.
    pub fn move_to(&mut self, key: usize, shard: NodeId) {
        self.writes.iter_mut().filter(|write| write.key == key).for_each(|write| write.shard = shard);
    }

    /// Compares the lists of all keys in the end with what was written. Returns how many writes were kept, and how
    /// many were lost for each reason.
    ///
    /// # Errors
    /// A write is lost that must not be, or one is there twice, or one is there that was not acknowledged.
    pub fn check(&self, lists: &[Vec<u64>]) -> Result<BTreeMap<Reason, u64>, String> {
        let mut counts = BTreeMap::new();
        for (key, list) in lists.iter().enumerate() {
            if !list.is_sorted_by(|one, other| one < other) {
                return Err(format!("the numbers of key {key} are not in their order: {list:?}"));
            }
            let mut left: BTreeSet<u64> = list.iter().copied().collect();
            for write in self.writes.iter().filter(|write| write.key == key) {
                match (left.remove(&write.number), write.risk) {
                    (true, _) => *counts.entry("kept").or_insert(0) += 1,
                    (false, Some(reason)) => *counts.entry(reason).or_insert(0) += 1,
                    (false, None) => return Err(format!("{} of key {key} is lost, and must not be", write.number)),
                }
            }
            if !left.is_empty() {
                return Err(format!("nobody has written {left:?} to key {key}"));
            }
        }
        Ok(counts)
    }
}
