//! Taking a template of an engine, and starting an engine from one.
//!
//! Costs: taking one copies all data. Starting from it copies none: the new engine shares the data, users, scripts and
//! sources until they change, and copies before each first change, a block of 64 KiB or one collection at a time
//! ([`crate::keyspace`]). Libraries of functions are loaded when the first of them is called.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::state::{Databases, Template};

impl Engine {
    /// Takes a template of the engine's present state.
    pub fn template(&self) -> Template {
        Template {
            databases: self.databases.fork(),
            settings: self.settings.clone(),
            users: Arc::clone(&self.acl.users),
            scripts: self.scripts.cache.saved(),
            functions: self.scripts.functions.registry.described(),
            generator: self.generator.clone(),
            strict: self
                .observers
                .kit
                .as_ref()
                .and_then(|kit| kit.strict.as_ref())
                .map(|strict| strict.without_findings()),
            clock: Some((self.now(), self.host.clock_speed())),
        }
    }

    /// Sets a fresh engine, whose clock shows the time of the template if that has one, to the state of the template.
    pub fn begin_as(&mut self, template: &Template) {
        self.databases = Databases::forked(&template.databases);
        self.settings = template.settings.clone();
        self.acl.users = Arc::clone(&template.users);
        self.scripts.restore(template.scripts.clone());
        self.scripts.functions.registry = template.functions.described();
        self.generator = template.generator.clone();
        if let Some(strict) = &template.strict {
            self.observers.kit().strict = Some(Box::new(strict.without_findings()));
        }
        self.stats.startup_bytes = self.databases.memory_bytes() as u64;
    }
}
