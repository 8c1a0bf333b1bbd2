//! The figures as a table, the worst ratio first.
//!
//! The figure of a server is the lower quartile of its rounds, because other load on the machine only adds to a round:
//! the server then wakes up for each request by itself. A row is noise when the lowest and the middle round of our
//! server, or of the best peer, are further apart than the two servers are.

use crate::connections::{Connected, Sample};
use crate::contest::Timed;

struct Line {
    name: String,
    figures: Vec<Option<f64>>,
    ratio: Option<f64>,
    is_noise: bool,
}

/// The page with all rows.
pub fn table(names: &[String], machine: &str, timed: Vec<Timed>) -> String {
    let mut lines: Vec<Line> = timed.into_iter().map(line).collect();
    lines.sort_by(|left, right| right.ratio.unwrap_or(0.0).total_cmp(&left.ratio.unwrap_or(0.0)));
    let ratios: Vec<f64> = lines.iter().filter_map(|line| line.ratio).collect();
    let behind = |bound: f64| lines.iter().filter(|line| !line.is_noise && line.ratio > Some(bound)).count();
    let mut page = format!(
        "On {machine}.\n\nThe server's processor time for a command in nanoseconds, and ours by the best other, the worst \
         first. Of {} rows {} are behind by more than noise, {} of them by more than a tenth and {} by more than a fifth; \
         the median of all ratios is {:.2}.\n\n| row | {} | ratio | |\n|---|{}---|---|\n",
        ratios.len(),
        behind(1.0),
        behind(1.1),
        behind(1.2),
        if ratios.is_empty() { 0.0 } else { median(&ratios) },
        names.join(" | "),
        "---|".repeat(names.len()),
    );
    for line in &lines {
        let figure = |figure: &Option<f64>| figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.0}"));
        let figures: Vec<String> = line.figures.iter().map(figure).collect();
        let ratio = line.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        let noise = if line.is_noise { "noise" } else { "" };
        page.push_str(&format!("| {} | {} | {ratio} | {noise} |\n", line.name, figures.join(" | ")));
    }
    page
}

/// The lines of the connections.
pub fn connections(names: &[String], rows: &[Connected]) -> String {
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
            (Some(ours.figure / best.figure), ours.width.max(best.width) > difference)
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
