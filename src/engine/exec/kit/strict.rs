//! Checking commands by the rules of strict mode, and refusing or recording those that break a rule.

use crate::engine::Engine;
use crate::engine::cluster::Health;
use crate::engine::exec::kit::{self, redirects};
use crate::engine::exec::replication::{self, Staleness};
use crate::engine::spec::{Command, CommandId, Flags, KeyFlags};
use crate::engine::state::SessionId;
use crate::engine::state::kit::strict::{Level, Rule, Script, Trace, WriteEnd};
use crate::engine::state::kit::{CheckedCommand, Finding, Source, Strict, Violation, quoted};
use crate::resp::Request;
use crate::value::View;
use crate::value::hash_slot::hash_slot;

/// The length of a command in a finding, in characters.
const SHOWN: usize = 200;

/// An objection to a command, with the level of its rule.
type RuleViolation = (Rule, Level, Violation);

/// All findings, including those that can only be made now.
pub fn findings(engine: &Engine) -> Vec<Finding> {
    let Some(strict) = engine.observers.strict() else { return Vec::new() };
    let time_ms = engine.timing.now.unix_ms();
    let late = unbounded(engine, strict).into_iter().chain(redirects::unhandled(strict, time_ms));
    strict.findings.iter().cloned().chain(late).collect()
}

/// Checks a request of a client; returns the error line if it is refused.
pub(super) fn check_request(engine: &mut Engine, session: SessionId, request: Request<'_>) -> Option<String> {
    engine.observers.strict()?;
    let asked = kit::would_run(engine, session, request)?;
    let is_queued = engine.sessions.get(session)?.transaction.is_some() && !asked.flags.has(Flags::UNQUEUED);
    let source = if is_queued { Source::Queue } else { Source::Client };
    check_as(engine, session, asked.id, request, source)
}

/// Checks a command that a transaction or a script runs.
pub(super) fn check_within(
    engine: &mut Engine,
    session: SessionId,
    request: Request<'_>,
    source: Source,
) -> Option<String> {
    engine.observers.strict()?;
    let (id, _) = engine.table.resolve(request).ok()?;
    check_as(engine, session, id, request, source)
}

/// Records what a command of a transaction or a script has done to its keys.
#[inline]
pub(in crate::engine) fn end_command(engine: &mut Engine, reply: &[u8]) {
    let kit = engine.observers.kit.as_mut();
    if let Some(strict) = kit.and_then(|kit| kit.strict.as_mut()) {
        strict.traces.end(WriteEnd::of_reply(reply));
    }
}

fn check_as(
    engine: &mut Engine,
    session: SessionId,
    id: CommandId,
    request: Request<'_>,
    source: Source,
) -> Option<String> {
    // A rule is about the application, and the page only looks at it.
    if engine.sessions.get(session)?.origin.is_page {
        return None;
    }
    // The rules are moved out so that they can read the engine.
    let mut strict = engine.observers.kit.as_mut()?.strict.take()?;
    let script = std::mem::take(&mut strict.script);
    let checked = checked(engine, &script, session, id, request, source);
    let (line, begun) = checked.map_or((None, None), |checked| decide(engine, &mut strict, &checked));
    strict.script = begun.unwrap_or(script);
    engine.observers.kit().strict = Some(strict);
    line
}

/// Records the violations of a command. Returns the error line if it is refused, or else the script keys to remember,
/// if the command runs a script or is the first one in it that has a key.
fn decide(engine: &Engine, strict: &mut Strict, checked: &CheckedCommand<'_>) -> (Option<String>, Option<Script>) {
    let violations = violations(engine, strict, checked);
    let refusal = violations.iter().find(|(_, level, _)| *level == Level::Error);
    let line = refusal.map(|(rule, _, violation)| format!("STRICT {}: {}", rule.name(), violation.text));
    violations.into_iter().for_each(|found| strict.add(finding(engine, checked, found)));
    if line.is_some() || checked.source == Source::Queue {
        return (line, None);
    }
    let client_name = engine.sessions.get(checked.session).map(|client| &*client.name).unwrap_or_default();
    strict.traces.begin(checked, engine.databases.snapshots.taken(), client_name);
    let keys = || checked.keys.iter().map(|(key, _)| Box::from(*key));
    let script = match checked.declared {
        Some(declared) if checked.first_key.is_none() => {
            keys().next().map(|first| Script { declared: declared.to_vec(), first: Some(first) })
        }
        None if checked.command.is_of_scripts() => Some(Script { declared: keys().collect(), first: keys().next() }),
        _ => None,
    };
    (None, script)
}

