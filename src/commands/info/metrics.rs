//! The metrics of a server for Prometheus.
//!
//! The names, types and labels that begin with `redis_` are those of redis_exporter, so its dashboards work as they
//! are. Most are fields of INFO: their rows say which. This file has those that the exporter makes of something else,
//! and our own, which begin with `dunlin_`.
//!
//! Left out are metrics of the exporter itself, those that it derives from lines that it does not know
//! (`redis_db0_distrib_...` has no values, and its `redis_db_keys_cached` shows the keys that have fields with
//! deadlines), and those that its options add for single keys. No label is ever a key: the number of lines depends only
//! on the commands, databases and rules.
//!
//! Cost: that of INFO, a fraction of a millisecond, without a pass over the keys; strict mode adds a look at each key
//! that it traces. Source: redis_exporter 1.45 and 1.88.

use std::collections::BTreeMap;

use super::exposition::{Exposition, MetricType};
use super::fields::Field;
use super::lists::{called, microseconds, shown_code, timed};
use super::measures::measures;
use super::peers::peers;
use super::{InfoContext, Lines, SECTIONS};
use crate::config;
use crate::engine::exec::kit::strict;
use crate::engine::exec::measures::Readings;
use crate::engine::exec::timing;
use crate::engine::state::kit::{Finding, Level, Rule};
use crate::engine::state::{CommandStats, Series};
use crate::engine::{Engine, REDIS_VERSION};
use crate::keyspace::Database;
use crate::value::TYPES;

/// The figures for the metrics that the engine does not know.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// The number of worlds of the server.
    pub worlds: usize,
    /// How far the clock is ahead of the system's, in microseconds.
    pub clock_offset_us: i64,
    /// The readings of measured keys.
    pub readings: Readings,
}

/// The metrics of a server at this moment, in Prometheus's text format.
pub fn metrics(engine: &mut Engine, surroundings: &Surroundings) -> String {
    timing::sample_for_info(engine);
    let context = InfoContext::of(engine);
    let mut out = Exposition::default();
    out.metric("redis_up", MetricType::Gauge, "The server answers.", 1);
    instance(&context, &mut out);
    fields(&context, &mut out);
    parameters(&context, &mut out);
    peers(&context, &mut out);
    databases(&context, &mut out);
    commands(&context, &mut out);
    percentiles(&context, &mut out);
    durations(&context, &mut out);
    errors(&context, &mut out);
    slow_log(&context, &mut out);
    delays(&context, &mut out);
    own(&context, surroundings, &mut out);
    memory(context.engine, &mut out);
    measures(&context, &surroundings.readings, &mut out);
    out.into_text()
}

/// The rows of INFO.
fn rows() -> impl Iterator<Item = &'static Field> {
    let fields = SECTIONS.iter().map(|section| match section.lines {
        Lines::Fields(fields) => fields,
        Lines::List(_) => &[],
    });
    fields.flatten()
}

