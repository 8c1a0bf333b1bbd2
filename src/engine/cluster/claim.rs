//! Claims: what a node announces of itself and its slots, and what another node's view makes of it.

use std::collections::BTreeSet;
use std::mem;
use std::ops::RangeInclusive;

use super::{ClusterSettings, Node, NodeId, Opening, View};
use crate::engine::spec::Now;

/// A node's announcement to the others that it knows.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The node, as it sees itself.
    pub node: Node,
    /// The highest epoch that it has seen.
    pub current_epoch: u64,
    /// The slots that it owns.
    pub slots: Vec<RangeInclusive<u16>>,
    /// For a replica, the claim of its primary, as the replica knows it.
    pub of_primary: Option<Box<Claim>>,
    /// The nodes that it suspects, or that have failed, each with the moment since when.
    pub suspected: Vec<(NodeId, Now)>,
}

/// What follows from a claim for the node that took it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consequences {
    /// The slots that belonged to this node, and belong to the other one now.
    pub lost: Vec<u16>,
    /// The node whose replica this one is from now on: its slots, or those of its primary, have all gone there.
    pub new_primary: Option<NodeId>,
    /// Whether the sender no longer claims slots that it is known to own: another node may have claimed them in vain.
    pub has_freed_slots: bool,
    /// The other nodes that own slots which the sender, or its primary, claims; their epochs are higher.
    pub owners: Vec<NodeId>,
    /// The other nodes that owned slots which the sender owns now, and their replicas.
    pub losers: Vec<NodeId>,
}

impl View {
    /// What this node has to announce.
    pub fn claim(&self) -> Claim {
        let primary = self.myself().primary.and_then(|primary| self.get(primary));
        let of_primary = primary.map(|primary| Box::new(self.claim_of(primary)));
        Claim { suspected: self.suspected(), of_primary, ..self.claim_of(self.myself()) }
    }

    /// The claim of a node to its slots, as this one knows it. What the node no longer claims is left out: another one
    /// may own it by now, with an older epoch.
    fn claim_of(&self, node: &Node) -> Claim {
        let claimed = |slots: RangeInclusive<u16>| without(slots.clone(), self.unclaimed.range(slots).copied());
        let slots = self.ranges_of(node.id).into_iter().flat_map(claimed).collect();
        let (node, current_epoch) = (node.clone(), self.current_epoch);
        Claim { node, current_epoch, slots, of_primary: None, suspected: Vec::new() }
    }

    /// The claim of another node, as this one knows it.
    pub fn known_claim(&self, id: NodeId) -> Option<Claim> {
        self.get(id).map(|node| self.claim_of(node))
    }

    /// Takes the claim of another node, if that is known: a slot belongs to the claim with the highest epoch.
    ///
    /// A slot that its owner no longer claims stays with that one until another node claims it, by whatever epoch. A
    /// slot that this node imports stays with its owner until this node says otherwise. Of two nodes with one epoch,
    /// the one with the smaller id takes a new epoch.
    ///
    /// A claim that is older than what others have said of its sender changes nothing: a node's epoch only grows.
    pub fn take_claim(&mut self, claim: &Claim, settings: &ClusterSettings) -> Consequences {
        let sender = claim.node.id;
        if self.is_myself_id(sender) {
            return Consequences::default();
        }
        let Some(known) = self.find_mut(sender) else { return Consequences::default() };
        if claim.node.config_epoch < known.config_epoch {
            return Consequences::default();
        }
        let before = mem::replace(known, Node { met_ms: known.met_ms, ..claim.node.clone() });
        claim.suspected.iter().for_each(|(node, since)| self.take_report(sender, *node, *since));
        let epoch = claim.node.config_epoch;
        self.current_epoch = self.current_epoch.max(claim.current_epoch).max(epoch);
        let mut consequences = self.take_slots(claim, settings);
        consequences.owners = self.better_owners(claim);
        if claim.node.is_replica() {
            self.pass_on_slots(&before, claim);
        } else {
            self.resolve_collision(sender, epoch);
        }
        self.update_rank();
        consequences
    }

    /// Takes the claim of a node as another one knows it (Redis's UPDATE), if it is a better one than what this node
    /// knows: the node itself may be out of reach.
    pub fn take_better_claim(&mut self, claim: &Claim, settings: &ClusterSettings) -> Option<Consequences> {
        let is_better = |known: &Node| known.config_epoch < claim.node.config_epoch;
        let is_other = !self.is_myself_id(claim.node.id);
        let known = self.find_mut(claim.node.id).filter(|known| is_other && is_better(known))?;
        (known.primary, known.config_epoch) = (None, claim.node.config_epoch);
        self.current_epoch = self.current_epoch.max(claim.node.config_epoch);
        let consequences = self.take_slots(claim, settings);
        self.update_rank();
        Some(consequences)
    }

