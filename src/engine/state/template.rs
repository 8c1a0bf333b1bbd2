//! A template: the whole state of an engine at a moment, from which other engines start.
//!
//! It holds what a snapshot restores ([`crate::engine::exec::snapshots`]): data, settings, users, scripts, functions,
//! the random generator and the clock; and the rules of strict mode, which tests want in every world. Unlike a snapshot
//! it is complete in itself, and never changes.

use std::sync::Arc;

use crate::acl::Users;
use crate::engine::spec::Now;
use crate::engine::state::Settings;
use crate::engine::state::kit::Strict;
use crate::engine::state::scripts::FunctionRegistry;
use crate::engine::state::scripts::cache::SavedScripts;
use crate::keyspace::Database;

/// The state of an engine at a moment.
#[derive(Debug)]
pub struct Template {
    pub(in crate::engine) databases: Vec<Database>,
    pub(in crate::engine) settings: Settings,
    pub(in crate::engine) users: Arc<Users>,
    pub(in crate::engine) scripts: SavedScripts,
    pub(in crate::engine) functions: FunctionRegistry,
    pub(in crate::engine) generator: fastrand::Rng,
    pub(in crate::engine) strict: Option<Strict>,
    /// The time of its clock, and the speed as a multiple of real time; `None` if what begins with it has the clock of
    /// the server's start.
    pub clock: Option<(Now, f64)>,
}
