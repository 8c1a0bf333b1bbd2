//! The test kit at work: requests are recorded, disturbed, checked by strict mode, and waited for.
//!
//! All of it is behind one pointer ([`crate::engine::Observers::kit`]). While that is empty a command pays for two
//! predictable branches; the kit runs only after a test has used it. Commands of the test kit itself pass untouched:
//! they are neither recorded nor disturbed.
//!
//! Not here: the syntax of DUNLIN (`commands/dunlin`).

pub(in crate::engine) mod faults;
pub(in crate::engine) mod journal;
pub mod strict;
pub mod waits;

use crate::engine::Engine;
use crate::engine::exec::{Flow, blocking, delivery, dispatch, measure};
use crate::engine::spec::{CommandId, Flags, KitError, Now};
use crate::engine::state::kit::{Begun, Failure, Source};
use crate::engine::state::{Block, Effect, SessionId, Transport};
use crate::resp::Request;

/// Runs a request while there is a kit.
#[cold]
pub(super) fn run_instrumented(
    engine: &mut Engine,
    now: Now,
    session: SessionId,
    request: Request<'_>,
    out: &mut Vec<u8>,
) -> Flow {
    let flow = if engine.table.is_of_kit(request) || engine.sessions.is_test_client(session) {
        dispatch::run_full(engine, now, session, request, out)
    } else {
        match faults::fire(engine, now, session, request) {
            Some(Failure::Delay { ms }) => delay(engine, now, session, request, Some(ms)),
            Some(Failure::Silence) => delay(engine, now, session, request, None),
            Some(Failure::DropBefore) => Flow::Close,
            Some(Failure::Error(text)) => faults::refuse_instead(engine, now, session, request, text, out),
            failure => run_noted(engine, now, session, request, failure, out),
        }
    };
    waits::wake_waiters(engine);
    flow
}

/// Whether a request passes the first checks: its client may send it now, the settings allow it, and it is well
/// formed.
fn comes_to_gates(engine: &Engine, now: Now, session: SessionId, id: CommandId, request: Request<'_>) -> bool {
    let command = engine.table.entry(id).command;
    let Some(client) = engine.sessions.get(session) else { return false };
    let is_stranger = !client.authenticated && engine.acl.users.must_log_in();
    let writes = command.flags.has(Flags::WRITE) || command.flags.has(Flags::MAY_REPLICATE);
    let is_paused = engine.timing.pause.holds_back(now, writes).is_some();
    let is_enabled = engine.settings.check_enabled(client, command.flags).is_ok();
    !is_stranger && !is_paused && is_enabled && command.arity.admits(request.len())
}

/// Runs a request and records its result; `failure` is the fault that its reply suffers.
fn run_noted(
    engine: &mut Engine,
    now: Now,
    session: SessionId,
    request: Request<'_>,
    failure: Option<Failure>,
    out: &mut Vec<u8>,
) -> Flow {
    engine.at(now);
    if let Some(line) = strict::check_request(engine, now, session, request) {
        return faults::refuse_instead(engine, now, session, request, line, out);
    }
    let ends = failure.as_ref().is_some_and(Failure::ends_connection);
    let number = journal::begin_entry(engine, session, request, Source::Client);
    let begun = Begun { number, timer: measure::start_timer(engine), failure };
    engine.observers.kit().begun.insert(session, begun);
    let flow = dispatch::run_full(engine, now, session, request, out);
    match flow {
        // The request runs again later: a pause holds it back, or it has called the host.
        Flow::Wait(_) | Flow::CallHost => engine.observers.unbegin(session),
        Flow::Next if ends => return Flow::Close,
        _ => {}
    }
    flow
}

/// Records the reply of a session's request, in `out` from `start` on, or that it is still to come.
#[cold]
pub(super) fn note_reply(engine: &mut Engine, session: SessionId, start: usize, is_blocked: bool, out: &mut Vec<u8>) {
    let is_queued = engine.sessions.get(session).is_some_and(|client| client.transaction.is_some());
    let Some(kit) = &mut engine.observers.kit else { return };
    if is_blocked {
        if let (Some(begun), Some(journal)) = (kit.begun.get(&session), &mut kit.journal) {
            begun.number.into_iter().for_each(|number| journal.waits(number));
        }
        return;
    }
    let Some(begun) = kit.begun.remove(&session) else { return };
    journal::end_entry(engine, begun.number, begun.timer, &out[start..]);
    if is_queued && out[start..] == *b"+QUEUED\r\n" {
        engine.observers.mark_queued(begun.number);
    }
    match begun.failure {
        Some(Failure::DropAfter) => out.truncate(start),
        Some(Failure::HalfReply) => out.truncate(start + (out.len() - start) / 2),
        Some(Failure::SplitReply) => engine.sessions.split(session),
        _ => {}
    }
}

/// Records the reply of a request that was blocked. False when a fault suppresses the reply.
#[cold]
pub(super) fn note_late_reply(engine: &mut Engine, session: SessionId, out: &mut Vec<u8>) -> bool {
    let Some(begun) = engine.observers.kit.as_mut().and_then(|kit| kit.begun.remove(&session)) else { return true };
    journal::end_entry(engine, begun.number, begun.timer, out);
    match begun.failure {
        Some(Failure::DropAfter) => {
            delivery::drop_session(engine, session);
            return false;
        }
        Some(Failure::HalfReply) => {
            out.truncate(out.len() / 2);
            hang_up(engine, session);
        }
        Some(Failure::SplitReply) => engine.sessions.split(session),
        _ => {}
    }
    true
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
fn delay(engine: &mut Engine, now: Now, session: SessionId, request: Request<'_>, delay_ms: Option<i64>) -> Flow {
    engine.at(now);
    let Ok((id, _)) = engine.table.resolve(request) else { return Flow::Next };
    let deadline_ms = delay_ms.map(|delay_ms| now.wait_end_ms(delay_ms).unwrap_or(Now::LAST_MS));
    if let Some(client) = engine.sessions.get_mut(session) {
        client.active = now;
    }
    blocking::park(engine, session, id, request, Block::until(deadline_ms, |_| {}), 0);
    engine.observers.kit().delayed.insert(session);
    Flow::Block
}

/// Runs the request of a session whose delay is over, or whose condition is to be checked again.
#[cold]
pub(super) fn run_delayed(engine: &mut Engine, session: SessionId) {
    engine.observers.kit().delayed.remove(&session);
    let Some(wait) = engine.observers.waiting.leave(session) else { return };
    let Some(request) = wait.request.iter().next() else { return };
    let (now, mut out) = (engine.now(), Vec::new());
    let flow = if engine.table.is_of_kit(request) {
        dispatch::run_full(engine, now, session, request, &mut out)
    } else {
        run_noted(engine, now, session, request, None, &mut out)
    };
    engine.finish(now, request);
    match flow {
        Flow::Block => {}
        Flow::Wait(moment) => _ = delay(engine, now, session, request, Some((moment.unix_us - now.unix_us) / 1000 + 1)),
        Flow::CallHost => {
            // The connection no longer has that request, so it cannot send it again.
            _ = engine.take_host_call(session);
            let text = KitError::WorldTooLate.to_string();
            delivery::send(engine, session, format!("-{text}\r\n").into_bytes().into());
        }
        Flow::Next => delivery::send(engine, session, out.into()),
        Flow::Close => {
            delivery::send(engine, session, out.into());
            hang_up(engine, session);
        }
        Flow::Abort => engine.effects.push(Effect::Close(session)),
    }
    waits::wake_waiters(engine);
}
