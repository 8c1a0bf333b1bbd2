//! Checking commands by the rules of strict mode, and refusing or recording those that break a rule.

use super::{CheckRule, CheckedCommand, Finding, Level, Rule, Script, Setting, Strict, Trace, Violation};
use crate::engine::kit::Source;
use crate::engine::kit::shown::quoted;
use crate::engine::{Command, CommandId, Engine, Flags, KeyFlags, Now, SessionId};
use crate::resp::Request;
use crate::value::View;

/// The length of a command in a finding, in characters.
const SHOWN: usize = 200;

/// An objection to a command, with the level of its rule.
type RuleViolation = (Rule, Level, Violation);

impl Engine {
    /// Sets the level of a rule; `check_rule` finds objections to commands.
    pub fn strict_setting(&mut self, check_rule: CheckRule, rule: Rule) -> &mut Setting {
        self.kit().strict.get_or_insert_with(|| Box::new(Strict::of(check_rule))).setting_mut(rule)
    }

    /// The rules, if any was ever set.
    pub fn strict(&self) -> Option<&Strict> {
        self.observers.kit.as_ref()?.strict.as_deref()
    }

    /// All findings, including those that can only be made now.
    pub fn findings(&self) -> Vec<Finding> {
        let Some(strict) = self.strict() else { return Vec::new() };
        strict.findings.iter().cloned().chain(self.unbounded(strict)).collect()
    }

    /// Checks a request of a client; returns the error line if it is refused.
    pub(in crate::engine::kit) fn check_request(
        &mut self,
        now: Now,
        session: SessionId,
        request: Request<'_>,
    ) -> Option<String> {
        self.strict()?;
        let (id, _) = self.table.resolve(request).ok()?;
        let command = self.table.entry(id).command;
        let client = self.sessions.get(session)?;
        let may_run = self.comes_to_gates(now, session, id, request)
            && self.scripts.gate(command.flags).is_ok()
            && self.may_run(&client.user, id, request).is_ok();
        let is_queued = client.transaction.is_some() && !command.flags.has(Flags::UNQUEUED);
        let source = if is_queued { Source::Queue } else { Source::Client };
        if may_run { self.check_as(session, id, request, source) } else { None }
    }

    /// Checks a command that a transaction or a script runs.
    pub(in crate::engine::kit) fn check_within(
        &mut self,
        session: SessionId,
        request: Request<'_>,
        source: Source,
    ) -> Option<String> {
        self.strict()?;
        let (id, _) = self.table.resolve(request).ok()?;
        self.check_as(session, id, request, source)
    }

    fn check_as(&mut self, session: SessionId, id: CommandId, request: Request<'_>, source: Source) -> Option<String> {
        // The rules are moved out so that they can read the engine.
        let mut strict = self.observers.kit.as_mut()?.strict.take()?;
        let script = std::mem::take(&mut strict.script);
        let checked = self.checked(&script, session, id, request, source);
        let (line, begun) = checked.map_or((None, None), |checked| self.decide(&mut strict, &checked));
        strict.script = begun.unwrap_or(script);
        self.kit().strict = Some(strict);
        line
    }

    /// Notes what stands against a command. Answers with which line it is refused, or else the keys of
    /// the script that is known by it.
    fn decide(&self, strict: &mut Strict, checked: &CheckedCommand<'_>) -> (Option<String>, Option<Script>) {
        let violations = self.violations(strict, checked);
        let refusal = violations.iter().find(|(_, level, _)| *level == Level::Error);
        let line = refusal.map(|(rule, _, violation)| format!("STRICT {}: {}", rule.name(), violation.text));
        violations.into_iter().for_each(|found| strict.add(self.finding(checked, found)));
        if line.is_some() || checked.source == Source::Queue {
            return (line, None);
        }
        let client_name = self.sessions.get(checked.session).map(|client| &*client.name).unwrap_or_default();
        strict.traces.note(checked, self.databases.snapshots.taken(), client_name);
        let keys = || checked.keys.iter().map(|(key, _)| Box::from(*key));
        let script = match checked.declared {
            Some(declared) if checked.first_key.is_none() => {
                keys().next().map(|first| Script { declared: declared.to_vec(), first: Some(first) })
            }
            None if checked.command.is_of_scripts() => {
                Some(Script { declared: keys().collect(), first: keys().next() })
            }
            _ => None,
        };
        (None, script)
    }