/// The properties of the server, as labels.
fn instance(context: &InfoContext<'_>, out: &mut Exposition) {
    const LABELS: [&str; 10] = [
        "role",
        "redis_version",
        "redis_build_id",
        "redis_mode",
        "os",
        "maxmemory_policy",
        "tcp_port",
        "run_id",
        "process_id",
        "master_replid",
    ];
    let value = |name: &str| {
        let mut value = String::new();
        if let Some(row) = rows().find(|row| row.name == name) {
            (row.value)(context).write(&mut value);
        }
        value
    };
    let values = LABELS.map(value);
    let labels: Vec<(&'static str, &str)> = LABELS.into_iter().zip(values.iter().map(String::as_str)).collect();
    out.family("redis_instance_info", MetricType::Gauge, "What the server is, as labels.");
    out.sample("redis_instance_info", &labels, 1);
    // The clock may have been set to before that, and INFO's uptime is 0 then.
    let started_s = context.engine.timing.started().unix_s();
    out.metric("redis_start_time_seconds", MetricType::Gauge, "When the server started, in Unix time.", started_s);
}

/// The fields of INFO that are metrics.
fn fields(context: &InfoContext<'_>, out: &mut Exposition) {
    let mut value = String::new();
    for row in rows().filter(|row| (row.is_shown)(context)) {
        let Some((kind, name)) = row.metric else { continue };
        value.clear();
        (row.value)(context).write(&mut value);
        let number = match &*value {
            "ok" => "1",
            "err" => "0",
            number => number,
        };
        out.metric(format_args!("redis_{name}"), kind, format_args!("INFO's field {}.", row.name), number);
    }
    let checkpoint_s = context.engine.persistence.last_checkpoint_us as f64 / 1e6;
    let help = "INFO's field latest_fork_usec, in seconds.";
    out.metric("redis_latest_fork_seconds", MetricType::Gauge, help, checkpoint_s);
}

/// The parameters that are metrics.
fn parameters(context: &InfoContext<'_>, out: &mut Exposition) {
    let shown = |name: &str| config::shown(name, &context.engine.settings).unwrap_or_default();
    for name in ["io-threads", "maxclients", "maxmemory", "repl-backlog-size"] {
        let metric = format!("redis_config_{}", name.replace('-', "_"));
        out.metric(metric, MetricType::Gauge, format_args!("The parameter {name}."), shown(name));
    }
    let limits = shown("client-output-buffer-limit");
    let words: Vec<&str> = limits.split(' ').collect();
    let of_classes = || words.chunks_exact(4);
    let name = "redis_config_client_output_buffer_limit_bytes";
    out.family(name, MetricType::Gauge, "The limits of output buffers by class of clients.");
    for words in of_classes() {
        out.sample(name, &[("class", words[0]), ("limit", "hard")], words[1]);
        out.sample(name, &[("class", words[0]), ("limit", "soft")], words[2]);
    }
    let name = "redis_config_client_output_buffer_limit_overcome_seconds";
    out.family(name, MetricType::Gauge, "How long output buffers may be over their soft limit.");
    of_classes().for_each(|words| out.sample(name, &[("class", words[0]), ("limit", "soft")], words[3]));
}

/// The numbers of keys by database.
fn databases(context: &InfoContext<'_>, out: &mut Exposition) {
    let all: Vec<(String, &Database)> = context
        .engine
        .databases
        .iter()
        .enumerate()
        .map(|(number, database)| (format!("db{number}"), database))
        .collect();
    let mut family = |name: &str, help: &str, value: &dyn Fn(&Database) -> Option<f64>| {
        out.family(name, MetricType::Gauge, help);
        for (label, database) in &all {
            if let Some(value) = value(database) {
                out.sample(name, &[("db", label)], value);
            }
        }
    };
    family("redis_db_keys", "The number of keys.", &|database| Some(database.len() as f64));
    family("redis_db_keys_expiring", "The number of keys with a deadline.", &|database| {
        Some(database.volatile_len() as f64)
    });
    let now_ms = context.now.unix_ms();
    family("redis_db_avg_ttl_seconds", "The average time to the deadlines of keys.", &|database| {
        (!database.is_empty()).then(|| database.average_ttl_ms(now_ms) as f64 / 1000.0)
    });
}

/// The counters of commands.
fn commands(context: &InfoContext<'_>, out: &mut Exposition) {
    let mut family = |name: &str, help: &str, value: &dyn Fn(&CommandStats) -> f64| {
        out.family(name, MetricType::Counter, help);
        called(context).for_each(|(command, stats)| out.sample(name, &[("cmd", command)], value(stats)));
    };
    family("redis_commands_total", "The calls of a command.", &|stats| stats.calls as f64);
    family("redis_commands_duration_seconds_total", "The time that the calls of a command took.", &|stats| {
        stats.elapsed_us as f64 / 1e6
    });
    family("redis_commands_rejected_calls_total", "The requests that were refused before the command ran.", &|stats| {
        stats.rejected as f64
    });
    family("redis_commands_failed_calls_total", "The calls of a command that replied with an error.", &|stats| {
        stats.failed as f64
    });
}

/// The percentiles of the durations of calls.
fn percentiles(context: &InfoContext<'_>, out: &mut Exposition) {
    let name = "redis_latency_percentiles_usec";
    out.family(name, MetricType::Summary, "The microseconds that a share of the calls of a command did not exceed.");
    // The setting may have one twice.
    let mut percents = context.engine.settings.latency_percentiles.clone();
    percents.sort_by(f64::total_cmp);
    percents.dedup();
    for (command, stats) in timed(context) {
        for percent in &percents {
            let value = microseconds(stats.latency_histogram.percentile_ns(*percent));
            out.sample(name, &[("cmd", command), ("quantile", &percent.to_string())], value);
        }
        out.sample(format_args!("{name}_sum"), &[("cmd", command)], stats.elapsed_us);
        out.sample(format_args!("{name}_count"), &[("cmd", command)], stats.calls);
    }
}

/// The histograms of the durations of calls.
fn durations(context: &InfoContext<'_>, out: &mut Exposition) {
    let name = "redis_commands_latencies_usec";
    out.family(name, MetricType::Histogram, "The calls of a command that took at most so many microseconds.");
    for (command, stats) in timed(context) {
        let steps = stats.latency_histogram.steps().into_iter();
        let buckets = steps.map(|(bound_us, calls)| (bound_us as f64, calls));
        let total = (stats.elapsed_us, stats.latency_histogram.calls());
        out.histogram(name, &[("cmd", command)], buckets, total);
    }
}

/// The errors by their first word.
fn errors(context: &InfoContext<'_>, out: &mut Exposition) {
    out.family("redis_errors_total", MetricType::Counter, "The replies that were errors, by their first word.");
    // Codes that differ may be shown as the same.
    let mut counts = BTreeMap::<String, u64>::new();
    for (code, count) in context.engine.stats.errors_by_code.iter() {
        *counts.entry(shown_code(code)).or_default() += count;
    }
    counts.iter().for_each(|(code, count)| out.sample("redis_errors_total", &[("err", code)], count));
}

/// The length of the slow log, and its last entry.
fn slow_log(context: &InfoContext<'_>, out: &mut Exposition) {
    let mut entries = context.engine.stats.slow_log.entries();
    out.metric("redis_slowlog_length", MetricType::Gauge, "The entries of the slow log.", entries.len());
    let last = entries.next();
    let number = last.map_or(0, |last| last.number);
    out.metric("redis_slowlog_last_id", MetricType::Gauge, "The number of the last entry of the slow log.", number);
    let elapsed_s = last.map_or(0.0, |last| last.elapsed_us as f64 / 1e6);
    let help = "The time that the command in the last entry of the slow log took.";
    out.metric("redis_last_slow_execution_duration_seconds", MetricType::Gauge, help, elapsed_s);
}

/// The last of each kind of events that delayed all clients (LATENCY LATEST).
fn delays(context: &InfoContext<'_>, out: &mut Exposition) {
    let lasts: Vec<_> = context.engine.stats.latency_monitor.iter().collect();
    let last = |series: &Series| series.samples().last().copied().unwrap_or_default();
    let name = "redis_latency_spike_last";
    out.family(name, MetricType::Gauge, "When an event last delayed all clients, in Unix time.");
    lasts.iter().for_each(|(event, series)| out.sample(name, &[("event_name", event)], last(series).unix_s));
    let name = "redis_latency_spike_duration_seconds";
    out.family(name, MetricType::Gauge, "For how long an event last delayed all clients.");
    for (event, series) in &lasts {
        out.sample(name, &[("event_name", event)], last(series).elapsed_ms as f64 / 1000.0);
    }
}

/// The metrics that only this server has.
fn own(context: &InfoContext<'_>, surroundings: &Surroundings, out: &mut Exposition) {
    out.family("dunlin_build_info", MetricType::Gauge, "The version of the program, as labels.");
    out.sample("dunlin_build_info", &[("version", env!("CARGO_PKG_VERSION")), ("redis_version", REDIS_VERSION)], 1);
    out.metric("dunlin_worlds", MetricType::Gauge, "The worlds of the server.", surroundings.worlds);
    let offset_s = surroundings.clock_offset_us as f64 / 1e6;
    let help = "How far the server's clock is ahead of the system's.";
    out.metric("dunlin_clock_offset_seconds", MetricType::Gauge, help, offset_s);
    let name = "dunlin_expiry_lag_seconds";
    out.family(name, MetricType::Histogram, "How long after their deadline keys and fields were removed by the timer.");
    out.durations(name, &[], &context.engine.stats.expiry_lag);
    let Some(kit) = context.engine.observers.kit.as_ref() else { return };
    if kit.strict.is_some() {
        let findings = strict::findings(context.engine);
        out.family("dunlin_strict_findings_total", MetricType::Counter, "The findings of strict mode.");
        for (rule, level) in Rule::ALL.into_iter().flat_map(|rule| [(rule, Level::Warn), (rule, Level::Error)]) {
            let is_counted = |finding: &&Finding| (finding.rule, finding.level) == (rule, level);
            let times: u64 = findings.iter().filter(is_counted).map(|finding| finding.times).sum();
            let labels = [("rule", rule.name()), ("level", level.name())];
            out.sample("dunlin_strict_findings_total", &labels, times);
        }
    }
    let help = "How often the faults of the test kit have fired.";
    out.family("dunlin_faults_fired_total", MetricType::Counter, help);
    for fault in kit.faults.rules() {
        // A lossy text would give two names one.
        let name = match std::str::from_utf8(&fault.name) {
            Ok(name) => name.to_owned(),
            Err(_) => fault.name.escape_ascii().to_string(),
        };
        out.sample("dunlin_faults_fired_total", &[("fault", &name)], fault.trigger.fired);
    }
}

/// The memory of the world, by what it is for. A value that is stored beside its key counts with the keys: which type
/// it has would have to be noted at each change of it, or looked for in all keys.
fn memory(engine: &Engine, out: &mut Exposition) {
    let stored = || engine.databases.iter().filter(|database| !database.is_empty());
    let sum = |bytes: &dyn Fn(&Database) -> usize| stored().map(bytes).sum::<usize>();
    let mut structures: Vec<(&str, usize)> = (TYPES.into_iter().enumerate())
        .map(|(number, name)| (name, sum(&|database| database.values_memory()[number])))
        .collect();
    let values: usize = structures.iter().map(|(_, bytes)| bytes).sum();
    let scripts = &engine.scripts;
    let snapshots = engine.databases.snapshot_bytes();
    structures.extend([
        ("keys", sum(&Database::content_bytes) - values),
        ("table", sum(&|database| database.tables_memory().0)),
        ("deadlines", sum(&|database| database.tables_memory().1)),
        ("hash_slots", sum(&Database::hash_slots_memory)),
        ("reserve", engine.databases.iter().map(Database::slack).sum()),
        ("clients", engine.sessions.memory_bytes()),
        (
            "scripts",
            scripts.cache.memory_bytes() + scripts.functions.registry.memory_bytes() + scripts.all_machine_bytes(),
        ),
        ("snapshots", snapshots),
    ]);
    out.family("dunlin_memory_bytes", MetricType::Gauge, "The memory of the world, by what it is for.");
    for (structure, bytes) in structures {
        out.sample("dunlin_memory_bytes", &[("structure", structure)], bytes);
    }
    let help = "The memory of what the snapshots need to bring back data that have changed.";
    out.metric("dunlin_snapshot_bytes", MetricType::Gauge, help, snapshots);
}
