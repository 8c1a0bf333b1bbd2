//! Elections: a replica whose primary has failed asks the primaries for their votes, and takes over with a majority.
//!
//! A replica becomes a candidate half a second after the failure, so that all nodes know of the failure, plus a random
//! delay of up to another half second, plus a second for each replica of the same primary that has more of its data. A
//! primary votes at most once in an epoch, only for a replica of a primary that has failed, and for the replicas of one
//! primary at most once in twice `cluster-node-timeout`. An election that is not won within twice the timeout is over,
//! and the next one is prepared after twice that.
//!
//! A manual failover (CLUSTER FAILOVER) starts an election in the same way, but at once, and even if the primary has
//! not failed.
//!
//! Source: the moments and messages of a cluster of Redis 8.0.6, a primary of which is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::{ClusterSettings, NodeId, View};
use crate::engine::spec::Now;

/// How long a replica waits after the failure of its primary, at least, so that all nodes know of it.
const SHORTEST_WAIT_MS: i64 = 500;

/// How much longer it waits at most, by chance, so that not all replicas stand at once.
pub const MAX_RANDOM_DELAY_MS: u64 = 500;

/// How much longer it waits for each replica that has more of the data.
const RANK_MS: i64 = 1000;

/// The least time after which an election is over.
const SHORTEST_ELECTION_MS: i64 = 2000;

/// An election in which this node is the candidate, running or scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Election {
    /// When it begins, or began.
    starts: Now,
    /// The number of replicas that have more of the data.
    rank: usize,
    /// Whether an administrator ordered it.
    is_manual: bool,
    /// The epoch in which votes are asked for, once it has begun.
    epoch: Option<u64>,
    votes: BTreeSet<NodeId>,
}

/// The votes that a primary has given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Votes {
    /// The epoch of the last vote.
    epoch: u64,
    /// The primaries for whose replicas it voted, each with the moment of the last vote.
    given: BTreeMap<NodeId, Now>,
}

impl Votes {
    /// Forgets the votes for replicas of a node.
    pub(super) fn forget(&mut self, primary: NodeId) {
        self.given.remove(&primary);
    }
}

/// A replica's request for votes.
#[derive(Clone, Debug)]
pub struct VoteRequest {
    /// The replica.
    pub from: NodeId,
    /// The epoch in which it stands.
    pub epoch: u64,
    /// The epoch of its primary's claim to the slots.
    pub claimed_epoch: u64,
    /// The slots that it would own.
    pub slots: Vec<RangeInclusive<u16>>,
    /// Whether an administrator ordered the failover: the primary need not have failed.
    pub is_manual: bool,
}

impl View {
    /// Whether the failure of this node's primary calls for an election.
    pub fn has_to_replace_primary(&self) -> bool {
        self.primary().is_some_and(|primary| self.has_failed(primary.id) && self.owns_slots(primary.id))
    }

    /// Prepares the election that the failure of the primary calls for, unless one is prepared or running.
    /// `random_delay_ms` is a random number of at most [`MAX_RANDOM_DELAY_MS`].
    pub fn prepare_election(&mut self, now: Now, random_delay_ms: u64) {
        if self.election.is_some() || !self.has_to_replace_primary() {
            return;
        }
        let rank = self.rank();
        let wait_ms = SHORTEST_WAIT_MS + random_delay_ms as i64 + RANK_MS * rank as i64;
        let starts = now.after_ms(wait_ms);
        self.election = Some(Election { starts, rank, is_manual: false, epoch: None, votes: BTreeSet::new() });
    }

    /// Begins an election at once, as an administrator ordered.
    pub fn begin_manual_election(&mut self, now: Now) {
        self.election = Some(Election { starts: now, rank: 0, is_manual: true, epoch: None, votes: BTreeSet::new() });
    }

    /// Delays the scheduled election if more replicas of the same primary now have more of the data than this one.
    pub fn update_rank(&mut self) {
        let rank = self.rank();
        if let Some(election) =
            self.election.as_mut().filter(|election| election.epoch.is_none() && !election.is_manual)
            && rank > election.rank
        {
            election.starts = election.starts.after_ms(RANK_MS * (rank - election.rank) as i64);
            election.rank = rank;
        }
    }

