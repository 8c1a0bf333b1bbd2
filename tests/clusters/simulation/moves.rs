//! Moves of slots in a simulation: at once, or step by step while other things happen.

use super::{KEYS, LONGEST_DELAY, Simulation};
use crate::history::Reason;

/// A slot that moves step by step, while other things happen.
pub(super) struct OpenMove {
    pub(super) key: usize,
    from: usize,
    pub(super) to: usize,
    /// Whether one of the nodes has failed or been replaced since: who takes its place does not know of the move.
    pub(super) is_disturbed: bool,
}

impl OpenMove {
    /// Whether a node is one of the two ends.
    pub(super) fn concerns(&self, node: usize) -> bool {
        self.from == node || self.to == node
    }
}

impl Simulation {
    /// Moves a slot, begins to move one step by step, or takes the next step of one that moves.
    pub(super) fn migrate_or_go_on(&mut self) {
        self.has_moved_keys = true;
        let (key, to) = (self.generator.usize(..KEYS.len()), self.any_node());
        match self.open_move.take() {
            Some(open) if open.key == key || self.generator.bool() => self.go_on_with(open),
            Some(open) => {
                self.migrate(key, to);
                self.open_move = Some(open);
            }
            None if self.generator.bool() => self.begin_move(key, to),
            None => self.migrate(key, to),
        }
    }

    fn begin_move(&mut self, key: usize, to: usize) {
        let (by, slot) = (self.any_node(), KEYS[key].1);
        let up = self.members().into_iter().filter(|node| self.is_up(*node));
        let claims = up.map(|node| (node, self.facts(node, slot)));
        let from = claims.filter(|(_, facts)| facts.owns_slot).max_by_key(|(_, facts)| facts.epoch);
        let from = from.map(|(node, _)| node);
        let outcome = self.call(by, &format!("DUNLIN MIGRATE-SLOT {slot} TO {to} BEGIN"));
        let shown = self.without_ports(&format!("{outcome:?}"));
        self.tell(&format!("begin to migrate {slot} to {to}: {shown}"));
        match (outcome, from) {
            (Ok(_), Some(from)) => self.open_move = Some(OpenMove { key, from, to, is_disturbed: false }),
            _ => self.give_up_move(key),
        }
    }

    /// Notes which writes may be lost as a node that takes part in the move of a slot has failed, or no longer has
    /// the only claim to it.
    pub(super) fn note_disturbed_move(&mut self) {
        let Some(OpenMove { key, from, to, .. }) = self.open_move else { return };
        let slot = KEYS[key].1;
        let others_claim = self.members.iter().any(|node| *node != from && self.facts(*node, slot).owns_slot);
        let are_up = self.is_up(from) && self.is_up(to);
        let are_primaries = self.facts(from, slot).owns_slot && self.facts(to, slot).primary.is_none();
        if !are_up || !are_primaries || others_claim {
            self.history.endanger("half moved", |write| write.key == key);
            self.open_move.iter_mut().for_each(|open| open.is_disturbed = true);
        }
    }

    /// Moves the key of a slot that moves, gives the slot to the node, or gives up.
    fn go_on_with(&mut self, open: OpenMove) {
        let (key, to, slot) = (open.key, open.to, KEYS[open.key].1);
        match self.generator.u8(..4) {
            0 => {
                self.tell(&format!("give up the move of {slot}"));
                self.give_up_move(key);
            }
            1 => self.migrate(key, to),
            _ => {
                let by = self.any_node();
                let outcome = self.call(by, &format!("DUNLIN MIGRATE-SLOT {slot} TO {to} KEYS 1"));
                let shown = self.without_ports(&format!("{outcome:?}"));
                self.tell(&format!("migrate the key of {slot} to {to}: {shown}"));
                if outcome.is_err() {
                    return self.give_up_move(key);
                }
                if self.copy_risk_at(to, slot).is_some() {
                    self.history.endanger("moved", |write| write.key == key);
                }
                let shard = self.facts(to, slot).shard;
                self.history.move_to(key, shard);
                self.open_move = Some(open);
            }
        }
    }

    /// Whether the slot of a key moves, or has moved without that all nodes have heard how it ended.
    pub(super) fn is_moving(&self, key: usize) -> bool {
        let is_open = self.open_move.as_ref().is_some_and(|open| open.key == key);
        is_open || self.given_up.contains(&key) || self.moved_unheard.contains(&key)
    }

    /// Gives up the move of a slot: its key may be where nobody looks for it.
    pub(super) fn give_up_move(&mut self, key: usize) {
        self.history.endanger("half moved", |write| write.key == key);
        self.given_up.insert(key);
        self.close_slot(key);
    }

    /// Stops the moves of slots at all nodes.
    pub(super) fn close_slot(&mut self, key: usize) {
        for node in self.members() {
            // Replicas and nodes that are down refuse it.
            _ = self.call(node, &format!("CLUSTER SETSLOT {} STABLE", KEYS[key].1));
        }
    }

    pub(super) fn migrate(&mut self, key: usize, to: usize) {
        let slot = KEYS[key].1;
        if self.has_slow_links {
            // Who moves a slot again before all have heard of it has nodes of Redis disagree for good, too: what is
            // still on its way claims a slot that its sender has given away since.
            self.server.advance(LONGEST_DELAY);
        }
        let outcome = self.server.migrate_slot(slot, to);
        let shown = self.without_ports(&format!("{outcome:?}"));
        self.tell(&format!("migrate {slot} to {to}: {shown}"));
        if outcome.is_ok() {
            self.given_up.remove(&key);
            if let Some(reason) = self.risk_at(to, slot) {
                self.history.endanger(if reason == "stale" { reason } else { "moved" }, |write| write.key == key);
            }
            self.moved_unheard.insert(key);
            if let Some(reason) = self.unheard_risk(key, to) {
                self.history.endanger(reason, |write| write.key == key);
            }
            let shard = self.facts(to, slot).shard;
            self.history.move_to(key, shard);
        } else {
            self.give_up_move(key);
        }
        self.note_unvoted_epoch(to);
    }

    /// Why a write to a key whose slot has moved to `owner` may be lost, if it may: a node that has not heard of the
    /// move may take the slot with those of its primary, but not the keys.
    pub(super) fn unheard_risk(&mut self, key: usize, owner: usize) -> Option<Reason> {
        if self.moved_unheard.contains(&key) && self.all_know_owner(owner, KEYS[key].1) {
            self.moved_unheard.remove(&key);
        }
        self.moved_unheard.contains(&key).then_some("moved unheard")
    }

    /// Whether a node owns a slot as all nodes see it.
    fn all_know_owner(&self, owner: usize, slot: u16) -> bool {
        let id = self.facts(owner, slot).id;
        self.members.iter().all(|node| {
            self.nodes[*node].with_engine(|engine| {
                let view = engine.peers.cluster.as_ref().expect("it is a node");
                view.owner(slot).is_some_and(|known| known.id == id)
            })
        })
    }
}
