//! A fixture: the replies of a server to many requests that differ in one place.
//!
//! A block is one or more templates, `> ZADD zset @ a`, and a line for each distinct reply with the values that get it
//! in place of the `@`. `else` means all values of the list that are not named, `all` means every value. A different
//! reply in RESP3 follows after `[RESP3]`; the different reply of a blocking command outside of a transaction, if it
//! replies at once, after `[alone]`; the new value of a key, if it changed, after `[key]`. Templates of one command
//! with the same replies share a block.
//!
//! The same code writes the fixtures of the real server and of ours, so two fixtures are compared as text.

use std::collections::BTreeMap;

use dunlin::engine::{Entry, Flags};

use crate::left_out;
use crate::server::{Form, Manner, Server, state, state_at_first};
use crate::shape::Sameness;

/// One request of a block.
pub(crate) struct Trial {
    /// The request with `@` for what is tried.
    pub(crate) template: String,
    /// The name of the test in the fixture.
    pub(crate) value: String,
    pub(crate) words: Vec<Vec<u8>>,
    /// The keys among the words.
    pub(crate) keys: Vec<Vec<u8>>,
}

/// The parts of a fixture besides the replies in RESP2 and RESP3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    Nothing,
    /// The replies that differ when the request is sent inline.
    Inline,
    /// The new values of the keys.
    Effects,
}

/// The block of a command's templates, as text without a heading.
pub(crate) fn blocks(server: &mut dyn Server, entry: &Entry, trials: Vec<Trial>, extra: Extra) -> String {
    let mut answers: Vec<(String, Vec<Answered>)> = Vec::new();
    for trial in trials {
        let line = outcome(server, entry, &trial, extra);
        if answers.last().is_none_or(|(template, _)| *template != trial.template) {
            answers.push((trial.template, Vec::new()));
        }
        if let Some((_, outcomes)) = answers.last_mut() {
            outcomes.push(Answered { value: trial.value, line });
        }
    }
    let mut blocks: Vec<(Vec<String>, String)> = Vec::new();
    for (template, outcomes) in answers {
        let lines = grouped(&outcomes);
        match blocks.iter_mut().find(|(_, known)| *known == lines) {
            Some((templates, _)) => templates.push(template),
            None => blocks.push((vec![template], lines)),
        }
    }
    blocks.iter().map(|(templates, lines)| format!("{}{lines}\n", heads(templates))).collect()
}

fn heads(templates: &[String]) -> String {
    templates.iter().map(|template| format!("> {template}\n")).collect()
}

struct Answered {
    value: String,
    line: String,
}

/// The reply of the server in all forms.
fn outcome(server: &mut dyn Server, entry: &Entry, trial: &Trial, extra: Extra) -> String {
    let (sameness, manner) = (left_out::sameness(entry), left_out::manner(entry));
    let (waits, mut alone) = (left_out::may_be_tried_alone(entry), None);
    if waits && !server.answer(manner, Form::Resp2, &trial.words).is_null() {
        // The command replies at once outside of a transaction, too.
        alone = Some(server.answer(Manner::Alone, Form::Resp2, &trial.words).line(sameness));
    }
    let resp3 = server.answer(manner, Form::Resp3, &trial.words).line(sameness);
    let resp2 = server.answer(manner, Form::Resp2, &trial.words).line(sameness);
    let mut text = resp2.clone();
    if let Some(alone) = alone.filter(|alone| *alone != resp2) {
        text.push_str(&format!("  [alone] {alone}"));
    }
    if resp3 != resp2 {
        text.push_str(&format!("  [RESP3] {resp3}"));
    }
    // A random change is not reproducible.
    let by_chance = sameness == Sameness::Kind && entry.command.flags.has(Flags::WRITE);
    if extra == Extra::Effects && !by_chance {
        text.push_str(&effects(server, &trial.keys));
    }
    if extra == Extra::Inline && fits_a_line(&trial.words) {
        let inline = server.answer(manner, Form::Inline, &trial.words).line(sameness);
        if inline != resp2 {
            text.push_str(&format!("  [inline] {inline}"));
        }
    }
    text
}

/// The values of the keys of the last request, as far as they have changed.
fn effects(server: &mut dyn Server, keys: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for (_, key) in keys.iter().enumerate().filter(|(nth, key)| !keys[..*nth].contains(key)) {
        let now = state(server, key);
        if now != state_at_first(key) {
            text.push_str(&format!("  [{}] {now}", String::from_utf8_lossy(key)));
        }
    }
    text
}

/// A longer line is refused before it is parsed.
fn fits_a_line(words: &[Vec<u8>]) -> bool {
    words.iter().map(|word| 4 * word.len() + 3).sum::<usize>() < 64 << 10
}

/// Writes one line for each distinct reply, in the order of their first occurrence; the most frequent one is last, as
/// `else`.
fn grouped(answers: &[Answered]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for Answered { value, line } in answers {
        match groups.iter_mut().find(|(known, _)| known == line) {
            Some((_, values)) => values.push(value),
            None => groups.push((line, vec![value])),
        }
    }
    let largest = (0..groups.len()).rev().max_by_key(|&group| groups[group].1.len()).unwrap_or(0);
    let (line, _) = groups.remove(largest);
    let named = groups.iter().map(|(line, values)| format!("{}: {line}\n", values.join(" ")));
    let rest = if groups.is_empty() { "all" } else { "else" };
    named.chain([format!("{rest}: {line}\n")]).collect()
}

/// The lines under each template of a fixture.
pub(crate) fn by_template(fixture: &str) -> BTreeMap<&str, String> {
    let mut found = BTreeMap::new();
    for block in fixture.split("\n\n") {
        let (heads, lines): (Vec<&str>, Vec<&str>) =
            block.lines().filter(|line| !line.starts_with('#')).partition(|line| line.starts_with("> "));
        found.extend(heads.into_iter().map(|head| (head, lines.join("\n"))));
    }
    found
}
