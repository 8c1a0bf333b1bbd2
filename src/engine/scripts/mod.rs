//! Scripts: which ones are kept, the one that runs, and how it reaches commands.
//!
//! A script is one step: nobody else's command runs within it, blocked clients are served after it, and time stands still
//! for it. If it takes longer than `busy-reply-threshold` it is put aside between two instructions again and again, so
//! that others can be told that the server is busy, and can end it if it has changed nothing yet.
//!
//! The machine is taken out of the engine while it runs, since its script calls the engine back.

mod cache;
mod calls;
mod run;

use crate::engine::{CommandId, Error, Flags, Now, SessionId};
use crate::resp::Protocol;
use crate::script::{Chance, Machine, Words};

pub use cache::{Cache, Digest, Kept};
pub use run::Call;

/// What the engine knows of scripts.
#[derive(Debug, Default)]
pub struct Scripts {
    /// Those that were sent before.
    pub cache: Cache,
    machine: Option<Box<Machine>>,
    /// What calls of commands are put together in.
    words: Words,
    running: Option<Running>,
}

/// The script that runs.
#[derive(Debug)]
struct Running {
    session: SessionId,
    command: CommandId,
    /// The name that errors tell.
    name: Digest,
    /// It was called by a command that does not write.
    is_read_only: bool,
    /// It called a command that writes, so it cannot be ended any more.
    has_written: bool,
    /// The protocol in which it is answered.
    protocol: Protocol,
    chance: Chance,
    /// The moment at which it runs, from its first instruction to its last.
    now: Now,
    /// The database in which its client is found again.
    database: usize,
    /// When it began and when its turn began, by the world's own clock, in microseconds.
    started_us: u64,
    turn_us: u64,
    /// Set when it was first put aside.
    is_busy: bool,
    /// Somebody wants it to end.
    is_killed: bool,
    /// Its client is gone.
    is_orphan: bool,
    /// The transaction that it is part of.
    outer: Option<Outer>,
    /// What is answered once it has ended, as far as it is written.
    partial: Vec<u8>,
}

/// A transaction that goes on when a script in it has ended.
#[derive(Clone, Copy, Debug)]
struct Outer {
    command: CommandId,
    /// The place in the queue of the request behind the script.
    next: usize,
}

/// How a command ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// It has answered.
    Answered,
    /// It waits.
    Waits(crate::engine::Block),
    /// It is a script, or a transaction with one in it, that was put aside.
    Rests,
}

impl Scripts {
    /// True while a script runs that takes too long.
    pub fn is_busy(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.is_busy)
    }

    /// True while a script of this session runs that takes too long.
    pub(super) fn is_busy_with(&self, session: SessionId) -> bool {
        self.running.as_ref().is_some_and(|running| running.is_busy && running.session == session)
    }

    /// Notes that the client of the script that rests is gone; false when there is no such script.
    pub(super) fn orphan(&mut self, session: SessionId) -> bool {
        let running = self.running.as_mut().filter(|running| running.is_busy && running.session == session);
        running.map(|running| running.is_orphan = true).is_some()
    }

    /// Has the script end that takes too long.
    ///
    /// # Errors
    /// There is none, or it has changed data.
    pub fn kill(&mut self) -> Result<(), Error> {
        let running = self.running.as_mut().filter(|running| running.is_busy).ok_or(Error::NotBusy)?;
        if running.has_written {
            return Err(Error::Unkillable);
        }
        running.is_killed = true;
        Ok(())
    }

    /// Why a command is refused while a script takes too long.
    pub(super) fn gate(&self, flags: Flags) -> Result<(), Error> {
        if self.is_busy() && !flags.has(Flags::ALLOW_BUSY) { Err(Error::Busy) } else { Ok(()) }
    }

    /// Bytes that the interpreter takes.
    pub fn machine_bytes(&self) -> usize {
        self.machine.as_ref().map_or(0, |machine| machine.memory_bytes())
    }

    /// Forgets all scripts.
    pub fn flush(&mut self) {
        self.cache = Cache::default();
        self.machine = None;
    }
}
