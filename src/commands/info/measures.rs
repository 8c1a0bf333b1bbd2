//! The metrics of declared measures: queues, sets and sorted sets of an application (DUNLIN MEASURE).
//!
//! Each family has a sample for each measure of its kind; a measure without keys in a role has no sample of that role.

use super::InfoContext;
use super::exposition::{Exposition, MetricType};
use crate::engine::exec::measures::{Reading, Readings};
use crate::engine::state::measures::{Measure, MeasureCounts, MeasureKind, Role};

/// A measure with what is known of it.
struct Measured<'m> {
    measure: &'m Measure,
    reading: &'m Reading,
    counts: MeasureCounts,
    now_ms: u64,
}

/// A family of samples: its kind of measures, its name, its description and the value of a measure, if it has one.
type Row = (MeasureKind, &'static str, &'static str, fn(&Measured<'_>) -> Option<f64>);

const GAUGES: [Row; 10] = [
    (MeasureKind::Queue, "dunlin_queue_length", "The elements of a queue.", |all| Some(all.reading.length as f64)),
    (
        MeasureKind::Queue,
        "dunlin_queue_wait_seconds",
        "The longest time that an entry of a stream has waited for a consumer.",
        |all| all.reading.waiting_since_ms.map(|since_ms| all.now_ms.saturating_sub(since_ms) as f64 / 1000.0),
    ),
    (MeasureKind::Queue, "dunlin_queue_processing_length", "The elements that were taken and are processed.", |all| {
        Some(all.reading.processing as f64)
    }),
    (MeasureKind::Set, "dunlin_set_cardinality", "The members of a set.", |all| Some(all.reading.length as f64)),
    (MeasureKind::Set, "dunlin_set_large_keys", "The sets of more than 10,000 members.", |all| {
        Some(all.reading.large as f64)
    }),
    (MeasureKind::Zset, "dunlin_zset_cardinality", "The members of a sorted set.", |all| {
        Some(all.reading.length as f64)
    }),
    (MeasureKind::Zset, "dunlin_zset_delayed", "The members whose time has not come.", |all| {
        all.measure.unit.map(|_| all.reading.length.saturating_sub(all.reading.due) as f64)
    }),
    (MeasureKind::Zset, "dunlin_zset_due", "The members whose time has come, by the server's clock.", |all| {
        all.measure.unit.map(|_| all.reading.due as f64)
    }),
    (MeasureKind::Zset, "dunlin_zset_processing", "The members that were claimed and are processed.", |all| {
        all.measure.has(Role::Processing).then_some(all.reading.processing as f64)
    }),
    (
        MeasureKind::Zset,
        "dunlin_zset_visibility_expired",
        "The members that are processed and whose time for it has passed.",
        |all| all.measure.has(Role::Processing).then_some(all.reading.processing_due as f64),
    ),
];

const COUNTERS: [Row; 5] = [
    (MeasureKind::Queue, "dunlin_queue_failed_total", "The elements that were put to the failed ones.", |all| {
        all.measure.has(Role::Failed).then_some(all.counts.failed as f64)
    }),
    (MeasureKind::Queue, "dunlin_queue_requeued_total", "The elements that were put back into the queue.", |all| {
        all.measure.has(Role::Processing).then_some(all.counts.requeued as f64)
    }),
    (MeasureKind::Set, "dunlin_set_first_seen_total", "The members that were added.", |all| {
        Some(all.counts.first_seen as f64)
    }),
    (MeasureKind::Set, "dunlin_set_duplicate_total", "The members to add that were there already.", |all| {
        Some(all.counts.duplicates as f64)
    }),
    (
        MeasureKind::Set,
        "dunlin_set_large_keys_detected_total",
        "The sets that have grown to more than 10,000 members.",
        |all| Some(all.counts.grown_large as f64),
    ),
];

const DURATIONS: [(MeasureKind, &str, &str); 3] = [
    (MeasureKind::Queue, "dunlin_queue_pop_latency_seconds", "How long requests took that took elements of a queue."),
    (MeasureKind::Set, "dunlin_set_lookup_latency_seconds", "How long requests took that looked up members of a set."),
    (MeasureKind::Zset, "dunlin_zset_claim_latency_seconds", "How long requests took that claimed members."),
];

/// Writes the metrics of all measures.
pub(super) fn measures(context: &InfoContext<'_>, readings: &Readings, out: &mut Exposition) {
    let counts = |name: &str| {
        let mut all = context.engine.observers.measures.iter().flat_map(|measures| measures.iter());
        all.find(|(measure, _)| measure.name == name).map(|(_, counts)| *counts).unwrap_or_default()
    };
    let now_ms = context.now.unix_ms().cast_unsigned();
    let all: Vec<Measured<'_>> = readings
        .iter()
        .map(|(measure, reading)| Measured { measure, reading, counts: counts(&measure.name), now_ms })
        .collect();
    let of = |kind| all.iter().filter(move |measured| measured.measure.kind == kind);
    let gauges = GAUGES.map(|row| (MetricType::Gauge, row));
    let counters = COUNTERS.map(|row| (MetricType::Counter, row));
    for (metric_type, (kind, name, help, value)) in gauges.into_iter().chain(counters) {
        out.family(name, metric_type, help);
        for (measured, value) in of(kind).filter_map(|all| Some((all, value(all)?))) {
            out.sample(name, &[(kind.name(), &measured.measure.name)], value);
        }
    }
    for (kind, name, help) in DURATIONS {
        out.family(name, MetricType::Histogram, help);
        for measured in of(kind) {
            out.durations(name, &[(kind.name(), &measured.measure.name)], &measured.counts.latency);
        }
    }
}
