//! A simulated cluster whose nodes are killed, cut off, late, replaced, added and removed while clients write: what was
//! acknowledged is not lost but where Redis's own promise ends, and all nodes agree when they are connected again.
//!
//! A seed says what happens. DUNLIN_CLUSTERS sets how many seeds are run, one in a hundred of them twice. A seed that
//! fails is run again with `DUNLIN_CLUSTER_SEED=7 cargo test --test clusters -- --nocapture`, which prints each step.

#![expect(
    clippy::print_stdout,
    reason = "the numbers of losses, and the steps of one seed, are for whoever asks for them"
)]

mod history;
mod simulation;

use std::collections::BTreeMap;

use simulation::Simulation;

/// How many seeds are run, unless DUNLIN_CLUSTERS says it.
const SEEDS: u64 = 1500;

/// How many seeds have two runs that are compared, unless DUNLIN_CLUSTERS says it.
const COMPARED: u64 = 50;
/// One of so many seeds has two runs if DUNLIN_CLUSTERS is set.
const SEEDS_PER_COMPARED: u64 = 100;
/// After how many seeds a long run says how far it is.
const SEEDS_PER_REPORT: u64 = 10_000;

fn number_in(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|number| number.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[test]
fn no_write_is_lost_that_all_nodes_of_its_shard_had_and_all_nodes_agree_in_the_end() {
    let one = number_in("DUNLIN_CLUSTER_SEED");
    let seeds = one.map_or(0..number_in("DUNLIN_CLUSTERS").unwrap_or(SEEDS), |seed| seed..seed + 1);
    let (number, mut totals) = (seeds.end - seeds.start, BTreeMap::new());
    for seed in seeds {
        let mut simulation = Simulation::new(seed, one.is_some());
        let outcome = simulation.run();
        let losses = outcome.unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{}", simulation.story()));
        losses.into_iter().for_each(|(reason, count)| *totals.entry(reason).or_insert(0) += count);
        if seed > 0 && seed % SEEDS_PER_REPORT == 0 {
            println!("{seed} of {number} seeds: {totals:?}");
        }
    }
    println!("{totals:?}");
    // The failures are such that writes do get lost, and some do not.
    if number >= SEEDS {
        let happens = |reason: &&str| totals.get(reason).is_some_and(|count| *count > 0);
        let events = ["kept", "late", "stale", "nodes added", "nodes removed", "epochs settled"];
        assert!(events.iter().all(happens), "{totals:?}");
    }
}

#[test]
fn the_same_seed_is_the_same_story() {
    let count = number_in("DUNLIN_CLUSTERS").map_or(COMPARED, |seeds| seeds.div_ceil(SEEDS_PER_COMPARED));
    for seed in number_in("DUNLIN_CLUSTER_SEED").map_or(0..count, |seed| seed..seed + 1) {
        let stories = [(); 2].map(|()| {
            let mut simulation = Simulation::new(seed, false);
            simulation.run().unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
            simulation.story().to_owned()
        });
        assert!(stories[0] == stories[1], "seed {seed}:\n{}\n--\n{}", stories[0], stories[1]);
    }
}
