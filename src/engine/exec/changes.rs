//! The consequences of a change of a key: WATCH, key tracking, key events and blocked clients are notified, and replies
//! that show it wait until it is durable.
//!
//! Invariant: every change of data passes through [`changed`] or, where only some of this applies, through one of the
//! functions beside it. So nothing that observes keys can be forgotten.

use crate::engine::Engine;
use crate::engine::exec::{access, blocking, kit, propagation, publish, tracking};
use crate::engine::spec::Event;
use crate::engine::state::Effect;

/// Reports that a key changed. Every change passes through here, so that all observers of the key are notified.
#[inline]
pub(super) fn changed(engine: &mut Engine, database: usize, event: Event, key: &[u8]) {
    touched(engine, database, key);
    announce(engine, database, event, key);
    if !engine.observers.waiting.is_empty() {
        blocking::signal_nokey(engine, database, key);
    }
}

/// Reports that a key was deleted because another node of the cluster has its slot now. No event says so, as in Redis:
/// for the clients of the cluster the key is not gone.
pub(super) fn left_with_slot(engine: &mut Engine, database: usize, key: &[u8]) {
    touched(engine, database, key);
    if !engine.observers.waiting.is_empty() {
        blocking::signal_nokey(engine, database, key);
    }
}

/// Publishes an event of a key.
#[inline]
pub(super) fn announce(engine: &mut Engine, database: usize, event: Event, key: &[u8]) {
    if engine.switches.records_key_events {
        engine.effects.push(Effect::KeyEvent { database, name: event.name, key: key.to_vec() });
    }
    publish::notify(engine, database, event, key);
}

/// Reports that the value of a key changed, to WATCH, key tracking and the append-only file.
#[inline]
pub(super) fn touched(engine: &mut Engine, database: usize, key: &[u8]) {
    if engine.effects.propagation.is_on() {
        propagation::note_change(engine, database, key);
    }
    if engine.observers.tracking.is_on() {
        tracking::invalidate(engine, key);
    }
    if engine.observers.kit.is_some() {
        kit::note_change(engine, database, key);
    }
    if engine.observers.watches.includes(database, key) {
        let presence = access::presence(engine, database, key);
        engine.observers.watches.touch(database, key, presence);
    }
}

/// Reports a new key: the clients blocked on it may go on when the command is done.
pub(super) fn arrived(engine: &mut Engine, database: usize, key: &[u8]) {
    publish::notify(engine, database, Event::NEW, key);
    if !engine.observers.waiting.is_empty() {
        blocking::signal_key_ready(engine, database, key);
    }
}
