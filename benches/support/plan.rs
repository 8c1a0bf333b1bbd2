//! The plan of a run: the programs, the workloads, how long and how often each runs.

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use dunlin::value::glob;

/// The programs that are searched on the PATH when none is named.
const USUAL: [&str; 2] = ["redis-server", "valkey-server"];

pub struct Plan {
    /// The programs to compare, ours first.
    pub programs: Vec<PathBuf>,
    /// Patterns of the names of workloads; none means all.
    only: Vec<String>,
    pub rounds: usize,
    /// How long a workload runs.
    pub length: Duration,
    /// The share of the data that is loaded.
    pub scale: f64,
    /// The folder for the table and the picture.
    pub report: Option<PathBuf>,
}

impl Plan {
    /// Reads the words of the command line; `length` is the bench's usual length of a workload. Without `--bench`, as
    /// when tests run, the plan is one short round of our own server.
    pub fn of(words: impl Iterator<Item = String>, length: Duration) -> Result<Plan, Box<dyn Error>> {
        // Cargo adds `--bench` behind all other words.
        let (bench, words): (Vec<String>, Vec<String>) = words.partition(|word| word == "--bench");
        let (is_bench, mut words) = (!bench.is_empty(), words.into_iter());
        let mut plan = Plan {
            programs: vec![env!("CARGO_BIN_EXE_dunlin").into()],
            only: Vec::new(),
            rounds: 1,
            length: Duration::from_millis(5),
            scale: 0.0005,
            report: None,
        };
        if is_bench {
            (plan.rounds, plan.length, plan.scale) = (5, length, 1.0);
        }
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--only" => plan.only = value()?.split(',').map(str::to_owned).collect(),
                "--rounds" => plan.rounds = value()?.parse::<usize>()?.max(1),
                "--seconds" => plan.length = Duration::try_from_secs_f64(value()?.parse()?)?,
                "--report" => plan.report = Some(value()?.into()),
                option if option.starts_with('-') => return Err(format!("{option} is no option").into()),
                program => plan.programs.push(program.into()),
            }
        }
        if is_bench && plan.programs.len() == 1 {
            plan.programs.extend(USUAL.iter().filter_map(|name| on_path(name)));
        }
        Ok(plan)
    }

    /// Whether the workload of that name is to be run.
    pub fn includes(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|pattern| glob::matches(pattern.as_bytes(), name.as_bytes(), true))
    }

    /// Whether this is one short round, as when tests run.
    pub fn is_short(&self) -> bool {
        self.scale < 1.0
    }

    /// The share of `count` that is loaded, at least one.
    pub fn scaled(&self, count: u64) -> u64 {
        ((count as f64 * self.scale) as u64).max(1)
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|program| program.is_file())
}
