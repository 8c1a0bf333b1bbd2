//! Timing of commands: measures how long each takes, for its statistics, SLOWLOG and LATENCY.
//!
//! The caller passes the time when a request begins and when it has ended. A command within a request, of a transaction
//! or a script, is timed by the same clock, which the engine reads only for that ([`crate::engine::Host::now`]). A
//! stall ([`stall`]) happens only after the request, and counts as time of the command that caused it. A
//! blocked command is counted once it has ended, with the time that it ran, without the time that it waited.
//!
//! Reading the clock takes longer than a command that finds a key and replies with its value. So in a batch, the
//! timing of such brief commands is deferred: several of them are timed together, by one reading of the clock, and the
//! time is divided evenly among them. Any other command is timed by itself, from a reading of its own on. Where
//! single times matter, as the slow log's threshold is below a millisecond or LATENCY records, nothing is deferred.
//!
//! In a transaction the clock is read once for each command: a queued request is not timed, and a command of EXEC
//! starts when the one before has ended.
//!
//! A direct call is a batch of one request. Of the brief commands of such calls, one in a few is timed, and its time
//! counts for the others ([`Sampling`](crate::engine::state::timing::Sampling)).

use crate::engine::Engine;
use crate::engine::exec::stages::{self, Caller};
use crate::engine::spec::{CommandId, Flags, Now};
use crate::engine::state::fast_path::FastPath;
use crate::engine::state::slow_log::kept_words;
use crate::engine::state::timing::{Deferred, Stopwatch};
use crate::engine::state::{Effect, Sample, Session, SessionId, SlowCommand};
use crate::resp::Request;

impl Engine {
    /// Sets the current time.
    #[inline]
    pub fn at(&mut self, now: Now) {
        if self.stats.instant_metrics.is_due(now) {
            take_sample(self, now);
        }
        self.timing.now = now;
    }

    /// Begins a batch: requests are about to be run, one after the other.
    #[inline]
    pub fn begin_batch(&mut self, now: Now) {
        self.at(now);
        self.timing.batch_began = now;
        self.stats.commands_before = self.stats.commands;
        self.observers.fast_path = FastPath::Unknown;
        self.timing.deferred.clear();
        self.timing.has_queued = false;
        self.timing.sampling.is_on = false;
    }

    /// Begins a batch of one request, which a client in this process runs.
    #[inline]
    pub fn begin_direct_call(&mut self, now: Now) {
        let fast_path = self.observers.fast_path;
        self.begin_batch(now);
        self.timing.sampling.is_on = true;
        if let FastPath::For(_) = fast_path {
            self.observers.fast_path = fast_path;
        }
    }

    /// Ends a batch: its requests have been run.
    #[inline]
    pub fn end_batch(&mut self) {
        if std::mem::take(&mut self.timing.sampling.is_on) {
            time_direct_call(self);
        } else {
            catch_up(self, self.timing.now);
            self.observers.fast_path = FastPath::NotKept;
        }
        self.stats.most_commands = self.stats.most_commands.max(self.stats.commands - self.stats.commands_before);
        let elapsed_us = self.timing.now.since_us(self.timing.batch_began);
        self.stats.running_us = self.stats.running_us.saturating_add(elapsed_us);
    }

    /// Whether the last request is timed with others, or queued and not timed, so that the caller need not report its
    /// end.
    #[inline]
    pub fn is_timed_later(&self) -> bool {
        self.timing.running.is_none() && (self.timing.deferred.count > 0 || self.timing.has_queued)
    }

    /// Ends a request at that time, and counts how long it took.
    pub fn finish(&mut self, now: Now, request: Request<'_>) {
        if self.timing.deferred.count > 0 {
            return finish_with_others(self, now, request);
        }
        self.at(now);
        let Some(running) = self.timing.running.take() else { return };
        // On a clock that stands still nobody waits: the requested stall counts.
        let stalled_us = self.timing.stalled_us - running.stalled_us;
        let elapsed_us = now.since_us(running.started).max(stalled_us);
        match self.observers.waiting.get_mut(running.session).filter(|wait| wait.command == running.command) {
            Some(wait) => wait.spent_us = wait.spent_us.saturating_add(elapsed_us),
            None if running.is_counted => {
                record_time(self, running.session, running.command, request, elapsed_us);
            }
            None => log_time(self, running.session, running.command, request, elapsed_us),
        }
    }

    /// Corrects the running measurements after a command moved the clock: the command did not take that long.
    pub fn jump(&mut self, now: Now) {
        (self.timing.now, self.timing.batch_began) = (now, now);
        self.stats.instant_metrics.forget();
        if let Some(running) = &mut self.timing.running {
            (running.started, running.next_starts) = (now, now);
        }
    }
}