    fn take_slots(&mut self, claim: &Claim, settings: &ClusterSettings) -> Consequences {
        let (sender, epoch) = (claim.node.id, claim.node.config_epoch);
        let (own, shard_owner) = (self.myself().id, self.myself().primary.unwrap_or(self.myself().id));
        let (mut taken, mut lost, mut lost_by_shard) = (Vec::new(), Vec::new(), 0);
        let mut losers = BTreeSet::new();
        let has_freed_slots = self.note_unclaimed(sender, &claim.slots);
        for (slots, owner) in claim.slots.iter().flat_map(|slots| self.ranges_within(slots.clone())) {
            let owner_id = owner.map(|owner| owner.id);
            if owner_id == Some(sender) {
                continue;
            }
            let is_outranked = owner.is_some_and(|owner| owner.config_epoch >= epoch);
            let free = if is_outranked { self.unclaimed_within(slots.clone()) } else { vec![slots.clone()] };
            for slots in free.into_iter().flat_map(|slots| self.without_imported(slots)) {
                if owner_id == Some(shard_owner) {
                    lost_by_shard += slots.len();
                }
                if owner_id == Some(own) {
                    lost.extend(slots.clone());
                }
                losers.extend(owner_id);
                taken.push(slots);
            }
        }
        self.assign_all(taken, Some(sender));
        let claimed: usize = claim.slots.iter().map(ExactSizeIterator::len).sum();
        let follows = settings.allows_replica_migration || claimed == lost_by_shard;
        let is_left_without = lost_by_shard > 0 && !self.owns_slots(shard_owner) && sender != shard_owner;
        // A primary that has become a replica is left for its own primary.
        let passed_on = claim.node.primary.filter(|next| *next != own && self.is_replica_of(sender));
        let new_primary = (is_left_without && follows).then_some(sender).or(passed_on);
        let replicas = |primary: NodeId| self.replicas_of(primary).map(|replica| replica.id);
        let losers = losers.into_iter().flat_map(|loser| replicas(loser).chain([loser]));
        let losers = losers.filter(|id| *id != own && *id != sender).collect();
        Consequences { lost, new_primary, has_freed_slots, owners: Vec::new(), losers }
    }

    /// Takes the slots of a node that has become a replica. They go to its primary if that was a replica of the same
    /// shard: it has taken over, and may be out of reach. Unless it has become a replica again since then, and said so.
    fn pass_on_slots(&mut self, before: &Node, claim: &Claim) {
        let slots = self.ranges_of(before.id);
        let own = self.myself().id;
        let primary = claim.of_primary.as_ref().map(|primary| (primary.node.id, primary.node.config_epoch));
        let next = primary.and_then(|(id, epoch)| {
            let next = self.find_mut(id).filter(|next| next.id != own && next.shard == before.shard)?;
            let has_taken_over = !before.is_replica() && (!next.is_replica() || next.config_epoch < epoch);
            has_taken_over.then(|| {
                (next.primary, next.config_epoch) = (None, next.config_epoch.max(epoch));
                id
            })
        });
        self.assign_all(slots, next);
    }

    /// The other nodes that own slots which the sender of a claim, or its primary, claims; their epochs are higher.
    fn better_owners(&self, claim: &Claim) -> Vec<NodeId> {
        let Claim { node, slots, .. } = claim.of_primary.as_deref().unwrap_or(claim);
        let is_claimed = |slots: &RangeInclusive<u16>| self.unclaimed.range(slots.clone()).count() < slots.len();
        let ranges = slots.iter().flat_map(|slots| self.ranges_within(slots.clone()));
        let claimed = ranges.filter(|(slots, _)| is_claimed(slots)).filter_map(|(_, owner)| owner);
        let better = claimed.filter(|owner| owner.config_epoch > node.config_epoch).map(|owner| owner.id);
        let [own, sender] = [self.myself().id, claim.node.id];
        let others: BTreeSet<NodeId> = better.filter(|id| *id != own && *id != sender).collect();
        others.into_iter().collect()
    }

