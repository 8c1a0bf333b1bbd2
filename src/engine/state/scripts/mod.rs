//! The state of scripts and functions: the cached and loaded ones, and the one that runs.
//!
//! In this module, "script" includes functions. Scripts and functions have separate virtual machines, so that scripts
//! cannot reach the state of libraries. [`crate::engine::exec::scripts`] runs them.

pub(in crate::engine) mod cache;
pub(in crate::engine) mod functions;

pub(in crate::engine) use cache::SavedScripts;
pub use cache::{Cache, CachedScript, Digest};
pub use functions::{FunctionRegistry, Functions, Library};

use std::fmt;
use std::sync::Arc;

use crate::engine::spec::{CommandId, Error, Flags, Now};
use crate::engine::state::SessionId;
use crate::resp::{Protocol, Request, Requests};
use crate::script::{ConvertedReply, Drand48, Function, Header, LuaVm, Words};

/// All scripts and functions, and the running one.
#[derive(Debug, Default)]
pub struct Scripts {
    /// The script cache.
    pub cache: Cache,
    /// The libraries of functions.
    pub functions: Functions,
    pub(in crate::engine) vm: Option<Box<LuaVm>>,
    /// A buffer for the requests of called commands.
    pub(in crate::engine) request_buffer: Option<Box<Words>>,
    /// A buffer for large replies of scripts.
    pub(in crate::engine) converted_reply: Option<Box<ConvertedReply>>,
    /// The running script, if any.
    pub(in crate::engine) running: Option<RunningScript>,
    /// What the running command has found of its keys, for the scripts that it runs.
    pub(in crate::engine) sampled_slot: SampledSlot,
}

/// Whether it is a script or a function; each has its own virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptOrFunction {
    /// A script (EVAL).
    Script,
    /// A function of a library (FCALL).
    Function,
}

/// The name of the running script.
#[derive(Clone, Debug)]
pub(in crate::engine) enum Name {
    Script(Digest),
    Function(Arc<Function>),
}

impl Name {
    pub(in crate::engine) fn kind(&self) -> ScriptOrFunction {
        match self {
            Name::Script(_) => ScriptOrFunction::Script,
            Name::Function(_) => ScriptOrFunction::Function,
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
    /// The beginning of the script, in microseconds of the world's own clock.
    pub started_us: u64,
}

/// The slot of the keys of a command that is checked for what a cluster would refuse, and of the script that it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) enum SampledSlot {
    /// It is not checked: it is not sampled, or has counted already.
    #[default]
    Ignored,
    /// It had no key so far.
    Unknown,
    /// All its keys were in this slot.
    Of(u16),
}

/// The running script.
#[derive(Debug)]
pub(in crate::engine) struct RunningScript {
    pub(in crate::engine) session: SessionId,
    pub(in crate::engine) command: CommandId,
    /// The name of the script in errors.
    pub(in crate::engine) name: Name,
    /// The script was called by a read-only command.
    pub(in crate::engine) is_read_only: bool,
    /// The script's first line allows it to run while memory is short.
    pub(in crate::engine) allows_oom: bool,
    /// It may access keys in several slots of a cluster: its first line says so, or says nothing.
    pub(in crate::engine) allows_cross_slot: bool,
    /// The slot of the keys that it was given, or that it accessed first.
    pub(in crate::engine) hash_slot: Option<u16>,
    /// The slot of the keys of its last command, or of those that it was given; `None` if there were none.
    pub(in crate::engine) last_slot: Option<u16>,
    /// The slot of its keys, if it is checked for what a cluster would refuse.
    pub(in crate::engine) sampled_slot: SampledSlot,
    /// The script called a command that writes, so it cannot be killed any more.
    pub(in crate::engine) has_written: bool,
    /// Its commands go into the log of changes (`redis.set_repl`).
    pub(in crate::engine) propagates: bool,
    /// The protocol of the replies that it gets.
    pub(in crate::engine) protocol: Protocol,
    pub(in crate::engine) random: Drand48,
    /// The moment of all its commands, from its first instruction to its last.
    pub(in crate::engine) now: Now,
    /// The moment that TIME returns: constant until the script takes too long, then that of its last time slice, so
    /// that a script which loops until some time ends.
    pub(in crate::engine) time_shown: Now,
    /// The database that its client has selected, to be restored at the end.
    pub(in crate::engine) database: usize,
    /// The bytes that it has logged in this time slice.
    pub(in crate::engine) logged_bytes: usize,
    /// When it began and when its time slice began, in microseconds of the world's own clock.
    pub(in crate::engine) started_us: u64,
    pub(in crate::engine) slice_began_us: u64,
    /// Set when it was first suspended.
    pub(in crate::engine) is_busy: bool,
    /// The request that called it, saved when it is suspended.
    pub(in crate::engine) request: Requests,
    /// A client has killed it.
    pub(in crate::engine) is_killed: bool,
    /// The client of the script has disconnected.
    pub(in crate::engine) is_detached: bool,
    /// The transaction that it is part of.
    pub(in crate::engine) transaction: Option<SuspendedTransaction>,
    /// The part of the reply that is written before it ends.
    pub(in crate::engine) partial_reply: Vec<u8>,
}

/// A transaction that continues when a suspended script in it has ended.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct SuspendedTransaction {
    pub(in crate::engine) command: CommandId,
    /// The index in the queue of the request behind the script.
    pub(in crate::engine) next: usize,
}

