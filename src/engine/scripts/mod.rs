//! Scripts and functions: the cached and loaded ones, the running one, and its calls of commands.
//!
//! In this module, "script" includes functions.
//!
//! A script is one step: no other client's command runs within it, blocked clients are served after it, and time stands
//! still for it: keys exist or have expired as when it began, and TIME returns that moment. If it takes longer than
//! `busy-reply-threshold` it is suspended between two instructions again and again, so that other clients get the
//! reply that the server is busy, and can kill the script if it has changed nothing yet.
//!
//! Scripts and functions have separate virtual machines, so that scripts cannot reach the state of libraries. A virtual
//! machine is moved out of the engine while it runs, since its script calls back into the engine.

mod cache;
mod calls;
mod functions;
mod load;
mod run;

use std::fmt;
use std::sync::Arc;

use crate::engine::{CommandId, Engine, Error, Flags, Now, SessionId};
use crate::resp::{Protocol, Request, Requests};
use crate::script::{ConvertedReply, Drand48, Function, Header, LuaVm, Words};

pub(in crate::engine) use cache::SavedScripts;
pub use cache::{Cache, CachedScript, Digest};
pub use functions::{FunctionRegistry, Functions, Library};
pub use load::Policy;
pub use run::{Call, FunctionCall};

/// All scripts and functions, and the running one.
#[derive(Debug, Default)]
pub struct Scripts {
    /// The script cache.
    pub cache: Cache,
    /// The libraries of functions.
    pub functions: Functions,
    vm: Option<Box<LuaVm>>,
    /// A buffer for the requests of called commands.
    words: Option<Box<Words>>,
    /// A buffer for large replies of scripts.
    converted_reply: Option<Box<ConvertedReply>>,
    running: Option<Running>,
}

/// The running script, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A script (EVAL).
    Script,
    /// A function of a library (FCALL).
    Function,
}

/// The name of the running script.
#[derive(Clone, Debug)]
enum Name {
    Script(Digest),
    Function(Arc<Function>),
}

impl Name {
    fn kind(&self) -> Kind {
        match self {
            Name::Script(_) => Kind::Script,
            Name::Function(_) => Kind::Function,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Script(digest) => formatter.write_str(&digest.to_text()),
            Name::Function(function) => formatter.write_str(&function.name),
        }
    }
}

/// A function that takes too long, for FUNCTION STATS.
#[derive(Clone, Copy, Debug)]
pub struct BusyFunction<'s> {
    /// The name of the function.
    pub name: &'s str,
    /// The request that called it.
    pub request: Request<'s>,
    /// When it began, in microseconds of the world's own clock.
    pub started_us: u64,
}

/// The running script.
#[derive(Debug)]
struct Running {
    session: SessionId,
    command: CommandId,
    /// The name of the script in errors.
    name: Name,
    /// It was called by a read-only command.
    is_read_only: bool,
    /// Its first line allows it to run while memory is short.
    allows_oom: bool,
    /// It called a command that writes, so it cannot be killed any more.
    has_written: bool,
    /// The protocol of the replies that it gets.
    protocol: Protocol,
    random: Drand48,
    /// The moment of all its commands, from its first instruction to its last.
    now: Now,
    /// The moment that TIME returns: constant until the script takes too long, then that of its last turn, so that a
    /// script which loops until some time ends.
    shown: Now,
    /// The database that its client has selected, to be restored at the end.
    database: usize,
    /// The bytes that it has logged in this turn.
    logged_bytes: usize,
    /// When it began and when its turn began, in microseconds of the world's own clock.
    started_us: u64,
    turn_us: u64,
    /// Set when it was first suspended.
    is_busy: bool,
    /// The request that called it, saved when it is suspended.
    words: Requests,
    /// A client has killed it.
    is_killed: bool,
    /// Its client has disconnected.
    is_detached: bool,
    /// The transaction that it is part of.
    outer: Option<Outer>,
    /// The part of the reply that is written before it ends.
    partial: Vec<u8>,
}

/// A transaction that continues when a suspended script in it has ended.
#[derive(Clone, Copy, Debug)]
struct Outer {
    command: CommandId,
    /// The index in the queue of the request behind the script.
    next: usize,
}

/// The flags of a command that runs a script: those of its row, unless the script's first line says otherwise.
pub fn flags_by(header: Option<&Header>, row: Flags) -> Flags {
    let Some(header) = header.filter(|header| header.is_there) else { return row };
    let said = [
        (!header.no_writes, Flags::WRITE),
        (!header.allow_oom && !header.no_writes, Flags::DENYOOM),
        (header.allow_stale, Flags::STALE),
    ];
    let settled = Flags::WRITE.and(Flags::DENYOOM).and(Flags::STALE).and(Flags::MAY_REPLICATE);
    let said = said.into_iter().filter(|(is_said, _)| *is_said);
    said.fold(row.without(settled), |flags, (_, flag)| flags.and(flag))
}

