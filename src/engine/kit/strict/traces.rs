//! What commands did to keys, as far as rules ask later: who wrote a key first, whether it was ever trimmed.
//!
//! A trace is of a name, not of what the name holds: a queue that is empty now and then has been drained all the same.
//! Rolling back to a snapshot forgets what was traced since.
//!
//! Costs: an entry in a sorted map for each key that is written, for up to [`MOST_KEYS`] keys; further ones are not
//! traced.

use std::collections::BTreeMap;

use super::CheckedCommand;
use crate::engine::{Flags, KeyFlags};

/// Of so many keys there are traces.
const MOST_KEYS: usize = 100_000;

/// What was done to keys since the rules hold.
#[derive(Debug, Default)]
pub struct Traces {
    keys: BTreeMap<(usize, Box<[u8]>), Trace>,
}

/// What was done to a key.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The first command that gave it data.
    pub written: Option<KeyWrite>,
    /// The first that added to what it held.
    pub grown: Option<KeyWrite>,
    /// When something was first taken out of it, or it was held to a length.
    trimmed: Option<u64>,
    /// When its deadline was taken away.
    kept: Option<u64>,
}

/// A command that did something to a key.
#[derive(Clone, Debug)]
pub struct KeyWrite {
    /// How many snapshots there had been.
    age: u64,
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

    /// Whether it is to live on: its deadline was taken away.
    pub fn is_kept(&self) -> bool {
        self.kept.is_some()
    }
}

impl Traces {
    /// What was done to a key.
    pub fn of(&self, database: usize, key: &[u8]) -> Option<&Trace> {
        self.keys.get(&(database, key.into()))
    }

    /// All keys to which something was done, in their order.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &[u8], &Trace)> {
        self.keys.iter().map(|((database, key), trace)| (*database, &**key, trace))
    }

    /// Notes a command that is about to run, after so many snapshots.
    pub(super) fn note(&mut self, checked: &CheckedCommand<'_>, age: u64, client_name: &[u8]) {
        let flags = checked.command.flags;
        // That is "written to", not "made larger": subcommands are about a stream's groups.
        let gives = flags.has(Flags::DENYOOM) && !checked.name.contains('|');
        for (key, access) in checked.keys.iter().filter(|_| flags.has(Flags::WRITE)) {
            let place = (checked.database, Box::from(*key));
            if self.keys.len() >= MOST_KEYS && !self.keys.contains_key(&place) {
                continue;
            }
            let trace = self.keys.entry(place).or_default();
            let write = || KeyWrite {
                age,
                client: checked.session.number,
                client_name: client_name.to_vec(),
                command: checked.name.to_owned(),
            };
            let takes = access.has(KeyFlags::DELETE) && !access.has(KeyFlags::RM);
            if takes || checked.is_bounded {
                trace.trimmed.get_or_insert(age);
            }
            if gives && !takes {
                trace.written.get_or_insert_with(write);
            }
            if gives && !takes && access.has(KeyFlags::RW) {
                trace.grown.get_or_insert_with(write);
            }
            if checked.name == "persist" {
                trace.kept.get_or_insert(age);
            }
        }
    }

    /// Forgets what was noted since there were so many snapshots.
    pub(super) fn forget_since(&mut self, age: u64) {
        for trace in self.keys.values_mut() {
            trace.written.take_if(|write| write.age >= age);
            trace.grown.take_if(|write| write.age >= age);
            trace.trimmed.take_if(|then| *then >= age);
            trace.kept.take_if(|then| *then >= age);
        }
        self.keys.retain(|_, trace| {
            let is_marked = trace.trimmed.is_some() || trace.kept.is_some();
            is_marked || trace.written.is_some() || trace.grown.is_some()
        });
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.keys.clear();
    }
}
