//! A node's view of its cluster: the nodes that it knows, the owner of each slot, the slots that move, the epochs.
//!
//! Invariants: every owner, and every other end of an open slot, is a known node; the node itself is always known; a
//! slot that is migrating is owned by this node, unless it was taken from it meanwhile.
//!
//! Costs: O(1) for the owner of a slot, and for how many slots a known node has; other questions about all slots read
//! the few runs of slots with one owner ([`Owners`]), which copies of a view share until one of them changes.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::RangeInclusive;

use super::agreement::OwnersDigest;
use super::election::{Election, Votes};
use super::failure::NodeFailure;
use super::owners::{Owners, Run};
use super::replica_migration::Orphans;
use super::{ClusterSettings, Message, MessageCounts, Node, NodeId};
use crate::engine::spec::Now;
use crate::value::hash_slot::HASH_SLOTS;

/// The most nodes of a cluster.
pub const MAX_NODES: usize = 1000;

/// How soon Redis's nodes have sent each other a ping.
const PING_MS: i64 = 1000;

/// How long a node remembers which ones it has forgotten, so that forgetting one twice is no error.
const REMEMBERED_MS: i64 = 60_000;

/// How long a node that has started waits before it serves keys.
const START_MS: i64 = 2000;

/// The bounds of the time that a node waits after it was in a minority: `cluster-node-timeout`, clamped to these.
const SHORTEST_REJOIN_MS: i64 = 500;
const LONGEST_REJOIN_MS: i64 = 5000;

/// A slot that moves: to a node, or from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotMigration {
    /// The slot moves to that node.
    Migrating(NodeId),
    /// The slot comes from that node.
    Importing(NodeId),
}

/// Whether a node serves keys at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The node serves keys.
    Ok,
    /// The node serves no keys: a slot is not covered, it is in a minority, or it has just started.
    Fail,
}

/// The cluster as one node sees it.
#[derive(Clone, Debug)]
pub struct View {
    nodes: Vec<Node>,
    myself: usize,
    /// The place of each slot's owner among the nodes.
    pub(super) owners: Owners,
    slot_migrations: BTreeMap<u16, SlotMigration>,
    /// The slots that their owner, another node, no longer claims.
    pub(super) unclaimed: BTreeSet<u16>,
    /// The highest epoch that the node has seen.
    pub current_epoch: u64,
    /// The node's address as far as it knows it; empty before it has met another one.
    pub own_ip: String,
    /// The nodes that are disconnected, with the reports about them.
    pub(super) failures: Vec<NodeFailure>,
    /// The election in which it is the candidate to replace its primary, running or scheduled.
    pub(super) election: Option<Election>,
    /// The votes that it has given to others.
    pub(super) votes: Votes,
    /// The replicas of others, as it saw them last.
    pub(super) orphans: Orphans,
    /// The nodes that it has learned of, and that may not have learned of it yet.
    pub(super) handshakes: BTreeSet<NodeId>,
    /// The nodes that were forgotten lately, each with the moment when.
    forgotten: Vec<(NodeId, Now)>,
    health: Health,
    /// Whether it was cut off from the majority of the nodes with slots at the last check.
    is_in_minority: bool,
    /// When it may serve keys again.
    serves_from: Option<Now>,
    /// The messages that it sends later, each with the moment when.
    postponed: Vec<(Now, Message)>,
    /// The messages that it has sent to others.
    pub sent: MessageCounts,
    /// The messages that it has received.
    pub received: MessageCounts,
    /// Whether what it sees may have changed since that was published ([`super::Opinion`]).
    pub is_unpublished: bool,
    /// The digest of the owners that was published last.
    pub(super) owners_digest: Option<OwnersDigest>,
}

