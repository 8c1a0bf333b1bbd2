//! How long commands take: counted by command, and noted where it is long (SLOWLOG, LATENCY).
//!
//! The engine hears what time it is when a request begins and when it has ended. A command within one, of a transaction
//! or a script, is timed by the same clock, which the engine asks for that alone ([`crate::engine::Host::now`]). That
//! everybody is to wait ([`Engine::stall`]) comes true only after the request, and counts as the time of the command
//! that wished it. A command that waits is counted once it has ended, with the time it took to run, not to wait.
//!
//! A look at the clock takes longer than a command that finds a key and answers what it holds. So in a batch,
//! such brief commands are put off: some of them are timed together, by one look at the clock, and what they took
//! is shared out as if each had taken as long as the others. Any other command is timed by itself, from a look of
//! its own on. Where that matters, as the slow log wants to know of less than a millisecond or LATENCY is to tell
//! what took long, none is put off.

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
    /// How long everybody was to wait before.
    pub(super) stalled_us: u64,
}

/// The most commands, and the most different ones, that are timed together.
const TOGETHER: u64 = 16;
const KINDS: usize = 4;
/// A command that takes this long or longer, in microseconds, is always timed by itself.
const LONG_US: u64 = 1000;

/// Commands that have run since the clock was looked at, and are not timed yet: each kind, and how often.
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

/// The beginning of something within a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch {
    started: Now,
    stalled_us: u64,
}

impl Engine {
    /// Tells what time it is.
    #[inline]
    pub fn at(&mut self, now: Now) {
        if self.stats.instant_metrics.is_due(now) {
            self.take_sample(now);
        }
        self.timing.now = now;
    }

    /// The time now, by the host's clock if it has one, to measure what runs within a batch.
    pub(super) fn clock(&self) -> Now {
        self.host.now().unwrap_or(self.timing.now)
    }

    /// Nothing was counted since the moment that was told last.
    #[cold]
    fn take_sample(&mut self, now: Now) {
        self.stats.sample(self.timing.now, now, self.databases.memory_bytes(), self.host.turns());
    }

    /// Requests are about to be run, one after the other.
    #[inline]
    pub fn begin_batch(&mut self, now: Now) {
        self.at(now);
        self.timing.batch_began = now;
        self.stats.commands_before = self.stats.commands;
        self.observers.fast_path = FastPath::Unknown;
        self.timing.put_off = PutOff::default();
    }

    /// They have been run.
    #[inline]
    pub fn end_batch(&mut self) {
        self.catch_up(self.timing.now);
        self.stats.most_commands = self.stats.most_commands.max(self.stats.commands - self.stats.commands_before);
        let elapsed_us = self.timing.now.since_us(self.timing.batch_began);
        self.stats.running_us = self.stats.running_us.saturating_add(elapsed_us);
        self.observers.fast_path = FastPath::NotKept;
    }

    /// A brief command of a batch has run: puts it off. If too many are, it is time for a look at the clock.
    #[inline]
    pub(super) fn put_off(&mut self, id: CommandId) {
        self.timing.running = None;
        if !self.timing.put_off.add(id) {
            self.catch_up(self.timing.now);
            self.timing.put_off.add(id);
        }
    }

    /// Whether brief commands may be put off.
    #[inline]
    pub(super) fn may_put_off(&self) -> bool {
        self.settings.spikes_from_ms == 0 && self.settings.slow_from_us.is_none_or(|from_us| from_us >= LONG_US)
    }

    /// A command comes that is timed by itself: looks at the clock if others were put off, and answers what time it is.
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

    /// Whether the last request is timed with others, and its end is not to be told.
    #[inline]
    pub fn is_timed_later(&self) -> bool {
        self.timing.running.is_none() && self.timing.put_off.count > 0
    }

    /// Shares out the time since the last look at the clock among the commands that were put off and so many `others`
    /// behind them, which may have taken longer; answers what is left for those.
    fn share_out(&mut self, now: Now, others: u64) -> u64 {
        let PutOff { kinds, known, count } = std::mem::take(&mut self.timing.put_off);
        let elapsed_us = now.since_us(self.timing.now);
        let parts = count + others;
        let shared_us = if others == 0 { elapsed_us } else { elapsed_us.min(parts) };
        // What does not divide evenly makes some of them a microsecond longer.
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

    /// Tells that a request is done, so that its time can be counted.
    pub fn finish(&mut self, now: Now, request: Request<'_>) {
        if self.timing.put_off.count > 0 {
            return self.finish_with_others(now, request);
        }
        self.at(now);
        let Some(running) = self.timing.running.take() else { return };
        // Where nobody waits, as time stands still, it is the wish that counts.
        let stalled_us = self.timing.stalled_us - running.stalled_us;
        let elapsed_us = now.since_us(running.started).max(stalled_us);
        match self.observers.waiting.get_mut(running.session).filter(|wait| wait.command == running.command) {
            Some(wait) => wait.spent_us = wait.spent_us.saturating_add(elapsed_us),
            None => self.note_time(running.session, running.command, request, elapsed_us),
        }
    }

    /// Like [`Engine::finish`], for a command that ran behind others whose time was put off.
    fn finish_with_others(&mut self, now: Now, request: Request<'_>) {
        let elapsed_us = self.share_out(now, 1);
        self.at(now);
        if let Some(running) = self.timing.running.take() {
            self.note_time(running.session, running.command, request, elapsed_us);
        }
    }

    /// Tells that the clock was moved while a command ran, which did not take that long.
    pub fn jump(&mut self, now: Now) {
        (self.timing.now, self.timing.batch_began) = (now, now);
        self.stats.instant_metrics.forget();
        if let Some(running) = &mut self.timing.running {
            running.started = now;
        }
    }

    /// The command that a request named and that runs.
    pub(super) fn running_command(&self) -> Option<CommandId> {
        self.timing.running.map(|running| running.command)
    }

    /// Has everybody wait (DEBUG SLEEP).
    pub fn stall(&mut self, stall_us: u64) {
        self.timing.stalled_us = self.timing.stalled_us.saturating_add(stall_us);
        self.effects.push(Effect::Stall(stall_us));
    }

    /// How long everybody is to wait when the command that runs has ended.
    pub(super) fn coming_stall_us(&self) -> u64 {
        self.timing.running.map_or(0, |running| self.timing.stalled_us - running.stalled_us)
    }

    /// Begins to time something within a request.
    pub(super) fn start_timer(&self) -> Stopwatch {
        Stopwatch { started: self.clock(), stalled_us: self.timing.stalled_us }
    }

    /// The time since then, in microseconds.
    pub(super) fn elapsed_us(&self, watch: Stopwatch) -> u64 {
        self.clock().since_us(watch.started).saturating_add(self.timing.stalled_us - watch.stalled_us)
    }

    /// Counts the time that a command took.
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

    /// Notes that something held everybody up, if it took long enough.
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
        // What a script calls, nobody in particular has called.
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
