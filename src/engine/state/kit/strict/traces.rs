//! Traces of keys for later checks: which command wrote a key first, and whether it was ever trimmed.
//!
//! A trace is of a name, not of what the name holds: a queue that is empty now and then has been drained all the same.
//! A command that fails leaves none; one that runs counts as writing to the keys that it has changed, and as trimming
//! its keys even if there was nothing to remove.
//! Rolling back to a snapshot forgets what was traced since.
//!
//! Costs: an entry in a sorted map for each key that is written, for up to [`MAX_KEYS`] keys; further ones are not
//! traced.

use std::collections::BTreeMap;

use crate::engine::spec::{Flags, KeyFlags};
use crate::engine::state::kit::CheckedCommand;

/// The most keys that are traced.
const MAX_KEYS: usize = 100_000;

/// The traces of all keys since rules are in force.
#[derive(Debug, Default)]
pub struct Traces {
    keys: BTreeMap<(usize, Box<[u8]>), Trace>,
    /// The write command that runs at present.
    running: Option<RunningWrite>,
}

/// A write command while it runs: it leaves no trace before it is known whether it failed, and what it changed.
#[derive(Debug)]
struct RunningWrite {
    database: usize,
    keys: Vec<WrittenKey>,
    /// It may give a key data.
    gives: bool,
    /// It clears a deadline.
    keeps: bool,
    write: KeyWrite,
}

/// A key of a write command.
#[derive(Debug)]
struct WrittenKey {
    key: Box<[u8]>,
    access: KeyFlags,
    /// The command removes elements from it.
    takes: bool,
    /// The command removes elements from it, or adds some and trims it at once.
    is_trimmed: bool,
    has_changed: bool,
}

/// The way in which a command ended, as far as it concerns the traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum WriteEnd {
    /// It ran.
    Ran,
    /// The reply is an error.
    Failed,
    /// Its client is blocked: it is taken to write to all its keys in the end.
    Blocked,
}

/// The trace of a key.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The first command that gave it data.
    pub written: Option<KeyWrite>,
    /// The first command that added to its value.
    pub grown: Option<KeyWrite>,
    /// The number of snapshots taken before the first command that removed elements or trimmed it.
    trimmed: Option<u64>,
    /// The number of snapshots taken before the command that cleared its deadline.
    kept: Option<u64>,
}

/// A command that changed a key.
#[derive(Clone, Debug)]
pub struct KeyWrite {
    /// The number of snapshots taken before.
    snapshots_before: u64,
    /// The id of the client.
    pub client: u64,
    /// The name of the client.
    pub client_name: Vec<u8>,
    /// The name of the command, in lower case.
    pub command: String,
}

impl WriteEnd {
    /// The end of a command with this reply.
    pub(in crate::engine) fn of_reply(reply: &[u8]) -> WriteEnd {
        if reply.first() == Some(&b'-') { WriteEnd::Failed } else { WriteEnd::Ran }
    }
}

impl Trace {
    /// Whether it was ever trimmed.
    pub fn is_trimmed(&self) -> bool {
        self.trimmed.is_some()
    }

    /// Whether its deadline was cleared, so that it is meant to last.
    pub fn is_kept(&self) -> bool {
        self.kept.is_some()
    }
}

impl Traces {
    /// The trace of a key.
    pub fn of(&self, database: usize, key: &[u8]) -> Option<&Trace> {
        self.keys.get(&(database, key.into()))
    }

    /// All traced keys, in order.
    pub(in crate::engine) fn all(&self) -> impl Iterator<Item = (usize, &[u8], &Trace)> {
        self.keys.iter().map(|((database, key), trace)| (*database, &**key, trace))
    }

    /// Begins to watch a command that is about to run; `snapshots` is the number taken so far.
    pub(in crate::engine) fn begin(&mut self, checked: &CheckedCommand<'_>, snapshots: u64, client_name: &[u8]) {
        let flags = checked.command.flags;
        self.running = flags.has(Flags::WRITE).then(|| {
            let keys = checked.keys.iter().map(|&(key, access)| {
                let takes = access.has(KeyFlags::DELETE) && !access.has(KeyFlags::RM);
                WrittenKey {
                    key: key.into(),
                    access,
                    takes,
                    is_trimmed: takes || checked.is_bounded,
                    has_changed: false,
                }
            });
            RunningWrite {
                database: checked.database,
                keys: keys.collect(),
                // This flag means "written to", not "made larger": subcommands are about a stream's groups.
                gives: flags.has(Flags::DENYOOM) && !checked.name.contains('|'),
                keeps: checked.name == "persist",
                write: KeyWrite {
                    snapshots_before: snapshots,
                    client: checked.session.number,
                    client_name: client_name.to_vec(),
                    command: checked.name.to_owned(),
                },
            }
        });
    }

    /// Notes that the running command, if it is a write command, has changed a key.
    pub(in crate::engine) fn note_change(&mut self, database: usize, key: &[u8]) {
        if let Some(running) = self.running.as_mut().filter(|running| running.database == database) {
            running
                .keys
                .iter_mut()
                .filter(|written| *written.key == *key)
                .for_each(|written| written.has_changed = true);
        }
    }

    /// Records what the running command has done to its keys.
    pub(in crate::engine) fn end(&mut self, end: WriteEnd) {
        let Some(running) = self.running.take() else { return };
        let snapshots = running.write.snapshots_before;
        for WrittenKey { key, access, takes, is_trimmed, has_changed } in running.keys {
            let is_written = running.gives && !takes && (has_changed || end == WriteEnd::Blocked);
            let has_run = end != WriteEnd::Failed;
            if !(is_written || has_run && (is_trimmed || running.keeps)) {
                continue;
            }
            let place = (running.database, key);
            if self.keys.len() >= MAX_KEYS && !self.keys.contains_key(&place) {
                continue;
            }
            let trace = self.keys.entry(place).or_default();
            if is_trimmed && has_run {
                trace.trimmed.get_or_insert(snapshots);
            }
            if is_written {
                trace.written.get_or_insert_with(|| running.write.clone());
            }
            if is_written && access.has(KeyFlags::RW) {
                trace.grown.get_or_insert_with(|| running.write.clone());
            }
            if running.keeps && has_run {
                trace.kept.get_or_insert(snapshots);
            }
        }
    }

    /// Removes what was recorded since that number of snapshots.
    pub(in crate::engine) fn forget_since(&mut self, snapshots: u64) {
        for trace in self.keys.values_mut() {
            trace.written.take_if(|write| write.snapshots_before >= snapshots);
            trace.grown.take_if(|write| write.snapshots_before >= snapshots);
            trace.trimmed.take_if(|then| *then >= snapshots);
            trace.kept.take_if(|then| *then >= snapshots);
        }
        self.keys.retain(|_, trace| {
            let is_marked = trace.trimmed.is_some() || trace.kept.is_some();
            is_marked || trace.written.is_some() || trace.grown.is_some()
        });
    }

    /// Removes all traces.
    pub(in crate::engine) fn clear(&mut self) {
        self.keys.clear();
    }
}
