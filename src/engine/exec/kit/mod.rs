//! The test kit's stage: records, fails and checks requests, and resumes waits.
//!
//! All of it is behind one pointer ([`crate::engine::Observers::kit`]). While that is empty, the kit's stage
//! ([`super::stages`]) is not active and costs a predictable branch; it is empty until a test has used the kit.
//! Commands of the test kit itself pass untouched: they are neither recorded nor disturbed.
//!
//! Not here: the syntax of DUNLIN (`commands/dunlin`).

pub mod faults;
mod feed;
pub(in crate::engine) mod journal;
pub mod redirects;
pub mod strict;
pub mod tree;
pub mod waits;

use crate::engine::Engine;
use crate::engine::exec::gates::GateRequest;
use crate::engine::exec::stages::{Arrival, ReplyState};
use crate::engine::exec::{Flow, blocking, delivery, dispatch, gates, timing};
use crate::engine::spec::{KitError, Now};
use crate::engine::state::kit::strict::WriteEnd;
use crate::engine::state::kit::{Begun, Failure, Source};
use crate::engine::state::{Block, Effect, LateReply, SessionId, Transport};
use crate::resp::Request;

/// Disturbs a request that a rule hits, refuses one that breaks a rule of strict mode, and records all others.
#[cold]
pub(super) fn arrive(engine: &mut Engine, arrival: Arrival<'_>, out: &mut Vec<u8>) -> Option<Flow> {
    let Arrival { session, request, was_delayed } = arrival;
    if engine.table.is_of_kit(request) || engine.sessions.is_test_client(session) {
        return None;
    }
    let called_host = engine.observers.kit.as_ref().and_then(|kit| kit.called_host.get(&session)).cloned();
    let comes_again = called_host.is_some();
    if !was_delayed && !comes_again {
        redirects::arrive(engine, request);
    }
    let failure = match called_host {
        Some(failure) => failure,
        None if was_delayed => None,
        None => faults::fire(engine, session, request),
    };
    match failure {
        Some(Failure::Delay { ms }) => return Some(delay(engine, session, request, Some(ms))),
        Some(Failure::Silence) => return Some(delay(engine, session, request, None)),
        Some(Failure::DropBefore) => return Some(Flow::Close),
        Some(Failure::Error(text)) => return Some(faults::refuse_instead(engine, session, request, text, out)),
        _ => {}
    }
    if !comes_again && let Some(line) = strict::check_request(engine, session, request) {
        return Some(faults::refuse_instead(engine, session, request, line, out));
    }
    let recorded = journal::begin_entry(engine, session, request, Source::Client);
    if recorded.is_anywhere() || failure.is_some() {
        let begun = Begun { recorded, timer: timing::start_timer(engine), failure };
        engine.observers.kit().begun.insert(session, begun);
    }
    None
}

/// Notes that a key has changed, for the readers of the feed and the traces of strict mode.
#[cold]
pub(super) fn note_change(engine: &mut Engine, database: usize, key: &[u8]) {
    if let Some(kit) = &mut engine.observers.kit {
        kit.feed.changed(key);
        if let Some(strict) = &mut kit.strict {
            strict.traces.note_change(database, key);
        }
    }
}

/// Forgets a request that will run again, as a pause holds it back or it has called the host, and wakes the tests whose
/// condition holds now. One that has called the host is neither disturbed nor checked again.
pub(super) fn leave(engine: &mut Engine, session: SessionId, flow: Flow) {
    match flow {
        Flow::HeldBack(_) => _ = engine.observers.take_back_entry(session, &engine.table),
        Flow::CallHost => {
            let failure = engine.observers.take_back_entry(session, &engine.table);
            engine.observers.kit.iter_mut().for_each(|kit| _ = kit.called_host.insert(session, failure.clone()));
        }
        _ => engine.observers.forget_host_call(session),
    }
    waits::wake_waiters(engine);
}

/// A request as the gates see it, if it is well formed and they would let it pass now: it would run, or be queued.
fn would_run<'r>(engine: &Engine, session: SessionId, request: Request<'r>) -> Option<GateRequest<'r>> {
    let (id, _) = engine.table.resolve(request).ok()?;
    let asked = GateRequest::of(engine, session, id, request);
    let is_well_formed = engine.table.entry(id).command.arity.admits(request.len());
    (is_well_formed && gates::would_pass(engine, &asked)).then_some(asked)
}

