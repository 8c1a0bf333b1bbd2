//! Timing of commands: measures how long each takes, for its statistics, SLOWLOG and LATENCY.
//!
//! The caller passes the time when a request begins and when it has ended. A command within a request, of a transaction
//! or a script, is timed by the same clock, which the engine reads only for that ([`crate::engine::Host::now`]). A
//! stall ([`Engine::stall`]) happens only after the request, and counts as time of the command that caused it. A
//! blocked command is counted once it has ended, with the time that it ran, without the time that it waited.
//!
//! Reading the clock takes longer than a command that finds a key and replies with its value. So in a batch, the
//! timing of such brief commands is deferred: several of them are timed together, by one reading of the clock, and the
//! time is divided evenly among them. Any other command is timed by itself, from a reading of its own on. Where
//! single times matter, as the slow log's threshold is below a millisecond or LATENCY records, nothing is deferred.

use crate::engine::fast_path::FastPath;
use crate::engine::latency_monitor::Sample;
use crate::engine::slow_log::{SlowCommand, kept_words};
use crate::engine::{CommandId, Effect, Engine, Flags, Now, SessionId};
use crate::resp::Request;

/// A command that a request named.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) session: SessionId,
    pub(super) command: CommandId,
    pub(super) started: Now,
    /// The length of all stalls before this command.
    pub(super) stalled_us: u64,
}

/// The most commands, and the most different commands, that are timed together.
const TOGETHER: u64 = 16;
const KINDS: usize = 4;
/// The duration, in microseconds, from which a command is always timed by itself.
const LONG_US: u64 = 1000;

/// Commands that have run since the clock was read last, and are not timed yet: each kind, and how often.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PutOff {
    kinds: [(CommandId, u64); KINDS],
    known: usize,
    count: u64,
}

impl PutOff {
    /// Adds a command if there is room for it.
    #[inline]
    fn add(&mut self, id: CommandId) -> bool {
        if self.count == TOGETHER {
            return false;
        }
        if let Some((_, count)) = self.kinds[..self.known].iter_mut().find(|(kind, _)| *kind == id) {
            *count += 1;
        } else if let Some(kind) = self.kinds.get_mut(self.known) {
            *kind = (id, 1);
            self.known += 1;
        } else {
            return false;
        }
        self.count += 1;
        true
    }
}

/// The start of a measurement within a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch {
    started: Now,
    stalled_us: u64,
}

impl Engine {
    /// Sets the current time.
    #[inline]
    pub fn at(&mut self, now: Now) {
        if self.stats.instant_metrics.is_due(now) {
            self.take_sample(now);
        }
        self.timing.now = now;
    }

    /// The time now, by the host's clock if it has one, to measure parts of a batch.
    pub(super) fn clock(&self) -> Now {
        self.host.now().unwrap_or(self.timing.now)
    }

    /// Takes a sample of the metrics as of the moment set last: nothing was counted since.
    #[cold]
    fn take_sample(&mut self, now: Now) {
        self.stats.sample(self.timing.now, now, self.databases.memory_bytes(), self.host.turns());
    }

    /// Begins a batch: requests are about to be run, one after the other.
    #[inline]
    pub fn begin_batch(&mut self, now: Now) {
        self.at(now);
        self.timing.batch_began = now;
        self.stats.commands_before = self.stats.commands;
        self.observers.fast_path = FastPath::Unknown;
        self.timing.put_off = PutOff::default();
    }

    /// Ends a batch: its requests have been run.
    #[inline]
    pub fn end_batch(&mut self) {
        self.catch_up(self.timing.now);
        self.stats.most_commands = self.stats.most_commands.max(self.stats.commands - self.stats.commands_before);
        let elapsed_us = self.timing.now.since_us(self.timing.batch_began);
        self.stats.running_us = self.stats.running_us.saturating_add(elapsed_us);
        self.observers.fast_path = FastPath::NotKept;
    }

    /// Defers the timing of a brief command of a batch that has run. If too many are deferred, reads the clock.
    #[inline]
    pub(super) fn put_off(&mut self, id: CommandId) {
        self.timing.running = None;
        if !self.timing.put_off.add(id) {
            self.catch_up(self.timing.now);
            self.timing.put_off.add(id);
        }
    }

    /// Whether the timing of brief commands may be deferred.
    #[inline]
    pub(super) fn may_put_off(&self) -> bool {
        self.settings.spikes_from_ms == 0 && self.settings.slow_from_us.is_none_or(|from_us| from_us >= LONG_US)
    }

    /// Before a command that is timed by itself: reads the clock if others are deferred, and returns the time.
    #[inline]
    pub(super) fn catch_up(&mut self, now: Now) -> Now {
        if self.timing.put_off.count == 0 {
            return now;
        }
        let now = self.clock();
        self.share_out(now, 0);
        self.at(now);
        now
    }

    /// Whether the last request is timed with others, so that the caller need not report its end.
    #[inline]
    pub fn is_timed_later(&self) -> bool {
        self.timing.running.is_none() && self.timing.put_off.count > 0
    }

