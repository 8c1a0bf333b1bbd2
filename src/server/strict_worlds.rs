//! Strict mode in all worlds of a server, as `dunlin run --strict` has it.
//!
//! A launcher gives each test a world of its own, which has often ended when the command does. So rules begin with each
//! world, and what they have found is kept here when a world ends.

use parking_lot::Mutex;

use crate::commands::dunlin::strict;
use crate::engine::Engine;
use crate::engine::exec::kit::strict as rules;
use crate::engine::state::Observers;
use crate::engine::state::kit::{Finding, Level, MAX_FINDINGS, Rule};

/// The level of the rules in every world, and the findings of the worlds that have ended.
#[derive(Debug)]
pub(crate) struct StrictWorlds {
    level: Level,
    ended: Mutex<Vec<Finding>>,
}

impl StrictWorlds {
    /// Rules of that level, which have found nothing.
    #[cfg(feature = "program")]
    pub(crate) fn of_level(level: Level) -> StrictWorlds {
        StrictWorlds { level, ended: Mutex::default() }
    }

    /// Sets the rules of a world, unless its template had rules.
    pub(crate) fn begin(&self, observers: &mut Observers) {
        if observers.strict().is_none() {
            strict::set_rules(observers, &Rule::GENERAL, self.level, None);
        }
    }

    /// Keeps the findings of a world that ends.
    pub(crate) fn end(&self, engine: &Engine) {
        let mut ended = self.ended.lock();
        for finding in rules::findings(engine) {
            add(&mut ended, finding);
        }
    }

    /// The findings of the worlds that have ended, and of those given.
    #[cfg(feature = "program")]
    pub(crate) fn findings_with(&self, present: impl IntoIterator<Item = Finding>) -> Vec<Finding> {
        let mut all = self.ended.lock().clone();
        present.into_iter().for_each(|finding| add(&mut all, finding));
        all
    }
}

/// Adds a finding, or its times to those of the same finding of another client.
fn add(findings: &mut Vec<Finding>, finding: Finding) {
    let is_same = |known: &&mut Finding| {
        (known.rule, known.level, &known.command, &known.text)
            == (finding.rule, finding.level, &finding.command, &finding.text)
    };
    if let Some(known) = findings.iter_mut().find(is_same) {
        known.times += finding.times;
    } else if findings.len() < MAX_FINDINGS {
        findings.push(finding);
    }
}
