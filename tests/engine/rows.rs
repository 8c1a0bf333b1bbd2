//! The rows of commands agree with COMMAND INFO and COMMAND DOCS of Redis 8.0.
//!
//! `tests/fixtures/commands.txt` has the replies of a real server: for each command the fields of COMMAND INFO and of
//! COMMAND DOCS, including the tree of arguments. Sentences are our own: of summaries and complexities only their
//! presence is compared, of the history only the versions.
//!
//! To rewrite the file: `UPDATE=1 DUNLIN_ORACLE=/path/to/redis-server cargo test --test engine rows`. Whenever
//! DUNLIN_ORACLE names a server, the file is compared with its replies.

use std::collections::BTreeMap;

use redis::Value;

use crate::oracle::Oracle;
use crate::process::{Program, updates};
use crate::world::World;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/commands.txt");

/// The information about one command: fields by their names.
type Details = BTreeMap<String, String>;

/// Fields that differ for a reason.
const DIFFERENT: &[(&str, &str, &str)] = &[];

#[test]
fn our_command_rows_agree_with_redis() {
    if let Some(program) = Program::from_environment("COMMAND DOCS of a real server") {
        let details = written(&details_of_oracle(&program));
        if updates() {
            std::fs::write(FIXTURE, &details).expect("the fixture can be written");
        }
        assert_eq!(
            std::fs::read_to_string(FIXTURE).expect("it is there"),
            details,
            "the real server answers otherwise"
        );
    }
    let expected = read(&std::fs::read_to_string(FIXTURE).expect("the fixture can be read"));
    let mut faults = Vec::new();
    for (command, fields) in our_details() {
        let Some(expected) = expected.get(&command) else {
            faults.push(format!("{command}: Redis has no such command"));
            continue;
        };
        for (field, value) in &fields {
            let other = expected.get(field).map_or("", String::as_str);
            let is_excused = DIFFERENT.iter().any(|(name, known, _)| *name == command && known == field);
            if (value == other) == is_excused {
                faults.push(format!("{command}: {field}\n    ours:  {value}\n    Redis: {other}"));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn our_details() -> BTreeMap<String, Details> {
    let mut world = World::fresh();
    let mut ask = |command: &str| {
        let reply = world.ask(command);
        redis::parse_redis_value(reply.as_bytes()).expect("our replies are well formed")
    };
    details_of(&ask("COMMAND"), &ask("COMMAND DOCS"))
}

fn details_of_oracle(program: &Program) -> BTreeMap<String, Details> {
    let mut oracle = Oracle::start(program);
    details_of(&oracle.ask(&["COMMAND"]), &oracle.ask(&["COMMAND", "DOCS"]))
}

fn details_of(commands: &Value, docs: &Value) -> BTreeMap<String, Details> {
    let mut details = BTreeMap::new();
    for command in items(commands) {
        take_details(command, &mut details);
    }
    take_docs(docs, &mut details);
    details
}

fn take_details(command: &Value, details: &mut BTreeMap<String, Details>) {
    let [name, arity, flags, first, last, step, categories, tips, keys, subcommands] = items(command) else {
        panic!("COMMAND INFO gives ten fields, not {command:?}");
    };
    let mut keys: Vec<String> = items(keys).iter().map(drawn).collect();
    keys.sort_unstable();
    let fields = [
        ("arity", drawn(arity)),
        ("flags", sorted(flags)),
        ("range", [first, last, step].map(drawn).join(" ")),
        ("categories", sorted(categories)),
        ("tips", sorted(tips)),
        ("keys", keys.join(" + ")),
    ];
    details.insert(text(name), fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect());
    for subcommand in items(subcommands) {
        take_details(subcommand, details);
    }
}

fn take_docs(docs: &Value, details: &mut BTreeMap<String, Details>) {
    for (name, doc) in pairs(docs) {
        let fields = details.entry(name).or_default();
        let names: Vec<String> = pairs(doc).map(|(field, _)| field).collect();
        let doc: BTreeMap<String, &Value> = pairs(doc).collect();
        for field in ["since", "group", "deprecated_since", "replaced_by"] {
            fields.insert(field.to_owned(), doc.get(field).map(|value| text(value)).unwrap_or_default());
        }
        fields.insert("docs".to_owned(), names.join(" "));
        fields.insert("doc_flags".to_owned(), doc.get("doc_flags").map(|flags| sorted(flags)).unwrap_or_default());
        let history = doc.get("history").map(|history| items(history)).unwrap_or_default();
        let versions: Vec<String> = history.iter().map(|change| text(&items(change)[0])).collect();
        fields.insert("history".to_owned(), versions.join(" "));
        let arguments = doc.get("arguments").map(|arguments| items(arguments)).unwrap_or_default();
        fields.insert("arguments".to_owned(), arguments.iter().map(argument).collect::<Vec<_>>().join(" "));
        if let Some(subcommands) = doc.get("subcommands") {
            take_docs(subcommands, details);
        }
    }
}

/// An argument: its name and type, then its other fields in their order, then what it consists of.
fn argument(value: &Value) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut name = String::new();
    for (field, value) in pairs(value) {
        match field.as_str() {
            "name" => name = text(value),
            "type" => parts.push(format!("{name}:{}", text(value))),
            "display_text" if text(value) == name => {}
            "flags" => parts.push(format!("flags={}", sorted(value).replace(' ', "+"))),
            "arguments" => parts.extend(items(value).iter().map(argument)),
            _ => parts.push(format!("{field}={}", text(value))),
        }
    }
    format!("({})", parts.join(" "))
}

fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        other => panic!("{other:?} is no array"),
    }
}

fn pairs(value: &Value) -> impl Iterator<Item = (String, &Value)> {
    items(value).chunks(2).map(|pair| (text(&pair[0]), &pair[1]))
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        other => panic!("{other:?} is no text"),
    }
}

fn drawn(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(drawn).collect::<Vec<_>>().join(" ")),
        other => text(other),
    }
}

fn sorted(value: &Value) -> String {
    let mut names: Vec<String> = items(value).iter().map(text).collect();
    names.sort_unstable();
    names.join(" ")
}

/// A command on a line of its own, its fields indented below it.
fn written(details: &BTreeMap<String, Details>) -> String {
    let mut lines = String::new();
    for (command, fields) in details {
        lines.push_str(&format!("{command}\n"));
        let fields = fields.iter().filter(|(_, value)| !value.is_empty());
        lines.extend(fields.map(|(field, value)| format!("  {field}: {value}\n")));
    }
    lines
}

fn read(text: &str) -> BTreeMap<String, Details> {
    let mut details: BTreeMap<String, Details> = BTreeMap::new();
    for line in text.lines() {
        match line.strip_prefix("  ").and_then(|field| field.split_once(": ")) {
            None => drop(details.insert(line.to_owned(), Details::new())),
            Some((field, value)) => {
                let mut command = details.last_entry().expect("a field follows its command");
                command.get_mut().insert(field.to_owned(), value.to_owned());
            }
        }
    }
    details
}

#[test]
fn subcommands_are_an_array_and_none_are_a_set() {
    let mut world = World::fresh();
    world.ask("HELLO 3");
    assert!(world.ask("COMMAND INFO slowlog").contains("~0\r\n*4\r\n*10\r\n$11\r\nslowlog|get"));
    assert!(world.ask("COMMAND INFO ping").ends_with("~0\r\n~0\r\n"));
}
