//! From a request to its reply: finds the command, asks the gates ([`super::gates`]) or queues it for EXEC, runs it
//! with its stages ([`super::stages`]), and puts its reply and the client's pushes in order.
//!
//! Source for the order of errors: the behavior of Redis 8.0, asked with requests that fail at two gates at once.

use std::sync::Arc;

use crate::engine::error_counts::MOST_CODES;
use crate::engine::gates::Asked;
use crate::engine::measure::Running;
use crate::engine::scripts::Ending;
use crate::engine::stages::{Call, Caller};
use crate::engine::{CommandId, Effect, Engine, Error, Flags, LogLevel, Now, Session, SessionId};
use crate::resp::{ProtocolError, Reply, ReplyBuffer, Request};

/// What the connection does after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Goes on with the next request.
    Next,
    /// Sends what is written and ends.
    Close,
    /// Ends at once. Replies that were not sent yet are lost.
    Abort,
    /// Keeps this request and runs it again at that moment, or when [`crate::engine::Effect::Resume`] comes.
    Wait(Now),
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
        if let Some(fast) = self.command_for_fast_path(session, request) {
            return self.run_fast(now, session, fast, request, output);
        }
        let (now, out) = (self.catch_up(now), output.written_mut());
        if self.observers.kit.is_some() {
            return self.run_instrumented(now, session, request, out);
        }
        self.run_full(now, session, request, out)
    }

    /// Runs a request with all gates and stages, past the test kit.
    pub(super) fn run_full(&mut self, now: Now, session: SessionId, request: Request<'_>, out: &mut Vec<u8>) -> Flow {
        self.at(now);
        self.evict_clients();
        let Some(client) = self.sessions.get_mut(session) else { return Flow::Close };
        if client.cut_off {
            return Flow::Abort;
        }
        (client.active, client.held_back) = (now, None);
        let (mut turn, protocol) = (Turn::of(client, out), client.protocol);
        self.observers.tracking.begin_turn(session);
        let admitted = self.admit(session, request);
        if self.observers.tracking.is_on() {
            (turn.start, turn.told) = self.tell_before_reply(session, turn.told, out);
        }
        match admitted {
            Ok(Admitted::Later(moment)) => {
                self.observers.tracking.end_turn();
                self.hold_back(session);
                return Flow::Wait(moment);
            }
            Ok(Admitted::Queued) => Reply::new(out, protocol).simple("QUEUED"),
            Ok(Admitted::Now(found)) => {
                self.begin(session, found.0);
                let mut call = Call::new(session, found, request, Caller::Client);
                if let Err(error) = self.begin_stages(&mut call) {
                    self.refuse(error, &mut Reply::new(out, protocol));
                    return self.end_turn(session, turn, out);
                }
                (turn.start, turn.told) = self.tell_before_reply(session, turn.told, out);
                let ending = self.run_call(&mut call, Reply::new(out, protocol));
                return self.end_command(&call, ending, turn, out);
            }
            Err(Error::UnknownCommand { .. }) if speaks_http(request) => return Flow::Abort,
            Err(error) => {
                self.refuse(error, &mut Reply::new(out, protocol));
                self.show_refused(session, request);
            }
        }
        self.end_turn(session, turn, out)
    }

    /// Finishes a command that has run: orders pushes and reply, parks it if it waits, and ends the stages.
    pub(super) fn end_command(&mut self, call: &Call<'_>, ending: Ending, mut turn: Turn, out: &mut Vec<u8>) -> Flow {
        let session = call.session;
        if std::mem::take(&mut self.observers.tracking.is_reply_last) {
            (turn.start, turn.told) = self.move_reply_last(session, turn.told, turn.start, out);
        }
        match ending {
            Ending::Answered => {}
            Ending::Waits(block) => self.park(session, call.id, call.request, *block, 0),
            Ending::Rests => self.put_aside(out, turn.start),
            Ending::CallsHost => return self.suspend_for_host(),
        }
        self.end_stages(call);
        self.end_turn(session, turn, out)
    }

    /// Ends a request that is answered, or waits.
    fn end_turn(&mut self, session: SessionId, turn: Turn, out: &mut Vec<u8>) -> Flow {
        self.end_exception(session);
        self.observers.tracking.end_turn();
        if self.observers.waiting.is_anything_ready() {
            self.unblock_ready();
        }
        self.conclude(session, turn, out)
    }

    /// Ends a request that calls the host and runs again with the result: this time it does not count.
    #[cold]
    fn suspend_for_host(&mut self) -> Flow {
        self.timing.running = None;
        self.observers.tracking.end_turn();
        Flow::CallHost
    }

    /// Shows a refused request to monitors if it ends a transaction, as its beginning was shown.
    fn show_refused(&mut self, session: SessionId, request: Request<'_>) {
        if let Ok((id, _)) = self.table.resolve(request)
            && self.table.entry(id).command.flags.has(Flags::RUNS_QUEUE)
        {
            self.show(session, id, request);
        }
    }

    /// Runs a request that a transaction queued.
    pub(super) fn run_within(&mut self, session: SessionId, request: Request<'_>, mut reply: Reply<'_>) -> Ending {
        let Some(client) = self.sessions.get(session) else { return Ending::Answered };
        let mut ending = Ending::Answered;
        let (start, wanted_reply) = (reply.position(), client.wants_reply());
        reply.set_protocol(client.protocol);
        match self.table.resolve(request) {
            Ok((id, _)) if let Err(error) = self.keep_rights(session, id, request) => self.refuse(error, &mut reply),
            Ok(found) => {
                let mut call = Call::new(session, found, request, Caller::Transaction);
                match self.begin_stages(&mut call) {
                    Ok(()) => {
                        ending = self.run_call(&mut call, reply.reborrow());
                        debug_assert!(!matches!(ending, Ending::Waits(_)), "a command within another does not wait");
                        self.end_stages(&call);
                    }
                    Err(error) => self.refuse(error, &mut reply),
                }
            }
            Err(error) => self.refuse(error, &mut reply),
        }
        if !wanted_reply && !self.wants_reply(session) {
            reply.rewind(start);
        }
        ending
    }

    /// Replies to bytes that are no request, unless the session wants no replies. The connection ends after it.
    pub fn reject(&mut self, session: SessionId, fault: ProtocolError, out: &mut Vec<u8>) {
        self.count_error("ERR");
        if self.wants_reply(session) {
            out.extend_from_slice(b"-ERR ");
            out.extend_from_slice(&fault.text());
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Counts an error by the code that its line starts with.
    pub(super) fn count_error(&mut self, line: &str) {
        self.count_errors(line, 1);
    }

    /// Counts errors of that line, and logs that there are too many codes when that is found out.
    pub(super) fn count_errors(&mut self, line: &str, times: u64) {
        if let Err(codes) = self.stats.count_errors(line, times) {
            self.stats.freed_lazily += MOST_CODES as u64;
            let limit = format!("the number of errors reached the limit ({MOST_CODES})");
            for line in [
                format!("Errorstats stopped adding new errors because {limit}."),
                format!("Current errors code list: ({codes})"),
            ] {
                self.effects.push(Effect::Log(LogLevel::Warning, line));
            }
        }
    }

    /// Finds the command and asks the gates. Within a transaction, a refusal flags it, and a command that passes is
    /// queued.
    pub(super) fn admit(&mut self, session: SessionId, request: Request<'_>) -> Result<Admitted, Error> {
        let (id, words) = match self.table.resolve(request) {
            Ok(found) => found,
            Err(error) => return Err(self.flag_transaction(session, None, error)),
        };
        let command = self.table.entry(id).command;
        let flags = command.flags_of.map_or(command.flags, |flags_of| flags_of(self, request));
        let passed = if command.arity.admits(request.len()) {
            self.pass_gates(&Asked { session, id, flags: self.flags_with_queue(session, flags), request })
        } else {
            Err(Error::WrongArity(self.table.entry(id).name.clone()))
        };
        match passed {
            Ok(Some(moment)) => {
                self.note_command(session, Some(id));
                Ok(Admitted::Later(moment))
            }
            Ok(None) if self.queue(session, id, flags, request) => Ok(Admitted::Queued),
            Ok(None) => Ok(Admitted::Now((id, words))),
            Err(error) => {
                self.stats.command_mut(id).rejected += 1;
                Err(self.flag_transaction(session, Some(id), error))
            }
        }
    }

    /// The flags of a command, and those of the queue that it is about to run.
    fn flags_with_queue(&self, session: SessionId, flags: Flags) -> Flags {
        let transaction = self.sessions.get(session).and_then(|client| client.transaction.as_ref());
        match transaction {
            Some(transaction) if flags.has(Flags::RUNS_QUEUE) => flags.and(transaction.flags),
            _ => flags,
        }
    }

    /// Queues a request if the session has begun a transaction and the command is not about transactions itself. One
    /// that will not be run is not kept.
    fn queue(&mut self, session: SessionId, id: CommandId, flags: Flags, request: Request<'_>) -> bool {
        let Some(client) = self.sessions.get_mut(session) else { return false };
        let Some(transaction) = client.transaction.as_mut().filter(|_| !flags.has(Flags::UNQUEUED)) else {
            return false;
        };
        if !transaction.is_faulty && !self.observers.watches.is_known_broken(session) {
            Arc::make_mut(transaction).queue(request, flags);
        }
        client.last_command = Some(id);
        true
    }

    /// A request was refused: if the session has begun a transaction, that can only be discarded now; if the request
    /// was to run it, it is discarded.
    pub(super) fn flag_transaction(&mut self, session: SessionId, command: Option<CommandId>, error: Error) -> Error {
        self.note_command(session, command);
        let flags = command.map_or(Flags::NONE, |id| self.table.entry(id).command.flags);
        let Some(client) = self.sessions.get_mut(session) else { return error };
        if flags.has(Flags::RUNS_QUEUE) {
            (client.transaction, client.watched_bytes) = (None, 0);
            self.observers.watches.unwatch(session);
            let text = error.to_string();
            return Error::TransactionRefused(text.strip_prefix("ERR ").unwrap_or(&text).to_owned());
        }
        if let Some(transaction) = &mut client.transaction {
            Arc::make_mut(transaction).is_faulty = true;
        }
        error
    }

    /// Notes what the session called last, `None` for a command that does not exist.
    pub(super) fn note_command(&mut self, session: SessionId, command: Option<CommandId>) {
        if let Some(client) = self.sessions.get_mut(session) {
            client.last_command = command;
        }
    }

    #[inline]
    pub(super) fn begin(&mut self, session: SessionId, id: CommandId) {
        self.timing.running =
            Some(Running { session, command: id, started: self.timing.now, stalled_us: self.timing.stalled_us });
        if let Some(client) = self.sessions.get_mut(session) {
            client.commands += 1;
            client.last_command = Some(id);
        }
    }

    /// Counts a command that has run: INFO does not count itself, and CONFIG RESETSTAT is the first that counts again.
    #[inline]
    pub(super) fn count(&mut self, id: CommandId, failed: bool) {
        self.stats.commands += 1;
        let command = self.stats.command_mut(id);
        command.calls += 1;
        command.failed += u64::from(failed);
    }

    pub(super) fn refuse(&mut self, error: Error, reply: &mut Reply<'_>) {
        let line = error.to_string();
        if !matches!(error, Error::ScriptFailed { is_counted: true, .. }) {
            self.count_error(&line);
        }
        reply.error(&line);
    }

    fn wants_reply(&self, session: SessionId) -> bool {
        self.sessions.get(session).is_some_and(Session::wants_reply)
    }

    /// Puts pushes that came before a command runs in front of its reply. Returns where the reply starts in `out`, and
    /// the number of frames before it that the client has not read.
    fn tell_before_reply(&mut self, session: SessionId, told: usize, out: &mut Vec<u8>) -> (usize, usize) {
        let now_told = self.frames_of(session);
        if told > 0 || now_told == 0 {
            return (out.len(), now_told);
        }
        if let Some(client) = self.sessions.get_mut(session) {
            client.push_queue.take(out, usize::MAX);
        }
        (out.len(), 0)
    }

    /// Puts the reply at `start` behind all that the command pushed to its own client. Returns where the reply starts
    /// then, and the number of frames before it that the client has not read.
    fn move_reply_last(&mut self, session: SessionId, told: usize, start: usize, out: &mut Vec<u8>) -> (usize, usize) {
        if told > 0 {
            return (start, self.frames_of(session));
        }
        let reply = out.split_off(start);
        let (start, told) = self.tell_before_reply(session, 0, out);
        out.extend_from_slice(&reply);
        (start, told)
    }

    /// Takes back the reply of a command whose client wants none, and orders reply and pushes: earlier pushes come
    /// before the reply, all others behind it. Returns how the connection goes on.
    pub(super) fn conclude(&mut self, session: SessionId, turn: Turn, out: &mut Vec<u8>) -> Flow {
        let Turn { start, told, wanted_reply } = turn;
        let is_blocked = self.is_blocked(session);
        if self.observers.kit.is_some() {
            self.note_reply(session, start, is_blocked, out);
        }
        let Some(client) = self.sessions.get_mut(session) else { return Flow::Close };
        if !wanted_reply && !client.wants_reply() {
            out.truncate(start);
        }
        if !is_blocked {
            client.has_replied();
        }
        if told > 0 && out.len() > start {
            // The client has not been able to read those yet, so the reply waits with them.
            client.push_queue.insert(told, out[start..].into());
            out.truncate(start);
        }
        if (told == 0 || client.closing) && !client.push_queue.is_empty() {
            client.push_queue.take(out, usize::MAX);
        }
        let (mut is_cut_off, is_closing) = (client.cut_off, client.closing);
        if self.settings.output_limits.concern(client) {
            self.check_output_limit(session, out.len());
            is_cut_off = self.sessions.get(session).is_some_and(|client| client.cut_off);
        }
        match (is_cut_off, is_closing, is_blocked) {
            (true, ..) => Flow::Abort,
            (_, true, _) => Flow::Close,
            (.., true) => Flow::Block,
            _ => Flow::Next,
        }
    }

    /// Whether [`Engine::conclude`] does nothing for a client whose command has replied and left no effect: all its
    /// replies are wanted, no pushes wait, it goes on, and its output has no limit.
    pub(super) fn needs_no_conclusion(&self, client: &Session) -> bool {
        let is_apart = client.transaction.is_none() && client.subscribed.is_empty() && client.held_back.is_none();
        let goes_on = !client.closing && !client.cut_off;
        let reads_all = client.wants_reply() && !client.skips_next && client.push_queue.is_empty();
        is_apart && goes_on && reads_all && !self.settings.output_limits.concern(client)
    }

    /// Concludes a command of the fast path, and panics if that does anything.
    #[cfg(debug_assertions)]
    pub(super) fn assert_nothing_to_conclude(&mut self, session: SessionId, turn: Turn, out: &mut Vec<u8>) {
        // A server runs no request of a blocked client; tests of the engine do.
        let expected = if self.is_blocked(session) { Flow::Block } else { Flow::Next };
        let length = out.len();
        let flow = self.conclude(session, turn, out);
        assert!(flow == expected && out.len() == length, "the fast path skips a conclusion: {flow:?}");
    }
}

/// The state of a session when its request began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Where the reply starts in the buffer.
    pub(super) start: usize,
    /// The number of pushed frames before it that the client has not read.
    pub(super) told: usize,
    /// Whether the client wanted a reply.
    pub(super) wanted_reply: bool,
}

impl Turn {
    /// The state of a client whose reply is to be at the end of `out`.
    pub(super) fn of(client: &Session, out: &[u8]) -> Turn {
        Turn { start: out.len(), told: client.push_queue.frames(), wanted_reply: client.wants_reply() }
    }
}

/// A request that passed the gates, or waits before the last one.
pub(super) enum Admitted {
    /// It runs now: the command, and how many words name it.
    Now((CommandId, usize)),
    /// It is part of a transaction.
    Queued,
    Later(Now),
}

/// True for the first line or a header of an HTTP request: a web page that was made to talk to us. Such a client is
/// closed before anything it sends can be taken for a command.
fn speaks_http(request: Request<'_>) -> bool {
    let name = request.get(0).unwrap_or_default();
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}