fn checked<'a>(
    engine: &'a Engine,
    script: &'a Script,
    session: SessionId,
    id: CommandId,
    request: Request<'a>,
    source: Source,
) -> Option<CheckedCommand<'a>> {
    let (entry, client) = (engine.table.entry(id), engine.sessions.get(session)?);
    let first_key = match source {
        Source::Script => script.first.as_deref(),
        Source::Queue => engine.observers.watches.first_of(session).or_else(|| {
            let mut requests = client.transaction.as_ref()?.queue.iter();
            requests.find_map(|request| {
                let (id, _) = engine.table.resolve(request).ok()?;
                keys_of(request, engine.table.entry(id).command).next().map(|(key, _)| key)
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

fn violations(engine: &Engine, strict: &Strict, checked: &CheckedCommand<'_>) -> Vec<RuleViolation> {
    // The commands of a transaction were checked when they were sent.
    if checked.source == Source::Transaction {
        return Vec::new();
    }
    let found = |rule: Rule| {
        let level = strict.setting(rule).level;
        let violation = match rule {
            _ if level == Level::Off => return None,
            Rule::StaleRead => stale_read(engine, checked)?,
            _ => (strict.check_rule)(&engine.databases, strict, rule, checked)?,
        };
        let is_allowed = violation.key.as_ref().is_some_and(|key| strict.allows(rule, key));
        (!is_allowed).then_some((rule, level, violation))
    };
    Rule::ALL.into_iter().filter_map(found).collect()
}

fn finding(engine: &Engine, checked: &CheckedCommand<'_>, (rule, level, violation): RuleViolation) -> Finding {
    let command = shown_command(checked.command, checked.request);
    let name = engine.sessions.get(checked.session).map(|client| client.name.clone());
    let (client, client_name) = (checked.session.number, name.unwrap_or_default());
    let time_ms = engine.timing.now.unix_ms();
    Finding { rule, level, time_ms, client, client_name, command, text: violation.text, times: 1 }
}

/// A command as a finding shows it: shortened, and without secrets.
pub(super) fn shown_command(command: &Command, request: Request<'_>) -> String {
    let words = command.redacted_words(request).map(quoted);
    let mut shown = words.collect::<Vec<String>>().join(" ");
    if let Some((cut, _)) = shown.char_indices().nth(SHOWN) {
        shown.truncate(cut);
        shown.push_str("...");
    }
    shown
}

/// A read at a replica of a key that its primary has changed, and the replica has not yet.
fn stale_read(engine: &Engine, checked: &CheckedCommand<'_>) -> Option<Violation> {
    let client = engine.sessions.get(checked.session)?;
    let view = engine.peers.cluster.as_ref()?;
    let is_served = |key| view.owner(hash_slot(key)).map(|owner| owner.id) == view.myself().primary;
    let is_refused = view.health() != Health::Ok || replication::is_stale(engine);
    if !client.reads_replicas || checked.command.flags.has(Flags::WRITE) || is_refused {
        return None;
    }
    if !checked.keys.iter().all(|(key, _)| is_served(key)) {
        return None;
    }
    let (key, why) = checked.keys.iter().find_map(|(key, _)| Some((key, replication::staleness(engine, key)?)))?;
    let text = match why {
        Staleness::Disconnected => "this replica is disconnected from its primary, and may lack writes".to_owned(),
        Staleness::Unapplied(command) => {
            let write = format!("{} {}", command.to_uppercase(), quoted(key));
            format!("this replica has not applied {write} yet, which its primary has taken")
        }
    };
    let text = format!("{text}; read it at the primary, or have the writer WAIT for the replicas");
    Some(Violation { key: Some(key.to_vec()), text })
}

/// The collections that were written, and have no bound at present.
fn unbounded(engine: &Engine, strict: &Strict) -> Vec<Finding> {
    let level = strict.setting(Rule::UnboundedCollection).level;
    if level == Level::Off {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (database, key, trace) in strict.traces.all() {
        let Some(write) = trace.grown.as_ref().filter(|_| is_unbounded(engine, database, key, trace)) else {
            continue;
        };
        if strict.allows(Rule::UnboundedCollection, key) {
            continue;
        }
        let command = format!("{} {}", write.command.to_uppercase(), quoted(key));
        let text = format!(
            "{} is never trimmed and has no deadline; {}, or allow what is to grow",
            quoted(key),
            bounds_of(engine, database, key)
        );
        let (client, client_name) = (write.client, write.client_name.clone());
        let (rule, time_ms) = (Rule::UnboundedCollection, engine.timing.now.unix_ms());
        findings.push(Finding { rule, level, time_ms, client, client_name, command, text, times: 1 });
    }
    findings
}

fn is_unbounded(engine: &Engine, database: usize, key: &[u8], trace: &Trace) -> bool {
    if trace.is_trimmed() || database >= engine.databases.count() {
        return false;
    }
    let data = engine.databases.get(database);
    let Some(slot) = data.find(key).filter(|slot| data.deadline(*slot).is_none()) else { return false };
    matches!(data.view(slot), View::List(_) | View::Set(_) | View::Zset(_) | View::Stream(_))
}

/// The advice on how to bound a collection.
fn bounds_of(engine: &Engine, database: usize, key: &[u8]) -> &'static str {
    let data = engine.databases.get(database);
    match data.find(key).map(|slot| data.view(slot)) {
        Some(View::List(_)) => "LTRIM it with each push, or EXPIRE it",
        Some(View::Zset(_)) => "ZREMRANGEBYRANK or ZREMRANGEBYSCORE what is old, or EXPIRE it",
        Some(View::Stream(_)) => "XADD with MAXLEN or MINID, or EXPIRE it",
        _ => "EXPIRE it, as with a key for each hour",
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
