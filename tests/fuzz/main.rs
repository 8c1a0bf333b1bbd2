//! Runs the fuzz targets for a short time, without a fuzzer: each runs its seeds, then seeds with random changes.
//!
//! The targets are functions of bytes in `tests/fuzz`; `fuzz/` passes them to libFuzzer, which `fuzz/run` starts. Runs
//! are reproducible: a failure prints the input bytes. `DUNLIN_FUZZ_ROUNDS` is the number of inputs for each target,
//! `DUNLIN_FUZZ_COMMANDS` the number of commands for the engine (200,000 by default), and `DUNLIN_FUZZ_SEED` the seed.

mod batches;
mod frames;
mod nodes;
mod repeats;
mod snapshots;
mod strict;
#[path = "../support/mod.rs"]
mod support;
mod targets;
mod templates;

use std::env;
use std::path::Path;

use fastrand::Rng;
use support::choices::{self, Choices};
use support::{limits, world};
use targets::play::{self, Play};
use targets::{
    aof_files, grammar, manifests, numbers, patterns, payloads, propagation, rdb_files, replies, requests, scripts,
    storage,
};

fn from_environment(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Every command is reached: one that is not fails this, so that none is left out of the fuzzing unseen.
#[test]
fn every_request_gets_one_well_formed_reply_and_every_command_runs() {
    let seed = from_environment("DUNLIN_FUZZ_SEED", 2026);
    let (mut choices, mut play) = (Choices::Seed(seed | 1), Play::new(seed));
    limits::supervised(|progress| {
        for round in 0..from_environment("DUNLIN_FUZZ_COMMANDS", 200_000) {
            let context = format!("seed {seed} round {round}");
            progress.start(context.as_bytes());
            play.step(&mut choices, &context);
        }
    });
    let missed = play.missed();
    assert!(missed.is_empty(), "the grammar of tests/fuzz does not reach {missed:?}");
}

#[test]
fn a_rollback_restores_everything_whatever_ran_before() {
    let seed = from_environment("DUNLIN_FUZZ_SEED", 2026);
    let (mut choices, mut play) = (Choices::Seed(seed | 1), Play::new(seed));
    let rounds = from_environment("DUNLIN_FUZZ_COMMANDS", 40_000);
    let rollbacks = snapshots::run(&mut play, &mut choices, rounds);
    assert!(rollbacks as u64 >= rounds / 200, "only {rollbacks} rollbacks");
}

#[test]
fn replaying_the_log_of_changes_gives_the_data() {
    let seed = from_environment("DUNLIN_FUZZ_SEED", 2026);
    let (mut choices, mut play) = (Choices::Seed(seed | 1), Play::new(seed));
    let rounds = from_environment("DUNLIN_FUZZ_COMMANDS", 200_000);
    let replayed = propagation::play(&mut play, &mut choices, rounds);
    assert!(replayed.commands as u64 > rounds / 20 && replayed.bases > 0, "too little was replayed: {replayed:?}");
}

#[test]
fn a_server_from_a_template_behaves_as_the_server_that_it_was_taken_from() {
    let seed = from_environment("DUNLIN_FUZZ_SEED", 2026);
    templates::run(seed, from_environment("DUNLIN_FUZZ_COMMANDS", 20_000));
}

#[test]
fn the_same_seed_and_the_same_requests_give_the_same_bytes() {
    let seed = from_environment("DUNLIN_FUZZ_SEED", 2026);
    repeats::run(seed, from_environment("DUNLIN_FUZZ_COMMANDS", 100_000));
}

#[test]
fn rules_that_warn_change_no_byte_and_rules_that_refuse_change_no_data() {
    let seed = from_environment("DUNLIN_FUZZ_SEED", 2026);
    strict::run(seed, from_environment("DUNLIN_FUZZ_COMMANDS", 40_000));
}

#[test]
fn a_request_in_a_batch_is_answered_as_by_itself() {
    let seed = from_environment("DUNLIN_FUZZ_SEED", 2026);
    batches::run(seed, from_environment("DUNLIN_FUZZ_COMMANDS", 40_000) / 4);
}

#[test]
fn no_command_of_one_node_harms_another() {
    let seed = from_environment("DUNLIN_FUZZ_SEED", 2026);
    nodes::harm_no_other(seed, from_environment("DUNLIN_FUZZ_COMMANDS", 20_000));
}

#[test]
fn nodes_survive_whatever_commands_about_the_cluster_say() {
    let seed = from_environment("DUNLIN_FUZZ_SEED", 2026);
    nodes::survive_changes(seed, from_environment("DUNLIN_FUZZ_COMMANDS", 4_000));
}

/// A database checks that its index of slots has every key, and no other.
#[test]
fn a_node_finds_its_keys_by_their_slots_whatever_ran_before() {
    let seed = from_environment("DUNLIN_FUZZ_SEED", 2026);
    let (mut choices, mut play) = (Choices::Seed(seed | 1), Play::of_node(seed));
    let rounds = from_environment("DUNLIN_FUZZ_COMMANDS", 100_000);
    let rollbacks = snapshots::run(&mut play, &mut choices, rounds);
    let changes = play.world.engine.stats.changes;
    assert!(rollbacks as u64 >= rounds / 200 && changes >= rounds / 20, "{rollbacks} rollbacks, {changes} changes");
}

#[test]
fn any_bytes_run_as_requests_without_a_fault() {
    try_out("engine", play::run, 200);
}

#[test]
fn replaying_what_any_bytes_have_done_gives_the_data() {
    try_out("propagation", propagation::run, 200);
}

#[test]
fn no_durable_change_is_lost_whatever_bytes_say_when_the_disk_fails() {
    try_out("storage", storage::run, 1000);
}

#[test]
fn a_payload_is_refused_or_becomes_a_key_like_any_other() {
    try_out("payloads", payloads::run, 20_000);
}

#[test]
fn an_rdb_file_is_refused_or_loads_and_is_the_same_when_it_was_saved_again() {
    try_out("rdb_files", rdb_files::run, 10_000);
}

#[test]
fn a_file_of_an_aof_is_refused_or_loads_up_to_its_last_whole_unit() {
    try_out("aof_files", aof_files::run, 5_000);
}

#[test]
fn a_manifest_is_refused_or_is_the_same_when_it_was_written_again() {
    try_out("manifests", manifests::run, 50_000);
}

#[test]
fn the_parser_finds_the_same_requests_however_input_is_split() {
    try_out("requests", requests::run, 20_000);
}

#[test]
fn a_reply_is_read_as_another_decoder_reads_it() {
    try_out("replies", replies::run, 100_000);
    let mut rng = Rng::with_seed(from_environment("DUNLIN_FUZZ_SEED", 2026));
    for _ in 0..from_environment("DUNLIN_FUZZ_ROUNDS", 20_000) {
        let mut reply = Vec::new();
        frames::write_frame(&mut rng, 4, &mut reply);
        report_failure(replies::run_well_formed, &reply);
        for _ in 0..4 {
            report_failure(replies::run, &changed(&mut rng, std::slice::from_ref(&reply)));
        }
    }
}

#[test]
fn a_script_of_any_bytes_ends_with_one_reply() {
    try_out("scripts", scripts::run, 300);
}

#[test]
fn glob_patterns_agree_with_a_naive_matcher() {
    try_out("patterns", patterns::run, 50_000);
}

#[test]
fn numbers_read_back_as_they_were_written() {
    try_out("numbers", numbers::run, 50_000);
}

/// Runs a target on its seeds, and on seeds with changes.
fn try_out(name: &str, run: fn(&[u8]), rounds: u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name);
    let files = std::fs::read_dir(&folder).expect("every target has seeds");
    let mut paths: Vec<_> = files.map(|file| file.expect("the folder can be read").path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).expect("a seed can be read")).collect();
    let mut rng = Rng::with_seed(from_environment("DUNLIN_FUZZ_SEED", 2026));
    limits::supervised(|progress| {
        let attempt = |bytes: &[u8]| {
            progress.start(bytes);
            report_failure(run, bytes);
        };
        seeds.iter().for_each(|seed| attempt(seed));
        for _ in 0..from_environment("DUNLIN_FUZZ_ROUNDS", rounds) {
            attempt(&changed(&mut rng, &seeds));
        }
    });
}

