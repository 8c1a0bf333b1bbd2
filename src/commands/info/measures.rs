//! The metrics of declared measures: queues, sets and sorted sets of an application (DUNLIN MEASURE).
//!
//! Each family has a sample for each measure of its kind; a measure without keys in a role has no sample of that role.

use super::Scene;
use super::exposition::{Exposition, MetricType};
use crate::engine::exec::measures::{Reading, Readings};
use crate::engine::state::measures::{Measure, MeasureCounts, MeasureKind, Role};

/// A measure with what is known of it.
struct Measured<'m> {
    measure: &'m Measure,
    reading: &'m Reading,
    counts: MeasureCounts,
}

/// A family of samples: its kind of measures, its name, its description and the value of a measure, if it has one.
type Row = (MeasureKind, &'static str, &'static str, fn(&Measured<'_>) -> Option<u64>);

const GAUGES: [Row; 8] = [
    (MeasureKind::Queue, "dunlin_queue_length", "The elements of a queue.", |all| Some(all.reading.length)),
    (MeasureKind::Queue, "dunlin_queue_processing_length", "The elements that were taken and are processed.", |all| {
        Some(all.reading.processing)
    }),
    (MeasureKind::Set, "dunlin_set_cardinality", "The members of a set.", |all| Some(all.reading.length)),
    (MeasureKind::Zset, "dunlin_zset_cardinality", "The members of a sorted set.", |all| Some(all.reading.length)),
    (MeasureKind::Zset, "dunlin_zset_delayed", "The members whose time has not come.", |all| {
        all.measure.unit.map(|_| all.reading.length.saturating_sub(all.reading.due))
    }),
    (MeasureKind::Zset, "dunlin_zset_due", "The members whose time has come, by the server's clock.", |all| {
        all.measure.unit.map(|_| all.reading.due)
    }),
    (MeasureKind::Zset, "dunlin_zset_processing", "The members that were claimed and are processed.", |all| {
        all.measure.has(Role::Processing).then_some(all.reading.processing)
    }),
    (
        MeasureKind::Zset,
        "dunlin_zset_visibility_expired",
        "The members that are processed and whose time for it has passed.",
        |all| all.measure.has(Role::Processing).then_some(all.reading.processing_due),
    ),
];

const COUNTERS: [Row; 4] = [
    (MeasureKind::Queue, "dunlin_queue_failed_total", "The elements that were put to the failed ones.", |all| {
        all.measure.has(Role::Failed).then_some(all.counts.failed)
    }),
    (MeasureKind::Queue, "dunlin_queue_requeued_total", "The elements that were put back into the queue.", |all| {
        all.measure.has(Role::Processing).then_some(all.counts.requeued)
    }),
    (MeasureKind::Set, "dunlin_set_first_seen_total", "The members that were added.", |all| {
        Some(all.counts.first_seen)
    }),
    (MeasureKind::Set, "dunlin_set_duplicate_total", "The members to add that were there already.", |all| {
        Some(all.counts.duplicates)
    }),
];

const DURATIONS: [(MeasureKind, &str, &str); 3] = [
    (MeasureKind::Queue, "dunlin_queue_pop_latency_seconds", "How long requests took that took elements of a queue."),
    (MeasureKind::Set, "dunlin_set_lookup_latency_seconds", "How long requests took that looked up members of a set."),
    (MeasureKind::Zset, "dunlin_zset_claim_latency_seconds", "How long requests took that claimed members."),
];

/// Writes the metrics of all measures.
pub(super) fn measures(scene: &Scene<'_>, readings: &Readings, out: &mut Exposition) {
    let counts = |name: &str| {
        let mut all = scene.engine.observers.measures.iter().flat_map(|measures| measures.iter());
        all.find(|(measure, _)| measure.name == name).map(|(_, counts)| *counts).unwrap_or_default()
    };
    let all: Vec<Measured<'_>> = readings
        .iter()
        .map(|(measure, reading)| Measured { measure, reading, counts: counts(&measure.name) })
        .collect();
    let of = |kind| all.iter().filter(move |measured| measured.measure.kind == kind);
    let gauges = GAUGES.map(|row| (MetricType::Gauge, row));
    let counters = COUNTERS.map(|row| (MetricType::Counter, row));
    for (metric_type, (kind, name, help, value)) in gauges.into_iter().chain(counters) {
        let samples: Vec<_> = of(kind).filter_map(|all| Some((all.measure.name.as_str(), value(all)?))).collect();
        if !samples.is_empty() {
            out.family(name, metric_type, help);
            samples.iter().for_each(|(label, value)| out.sample(name, &[(kind.name(), label)], value));
        }
    }
    for (kind, name, help) in DURATIONS {
        if of(kind).next().is_some() {
            out.family(name, MetricType::Histogram, help);
        }
        for measured in of(kind) {
            out.durations(name, &[(kind.name(), &measured.measure.name)], &measured.counts.latency);
        }
    }
}
