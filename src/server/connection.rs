//! One client's connection: reads requests, runs them on the engine, sends the replies.
//!
//! It is a task of an event loop ([`moving`]), and each time it is polled it takes one turn: at most one read, the
//! requests that are then complete, one write. A turn is bounded in time and in bytes of replies, but for a short
//! pipeline, which runs as a whole ([`super::fairness`]); requests beyond that run after the other connections had
//! their turns, so no client starves.
//! The rest of a long word is read in the same turn, since nothing can run before the word is complete. So CLIENT LIST,
//! called by another client, counts everything that this client has sent. If the turn has time left then, it reads on:
//! several replies leave with one write.
//!
//! Small replies are held back until every connection that became readable with this one has had its turn, and are then
//! sent back to back. The first of them wakes the clients' process, the others find it awake: with 50 clients that
//! saves up to a quarter of the processor time of a request, which is mostly the price of waking. Redis does the same.
//!
//! Bytes are read into a buffer that all connections of a thread share, and parsed and run in place ([`reading`]).
//! Replies are gathered in a second shared buffer. Large replies are written from there, large strings from where they
//! are stored; replies that are held back, or that the socket does not take, wait in the [`WriteQueue`]. So an idle
//! connection holds almost no buffer memory.
//!
//! Reading continues while replies wait: a client that pipelines without reading is served, as in Redis, so client and
//! server never wait for each other. Clients that have not logged in get less: see [`Connection::guard_output`].

mod guards;
mod moving;
mod query_buffer;
mod reading;

use std::cell::RefCell;
use std::io;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use guards::UNAUTHENTICATED_REPLY_BYTES;
use parking_lot::MutexGuard;
use query_buffer::QueryBuffer;
use reading::Input;
use tracing::debug;

use super::fairness::{BatchLimit, PART_REQUESTS, READ_AT_ONCE, TURN_REPLY_BYTES, TurnEnd, wake_after_others};
use super::host_call::{self, Attachment, HostCallState};
use super::loops::LoopAssignment;
use super::shared::Shared;
use super::stream::Stream;
use super::wake_flags::{WakeFlag, WakeFlags};
use super::write_queue::WriteQueue;
use crate::engine::exec::{blocking, client_line, delivery};
use crate::engine::{Buffers, Engine, Flow, SessionId};
use crate::resp::{Batch, Limits, Parser, ReplyBuffer, Request};

/// The most bytes that one read takes. Most batches are smaller, and then the socket is known to be empty without a
/// second read.
const READ_BYTES: usize = 64 << 10;
/// The most bytes that one read takes from a client whose last read was full: it streams, and others wait meanwhile.
const STREAM_READ_BYTES: usize = READ_AT_ONCE;
/// The length from which on a word is long, and is read further in the same turn.
const LONG_BYTES: usize = 32 << 10;
/// The most bytes of a long word that one turn reads: about what the system buffers of what was sent and not yet read.
const TURN_READ_BYTES: u64 = 4 << 20;
/// The number of requests from which on the memory that they will access is prefetched.
const MIN_PREFETCHED_REQUESTS: usize = 4;
/// The most bytes of small pushed frames that are gathered for one write.
const MAX_PUSH_BYTES: usize = 32 << 10;
/// The most bytes of replies that are held back until other connections had their turns.
const MAX_HELD_BYTES: usize = 16 << 10;

/// Buffers that all connections of a thread use in turn.
struct Scratch {
    input: Box<[u8]>,
    work: Work,
}

