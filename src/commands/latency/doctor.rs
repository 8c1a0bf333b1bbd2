//! LATENCY DOCTOR: a text about latency problems, with advice that this server's own settings can follow.

use std::fmt::Write;

use crate::engine::{Engine, Series};

/// The text about the latency events that were recorded.
pub(super) fn report(engine: &Engine) -> String {
    let (latency_monitor, threshold_ms) = (&engine.stats.latency_monitor, engine.settings.latency_threshold_ms);
    if threshold_ms == 0 && latency_monitor.iter().len() == 0 {
        return "Nothing is noted: latency-monitor-threshold is 0. CONFIG SET latency-monitor-threshold <milliseconds> \
                says from how long on something is worth noting.\n"
            .to_owned();
    }
    if latency_monitor.iter().len() == 0 {
        return format!("Nothing took {threshold_ms} ms or more so far.\n");
    }
    let mut text = "These held everybody up:\n\n".to_owned();
    for (number, (kind, series)) in latency_monitor.iter().enumerate() {
        describe(&mut text, number + 1, kind, series, engine.now().unix_s());
    }
    text.push('\n');
    text.push_str(&advice(engine));
    text
}

fn describe(text: &mut String, number: usize, kind: &str, series: &Series, now_s: i64) {
    let all_ms = series.samples().map(|sample| sample.elapsed_ms as f64);
    let count = all_ms.len() as f64;
    let average_ms = all_ms.clone().sum::<f64>() / count;
    let deviation_ms = all_ms.map(|ms| (ms - average_ms).abs()).sum::<f64>() / count;
    let first_s = series.samples().next().map_or(now_s, |sample| sample.unix_s);
    let period_s = now_s.saturating_sub(first_s) as f64 / count;
    // Writing into a string cannot fail.
    let _ = writeln!(
        text,
        "{number}. {kind}: {count} latency latency_monitor (average {average_ms:.0}ms, mean deviation {deviation_ms:.0}ms, \
         period {period_s:.2} sec). Worst all time event {}ms.",
        series.longest_ms
    );
}

/// The advice about what to check next.
fn advice(engine: &Engine) -> String {
    let threshold_us = engine.settings.latency_threshold_ms.saturating_mul(1000);
    let mut advice = Vec::new();
    let kinds: Vec<&str> = engine.stats.latency_monitor.iter().map(|(kind, _)| kind).collect();
    if kinds.contains(&"command") {
        match engine.settings.slowlog_threshold_us {
            Some(from_us) if from_us <= threshold_us || threshold_us == 0 => {
                advice.push("SLOWLOG GET tells which commands they were.".to_owned());
            }
            _ => advice.push(format!(
                "The slow log does not tell of all of them: CONFIG SET slowlog-log-slower-than {threshold_us}."
            )),
        }
    }
    if kinds.contains(&"fast-command") {
        advice.push(
            "Commands that take next to no time took long: the machine is busy with something else, or short of memory."
                .to_owned(),
        );
    }
    if kinds.contains(&"expire-cycle") {
        advice.push("Many keys fell due together: spread their deadlines.".to_owned());
    }
    advice.iter().map(|line| format!("- {line}\n")).collect()
}
