//! A simulated cluster whose nodes are killed, cut off, late, replaced, added and removed while clients write: what was
//! acknowledged is not lost but where Redis's own promise ends, and all nodes agree when they are connected again.
//!
//! A seed says what happens. DUNLIN_CLUSTERS sets how many seeds are run, or which (`1000..2000`), one in a hundred of
//! them twice. A seed that fails is run again with `DUNLIN_CLUSTER_SEED=7 cargo test --test clusters -- --nocapture`,
//! which prints each step.

#![expect(
    clippy::print_stdout,
    reason = "the numbers of losses, and the steps of one seed, are for whoever asks for them"
)]

mod history;
mod simulation;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, thread};

use history::Reason;
use simulation::Simulation;

/// How many seeds are run, unless DUNLIN_CLUSTERS says it.
const SEEDS: u64 = 1500;

/// How many seeds have two runs that are compared, unless DUNLIN_CLUSTERS says it.
const COMPARED: u64 = 50;
/// One of so many seeds has two runs if DUNLIN_CLUSTERS is set.
const SEEDS_PER_COMPARED: u64 = 100;
/// After how many seeds a long run says how far it is.
const SEEDS_PER_REPORT: u64 = 10_000;

fn seeds_in(name: &str) -> Option<Range<u64>> {
    let text = env::var(name).ok()?;
    let (start, end) = text.split_once("..").unwrap_or(("0", &text));
    let [start, end] = [start, end].map(|seed| seed.parse().unwrap_or_else(|_| panic!("{name} is a number or range")));
    Some(start..end)
}

fn only_seed() -> Option<Range<u64>> {
    let last = seeds_in("DUNLIN_CLUSTER_SEED")?.end;
    Some(last..last + 1)
}

/// Plays each seed, on all processors; after one that fails, no further seed is begun.
///
/// # Panics
/// A seed has failed.
fn for_each_seed(seeds: Range<u64>, play: impl Fn(u64) -> Result<(), String> + Sync) {
    let (next, failures) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()));
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= seeds.end {
            break;
        }
        if let Err(failure) = play(seed) {
            next.store(seeds.end, Ordering::Relaxed);
            failures.lock().expect("no thread panics").push(format!("seed {seed}: {failure}"));
        }
    };
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| (0..processors).for_each(|_| _ = scope.spawn(work)));
    let failures = failures.into_inner().expect("no thread panics");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn no_write_is_lost_that_all_nodes_of_its_shard_had_and_all_nodes_agree_in_the_end() {
    let one = only_seed();
    let (is_printed, seeds) = (one.is_some(), one.or_else(|| seeds_in("DUNLIN_CLUSTERS")).unwrap_or(0..SEEDS));
    let totals = Mutex::new(BTreeMap::<Reason, u64>::new());
    for_each_seed(seeds.clone(), |seed| {
        let mut simulation = Simulation::new(seed, is_printed);
        let losses = simulation.run().map_err(|fault| format!("{fault}\n{}", simulation.story()))?;
        let mut totals = totals.lock().expect("no thread panics");
        losses.into_iter().for_each(|(reason, count)| *totals.entry(reason).or_insert(0) += count);
        if seed > seeds.start && seed % SEEDS_PER_REPORT == 0 {
            println!("seed {seed} of {seeds:?}: {totals:?}");
        }
        Ok(())
    });
    let totals = totals.into_inner().expect("no thread panics");
    println!("{totals:?}");
    // The failures are such that writes do get lost, and some do not.
    if seeds.end - seeds.start >= SEEDS {
        let happens = |reason: &&str| totals.get(reason).is_some_and(|count| *count > 0);
        let events = [
            "kept",
            "late",
            "stale",
            "lost by FORCE",
            "lost by TAKEOVER",
            "lost by LOSING",
            "left out",
            "nodes added",
            "nodes removed",
            "epochs settled",
        ];
        assert!(events.iter().all(happens), "{totals:?}");
    }
}

#[test]
fn the_same_seed_is_the_same_story_with_the_same_states_in_the_end() {
    let first_of = |seeds: Range<u64>| {
        let count = (seeds.end - seeds.start).div_ceil(SEEDS_PER_COMPARED);
        seeds.start..seeds.start + count
    };
    let seeds = only_seed().or_else(|| seeds_in("DUNLIN_CLUSTERS").map(first_of)).unwrap_or(0..COMPARED);
    for_each_seed(seeds, |seed| {
        let tell = || {
            let mut simulation = Simulation::new(seed, false);
            simulation.run()?;
            simulation.tell_states();
            Ok::<_, String>(simulation.story().to_owned())
        };
        let stories = [tell()?, tell()?];
        if stories[0] == stories[1] { Ok(()) } else { Err(stories.join("\n--\n")) }
    });
}
