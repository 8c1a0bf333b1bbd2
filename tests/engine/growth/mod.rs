//! The cost of a request is proportional to its length: eight times as many words, elements or commands take about
//! eight times the work.
//!
//! Each [`Case`] is measured at one size and at eight times that size, in the processor time of the thread, so that
//! other processes do not matter. Quadratic work takes 64 times as long; up to 20 times is accepted, as caches are
//! small. A size is large enough when it takes some milliseconds. A case that exceeds the bound is measured again,
//! since even processor time varies, and then at sixteen times the size: data that left the caches between the first
//! two sizes take twice as long there, and quadratic work four times.
//!
//! Every command whose syntax repeats something has a case, and every subcommand of DUNLIN that works on as much data,
//! rules or records as there are: a test compares the table with the rows of the commands. No case measures work that
//! must cost more than its length:
//!
//! | what | cost | why |
//! |---|---|---|
//! | LCS | N * M | every byte of one text with every byte of the other, bounded by proto-max-bulk-len |
//! | n times LINSERT, LREM, LPOS, LINDEX or LSET in the middle of a list | N each | a list has no index but its nodes |
//! | SINTER, SDIFF, ZINTER, ZDIFF and their kin of n keys of n members | N * M | each member is looked up in each key |
//! | n times a command that answers n elements | N each | the answer is that long |
//! | n clients that watch, track or wait for one key, n times | N each | each of them is notified |
//! | n calls by a user of n patterns | N each | each pattern may be the one that allows it |
//! | n snapshots, faults or patterns of DUNLIN STRICT ALLOW | N each | a new one is compared with all; tests have few |
//! | n calls with n faults or n such patterns | N each | each of them may concern the call |
//! | n times XDEL in one block of n entries | N each | only where stream-node-max-* or a payload made it so long |

mod cases;
pub mod measure;
mod payloads;
mod remote;

use cases::CASES;
use measure::{Case, grows_too_fast, too_fast};
use std::time::Duration;

/// Commands with repeated words, and those of the test kit, that are not measured, and why.
const NOT_MEASURED: &[(&str, &str)] = &[
    ("cluster|addslots", "this server is no cluster: refused at once"),
    ("cluster|addslotsrange", "the same"),
    ("cluster|delslots", "the same"),
    ("cluster|delslotsrange", "the same"),
    ("dunlin|advance-to-next", "it does what DUNLIN ADVANCE does"),
    ("dunlin|drop-template", "the host does it, and no engine by itself"),
    ("dunlin|drop-world", "the same"),
    ("dunlin|failover", "the host does it, and no engine by itself"),
    ("dunlin|feed", "it sets a filter"),
    ("dunlin|freeze", "it sets a switch"),
    ("dunlin|heal", "the host does it, and no engine by itself"),
    ("dunlin|help", "its text is always as long"),
    ("dunlin|lag", "the host does it, and no engine by itself"),
    ("dunlin|link", "the host does it, and no engine by itself"),
    ("dunlin|listen", "the same"),
    ("dunlin|migrate-slot", "the same"),
    ("dunlin|node", "the same"),
    ("dunlin|nodes", "the same"),
    ("dunlin|partition", "the same"),
    ("dunlin|resume", "it sets a switch"),
    ("dunlin|seed", "it sets a number"),
    ("dunlin|set-time", "it does what DUNLIN ADVANCE does"),
    ("dunlin|speed", "it sets a number"),
    ("dunlin|template", "the host does it, and no engine by itself"),
    ("dunlin|view", "the host does it, and no engine by itself"),
    ("dunlin|wait", "one condition, which each command checks while it waits"),
    ("dunlin|world", "the host does it, and no engine by itself"),
    ("dunlin|worlds", "the same"),
    ("fcall_ro", "it is FCALL for functions that do not write"),
    ("module|load", "there are no modules: refused at once"),
    ("module|loadex", "the same"),
];

#[test]
fn every_command_that_repeats_words_is_measured() {
    let world = measure::world();
    let mut missing = Vec::new();
    for entry in world.engine.table.entries() {
        let repeats = entry.command.syntax.contains("...") || entry.name.starts_with("dunlin|");
        let name = entry.name.replace('|', " ").to_uppercase();
        let is_measured = CASES.iter().any(|case| case.timed.iter().any(|line| calls(line, &name)));
        let is_excused = NOT_MEASURED.iter().any(|(excused, _)| *excused == entry.name);
        if repeats && !is_measured && !is_excused {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "no case measures {missing:?}");
}

fn calls(line: &str, name: &str) -> bool {
    let line = line.trim_start_matches(['*', '~', '-']);
    line == name || line.starts_with(&format!("{name} "))
}

fn check(cases: &[Case]) {
    let slow: Vec<String> = cases.iter().filter_map(grows_too_fast).collect();
    assert!(slow.is_empty(), "eight times as long takes more than twenty times the work:\n{}", slow.join("\n"));
}

#[test]
fn quadratic_work_is_told_apart_from_data_that_leave_the_caches() {
    let in_nanoseconds = |each: usize, size: usize| Duration::from_nanos((each * size) as u64);
    let quadratic = |size| in_nanoseconds(1 + size / 100, size);
    assert!(too_fast("quadratic", quadratic).is_some());
    let leaves_the_caches = |size| in_nanoseconds(if size > 16_384 { 315 } else { 110 }, size);
    assert_eq!(too_fast("linear", leaves_the_caches), None);
}

#[test]
fn the_cost_of_a_request_grows_with_its_length() {
    let only = std::env::var("DUNLIN_GROWTH").unwrap_or_default();
    let cases: Vec<Case> = CASES.iter().filter(|case| case.name().contains(&only)).copied().collect();
    assert!(!cases.is_empty(), "no case has {only} in its name");
    check(&cases);
}
