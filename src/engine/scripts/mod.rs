//! Scripts and functions: which ones are kept, the one that runs, and how it reaches commands.
//!
//! Where this module says script, it means a function too.
//!
//! A script is one step: nobody else's command runs within it, blocked clients are served after it, and time stands
//! still for it: keys live or have expired as when it began, and TIME tells that moment. If it takes longer than
//! `busy-reply-threshold` it is put aside between two instructions again and again, so that others can be told that the
//! server is busy, and can end it if it has changed nothing yet.
//!
//! Scripts and functions have a virtual machine each, so that what libraries keep is theirs. A virtual machine is taken
//! out of the engine while it runs, since its script calls the engine back.

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

/// What the engine knows of scripts.
#[derive(Debug, Default)]
pub struct Scripts {
    /// Those that were sent before.
    pub cache: Cache,
    /// Functions.
    pub functions: Functions,
    vm: Option<Box<LuaVm>>,
    /// What calls of commands are put together in.
    words: Option<Box<Words>>,
    /// What a script that returned much is answered.
    converted_reply: Option<Box<ConvertedReply>>,
    running: Option<Running>,
}

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A script that was sent.
    Script,
    /// A function of a library.
    Function,
}

/// What the script that runs is called.
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

/// A function that takes too long.
#[derive(Clone, Copy, Debug)]
pub struct BusyFunction<'s> {
    /// The name of the function.
    pub name: &'s str,
    /// The request that called it.
    pub request: Request<'s>,
    /// When it began, by the world's own clock, in microseconds.
    pub started_us: u64,
}

/// The script that runs.
#[derive(Debug)]
struct Running {
    session: SessionId,
    command: CommandId,
    /// The name that errors tell.
    name: Name,
    /// It was called by a command that does not write.
    is_read_only: bool,
    /// It said that it may run while memory is short.
    allows_oom: bool,
    /// It called a command that writes, so it cannot be ended any more.
    has_written: bool,
    /// The protocol in which it is answered.
    protocol: Protocol,
    random: Drand48,
    /// The moment at which it runs, from its first instruction to its last.
    now: Now,
    /// The moment that TIME tells: the same until the script takes too long, then that of its last turn, so that a
    /// script which waits for a time comes to it.
    shown: Now,
    /// The database in which its client is found again.
    database: usize,
    /// How much it has written into the log in this turn.
    logged_bytes: usize,
    /// When it began and when its turn began, by the world's own clock, in microseconds.
    started_us: u64,
    turn_us: u64,
    /// Set when it was first put aside.
    is_busy: bool,
    /// The request that called it, known when it was put aside.
    words: Requests,
    /// Somebody wants it to end.
    is_killed: bool,
    /// Its client is gone.
    is_detached: bool,
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

/// What a command that runs a script may do: what its row says, unless the script says it in a first line.
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
    /// It has answered.
    Answered,
    /// It waits.
    Waits(Box<crate::engine::Block>),
    /// It is a script, or a transaction with one in it, that was put aside.
    Rests,
    /// It has asked something of the engine's host.
    CallsHost,
}

impl Scripts {
    /// True while a script runs.
    pub fn is_any_running(&self) -> bool {
        self.running.is_some()
    }

    /// True while a script runs that takes too long.
    pub fn is_busy(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.is_busy)
    }

    /// Keeps the request of the script that was put aside, unless that was done before.
    pub(super) fn keep_request(&mut self, request: Request<'_>) {
        if let Some(running) = self.running.as_mut().filter(|running| running.words.is_empty()) {
            running.words.push(request);
        }
    }

    /// True while a script of this session runs that takes too long.
    pub(super) fn is_busy_with(&self, session: SessionId) -> bool {
        self.running.as_ref().is_some_and(|running| running.is_busy && running.session == session)
    }

    /// Notes that the client of the script that rests is gone; false when there is no such script.
    pub(super) fn detach(&mut self, session: SessionId) -> bool {
        let running = self.running.as_mut().filter(|running| running.is_busy && running.session == session);
        running.map(|running| running.is_detached = true).is_some()
    }

    /// Has the script end that takes too long, if it is of that kind.
    ///
    /// # Errors
    /// There is none, it has changed data, or it is of the other kind.
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

    /// Bytes that both interpreters take.
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

    /// Keeps those scripts and no others.
    pub(super) fn restore(&mut self, saved: SavedScripts) {
        self.cache.restore(saved, self.vm.as_deref_mut());
    }
}

impl Engine {
    /// Forgets all functions.
    pub fn flush_functions(&mut self) {
        self.before_functions_change();
        self.scripts.functions = Functions::default();
    }

    /// What time it is, as TIME tells it.
    pub fn shown_now(&self) -> Now {
        self.scripts.running.as_ref().map_or_else(|| self.now(), |running| running.shown)
    }

    /// Forgets all scripts.
    pub fn flush_scripts(&mut self) {
        self.before_scripts_change();
        self.scripts.cache = self.scripts.cache.flushed();
        self.scripts.vm = None;
    }
}

impl Kind {
    /// What everybody is told while one of this kind takes too long.
    fn busy(self) -> Error {
        match self {
            Kind::Script => Error::Busy,
            Kind::Function => Error::BusyFunction,
        }
    }

    /// The command that ends it.
    fn killer(self) -> &'static str {
        match self {
            Kind::Script => "SCRIPT KILL",
            Kind::Function => "FUNCTION KILL",
        }
    }
}