/// A seed with some bytes changed, added, left out, or taken from another one.
fn changed(rng: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    const EDGES: [u8; 12] = [0, 1, 2, 13, 0x7f, 0x80, 0x81, 0xc0, 0xc3, 0xf0, 0xfe, 0xff];
    let mut bytes = seeds[rng.usize(..seeds.len())].clone();
    for _ in 0..rng.usize(1..6) {
        let at = rng.usize(..=bytes.len());
        match rng.u8(..6) {
            0 => bytes.insert(at, rng.u8(..)),
            1 => bytes.truncate(at.max(1)),
            2 => {
                let other = &seeds[rng.usize(..seeds.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[rng.usize(..=other.len())..]);
            }
            _ if at == bytes.len() => {}
            3 => bytes[at] ^= 1 << rng.u8(..8),
            4 => bytes[at] = EDGES[rng.usize(..EDGES.len())],
            _ => _ = bytes.remove(at),
        }
    }
    bytes
}

/// The most memory that a target may take for one input, in bytes.
const INPUT_BYTES: usize = 16 << 20;

#[global_allocator]
static ALLOCATOR: support::heap::Counting = support::heap::Counting;

/// Runs a target, and shows the bytes if it panics or takes long.
fn report_failure(run: fn(&[u8]), bytes: &[u8]) {
    struct ReportOnPanic<'b>(&'b [u8]);
    impl Drop for ReportOnPanic<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("these bytes fail: b\"{}\"", self.0.escape_ascii());
            }
        }
    }
    let reported = ReportOnPanic(bytes);
    limits::within_limits(|| "this input".to_owned(), |()| INPUT_BYTES, || run(reported.0));
}
