//! The append-only file: no durable change is lost and none is invented, whatever happens before the restart.
//!
//! Disks differ in what they do to names. Of what was appended and not synced, the first bytes survive, and perhaps
//! zeros: the file's format has no checksum with which other damage could be found. With `aof-checksum` any sectors may
//! survive.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use dunlin::storage::simulated::{Call, CallKind};

use crate::seeds;
use crate::support::choices::Choices;
use crate::support::crash::machine::Sites;
use crate::support::crash::run::Run;

/// The most seeds until one notices that a sync is left out.
const SEEDS_TO_NOTICE: u64 = 40_000;

fn choices(seed: u64) -> Choices<'static> {
    Choices::Seed(fastrand::Rng::with_seed(seed).u64(1..))
}

fn run_of(seed: u64, has_faults: bool) -> Run<'static> {
    Run::new(choices(seed), has_faults)
}

fn run_seeds(has_faults: bool) {
    for seed in 0..seeds() {
        run_of(seed, has_faults).run().unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    }
}

#[test]
fn no_durable_change_is_lost_and_none_is_invented_by_power_losses() {
    run_seeds(false);
}

#[test]
fn no_durable_change_is_lost_and_none_is_invented_by_a_disk_that_fails() {
    run_seeds(true);
}

/// A disk that keeps any sectors damages the end of a log in any way. A start may refuse it, and never takes other data
/// for those that there were. What is behind the last checksum is not checked, so it is cut off here.
#[test]
fn with_checksums_no_damage_by_a_power_loss_gives_other_data() {
    let (mut refused, seeds) = (0, seeds());
    for seed in 0..seeds {
        let mut run = Run::with_checksums(choices(seed));
        let mut result = run.run();
        while let Err(fault) = &result
            && !fault.contains("reading the append only file")
            && !fault.contains("Wrong checksum in the append only file")
        {
            assert!(fault.contains("none that there were") && run.cut_unchecked_tails(), "seed {seed}: {fault}");
            result = run.start_again();
        }
        refused += u64::from(result.is_err());
    }
    assert!((1..seeds / 4).contains(&refused), "{refused} of {seeds} logs were refused");
}

/// The syncs without which something durable is lost, or a start is refused: where the code is, what is synced, and
/// which of several such syncs it is.
const NEEDED: &[&str] = &[
    "base: the base 1",
    "cut: the single file 1",
    "end: the log",
    "end: the manifest 1",
    "first base: its folder 1",
    "first base: the base 1",
    "first base: the manifest 1",
    "go on: its folder 1",
    "go on: its folder 2",
    "go on: the log",
    "go on: the manifest 1",
    "next file: its folder 1",
    "next file: its folder 2",
    "next file: the manifest 1",
    "open: its folder 1",
    "open: its folder 2",
    "open: the folder above 1",
    "open: the manifest 1",
    "open: the single file 1",
    "publish: its folder 1",
    "publish: its folder 2",
    "publish: the manifest 1",
    "publish: the manifest 2",
    "switch: the log",
    "sync: the log",
    "write: the log",
];

/// The other syncs, each with the reason why nothing is lost without it.
const NOT_NEEDED: &[(&str, &str)] = &[
    ("cut: the log", "the file is synced once more before the server goes on with it"),
    ("end: its folder 1", "only the end offset is lost, which nothing needs"),
    ("first base: its folder 2", "the folder is synced once more before the first change"),
    ("open: its folder 3", "a disk with a journal moves a file as a whole; the next start moves it again"),
    ("open: the folder above 2", "the single file is in its old place, too, where nothing reads it any more"),
    ("publish: its folder 3", "only the lines of removed files are back"),
];

/// The name of a sync: the part of the code, what is synced, and which of several such syncs it is. Those of the log
/// have no number.
fn name(sites: &Sites, call: &Call) -> String {
    let mut current = sites.0.lock().expect("nothing panics");
    let name = call.path.file_name().unwrap_or_default().to_string_lossy();
    let what = match call.kind {
        CallKind::SyncFolder if name == "appendonlydir" => "its folder",
        CallKind::SyncFolder => "the folder above",
        _ if name.ends_with(".manifest") => "the manifest",
        _ if name.contains("base") => "the base",
        _ if name == "appendonly.aof" => "the single file",
        _ => return format!("{}: the log", current.0),
    };
    let count = current.1.entry(what.to_owned()).or_default();
    *count += 1;
    let count = *count;
    format!("{}: {what} {count}", current.0)
}

#[test]
fn no_sync_can_be_left_out() {
    let seen: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    for seed in 0..300 {
        let (mut run, seen) = (run_of(seed, false), Arc::clone(&seen));
        let sites = run.sites.clone();
        run.disk.ignore_syncs(move |call| {
            seen.lock().expect("nothing panics").insert(name(&sites, call));
            false
        });
        run.run().expect("no sync is left out");
    }
    let seen = seen.lock().expect("nothing panics").clone();
    let listed = NEEDED.iter().copied().chain(NOT_NEEDED.iter().map(|(site, _)| *site));
    assert_eq!(seen, listed.map(str::to_owned).collect(), "the lists have all syncs");
    let first = |site: &str| (0..SEEDS_TO_NOTICE).find(|&seed| notices(seed, site));
    let unnoticed: Vec<&&str> = NEEDED.iter().filter(|site| first(site).is_none()).collect();
    assert!(unnoticed.is_empty(), "nothing is lost without {unnoticed:?}");
}

/// Whether a run fails when that sync is left out. In half of the runs, the machine stops soon after it.
fn notices(seed: u64, site: &str) -> bool {
    let mut run = run_of(seed, false);
    let (sites, site) = (run.sites.clone(), site.to_owned());
    run.disk.ignore_syncs(move |call| name(&sites, call) == site);
    if run.choices.below(2) == 0 {
        run.disk.stop_behind_ignored_sync(run.choices.below(6) as u64);
    }
    run.run().is_err()
}
