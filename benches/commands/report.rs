//! The figures as a table, the worst ratio first.
//!
//! The figure of a server is the lower quartile of its rounds, because other load on the machine only adds to a round:
//! the server then wakes up for each request by itself. A row is noise when the lowest and the middle round of our
//! server, or of the best peer, are further apart than the two servers are.

use std::thread;

use crate::connections::{Connected, Sample};
use crate::contest::Timed;
use crate::support::plan::Plan;

/// The programs that keep servers and clients on one processor, and from interrupting each other.
const ONE_PROCESSOR: &str = "taskset -c 1 chrt --batch 0 ";

const ON_ONE_PROCESSOR: &str = "
Servers and clients share one processor, and none interrupts another: so a server wakes up for many commands at once,
whatever else the machine does.";

struct Line {
    name: String,
    figures: Vec<Option<f64>>,
    ratio: Option<f64>,
    is_noise: bool,
}

/// The page with all figures, and how they are made.
pub fn page(plan: &Plan, names: &[String], machine: &str, timed: Vec<Timed>, connected: &[Connected]) -> String {
    let lines = lines(timed);
    let programs = if is_on_one_processor() { ONE_PROCESSOR } else { "" };
    let (rounds, seconds) = (plan.rounds, plan.length.as_secs_f64());
    let mut page = format!(
        "# Every command beside its peers

This page is what

```sh
{programs}cargo bench --bench commands -- /path/to/redis-server /path/to/valkey-server --rounds {rounds} --seconds {seconds} --report docs/measured
```

wrote on {machine}.

",
    );
    page.push_str(&summary(&lines));
    page.push_str(&table(names, &lines));
    page.push_str(&connections(names, connected));
    page
}

fn lines(timed: Vec<Timed>) -> Vec<Line> {
    let mut lines: Vec<Line> = timed.into_iter().map(line).collect();
    lines.sort_by(|left, right| right.ratio.unwrap_or(0.0).total_cmp(&left.ratio.unwrap_or(0.0)));
    lines
}

fn is_on_one_processor() -> bool {
    thread::available_parallelism().is_ok_and(|count| count.get() == 1)
}

fn summary(lines: &[Line]) -> String {
    let ratios: Vec<f64> = lines.iter().filter_map(|line| line.ratio).collect();
    let behind = |bound: f64| lines.iter().filter(|line| !line.is_noise && line.ratio > Some(bound)).count();
    let middle = if ratios.is_empty() { "unknown".to_owned() } else { format!("{:.2}", median(&ratios)) };
    format!(
        "Each row has the servers' processor time for a command in nanoseconds, the lower quartile of the rounds, and the
ratio of ours to that of the best other server, the worst first. The figures include what the kernel does for the server:
nearly all of a short command that is not pipelined. A row is noise when the rounds of one server differ by more than the
servers do. `-` marks a server that lacks the command.{}

Of {} rows, {} are behind by more than noise: {} of them by more than a tenth, {} by more than a fifth. The median of
all ratios is {middle}.
",
        if is_on_one_processor() { ON_ONE_PROCESSOR } else { "" },
        ratios.len(),
        behind(1.0),
        behind(1.1),
        behind(1.2),
    )
}

fn table(names: &[String], lines: &[Line]) -> String {
    let mut table =
        format!("\n| row | {} | ratio | |\n|---|{}---|---|\n", names.join(" | "), "---|".repeat(names.len()));
    for line in lines {
        let figure = |figure: &Option<f64>| figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.0}"));
        let figures: Vec<String> = line.figures.iter().map(figure).collect();
        let ratio = line.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        let noise = if line.is_noise { "noise" } else { "" };
        table.push_str(&format!("| {} | {} | {ratio} | {noise} |\n", line.name, figures.join(" | ")));
    }
    table
}

/// The lines of the connections.
fn connections(names: &[String], rows: &[Connected]) -> String {
    let mut page =
        format!("\n| connections | {} | ratio |\n|---|{}---|\n", names.join(" | "), "---|".repeat(names.len()));
    for row in rows {
        let cpu = |samples: &Vec<Sample>| quartile(&samples.iter().map(|sample| sample.cpu_ns).collect::<Vec<f64>>());
        let speed = |samples: &Vec<Sample>| median(&samples.iter().map(|sample| sample.a_second).collect::<Vec<f64>>());
        let figure = |samples: &Vec<Sample>| format!("{:.0} ns, {:.0} k/s", cpu(samples), speed(samples) / 1e3);
        let figures: Vec<String> = row.servers.iter().map(figure).collect();
        let best = row.servers.iter().skip(1).map(cpu).fold(f64::INFINITY, f64::min);
        let ratio = if best.is_finite() { format!("{:.2}", cpu(&row.servers[0]) / best) } else { "-".to_owned() };
        page.push_str(&format!("| {} | {} | {ratio} |\n", row.name, figures.join(" | ")));
    }
    page
}

fn line(timed: Timed) -> Line {
    let spreads: Vec<Option<Spread>> =
        timed.servers.iter().map(|rounds| (!rounds.is_empty()).then(|| Spread::of(rounds))).collect();
    let best = spreads.iter().skip(1).flatten().min_by(|left, right| left.figure.total_cmp(&right.figure));
    let (ratio, is_noise) = match (&spreads[0], best) {
        (Some(ours), Some(best)) => {
            let difference = (ours.figure - best.figure).abs();
            (Some(ours.figure / best.figure.max(1.0)), ours.width.max(best.width) > difference)
        }
        _ => (None, false),
    };
    let figures = spreads.iter().map(|spread| Some(spread.as_ref()?.figure)).collect();
    Line { name: timed.name, figures, ratio, is_noise }
}

/// The rounds of a server.
struct Spread {
    figure: f64,
    /// From the lowest round to the middle one.
    width: f64,
}

impl Spread {
    fn of(rounds: &[f64]) -> Spread {
        Spread { figure: quartile(rounds), width: median(rounds) - ascending(rounds)[0] }
    }
}

/// The lower quartile.
fn quartile(values: &[f64]) -> f64 {
    ascending(values)[values.len() / 4]
}

fn median(values: &[f64]) -> f64 {
    let values = ascending(values);
    values[values.len() / 2]
}

fn ascending(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values
}
