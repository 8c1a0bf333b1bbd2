//! The fast path: when no feature is active that concerns more than the data, a data command is looked up, run and
//! counted, and skips the gates.
//!
//! Nearly always there are no monitors, test kit, key tracking, pause, memory limit, restricted users, and the client
//! is in no transaction and subscribed to nothing. Then every gate lets a data command pass, and nothing has to happen
//! after it ([`super::dispatch`]). So the engine checks this in one place instead of one gate after the other, and
//! once for a batch: the result holds while only such commands run and leave no effect, as nobody else has the engine
//! meanwhile. In a cluster each command is checked, too: its one key must be in a slot that this node owns. Debug
//! builds check all again for each command, and also ask the gates themselves.
//!
//! The fast path skips only steps that would be no-ops, and adds none: it calls what [`super::dispatch`] calls, and
//! goes over to it as soon as a command leaves more than its reply.
//!
//! Invariant: [`is_fast_path_open`] asks each gate and each stage whether it is active, from their own lists,
//! and [`dispatch::needs_no_conclusion`] checks what the end of a request checks about the client.
//!
//! Costs: about 130 instructions for the first request of a batch, three for each further one.

use crate::engine::Engine;
use crate::engine::exec::dispatch::RequestStart;
#[cfg(debug_assertions)]
use crate::engine::exec::gates::GateRequest;
use crate::engine::exec::stages::{Call, Caller, Ending};
use crate::engine::exec::{Flow, cluster, dispatch, gates, stages, timing};
use crate::engine::spec::{CommandId, Now};
use crate::engine::state::SessionId;
use crate::engine::state::fast_path::FastPath;
use crate::resp::{Reply, ReplyBuffer, Request};

/// The most bytes of the request and of the reply of a brief command.
const BRIEF_BYTES: usize = 1 << 10;

/// A command that may take the fast path.
#[derive(Clone, Copy, Debug)]
pub(super) struct FastCommand {
    id: CommandId,
    /// Whether it may be timed together with others, unless its reply is long.
    is_brief: bool,
}

/// The command that a request names, if it may take the fast path now.
#[inline]
pub(super) fn command_for_fast_path(
    engine: &mut Engine,
    session: SessionId,
    request: Request<'_>,
) -> Option<FastCommand> {
    let is_known = engine.observers.fast_path == FastPath::For(session);
    debug_assert!(!is_known || is_fast_path_open(engine, session), "a command of the fast path does not close it");
    if !is_known && !is_fast_path_open(engine, session) {
        return None;
    }
    let found = eligible_command(engine, request);
    match found {
        Some(_) if engine.observers.fast_path == FastPath::Unknown => {
            engine.observers.fast_path = FastPath::For(session)
        }
        Some(_) => {}
        None => engine.observers.fast_path.forget(),
    }
    found
}

/// The command or subcommand that a request names, if it may take the fast path when that is open.
#[inline]
fn eligible_command(engine: &Engine, request: Request<'_>) -> Option<FastCommand> {
    let mut id = engine.table.find(request.get(0).unwrap_or_default())?;
    if !engine.table.entry(id).may_run_fast {
        id = engine.table.find_subcommand(id, request.get(1)?)?;
    }
    let entry = engine.table.entry(id);
    let is_wanted =
        entry.may_run_fast && entry.command.arity.admits(request.len()) && cluster::owns_keys(engine, entry, request);
    is_wanted.then(|| FastCommand { id, is_brief: entry.is_brief && is_brief(engine, request) })
}

/// Runs a command on the fast path, which is open for the session.
#[inline]
pub(super) fn run_fast(
    engine: &mut Engine,
    now: Now,
    session: SessionId,
    FastCommand { id, is_brief }: FastCommand,
    request: Request<'_>,
    output: &mut ReplyBuffer,
) -> Flow {
    let now = if is_brief { now } else { timing::catch_up(engine, now) };
    engine.at(now);
    #[cfg(debug_assertions)]
    gates::assert_gates_pass(
        engine,
        &GateRequest { session, id, flags: engine.table.entry(id).command.flags, request },
    );
    let Some(client) = engine.sessions.get_mut(session) else { return Flow::Close };
    client.active = now;
    let (request_start, protocol) = (RequestStart::of(client, output.written()), client.protocol);
    dispatch::begin(engine, session, id);
    let name_words = 1 + usize::from(engine.table.entry(id).is_subcommand);
    let call = Call::new(session, (id, name_words), request, Caller::Client);
    let ending = stages::execute(engine, &call, Reply::zero_copy(output, protocol));
    if matches!(ending, Ending::Answered) && engine.effects.is_empty() && !engine.observers.waiting.is_anything_ready()
    {
        #[cfg(debug_assertions)]
        dispatch::assert_nothing_to_conclude(engine, session, request_start, output.written_mut());
        if is_brief && output.written().len() - request_start.position <= BRIEF_BYTES {
            timing::defer(engine, id);
        }
        return Flow::Next;
    }
    engine.observers.fast_path.forget();
    dispatch::end_command(engine, &call, ending, request_start, output.flatten(request_start.position))
}

/// Whether the request of a brief command may be timed together with others, as far as is known before it has run. The
/// first of a batch is timed by itself, as it may be the only one, unless it is a direct call.
#[inline]
pub(in crate::engine) fn is_brief(engine: &Engine, request: Request<'_>) -> bool {
    (matches!(engine.observers.fast_path, FastPath::For(_)) || engine.timing.sampling.is_on)
        && request.is_shorter_than(BRIEF_BYTES)
        && engine.settings.may_defer()
}

/// Whether no gate and no stage is active for a session, and its replies go out as they are written.
fn is_fast_path_open(engine: &Engine, session: SessionId) -> bool {
    engine.sessions.get(session).is_some_and(|client| {
        gates::are_gates_open(engine, client)
            && stages::are_stages_idle(engine)
            && dispatch::needs_no_conclusion(engine, client)
    })
}
