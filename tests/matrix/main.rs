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
mod redirected_keys;
mod sampler;
mod server;
mod shape;
#[path = "../support/mod.rs"]
mod support;
mod trials;
mod walk;

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::thread;

use dunlin::commands::FAMILIES;
use dunlin::engine::{Entry, Table};

use fixture::{Extra, Trial};
use oracle::Oracle;
use ours::Ours;
use process::{Program, updates};
use server::Server;
use support::{limits, node, process, reply, words, world};
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
# element, vectorset element at 1 2, and none is not there; text2 and so on hold the same.
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

/// The commands of a fixture are asked on so many threads, as the longest fixture takes as long as all others together.
const THREADS: usize = 2;

const HOW_TO_RECORD: &str = "what is not in the fixture yet is asked with \
    UPDATE=1 DUNLIN_ORACLE=/path/to/redis-server cargo test --test matrix";

/// Compares a fixture with a real server, if one is named, and with our engine.
fn check(name: &str, head: &str, trials: fn(&Entry) -> Vec<Trial>, extra: Extra) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.txt"));
    if let Some(program) = Program::from_environment(&format!("{name}.txt against a real server")) {
        let answers = fixture_of(|| Oracle::start(&program), head, trials, extra);
        if updates() {
            fs::write(&path, &answers).expect("the fixture can be written");
        }
        let fixture = fs::read_to_string(&path).expect("the fixture is there");
        expect_equal("a real server", &answers, &fixture);
    }
    let fixture = fs::read_to_string(&path).expect("the fixture is there");
    expect_equal("our engine", &fixture_of(Ours::default, head, trials, extra), &fixture);
}

/// The fixture of a kind of server, of which each of [`THREADS`] threads has one of its own.
fn fixture_of<S: Server>(
    start: impl Fn() -> S + Sync,
    head: &str,
    trials: fn(&Entry) -> Vec<Trial>,
    extra: Extra,
) -> String {
    let table = Table::of(FAMILIES);
    let entries: Vec<&Entry> = table.entries().iter().filter(|entry| !left_out::command(&entry.name)).collect();
    // A real server remembers what it was asked, so each is asked in the order of the table.
    let ask = |first: usize| {
        let (mut server, mut blocks) = (start(), Vec::new());
        for (place, entry) in entries.iter().enumerate().skip(first).step_by(THREADS) {
            let trials = trials(entry);
            if !trials.is_empty() {
                let text = fixture::blocks(&mut server, entry, trials, extra);
                blocks.push((place, format!("\n{}\n", text.trim_end())));
            }
        }
        blocks
    };
    let ask = &ask;
    let mut blocks: Vec<(usize, String)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|first| scope.spawn(move || ask(first))).collect();
        let blocks =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        blocks.flatten().collect()
    });
    blocks.sort_unstable_by_key(|(place, _)| *place);
    blocks.iter().fold(head.to_owned(), |text, (_, block)| text + block)
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
