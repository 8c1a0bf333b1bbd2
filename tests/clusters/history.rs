//! Writes of clients, and which of them may be lost.
//!
//! Each write appends a number to the list of its key, a greater one than all before. Redis promises nothing of a
//! write that not all nodes of its shard have, so such a write may be lost, and so may one of which a node has lost
//! its copy. All others must be there in the end.

use std::collections::{BTreeMap, BTreeSet};

use dunlin::engine::cluster::NodeId;

/// Why a write may be lost.
pub type Reason = &'static str;

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
