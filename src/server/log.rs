//! The log of the program: one line for each thing worth telling, with the time, the level and plain words.
//!
//! Only the program writes one. A server inside of another program leaves `tracing` to that program: what it tells goes
//! wherever the program wants it, and nowhere if it does not care.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::sync::OnceLock;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layered, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt as layer, reload};

#[cfg(unix)]
use super::system_log::SystemLog;
use crate::engine::{LogLevel, Settings};

/// The level in force, once the program has a log.
static LEVEL: OnceLock<reload::Handle<LevelFilter, Registry>> = OnceLock::new();

/// All that is told, without what the level leaves out.
type Filtered = Layered<reload::Layer<LevelFilter, Registry>, Registry>;

/// Somewhere lines go.
type Output = Box<dyn Layer<Filtered> + Send + Sync>;

/// Begins the log: to `logfile`, or to the standard output if that is empty, and to the system's log if that is wanted.
///
/// # Errors
/// When the file cannot be opened.
pub(crate) fn begin(settings: &Settings) -> io::Result<()> {
    let (filter, handle) = reload::Layer::new(filter_of(settings.log_level));
    let lines = layer::layer().event_format(Lines).with_ansi(false).log_internal_errors(false);
    let mut outputs: Vec<Output> = vec![if settings.log_file.is_empty() {
        lines.boxed()
    } else {
        lines.with_writer(open(&settings.log_file)?).boxed()
    }];
    #[cfg(unix)]
    if settings.process.logs_to_system {
        outputs.push(to_system(SystemLog::open(&settings.process)?).boxed());
    }
    if tracing_subscriber::registry().with(filter).with(outputs).try_init().is_ok() {
        // The first log of a process is its only one.
        let _ = LEVEL.set(handle);
    }
    Ok(())
}

/// What has lines go to the system's log, which adds all that it wants to know beside their words.
#[cfg(unix)]
pub(super) fn to_system<S>(log: SystemLog) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let plain = layer::format().with_level(false).with_target(false).without_time().with_ansi(false);
    layer::layer().event_format(plain).log_internal_errors(false).with_writer(log)
}

/// Writes a line at a level.
pub(crate) fn write(level: LogLevel, line: &str) {
    match level {
        LogLevel::Debug => tracing::debug!("{line}"),
        LogLevel::Verbose => tracing::debug!("{line}"),
        LogLevel::Notice => tracing::info!("{line}"),
        LogLevel::Warning | LogLevel::Nothing => tracing::warn!("{line}"),
    }
}

fn open(path: &str) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|error| io::Error::new(error.kind(), format!("cannot open the log file {path}: {error}")))
}

/// Applies a changed `loglevel`, if there is a log.
pub(crate) fn set_level(level: LogLevel) {
    if let Some(handle) = LEVEL.get() {
        // It fails only when the log is gone, and then there is no level to set.
        let _ = handle.modify(|filter| *filter = filter_of(level));
    }
}

fn filter_of(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Debug => LevelFilter::TRACE,
        LogLevel::Verbose => LevelFilter::DEBUG,
        LogLevel::Notice => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Nothing => LevelFilter::OFF,
    }
}

/// `2026-11-21T03:37:26.560123Z notice dunlin 0.1.0 ready on 127.0.0.1:6379`
struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        SystemTime.format_time(&mut writer)?;
        let level = match *event.metadata().level() {
            Level::ERROR | Level::WARN => LogLevel::Warning,
            Level::INFO => LogLevel::Notice,
            Level::DEBUG => LogLevel::Verbose,
            Level::TRACE => LogLevel::Debug,
        };
        write!(writer, " {:7} ", level.name())?;
        ctx.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}
