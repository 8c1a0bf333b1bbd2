//! Templates: all that an engine is at a moment, to begin others with.
//!
//! What a template holds is what a snapshot brings back (`snapshots`): data, settings, users, scripts, functions,
//! chance and the clock; and the rules of strict mode, as those who test wish them everywhere. Unlike a snapshot it is
//! complete in itself, and never changes.
//!
//! Costs: taking one copies all data. Beginning with it copies none: who does shares the data, users, scripts and
//! sources until they change, and copies what it changes first, a block of 64 KiB or one collection at a time
//! ([`crate::keyspace`]). Libraries of functions are loaded when the first of them is called.

use std::sync::Arc;

use crate::acl::Users;
use crate::engine::kit::Strict;
use crate::engine::scripts::{FunctionRegistry, SavedScripts};
use crate::engine::{Databases, Engine, Now, Settings};
use crate::keyspace::Database;

/// All that an engine was at a moment.
#[derive(Debug)]
pub struct Template {
    databases: Vec<Database>,
    settings: Settings,
    users: Arc<Users>,
    scripts: SavedScripts,
    functions: FunctionRegistry,
    generator: fastrand::Rng,
    strict: Option<Strict>,
    /// What its clock showed.
    pub now: Now,
    /// How many times as fast as time passes that ran.
    pub speed: f64,
}

impl Engine {
    /// All that the engine is now.
    pub fn template(&self) -> Template {
        Template {
            databases: self.databases.fork(),
            settings: self.settings.clone(),
            users: Arc::clone(&self.acl.users),
            scripts: self.scripts.cache.saved(),
            functions: self.scripts.functions.registry.described(),
            generator: self.generator.clone(),
            strict: self.observers.kit.as_ref().and_then(|kit| kit.strict.as_ref()).map(|strict| strict.afresh()),
            now: self.now(),
            speed: self.host.clock_speed(),
        }
    }

    /// Makes a fresh engine, which shows the time of the template, all that the template is.
    pub fn begin_as(&mut self, template: &Template) {
        self.databases = Databases::forked(&template.databases);
        self.settings = template.settings.clone();
        self.acl.users = Arc::clone(&template.users);
        self.scripts.restore(template.scripts.clone());
        self.scripts.functions.registry = template.functions.described();
        self.generator = template.generator.clone();
        if let Some(strict) = &template.strict {
            self.kit().strict = Some(Box::new(strict.afresh()));
        }
        self.stats.startup_bytes = self.databases.memory_bytes() as u64;
    }

    /// Gives a fresh engine those users.
    pub fn begin_with_users(&mut self, users: &Arc<Users>) {
        self.acl.users = Arc::clone(users);
    }
}
