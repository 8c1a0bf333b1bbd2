//! Traces of keys for later checks: which command wrote a key first, and whether it was ever trimmed.
//!
//! A trace is of a name, not of what the name holds: a queue that is empty now and then has been drained all the same.
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

    /// Records a command that is about to run; `snapshots` is the number taken so far.
    pub(in crate::engine) fn note(&mut self, checked: &CheckedCommand<'_>, snapshots: u64, client_name: &[u8]) {
        let flags = checked.command.flags;
        // This flag means "written to", not "made larger": subcommands are about a stream's groups.
        let gives = flags.has(Flags::DENYOOM) && !checked.name.contains('|');
        for (key, access) in checked.keys.iter().filter(|_| flags.has(Flags::WRITE)) {
            let place = (checked.database, Box::from(*key));
            if self.keys.len() >= MAX_KEYS && !self.keys.contains_key(&place) {
                continue;
            }
            let trace = self.keys.entry(place).or_default();
            let write = || KeyWrite {
                snapshots_before: snapshots,
                client: checked.session.number,
                client_name: client_name.to_vec(),
                command: checked.name.to_owned(),
            };
            let takes = access.has(KeyFlags::DELETE) && !access.has(KeyFlags::RM);
            if takes || checked.is_bounded {
                trace.trimmed.get_or_insert(snapshots);
            }
            if gives && !takes {
                trace.written.get_or_insert_with(write);
            }
            if gives && !takes && access.has(KeyFlags::RW) {
                trace.grown.get_or_insert_with(write);
            }
            if checked.name == "persist" {
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
