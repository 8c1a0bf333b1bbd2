//! Compares every command with a real Redis: with every type, with each pair of its options, with every boundary
//! number, and truncated at every word.
//!
//! The requests are generated from the rows of the command table, so a new command is tested without a change here.
//! `tests/fixtures` has the replies of a real Redis 8.0, which are rewritten by
//!
//! ```text
//! UPDATE=1 DUNLIN_ORACLE=/path/to/redis-server cargo test --test matrix
//! ```
//!
//! and only compared when UPDATE is not set. Our side runs in the test's process. Besides the reply, it is checked
//! after every request that every structure keeps its invariants, that a refused request changed nothing, and that the
//! client got exactly one reply. With a real server there is also a random walk, whose length DUNLIN_WALK_REQUESTS
//! sets, and whose first seed DUNLIN_WALK_SEED.

mod checked_keys;
mod fixture;
mod left_out;
mod oracle;
mod ours;
mod sampler;
mod server;
mod shape;
#[path = "../support/mod.rs"]
mod support;
mod trials;
mod walk;

use std::fs;
use std::path::{Path, PathBuf};

use dunlin::commands::FAMILIES;
use dunlin::engine::{Entry, Table};

use fixture::{Extra, Trial};
use oracle::Oracle;
use ours::Ours;
use process::{Program, updates};
use server::Server;
use support::{limits, process, reply, words, world};
use walk::Subject;

#[global_allocator]
static ALLOCATOR: support::heap::Counting = support::heap::Counting;

#[test]
fn every_command_treats_every_type_as_in_redis() {
    check("wrong_type", HEAD_OF_TYPES, trials::types, Extra::Effects);
}

#[test]
fn every_pair_of_options_is_answered_as_in_redis() {
    check("options", HEAD_OF_OPTIONS, trials::options, Extra::Effects);
}

#[test]
fn every_number_at_the_edges_of_its_range_is_answered_as_in_redis() {
    check("boundaries", HEAD_OF_BOUNDARIES, trials::boundaries, Extra::Inline);
}

#[test]
fn every_request_that_is_too_short_or_too_long_is_answered_as_in_redis() {
    check("lengths", HEAD_OF_LENGTHS, trials::lengths, Extra::Nothing);
}

#[test]
fn the_keys_of_every_request_are_found_as_in_redis() {
    check("keys", HEAD_OF_KEYS, trials::keys, Extra::Nothing);
}

#[test]
fn a_random_walk_gets_the_same_replies_from_a_real_server() {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let Some(real) = Program::from_environment("the random walk") else { return };
    let (seed, requests) = (number("DUNLIN_WALK_SEED", 2026), number("DUNLIN_WALK_REQUESTS", 20_000));
    walk::compare(&real, Subject::Replies, seed, requests as usize);
}

#[test]
fn a_random_walk_writes_the_same_log_as_a_real_server() {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let Some(real) = Program::from_environment("the random walk of the log") else { return };
    let (seed, requests) = (number("DUNLIN_WALK_SEED", 2026), number("DUNLIN_WALK_REQUESTS", 8_000));
    walk::compare(&real, Subject::Log, seed, requests as usize);
}

const HEAD_OF_TYPES: &str = "\
# Every command with keys of every type in place of the @, and what became of the keys.
# text is \"hello\", number \"10\", timed \"10\" with a deadline, zset 1 a 2 b 3 c, list element pivot 3
# element, and none is not there; text2 and so on hold the same.
# text+zset are two keys; zset-twice is one key that stands at both places.
";
const HEAD_OF_OPTIONS: &str = "\
# Each two options of every command, in both orders, and each option twice; with keys of every type in place of the @,
# and what became of them. See wrong_type.txt for the types.
";
const HEAD_OF_BOUNDARIES: &str = "\
# Every number of every command with each number at the edges (tests/matrix/trials.rs lists them) in place of the @.
# 9{1048576} is that many nines.
";
const HEAD_OF_LENGTHS: &str = "\
# Every command cut short: the number is how many words are left, the name counted. `more` is one word too many.
";
const HEAD_OF_KEYS: &str = "\
# The keys of every command that has some: the number is how many words are left of the request, or is in place of the @.
";

const HOW_TO_RECORD: &str = "what is not in the fixture yet is asked with \
    UPDATE=1 DUNLIN_ORACLE=/path/to/redis-server cargo test --test matrix";

/// Compares a fixture with a real server, if one is named, and with our engine.
fn check(name: &str, head: &str, trials: fn(&Entry) -> Vec<Trial>, extra: Extra) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.txt"));
    if let Some(program) = Program::from_environment(&format!("{name}.txt against a real server")) {
        let mut oracle = Oracle::start(&program);
        let answers = fixture_of(&mut oracle, head, trials, extra);
        if updates() {
            fs::write(&path, &answers).expect("the fixture can be written");
        }
        let fixture = fs::read_to_string(&path).expect("the fixture is there");
        expect_equal("a real server", &answers, &fixture);
    }
    let fixture = fs::read_to_string(&path).expect("the fixture is there");
    expect_equal("our engine", &fixture_of(&mut Ours::default(), head, trials, extra), &fixture);
}

fn fixture_of(server: &mut dyn Server, head: &str, trials: fn(&Entry) -> Vec<Trial>, extra: Extra) -> String {
    let table = Table::of(FAMILIES);
    let mut text = head.to_owned();
    for entry in table.entries().iter().filter(|entry| !left_out::command(&entry.name)) {
        let trials = trials(entry);
        if !trials.is_empty() {
            text.push('\n');
            text.push_str(fixture::blocks(server, entry, trials, extra).trim_end());
            text.push('\n');
        }
    }
    text
}

fn expect_equal(who: &str, answers: &str, fixture: &str) {
    let (answers, fixture) = (fixture::by_template(answers), fixture::by_template(fixture));
    let nothing = String::new();
    let mut faults = Vec::new();
    for template in answers.keys().chain(fixture.keys().filter(|template| !answers.contains_key(*template))) {
        let (got, expected) = (answers.get(template).unwrap_or(&nothing), fixture.get(template).unwrap_or(&nothing));
        if got != expected {
            faults.push(format!("{template}\n  expected:\n{}\n  {who}:\n{}", indented(expected), indented(got)));
        }
    }
    assert!(faults.is_empty(), "{} templates differ; {HOW_TO_RECORD}\n\n{}", faults.len(), faults.join("\n"));
}

fn indented(lines: &str) -> String {
    lines.lines().map(|line| format!("    {line}\n")).collect()
}
