//! Faults of the disk: rules by which calls of the server's file system fail, or take long.
//!
//! The rules are asked by threads that do not have the engine's lock, so they have a lock of their own, and the engine
//! reaches them through its host. A server without the test kit has none.
//!
//! Not here: the file system that asks them (`server/faulty_storage`).

use std::fmt::{self, Display};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::engine::state::kit::{Trigger, quoted};
use crate::storage::simulated::{CallKind, Fault};
use crate::value::glob;

/// The calls that a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskCalls {
    /// All calls.
    Any,
    /// Reading files, their lengths and the names in a folder.
    Read,
    /// Writing to files, and creating files and folders.
    Write,
    /// Syncing files and folders.
    Sync,
    /// Renaming files.
    Rename,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFailure {
    /// The device reports an error (EIO). A sync of a simulated disk loses what it should have made durable.
    InputOutput,
    /// The disk is full (ENOSPC).
    Full,
    /// The disk takes no more bytes than these; a write at the end takes what fits.
    Space {
        /// The bytes that it still takes.
        bytes: u64,
    },
    /// The call takes this much longer, in real time.
    Delay {
        /// The delay, in milliseconds.
        ms: u64,
    },
}

/// A rule for calls of the file system.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskFault {
    /// The name, by which it is removed.
    pub name: Vec<u8>,
    /// The calls that it matches.
    pub calls: DiskCalls,
    /// A glob that the name of the file or folder matches.
    pub file: Option<Vec<u8>>,
    /// When it fires.
    pub trigger: Trigger,
    /// How the call fails.
    pub failure: DiskFailure,
}

/// The rules of a disk. Clones have the same rules, and belong to the same server.
#[derive(Clone, Debug, Default)]
pub struct DiskFaults {
    rules: Arc<SharedRules>,
    server: Arc<AttachedServer>,
}

#[derive(Debug, Default)]
struct SharedRules {
    rules: Mutex<Rules>,
    /// Notified when rules change, and when a server ends.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Rules {
    /// The rules, each with a number of its own.
    rules: Vec<(u64, DiskFault)>,
    added: u64,
    generator: fastrand::Rng,
}

/// The server that uses the disk.
#[derive(Default)]
struct AttachedServer {
    /// The server ends, so its calls wait no longer.
    is_ending: AtomicBool,
    on_fire: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for AttachedServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AttachedServer").field("is_ending", &self.is_ending).finish_non_exhaustive()
    }
}

impl DiskCalls {
    fn include(self, kind: CallKind) -> bool {
        match self {
            DiskCalls::Any => true,
            DiskCalls::Read => matches!(kind, CallKind::Open | CallKind::Read | CallKind::Length | CallKind::List),
            DiskCalls::Write => matches!(kind, CallKind::Create | CallKind::Write | CallKind::CreateFolder),
            DiskCalls::Sync => matches!(kind, CallKind::Sync | CallKind::SyncFolder),
            DiskCalls::Rename => kind == CallKind::Rename,
        }
    }
}

