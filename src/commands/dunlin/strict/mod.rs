//! DUNLIN STRICT: rules that fail a test for what would break in production ([`crate::engine::state::kit::Strict`]).

mod rules;

pub use rules::check_rule;

use super::{ROW, check_reads_all, explained};
use crate::engine::exec::kit::strict;
use crate::engine::state::kit::{Finding, Level, Rule, Strict};
use crate::engine::{Args, Arity, Command, Ctx, Error, Observers, ServerError, says};
use crate::resp::Reply;

pub(super) const STRICT: Command = Command {
    name: "STRICT",
    syntax: "[action:<set:<SET rule|ALL|CLUSTER level:<OFF|WARN|ERROR> [LIMIT limit]>|\
             allow:<ALLOW rule|ALL|CLUSTER pattern>|FINDINGS|CHECK|CLEAR>]",
    arity: Arity::AtLeast(2),
    cost: "O(N), N being the rules, and with FINDINGS and CHECK the keys that were written",
    about: "Finds what would break in production: lists the rules, sets them, returns their findings.",
    run: |cx, args| explained(&STRICT, strict(cx, args)),
    ..ROW
};

fn strict(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if args.is_empty() {
        list(cx);
        return Ok(());
    }
    let action = args.word()?;
    match () {
        () if says(action, "SET") => set(cx, args),
        () if says(action, "ALLOW") => allow(cx, args),
        () if says(action, "FINDINGS") => findings(cx, args),
        () if says(action, "CHECK") => check(cx, args),
        () if says(action, "CLEAR") => clear(cx, args),
        () => Err(Error::Syntax),
    }
}

fn list(cx: &mut Ctx<'_>) {
    let (engine, reply) = cx.engine_and_reply();
    let unset = Strict::of(check_rule);
    let strict = engine.observers.strict().unwrap_or(&unset);
    reply.array(Rule::ALL.len());
    for rule in Rule::ALL {
        let setting = strict.setting(rule);
        reply.map(5);
        for (name, text) in [("rule", rule.name()), ("level", setting.level.name()), ("about", rule.about())] {
            reply.bulk(name.as_bytes());
            reply.bulk(text.as_bytes());
        }
        reply.bulk(b"limit");
        match setting.limit {
            Some(limit) => reply.integer(i64::try_from(limit).unwrap_or(i64::MAX)),
            None => reply.null(),
        }
        reply.bulk(b"allowed");
        reply.array(setting.allowed.len());
        setting.allowed.iter().for_each(|pattern| reply.bulk(pattern));
    }
}

/// One rule, or several that have a name together.
fn rules(args: &mut Args<'_>) -> Result<Vec<Rule>, Error> {
    let name = args.word()?;
    if says(name, "ALL") {
        return Ok(Rule::GENERAL.to_vec());
    }
    if says(name, "CLUSTER") {
        return Ok(Rule::CLUSTER.to_vec());
    }
    let names = || Rule::ALL.map(Rule::name).join(", ");
    let unknown =
        || ServerError::Kit(format!("unknown rule '{}'; the rules are {}", String::from_utf8_lossy(name), names()));
    Rule::of(name).map(|rule| vec![rule]).ok_or_else(|| unknown().into())
}

fn set(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let rules = rules(&mut args)?;
    let level = Level::of(args.word()?).ok_or(Error::Syntax)?;
    let mut limit = None;
    if args.take("LIMIT") {
        limit = Some(u64::try_from(args.integer()?).map_err(|_| Error::NotAnInteger)?);
    }
    args.end()?;
    if let (Some(_), [rule, ..]) = (limit, &rules[..])
        && (rules.len() > 1 || rule.usual_limit().is_none())
    {
        let text = if rules.len() > 1 { "each rule has a limit of its own" } else { "that rule has no limit" };
        return Err(ServerError::Kit(text.to_owned()).into());
    }
    set_rules(cx.observers_mut(), &rules, level, limit);
    cx.reply().ok();
    Ok(())
}

/// Sets the level of rules, and their limit if one is given.
pub fn set_rules(observers: &mut Observers, rules: &[Rule], level: Level, limit: Option<u64>) {
    for rule in rules {
        let setting = observers.strict_setting(check_rule, *rule);
        setting.level = level;
        setting.limit = limit.or(setting.limit);
    }
    observers.put_kit_away();
}

fn allow(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let rules = rules(&mut args)?;
    let pattern = args.word()?;
    args.end()?;
    allow_keys(cx.observers_mut(), &rules, pattern);
    cx.reply().ok();
    Ok(())
}

/// Makes rules ignore keys that match a pattern.
pub fn allow_keys(observers: &mut Observers, rules: &[Rule], pattern: &[u8]) {
    for rule in rules {
        let allowed = &mut observers.strict_setting(check_rule, *rule).allowed;
        if !allowed.iter().any(|known| known == pattern) {
            allowed.push(pattern.to_vec());
        }
    }
}

fn findings(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    args.end()?;
    check_reads_all(cx, &args)?;
    let (engine, reply) = cx.engine_and_reply();
    let findings = strict::findings(engine);
    reply.array(findings.len());
    findings.iter().for_each(|finding| write_finding(finding, reply));
    Ok(())
}

fn write_finding(finding: &Finding, reply: &mut Reply<'_>) {
    reply.map(7);
    for (name, text) in [
        ("rule", finding.rule.name().as_bytes()),
        ("level", finding.level.name().as_bytes()),
        ("client-name", &finding.client_name),
        ("command", finding.command.as_bytes()),
        ("text", finding.text.as_bytes()),
    ] {
        reply.bulk(name.as_bytes());
        reply.bulk(text);
    }
    for (name, number) in [("client", finding.client), ("times", finding.times)] {
        reply.bulk(name.as_bytes());
        reply.integer(number.cast_signed());
    }
}

fn check(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    args.end()?;
    check_reads_all(cx, &args)?;
    let findings = strict::findings(cx.engine());
    let errors: Vec<String> =
        findings.iter().filter(|finding| finding.level == Level::Error).map(ToString::to_string).collect();
    if errors.is_empty() {
        cx.reply().ok();
        return Ok(());
    }
    Err(ServerError::Kit(format!("strict mode found {}: {}", errors.len(), errors.join("; "))).into())
}

fn clear(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    args.end()?;
    clear_findings(cx.observers_mut());
    cx.reply().ok();
    Ok(())
}

/// Deletes the findings, and the record of what was done to keys.
pub fn clear_findings(observers: &mut Observers) {
    if let Some(strict) = observers.kit.as_mut().and_then(|kit| kit.strict.as_mut()) {
        strict.clear();
    }
    observers.put_kit_away();
}