    fn checked<'a>(
        &'a self,
        script: &'a Script,
        session: SessionId,
        id: CommandId,
        request: Request<'a>,
        source: Source,
    ) -> Option<CheckedCommand<'a>> {
        let (entry, client) = (self.table.entry(id), self.sessions.get(session)?);
        let first_key = match source {
            Source::Script => script.first.as_deref(),
            Source::Queue => self.observers.watches.first_of(session).or_else(|| {
                let mut requests = client.transaction.as_ref()?.queue.iter();
                requests.find_map(|request| {
                    let (id, _) = self.table.resolve(request).ok()?;
                    keys_of(request, self.table.entry(id).command).next().map(|(key, _)| key)
                })
            }),
            Source::Client | Source::Transaction => None,
        };
        Some(CheckedCommand {
            session,
            source,
            database: client.database,
            command: entry.command,
            name: &entry.name,
            request,
            keys: keys_of(request, entry.command).collect(),
            first_key,
            declared: (source == Source::Script).then_some(&script.declared),
            is_bounded: entry.name == "xadd" && has_bound(request),
        })
    }

    fn violations(&self, strict: &Strict, checked: &CheckedCommand<'_>) -> Vec<RuleViolation> {
        // What a transaction runs was checked when it was sent.
        if checked.source == Source::Transaction {
            return Vec::new();
        }
        let found = |rule: Rule| {
            let level = strict.setting(rule).level;
            let violation =
                if level > Level::Off { (strict.check_rule)(self, strict, rule, checked)? } else { return None };
            let is_allowed = violation.key.as_ref().is_some_and(|key| strict.allows(rule, key));
            (!is_allowed).then_some((rule, level, violation))
        };
        Rule::ALL.into_iter().filter_map(found).collect()
    }

    fn finding(&self, checked: &CheckedCommand<'_>, (rule, level, violation): RuleViolation) -> Finding {
        let words = checked.command.words_shown(checked.request).map(quoted);
        let mut command = words.collect::<Vec<String>>().join(" ");
        if let Some((cut, _)) = command.char_indices().nth(SHOWN) {
            command.truncate(cut);
            command.push_str("...");
        }
        let name = self.sessions.get(checked.session).map(|client| client.name.clone());
        let (client, client_name) = (checked.session.number, name.unwrap_or_default());
        Finding { rule, level, client, client_name, command, text: violation.text, times: 1 }
    }

    /// The collections that were written, and have no bound at present.
    fn unbounded(&self, strict: &Strict) -> Vec<Finding> {
        let level = strict.setting(Rule::UnboundedCollection).level;
        if level == Level::Off {
            return Vec::new();
        }
        let mut findings = Vec::new();
        for (database, key, trace) in strict.traces.all() {
            let Some(write) = trace.grown.as_ref().filter(|_| self.is_unbounded(database, key, trace)) else {
                continue;
            };
            if strict.allows(Rule::UnboundedCollection, key) {
                continue;
            }
            let command = format!("{} {}", write.command.to_uppercase(), quoted(key));
            let text = format!(
                "{} is never trimmed and has no deadline; {}, or allow what is to grow",
                quoted(key),
                self.bounds_of(database, key)
            );
            let (client, client_name) = (write.client, write.client_name.clone());
            findings.push(Finding {
                rule: Rule::UnboundedCollection,
                level,
                client,
                client_name,
                command,
                text,
                times: 1,
            });
        }
        findings
    }

    fn is_unbounded(&self, database: usize, key: &[u8], trace: &Trace) -> bool {
        if trace.is_trimmed() || database >= self.databases.count() {
            return false;
        }
        let data = self.databases.get(database);
        let Some(slot) = data.find(key).filter(|slot| data.deadline(*slot).is_none()) else { return false };
        matches!(data.view(slot), View::List(_) | View::Set(_) | View::Zset(_) | View::Stream(_))
    }

    /// The advice on how to bound a collection.
    fn bounds_of(&self, database: usize, key: &[u8]) -> &'static str {
        let data = self.databases.get(database);
        match data.find(key).map(|slot| data.view(slot)) {
            Some(View::List(_)) => "LTRIM it with each push, or EXPIRE it",
            Some(View::Zset(_)) => "ZREMRANGEBYRANK or ZREMRANGEBYSCORE what is old, or EXPIRE it",
            Some(View::Stream(_)) => "XADD with MAXLEN or MINID, or EXPIRE it",
            _ => "EXPIRE it, as with a key for each hour",
        }
    }

    /// Forgets what was recorded since that number of snapshots: it was rolled back.
    pub(in crate::engine) fn forget_traces_since(&mut self, taken: u64) {
        if let Some(strict) = self.observers.kit.as_mut().and_then(|kit| kit.strict.as_mut()) {
            strict.traces.forget_since(taken);
        }
    }
}

/// Whether an XADD request has a bound; its options precede the id.
fn has_bound(request: Request<'_>) -> bool {
    let is_option = |word: &&[u8]| !word.eq_ignore_ascii_case(b"NOMKSTREAM");
    let first = request.iter().skip(2).find(is_option);
    first.is_some_and(|word| [&b"MAXLEN"[..], b"MINID"].iter().any(|option| word.eq_ignore_ascii_case(option)))
}

/// The keys of a request, and what happens to each.
fn keys_of<'a>(request: Request<'a>, command: &'static Command) -> impl Iterator<Item = (&'a [u8], KeyFlags)> {
    let places = command.keys_of(request).into_iter();
    places.filter_map(move |(place, access)| Some((request.get(place)?, access)))
}
