//! Every command compared with other servers on this machine: the server's processor time for a command.
//!
//! `cargo bench --bench commands -- PROGRAM ...` starts this server and each program, which takes redis-server's
//! command line, once, and times the rows of `groups` in turns: in each round a row runs for a moment on one server
//! after the other, with the same commands in the same order, first one by one and then in pipelines of 16. A second
//! table is about connections. `--only NAME,...` takes some rows (`*` matches anything, and `?` one character, such as
//! a comma), `--rounds N` and `--seconds S` say how often and how long each runs, `--report DIRECTORY` writes the page
//! there. The first replies to a row must be of the same kinds on all servers.
//!
//! `taskset -c 1 chrt --batch 0 cargo bench ...` gives figures that other load hardly disturbs: servers and clients
//! then share one processor, and none interrupts another.
//!
//! A kernel whose congestion control is BBR sends long replies by a timer, and charges that to whichever process it
//! interrupts. A server that sends each reply of 100 KB at once then seems to take twice as long as one that sends many
//! together. In a network namespace (`unshare -n`, `ip link set lo up`) with
//! `sysctl net.ipv4.tcp_congestion_control=reno` both are charged for what they do.
//!
//! A command of the command table without a row, or a reason to have none, is an error. Without `--bench`, as in tests,
//! each row is only checked, on this server. The figures come from `/proc`, so this runs on Linux only; elsewhere it
//! does nothing.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]
#![expect(clippy::disallowed_methods, reason = "a bench asks the clock")]

mod connections;
mod contest;
mod report;
mod rows;
#[path = "../support/mod.rs"]
mod support;

use std::error::Error;
use std::fs;
use std::time::Duration;

use dunlin::commands::FAMILIES;
use dunlin::engine::Table;

use contest::Contest;
use rows::Step;
use support::peer;
use support::plan::Plan;
use support::{machine, names};

/// How long a row usually runs on a server in a round.
const LENGTH: Duration = Duration::from_millis(40);

fn main() -> Result<(), Box<dyn Error>> {
    if !cfg!(target_os = "linux") {
        println!("there is no /proc here to read figures from");
        return Ok(());
    }
    let plan = Plan::of(std::env::args().skip(1), LENGTH)?;
    let commands: Vec<String> = Table::of(FAMILIES).entries().iter().map(|entry| entry.name.clone()).collect();
    let mut faults = rows::faults(&commands)?;
    let names = names(&plan)?;
    let mut contest = Contest::start(&plan)?;
    let mut timed = Vec::new();
    for group in rows::groups()? {
        let is_included = |step: &Step| matches!(step, Step::Time(row) if plan.includes(row.name));
        let Some(last) = group.steps.iter().rposition(is_included) else { continue };
        println!("{} ...", group.name);
        contest.clear()?;
        for step in &group.steps[..=last] {
            let outcome = match step {
                Step::Fill { times, command } => contest.fill(*times, command),
                Step::Listen { clients, command } => contest.listen(*clients, command),
                Step::Time(row) if !plan.includes(row.name) => Ok(()),
                Step::Time(row) => contest.time(row, &mut timed),
            };
            if let Err(fault) = outcome {
                println!("{}: {fault}", group.name);
                faults.push(format!("{}: {fault}", group.name));
            }
        }
    }
    drop(contest);
    let connected = connections::measured(&plan)?;
    let page = report::page(&plan, &names, &machine(), timed, &connected);
    println!("{page}");
    if let Some(directory) = &plan.report {
        fs::create_dir_all(directory)?;
        fs::write(directory.join("commands.md"), page)?;
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n").into()) }
}
