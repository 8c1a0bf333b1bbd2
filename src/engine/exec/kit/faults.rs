//! Applies fault rules to requests. A fault fires when a request hits its rule: then its failure takes the place of the
//! command, or of its reply. Rules are removed here, too, as those for commands and those for the disk have names in
//! common.
//!
//! The replies before the one that fails are delivered. A connection whose reply was lost or cut is closed; one that
//! is silent stays silent, as a later reply would be taken for the missing one.

use crate::engine::Engine;
use crate::engine::exec::dispatch::RequestStart;
use crate::engine::exec::gates::GateRequest;
use crate::engine::exec::kit::journal;
use crate::engine::exec::{Flow, dispatch, kit, timing};
use crate::engine::spec::{CommandId, KeyFlags, ServerError};
use crate::engine::state::SessionId;
use crate::engine::state::kit::journal::{is_called, touches};
use crate::engine::state::kit::{DiskFaults, Failure, FaultEffect, is_named};
use crate::resp::{Reply, Request};

/// The failure of a request by the first rule that matches it and fires.
pub(super) fn fire(engine: &mut Engine, session: SessionId, request: Request<'_>) -> Option<Failure> {
    if engine.observers.kit.as_ref()?.faults.is_empty() {
        return None;
    }
    // A page that is open beside a test is not what the test is about.
    let client = engine.sessions.get(session).filter(|client| !client.origin.is_page)?;
    let GateRequest { id, flags, .. } = kit::would_run(engine, session, request)?;
    let command = engine.table.entry(id).command;
    let is_of_shard = command.keys.iter().any(|spec| spec.access.has(KeyFlags::NOT_KEY));
    let keys = command.keys_of(request).len().max(usize::from(is_of_shard));
    let kit = engine.observers.kit.as_mut()?;
    for rule in &mut kit.faults.rules {
        let hits = rule.command.as_ref().is_none_or(|wanted| is_called(&engine.table.entry(id).name, wanted))
            && is_named(client, rule.client.as_deref())
            && rule.key.as_ref().is_none_or(|pattern| touches(&engine.table, Some(id), request, pattern))
            && match &rule.effect {
                FaultEffect::State(state) => state.refuses(&engine.table.entry(id).name, flags, keys),
                FaultEffect::Failure(_) => true,
            };
        if hits && rule.trigger.is_due(&mut engine.generator) {
            return Some(rule.failure(flags));
        }
    }
    None
}

/// Removes the rule of that name, for commands or for the disk; returns whether there was one.
pub fn remove(engine: &mut Engine, name: &[u8]) -> bool {
    let was_there = engine.observers.kit().faults.remove(name);
    engine.observers.put_kit_away();
    was_there | engine.host.disk_faults().is_some_and(|faults| faults.remove(name))
}

/// Removes all rules, for commands and for the disk.
pub fn clear(engine: &mut Engine) {
    engine.observers.kit().faults.clear();
    engine.observers.put_kit_away();
    engine.host.disk_faults().into_iter().for_each(DiskFaults::clear);
}

/// Answers a request with an error instead of running it.
pub(super) fn refuse_instead(
    engine: &mut Engine,
    session: SessionId,
    request: Request<'_>,
    text: String,
    out: &mut Vec<u8>,
) -> Flow {
    let (now, recorded) = (engine.now(), journal::begin_entry(engine, session, request, super::Source::Client));
    let timer = timing::start_timer(engine);
    let Some(client) = engine.sessions.get_mut(session) else { return Flow::Close };
    client.active = now;
    let (request_start, protocol) = (RequestStart::of(client, out), client.protocol);
    let id: Option<CommandId> = engine.table.resolve(request).ok().map(|(id, _)| id);
    let error = dispatch::refuse_request(engine, session, id, ServerError::Injected(text).into());
    if let Some(id) = id {
        engine.stats.command_mut(id).rejected += 1;
    }
    dispatch::refuse(engine, error, &mut Reply::new(out, protocol));
    journal::end_entry(engine, recorded, timer, &out[request_start.position..]);
    dispatch::conclude(engine, session, request_start, out)
}
