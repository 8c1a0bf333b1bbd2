//! This server compared with others on this machine: throughput, processor time and memory.
//!
//! `cargo bench --bench peers -- PROGRAM ...` starts each program, which takes redis-server's command line, anew for
//! each workload and round, in turns, on a free port of 127.0.0.1 and without files. Without a program it takes the
//! `redis-server` and `valkey-server` that are on the PATH. `--only NAME,...` takes some workloads or data sets (`*`
//! matches anything), `--rounds N` and `--seconds S` set how often and how long each runs, `--report DIRECTORY` writes
//! the table and a picture there. One thread of this program is all clients, so on two cores the server has the
//! other one.
//!
//! The figures come from `/proc`, so this runs on Linux only; elsewhere it does nothing.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]
#![expect(clippy::disallowed_methods, reason = "a bench asks the clock")]

mod memory;
mod picture;
mod report;
#[path = "../support/mod.rs"]
mod support;
mod workloads;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use memory::{DATA, bytes_an_item, stale_share};
use picture::Bars;
use report::{Better, Figures, Row, head, percentile_us};
use support::peer::{self, Peer};
use support::plan::Plan;
use support::requests::Requests;
use support::{load, machine, names};
use workloads::{WORKLOADS, Workload};

/// The depth of the pipelines that fill a server.
const PRELOAD: load::Shape = load::Shape { connections: 8, operations_in_flight: 64 };
const LINGERING: &str = "expired keys that linger";

fn main() -> Result<(), Box<dyn Error>> {
    if !cfg!(target_os = "linux") {
        println!("there is no /proc here to read figures from");
        return Ok(());
    }
    let plan = Plan::of(std::env::args().skip(1), Duration::from_secs(2))?;
    let servers = names(&plan)?;
    let mut table = Vec::new();
    let mut print = |line: String| {
        println!("{line}");
        table.push(line);
    };
    print(format!("On {}.\n", machine()));
    print("Commands a second, the server's processor time a command, and the p50/p99/p99.9 of waits in microseconds; the \
         last columns are ours by the best other.\n"
        .to_owned());
    print(head(&servers));
    let mut rows = Vec::new();
    for workload in WORKLOADS.iter().filter(|workload| plan.includes(workload.name)) {
        let row = measured(&plan, workload)?;
        print(row.line());
        rows.push(row);
    }
    print(format!("\n| bytes of memory for | {} |\n|---|{}", servers.join(" | "), "---|".repeat(servers.len())));
    for data in DATA.iter().filter(|data| plan.includes(data.name)) {
        print(line_for_each(&plan, data.name, |program| {
            Ok(format!("{:.1}", bytes_an_item(program, data, plan.scaled(data.items))?))
        })?);
    }
    if plan.includes(LINGERING) && plan.scaled(200_000) > 10_000 {
        print(line_for_each(&plan, LINGERING, |program| {
            let (mean, worst) = stale_share(program, plan.scaled(200_000))?;
            Ok(format!("{:.2} %, at worst {:.1} %", mean * 100.0, worst * 100.0))
        })?);
    }
    if let Some(directory) = &plan.report {
        fs::create_dir_all(directory)?;
        fs::write(directory.join("peers.md"), table.join("\n") + "\n")?;
        let (ours, peers) = servers.split_first().ok_or("there is always ours")?;
        let caption = format!("{ours} by the best of {}, on {}", peers.join(", "), machine());
        fs::write(directory.join("peers.svg"), picture::draw("dunlin beside its peers", &caption, &bars(&rows)))?;
    }
    Ok(())
}

/// Runs all rounds of a workload, in each of them one server after the other.
fn measured(plan: &Plan, workload: &Workload) -> Result<Row, Box<dyn Error>> {
    let mut row = Row { name: workload.name, servers: vec![Vec::new(); plan.programs.len()] };
    for round in 0..plan.rounds {
        for (program, figures) in plan.programs.iter().zip(&mut row.servers) {
            figures.push(one_round(plan, workload, program, round as u64)?);
        }
    }
    Ok(row)
}

fn one_round(plan: &Plan, workload: &Workload, program: &Path, seed: u64) -> Result<Figures, Box<dyn Error>> {
    let mut peer = Peer::start(program)?;
    let script = match workload.script {
        "" => String::new(),
        source => peer.text(&["SCRIPT", "LOAD", source].map(str::to_owned))?,
    };
    let texts: &[(&str, &[u8])] = &[("script", script.as_bytes())];
    let (filling, operations) = workload.before;
    if !filling.is_empty() {
        let mut requests = Requests::new(filling, workload.keys, texts, seed);
        load::fill(peer.address(), PRELOAD, &mut requests, plan.scaled(operations))?;
    }
    let mut requests = Requests::new(workload.operation, workload.keys, texts, seed);
    let before = peer.processor_time()?;
    let outcome = load::drive(peer.address(), workload.shape, &mut requests, plan.length)?;
    let spent = peer.processor_time()?.saturating_sub(before);
    if outcome.errors > 0 {
        return Err(format!("{}: {} gave {} errors", workload.name, program.display(), outcome.errors).into());
    }
    let commands = outcome.commands.max(1) as f64;
    Ok(Figures {
        commands_a_second: commands / outcome.elapsed.as_secs_f64(),
        cpu_us: spent.as_secs_f64() * 1e6 / commands,
        p50_us: percentile_us(&outcome.waits, 0.5),
        p99_us: percentile_us(&outcome.waits, 0.99),
        p999_us: percentile_us(&outcome.waits, 0.999),
    })
}

fn line_for_each(
    plan: &Plan,
    name: &str,
    figure: impl Fn(&Path) -> Result<String, Box<dyn Error>>,
) -> Result<String, Box<dyn Error>> {
    let figures: Result<Vec<String>, _> = plan.programs.iter().map(|program| figure(program)).collect();
    Ok(format!("| {name} | {} |", figures?.join(" | ")))
}

fn bars(rows: &[Row]) -> Vec<Bars> {
    let bars = |row: &Row| {
        let throughput = row.ratio(|figures| figures.commands_a_second, Better::More)?;
        let cpu = row.ratio(|figures| figures.cpu_us, Better::Less)?;
        Some(Bars { name: row.name.to_owned(), throughput, cpu })
    };
    rows.iter().filter_map(bars).collect()
}
