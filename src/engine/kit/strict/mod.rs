//! Strict mode: what would break in production fails the test.
//!
//! Each [`Rule`] is off, warns, or is an error. A command is checked when it is about to run, by its words and by what
//! the data is then; one against which a rule is an error is not run and answered
//! `-STRICT rule: what; do that instead`. What is put off until EXEC is checked when it is sent, so that it spoils its
//! transaction; what a script calls, when the script calls it. A command that would be refused anyhow is not checked.
//! Only that a collection has no bound shows at the end alone, and is checked when the findings are asked for.
//!
//! What stands against commands ([`CheckRule`]) is handed in, as commands themselves are. Findings stay when snapshots
//! are rolled back to, like the journal; what was noted of keys is forgotten as far as the keys are.

mod check;
mod rule;
mod traces;

use std::fmt::{self, Display};

pub use rule::{Level, Rule};
pub use traces::{Trace, Traces};

use super::Source;
use crate::engine::{Command, Engine, KeyFlags, SessionId};
use crate::resp::Request;
use crate::value::glob;

/// The number of different findings that are kept.
const MOST_FINDINGS: usize = 1000;

/// What stands against a command by a rule, if anything.
pub type CheckRule = fn(&Engine, &Strict, Rule, &CheckedCommand<'_>) -> Option<Violation>;

/// A command that is about to run.
#[derive(Debug)]
pub struct CheckedCommand<'a> {
    /// Who sent it.
    pub session: SessionId,
    /// Who has it run.
    pub source: Source,
    /// The database that it works in.
    pub database: usize,
    /// The command.
    pub command: &'static Command,
    /// Its full name in lower case.
    pub name: &'a str,
    /// Its words.
    pub request: Request<'a>,
    /// Its keys, and what happens to each.
    pub keys: Vec<(&'a [u8], KeyFlags)>,
    /// The first key of the script or transaction that it is part of.
    pub first_key: Option<&'a [u8]>,
    /// The keys that the script which calls it was told of.
    pub declared: Option<&'a [Box<[u8]>]>,
    /// It adds to a collection and holds it to a length at once.
    pub is_bounded: bool,
}

/// What stands against a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The key that it is about, if it is about one.
    pub key: Option<Vec<u8>>,
    /// What, and what to do instead; one line.
    pub text: String,
}

/// Something that a rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// How much it mattered.
    pub level: Level,
    /// The id of the client whose command it was.
    pub client: u64,
    /// The name of that client.
    pub client_name: Vec<u8>,
    /// The command, shortened; what is secret is not in it.
    pub command: String,
    /// What is wrong with it, and what to do instead.
    pub text: String,
    /// How often it was found.
    pub times: u64,
}

impl Display for Finding {
    /// In one line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}: client {}", self.level.name(), self.rule.name(), self.client)?;
        if !self.client_name.is_empty() {
            write!(formatter, " ({})", String::from_utf8_lossy(&self.client_name))?;
        }
        write!(formatter, ": {}", self.command)?;
        if self.times > 1 {
            write!(formatter, " ({} times)", self.times)?;
        }
        write!(formatter, ": {}", self.text)
    }
}

/// How a rule is held.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// How much it matters.
    pub level: Level,
    /// What may be of what it counts.
    pub limit: Option<u64>,
    /// Globs of keys that it does not concern.
    pub allowed: Vec<Vec<u8>>,
}

/// The rules in force, and what they found.
#[derive(Debug)]
pub struct Strict {
    check_rule: CheckRule,
    settings: [Setting; Rule::ALL.len()],
    findings: Vec<Finding>,
    /// What was done to keys.
    pub traces: Traces,
    /// The keys of the script that runs, or ran last.
    script: Script,
}

/// The keys of a script.
#[derive(Debug, Default)]
struct Script {
    declared: Vec<Box<[u8]>>,
    first: Option<Box<[u8]>>,
}

impl Strict {
    /// All rules, off.
    pub fn of(check_rule: CheckRule) -> Strict {
        let setting = |rule: Rule| Setting { limit: rule.usual_limit(), ..Setting::default() };
        Strict {
            check_rule,
            settings: Rule::ALL.map(setting),
            findings: Vec::new(),
            traces: Traces::default(),
            script: Script::default(),
        }
    }

    /// A copy with the same rules and no findings yet.
    pub(in crate::engine) fn afresh(&self) -> Strict {
        Strict { settings: self.settings.clone(), ..Strict::of(self.check_rule) }
    }

    /// How a rule is held.
    pub fn setting(&self, rule: Rule) -> &Setting {
        &self.settings[rule.place()]
    }

    /// The setting of a rule, to change it.
    pub fn setting_mut(&mut self, rule: Rule) -> &mut Setting {
        &mut self.settings[rule.place()]
    }

    /// What may be of what a rule counts.
    pub fn limit(&self, rule: Rule) -> u64 {
        self.setting(rule).limit.unwrap_or(u64::MAX)
    }

    fn is_on(&self) -> bool {
        self.settings.iter().any(|setting| setting.level > Level::Off)
    }

    /// True when there is nothing to check by, to tell or to know.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_on() && self.findings.is_empty() && self.settings.iter().all(|setting| setting.allowed.is_empty())
    }

    /// Forgets what was found, and what was done to keys.
    pub fn clear(&mut self) {
        self.findings.clear();
        self.traces.clear();
    }

    fn allows(&self, rule: Rule, key: &[u8]) -> bool {
        self.setting(rule).allowed.iter().any(|pattern| glob::matches(pattern, key, false) || pattern == b"*")
    }

    fn add(&mut self, finding: Finding) {
        let is_same = |known: &&mut Finding| {
            (known.rule, known.level, known.client, &known.text)
                == (finding.rule, finding.level, finding.client, &finding.text)
        };
        if let Some(known) = self.findings.iter_mut().find(is_same) {
            known.times += 1;
        } else if self.findings.len() < MOST_FINDINGS {
            self.findings.push(finding);
        }
    }
}