/// The time now, by the host's clock if it has one, to measure parts of a batch.
pub(super) fn clock(engine: &Engine) -> Now {
    engine.host.now().unwrap_or(engine.timing.now)
}

/// Takes a sample of the metrics as of the moment set last: nothing was counted since.
#[cold]
fn take_sample(engine: &mut Engine, now: Now) {
    engine.stats.sample(engine.timing.now, now, engine.databases.memory_bytes(), engine.host.loop_cycles());
}

/// Takes a sample of the metrics and of the largest buffers now, for INFO.
pub fn sample_for_info(engine: &mut Engine) {
    engine.sessions.find_largest_buffers(engine.host.elapsed_us());
    take_sample(engine, engine.timing.now);
}

/// Defers the timing of a brief command of a batch that has run. If too many are deferred, reads the clock.
#[inline]
pub(super) fn defer(engine: &mut Engine, id: CommandId) {
    engine.timing.running = None;
    if !engine.timing.deferred.add(id) {
        catch_up(engine, engine.timing.now);
        engine.timing.deferred.add(id);
    }
}

/// Returns the start time of a command that is timed by itself: reads the clock if others are deferred or queued.
#[inline]
pub(super) fn catch_up(engine: &mut Engine, now: Now) -> Now {
    if engine.timing.deferred.count == 0 && !engine.timing.has_queued {
        return now;
    }
    let now = clock(engine);
    if engine.timing.deferred.count > 0 {
        share_out(engine, now.since_us(engine.timing.now), 0);
    }
    engine.timing.has_queued = false;
    engine.at(now);
    now
}

/// Whether a request may only be queued, for which the time need not be known.
#[inline]
pub(super) fn may_queue_untimed(engine: &Engine, session: SessionId) -> bool {
    let is_queueing = |client: &Session| client.transaction.is_some();
    engine.sessions.get(session).is_some_and(is_queueing) && stages::are_stages_idle(engine)
}

/// Behind the gates: notes that the request was queued, or reads the clock if those before it were.
#[inline]
pub(super) fn after_gates(engine: &mut Engine, is_queued: bool) {
    if is_queued {
        engine.timing.has_queued = true;
    } else if engine.timing.has_queued {
        catch_up(engine, engine.timing.now);
    }
}

/// Ends a direct call: if it ran a brief command, counts its time, or that of the last that was timed.
#[inline]
fn time_direct_call(engine: &mut Engine) {
    if engine.timing.deferred.count == 0 {
        return;
    }
    let [(id, _), ..] = engine.timing.deferred.kinds;
    engine.timing.deferred.clear();
    let mut elapsed_us = engine.timing.sampling.last_us;
    if engine.timing.sampling.times_next() {
        let now = clock(engine);
        elapsed_us = now.since_us(engine.timing.now);
        engine.timing.sampling.last_us = elapsed_us.min(1);
        engine.at(now);
    }
    count_time(engine, id, elapsed_us);
}

/// Counts the time of one call of a command in its statistics.
#[inline]
fn count_time(engine: &mut Engine, id: CommandId, elapsed_us: u64) {
    let stats = engine.stats.command_mut(id);
    stats.elapsed_us = stats.elapsed_us.saturating_add(elapsed_us);
    if engine.settings.tracks_latency {
        stats.latency_histogram.add(elapsed_us);
    }
}

/// Divides the time since the last reading of the clock, `elapsed_us`, among the deferred commands and `others`
/// commands behind them, which may have taken longer; returns the part of those.
fn share_out(engine: &mut Engine, elapsed_us: u64, others: u64) -> u64 {
    let Deferred { kinds, known, count } = std::mem::take(&mut engine.timing.deferred);
    let parts = count + others;
    let shared_us = if others == 0 { elapsed_us } else { elapsed_us.min(parts) };
    // The remainder of the division makes some of them a microsecond longer.
    let (each_us, mut longer) = (shared_us / parts, shared_us % parts);
    let mut left_us = elapsed_us;
    for (id, count) in &kinds[..known] {
        let more = longer.min(*count);
        let stats = engine.stats.command_mut(*id);
        stats.elapsed_us = stats.elapsed_us.saturating_add(each_us * count + more);
        if engine.settings.tracks_latency {
            stats.latency_histogram.add_several(each_us, count - more);
            stats.latency_histogram.add_several(each_us + 1, more);
        }
        longer -= more;
        left_us -= each_us * count + more;
    }
    left_us
}