    /// The number of replicas of this node's primary that have more of the data, by what they announced.
    fn rank(&self) -> usize {
        let (own, offset) = (self.myself().id, self.myself().offset);
        let Some(primary) = self.myself().primary else { return 0 };
        self.replicas_of(primary).filter(|other| other.id != own && other.offset > offset).count()
    }

    /// When the election of this node begins, or is over.
    pub fn next_election_step(&self, timeout_ms: i64) -> Option<Now> {
        let election = self.election.as_ref()?;
        Some(match election.epoch {
            None => election.starts,
            Some(_) => election.starts.after_ms(longest_ms(timeout_ms).saturating_mul(2)),
        })
    }

    /// Begins the election of this node if it is due, and returns its request for votes; ends the election if its time
    /// is over or the primary no longer needs to be replaced.
    pub fn take_election_step(&mut self, now: Now, settings: &ClusterSettings) -> Option<VoteRequest> {
        self.next_election_step(settings.node_timeout_ms).filter(|due| *due <= now)?;
        let primary = self.myself().primary?;
        let is_wanted = self.has_to_replace_primary();
        let election = self.election.as_mut()?;
        if election.epoch.is_some() || !(is_wanted || election.is_manual) {
            self.election = None;
            return None;
        }
        let epoch = self.current_epoch.saturating_add(1);
        (election.epoch, self.current_epoch) = (Some(epoch), epoch);
        let is_manual = election.is_manual;
        let claimed_epoch = self.get(primary).map_or(0, |node| node.config_epoch);
        let slots = self.ranges_of(primary);
        Some(VoteRequest { from: self.myself().id, epoch, claimed_epoch, slots, is_manual })
    }

    /// Decides whether this node, a primary with slots, votes for a replica, and remembers that it did.
    pub fn vote(&mut self, request: &VoteRequest, now: Now, timeout_ms: i64) -> bool {
        let myself = self.myself();
        if myself.is_replica() || !self.owns_slots(myself.id) {
            return false;
        }
        self.current_epoch = self.current_epoch.max(request.epoch);
        let Some(primary) = self.get(request.from).and_then(|node| node.primary) else { return false };
        let is_old = request.epoch < self.current_epoch || self.votes.epoch == self.current_epoch;
        let has_cause = request.is_manual || self.has_failed(primary);
        let voted = self.votes.given.get(&primary);
        let voted_lately = voted.is_some_and(|moment| now < moment.after_ms(timeout_ms.saturating_mul(2)));
        let ranges = request.slots.iter().flat_map(|slots| self.ranges_within(slots.clone()));
        let is_claimed = |slots: &RangeInclusive<u16>| slots.clone().any(|slot| !self.unclaimed.contains(&slot));
        let owners = ranges.filter_map(|(slots, owner)| owner.filter(|_| is_claimed(&slots)));
        let newest = owners.map(|owner| owner.config_epoch).max();
        let is_outdated = newest.is_some_and(|epoch| epoch > request.claimed_epoch);
        if is_old || !has_cause || voted_lately || is_outdated {
            return false;
        }
        self.votes.epoch = self.current_epoch;
        self.votes.given.insert(primary, now);
        true
    }

    /// Counts a vote for this node. Returns the epoch of the election if that is won by it.
    pub fn count_vote(&mut self, from: NodeId, epoch: u64, timeout_ms: i64, now: Now) -> Option<u64> {
        let needed = self.size() / 2 + 1;
        let votes_count = self.owns_slots(from);
        let election = self.election.as_mut().filter(|election| election.epoch == Some(epoch))?;
        if now > election.starts.after_ms(longest_ms(timeout_ms)) || !votes_count {
            return None;
        }
        election.votes.insert(from);
        (election.votes.len() >= needed).then_some(epoch)
    }
}

/// How long an election may take.
fn longest_ms(timeout_ms: i64) -> i64 {
    timeout_ms.saturating_mul(2).max(SHORTEST_ELECTION_MS)
}
