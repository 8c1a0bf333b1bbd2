//! The time of an engine: the current moment, the running command, and the commands that are timed later.
//!
//! The caller sets the moment; how commands are timed is in [`crate::engine::exec::timing`].

use crate::engine::spec::{CommandId, Now};
use crate::engine::state::{Pause, SessionId};

/// A command that a request named.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct RunningCommand {
    pub(in crate::engine) session: SessionId,
    pub(in crate::engine) command: CommandId,
    pub(in crate::engine) started: Now,
    /// When the next command of its transaction starts, as the one before has ended.
    pub(in crate::engine) next_starts: Now,
    /// The length of all stalls before this command.
    pub(in crate::engine) stalled_us: u64,
    /// Whether its time counts in the statistics of its command.
    pub(in crate::engine) is_counted: bool,
}

/// The most commands, and the most different commands, that are timed together.
const TOGETHER: u64 = 16;

const KINDS: usize = 4;

/// The duration, in microseconds, from which a command is always timed by itself.
pub(in crate::engine) const LONG_US: u64 = 1000;

/// Commands that have run since the clock was read last, and are not timed yet: each kind, and how often.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Deferred {
    pub(in crate::engine) kinds: [(CommandId, u64); KINDS],
    pub(in crate::engine) known: usize,
    pub(in crate::engine) count: u64,
}

impl Deferred {
    /// Adds a command if there is room for it.
    #[inline]
    pub(in crate::engine) fn add(&mut self, id: CommandId) -> bool {
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

    /// Removes all commands.
    #[inline]
    pub(in crate::engine) fn clear(&mut self) {
        (self.known, self.count) = (0, 0);
    }
}

/// Of this many brief commands of direct calls, one is timed. A prime, so that a loop of a few commands has each of
/// them timed.
const SAMPLE: u64 = 13;

/// The timing of brief commands of direct calls: one in [`SAMPLE`] is timed, and its time counts for the others.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct Sampling {
    /// The current batch is a direct call.
    pub(in crate::engine) is_on: bool,
    /// The commands since the last that was timed.
    untimed: u64,
    /// The time of that command, but a microsecond at most: what delayed it did not delay the others.
    pub(in crate::engine) last_us: u64,
}

impl Sampling {
    /// Counts a command; returns whether it is to be timed.
    #[inline]
    pub(in crate::engine) fn times_next(&mut self) -> bool {
        self.untimed = (self.untimed + 1) % SAMPLE;
        self.untimed == 0
    }
}

/// The start of a measurement within a request.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Stopwatch {
    pub(in crate::engine) started: Now,
    pub(in crate::engine) stalled_us: u64,
}

/// The time of an engine: the current moment, what runs, and what is timed later.
#[derive(Debug)]
pub struct Timing {
    started: Now,
    /// The time of the current request or tick.
    pub(in crate::engine) now: Now,
    /// The command that a request named, while it runs.
    pub(in crate::engine) running: Option<RunningCommand>,
    /// The commands of the batch that are timed later.
    pub(in crate::engine) deferred: Deferred,
    /// Requests were queued since the clock was read last. They are not timed.
    pub(in crate::engine) has_queued: bool,
    /// How brief commands of direct calls are timed.
    pub(in crate::engine) sampling: Sampling,
    /// When the current batch of requests began.
    pub(in crate::engine) batch_began: Now,
    /// The length of all stalls so far.
    pub(in crate::engine) stalled_us: u64,
    /// The pause of clients, if any (CLIENT PAUSE).
    pub(in crate::engine) pause: Pause,
    /// The clock is held: it moves only when a test moves it.
    is_held: bool,
    /// A log of changes is being replayed.
    is_replaying: bool,
    /// The server is a replica, whose keys end when its primary says so.
    is_replica: bool,
    /// How much later than its deadline a key ends, in milliseconds, which follows from these.
    grace_ms: i64,
}

/// The grace while a log of changes is replayed: nothing ends.
const REPLAY_GRACE_MS: i64 = i64::MAX / 2;

/// The grace on a clock that runs: a millisecond is not over before the next begins.
const RUNNING_GRACE_MS: i64 = 1;

impl Timing {
    /// The time of an engine that was created at that moment.
    pub(in crate::engine) fn starting_at(now: Now) -> Timing {
        Timing {
            started: now,
            now,
            running: None,
            deferred: Deferred::default(),
            has_queued: false,
            sampling: Sampling::default(),
            batch_began: now,
            stalled_us: 0,
            pause: Pause::default(),
            is_held: true,
            is_replaying: false,
            is_replica: false,
            grace_ms: 0,
        }
    }

    /// The running command that a request named, not one within it.
    pub(in crate::engine) fn running_command(&self) -> Option<CommandId> {
        self.running.map(|running| running.command)
    }

    /// The time that all clients are to wait once the running command has ended.
    pub(in crate::engine) fn coming_stall_us(&self) -> u64 {
        self.running.map_or(0, |running| self.stalled_us - running.stalled_us)
    }

    /// The pause in force, if any (CLIENT PAUSE).
    pub fn pause(&self) -> &Pause {
        &self.pause
    }

    /// The pause, to start or end it.
    pub fn pause_mut(&mut self) -> &mut Pause {
        &mut self.pause
    }

    /// Sets whether the clock is held, that is moved only by a test. On a held clock a key expires when its deadline is
    /// reached. On a running clock it expires when the deadline has passed, as in Redis: a millisecond is not over
    /// before the next begins, so no key lives for less than its time.
    pub fn hold_time(&mut self, is_held: bool) {
        self.is_held = is_held;
        self.set_grace();
    }

    /// Sets whether a log of changes is being replayed. No key or field ends meanwhile: the log says itself which did.
    pub(in crate::engine) fn set_replaying(&mut self, is_replaying: bool) {
        self.is_replaying = is_replaying;
        self.set_grace();
    }

    /// Sets whether the server is a replica: then it deletes no key and no field by its deadline, and shows none that
    /// is due.
    pub(in crate::engine) fn set_replica(&mut self, is_replica: bool) {
        self.is_replica = is_replica;
    }

    /// Whether nothing that is due is deleted now: during a pause, and on a replica.
    #[inline]
    pub(in crate::engine) fn holds_expiry(&self) -> bool {
        self.is_replica || self.pause.holds(self.now)
    }

    fn set_grace(&mut self) {
        self.grace_ms = match (self.is_replaying, self.is_held) {
            (true, _) => REPLAY_GRACE_MS,
            (false, true) => 0,
            (false, false) => RUNNING_GRACE_MS,
        };
    }

    /// The time when the engine was created.
    pub fn started(&self) -> Now {
        self.started
    }

    /// The latest deadline that ends a key or field now.
    #[inline]
    pub fn due_ms(&self) -> i64 {
        self.now.unix_ms() - self.grace_ms()
    }

    /// The latest deadline that has passed already for a command that sets it, which then deletes instead.
    #[inline]
    pub fn past_ms(&self) -> i64 {
        if self.is_replaying { i64::MIN } else { self.now.unix_ms() }
    }

    /// How much later than its deadline a key ends, in milliseconds.
    #[inline]
    pub(in crate::engine) fn grace_ms(&self) -> i64 {
        self.grace_ms
    }
}
