//! A node's view of its cluster: the nodes that it knows, the owner of each slot, the slots that move, the epochs.
//!
//! Invariants: every owner, and every other end of an open slot, is a known node; the node itself is always known; a
//! slot that is migrating is owned by this node, unless it was taken from it meanwhile.
//!
//! Costs: an owner is found in O(1). The owners are shared by views that are copies of one another until one changes.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{Node, NodeId};
use crate::value::hash_slot::HASH_SLOTS;

/// The place of a slot without owner.
const NOBODY: u16 = u16::MAX;

/// The most nodes that a view can hold.
const MOST_NODES: usize = 1000;

/// A slot that moves: to a node, or from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The slot moves to that node.
    Migrating(NodeId),
    /// The slot comes from that node.
    Importing(NodeId),
}

/// Whether a node serves keys at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Ok,
    /// It does not: too few slots, or too few nodes, are served.
    Fail,
}

/// The cluster as one node sees it.
#[derive(Clone, Debug)]
pub struct View {
    nodes: Vec<Node>,
    myself: usize,
    /// The place of each slot's owner among the nodes.
    owners: Arc<[u16]>,
    openings: BTreeMap<u16, Opening>,
    /// The highest epoch that the node has seen.
    pub current_epoch: u64,
    /// The node's address as far as it knows it; empty before it has met another one.
    pub own_ip: String,
    health: Health,
}

impl View {
    /// The view of a node that knows no other, and owns no slot.
    pub fn alone(myself: Node) -> View {
        View {
            nodes: vec![myself],
            myself: 0,
            owners: vec![NOBODY; HASH_SLOTS.into()].into(),
            openings: BTreeMap::new(),
            current_epoch: 0,
            own_ip: String::new(),
            health: Health::Fail,
        }
    }

    /// The view of the node at a place among nodes that all know each other. Each has an epoch of its own, and the
    /// slots are dealt out as `redis-cli --cluster create` does it.
    pub fn of_cluster(mut nodes: Vec<Node>, myself: usize) -> View {
        (1..).zip(&mut nodes).for_each(|(epoch, node)| node.config_epoch = epoch);
        let mut view = View::alone(nodes[myself].clone());
        (view.current_epoch, view.own_ip) = (nodes.len() as u64, nodes[myself].address.ip.clone());
        let owner_of = |slot: usize| {
            let ends = (1..nodes.len()).map(|count| first_slot_after(count, nodes.len()));
            ends.take_while(|end| *end <= slot).count() as u16
        };
        view.owners = (0..usize::from(HASH_SLOTS)).map(owner_of).collect();
        View { nodes, myself, health: Health::Ok, ..view }
    }

    /// This node.
    pub fn myself(&self) -> &Node {
        &self.nodes[self.myself]
    }

    /// This node, to be changed.
    pub fn myself_mut(&mut self) -> &mut Node {
        &mut self.nodes[self.myself]
    }

    /// All nodes that this one knows, itself included.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Whether a node is this one.
    pub fn is_myself(&self, node: &Node) -> bool {
        node.id == self.myself().id
    }