/// The parsed requests of a batch, and their replies.
#[derive(Default)]
struct Work {
    batch: Batch,
    output: ReplyBuffer,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> =
        RefCell::new(Scratch { input: vec![0; READ_BYTES].into_boxed_slice(), work: Work::default() });
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Connection {
    shared: Arc<Shared>,
    /// `None` while it moves between two event loops.
    stream: Option<Stream>,
    assignment: LoopAssignment,
    /// Whether it has not been polled yet on its present event loop.
    is_new: bool,
    session: SessionId,
    wake_flags: Arc<WakeFlags>,
    parser: Parser,
    /// The parser's limits, as of the last batch.
    limits: Limits,
    /// The bytes that have arrived of requests that have not run.
    unread: QueryBuffer,
    /// The bytes of `unread` that count towards the query buffers of clients that have not logged in.
    unauthenticated_bytes: usize,
    /// Whether the last turn ended before all complete requests in `unread` were run.
    has_more: bool,
    /// The most bytes that the next read takes.
    read_bytes: usize,
    turn_end: TurnEnd,
    write_queue: WriteQueue,
    /// Whether the write queue holds only replies that are held back until others had their turns.
    holds_back: bool,
    /// The offset of the append-only file before which no waiting reply may leave; 0 for none.
    awaited_offset: u64,
    /// Whether the engine may hold pushes for the session that were not sent.
    may_have_pushes: bool,
    /// The sizes of the buffers, as reported to the engine. Spare room of `unread` is not counted: it is at most a
    /// quarter of it, or, while a long word is read, four times as much, of which most is address space.
    buffers: Buffers,
    /// The bytes of all replies so far, whether sent or waiting in the write queue.
    produced: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The connection has not been polled yet.
    Fresh,
    /// Requests run as they arrive.
    Open,
    /// A pause holds the first unread request back, or it waits for its host call.
    Suspended,
    /// A command blocks; unread requests wait for its end.
    Blocked,
    /// The waiting replies are sent, then the connection ends.
    Closing,
}

/// The error of a connection that is over: nothing more can or may be sent.
#[derive(Debug)]
struct Ended;

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Ended {
        Ended
    }
}

/// The reason why a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// No complete request is left.
    Exhausted,
    /// There may be another batch.
    More,
    /// A pause holds the next request back.
    HeldBack,
    /// The last request blocks.
    Blocked,
    /// The next request needs an answer from the host, and is run again with it.
    CallsHost,
    /// This was the last request of this connection.
    Closing,
    /// The connection ends before its replies are sent.
    Aborted,
}

impl Connection {
    /// The connection of a new session over `stream`.
    pub(crate) fn new(
        shared: Arc<Shared>,
        stream: Stream,
        session: SessionId,
        wake_flags: Arc<WakeFlags>,
        assignment: LoopAssignment,
    ) -> Connection {
        Connection {
            shared,
            stream: Some(stream),
            assignment,
            is_new: true,
            session,
            wake_flags,
            parser: Parser::new(),
            limits: Limits { max_bulk_bytes: 0, authenticated: false },
            unread: QueryBuffer::default(),
            unauthenticated_bytes: 0,
            has_more: false,
            read_bytes: READ_BYTES,
            turn_end: TurnEnd::default(),
            write_queue: WriteQueue::default(),
            holds_back: false,
            awaited_offset: 0,
            may_have_pushes: false,
            buffers: Buffers::default(),
            produced: 0,
            state: State::Fresh,
        }
    }