    /// Notes which of the slots of another node that one claims no more, and which it claims again. Returns whether
    /// it no longer claims a slot that it claimed before.
    fn note_unclaimed(&mut self, owner: NodeId, claimed: &[RangeInclusive<u16>]) -> bool {
        let known = self.ranges_of(owner);
        if known == claimed && self.unclaimed.is_empty() {
            return false;
        }
        let mut has_more = false;
        for slot in known.into_iter().flatten() {
            if claimed.iter().any(|slots| slots.contains(&slot)) {
                self.unclaimed.remove(&slot);
            } else {
                has_more |= self.unclaimed.insert(slot);
            }
        }
        has_more
    }

    /// Those of the slots that their owner no longer claims.
    fn unclaimed_within(&self, slots: RangeInclusive<u16>) -> Vec<RangeInclusive<u16>> {
        self.unclaimed.range(slots).map(|slot| *slot..=*slot).collect()
    }

    /// Those of the slots that this node does not import.
    fn without_imported(&self, slots: RangeInclusive<u16>) -> Vec<RangeInclusive<u16>> {
        let openings = self.openings_within(slots.clone());
        let imported = openings.filter(|(_, opening)| matches!(opening, Opening::Importing(_)));
        without(slots, imported.map(|(slot, _)| slot))
    }

    fn resolve_collision(&mut self, sender: NodeId, epoch: u64) {
        let myself = self.myself();
        if !myself.is_replica() && myself.config_epoch == epoch && myself.id < sender {
            self.current_epoch = self.current_epoch.saturating_add(1);
            self.myself_mut().config_epoch = self.current_epoch;
        }
    }
}

/// The slots without some of them, which come in their order.
fn without(slots: RangeInclusive<u16>, left_out: impl Iterator<Item = u16>) -> Vec<RangeInclusive<u16>> {
    let (mut first, last) = slots.into_inner();
    let mut kept = Vec::new();
    for slot in left_out {
        kept.extend(slot.checked_sub(1).map(|end| first..=end));
        first = slot + 1;
    }
    kept.push(first..=last);
    kept.retain(|slots| !slots.is_empty());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_are_imported_are_left_out() {
        let (myself, other) = (Node::of_seed(1, Now::from_us(0)), Node::of_seed(2, Now::from_us(0)));
        let source = other.id;
        let kept = |imported: &[u16], slots| {
            let mut view = View::alone(myself.clone());
            view.meet(other.clone());
            view.open(7, Some(Opening::Migrating(source)));
            imported.iter().for_each(|slot| view.open(*slot, Some(Opening::Importing(source))));
            view.without_imported(slots)
        };
        assert_eq!(kept(&[], 0..=16383), [0..=16383]);
        assert_eq!(kept(&[0, 16383], 0..=16383), [1..=16382]);
        assert_eq!(kept(&[4, 5], 3..=9), [3..=3, 6..=9]);
        assert_eq!(kept(&[4, 5], 4..=5), []);
        assert_eq!(kept(&[0], 0..=0), []);
        assert_eq!(kept(&[2, 10], 3..=9), [3..=9]);
    }

    #[test]
    fn a_replica_that_names_its_primary_late_does_not_undo_what_that_one_has_said_since() {
        let [first, second, third, observer] = [1, 2, 3, 4].map(|seed| Node::of_seed(seed, Now::from_us(0)));
        let of_shard = |node: &Node, primary: Option<NodeId>, config_epoch| Node {
            shard: first.shard,
            primary,
            config_epoch,
            ..node.clone()
        };
        let [late, successor] = [of_shard(&first, None, 1), of_shard(&second, None, 13)];
        let role_of_successor = |known: Node| {
            let mut view = View::alone(observer.clone());
            let others = [late.clone(), known, of_shard(&third, None, 15)];
            others.into_iter().for_each(|node| assert!(view.meet(node)));
            let of_primary = Some(Box::new(View::alone(successor.clone()).claim()));
            let replica = of_shard(&first, Some(second.id), 1);
            view.take_claim(&Claim { of_primary, ..View::alone(replica).claim() }, &ClusterSettings::default());
            view.get(second.id).map(|node| (node.primary, node.config_epoch))
        };
        assert_eq!(role_of_successor(of_shard(&second, Some(first.id), 7)), Some((None, 13)), "it has taken over");
        assert_eq!(role_of_successor(of_shard(&second, None, 13)), Some((None, 13)), "that is known");
        assert_eq!(role_of_successor(of_shard(&second, Some(third.id), 13)), Some((Some(third.id), 13)), "lost again");
    }
}
