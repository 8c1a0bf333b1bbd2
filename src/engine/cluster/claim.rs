//! Claims: a node's announcement of itself and its slots, and how another node applies it to its view.

use std::collections::BTreeSet;
use std::mem;
use std::ops::RangeInclusive;

use super::{ClusterSettings, Node, NodeId, SlotMigration, View};
use crate::engine::spec::Now;

/// A node's announcement to the others that it knows.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The node, as it sees itself.
    pub node: Node,
    /// The highest epoch that it has seen.
    pub current_epoch: u64,
    /// The slots that it owns, in ascending ranges.
    pub slots: Vec<RangeInclusive<u16>>,
    /// For a replica, the claim of its primary, as the replica knows it.
    pub of_primary: Option<Box<Claim>>,
    /// The nodes that it suspects, or that have failed, each with the moment since when.
    pub suspected: Vec<(NodeId, Now)>,
}

/// The consequences of a claim for the node that took it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consequences {
    /// The slots that belonged to this node, and belong to the sender now.
    pub lost_slots: Vec<u16>,
    /// The primary that this node has to follow from now on: the node that took the last slots of its shard, or the
    /// primary of its own primary if that has become a replica.
    pub new_primary: Option<NodeId>,
    /// Whether the sender gave up slots that this view still assigns to it; an earlier claim of another node to them
    /// may have been rejected.
    pub has_freed_slots: bool,
    /// The other nodes that own slots which the sender, or its primary, claims; their epochs are higher.
    pub better_owners: Vec<NodeId>,
    /// The other nodes that owned slots which the sender owns now, and their replicas.
    pub former_owners: Vec<NodeId>,
}

impl Claim {
    /// Whether a slot is among those that it claims.
    pub fn contains(&self, slot: u16) -> bool {
        contains(&self.slots, slot)
    }
}

/// Whether a slot is in one of some ranges, which ascend.
fn contains(ranges: &[RangeInclusive<u16>], slot: u16) -> bool {
    let place = ranges.partition_point(|slots| *slots.end() < slot);
    ranges.get(place).is_some_and(|slots| slots.contains(&slot))
}

impl View {
    /// The claim that this node announces.
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

    /// Applies the claim of another known node to this view: a slot goes to the claim with the highest epoch.
    ///
    /// A slot that its owner no longer claims stays with the owner until another node claims it, whatever the epoch of
    /// that claim. A slot that this node imports stays with its owner until this node says otherwise. Of two nodes with
    /// one epoch, the one with the smaller id takes a new epoch.
    ///
    /// A claim that is older than what others have said of its sender changes nothing: a node's epoch only grows.
    pub fn apply_claim(&mut self, claim: &Claim, settings: &ClusterSettings) -> Consequences {
        let sender = claim.node.id;
        if self.is_myself_id(sender) {
            return Consequences::default();
        }
        let Some(known) = self.find_mut(sender) else { return Consequences::default() };
        if claim.node.config_epoch < known.config_epoch {
            return Consequences::default();
        }
        let before = mem::replace(known, Node { met_ms: known.met_ms, ..claim.node.clone() });
        self.apply_reports(sender, &claim.suspected);
        let epoch = claim.node.config_epoch;
        self.current_epoch = self.current_epoch.max(claim.current_epoch).max(epoch);
        let mut consequences = self.apply_slots(claim, settings);
        consequences.better_owners = self.better_owners(claim);
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
    pub fn apply_better_claim(&mut self, claim: &Claim, settings: &ClusterSettings) -> Option<Consequences> {
        let is_better = |known: &Node| known.config_epoch < claim.node.config_epoch;
        let is_other = !self.is_myself_id(claim.node.id);
        let known = self.find_mut(claim.node.id).filter(|known| is_other && is_better(known))?;
        (known.primary, known.config_epoch) = (None, claim.node.config_epoch);
        self.current_epoch = self.current_epoch.max(claim.node.config_epoch);
        let consequences = self.apply_slots(claim, settings);
        self.update_rank();
        Some(consequences)
    }

    fn apply_slots(&mut self, claim: &Claim, settings: &ClusterSettings) -> Consequences {
        let (sender, epoch) = (claim.node.id, claim.node.config_epoch);
        let (own, shard_owner) = (self.myself().id, self.myself().primary.unwrap_or(self.myself().id));
        let (mut taken, mut lost_slots, mut lost_by_shard) = (Vec::new(), Vec::new(), 0);
        let mut former = BTreeSet::new();
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
                    lost_slots.extend(slots.clone());
                }
                former.extend(owner_id);
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
        let former = former.into_iter().flat_map(|owner| replicas(owner).chain([owner]));
        let former_owners = former.filter(|id| *id != own && *id != sender).collect();
        Consequences { lost_slots, new_primary, has_freed_slots, better_owners: Vec::new(), former_owners }
    }

