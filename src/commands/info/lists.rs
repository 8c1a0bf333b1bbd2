//! The sections that have one line for each of several things.

use std::fmt::Write;

use super::Scene;

/// A line for each command that was called or refused.
pub(super) fn commands(scene: &Scene<'_>, text: &mut String) {
    for (entry, stats) in scene.engine.table.entries().iter().zip(scene.engine.stats.by_command()) {
        if stats.calls + stats.failed + stats.rejected == 0 {
            continue;
        }
        let average_us = if stats.calls == 0 { 0.0 } else { stats.elapsed_us as f64 / stats.calls as f64 };
        line(
            text,
            format_args!(
                "cmdstat_{}:calls={},usec={},usec_per_call={average_us:.2},rejected_calls={},failed_calls={}",
                entry.name, stats.calls, stats.elapsed_us, stats.rejected, stats.failed
            ),
        );
    }
}

/// A line for each command whose calls were timed.
pub(super) fn latencies(scene: &Scene<'_>, text: &mut String) {
    let percentiles = &scene.engine.settings.latency_percentiles;
    for (entry, stats) in scene.engine.table.entries().iter().zip(scene.engine.stats.by_command()) {
        if stats.durations.calls() == 0 {
            continue;
        }
        let told = percentiles.iter().map(|percent| {
            let ns = stats.durations.percentile_ns(*percent);
            format!("p{percent}={}.{:03}", ns / 1000, ns % 1000)
        });
        let told: Vec<String> = told.collect();
        line(text, format_args!("latency_percentiles_usec_{}:{}", entry.name, told.join(",")));
    }
}

/// A line for each error code that was answered.
pub(super) fn errors(scene: &Scene<'_>, text: &mut String) {
    for (code, count) in &scene.engine.stats.errors_by_code {
        line(text, format_args!("errorstat_{code}:count={count}"));
    }
}

/// A line for each database that holds keys.
pub(super) fn databases(scene: &Scene<'_>, text: &mut String) {
    for (number, database) in scene.engine.databases.iter().enumerate().filter(|(_, database)| !database.is_empty()) {
        let average_ttl_ms = database.average_ttl_ms(scene.now.unix_ms());
        line(
            text,
            format_args!(
                "db{number}:keys={},expires={},avg_ttl={average_ttl_ms},subexpiry={}",
                database.len(),
                database.volatile_len(),
                database.volatile_parts_len()
            ),
        );
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing into a string cannot fail.
    let _ = write!(text, "{line}\r\n");
}