/// The flags of a command that runs a script: those of its row, unless the script's first line says otherwise.
pub fn flags_by(header: Option<&Header>, row: Flags) -> Flags {
    let Some(header) = header.filter(|header| header.is_there) else { return row };
    let declared = [
        (!header.no_writes, Flags::WRITE),
        (!header.allow_oom && !header.no_writes, Flags::DENYOOM),
        (header.allow_stale, Flags::STALE),
    ];
    let decided = Flags::WRITE.and(Flags::DENYOOM).and(Flags::STALE).and(Flags::MAY_REPLICATE);
    let declared = declared.into_iter().filter(|(is_declared, _)| *is_declared);
    declared.fold(row.without(decided), |flags, (_, flag)| flags.and(flag))
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
    pub(in crate::engine) fn keep_request(&mut self, request: Request<'_>) {
        if let Some(running) = self.running.as_mut().filter(|running| running.request.is_empty()) {
            running.request.push(request);
        }
    }

    /// True while a script of this session is suspended.
    pub(in crate::engine) fn is_busy_with(&self, session: SessionId) -> bool {
        self.running.as_ref().is_some_and(|running| running.is_busy && running.session == session)
    }

    /// Records that the client of the suspended script has disconnected; false when there is no such script.
    pub(in crate::engine) fn detach(&mut self, session: SessionId) -> bool {
        let running = self.running.as_mut().filter(|running| running.is_busy && running.session == session);
        running.map(|running| running.is_detached = true).is_some()
    }

    /// Kills the script that takes too long, if it is of that kind.
    ///
    /// # Errors
    /// There is no such script, it has changed data, or it is of the other kind.
    pub fn kill(&mut self, kind: ScriptOrFunction) -> Result<(), Error> {
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
                    let Some(request) = running.request.iter().next() else { return Ok(None) };
                    Ok(Some(BusyFunction { name: &function.name, request, started_us: running.started_us }))
                }
            },
            _ => Ok(None),
        }
    }

    /// Why a command is refused while a script takes too long.
    pub(in crate::engine) fn gate(&self, flags: Flags) -> Result<(), Error> {
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
    pub(in crate::engine) fn restore(&mut self, saved: SavedScripts) {
        self.cache.restore(saved, self.vm.as_deref_mut());
    }
}

impl ScriptOrFunction {
    /// The error for other clients while a script of this kind takes too long.
    fn busy(self) -> Error {
        match self {
            ScriptOrFunction::Script => Error::Busy,
            ScriptOrFunction::Function => Error::BusyFunction,
        }
    }

    /// The command that kills a script of this kind.
    pub(in crate::engine) fn killer(self) -> &'static str {
        match self {
            ScriptOrFunction::Script => "SCRIPT KILL",
            ScriptOrFunction::Function => "FUNCTION KILL",
        }
    }
}

impl Scripts {
    pub(in crate::engine) fn running(&mut self) -> &mut RunningScript {
        self.running.as_mut().expect("only a script that runs asks")
    }
}