/// Records the reply to a session's request, or that it is still to come, and applies the fault that the request was
/// hit by to the reply.
#[cold]
pub(super) fn complete(engine: &mut Engine, session: SessionId, state: ReplyState, out: &mut Vec<u8>) {
    let Some(kit) = &mut engine.observers.kit else { return };
    // A late reply comes while another command runs; its own was recorded when it was blocked.
    if let Some(strict) = kit.strict.as_mut().filter(|_| state != ReplyState::Late) {
        let reply = if let ReplyState::Written(start) = state { Some(&out[start..]) } else { None };
        strict.traces.end(reply.map_or(WriteEnd::Blocked, WriteEnd::of_reply));
    }
    let start = match state {
        ReplyState::Written(start) => start,
        ReplyState::Late => 0,
        ReplyState::Blocked => {
            if let (Some(begun), Some(journal)) = (kit.begun.get(&session), &mut kit.journal) {
                begun.recorded.journal.into_iter().for_each(|number| journal.waits(number));
            }
            return;
        }
    };
    let Some(begun) = kit.begun.remove(&session) else { return };
    let is_queued = engine.sessions.get(session).is_some_and(|client| client.transaction.is_some());
    if is_queued && out[start..] == *b"+QUEUED\r\n" {
        engine.observers.mark_queued(begun.recorded, &engine.table);
    }
    journal::end_entry(engine, begun.recorded, begun.timer, &out[start..]);
    engine.observers.put_kit_away();
    match begun.failure {
        Some(Failure::DropAfter) => out.truncate(start),
        Some(Failure::HalfReply) => out.truncate(start + (out.len() - start) / 2),
        Some(Failure::SplitReply) => engine.sessions.send_bytewise(session),
        _ => {}
    }
    match begun.failure {
        Some(Failure::DropAfter) if state == ReplyState::Late => delivery::drop_session(engine, session),
        Some(Failure::HalfReply) if state == ReplyState::Late => hang_up(engine, session),
        Some(failure) if failure.ends_connection() => {
            engine.sessions.get_mut(session).into_iter().for_each(|client| client.closing = true);
        }
        _ => {}
    }
}

/// Closes a session's connection when its queued pushes are sent.
fn hang_up(engine: &mut Engine, session: SessionId) {
    match engine.sessions.get_mut(session) {
        Some(client) if client.origin.transport == Transport::Direct => delivery::drop_session(engine, session),
        Some(client) => client.hangs_up = true,
        None => {}
    }
}

/// Delays a request before it runs; without a time, for ever.
fn delay(engine: &mut Engine, session: SessionId, request: Request<'_>, delay_ms: Option<i64>) -> Flow {
    let now = engine.now();
    let Ok((id, _)) = engine.table.resolve(request) else { return Flow::Next };
    let deadline_ms = delay_ms.map(|delay_ms| now.wait_end_ms(delay_ms).unwrap_or(Now::LAST_MS));
    if let Some(client) = engine.sessions.get_mut(session) {
        client.active = now;
    }
    blocking::park(engine, session, id, request, Block::until(deadline_ms, LateReply::Nothing), 0);
    engine.observers.kit().delayed.insert(session);
    Flow::Block
}

/// Runs the request of a session whose delay is over, or whose condition is to be checked again.
#[cold]
pub(super) fn run_delayed(engine: &mut Engine, session: SessionId) {
    let kit = engine.observers.kit();
    kit.delayed.remove(&session);
    kit.held_back.retain(|held_back| *held_back != session);
    let Some(wait) = blocking::leave(engine, session) else { return };
    let Some(request) = wait.request.iter().next() else { return };
    let shows_data = engine.table.entry(wait.command).command.shows_data;
    let (now, mut out) = (engine.now(), Vec::new());
    let flow = dispatch::run_full(engine, Arrival { session, request, was_delayed: true }, &mut out);
    engine.finish(now, request);
    match flow {
        Flow::Block => {}
        Flow::HeldBack(moment) => {
            delay(engine, session, request, Some((moment.unix_us - now.unix_us) / 1000 + 1));
            engine.observers.kit().held_back.push(session);
        }
        Flow::CallHost => {
            // The connection no longer has that request, so it cannot send it again.
            _ = engine.take_host_call(session);
            engine.observers.forget_host_call(session);
            let text = KitError::WorldTooLate.to_string();
            delivery::send(engine, session, format!("-{text}\r\n").into_bytes().into());
        }
        Flow::Next if shows_data => delivery::send(engine, session, out.into()),
        Flow::Next => delivery::of(engine).send_without_data(session, out.into()),
        Flow::Close => {
            delivery::send(engine, session, out.into());
            hang_up(engine, session);
        }
        Flow::Abort => engine.effects.push(Effect::Close(session)),
    }
    waits::wake_waiters(engine);
}
