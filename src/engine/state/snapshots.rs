//! The stack of snapshots: what each one keeps to bring back ([`crate::engine::exec::snapshots`]).
//!
//! Users and sources are shared until they change: the first change of a user, script or function since the last
//! snapshot copies the list of them all, without their contents.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::acl::Users;
use crate::engine::cluster::NodeId;
use crate::engine::spec::{KitError, Now, shown};
use crate::engine::state::Settings;
use crate::engine::state::scripts::cache::SavedScripts;
use crate::keyspace::KeyOrder;

/// All snapshots, the oldest first.
#[derive(Debug, Default)]
pub struct Snapshots {
    pub(in crate::engine) all: Vec<Snapshot>,
    /// The number of snapshots ever taken.
    pub(in crate::engine) taken: u64,
}

/// The state at one moment, except the data.
#[derive(Debug)]
pub(in crate::engine) struct Snapshot {
    pub(in crate::engine) name: Box<[u8]>,
    /// The number of snapshots taken so far, including this one.
    pub(in crate::engine) number: u64,
    pub(in crate::engine) settings: Box<Settings>,
    pub(in crate::engine) users: Arc<Users>,
    pub(in crate::engine) generator: fastrand::Rng,
    /// The hash function of each database, which fixes the order of its keys.
    pub(in crate::engine) orders: Arc<[KeyOrder]>,
    /// Whether no choice was left to the system ([`crate::engine::Engine::seed`]).
    pub(in crate::engine) is_deterministic: bool,
    pub(in crate::engine) now: Now,
    pub(in crate::engine) speed: f64,
    /// The part that the server had in its cluster, if it is a node of one.
    pub(in crate::engine) part: Option<Part>,
    /// The scripts as they were; saved when they first change.
    pub(in crate::engine) scripts: Option<SavedScripts>,
    /// The sources of functions as they were; saved when they first change.
    pub(in crate::engine) functions: Option<Vec<Arc<[u8]>>>,
}

/// The part of a node in its cluster.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::engine) struct Part {
    pub(in crate::engine) primary: Option<NodeId>,
    pub(in crate::engine) slots: Vec<RangeInclusive<u16>>,
}

impl Snapshots {
    pub(in crate::engine) fn place(&self, name: &[u8]) -> Result<usize, KitError> {
        let found = self.all.iter().position(|snapshot| *snapshot.name == *name);
        found.ok_or_else(|| KitError::NoSnapshot(shown(name)))
    }

    /// The number of snapshots ever taken. An event recorded with that number or a higher one came after that snapshot.
    pub(in crate::engine) fn taken(&self) -> u64 {
        self.taken
    }

    /// The names of the snapshots, the oldest first.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.all.iter().map(|snapshot| &*snapshot.name)
    }
}
