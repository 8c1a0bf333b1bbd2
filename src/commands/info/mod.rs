//! INFO: information about the server, in sections of `name:value` lines.
//!
//! A line is a row with its name and the function that computes its value; [`fields`] has those of the fixed sections
//! and [`lists`] the sections that have a line per command, error or database. Every value is true, or the line is
//! left out: a counter of something that this server does not do is 0. The system's allocator has no statistics, so
//! INFO shows what Redis shows for such an allocator. The sizes of keys are counted when they are shown, by a pass
//! over all keys; if there are very many, only when requested by name or by `all`. The same rows are the
//! [`mod@metrics`] for Prometheus.

mod exposition;
mod fields;
mod lists;
mod measures;
mod metrics;
mod peers;
mod replication;
mod value;

use fields::Field;
pub use metrics::{Surroundings, metrics};
use std::cell::OnceCell;

use crate::engine::exec::operations;
use crate::engine::state::host::{Facts, ProcessorTimes, Usage};
use crate::engine::{
    Aof, Args, Arity, Change, Command, Counts, Ctx, Engine, Error, Family, Flags, Loading, Now, Saving, says,
};
use crate::keyspace::Database;

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[INFO];

const INFO: Command = Command {
    name: "INFO",
    syntax: "[section [section ...]]",
    family: Family::Server,
    arity: Arity::AtLeast(1),
    flags: Flags::LOADING.and(Flags::STALE).and(Flags::DANGEROUS),
    history: &[Change::says("7.0.0", "Takes several sections.")],
    about: "Returns information about the server, in sections.",
    tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    run: info,
    ..Command::ROW
};

/// The sources of the values.
struct InfoContext<'e> {
    engine: &'e Engine,
    facts: &'e Facts,
    usage: Usage,
    now: Now,
    /// Figures that several lines need, each computed once.
    used_bytes: OnceCell<u64>,
    data_bytes: OnceCell<u64>,
    rates: OnceCell<Counts>,
    processor_time: OnceCell<ProcessorTimes>,
}

impl<'e> InfoContext<'e> {
    fn of(engine: &'e Engine) -> InfoContext<'e> {
        InfoContext {
            engine,
            facts: engine.host.facts(),
            usage: engine.host.usage(),
            now: engine.now(),
            used_bytes: OnceCell::new(),
            data_bytes: OnceCell::new(),
            rates: OnceCell::new(),
            processor_time: OnceCell::new(),
        }
    }
}

impl InfoContext<'_> {
    /// The save in the background.
    fn saving(&self) -> Option<&Saving> {
        self.engine.persistence.saving.as_deref()
    }

    /// The append-only file.
    fn aof(&self) -> &Aof {
        &self.engine.persistence.aof
    }

    /// The file that is being loaded.
    fn loading(&self) -> Loading {
        self.engine.persistence.loading.as_deref().copied().unwrap_or_default()
    }
}

/// A section that can be requested by its name.
struct Section {
    name: &'static str,
    title: &'static str,
    /// Whether the section is shown by default.
    is_default: fn(&Engine) -> bool,
    /// Whether the section is part of `all`.
    is_shown_with_all: bool,
    lines: Lines,
    /// Writes the lines after those of the fields.
    more: Option<fn(&InfoContext<'_>, &mut String)>,
    /// An alias of the section.
    alias: Option<&'static str>,
}

enum Lines {
    /// One line for each field.
    Fields(&'static [Field]),
    /// The function that writes the lines.
    List(fn(&InfoContext<'_>, &mut String)),
}

const SECTIONS: &[Section] = &[
    Section { more: Some(lists::listeners), ..Section::of("server", "Server", fields::SERVER) },
    Section::of("clients", "Clients", fields::CLIENTS),
    Section::of("memory", "Memory", fields::MEMORY),
    Section::of("persistence", "Persistence", fields::PERSISTENCE),
    Section::list("threads", "Threads", lists::threads),
    Section::of("stats", "Stats", fields::STATS),
    Section::of("replication", "Replication", replication::FIELDS),
    Section::of("cpu", "CPU", fields::PROCESSOR),
    Section { alias: Some("module_list"), ..Section::list("modules", "Modules", lists::modules) },
    Section { is_default: |_| false, ..Section::list("commandstats", "Commandstats", lists::commands) },
    Section::list("errorstats", "Errorstats", lists::errors),
    Section { is_default: |_| false, ..Section::list("latencystats", "Latencystats", lists::latencies) },
    Section::of("cluster", "Cluster", fields::CLUSTER),
    Section::list("keyspace", "Keyspace", lists::databases),
    Section { is_default: has_few_keys, ..Section::list("keysizes", "Keysizes", lists::sizes) },
    Section { is_shown_with_all: false, is_default: |_| false, ..Section::of("debug", "Debug", fields::DEBUG) },
];

/// Whether a pass over all keys takes no more than some milliseconds.
fn has_few_keys(engine: &Engine) -> bool {
    engine.databases.iter().map(Database::len).sum::<usize>() <= 100_000
}

impl Section {
    const fn of(name: &'static str, title: &'static str, fields: &'static [Field]) -> Section {
        let lines = Lines::Fields(fields);
        Section { name, title, is_default: |_| true, is_shown_with_all: true, lines, more: None, alias: None }
    }

    const fn list(name: &'static str, title: &'static str, list: fn(&InfoContext<'_>, &mut String)) -> Section {
        Section { lines: Lines::List(list), ..Section::of(name, title, &[]) }
    }

    fn is_called(&self, name: &[u8]) -> bool {
        says(name, self.name) || self.alias.is_some_and(|alias| says(name, alias))
    }

    fn write(&self, context: &InfoContext<'_>, text: &mut String) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        for part in ["# ", self.title, "\r\n"] {
            text.push_str(part);
        }
        match self.lines {
            Lines::Fields(fields) => {
                for field in fields.iter().filter(|field| (field.is_shown)(context)) {
                    text.push_str(field.name);
                    text.push(':');
                    (field.value)(context).write(text);
                    text.push_str("\r\n");
                }
            }
            Lines::List(list) => list(context, text),
        }
        if let Some(more) = self.more {
            more(context, text);
        }
    }
}

/// The sections that a request names.
struct Wanted<'a> {
    names: Args<'a>,
    all: bool,
    default: bool,
}

impl<'a> Wanted<'a> {
    fn parse(names: Args<'a>) -> Wanted<'a> {
        let contains = |word: &str| names.rest().any(|name| says(name, word));
        let all = contains("all") || contains("everything");
        Wanted { names, all, default: names.is_empty() || contains("default") }
    }

    fn contains(&self, section: &Section, engine: &Engine) -> bool {
        self.all && section.is_shown_with_all
            || self.default && (section.is_default)(engine)
            || self.names.rest().any(|name| section.is_called(name))
    }
}

/// The bytes that the text of all default sections takes, about.
const TEXT_BYTES: usize = 8 << 10;

fn info(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    operations::sample_metrics(cx);
    let (engine, reply) = cx.engine_and_reply();
    let context = InfoContext::of(engine);
    let mut text = String::with_capacity(TEXT_BYTES);
    let wanted = Wanted::parse(args);
    for section in SECTIONS.iter().filter(|section| wanted.contains(section, engine)) {
        section.write(&context, &mut text);
    }
    reply.verbatim("txt", text.as_bytes());
    Ok(())
}
