//! Strict mode, as a test in Rust sets and checks it.

use std::sync::Arc;

use crate::commands::dunlin::strict as rules;
use crate::engine::exec::kit::strict;
use crate::engine::state::kit::{Finding, Level, Rule};
use crate::server::shared::Shared;

/// Strict mode fails a test for what would break in production: [`World::strict`](super::World::strict). All rules are
/// off by default.
///
/// ```
/// use dunlin::{Level, Rule};
///
/// let server = dunlin::Server::start()?;
/// server.strict().set_all(Level::Error).allow(Rule::UnboundedCollection, "jobs:*");
///
/// let mut client = server.client()?;
/// let error = client.call(["MGET", "cart:1", "user:1"]).expect_err("a cluster refuses it too");
/// assert!(error.to_string().starts_with("STRICT cross-slot: cart:1 is in slot"));
/// assert_eq!(server.strict().findings()[0].rule, Rule::CrossSlot);
///
/// server.strict().clear();
/// client.call(["LPUSH", "jobs:email", "job-1"])?;
/// server.strict().assert_none();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Strict<'s> {
    shared: &'s Arc<Shared>,
}

impl<'s> Strict<'s> {
    pub(super) fn of(shared: &'s Arc<Shared>) -> Strict<'s> {
        Strict { shared }
    }

    /// Sets the level of a rule.
    pub fn set(self, rule: Rule, level: Level) -> Strict<'s> {
        rules::set_rules(&mut self.shared.engine().observers, &[rule], level, None);
        self
    }

    /// Sets the level of all rules for an application of any server ([`Rule::GENERAL`]).
    pub fn set_all(self, level: Level) -> Strict<'s> {
        rules::set_rules(&mut self.shared.engine().observers, &Rule::GENERAL, level, None);
        self
    }

    /// Sets the level of the rules for an application of a cluster ([`Rule::CLUSTER`]), so that a test on one server
    /// finds what a cluster would refuse.
    pub fn set_cluster(self, level: Level) -> Strict<'s> {
        rules::set_rules(&mut self.shared.engine().observers, &Rule::CLUSTER, level, None);
        self
    }

    /// Sets the limit of a rule: keys, elements or bytes ([`Rule::usual_limit`]). It has no effect for a rule without
    /// one.
    pub fn limit(self, rule: Rule, limit: u64) -> Strict<'s> {
        let mut engine = self.shared.engine();
        let level = engine.observers.strict().map_or(Level::Off, |strict| strict.setting(rule).level);
        rules::set_rules(&mut engine.observers, &[rule], level, Some(limit));
        drop(engine);
        self
    }

    /// Makes a rule ignore keys that match the glob.
    pub fn allow(self, rule: Rule, pattern: impl AsRef<[u8]>) -> Strict<'s> {
        rules::allow_keys(&mut self.shared.engine().observers, &[rule], pattern.as_ref());
        self
    }

    /// Returns all findings, including those of the present moment: a collection is checked when this is called.
    pub fn findings(self) -> Vec<Finding> {
        strict::findings(&self.shared.engine())
    }

    /// Deletes the findings, and the record of what was done to keys.
    pub fn clear(self) {
        rules::clear_findings(&mut self.shared.engine().observers);
    }

    /// Asserts that no rule has found anything.
    ///
    /// # Panics
    /// There are findings, be they warnings or errors; the message lists them.
    #[track_caller]
    pub fn assert_none(self) {
        let findings = self.findings();
        assert!(findings.is_empty(), "strict mode found {}:\n  {}", findings.len(), listed(&findings));
    }
}

/// The findings, one per line.
fn listed(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ")
}
