//! Strict mode: commands that would break in production fail the test.
//!
//! Each [`Rule`] is off, a warning, or an error. A command is checked when it is about to run, by its words and the
//! data at that time; a command that breaks a rule of level error is not run, and the reply is
//! `-STRICT rule: what; do that instead`. A queued command is checked when it is sent, so that EXEC fails; a command
//! of a script, when the script calls it. A command that would be refused anyhow is not checked. A collection without a
//! bound and a redirect that is not followed show at the end alone, and are checked when the findings are read.
//!
//! The checks ([`CheckRule`]) are passed in, as commands themselves are. Findings survive a rollback to a snapshot,
//! like the journal; traces of keys are rolled back with the keys.

pub(in crate::engine) mod redirects;
pub(in crate::engine) mod rule;
pub(in crate::engine) mod traces;

pub use rule::{Level, Rule};
pub(in crate::engine) use traces::WriteEnd;
pub use traces::{Trace, Traces};

use std::fmt::{self, Display};

use self::redirects::Redirects;
use crate::engine::spec::{Command, KeyFlags};
use crate::engine::state::kit::Source;
use crate::engine::state::{Databases, SessionId};
use crate::resp::Request;
use crate::value::glob;

/// The number of different findings that are kept.
pub const MAX_FINDINGS: usize = 1000;

/// The check of a rule: returns its objection to a command, if any.
pub type CheckRule = fn(&Databases, &Strict, Rule, &CheckedCommand<'_>) -> Option<Violation>;

/// A command that is about to run.
#[derive(Debug)]
pub struct CheckedCommand<'a> {
    /// The session that sent it.
    pub session: SessionId,
    /// The source that runs it.
    pub source: Source,
    /// The database that it works in.
    pub database: usize,
    /// The command.
    pub command: &'static Command,
    /// The command's full name in lower case.
    pub name: &'a str,
    /// The words of the request.
    pub request: Request<'a>,
    /// The keys of the request, and the access to each.
    pub keys: Vec<(&'a [u8], KeyFlags)>,
    /// The first key of the script or transaction that it is part of.
    pub first_key: Option<&'a [u8]>,
    /// The keys that were passed to the script which calls it.
    pub declared: Option<&'a [Box<[u8]>]>,
    /// The command adds to a collection and trims it at once.
    pub is_bounded: bool,
}

/// An objection to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The key that it is about, if it is about one.
    pub key: Option<Vec<u8>>,
    /// The fault, and what to do instead; one line.
    pub text: String,
}

/// A finding of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The level of the rule then.
    pub level: Level,
    /// The time when it was first found, in Unix milliseconds: the time of the command, as the feed has it.
    pub time_ms: i64,
    /// The id of the client whose command it was.
    pub client: u64,
    /// The name of that client.
    pub client_name: Vec<u8>,
    /// The command, shortened, without secrets.
    pub command: String,
    /// The fault, and what to do instead.
    pub text: String,
    /// The number of times that it was found.
    pub times: u64,
}

impl Display for Finding {
    /// The finding in one line.
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

/// The setting of a rule.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// The level of the rule.
    pub level: Level,
    /// The limit of the number that it counts.
    pub limit: Option<u64>,
    /// Globs of keys that it ignores.
    pub allowed: Vec<Vec<u8>>,
}

/// The rules in force, and their findings.
#[derive(Debug)]
pub struct Strict {
    pub(in crate::engine) check_rule: CheckRule,
    settings: [Setting; Rule::ALL.len()],
    pub(in crate::engine) findings: Vec<Finding>,
    /// The traces of keys.
    pub traces: Traces,
    /// The keys of the script that runs or ran last.
    pub(in crate::engine) script: Script,
    /// The commands that were sent to another node.
    pub(in crate::engine) redirects: Redirects,
}

/// The keys of a script.
#[derive(Debug, Default)]
pub(in crate::engine) struct Script {
    pub(in crate::engine) declared: Vec<Box<[u8]>>,
    pub(in crate::engine) first: Option<Box<[u8]>>,
}

impl Strict {
    /// The findings so far, without those that can only be made when they are asked for.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// All rules, off.
    pub fn of(check_rule: CheckRule) -> Strict {
        let setting = |rule: Rule| Setting { limit: rule.usual_limit(), ..Setting::default() };
        Strict {
            check_rule,
            settings: Rule::ALL.map(setting),
            findings: Vec::new(),
            traces: Traces::default(),
            script: Script::default(),
            redirects: Redirects::default(),
        }
    }

    /// A copy with the same rules and no findings yet.
    pub(in crate::engine) fn without_findings(&self) -> Strict {
        Strict { settings: self.settings.clone(), ..Strict::of(self.check_rule) }
    }

    /// The setting of a rule.
    pub fn setting(&self, rule: Rule) -> &Setting {
        &self.settings[rule.place()]
    }

    /// The setting of a rule, to change it.
    pub fn setting_mut(&mut self, rule: Rule) -> &mut Setting {
        &mut self.settings[rule.place()]
    }

    /// The limit of the number that a rule counts.
    pub fn limit(&self, rule: Rule) -> u64 {
        self.setting(rule).limit.unwrap_or(u64::MAX)
    }

    fn is_on(&self) -> bool {
        self.settings.iter().any(|setting| setting.level > Level::Off)
    }

    /// True when no rule is on, and there is no finding and no trace.
    pub(in crate::engine) fn is_idle(&self) -> bool {
        !self.is_on() && self.findings.is_empty() && self.settings.iter().all(|setting| setting.allowed.is_empty())
    }

    /// Removes all findings and traces.
    pub fn clear(&mut self) {
        self.findings.clear();
        self.traces.clear();
        self.redirects.clear();
    }

    pub(in crate::engine) fn allows(&self, rule: Rule, key: &[u8]) -> bool {
        self.setting(rule).allowed.iter().any(|pattern| glob::matches(pattern, key, false) || pattern == b"*")
    }

    pub(in crate::engine) fn add(&mut self, finding: Finding) {
        let is_same = |known: &&mut Finding| {
            (known.rule, known.level, known.client, &known.text)
                == (finding.rule, finding.level, finding.client, &finding.text)
        };
        if let Some(known) = self.findings.iter_mut().find(is_same) {
            known.times += 1;
        } else if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }
}