/// Like [`Engine::finish`], for a command that ran behind others whose timing was deferred.
fn finish_with_others(engine: &mut Engine, now: Now, request: Request<'_>) {
    let elapsed_us = share_out(engine, now.since_us(engine.timing.now), 1);
    engine.at(now);
    if let Some(running) = engine.timing.running.take() {
        record_time(engine, running.session, running.command, request, elapsed_us);
    }
}

/// Makes all clients wait (DEBUG SLEEP), at a server that is no node of a cluster.
pub(super) fn stall(engine: &mut Engine, stall_us: u64) {
    engine.timing.stalled_us = engine.timing.stalled_us.saturating_add(stall_us);
    engine.effects.push(Effect::Stall(stall_us));
}

/// Starts a measurement within a request.
pub(super) fn start_timer(engine: &Engine) -> Stopwatch {
    Stopwatch { started: clock(engine), stalled_us: engine.timing.stalled_us }
}

/// Starts a measurement of a command within another: in a transaction, from the end of the command before.
pub(super) fn start_nested(engine: &Engine, caller: Caller) -> Stopwatch {
    match engine.timing.running {
        Some(running) if caller == Caller::Transaction => {
            Stopwatch { started: running.next_starts, stalled_us: engine.timing.stalled_us }
        }
        _ => start_timer(engine),
    }
}

/// Ends a measurement of a command within another; returns its length in microseconds.
pub(super) fn end_nested(engine: &mut Engine, timer: Stopwatch) -> u64 {
    let now = clock(engine);
    if let Some(running) = &mut engine.timing.running {
        running.next_starts = now;
    }
    now.since_us(timer.started).saturating_add(engine.timing.stalled_us - timer.stalled_us)
}

/// The time since the start of a measurement, in microseconds.
pub(super) fn elapsed_us(engine: &Engine, timer: Stopwatch) -> u64 {
    clock(engine).since_us(timer.started).saturating_add(engine.timing.stalled_us - timer.stalled_us)
}

/// Counts the time that a command took, in its statistics and the logs.
#[inline]
pub(super) fn record_time(
    engine: &mut Engine,
    session: SessionId,
    id: CommandId,
    request: Request<'_>,
    elapsed_us: u64,
) {
    count_time(engine, id, elapsed_us);
    log_time(engine, session, id, request, elapsed_us);
}

/// Notes the time that a command took in the logs, if it is long enough for them. Those of the page are there, too:
/// they show what has held up the clients.
#[inline]
fn log_time(engine: &mut Engine, session: SessionId, id: CommandId, request: Request<'_>, elapsed_us: u64) {
    if engine.settings.slowlog_threshold_us.is_some_and(|from_us| elapsed_us >= from_us) {
        log_slow(engine, session, id, request, elapsed_us);
    }
    if engine.settings.latency_threshold_ms > 0 {
        record_latency_of(engine, id, elapsed_us);
    }
}

#[cold]
fn record_latency_of(engine: &mut Engine, id: CommandId, elapsed_us: u64) {
    let is_fast = engine.table.entry(id).command.flags.has(Flags::FAST);
    record_latency(engine, if is_fast { "fast-command" } else { "command" }, elapsed_us);
}

/// Records a delay of all clients in the latency monitor, if it took long enough.
pub(super) fn record_latency(engine: &mut Engine, kind: &'static str, elapsed_us: u64) {
    let (elapsed_ms, from_ms) = (elapsed_us / 1000, engine.settings.latency_threshold_ms);
    if from_ms > 0 && elapsed_ms >= from_ms {
        engine.stats.latency_monitor.add(kind, Sample { unix_s: engine.now().unix_s(), elapsed_ms });
    }
}

#[cold]
fn log_slow(engine: &mut Engine, session: SessionId, id: CommandId, request: Request<'_>, elapsed_us: u64) {
    let command = engine.table.entry(id).command;
    let most = engine.settings.slow_log_entries;
    if command.flags.has(Flags::SKIP_SLOWLOG) || most == 0 {
        return;
    }
    // Commands that a script calls have no client in the log.
    let client = engine.sessions.get(session).filter(|_| !engine.scripts.is_any_running());
    let entry = SlowCommand {
        number: 0,
        unix_s: engine.now().unix_s(),
        elapsed_us,
        words: kept_words(request, command.secrets),
        address: client.map(|client| client.origin.address.clone()).unwrap_or_default(),
        client_name: client.map(|client| client.name.clone()).unwrap_or_default(),
    };
    engine.stats.slow_log.add(entry, most);
}
