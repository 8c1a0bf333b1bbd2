//! Code shared by the benches that compare servers: the servers, the plan of what runs for how long, the requests and
//! the clients that send them.

#![allow(dead_code, reason = "each bench uses a part of it")]

pub(crate) mod frames;
pub(crate) mod load;
pub(crate) mod peer;
pub(crate) mod plan;
pub(crate) mod requests;
pub(crate) mod stream;

use std::error::Error;
use std::fs;

use peer::Peer;
use plan::Plan;

/// The names of the servers as they report them, ours by the name of this project.
pub(crate) fn names(plan: &Plan) -> Result<Vec<String>, Box<dyn Error>> {
    let (_, peers) = plan.programs.split_first().ok_or("there is always ours")?;
    let versions: Result<Vec<String>, _> = peers.iter().map(|program| Peer::start(program)?.version()).collect();
    Ok([format!("dunlin {}", env!("CARGO_PKG_VERSION"))].into_iter().chain(versions?).collect())
}

/// The name of the processor and its number of cores.
pub(crate) fn machine() -> String {
    let facts = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        facts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("", |line| line.1);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {cores} cores, {}", std::env::consts::OS)
}
