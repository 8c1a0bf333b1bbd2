//! LATENCY: events that delayed all clients (DOCTOR, GRAPH, HISTORY, LATEST, RESET), and the durations of each command
//! (HISTOGRAM).

mod doctor;
mod graph;

use super::help;
use crate::engine::{Args, Arity, Command, CommandId, Ctx, Error, Family, Flags, LatencyHistogram, ServerError, shown};
use crate::resp::Reply;

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[LATENCY];

const LATENCY: Command = Command {
    name: "LATENCY",
    family: Family::Server,
    arity: Arity::AtLeast(2),
    since: "2.8.13",
    cost: "Depends on subcommand.",
    about: "A container for commands about latency.",
    subcommands: &[DOCTOR, GRAPH, HISTOGRAM, HISTORY, LATEST, RESET, help::row(Family::Server, "2.8.13")],
    ..Command::ROW
};

/// Fields shared by the rows of its subcommands.
const ROW: Command = Command {
    family: Family::Server,
    arity: Arity::Exactly(2),
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING).and(Flags::STALE),
    since: "2.8.13",
    tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
    ..Command::ROW
};

const DOCTOR: Command = Command {
    name: "DOCTOR",
    about: "Returns a text about latency problems and possible remedies.",
    run: |cx, _| {
        let report = doctor::report(cx.engine());
        cx.reply().verbatim("txt", report.as_bytes());
        Ok(())
    },
    ..ROW
};

const GRAPH: Command = Command {
    name: "GRAPH",
    syntax: "event",
    arity: Arity::Exactly(3),
    about: "Draws the latencies of an event.",
    run: draw,
    ..ROW
};

fn draw(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let kind = args.word()?;
    let now = cx.now();
    let series =
        cx.engine().stats.latency_monitor.get(kind).ok_or_else(|| ServerError::NoLatencySamples(shown(kind)))?;
    let drawn = graph::drawn(&shown(kind), series, now);
    cx.reply().verbatim("txt", drawn.as_bytes());
    Ok(())
}

const HISTORY: Command = Command {
    name: "HISTORY",
    syntax: "event",
    arity: Arity::Exactly(3),
    about: "Returns the latency samples of an event: times and milliseconds.",
    run: history,
    ..ROW
};

fn history(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let kind = args.word()?;
    let (engine, reply) = cx.engine_and_reply();
    let Some(series) = engine.stats.latency_monitor.get(kind) else {
        reply.array(0);
        return Ok(());
    };
    let samples = series.samples();
    reply.array(samples.len());
    for sample in samples {
        reply.array(2);
        reply.integer(sample.unix_s);
        reply.integer(sample.elapsed_ms as i64);
    }
    Ok(())
}

const LATEST: Command = Command {
    name: "LATEST",
    about: "Returns the latest latency sample of each event: its time, its milliseconds, and the maximum ever.",
    run: latest,
    ..ROW
};

fn latest(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let (engine, reply) = cx.engine_and_reply();
    let kinds = engine.stats.latency_monitor.iter();
    reply.array(kinds.len());
    for (kind, series) in kinds {
        let last = series.samples().last().copied().unwrap_or_default();
        reply.array(4);
        reply.bulk(kind.as_bytes());
        reply.integer(last.unix_s);
        reply.integer(last.elapsed_ms as i64);
        reply.integer(series.longest_ms as i64);
    }
    Ok(())
}

const RESET: Command = Command {
    name: "RESET",
    syntax: "[event [event ...]]",
    arity: Arity::AtLeast(2),
    about: "Deletes the latency samples of some events, or of all; returns the number of events that had any.",
    tips: &["request_policy:all_nodes", "response_policy:agg_sum"],
    run: reset,
    ..ROW
};

fn reset(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let latency_monitor = &mut cx.stats_mut().latency_monitor;
    let forgotten = if args.is_empty() {
        latency_monitor.clear()
    } else {
        args.rest().filter(|kind| latency_monitor.forget(kind)).count()
    };
    cx.reply().count(forgotten);
    Ok(())
}

const HISTOGRAM: Command = Command {
    name: "HISTOGRAM",
    syntax: "[command [command ...]]",
    arity: Arity::AtLeast(2),
    since: "7.0.0",
    cost: "O(N), N being the number of commands in the reply",
    about: "Returns for each command how many calls took at most 1, 2, 4, ... microseconds.",
    run: histogram,
    ..ROW
};

fn histogram(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let (engine, reply) = cx.engine_and_reply();
    let table = &engine.table;
    let ids: Vec<CommandId> = if args.is_empty() {
        table.ids().collect()
    } else {
        args.rest().filter_map(|name| table.find_full(name)).flat_map(|id| table.with_subcommands(id)).collect()
    };
    let reported = ids.into_iter().map(|id| (id, &engine.stats.command(id).latency_histogram));
    let reported: Vec<_> = reported.filter(|(_, durations)| durations.calls() > 0).collect();
    reply.map(reported.len());
    for (id, durations) in reported {
        reply.bulk(table.entry(id).name.as_bytes());
        write_histogram(reply, durations);
    }
    Ok(())
}

fn write_histogram(reply: &mut Reply<'_>, durations: &LatencyHistogram) {
    let steps = durations.steps();
    reply.map(2);
    reply.bulk(b"calls");
    reply.integer(durations.calls() as i64);
    reply.bulk(b"histogram_usec");
    reply.map(steps.len());
    for (step_us, calls) in steps {
        reply.integer(step_us as i64);
        reply.integer(calls as i64);
    }
}