    /// The node with that id.
    pub fn find(&self, id: &[u8]) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id.as_bytes() == id)
    }

    pub(super) fn find_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.iter_mut().find(|node| node.id == id)
    }

    /// Adds a node that was not known; false if there are too many.
    pub fn meet(&mut self, node: Node) -> bool {
        let is_new = self.nodes.len() < MOST_NODES && self.find(node.id.as_bytes()).is_none();
        if is_new {
            self.nodes.push(node);
        }
        is_new
    }

    /// Forgets a node, which must not be this one. Its slots have no owner then.
    pub fn forget(&mut self, id: NodeId) {
        let Some(place) = self.nodes.iter().position(|node| node.id == id).filter(|place| *place != self.myself) else {
            return;
        };
        self.nodes.remove(place);
        self.myself -= usize::from(self.myself > place);
        let renumbered = |owner: u16| match usize::from(owner) {
            owner if owner == place => NOBODY,
            owner_place if owner != NOBODY && owner_place > place => owner - 1,
            _ => owner,
        };
        self.owners = self.owners.iter().map(|owner| renumbered(*owner)).collect();
        self.openings.retain(|_, opening| *opening != Opening::Migrating(id) && *opening != Opening::Importing(id));
    }

    /// Makes this node one that knows no other and owns no slot. A hard reset also gives it another id, and begins the
    /// epochs anew.
    pub fn reset(&mut self, is_hard: bool, random: impl FnMut() -> u64) {
        let mut random = random;
        let mut myself = self.myself().clone();
        let mut current_epoch = self.current_epoch;
        if is_hard {
            (myself.id, myself.shard) = (NodeId::random(&mut random), NodeId::random(&mut random));
            (myself.config_epoch, current_epoch) = (0, 0);
        }
        let own_ip = std::mem::take(&mut self.own_ip);
        *self = View { current_epoch, own_ip, ..View::alone(myself) };
    }

    /// The owner of a slot, if it has one.
    pub fn owner(&self, slot: u16) -> Option<&Node> {
        self.nodes.get(usize::from(*self.owners.get(usize::from(slot))?))
    }

    /// Whether this node owns a slot.
    pub fn owns(&self, slot: u16) -> bool {
        self.owners.get(usize::from(slot)).is_some_and(|owner| usize::from(*owner) == self.myself)
    }

    /// Gives a slot to a known node, or takes it from its owner.
    pub fn assign(&mut self, slot: u16, owner: Option<NodeId>) {
        let place = owner.and_then(|id| self.nodes.iter().position(|node| node.id == id));
        if let Some(of_slot) = Arc::make_mut(&mut self.owners).get_mut(usize::from(slot)) {
            *of_slot = place.map_or(NOBODY, |place| place as u16);
        }
    }

    /// The state of a slot that moves.
    pub fn opening(&self, slot: u16) -> Option<Opening> {
        self.openings.get(&slot).copied()
    }

    /// The slots that move, in their order.
    pub fn openings(&self) -> impl Iterator<Item = (u16, Opening)> {
        self.openings.iter().map(|(slot, opening)| (*slot, *opening))
    }

    /// Sets whether a slot moves, and to or from whom.
    pub fn open(&mut self, slot: u16, opening: Option<Opening>) {
        match opening {
            Some(opening) => _ = self.openings.insert(slot, opening),
            None => _ = self.openings.remove(&slot),
        }
    }

    /// The ranges of slots with one owner, in their order.
    pub fn ranges(&self) -> Vec<(RangeInclusive<u16>, &Node)> {
        let mut ranges: Vec<(RangeInclusive<u16>, &Node)> = Vec::new();
        for slot in 0..HASH_SLOTS {
            let Some(owner) = self.owner(slot) else { continue };
            match ranges.last_mut() {
                Some((range, before)) if *range.end() + 1 == slot && before.id == owner.id => {
                    *range = *range.start()..=slot;
                }
                _ => ranges.push((slot..=slot, owner)),
            }
        }
        ranges
    }

    /// The ranges of slots that a node owns.
    pub fn ranges_of(&self, id: NodeId) -> Vec<RangeInclusive<u16>> {
        self.ranges().into_iter().filter(|(_, owner)| owner.id == id).map(|(range, _)| range).collect()
    }

    /// The number of slots with an owner.
    pub fn assigned(&self) -> usize {
        self.owners.iter().filter(|owner| **owner != NOBODY).count()
    }

    /// The number of nodes that own a slot.
    pub fn size(&self) -> usize {
        let mut owns = vec![false; self.nodes.len()];
        for owner in self.owners.iter().filter(|owner| **owner != NOBODY) {
            owns[usize::from(*owner)] = true;
        }
        owns.into_iter().filter(|owns| *owns).count()
    }

    /// Whether the node serves keys.
    pub fn health(&self) -> Health {
        self.health
    }

    /// Finds out anew whether the node serves keys. Without any owner there is no majority of owners.
    pub fn update_health(&mut self, requires_full_coverage: bool) {
        let is_covered = !requires_full_coverage || self.assigned() == usize::from(HASH_SLOTS);
        self.health = if is_covered && self.size() > 0 { Health::Ok } else { Health::Fail };
    }

    /// Gives this node an epoch above all others, unless it has that already; whether it got one.
    pub fn bump_epoch(&mut self) -> bool {
        let highest = self.nodes.iter().map(|node| node.config_epoch).chain([self.current_epoch]).max().unwrap_or(0);
        let epoch = self.myself().config_epoch;
        if epoch != 0 && epoch == highest {
            return false;
        }
        self.current_epoch = highest.saturating_add(1);
        self.myself_mut().config_epoch = self.current_epoch;
        true
    }

    /// The node that listens for clients at that port.
    pub fn at_port(&self, port: u16) -> Option<&Node> {
        self.nodes.iter().find(|node| node.address.port == port)
    }

    /// The slots that had another owner in an earlier state of this view.
    pub fn owners_changed_since(&self, before: &OwnersBefore) -> Vec<u16> {
        if Arc::ptr_eq(&before.owners, &self.owners) {
            return Vec::new();
        }
        let owner_before =
            |slot: &u16| before.owners.get(usize::from(*slot)).and_then(|owner| before.ids.get(usize::from(*owner)));
        let is_other =
            |slot: &u16| owner_before(slot).is_some_and(|id| self.owner(*slot).map(|owner| owner.id) != Some(*id));
        (0..HASH_SLOTS).filter(is_other).collect()
    }

    /// The owners of all slots now, for [`View::owners_changed_since`].
    pub fn owners(&self) -> OwnersBefore {
        OwnersBefore { owners: Arc::clone(&self.owners), ids: self.nodes.iter().map(|node| node.id).collect() }
    }
}

/// The owners of all slots at a moment.
#[derive(Clone, Debug)]
pub struct OwnersBefore {
    owners: Arc<[u16]>,
    ids: Vec<NodeId>,
}

/// The first slot that does not belong to the first `count` of `all` nodes.
fn first_slot_after(count: usize, all: usize) -> usize {
    // The last slot of a node is (count * 16384 / all - 1), rounded to the nearest.
    let slots = usize::from(HASH_SLOTS);
    (2 * count * slots + all) / (2 * all)
}
