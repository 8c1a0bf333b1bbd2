//! LATENCY GRAPH: the latency samples of one event as a chart of characters.
//!
//! A column is a sample, four rows high; in each row a character shows whether it reaches the lower, the middle or the
//! upper third. Below, from top to bottom, is the age of the sample. Source: the graphs of Redis 8.0.6 for known
//! samples.

use crate::engine::{Now, Sample, Series};

const COLUMNS: usize = 80;
const ROWS: usize = 4;
/// The characters for the top of a column within a row.
const TOPS: [char; 3] = ['_', 'o', '#'];
/// The character of a column below its top.
const FILL: char = '|';

/// The chart of the samples of that event.
pub(super) fn drawn(kind: &str, series: &Series, now: Now) -> String {
    let samples: Vec<Sample> = series.samples().copied().collect();
    let all_ms = samples.iter().map(|sample| sample.elapsed_ms);
    let (high, low) = (all_ms.clone().max().unwrap_or(0), all_ms.min().unwrap_or(0));
    let longest = series.longest_ms;
    let mut chart = format!("{kind} - high {high} ms, low {low} ms (all time high {longest} ms)\n");
    chart.push_str(&"-".repeat(COLUMNS));
    chart.push('\n');
    let parts: Vec<String> = samples.chunks(COLUMNS).map(|part| part_of_chart(part, low, high, now)).collect();
    chart.push_str(&parts.join("\n"));
    chart
}

fn part_of_chart(samples: &[Sample], low: u64, high: u64, now: Now) -> String {
    let steps = (ROWS * TOPS.len()) as u64;
    let height = |sample: &Sample| {
        let step = (sample.elapsed_ms - low).saturating_mul(steps) / (high - low).max(1);
        step.min(steps - 1) as usize
    };
    let heights: Vec<usize> = samples.iter().map(height).collect();
    let labels: Vec<String> = samples.iter().map(|sample| age(now.unix_s().saturating_sub(sample.unix_s))).collect();
    let mut part = String::new();
    for row in (0..ROWS).rev() {
        part.extend(heights.iter().map(|height| cell(*height, row)));
        part.push('\n');
    }
    // A blank row separates columns and labels.
    part.push_str(&" ".repeat(samples.len()));
    part.push('\n');
    for place in 0..labels.iter().map(String::len).max().unwrap_or(0) {
        part.extend(labels.iter().map(|label| label.chars().nth(place).unwrap_or(' ')));
        part.push('\n');
    }
    part
}

/// The character of a column of that height in a row, counted from the bottom.
fn cell(height: usize, row: usize) -> char {
    match height.checked_sub(row * TOPS.len()) {
        None => ' ',
        Some(rest) => TOPS.get(rest).copied().unwrap_or(FILL),
    }
}

/// An age, in the largest unit that fits.
fn age(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::LatencyMonitor;

    #[test]
    fn a_latency_graph_looks_as_in_redis() {
        let mut latency_monitor = LatencyMonitor::default();
        for (elapsed_ms, unix_s) in [3, 20, 7, 40, 2, 2, 90, 1].into_iter().zip([0, 1, 2, 3, 4, 5, 6, 9]) {
            latency_monitor.add("command", Sample { unix_s, elapsed_ms });
        }
        let series = latency_monitor.get(b"command").expect("it was added");
        let chart = drawn("command", series, Now::from_us(10_000_000));
        let expected = "command - high 90 ms, low 1 ms (all time high 90 ms)\n\
            --------------------------------------------------------------------------------\n      \
            # \n      | \n   #  | \n_#_|__|_\n        \n19876541\n0sssssss\ns       \n";
        assert_eq!(chart, expected);
    }

    #[test]
    fn a_latency_graph_of_more_spikes_than_columns_has_several_parts() {
        let mut latency_monitor = LatencyMonitor::default();
        (0..100).for_each(|unix_s| latency_monitor.add("command", Sample { unix_s, elapsed_ms: 5 }));
        let series = latency_monitor.get(b"command").expect("it was added");
        let chart = drawn("command", series, Now::from_us(100_000_000));
        let widths: Vec<usize> = chart.lines().skip(2).map(str::len).collect();
        assert_eq!(widths, [80, 80, 80, 80, 80, 80, 80, 80, 0, 20, 20, 20, 20, 20, 20, 20, 20]);
    }
}
