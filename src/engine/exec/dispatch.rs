//! From a request to its reply: finds the command, asks the gates ([`super::gates`]) or queues it for EXEC, runs it
//! with its stages ([`super::stages`]), and puts its reply and the client's pushes in order.
//!
//! Source for the order of errors: the behavior of Redis 8.0, asked with requests that fail at two gates at once.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::exec::gates::GateRequest;
use crate::engine::exec::scripts::run;
use crate::engine::exec::stages::{Arrival, Call, Caller, Ending, ReplyState};
use crate::engine::exec::{acl, blocking, fast_path, gates, host_call, monitor, sleep, stages, timing, tracking};
use crate::engine::spec::{CommandId, Error, Flags, Now};
use crate::engine::state::error_counts::MAX_CODES;
use crate::engine::state::timing::RunningCommand;
use crate::engine::state::{Effect, LogLevel, Session, SessionId};
use crate::resp::{ProtocolError, Reply, ReplyBuffer, Request};

/// The action of the connection after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Goes on with the next request.
    Next,
    /// Sends what is written and ends.
    Close,
    /// Ends at once. Replies that were not sent yet are lost.
    Abort,
    /// Keeps this request and runs it again at that moment, or when [`crate::engine::Effect::Resume`] comes.
    HeldBack(Now),
    /// Keeps this request, has the session's host call answered ([`Engine::take_host_call`]), and runs it again, in
    /// whichever world the session is by then.
    CallHost,
    /// Runs no further request until the session's command has been answered: its reply comes as a push
    /// ([`crate::engine::PushQueue`]).
    Block,
}

impl Engine {
    /// Runs one request of a session and appends its reply to `out`.
    pub fn run(&mut self, now: Now, session: SessionId, request: Request<'_>, out: &mut Vec<u8>) -> Flow {
        let mut output = ReplyBuffer::from(std::mem::take(out));
        let flow = self.run_zero_copy(now, session, request, &mut output);
        *out = output.into_bytes();
        flow
    }

    /// Like [`Engine::run`], but large strings go to `output` without a copy where nothing else reads the reply.
    pub fn run_zero_copy(
        &mut self,
        now: Now,
        session: SessionId,
        request: Request<'_>,
        output: &mut ReplyBuffer,
    ) -> Flow {
        if let Some(fast) = fast_path::command_for_fast_path(self, session, request) {
            return fast_path::run_fast(self, now, session, fast, request, output);
        }
        if !timing::may_queue_untimed(self, session) {
            let now = timing::catch_up(self, now);
            self.at(now);
        }
        run_full(self, Arrival { session, request, was_delayed: false }, output.written_mut())
    }