    /// Takes one turn. `Ready` when the connection has ended, in whatever way.
    fn turn(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<Result<(), Ended>> {
        self.begin_turn(cx);
        self.flush(cx)?;
        let flags = self.wake_flags.take();
        if flags.has(WakeFlag::Close) {
            return Poll::Ready(Ok(()));
        }
        if flags.has(WakeFlag::Resume) && self.state == State::Suspended {
            self.state = State::Open;
            self.run_unread(cx, &mut scratch.work)?;
        }
        self.may_have_pushes |= flags.has(WakeFlag::Pushed);
        if self.may_have_pushes && self.write_queue.is_empty() {
            self.send_pushes(cx, &mut scratch.work)?;
        }
        if self.awaited_offset > 0 && self.shared.worlds().aof().is_full() && !self.try_release(cx) {
            return Poll::Pending;
        }
        if self.has_more && self.state == State::Open {
            self.run_unread(cx, &mut scratch.work)?;
            return self.go_on_after_others(cx);
        }
        if self.state == State::Suspended && self.shared.engine().timing.pause().is_node_paused() {
            // A process that is stopped reads nothing: what a client sends before it gives up is there when it goes on.
            return Poll::Pending;
        }
        ready!(self.read_requests(cx, scratch))?;
        // When the whole server ends, the connection stays until the listeners are closed: the client cannot reconnect.
        let is_over = self.write_queue.is_empty() && !self.shared.is_ending();
        if is_over { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Notes that so many bytes were read.
    fn note_read(&mut self, length: usize) {
        self.buffers.received += length as u64;
        self.read_bytes = if length >= self.read_bytes { STREAM_READ_BYTES } else { READ_BYTES };
    }

    /// Whether the last read was full, so that the client has probably sent more.
    fn is_streaming(&self) -> bool {
        self.read_bytes == STREAM_READ_BYTES
    }

    fn begin_turn(&mut self, cx: &Context<'_>) {
        self.turn_end = TurnEnd::default();
        if mem::take(&mut self.is_new) {
            self.wake_flags.attach(cx.waker());
        }
        if self.state == State::Fresh {
            self.limits = self.limits(&self.shared.engine());
            self.state = State::Open;
        }
    }

    /// Ends a turn that leaves more to do, which the next turn does after others had theirs.
    fn go_on_after_others(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        // Held-back replies would give this task its next turn before the others had theirs.
        self.flush(cx)?;
        wake_after_others(cx);
        Poll::Pending
    }

    /// Sends the pushes of the engine, as far as the socket takes them. Runs unread requests if a push was the reply of
    /// the command that blocked.
    fn send_pushes(&mut self, cx: &mut Context<'_>, work: &mut Work) -> Result<(), Ended> {
        let produced = self.produced;
        while self.may_have_pushes && self.write_queue.is_empty() {
            if self.produced - produced > TURN_REPLY_BYTES as u64 {
                wake_after_others(cx);
                break;
            }
            work.output.clear();
            let mut engine = self.shared.engine();
            let Some(session) = engine.sessions.get_mut(self.session) else { return Err(Ended) };
            let shows_data = session.push_queue.shows_data();
            let large = session.push_queue.take_or_share(work.output.written_mut(), MAX_PUSH_BYTES);
            self.may_have_pushes = !session.push_queue.is_empty();
            let hangs_up = session.hangs_up && !self.may_have_pushes;
            if mem::take(&mut session.is_bytewise) {
                self.write_queue.send_bytewise();
            }
            engine.sessions.account_memory(self.session);
            engine.check_output_limit(self.session, 0);
            self.shared.carry_out(&mut engine, None);
            if shows_data {
                self.awaited_offset = self.shared.aof_offset(&engine);
            }
            let is_answered = self.state == State::Blocked && !engine.is_blocked(self.session);
            drop(engine);
            self.produced += (work.output.len() + large.as_ref().map_or(0, |frame| frame.len())) as u64;
            self.send(cx, &mut work.output)?;
            if let Some(frame) = large {
                self.write_queue.push_shared(frame.into());
                self.send_queue(cx)?;
                self.guard_output()?;
            }
            if hangs_up {
                self.state = State::Closing;
            } else if is_answered {
                self.state = State::Open;
                self.run_unread(cx, work)?;
            }
        }
        Ok(())
    }

    /// Runs the complete requests in `input` until the turn is over, and sends their replies; returns the number of
    /// bytes consumed.
    fn run(&mut self, cx: &mut Context<'_>, input: Input<'_>, work: &mut Work) -> Result<usize, Ended> {
        // A command that panicked has left its connection's replies in this shared buffer.
        work.output.clear();
        self.has_more = false;
        let limit = BatchLimit::of(input.bytes.len(), self.is_streaming());
        let mut taken = 0;
        loop {
            let (count, stop) = self.run_batch(input.from(taken), limit, work);
            self.shared.deliver_and_settle();
            taken += count;
            let state = match stop {
                Stop::More if self.is_turn_over(limit, &work.output) => {
                    self.has_more = true;
                    State::Open
                }
                // The lock was released, so others may have run in between in any case.
                Stop::CallsHost if self.is_turn_over(BatchLimit::OneTurn, &work.output) => {
                    self.has_more = true;
                    State::Open
                }
                Stop::More => continue,
                Stop::CallsHost if self.suspend_for_host(cx, work.output.written_mut()) => continue,
                Stop::CallsHost => State::Suspended,
                Stop::Aborted => return Err(Ended),
                Stop::Exhausted if self.write_queue.is_empty() && work.output.len() <= MAX_HELD_BYTES => {
                    self.write_queue.push(work.output.written());
                    self.holds_back = !self.write_queue.is_empty();
                    return Ok(taken);
                }
                Stop::Exhausted => State::Open,
                Stop::HeldBack => State::Suspended,
                Stop::Blocked => State::Blocked,
                Stop::Closing => State::Closing,
            };
            self.send(cx, &mut work.output)?;
            self.state = state;
            return Ok(taken);
        }
    }

    /// Whether other clients are served before more requests run. A client that has not logged in runs few: it is
    /// closed when their replies are long.
    fn is_turn_over(&self, limit: BatchLimit, output: &ReplyBuffer) -> bool {
        if !self.limits.authenticated {
            return output.len() > UNAUTHENTICATED_REPLY_BYTES;
        }
        let is_late = match limit {
            BatchLimit::OneTurn => self.turn_end.is_reached(),
            BatchLimit::WholePipeline => self.shared.is_ending(),
        };
        is_late || output.len() >= limit.most_reply_bytes()
    }

    /// Answers the host call of the first unread request, which may move the session to another world; false if the
    /// answer comes later.
    fn suspend_for_host(&mut self, cx: &mut Context<'_>, output: &mut Vec<u8>) -> bool {
        let before = output.len();
        let attachment = match host_call::answer(&self.shared, self.session, output) {
            HostCallState::Answered => return true,
            HostCallState::Moved(attachment) => attachment,
            HostCallState::Pending => return false,
        };
        self.produced += (output.len() - before) as u64;
        Attachment { shared: self.shared, session: self.session, wake_flags: self.wake_flags } = attachment;
        self.wake_flags.attach(cx.waker());
        // The next turn checks flags that were set before the waker was attached.
        cx.waker().wake_by_ref();
        self.limits = self.limits(&self.shared.engine());
        true
    }

    /// Parses a batch of requests, and runs them under one lock; returns the number of bytes consumed.
    fn run_batch(&mut self, input: Input<'_>, limit: BatchLimit, Work { batch, output }: &mut Work) -> (usize, Stop) {
        let Input { bytes: input, buffer } = input;
        self.refresh_limits();
        let unparsed = self.unparsed_bytes(input.len());
        let fault = batch.fill(&mut self.parser, input, &self.limits, limit.most_requests()).err();
        let before = output.len();
        let shared = &*self.shared;
        let mut engine = shared.engine();
        if engine.persistence.shutdown.has_begun || blocking::is_held_by_node(&mut engine, self.session) {
            self.parser = Parser::new();
            return (0, Stop::HeldBack);
        }
        (self.buffers.query, self.buffers.words) = (input.len(), 0);
        self.buffers.query_free = READ_BYTES.saturating_sub(input.len());
        self.report_input(&mut engine, input.len());
        if client_line::has_queued_too_much(&engine, self.session, unparsed) {
            self.end_query(&mut engine, input);
            return (0, Stop::Aborted);
        }
        if delivery::limits_output(&engine, self.session) {
            // Requests sent together are answered together, as in Redis, so that the limit applies to the same replies.
            self.turn_end.remove_time_limit();
        }
        let due = shared.begin_batch(&mut engine);
        let (done, mut stop) = self.run_requests(&mut engine, batch, Input { bytes: input, buffer }, limit, output);
        let is_fault_next = done == batch.len() && stop == Stop::More;
        let is_left = done < batch.len() || fault.is_some() && !is_fault_next;
        if is_fault_next && let Some(fault) = fault {
            engine.reject(self.session, fault, output.written_mut());
            stop = Stop::Closing;
        }
        self.awaited_offset = shared.end_batch(&mut engine, due).max(self.awaited_offset);
        self.assignment.count_requests(done);
        let taken = batch.end_of(done);
        self.produced += (output.len() - before) as u64;
        self.limits = self.limits(&engine);
        if is_left {
            // The rest is parsed again from its beginning when its turn comes.
            self.parser = Parser::new();
        }
        let held_back = batch.get(input, done).filter(|_| stop == Stop::HeldBack);
        // A request that a pause holds back counts as read, as in Redis.
        let read = if held_back.is_some() { batch.end_of(done + 1) } else { taken };
        self.buffers = self.unread(input.len() - read, held_back);
        self.report(&mut engine);
        self.account_memory(&mut engine);
        let Some(session) = engine.sessions.get_mut(self.session).filter(|session| !session.cut_off) else {
            return (taken, Stop::Aborted);
        };
        if mem::take(&mut session.is_bytewise) {
            self.write_queue.send_bytewise();
        }
        if stop == Stop::More {
            // A long pipeline gives the lock to threads that wait for it.
            MutexGuard::unlock_fair(engine);
        }
        (taken, stop)
    }

    /// The buffers with so many bytes in the query buffer, of which a request that has come in part is parsed already,
    /// and with the words of a request that is held back.
    fn unread(&self, bytes: usize, held_back: Option<Request<'_>>) -> Buffers {
        let (partial_request, words) = self.parser.partial_request();
        let words = words + held_back.map_or(0, |request| request.iter().map(<[u8]>::len).sum());
        Buffers { query: bytes.saturating_sub(partial_request), words, query_free: 0, ..self.buffers }
    }

    /// Recomputes the limits of a client that has not logged in: another client may have changed whether a login is
    /// needed.
    fn refresh_limits(&mut self) {
        if !self.limits.authenticated {
            self.limits = self.limits(&self.shared.engine());
        }
    }

    /// Reports bytes whose requests are about to run.
    fn report_input(&self, engine: &mut Engine, bytes: usize) {
        self.report(engine);
        if bytes > READ_BYTES {
            // More than the shared buffer holds is this client's own memory.
            self.account_memory(engine);
        }
    }

    /// Runs the requests of a batch; returns how many are done, and why it stopped.
    fn run_requests(
        &self,
        engine: &mut Engine,
        batch: &Batch,
        input: Input<'_>,
        limit: BatchLimit,
        output: &mut ReplyBuffer,
    ) -> (usize, Stop) {
        let mut done = 0;
        while let Some(request) = batch.get(input.bytes, done) {
            if done % PART_REQUESTS == 0 && batch.len() - done >= MIN_PREFETCHED_REQUESTS {
                let next = (done..batch.len()).take(PART_REQUESTS);
                engine.prefetch(self.session, next.filter_map(|index| batch.get(input.bytes, index)));
            }
            let request = request.in_received(input.buffer);
            match self.shared.run_in(engine, self.session, request, output) {
                Flow::Next => done += 1,
                Flow::Close => return (done + 1, Stop::Closing),
                Flow::Abort => return (done + 1, Stop::Aborted),
                Flow::HeldBack(_) => return (done, Stop::HeldBack),
                Flow::Block => return (done + 1, Stop::Blocked),
                Flow::CallHost => return (done, Stop::CallsHost),
            }
            // A brief command of a pipeline is timed together with others, and never takes long.
            let is_brief = output.len() < TURN_REPLY_BYTES && engine.is_timed_later();
            if !is_brief && done < batch.len() && self.is_turn_over(limit, output) {
                return (done, Stop::More);
            }
        }
        (done, if batch.is_last() { Stop::Exhausted } else { Stop::More })
    }

    fn limits(&self, engine: &Engine) -> Limits {
        Limits { max_bulk_bytes: engine.settings.max_bulk_bytes, authenticated: self.is_authenticated(engine) }
    }

    /// Reports the sizes of this connection's buffers to the engine.
    fn report(&self, engine: &mut Engine) {
        self.write_queue.keep(engine.switches.reply_room, engine.now());
        let Some(session) = engine.sessions.get_mut(self.session) else { return };
        let output = self.write_queue.len();
        let now = Buffers {
            output,
            reply_room: self.write_queue.room(),
            reply_peak: self.write_queue.peak(),
            sent: self.produced - output as u64,
            ..self.buffers
        };
        let (before, event_loop) = (session.buffers, session.origin.event_loop);
        session.buffers = now;
        let transfers = engine.stats.transfers_mut(event_loop);
        transfers.reads += u64::from(now.received != before.received);
        transfers.writes += u64::from(now.sent != before.sent);
        engine.stats.received_bytes += now.received - before.received;
        // Replies count as sent until the socket takes less than all of them.
        engine.stats.sent_bytes = (engine.stats.sent_bytes + now.sent).saturating_sub(before.sent);
        if now.output != before.output {
            engine.check_output_limit(self.session, 0);
            self.shared.carry_out(engine, None);
        }
    }

    /// Accounts the memory of this connection's buffers. Not called while a batch runs, when they belong to the thread.
    fn account_memory(&self, engine: &mut Engine) {
        engine.sessions.account_memory(self.session);
        self.shared.complete(engine);
    }

    /// Sends `output`, and closes a client that has not logged in if it is too long.
    fn send(&mut self, cx: &mut Context<'_>, output: &mut ReplyBuffer) -> Result<(), Ended> {
        if output.len() > UNAUTHENTICATED_REPLY_BYTES && !self.limits.authenticated {
            return Err(self.close_unauthenticated(&mut self.shared.engine()));
        }
        if self.try_release(cx) {
            self.write_queue.send(self.stream.as_mut().ok_or(Ended)?, cx, output)?;
        } else {
            self.write_queue.queue(output);
        }
        self.guard_output()
    }

    /// Whether what the waiting replies depend on is in the append-only file. If not, the task is woken when it is.
    fn try_release(&mut self, cx: &mut Context<'_>) -> bool {
        if self.awaited_offset == 0 {
            self.shared.worlds().aof().note_prompt_reply();
        } else if self.shared.worlds().aof().try_release(self.awaited_offset, cx.waker()) {
            self.awaited_offset = 0;
        }
        self.awaited_offset == 0
    }

    /// Sends what is in the write queue, as far as it may leave and the socket takes it.
    fn send_queue(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        if self.try_release(cx) {
            self.write_queue.flush(self.stream.as_mut().ok_or(Ended)?, cx)?;
        }
        Ok(())
    }

    /// Sends the waiting replies, as far as the socket takes them.
    fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        let held_back = mem::take(&mut self.holds_back);
        if self.write_queue.is_empty() {
            return Ok(());
        }
        self.send_queue(cx)?;
        if held_back {
            // Held-back replies were counted as sent, and are sent now unless the socket is full.
            return self.guard_output();
        }
        let mut engine = self.shared.engine();
        self.report(&mut engine);
        self.account_memory(&mut engine);
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        debug!("client {} disconnected", self.session.number);
        self.assignment.loops().count_unauthenticated_bytes(self.unauthenticated_bytes, 0);
        self.shared.disconnect(self.session);
    }
}