/// How a command ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// It has replied.
    Answered,
    /// It is blocked.
    Waits(Box<crate::engine::Block>),
    /// It is a script, or a transaction with one in it, that was suspended.
    Rests,
    /// It has called the engine's host.
    CallsHost,
}

impl Scripts {
    /// True while a script runs.
    pub fn is_any_running(&self) -> bool {
        self.running.is_some()
    }

    /// True while a script that takes too long is suspended.
    pub fn is_busy(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.is_busy)
    }

    /// Saves the request of the suspended script, unless it is saved already.
    pub(super) fn keep_request(&mut self, request: Request<'_>) {
        if let Some(running) = self.running.as_mut().filter(|running| running.words.is_empty()) {
            running.words.push(request);
        }
    }

    /// True while a script of this session is suspended.
    pub(super) fn is_busy_with(&self, session: SessionId) -> bool {
        self.running.as_ref().is_some_and(|running| running.is_busy && running.session == session)
    }

    /// Records that the client of the suspended script has disconnected; false when there is no such script.
    pub(super) fn detach(&mut self, session: SessionId) -> bool {
        let running = self.running.as_mut().filter(|running| running.is_busy && running.session == session);
        running.map(|running| running.is_detached = true).is_some()
    }

    /// Kills the script that takes too long, if it is of that kind.
    ///
    /// # Errors
    /// There is no such script, it has changed data, or it is of the other kind.
    pub fn kill(&mut self, kind: Kind) -> Result<(), Error> {
        let running = self.running.as_mut().filter(|running| running.is_busy).ok_or(Error::NotBusy)?;
        if running.has_written {
            return Err(Error::Unkillable);
        }
        if running.name.kind() != kind {
            return Err(running.name.kind().busy());
        }
        running.is_killed = true;
        Ok(())
    }

    /// The function that takes too long.
    ///
    /// # Errors
    /// A script takes too long instead.
    pub fn busy_function(&self) -> Result<Option<BusyFunction<'_>>, Error> {
        match &self.running {
            Some(running) if running.is_busy => match &running.name {
                Name::Script(_) => Err(Error::Busy),
                Name::Function(function) => {
                    let Some(request) = running.words.iter().next() else { return Ok(None) };
                    Ok(Some(BusyFunction { name: &function.name, request, started_us: running.started_us }))
                }
            },
            _ => Ok(None),
        }
    }

    /// Why a command is refused while a script takes too long.
    pub(super) fn gate(&self, flags: Flags) -> Result<(), Error> {
        match &self.running {
            Some(running) if running.is_busy && !flags.has(Flags::ALLOW_BUSY) => Err(running.name.kind().busy()),
            _ => Ok(()),
        }
    }

    /// Bytes that the interpreters of scripts and functions take.
    pub fn all_machine_bytes(&self) -> usize {
        self.vm_bytes() + self.functions.vm_bytes()
    }

    /// Bytes that sources of scripts and functions take.
    pub fn source_bytes(&self) -> usize {
        self.cache.memory_bytes() + self.functions.registry.memory_bytes()
    }

    /// Bytes that the interpreter of scripts takes.
    pub fn vm_bytes(&self) -> usize {
        self.vm.as_ref().map_or(0, |vm| vm.memory_bytes())
    }

    /// Replaces the cached scripts by those.
    pub(super) fn restore(&mut self, saved: SavedScripts) {
        self.cache.restore(saved, self.vm.as_deref_mut());
    }
}

impl Engine {
    /// Removes all functions.
    pub fn flush_functions(&mut self) {
        self.before_functions_change();
        self.scripts.functions = Functions::default();
    }

    /// The time that TIME returns.
    pub fn shown_now(&self) -> Now {
        self.scripts.running.as_ref().map_or_else(|| self.now(), |running| running.shown)
    }

    /// Removes all scripts.
    pub fn flush_scripts(&mut self) {
        self.before_scripts_change();
        self.scripts.cache = self.scripts.cache.flushed();
        self.scripts.vm = None;
    }
}

impl Kind {
    /// The error for other clients while a script of this kind takes too long.
    fn busy(self) -> Error {
        match self {
            Kind::Script => Error::Busy,
            Kind::Function => Error::BusyFunction,
        }
    }

    /// The command that kills a script of this kind.
    fn killer(self) -> &'static str {
        match self {
            Kind::Script => "SCRIPT KILL",
            Kind::Function => "FUNCTION KILL",
        }
    }
}
