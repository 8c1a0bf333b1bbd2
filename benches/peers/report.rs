//! The results, as lines of a table.
//!
//! A ratio is our figure divided by the best peer's of the same round; the median of all rounds is shown, because other
//! load on the machine disturbs a round for all. More throughput is better; of all other figures less is better.

use std::time::Duration;

/// One server under one workload in one round.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub commands_a_second: f64,
    /// The server's processor time for a command, in microseconds.
    pub cpu_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
}

/// One workload: for each server, ours first, the figures of its rounds.
pub struct Row {
    pub name: &'static str,
    pub servers: Vec<Vec<Figures>>,
}

/// Whether more or less of a figure is better.
#[derive(Clone, Copy)]
pub enum Better {
    More,
    Less,
}

impl Row {
    /// The median of a server's rounds.
    pub fn middle(&self, server: usize, field: fn(&Figures) -> f64) -> f64 {
        median(self.servers[server].iter().map(field))
    }

    /// Our figure divided by the best peer's; `None` without peers.
    pub fn ratio(&self, field: fn(&Figures) -> f64, better: Better) -> Option<f64> {
        let (ours, peers) = self.servers.split_first()?;
        if peers.is_empty() {
            return None;
        }
        let best = |round: usize| {
            let values = peers.iter().map(|rounds| field(&rounds[round]));
            match better {
                Better::More => values.fold(f64::NEG_INFINITY, f64::max),
                Better::Less => values.fold(f64::INFINITY, f64::min),
            }
        };
        Some(median(ours.iter().enumerate().map(|(round, figures)| field(figures) / best(round))))
    }

    /// The workload's line of the table.
    pub fn line(&self) -> String {
        let server = |index: usize| {
            format!(
                "{:.0} k/s, {:.2} µs, {:.0}/{:.0}/{:.0}",
                self.middle(index, |figures| figures.commands_a_second) / 1e3,
                self.middle(index, |figures| figures.cpu_us),
                self.middle(index, |figures| figures.p50_us),
                self.middle(index, |figures| figures.p99_us),
                self.middle(index, |figures| figures.p999_us),
            )
        };
        let servers: Vec<String> = (0..self.servers.len()).map(server).collect();
        let ratios = [
            self.ratio(|figures| figures.commands_a_second, Better::More),
            self.ratio(|figures| figures.cpu_us, Better::Less),
            self.ratio(|figures| figures.p99_us, Better::Less),
        ];
        let ratios = ratios.map(|ratio| ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")));
        format!("| {} | {} | {} |", self.name, servers.join(" | "), ratios.join(" | "))
    }
}

/// The first two lines of the table of workloads.
pub fn head(servers: &[String]) -> String {
    format!(
        "| workload | {} | throughput | CPU | p99 |\n|---|{}---|---|---|",
        servers.join(" | "),
        "---|".repeat(servers.len())
    )
}

/// The wait at a given share of all waits of a run (a percentile), in microseconds.
pub fn percentile_us(ascending: &[Duration], share: f64) -> f64 {
    let place = (ascending.len() as f64 * share) as usize;
    ascending.get(place.min(ascending.len().saturating_sub(1))).map_or(0.0, |wait| wait.as_secs_f64() * 1e6)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