impl View {
    /// The view of a node that knows no other, and owns no slot.
    pub fn alone(myself: Node) -> View {
        View {
            nodes: vec![myself],
            myself: 0,
            owners: Owners::none(),
            slot_migrations: BTreeMap::new(),
            unclaimed: BTreeSet::new(),
            current_epoch: 0,
            own_ip: String::new(),
            failures: Vec::new(),
            election: None,
            votes: Votes::default(),
            orphans: Orphans::default(),
            handshakes: BTreeSet::new(),
            forgotten: Vec::new(),
            health: Health::Fail,
            is_in_minority: false,
            serves_from: None,
            postponed: Vec::new(),
            sent: MessageCounts::default(),
            received: MessageCounts::default(),
            is_unpublished: true,
            owners_digest: None,
        }
    }

    /// The views of nodes that all know each other, one for each, in their order. Each node has an epoch of its own.
    /// The slots are dealt out to the first `primaries` of them as `redis-cli --cluster create` does it; the others are
    /// their replicas, one for each in turn.
    pub fn of_cluster(mut nodes: Vec<Node>, primaries: usize) -> Vec<View> {
        (1..).zip(&mut nodes).for_each(|(epoch, node)| node.config_epoch = epoch);
        let count = nodes.len();
        let primaries = primaries.clamp(1, count.max(1));
        for place in primaries..count {
            let (primary, shard) = (nodes[place % primaries].id, nodes[place % primaries].shard);
            (nodes[place].primary, nodes[place].shard) = (Some(primary), shard);
        }
        let owners = Owners::dealt_out(primaries);
        let view_of = |myself: usize| View {
            nodes: nodes.clone(),
            myself,
            owners: owners.clone(),
            current_epoch: count as u64,
            own_ip: nodes[myself].address.ip.clone(),
            health: Health::Ok,
            ..View::alone(nodes[myself].clone())
        };
        (0..count).map(view_of).collect()
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

    /// Whether this node knows another one.
    pub fn knows_others(&self) -> bool {
        self.nodes.len() > 1
    }

    /// Whether a node is this one.
    pub fn is_myself(&self, node: &Node) -> bool {
        node.id == self.myself().id
    }

    /// Whether that is the id of this node.
    pub fn is_myself_id(&self, id: NodeId) -> bool {
        self.myself().id == id
    }

    /// Whether a node is known, and is not this one.
    pub fn knows_other(&self, id: NodeId) -> bool {
        !self.is_myself_id(id) && self.place_of(id).is_some()
    }

    /// The node with an id that a client has named.
    pub fn find(&self, id: &[u8]) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id.as_bytes() == id)
    }

    /// The node with that id.
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    pub(super) fn find_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.iter_mut().find(|node| node.id == id)
    }

    /// Adds a node that was not known; false if there are too many.
    pub(super) fn add(&mut self, node: Node) -> bool {
        let is_new = self.nodes.len() < MAX_NODES && self.get(node.id).is_none();
        if is_new {
            self.nodes.push(node);
        }
        is_new
    }

    /// Whether a node that is not known was forgotten within the last minute.
    pub fn has_forgotten(&self, id: &[u8], now: Now) -> bool {
        let is_it =
            |(forgotten, moment): &(NodeId, Now)| forgotten.as_bytes() == id && now < moment.after_ms(REMEMBERED_MS);
        self.find(id).is_none() && self.forgotten.iter().any(is_it)
    }

    /// Forgets a node, which must not be this one. Its slots have no owner then.
    pub fn forget(&mut self, id: NodeId, now: Now) {
        let Some(place) = self.nodes.iter().position(|node| node.id == id).filter(|place| *place != self.myself) else {
            return;
        };
        self.assign_all(self.ranges_of(id), None);
        self.forgotten.retain(|(other, moment)| *other != id && now < moment.after_ms(REMEMBERED_MS));
        self.forgotten.push((id, now));
        self.nodes.remove(place);
        self.failures.retain(|failure| failure.node() != id);
        self.drop_reports(id, |_| true);
        self.votes.forget(id);
        self.handshakes.remove(&id);
        self.myself -= usize::from(self.myself > place);
        self.owners.renumber(|owner| match usize::from(owner) {
            owner_place if owner_place == place => None,
            owner_place => Some(owner - u16::from(owner_place > place)),
        });
        self.slot_migrations.retain(|_, migration| {
            *migration != SlotMigration::Migrating(id) && *migration != SlotMigration::Importing(id)
        });
    }

    /// Makes this node one that knows no other and owns no slot. A hard reset also gives it another id, and begins the
    /// epochs anew. The counts of messages go on.
    pub fn reset(&mut self, is_hard: bool, random: impl FnMut() -> u64) {
        let mut random = random;
        let mut myself = self.myself().clone();
        let mut current_epoch = self.current_epoch;
        if is_hard {
            (myself.id, myself.shard) = (NodeId::random(&mut random), NodeId::random(&mut random));
            (myself.config_epoch, current_epoch) = (0, 0);
        } else if myself.is_replica() {
            myself.shard = NodeId::random(&mut random);
        }
        myself.primary = None;
        let (own_ip, sent, received) =
            (mem::take(&mut self.own_ip), mem::take(&mut self.sent), mem::take(&mut self.received));
        *self = View { current_epoch, own_ip, sent, received, ..View::alone(myself) };
    }

    /// The owner of a slot, if it has one.
    pub fn owner(&self, slot: u16) -> Option<&Node> {
        self.node_at(self.owners.get(slot))
    }

    /// Whether this node owns a slot.
    pub fn owns(&self, slot: u16) -> bool {
        self.owners.get(slot).is_some_and(|owner| usize::from(owner) == self.myself)
    }

    /// Gives a slot to a known node, or takes it from its owner.
    pub fn assign(&mut self, slot: u16, owner: Option<NodeId>) {
        self.assign_all([slot..=slot], owner);
    }

    /// Gives slots to a known node, or takes them from their owners.
    pub fn assign_all(&mut self, slots: impl IntoIterator<Item = RangeInclusive<u16>>, owner: Option<NodeId>) {
        let place = owner.and_then(|id| self.place_of(id));
        for slots in slots {
            let claimed_anew: Vec<u16> = self.unclaimed.range(slots.clone()).copied().collect();
            claimed_anew.iter().for_each(|slot| _ = self.unclaimed.remove(slot));
            self.owners.set(slots, place);
        }
    }

    /// The state of a slot that moves.
    pub fn slot_migration(&self, slot: u16) -> Option<SlotMigration> {
        self.slot_migrations.get(&slot).copied()
    }

    /// The slots that move, in their order.
    pub fn slot_migrations(&self) -> impl Iterator<Item = (u16, SlotMigration)> {
        self.slot_migrations.iter().map(|(slot, migration)| (*slot, *migration))
    }

    /// Those of the slots that move, in their order.
    pub(super) fn slot_migrations_within(
        &self,
        slots: RangeInclusive<u16>,
    ) -> impl Iterator<Item = (u16, SlotMigration)> {
        self.slot_migrations.range(slots).map(|(slot, migration)| (*slot, *migration))
    }

    /// Sets whether a slot moves, and to or from whom.
    pub fn set_slot_migration(&mut self, slot: u16, migration: Option<SlotMigration>) {
        match migration {
            Some(migration) => _ = self.slot_migrations.insert(slot, migration),
            None => _ = self.slot_migrations.remove(&slot),
        }
    }

    /// Ends the moving of all slots.
    pub(super) fn end_slot_migrations(&mut self) {
        self.slot_migrations.clear();
    }

    /// The ranges of slots with one owner, in their order.
    pub fn ranges(&self) -> Vec<(RangeInclusive<u16>, &Node)> {
        self.owners.runs().filter_map(|(slots, place)| Some((slots, self.node_at(place)?))).collect()
    }

    /// The ranges of slots that a node owns.
    pub fn ranges_of(&self, id: NodeId) -> Vec<RangeInclusive<u16>> {
        self.runs_of(id).map(|(slots, _)| slots).collect()
    }

    /// The runs of slots that a node owns.
    fn runs_of(&self, id: NodeId) -> impl Iterator<Item = Run> {
        let place = self.place_of(id).filter(|place| self.owners.count(*place) > 0);
        place.into_iter().flat_map(|place| self.owners.runs().filter(move |(_, owner)| *owner == Some(place)))
    }

    /// All slots, in ranges with one owner or none.
    pub(super) fn owned_ranges(&self) -> impl Iterator<Item = (RangeInclusive<u16>, Option<&Node>)> {
        self.ranges_within(0..=HASH_SLOTS - 1)
    }

    /// Some slots, in ranges with one owner or none.
    pub(super) fn ranges_within(
        &self,
        slots: RangeInclusive<u16>,
    ) -> impl Iterator<Item = (RangeInclusive<u16>, Option<&Node>)> {
        self.owners.runs_within(slots).map(|(slots, place)| (slots, self.node_at(place)))
    }

    /// The place of a node among the nodes.
    fn place_of(&self, id: NodeId) -> Option<u16> {
        self.nodes.iter().position(|node| node.id == id).map(|place| place as u16)
    }

    fn node_at(&self, place: Option<u16>) -> Option<&Node> {
        self.nodes.get(usize::from(place?))
    }

    /// The number of slots with an owner.
    pub fn assigned(&self) -> usize {
        self.slots_of(|_| true)
    }

    /// The number of nodes that own a slot.
    pub fn size(&self) -> usize {
        self.owners.counts().iter().filter(|count| **count > 0).count()
    }

    /// Whether a node owns a slot.
    pub fn owns_slots(&self, id: NodeId) -> bool {
        self.place_of(id).is_some_and(|place| self.owners.count(place) > 0)
    }

    /// How many slots belong to nodes of which `is_meant` is true.
    pub fn slots_of(&self, is_meant: impl Fn(&Node) -> bool) -> usize {
        let counts = self.nodes.iter().zip(self.owners.counts()).filter(|(node, count)| **count > 0 && is_meant(node));
        counts.map(|(_, count)| count).sum()
    }

    /// Whether the node serves keys.
    pub fn health(&self) -> Health {
        self.health
    }

    /// Recomputes whether the node serves keys: it does while a majority of the nodes that own slots is connected and,
    /// if full coverage is required, each slot belongs to a node that has not failed. After it was in a minority, and
    /// after a start, a primary waits first, so that it can hear whether it was replaced.
    pub fn update_health(&mut self, settings: &ClusterSettings, now: Now) {
        self.serves_from = self.serves_from.filter(|moment| *moment > now);
        let size = self.size();
        let lost = |failure: &&NodeFailure| failure.is_doubted() && self.owns_slots(failure.node());
        let heard = size - self.failures.iter().filter(lost).count();
        if heard <= size / 2 {
            (self.is_in_minority, self.health) = (size > 0, Health::Fail);
            return;
        }
        if mem::take(&mut self.is_in_minority) {
            self.serve_not_before(now, settings.node_timeout_ms.clamp(SHORTEST_REJOIN_MS, LONGEST_REJOIN_MS));
        }
        let served = self.slots_of(|node| !self.has_failed(node.id));
        let is_covered = !settings.requires_full_coverage || served == usize::from(HASH_SLOTS);
        let waits = self.serves_from.is_some() && !self.myself().is_replica() && self.health == Health::Fail;
        self.health = if is_covered && !waits { Health::Ok } else { Health::Fail };
    }

    /// Records that this node has just started: its cluster may have changed meanwhile, and it has yet to find out who
    /// is disconnected.
    pub fn start(&mut self, now: Now) {
        self.failures.iter_mut().for_each(NodeFailure::forget_link);
        self.orphans.restart();
        self.postponed.clear();
        (self.sent, self.received) = Default::default();
        self.serve_not_before(now, START_MS);
        self.health = Health::Fail;
    }

    fn serve_not_before(&mut self, now: Now, wait_ms: i64) {
        self.serves_from = self.serves_from.max(Some(now.after_ms(wait_ms)));
    }

    /// Sends the others a message that Redis's nodes send with their next ping, about a second later.
    pub fn postpone(&mut self, message: Message, now: Now) {
        self.postponed.push((now.after_ms(PING_MS), message));
    }

    /// When the next message that was postponed is to be sent.
    pub fn next_postponed(&self) -> Option<Now> {
        self.postponed.iter().map(|(due, _)| *due).min()
    }

    /// The postponed messages that are due, in their order, but for nodes that were forgotten and are known again.
    pub fn take_postponed(&mut self, now: Now) -> Vec<Message> {
        let due = self.postponed.extract_if(.., |(due, _)| *due <= now).map(|(_, message)| message).collect::<Vec<_>>();
        let is_known_again =
            |message: &Message| matches!(message, Message::Forgotten { node, .. } if self.knows_other(*node));
        due.into_iter().filter(|message| !is_known_again(message)).collect()
    }

    /// When the node may serve keys again, if it has to wait for that.
    pub(super) fn serves_from(&self) -> Option<Now> {
        self.serves_from
    }

    fn highest_epoch(&self) -> u64 {
        self.nodes.iter().map(|node| node.config_epoch).max().unwrap_or(0).max(self.current_epoch)
    }

    /// Begins an epoch above all that this node has seen.
    pub fn next_epoch(&mut self) -> u64 {
        self.current_epoch = self.highest_epoch().saturating_add(1);
        self.current_epoch
    }

    /// Gives this node an epoch above all others, unless it has that already; whether it got one.
    pub fn bump_epoch(&mut self) -> bool {
        let epoch = self.myself().config_epoch;
        if epoch != 0 && epoch == self.highest_epoch() {
            return false;
        }
        self.myself_mut().config_epoch = self.next_epoch();
        true
    }

    /// How this view differs from an earlier state of it: what is to be announced, and which slots have other owners.
    pub fn changes_since(&self, before: &Before) -> Changes {
        let mut changes = Changes { claims: *self.myself() != before.myself, ..Changes::default() };
        let has_other_role = self.myself().is_replica() != before.myself.is_replica();
        changes.wants_claims = before.slot_migrations.iter().any(|(slot, migration)| {
            matches!(migration, SlotMigration::Importing(_))
                && self.slot_migration(*slot).is_none()
                && !self.owns(*slot)
        });
        changes.concerns_health = self.failures != before.failures || has_other_role;
        if before.owners.are_shared_with(&self.owners) {
            return changes;
        }
        changes.concerns_health = true;
        for (slots, place_before) in before.owners.runs() {
            let id_before = place_before.and_then(|place| before.ids.get(usize::from(place)));
            for (slots, owner) in self.ranges_within(slots) {
                let id = owner.map(|node| &node.id);
                if id_before == id {
                    continue;
                }
                changes.claims |= id_before == Some(&before.myself.id) || id == Some(&self.myself().id);
                if id_before.is_some() {
                    changes.released.extend(slots);
                }
                let is_of_other = id_before.is_some_and(|id| *id != self.myself().id && self.get(*id).is_some());
                changes.frees_slots_of_others |= is_of_other && id.is_none();
            }
        }
        changes
    }

    /// The present state, for [`View::changes_since`].
    pub fn before(&self) -> Before {
        Before {
            owners: self.owners.clone(),
            ids: self.nodes.iter().map(|node| node.id).collect(),
            myself: self.myself().clone(),
            failures: self.failures.clone(),
            slot_migrations: self.slot_migrations.clone(),
        }
    }
}

/// The part of a view that is compared with its later state.
#[derive(Clone, Debug)]
pub struct Before {
    owners: Owners,
    ids: Vec<NodeId>,
    myself: Node,
    failures: Vec<NodeFailure>,
    slot_migrations: BTreeMap<u16, SlotMigration>,
}

impl Before {
    /// Whether the node knew others.
    pub fn knows_others(&self) -> bool {
        self.ids.len() > 1
    }
}

/// How a view differs from its earlier state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Whether what the node itself claims is different.
    pub claims: bool,
    /// Whether slots have other owners, other nodes have failed, or the node has another role.
    pub concerns_health: bool,
    /// Whether it has given up importing a slot, which another node may have claimed meanwhile.
    pub wants_claims: bool,
    /// Whether slots of other nodes, which these may still claim, have no owner now.
    pub frees_slots_of_others: bool,
    /// The slots that had an owner, and have another one or none now, in their order.
    pub released: Vec<u16>,
}
