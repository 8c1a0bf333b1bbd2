//! Waits of a test until a condition holds.
//!
//! The waiting command is one of the blocked commands, without keys and with its timeout. After each command of other
//! clients, when a client connects or disconnects, and when another node has said something or something was due, its
//! condition is checked; if it holds, the command is run again and replies. The host counts what the journals of all
//! nodes have, as a node sees its own journal alone.

use std::collections::BTreeSet;

use crate::engine::Engine;
use crate::engine::cluster::Health;
use crate::engine::exec::{kit, replication};
use crate::engine::spec::KitError;
use crate::engine::state::kit::{Condition, Filter, Trigger, Waiter};
use crate::engine::state::{Origin, SessionId, Topic};

/// Whether the condition holds.
pub fn holds(engine: &Engine, condition: &Condition) -> bool {
    let progress = progress(engine, condition);
    match condition {
        Condition::Blocked { count, .. }
        | Condition::Subscribers { count, .. }
        | Condition::Journal { count, .. }
        | Condition::Fired { count, .. } => progress >= *count,
        Condition::JournalOfAllNodes { count, found, .. } => found.as_ref().is_ok_and(|found| found >= count),
        Condition::Clients { count, .. } => progress == *count,
        Condition::Cluster { .. } => progress > 0,
        Condition::Agreed | Condition::Synced => progress == 0,
    }
}

/// The current count that the condition is about. In a cluster these are nodes in that state, disagreements, or
/// replicas that are behind.
pub fn progress(engine: &Engine, condition: &Condition) -> u64 {
    let count = match condition {
        Condition::Blocked { database, key, .. } => engine.observers.waiting.waiters(*database, key),
        Condition::Subscribers { channel, .. } => {
            let audience = engine.observers.subscriptions.audience(Topic::Channel, channel);
            audience.map_or(0, |audience| audience.len())
        }
        Condition::Journal { filter, .. } => {
            let journal = engine.observers.kit.as_ref().and_then(|kit| kit.journal.as_ref());
            return journal.map_or(0, |journal| journal.count(filter, &engine.table));
        }
        Condition::JournalOfAllNodes { found, .. } => return *found.as_ref().unwrap_or(&0),
        Condition::Fired { rule, .. } => {
            return trigger(engine, rule).map_or(0, |trigger| trigger.fired);
        }
        Condition::Clients { asker, .. } => {
            let is_counted = |origin: &Origin| !origin.is_test_client && !origin.is_page;
            let others = engine.sessions.iter().filter(|client| client.id != *asker && is_counted(&client.origin));
            others.count()
        }
        Condition::Cluster { is_ok } => {
            let is_node_ok = engine.peers.cluster.as_ref().map(|view| view.health() == Health::Ok);
            usize::from(is_node_ok == Some(*is_ok))
        }
        Condition::Agreed => usize::from(engine.host.disagreement().is_some()),
        Condition::Synced => replication::replicas_behind(engine),
    };
    count as u64
}

/// The state of the fault rule of that name, for commands or for the disk.
pub fn trigger(engine: &Engine, rule: &[u8]) -> Option<Trigger> {
    let rules = engine.observers.kit.as_ref().map_or(&[][..], |kit| kit.faults.rules());
    let of_commands = rules.iter().find(|known| known.name == rule).map(|known| known.trigger.clone());
    let of_disk = || Some(engine.host.disk_faults()?.find(rule)?.trigger);
    of_commands.or_else(of_disk)
}

/// Whether a wait is over: its condition holds, or never will.
fn is_over(engine: &Engine, condition: &Condition) -> bool {
    matches!(condition, Condition::JournalOfAllNodes { found: Err(_), .. }) || holds(engine, condition)
}

/// The clients that wait for the journals of all nodes of the cluster, each with the filter of the commands that count.
pub fn waits_for_all_journals(engine: &Engine) -> Vec<(SessionId, Filter)> {
    let waiters = engine.observers.kit.iter().flat_map(|kit| &kit.waiters);
    let of_all = waiters.filter_map(|waiter| match &waiter.condition {
        Condition::JournalOfAllNodes { filter, .. } => Some((waiter.session, filter.clone())),
        _ => None,
    });
    of_all.collect()
}

/// Records how many commands the journals of all nodes have that a client waits for.
pub fn note_found(engine: &mut Engine, session: SessionId, count: Result<u64, KitError>) {
    let waiters = engine.observers.kit.iter_mut().flat_map(|kit| &mut kit.waiters);
    for waiter in waiters.filter(|waiter| waiter.session == session) {
        if let Condition::JournalOfAllNodes { found, .. } = &mut waiter.condition {
            *found = count.clone();
        }
    }
}

/// Runs the delayed requests that a pause has held back, once it is over.
fn resume_held_back(engine: &mut Engine) {
    if engine.observers.kit.as_ref().is_some_and(|kit| !kit.held_back.is_empty())
        && !engine.timing.pause.holds(engine.now())
    {
        let held_back = std::mem::take(&mut engine.observers.kit().held_back);
        held_back.into_iter().for_each(|session| kit::run_delayed(engine, session));
    }
}

/// Resumes the clients whose condition holds, unless a pause would hold them back: they are resumed when that ends.
///
/// This is called again by each command that runs, also by those that are resumed. They are set aside before, so it
/// finds no more to do then than has changed.
pub fn wake_waiters(engine: &mut Engine) {
    if engine.timing.pause.holds_back(engine.now(), false).is_some() || engine.timing.pause.is_node_paused() {
        return;
    }
    resume_held_back(engine);
    engine.observers.kit.iter_mut().for_each(|kit| kit.keep_counts(&engine.table));
    let Some(kit) = engine.observers.kit.as_ref().filter(|kit| !kit.waiters.is_empty()) else { return };
    let over: BTreeSet<SessionId> =
        kit.waiters.iter().filter(|waiter| is_over(engine, &waiter.condition)).map(|waiter| waiter.session).collect();
    if over.is_empty() {
        return;
    }
    let kit = engine.observers.kit();
    let resumed: Vec<Waiter> = kit.waiters.extract_if(.., |waiter| over.contains(&waiter.session)).collect();
    let sessions: Vec<SessionId> = resumed.iter().map(|waiter| waiter.session).collect();
    kit.resumed.extend(resumed.into_iter().map(|waiter| (waiter.session, waiter)));
    sessions.into_iter().for_each(|session| kit::run_delayed(engine, session));
}
