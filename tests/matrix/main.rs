//! Every command with every type, with every number at the edges of what fits, and cut short at every word: answered as a
//! real Redis answers.
//!
//! The requests are made from the rows of the command table, so a new command is tried without a word written here. What
//! a real Redis 8.0 answers stands in `tests/fixtures`; it is asked again with
//!
//! ```text
//! UPDATE=1 DUNLIN_ORACLE=/path/to/redis-server cargo test --test matrix
//! ```
//!
//! and only compared with the files when UPDATE is not set. Our side runs in the test's process. Beside the answer, after
//! every request: every structure keeps its invariants, a refused request changed nothing, the client is in step.

mod left_out;
mod oracle;
mod ours;
#[path = "../transcripts/runner/process.rs"]
mod process;
#[path = "../transcripts/runner/reply.rs"]
mod reply;
mod sampler;
mod server;
mod shape;
mod sheet;
mod trials;
#[path = "../transcripts/runner/words.rs"]
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use dunlin::commands::FAMILIES;
use dunlin::engine::{Entry, Table};

use oracle::Oracle;
use ours::Ours;
use server::Server;
use sheet::Trial;

#[test]
fn every_command_treats_every_type_as_redis_does() {
    check("wrong_type", HEAD_OF_TYPES, trials::types, false);
}

#[test]
fn every_number_at_the_edges_is_taken_or_refused_as_redis_does() {
    check("boundaries", HEAD_OF_BOUNDARIES, trials::boundaries, true);
}

#[test]
fn every_request_that_is_cut_short_is_refused_as_redis_does() {
    check("truncated", HEAD_OF_TRUNCATED, trials::truncated, false);
}

const HEAD_OF_TYPES: &str = "\
# Every command with keys of every type in place of the @.
# text is \"hello\", number \"10\", zset 1 a 2 b 3 c, and none is not there; text2 and so on hold the same.
";
const HEAD_OF_BOUNDARIES: &str = "\
# Every number of every command with each number at the edges (tests/matrix/trials.rs lists them) in place of the @.
# 9{1048576} is that many nines.
";
const HEAD_OF_TRUNCATED: &str = "\
# Every command cut short: the number is how many words are left, the name counted.
";

/// Compares what a fixture says with a real server, if one is named, and with ours.
fn check(name: &str, head: &str, trials: fn(&Entry) -> Vec<Trial>, inline: bool) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.txt"));
    if let Some(mut oracle) = Oracle::from_environment() {
        let answers = sheet_of(&mut oracle, head, trials, inline);
        if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
            fs::write(&path, &answers).expect("the fixture can be written");
        }
        let fixture = fs::read_to_string(&path).expect("the fixture is there");
        expect_equal("a real server", &answers, &fixture);
    }
    let fixture = fs::read_to_string(&path).expect("the fixture is there");
    expect_equal("our engine", &sheet_of(&mut Ours, head, trials, inline), &fixture);
}

fn sheet_of(server: &mut dyn Server, head: &str, trials: fn(&Entry) -> Vec<Trial>, inline: bool) -> String {
    let table = Table::of(FAMILIES);
    let mut sheet = head.to_owned();
    for entry in table.entries().iter().filter(|entry| !left_out::command(&entry.name)) {
        let trials = trials(entry);
        if !trials.is_empty() {
            sheet.push('\n');
            sheet.push_str(sheet::blocks(server, entry, trials, inline).trim_end());
            sheet.push('\n');
        }
    }
    sheet
}

fn expect_equal(who: &str, answers: &str, fixture: &str) {
    let (answers, fixture) = (sheet::by_template(answers), sheet::by_template(fixture));
    let nothing = String::new();
    let mut faults = Vec::new();
    for template in answers.keys().chain(fixture.keys().filter(|template| !answers.contains_key(*template))) {
        let (got, expected) = (answers.get(template).unwrap_or(&nothing), fixture.get(template).unwrap_or(&nothing));
        if got != expected {
            faults.push(format!("{template}\n  expected:\n{}\n  {who}:\n{}", indented(expected), indented(got)));
        }
    }
    assert!(faults.is_empty(), "{} templates differ\n\n{}", faults.len(), faults.join("\n"));
}

fn indented(lines: &str) -> String {
    lines.lines().map(|line| format!("    {line}\n")).collect()
}