impl SharedRules {
    fn lock(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFaults {
    /// Returns a handle of these rules for the server that uses the disk next: the end of this one ends no waits there.
    pub fn for_next_server(&self) -> DiskFaults {
        DiskFaults { rules: Arc::clone(&self.rules), server: Arc::default() }
    }

    /// Sets what is called when a rule has fired. It must not wait for the engine.
    pub fn on_fire(&self, notify: impl Fn() + Send + Sync + 'static) {
        // There is one server, which sets it once.
        let _ = self.server.on_fire.set(Box::new(notify));
    }

    /// Ends the waits of this server's calls, now and from now on: it ends.
    pub fn end_waits(&self) {
        self.server.is_ending.store(true, Ordering::Release);
        drop(self.rules.lock());
        self.rules.changed.notify_all();
    }

    /// Adds a rule behind the others; it replaces the one of its name. The seed is for rules that fire by chance.
    pub fn add(&self, rule: DiskFault, seed: u64) {
        let mut state = self.rules.lock();
        state.rules.retain(|(_, other)| other.name != rule.name);
        state.added += 1;
        let number = state.added;
        state.rules.push((number, rule));
        state.generator.seed(seed);
        drop(state);
        self.rules.changed.notify_all();
    }

    /// Removes a rule, and ends its delays; false when there is none of that name.
    pub fn remove(&self, name: &[u8]) -> bool {
        let mut state = self.rules.lock();
        let before = state.rules.len();
        state.rules.retain(|(_, rule)| rule.name != name);
        let was_there = state.rules.len() < before;
        drop(state);
        self.rules.changed.notify_all();
        was_there
    }

    /// Removes all rules, and ends their delays.
    pub fn clear(&self) {
        self.rules.lock().rules.clear();
        self.rules.changed.notify_all();
    }

    /// All rules, in the order in which they are tried.
    pub fn rules(&self) -> Vec<DiskFault> {
        self.rules.lock().rules.iter().map(|(_, rule)| rule.clone()).collect()
    }

    /// The rule of that name.
    pub fn find(&self, name: &[u8]) -> Option<DiskFault> {
        self.rules.lock().rules.iter().find(|(_, rule)| rule.name == name).map(|(_, rule)| rule.clone())
    }

    /// Whether writing or syncing a file may take longer by a rule, and so is not for a thread that serves clients.
    pub fn may_delay(&self) -> bool {
        let is_slow = |rule: &DiskFault| {
            matches!(rule.failure, DiskFailure::Delay { .. })
                && [CallKind::Write, CallKind::Sync].into_iter().any(|kind| rule.calls.include(kind))
        };
        self.rules.lock().rules.iter().any(|(_, rule)| is_slow(rule))
    }

    /// Begins a call: the first rule that fires delays it or makes it fail. Returns how many of `bytes` a write may
    /// write.
    ///
    /// # Errors
    /// That of the rule.
    pub fn begin(&self, kind: CallKind, path: &Path, bytes: usize) -> io::Result<usize> {
        let mut guard = self.rules.lock();
        let state = &mut *guard;
        let mut fired = None;
        for (number, rule) in &mut state.rules {
            if rule.matches(kind, path) && rule.is_due(kind, bytes, &mut state.generator) {
                fired = Some((*number, rule.apply_failure()));
                break;
            }
        }
        let Some((number, failure)) = fired else { return Ok(bytes) };
        if let Some(notify) = self.server.on_fire.get() {
            notify();
        }
        match failure {
            DiskFailure::InputOutput => Err(Fault::InputOutput.error()),
            DiskFailure::Full | DiskFailure::Space { bytes: 0 } => Err(Fault::Full.error()),
            // Less than the write wanted, so it fits.
            DiskFailure::Space { bytes } => Ok(usize::try_from(bytes).unwrap_or(usize::MAX)),
            DiskFailure::Delay { ms } => {
                let waits = |state: &mut Rules| {
                    let is_ending = self.server.is_ending.load(Ordering::Acquire);
                    !is_ending && state.rules.iter().any(|(other, _)| *other == number)
                };
                drop(self.rules.changed.wait_timeout_while(guard, Duration::from_millis(ms), waits));
                Ok(bytes)
            }
        }
    }
}

impl DiskFault {
    fn matches(&self, kind: CallKind, path: &Path) -> bool {
        let name = path.file_name().unwrap_or(path.as_os_str()).as_encoded_bytes();
        self.calls.include(kind) && self.file.as_ref().is_none_or(|pattern| glob::matches(pattern, name, false))
    }

    /// Whether it fires for a call that it matches. While there is space, a write takes of it.
    fn is_due(&mut self, kind: CallKind, bytes: usize, generator: &mut fastrand::Rng) -> bool {
        if let DiskFailure::Space { bytes: left } = &mut self.failure {
            let wanted = if kind == CallKind::Write { bytes as u64 } else { 0 };
            if *left > 0 && wanted <= *left {
                *left -= wanted;
                self.trigger.matched += 1;
                return false;
            }
        }
        self.trigger.is_due(generator)
    }

    /// The failure of the call for which it fires, which takes all space that is left.
    fn apply_failure(&mut self) -> DiskFailure {
        let failure = self.failure;
        if let DiskFailure::Space { bytes } = &mut self.failure {
            *bytes = 0;
        }
        failure
    }
}

impl Display for DiskFault {
    /// The rule in the syntax of DUNLIN FAULT ADD, behind the name.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = match self.calls {
            DiskCalls::Any => "ANY",
            DiskCalls::Read => "READ",
            DiskCalls::Write => "WRITE",
            DiskCalls::Sync => "SYNC",
            DiskCalls::Rename => "RENAME",
        };
        write!(formatter, "DISK {calls} ")?;
        if let Some(pattern) = &self.file {
            write!(formatter, "FILE {} ", quoted(pattern))?;
        }
        write!(formatter, "{}", self.trigger)?;
        match self.failure {
            DiskFailure::InputOutput => formatter.write_str("EIO"),
            DiskFailure::Full => formatter.write_str("ENOSPC"),
            DiskFailure::Space { bytes } => write!(formatter, "SPACE {bytes}"),
            DiskFailure::Delay { ms } => write!(formatter, "DELAY {ms}"),
        }
    }
}
