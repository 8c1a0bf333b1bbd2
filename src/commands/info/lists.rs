//! The sections of INFO that have one line for each of several things, such as commands or databases.

use std::fmt::Write;

use super::InfoContext;
use crate::commands::module;
use crate::engine::state::CommandStats;
use crate::value::View;

/// The commands that were called or refused, with their counters.
pub(super) fn called<'s>(context: &'s InfoContext<'_>) -> impl Iterator<Item = (&'s str, &'s CommandStats)> {
    let all = context.engine.table.entries().iter().zip(context.engine.stats.by_command());
    let was_called = |stats: &CommandStats| stats.calls + stats.failed + stats.rejected > 0;
    all.filter(move |(_, stats)| was_called(stats)).map(|(entry, stats)| (&*entry.name, stats))
}

/// The commands whose calls were timed, with their counters.
pub(super) fn timed<'s>(context: &'s InfoContext<'_>) -> impl Iterator<Item = (&'s str, &'s CommandStats)> {
    called(context).filter(|(_, stats)| stats.latency_histogram.calls() > 0)
}

/// A line for each command that was called or refused.
pub(super) fn commands(context: &InfoContext<'_>, text: &mut String) {
    for (name, stats) in called(context) {
        let average_us = if stats.calls == 0 { 0.0 } else { stats.elapsed_us as f64 / stats.calls as f64 };
        line(
            text,
            format_args!(
                "cmdstat_{name}:calls={},usec={},usec_per_call={average_us:.2},rejected_calls={},failed_calls={}",
                stats.calls, stats.elapsed_us, stats.rejected, stats.failed
            ),
        );
    }
}

/// A line for each command whose calls were timed.
pub(super) fn latencies(context: &InfoContext<'_>, text: &mut String) {
    let percentiles = &context.engine.settings.latency_percentiles;
    for (name, stats) in timed(context) {
        let reported = percentiles
            .iter()
            .map(|percent| format!("p{percent}={}", microseconds(stats.latency_histogram.percentile_ns(*percent))));
        let reported: Vec<String> = reported.collect();
        line(text, format_args!("latency_percentiles_usec_{name}:{}", reported.join(",")));
    }
}

/// Nanoseconds as microseconds with three decimals.
pub(super) fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// A line for each error code that was returned.
pub(super) fn errors(context: &InfoContext<'_>, text: &mut String) {
    for (code, count) in context.engine.stats.errors_by_code.iter() {
        line(text, format_args!("errorstat_{}:count={count}", shown_code(code)));
    }
}

/// An error code without what would end its line or its name.
pub(super) fn shown_code(code: &str) -> String {
    code.replace(['#', ':', '\n', '\r'], "_")
}

/// A line for each listening socket; each kind has its own index.
pub(super) fn listeners(context: &InfoContext<'_>, text: &mut String) {
    let (settings, facts) = (&context.engine.settings, context.facts);
    let tcp =
        (settings.port > 0).then(|| format!("name=tcp,bind={},port={}", settings.bind.join(",bind="), settings.port));
    let unix = (!facts.unix_socket.is_empty()).then(|| format!("name=unix,bind={}", facts.unix_socket));
    for (number, listener) in [tcp, unix].into_iter().enumerate() {
        if let Some(listener) = listener {
            line(text, format_args!("listener{number}:{listener}"));
        }
    }
}

/// A line for each event loop.
pub(super) fn threads(context: &InfoContext<'_>, text: &mut String) {
    let engine = context.engine;
    let mut clients = vec![0_usize; engine.settings.event_loops()];
    for session in engine.sessions.iter().filter(|session| !session.origin.is_page) {
        clients.get_mut(session.origin.event_loop).into_iter().for_each(|clients| *clients += 1);
    }
    for (number, clients) in clients.into_iter().enumerate() {
        let transfers = engine.stats.transfers.get(number).copied().unwrap_or_default();
        let (reads, writes) = (transfers.reads, transfers.writes);
        line(text, format_args!("io_thread_{number}:clients={clients},reads={reads},writes={writes}"));
    }
}

/// A line for each database and type: how many keys have at least 0, 1, 2, 4, ... bytes or elements and fewer than the
/// next of these numbers.
pub(super) fn sizes(context: &InfoContext<'_>, text: &mut String) {
    const KINDS: [&str; 5] = ["strings_sizes", "lists_items", "sets_items", "zsets_items", "hashes_items"];
    for (number, database) in context.engine.databases.iter().enumerate().filter(|(_, database)| !database.is_empty()) {
        let mut counts = [[0_usize; BINS]; KINDS.len()];
        database.handles().for_each(|handle| {
            // Most values are short texts, and this takes a fraction of the time that a view takes.
            let size = database.text_len(handle).map(|length| (0, length));
            if let Some((kind, size)) = size.or_else(|| size_of_value(database.view(handle))) {
                counts[kind][bin_of(size)] += 1;
            }
        });
        for (kind, counts) in KINDS.iter().zip(counts) {
            let used = counts.into_iter().enumerate().filter(|(_, keys)| *keys > 0);
            let bins: Vec<String> = used.map(|(number, keys)| format!("{}={keys}", lower_bound(number))).collect();
            if !bins.is_empty() {
                line(text, format_args!("db{number}_distrib_{kind}:{}", bins.join(",")));
            }
        }
    }
}

/// The index of a type in this section, and the size of a value.
fn size_of_value(view: View<'_>) -> Option<(usize, usize)> {
    match view {
        View::Text(text) => Some((0, text.len())),
        View::List(list) => Some((1, list.len())),
        View::Set(set) => Some((2, set.len())),
        View::Zset(zset) => Some((3, zset.len())),
        View::Hash(hash) => Some((4, hash.len())),
        View::Stream(_) | View::VectorSet(_) => None,
    }
}

/// The number of bins: one for 0, and one for each power of two.
const BINS: usize = 1 + usize::BITS as usize;

/// The bin of a size.
#[inline]
fn bin_of(size: usize) -> usize {
    (usize::BITS - size.leading_zeros()) as usize
}

/// The lower bound of a bin: 0, or a power of two.
fn lower_bound(bin: usize) -> String {
    const UNITS: [(u32, &str); 6] = [(60, "E"), (50, "P"), (40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let Some(power) = (bin as u32).checked_sub(1) else { return "0".to_owned() };
    match UNITS.into_iter().find(|(bits, _)| power >= *bits) {
        Some((bits, unit)) => format!("{}{unit}", 1_u64 << (power - bits)),
        None => (1_u64 << power).to_string(),
    }
}

/// A line for each database that holds keys.
pub(super) fn databases(context: &InfoContext<'_>, text: &mut String) {
    for (number, database) in context.engine.databases.iter().enumerate().filter(|(_, database)| !database.is_empty()) {
        let average_ttl_ms = database.average_ttl_ms(context.now.unix_ms());
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

/// The modules.
pub(super) fn modules(_: &InfoContext<'_>, text: &mut String) {
    line(text, format_args!("module:{}", module::facts()));
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing into a string cannot fail.
    let _ = text.write_fmt(line);
    text.push_str("\r\n");
}