    /// Divides the time since the last reading of the clock among the deferred commands and `others` commands behind
    /// them, which may have taken longer; returns the part of those.
    fn share_out(&mut self, now: Now, others: u64) -> u64 {
        let PutOff { kinds, known, count } = std::mem::take(&mut self.timing.put_off);
        let elapsed_us = now.since_us(self.timing.now);
        let parts = count + others;
        let shared_us = if others == 0 { elapsed_us } else { elapsed_us.min(parts) };
        // The remainder of the division makes some of them a microsecond longer.
        let (each_us, mut longer) = (shared_us / parts, shared_us % parts);
        let mut left_us = elapsed_us;
        for (id, count) in &kinds[..known] {
            let more = longer.min(*count);
            let stats = self.stats.command_mut(*id);
            stats.elapsed_us = stats.elapsed_us.saturating_add(each_us * count + more);
            if self.settings.tracks_latency {
                stats.latency_histogram.add_several(each_us, count - more);
                stats.latency_histogram.add_several(each_us + 1, more);
            }
            longer -= more;
            left_us -= each_us * count + more;
        }
        left_us
    }

    /// Ends a request at that time, and counts how long it took.
    pub fn finish(&mut self, now: Now, request: Request<'_>) {
        if self.timing.put_off.count > 0 {
            return self.finish_with_others(now, request);
        }
        self.at(now);
        let Some(running) = self.timing.running.take() else { return };
        // On a clock that stands still nobody waits: the requested stall counts.
        let stalled_us = self.timing.stalled_us - running.stalled_us;
        let elapsed_us = now.since_us(running.started).max(stalled_us);
        match self.observers.waiting.get_mut(running.session).filter(|wait| wait.command == running.command) {
            Some(wait) => wait.spent_us = wait.spent_us.saturating_add(elapsed_us),
            None => self.note_time(running.session, running.command, request, elapsed_us),
        }
    }

    /// Like [`Engine::finish`], for a command that ran behind others whose timing was deferred.
    fn finish_with_others(&mut self, now: Now, request: Request<'_>) {
        let elapsed_us = self.share_out(now, 1);
        self.at(now);
        if let Some(running) = self.timing.running.take() {
            self.note_time(running.session, running.command, request, elapsed_us);
        }
    }

    /// Corrects the running measurements after a command moved the clock: the command did not take that long.
    pub fn jump(&mut self, now: Now) {
        (self.timing.now, self.timing.batch_began) = (now, now);
        self.stats.instant_metrics.forget();
        if let Some(running) = &mut self.timing.running {
            running.started = now;
        }
    }

    /// The running command that a request named, not one within it.
    pub(super) fn running_command(&self) -> Option<CommandId> {
        self.timing.running.map(|running| running.command)
    }

    /// Makes all clients wait (DEBUG SLEEP).
    pub fn stall(&mut self, stall_us: u64) {
        self.timing.stalled_us = self.timing.stalled_us.saturating_add(stall_us);
        self.effects.push(Effect::Stall(stall_us));
    }

    /// The time that all clients are to wait once the running command has ended.
    pub(super) fn coming_stall_us(&self) -> u64 {
        self.timing.running.map_or(0, |running| self.timing.stalled_us - running.stalled_us)
    }

    /// Starts a measurement within a request.
    pub(super) fn start_timer(&self) -> Stopwatch {
        Stopwatch { started: self.clock(), stalled_us: self.timing.stalled_us }
    }

    /// The time since the start of a measurement, in microseconds.
    pub(super) fn elapsed_us(&self, watch: Stopwatch) -> u64 {
        self.clock().since_us(watch.started).saturating_add(self.timing.stalled_us - watch.stalled_us)
    }

    /// Counts the time that a command took, in its statistics and the logs.
    #[inline]
    pub(super) fn note_time(&mut self, session: SessionId, id: CommandId, request: Request<'_>, elapsed_us: u64) {
        let stats = self.stats.command_mut(id);
        stats.elapsed_us = stats.elapsed_us.saturating_add(elapsed_us);
        if self.settings.tracks_latency {
            stats.latency_histogram.add(elapsed_us);
        }
        if self.settings.slow_from_us.is_some_and(|from_us| elapsed_us >= from_us) {
            self.note_slow(session, id, request, elapsed_us);
        }
        if self.settings.spikes_from_ms > 0 {
            self.record_latency_of(id, elapsed_us);
        }
    }

    #[cold]
    fn record_latency_of(&mut self, id: CommandId, elapsed_us: u64) {
        let is_fast = self.table.entry(id).command.flags.has(Flags::FAST);
        self.record_latency(if is_fast { "fast-command" } else { "command" }, elapsed_us);
    }

    /// Records a delay of all clients in the latency monitor, if it took long enough.
    pub(super) fn record_latency(&mut self, kind: &'static str, elapsed_us: u64) {
        let (elapsed_ms, from_ms) = (elapsed_us / 1000, self.settings.spikes_from_ms);
        if from_ms > 0 && elapsed_ms >= from_ms {
            self.stats.latency_monitor.add(kind, Sample { unix_s: self.now().unix_s(), elapsed_ms });
        }
    }

    #[cold]
    fn note_slow(&mut self, session: SessionId, id: CommandId, request: Request<'_>, elapsed_us: u64) {
        let command = self.table.entry(id).command;
        let most = self.settings.slow_log_entries;
        if command.flags.has(Flags::SKIP_SLOWLOG) || most == 0 {
            return;
        }
        // Commands that a script calls have no client in the log.
        let client = self.sessions.get(session).filter(|_| !self.scripts.is_any_running());
        let entry = SlowCommand {
            number: 0,
            unix_s: self.now().unix_s(),
            elapsed_us,
            words: kept_words(request, command.secrets),
            address: client.map(|client| client.origin.address.clone()).unwrap_or_default(),
            client_name: client.map(|client| client.name.clone()).unwrap_or_default(),
        };
        self.stats.slow_log.add(entry, most);
    }
}
