//! DEBUG SLEEP at a node of a cluster: the node sleeps, and the others do not.
//!
//! A server by itself makes its thread wait ([`super::timing::stall`]). The nodes of a process share threads, so one of
//! them is paused instead until its sleep ends: the client that has sent the request waits for its reply, the others
//! for their requests to run. The host keeps what this node and the others send to each other meanwhile.

use crate::engine::Engine;
use crate::engine::exec::blocking;
use crate::engine::spec::Now;
use crate::engine::state::{Effect, SessionId, Sleep};

/// Puts this node to sleep once the running request has ended, or prolongs the sleep that it has begun.
pub(super) fn begin(engine: &mut Engine, sleeper: SessionId, length_us: u64) {
    let from = ends(engine).unwrap_or(engine.timing.now);
    let until = Now::from_us(from.unix_us.saturating_add_unsigned(length_us));
    engine.timing.stalled_us = engine.timing.stalled_us.saturating_add(length_us);
    engine.peers.sleep = Some(Box::new(Sleep { until, sleeper, reply: None }));
    blocking::set_node_paused(engine, true);
    // What the request has sent so far leaves with the rest of it.
    engine.effects.push_first(Effect::Sleep);
}

/// When the sleep of this node ends, if it sleeps.
pub fn ends(engine: &Engine) -> Option<Now> {
    engine.peers.sleep.as_ref().map(|sleep| sleep.until)
}

/// Whether a session waits for the reply to the request that has begun the sleep.
#[inline]
pub(super) fn is_sleeper(engine: &Engine, session: SessionId) -> bool {
    engine.peers.sleep.as_ref().is_some_and(|sleep| sleep.sleeper == session)
}

/// Takes the reply to the request that has begun the sleep, until that ends.
pub(super) fn keep_reply(engine: &mut Engine, reply: Vec<u8>) {
    if let Some(sleep) = &mut engine.peers.sleep {
        sleep.reply = Some(reply);
    }
}

/// Ends the sleep of this node: answers the request that has begun it, and runs those that came meanwhile.
pub fn end(engine: &mut Engine) {
    let Some(sleep) = engine.peers.sleep.take() else { return };
    blocking::set_node_paused(engine, false);
    if let Some(reply) = sleep.reply {
        blocking::answer(engine, sleep.sleeper, engine.sessions.frames_of(sleep.sleeper), reply);
    }
}

/// Ends the sleep of this node without any answers, as its process has ended.
pub fn forget(engine: &mut Engine) {
    engine.peers.sleep = None;
    blocking::set_node_paused(engine, false);
}