    /// Reassigns the slots of a node that has become a replica. They go to its new primary if that was a replica of the
    /// same shard: it has taken over, though its own claim may never arrive. They get no owner if that primary has
    /// since announced that it is a replica again.
    ///
    /// Slots that the successor does not claim moved to another shard earlier; they are marked as unclaimed, so that
    /// the claim of that shard takes them whatever its epoch.
    fn pass_on_slots(&mut self, before: &Node, claim: &Claim) {
        let slots = self.ranges_of(before.id);
        let successor = claim.of_primary.as_deref().filter(|primary| self.has_taken_over(before, &primary.node));
        self.assign_all(slots.iter().cloned(), successor.map(|primary| primary.node.id));
        let Some(successor) = successor else { return };
        self.unclaimed.extend(slots.into_iter().flatten().filter(|slot| !successor.contains(*slot)));
        let node = &successor.node;
        if let Some(known) = self.find_mut(node.id) {
            (known.primary, known.config_epoch) = (None, known.config_epoch.max(node.config_epoch));
        }
    }

    /// Whether another node has taken the place of a primary, by what a node of their shard says of it.
    fn has_taken_over(&self, before: &Node, next: &Node) -> bool {
        let is_newer = |known: &Node| !known.is_replica() || known.config_epoch < next.config_epoch;
        let known = self.get(next.id).filter(|known| known.shard == before.shard && is_newer(known));
        !before.is_replica() && !next.is_replica() && known.is_some() && !self.is_myself_id(next.id)
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

    /// Records which of its slots another node has stopped claiming, and which it claims again. Returns whether it has
    /// stopped claiming any since its last claim.
    fn note_unclaimed(&mut self, owner: NodeId, claimed: &[RangeInclusive<u16>]) -> bool {
        let known = self.ranges_of(owner);
        if known == claimed && self.unclaimed.is_empty() {
            return false;
        }
        let mut has_more = false;
        for slot in known.into_iter().flatten() {
            if contains(claimed, slot) {
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
        let slot_migrations = self.slot_migrations_within(slots.clone());
        let imported = slot_migrations.filter(|(_, migration)| matches!(migration, SlotMigration::Importing(_)));
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

/// Splits a range at the slots in `left_out`, which must ascend, and returns the ranges between them.
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
            view.add(other.clone());
            view.set_slot_migration(7, Some(SlotMigration::Migrating(source)));
            imported.iter().for_each(|slot| view.set_slot_migration(*slot, Some(SlotMigration::Importing(source))));
            view.without_imported(slots)
        };
        assert_eq!(kept(&[], 0..=16383), [0..=16383]);
        assert_eq!(kept(&[0, 16383], 0..=16383), [1..=16382]);
        assert_eq!(kept(&[4, 5], 3..=9), [3..=3, 6..=9]);
        assert_eq!(kept(&[4, 5], 4..=5), []);
        assert_eq!(kept(&[0], 0..=0), []);
        assert_eq!(kept(&[2, 10], 3..=9), [3..=9]);
    }

    /// The view of an observer that hears from the first node of a shard, the primary of slots 1 to 3, that it is a
    /// replica of the second one, which has replaced it with epoch 13. A third node is a primary, too.
    fn told_late(second: impl Fn(Node, [NodeId; 2]) -> Node) -> (View, NodeId, NodeId) {
        let [one, two, three, observer] = [1, 2, 3, 4].map(|seed| Node::of_seed(seed, Now::from_us(0)));
        let (shard, [first, next, third]) = (one.shard, [one.id, two.id, three.id]);
        let of_shard = |node: Node, primary, config_epoch| Node { shard, primary, config_epoch, ..node };
        let mut view = View::alone(observer);
        let known_second = second(of_shard(two.clone(), None, 13), [first, third]);
        let others = [of_shard(one.clone(), None, 1), known_second, of_shard(three, None, 12)];
        others.into_iter().for_each(|node| assert!(view.add(node)));
        view.assign_all([1..=3], Some(first));
        let mut successor = View::alone(of_shard(two, None, 13));
        successor.assign_all([1..=2], Some(next));
        let claim = View::alone(of_shard(one, Some(next), 1)).claim();
        let claim = Claim { of_primary: Some(Box::new(successor.claim())), ..claim };
        view.apply_claim(&claim, &ClusterSettings::default());
        (view, next, third)
    }

    #[test]
    fn the_slots_of_a_primary_that_has_become_a_replica_go_to_its_successor() {
        let (view, next, _) = told_late(|node, [first, _]| Node { primary: Some(first), config_epoch: 7, ..node });
        assert_eq!(view.get(next).map(|node| (node.primary, node.config_epoch)), Some((None, 13)));
        assert_eq!(view.ranges_of(next), [1..=3]);
        let (view, next, _) = told_late(|node, _| node);
        assert_eq!(view.ranges_of(next), [1..=3], "it was known as a primary");
    }

    #[test]
    fn a_slot_that_the_successor_does_not_claim_goes_to_whoever_claims_it() {
        let (mut view, next, third) = told_late(|node, _| node);
        let node = view.get(third).expect("it is known").clone();
        let claim = Claim { slots: vec![2..=3], ..View::alone(node).claim() };
        view.apply_claim(&claim, &ClusterSettings::default());
        assert_eq!((view.ranges_of(next), view.ranges_of(third)), (vec![1..=2], vec![3..=3]));
    }

    #[test]
    fn a_successor_that_is_a_replica_again_by_its_own_word_stays_one() {
        let (view, next, third) = told_late(|node, [_, third]| Node { primary: Some(third), ..node });
        assert_eq!(view.get(next).map(|node| (node.primary, node.config_epoch)), Some((Some(third), 13)));
        assert_eq!(view.ranges_of(next), []);
    }
}
