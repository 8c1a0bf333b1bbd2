//! Power losses and failing disks: what was acknowledged as durable is there after a restart, and nothing else is.
//!
//! An engine and its files run on a simulated disk, one step at a time, as a seed says. The disk stops before any of
//! its calls, loses what was not synced, and the files are loaded again, several times in a row. A sync that is left
//! out must be noticed by these tests.

mod aof;
mod save;
#[path = "../support/mod.rs"]
mod support;

use dunlin::storage::simulated::{DataLoss, NameLoss, PowerLossModel, SimulatedDisk};

/// How many seeds are run, unless DUNLIN_CRASHES says it.
const SEEDS: u64 = 1000;

/// The number of seeds to run.
fn seeds() -> u64 {
    std::env::var("DUNLIN_CRASHES").map_or(SEEDS, |seeds| seeds.parse().expect("DUNLIN_CRASHES is a number"))
}

/// A disk for a seed. The kinds of disks take turns.
fn disk_of(seed: u64) -> SimulatedDisk {
    SimulatedDisk::with(PowerLossModel {
        names: if seed.is_multiple_of(2) { NameLoss::Any } else { NameLoss::InOrder },
        data: if seed.is_multiple_of(3) { DataLoss::InOrder } else { DataLoss::Any },
        sync_keeps_new_names: seed.is_multiple_of(5),
    })
}