    /// Replies to bytes that are no request, unless the session wants no replies. The connection ends after it.
    pub fn reject(&mut self, session: SessionId, fault: ProtocolError, out: &mut Vec<u8>) {
        count_error(self, "ERR");
        if self.sessions.wants_reply(session) {
            out.extend_from_slice(b"-ERR ");
            out.extend_from_slice(&fault.text());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Runs a request with all gates and stages.
pub(super) fn run_full(engine: &mut Engine, arrival: Arrival<'_>, out: &mut Vec<u8>) -> Flow {
    if blocking::is_held_by_node(engine, arrival.session) {
        return Flow::HeldBack(Now::from_us(i64::MAX));
    }
    if engine.sessions.is_page(arrival.session) {
        engine.stats.begin_uncounted();
    }
    let flow = stages::arrive(engine, arrival, out);
    let flow = flow.unwrap_or_else(|| run_arrived(engine, arrival.session, arrival.request, out));
    engine.stats.end_uncounted();
    stages::leave(engine, arrival.session, flow);
    flow
}

/// Runs a request that no stage has dealt with when it arrived.
fn run_arrived(engine: &mut Engine, session: SessionId, request: Request<'_>, out: &mut Vec<u8>) -> Flow {
    let now = engine.now();
    let Some(client) = engine.sessions.get_mut(session) else { return Flow::Close };
    if client.cut_off {
        return Flow::Abort;
    }
    (client.active, client.hold_number) = (now, None);
    let (mut request_start, protocol) = (RequestStart::of(client, out), client.protocol);
    engine.observers.tracking.begin_request(session);
    let admitted = admit(engine, session, request);
    timing::after_gates(engine, matches!(admitted, Ok(Admitted::Queued)));
    if engine.observers.tracking.is_on() {
        request_start.put_pushes_first(engine, session, out);
    }
    match admitted {
        Ok(Admitted::HeldBack(moment)) => {
            engine.observers.tracking.end_request();
            blocking::hold_back(engine, session);
            return Flow::HeldBack(moment);
        }
        Ok(Admitted::Queued) => Reply::new(out, protocol).simple("QUEUED"),
        Ok(Admitted::Now(found)) => {
            begin(engine, session, found.0);
            let mut call = Call::new(session, found, request, Caller::Client);
            if let Err(error) = stages::begin_stages(engine, &mut call) {
                refuse(engine, error, &mut Reply::new(out, protocol));
                return end_request(engine, session, request_start, out);
            }
            request_start.put_pushes_first(engine, session, out);
            let reply = engine.sessions.reply_to(session, out);
            let ending = stages::run_call(engine, &mut call, reply);
            return end_command(engine, &call, ending, request_start, out);
        }
        Err(Error::UnknownCommand { .. }) if speaks_http(request) => return Flow::Abort,
        Err(error) => {
            refuse(engine, error, &mut Reply::new(out, protocol));
            show_refused(engine, session, request);
        }
    }
    end_request(engine, session, request_start, out)
}

/// Finishes a command that has run: orders pushes and reply, parks it if it waits, and ends the stages.
pub(super) fn end_command(
    engine: &mut Engine,
    call: &Call<'_>,
    ending: Ending,
    mut request_start: RequestStart,
    out: &mut Vec<u8>,
) -> Flow {
    let session = call.session;
    if std::mem::take(&mut engine.observers.tracking.is_reply_last) {
        request_start.move_reply_last(engine, session, out);
    }
    match ending {
        Ending::Answered => {}
        Ending::Blocked(block) => blocking::park(engine, session, call.id, call.request, *block, 0),
        Ending::Suspended => run::stash_partial_reply(engine, out, request_start.position),
        Ending::CallsHost => return suspend_for_host(engine),
    }
    stages::end_stages(engine, call);
    end_request(engine, session, request_start, out)
}

/// Ends a request that is answered, or waits.
fn end_request(engine: &mut Engine, session: SessionId, request_start: RequestStart, out: &mut Vec<u8>) -> Flow {
    tracking::end_exception(engine, session);
    engine.observers.tracking.end_request();
    engine.stats.end_uncounted();
    host_call::drop_answer(engine, session);
    if engine.observers.waiting.is_anything_ready() {
        engine.unblock_ready();
    }
    conclude(engine, session, request_start, out)
}

/// Ends a request that has called the host, without counting it: it runs again with the result.
#[cold]
fn suspend_for_host(engine: &mut Engine) -> Flow {
    engine.timing.running = None;
    engine.observers.tracking.end_request();
    Flow::CallHost
}

/// Shows a refused request to monitors if it ends a transaction, as its beginning was shown.
fn show_refused(engine: &mut Engine, session: SessionId, request: Request<'_>) {
    if let Ok((id, _)) = engine.table.resolve(request)
        && engine.table.entry(id).command.flags.has(Flags::RUNS_QUEUE)
    {
        monitor::show(engine, session, id, request);
    }
}

/// Runs a request that a transaction queued.
pub(super) fn run_within(
    engine: &mut Engine,
    session: SessionId,
    request: Request<'_>,
    mut reply: Reply<'_>,
) -> Ending {
    let Some(client) = engine.sessions.get(session) else { return Ending::Answered };
    let mut ending = Ending::Answered;
    let (start, wanted_reply) = (reply.position(), client.wants_reply());
    reply.set_protocol(client.protocol);
    match engine.table.resolve(request) {
        Ok((id, _)) if let Err(error) = acl::recheck_rights(engine, session, id, request) => {
            refuse(engine, error, &mut reply)
        }
        Ok(found) => {
            let mut call = Call::new(session, found, request, Caller::Transaction);
            match stages::begin_stages(engine, &mut call) {
                Ok(()) => {
                    ending = stages::run_call(engine, &mut call, reply.reborrow());
                    debug_assert!(!matches!(ending, Ending::Blocked(_)), "a command within another does not wait");
                    stages::end_stages(engine, &call);
                }
                Err(error) => refuse(engine, error, &mut reply),
            }
        }
        Err(error) => refuse(engine, error, &mut reply),
    }
    if !wanted_reply && !engine.sessions.wants_reply(session) {
        reply.rewind(start);
    }
    ending
}

/// Counts an error by the code that its line starts with.
pub(super) fn count_error(engine: &mut Engine, line: &str) {
    count_errors(engine, line, 1);
}

/// Counts errors of that line, and logs that there are too many codes when that is found out.
pub(super) fn count_errors(engine: &mut Engine, line: &str, times: u64) {
    if let Err(codes) = engine.stats.count_errors(line, times) {
        engine.stats.freed_lazily += MAX_CODES as u64;
        let limit = format!("the number of errors reached the limit ({MAX_CODES})");
        for line in [
            format!("Errorstats stopped adding new errors because {limit}."),
            format!("Current errors code list: ({codes})"),
        ] {
            engine.effects.push(Effect::Log(LogLevel::Warning, line));
        }
    }
}

/// Finds the command and asks the gates. Within a transaction, a refusal flags it, and a command that passes is
/// queued.
pub(super) fn admit(engine: &mut Engine, session: SessionId, request: Request<'_>) -> Result<Admitted, Error> {
    let (id, words) = match engine.table.resolve(request) {
        Ok(found) => found,
        Err(error) => return Err(refuse_request(engine, session, None, error)),
    };
    let command = engine.table.entry(id).command;
    let asked = GateRequest::of(engine, session, id, request);
    let passed = if !command.arity.admits(request.len()) {
        Err(Error::WrongArity(engine.table.entry(id).name.clone()))
    } else if host_call::has_entered_by(engine, session, id) {
        Ok(None)
    } else {
        gates::pass_gates(engine, &asked)
    };
    match passed {
        Ok(Some(moment)) => {
            engine.sessions.set_last_command(session, Some(id));
            Ok(Admitted::HeldBack(moment))
        }
        Ok(None) if queue(engine, session, id, asked.flags, request) => Ok(Admitted::Queued),
        Ok(None) => Ok(Admitted::Now((id, words))),
        Err(error) => {
            engine.stats.command_mut(id).rejected += 1;
            Err(refuse_request(engine, session, Some(id), error))
        }
    }
}

/// Queues a request if the session has begun a transaction and the command may be queued; returns whether it is part of
/// the transaction. The words are not stored if the transaction will not run.
fn queue(engine: &mut Engine, session: SessionId, id: CommandId, flags: Flags, request: Request<'_>) -> bool {
    let Some(client) = engine.sessions.get_mut(session) else { return false };
    let Some(transaction) = client.transaction.as_mut().filter(|_| !flags.has(Flags::UNQUEUED)) else {
        return false;
    };
    if !transaction.is_faulty && !engine.observers.watches.is_known_broken(session) {
        Arc::make_mut(transaction).queue(request, flags);
    }
    client.last_command = Some(id);
    true
}

/// Handles the refusal of a request: a transaction that the session has begun can only be discarded now, and is
/// discarded if the request was EXEC. Returns the error for the client.
pub(super) fn refuse_request(
    engine: &mut Engine,
    session: SessionId,
    command: Option<CommandId>,
    error: Error,
) -> Error {
    engine.sessions.set_last_command(session, command);
    if command.is_some_and(|id| engine.table.entry(id).command.flags.has(Flags::RUNS_QUEUE)) {
        discard_transaction(engine, session);
        return abort_error(error);
    }
    let client = engine.sessions.get_mut(session);
    if let Some(transaction) = client.and_then(|client| client.transaction.as_mut()) {
        Arc::make_mut(transaction).is_faulty = true;
    }
    error
}

fn discard_transaction(engine: &mut Engine, session: SessionId) {
    if let Some(client) = engine.sessions.get_mut(session) {
        client.transaction = None;
        client.watched_bytes = 0;
        engine.observers.watches.unwatch(session);
    }
}

/// The error of an EXEC that was refused: EXECABORT with the reason, or a redirect as it is, since the client is to
/// repeat the transaction there.
fn abort_error(reason: Error) -> Error {
    if let Error::Cluster(_) = reason {
        return reason;
    }
    let text = reason.to_string();
    Error::TransactionRefused(text.strip_prefix("ERR ").unwrap_or(&text).to_owned())
}

/// Notes which command a session runs now, and when it began.
#[inline]
pub(super) fn begin(engine: &mut Engine, session: SessionId, id: CommandId) {
    let (started, stalled_us) = (engine.timing.now, engine.timing.stalled_us);
    let mut running =
        RunningCommand { session, command: id, started, next_starts: started, stalled_us, is_counted: true };
    if let Some(client) = engine.sessions.get_mut(session) {
        client.commands += 1;
        client.last_command = Some(id);
        running.is_counted = !client.origin.is_page;
    }
    engine.timing.running = Some(running);
}

/// Counts a command after it has run: so INFO does not count itself, and CONFIG RESETSTAT is the first command that
/// counts again.
#[inline]
pub(super) fn count(engine: &mut Engine, id: CommandId, failed: bool) {
    engine.stats.commands += 1;
    let command = engine.stats.command_mut(id);
    command.calls += 1;
    command.failed += u64::from(failed);
}

/// Counts an error, and replies with it.
pub(super) fn refuse(engine: &mut Engine, error: Error, reply: &mut Reply<'_>) {
    let line = error.to_string();
    if !matches!(error, Error::ScriptFailed { is_counted: true, .. }) {
        count_error(engine, &line);
    }
    reply.error(&line);
}

/// Takes back the reply of a command whose client wants none, and orders reply and pushes: earlier pushes come
/// before the reply, all others behind it. Returns how the connection goes on.
pub(super) fn conclude(
    engine: &mut Engine,
    session: SessionId,
    request_start: RequestStart,
    out: &mut Vec<u8>,
) -> Flow {
    let RequestStart { position: start, frames_before, wanted_reply } = request_start;
    let is_blocked = engine.is_blocked(session);
    let state = if is_blocked { ReplyState::Blocked } else { ReplyState::Written(start) };
    stages::reply(engine, session, state, out);
    if sleep::is_sleeper(engine, session) && !engine.scripts.is_busy() {
        sleep::keep_reply(engine, out.split_off(start));
    }
    let Some(client) = engine.sessions.get_mut(session) else { return Flow::Close };
    if !wanted_reply && !client.wants_reply() {
        out.truncate(start);
    }
    if !is_blocked {
        client.has_replied();
    }
    if frames_before > 0 && out.len() > start {
        // The client has not been able to read those yet, so the reply waits with them.
        client.push_queue.insert(frames_before, out[start..].into());
        out.truncate(start);
    }
    if (frames_before == 0 || client.closing) && !client.push_queue.is_empty() {
        client.push_queue.take(out, usize::MAX);
    }
    let (mut is_cut_off, is_closing) = (client.cut_off, client.closing);
    if engine.settings.output_limits.concern(client) {
        engine.check_output_limit(session, out.len());
        is_cut_off = engine.sessions.get(session).is_some_and(|client| client.cut_off);
    }
    match (is_cut_off, is_closing, is_blocked) {
        (true, ..) => Flow::Abort,
        (_, true, _) => Flow::Close,
        (.., true) => Flow::Block,
        _ => Flow::Next,
    }
}

/// Whether [`conclude`] does nothing for a client whose command has replied and left no effect: all its
/// replies are wanted, no pushes wait, it goes on, and its output has no limit.
pub(super) fn needs_no_conclusion(engine: &Engine, client: &Session) -> bool {
    let is_apart = client.transaction.is_none() && client.subscribed.is_empty() && client.hold_number.is_none();
    let goes_on = !client.closing && !client.cut_off;
    let reads_all = client.wants_reply() && !client.skips_next && client.push_queue.is_empty();
    is_apart && goes_on && reads_all && !engine.settings.output_limits.concern(client)
}

/// Concludes a command of the fast path, and panics if that does anything.
#[cfg(debug_assertions)]
pub(super) fn assert_nothing_to_conclude(
    engine: &mut Engine,
    session: SessionId,
    request_start: RequestStart,
    out: &mut Vec<u8>,
) {
    // A server runs no request of a blocked client; tests of the engine do.
    let expected = if engine.is_blocked(session) { Flow::Block } else { Flow::Next };
    let length = out.len();
    let flow = conclude(engine, session, request_start, out);
    assert!(flow == expected && out.len() == length, "the fast path skips a conclusion: {flow:?}");
}

/// The state of a session when its request began.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestStart {
    /// Where the reply starts in the buffer.
    pub(super) position: usize,
    /// The number of pushed frames before it that the client has not read.
    pub(super) frames_before: usize,
    /// Whether the client wanted a reply.
    pub(super) wanted_reply: bool,
}

impl RequestStart {
    /// The state of a client whose reply is to be at the end of `out`.
    pub(super) fn of(client: &Session, out: &[u8]) -> RequestStart {
        RequestStart {
            position: out.len(),
            frames_before: client.push_queue.frames(),
            wanted_reply: client.wants_reply(),
        }
    }

    /// Puts pushes that came before the command runs in front of its reply, unless the client has not read earlier ones
    /// either: then the reply goes to the end of the queue, too.
    fn put_pushes_first(&mut self, engine: &mut Engine, session: SessionId, out: &mut Vec<u8>) {
        let frames_now = engine.sessions.frames_of(session);
        if self.frames_before == 0 && frames_now > 0 {
            if let Some(client) = engine.sessions.get_mut(session) {
                client.push_queue.take(out, usize::MAX);
            }
        } else {
            self.frames_before = frames_now;
        }
        self.position = out.len();
    }

    /// Puts the reply behind all that the command pushed to its own client.
    fn move_reply_last(&mut self, engine: &mut Engine, session: SessionId, out: &mut Vec<u8>) {
        if self.frames_before > 0 {
            self.frames_before = engine.sessions.frames_of(session);
            return;
        }
        let reply = out.split_off(self.position);
        self.put_pushes_first(engine, session, out);
        out.extend_from_slice(&reply);
    }
}

/// The result of [`admit`] for a request that no gate refused.
pub(super) enum Admitted {
    /// It runs now: the command, and how many words name it.
    Now((CommandId, usize)),
    /// It is part of a transaction.
    Queued,
    /// A pause holds it back until this moment.
    HeldBack(Now),
}

/// True for the first line or a header of an HTTP request: a web page that was made to talk to us. Such a client is
/// closed before anything it sends can be taken for a command.
fn speaks_http(request: Request<'_>) -> bool {
    let name = request.get(0).unwrap_or_default();
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}
