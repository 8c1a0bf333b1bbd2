//! The program's log: one line for each event, with the process, the time, the level and a message.
//!
//! Lines have Redis's format, because programs that start a server parse its log:
//! `12:M 21 Nov 2026 03:37:26.560 * Ready to accept connections tcp`. The time is UTC; Redis writes the local time.
//!
//! A line to a file is written before its command is answered, as in Redis, so a client that then reads the file finds
//! it. Lines to a pipe or a terminal are written by a thread of their own ([`super::log_queue`]), so that no client
//! waits for a reader.
//!
//! Only the program writes a log; the server emits events ([`crate::server::log`]).

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::process;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layered, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt as layer, reload};

use super::log_queue::LogQueue;
#[cfg(unix)]
use super::system_log::SystemLog;
use crate::engine::{LogLevel, Settings};
use crate::server::{clock, log};

/// The lines that are still to be written, once the program has a log that is no file.
static QUEUE: OnceLock<LogQueue> = OnceLock::new();

/// The time that the end of the process waits for lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// The registry of events, filtered by level.
type Filtered = Layered<reload::Layer<LevelFilter, Registry>, Registry>;

/// A destination of log lines.
type Output = Box<dyn Layer<Filtered> + Send + Sync>;

/// The standard stream of a log that has no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// The standard output.
    Output,
    /// The standard error.
    Error,
}

/// Starts the log: to `logfile`, or to `stream` if that is empty, and with `syslog-enabled` also to the system's log.
///
/// # Errors
/// When the file cannot be opened.
pub(crate) fn begin(settings: &Settings, stream: Stream) -> io::Result<()> {
    let (filter, handle) = reload::Layer::new(filter_of(settings.log_level));
    let file = match settings.log_file.as_str() {
        "" => file_of(stream),
        path => Some(open(path)?),
    };
    let lines = layer::layer().event_format(Lines).with_ansi(false).log_internal_errors(false);
    let (lines, queue) = match file {
        Some(file) if is_regular(&file) => (lines.with_writer(Arc::new(file)).boxed(), None),
        other => {
            let queue = queue_to(other, stream)?;
            (lines.with_writer(queue.clone()).boxed(), Some(queue))
        }
    };
    let mut outputs: Vec<Output> = vec![lines];
    #[cfg(unix)]
    if settings.process.logs_to_system {
        outputs.push(to_system(SystemLog::open(&settings.process)?).boxed());
    }
    if tracing_subscriber::registry().with(filter).with(outputs).try_init().is_ok() {
        log::when_level_changes(move |level| {
            // This fails only when the log no longer exists, and then there is no level to set.
            let _ = handle.modify(|filter| *filter = filter_of(level));
        });
        // The first log of a process is its only one.
        let _ = queue.map(|queue| QUEUE.set(queue));
    }
    Ok(())
}

/// Waits until all lines are written, but no longer than [`FLUSH_TIMEOUT`]. Called before the process ends.
pub(crate) fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(FLUSH_TIMEOUT);
    }
}

/// The layer that sends lines to the system's log: the message alone, as the system adds time and process itself.
#[cfg(unix)]
pub(super) fn to_system<S>(log: SystemLog) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let plain = layer::format().with_level(false).with_target(false).without_time().with_ansi(false);
    layer::layer().event_format(plain).log_internal_errors(false).with_writer(log)
}

/// The queue of a log to what is no regular file: `file`, or the standard stream if there is none.
fn queue_to(file: Option<File>, stream: Stream) -> io::Result<LogQueue> {
    let output: Box<dyn io::Write + Send> = match (file, stream) {
        (Some(file), _) => Box::new(file),
        (None, Stream::Error) => Box::new(io::stderr()),
        (None, Stream::Output) => Box::new(io::stdout()),
    };
    LogQueue::start(output, |dropped| {
        line_of(Level::WARN, &format!("{dropped} lines of the log were dropped: they were not read in time"))
    })
}

/// A standard stream as a file; `None` where the system has no descriptors.
#[cfg(unix)]
fn file_of(stream: Stream) -> Option<File> {
    use std::os::fd::AsFd;
    let (output, error) = (io::stdout(), io::stderr());
    let descriptor = if stream == Stream::Output { output.as_fd() } else { error.as_fd() };
    descriptor.try_clone_to_owned().ok().map(File::from)
}

#[cfg(not(unix))]
fn file_of(_: Stream) -> Option<File> {
    None
}

/// Whether it is a file on a disk, and no pipe and no device.
fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|data| data.is_file())
}

fn open(path: &str) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|error| io::Error::new(error.kind(), format!("cannot open the log file {path}: {error}")))
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

/// Formats events as log lines in Redis's format.
struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        writer.write_str(&beginning(*event.metadata().level()))?;
        ctx.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// The beginning of a line: process, time and level.
fn beginning(level: Level) -> String {
    // A system clock before 1970 is shown as 1970.
    let since_1970 = clock::system_time().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}:M {} {} ", process::id(), time(since_1970), mark(level))
}

/// A whole log line, with its line end.
fn line_of(level: Level, text: &str) -> String {
    beginning(level) + text + "\n"
}

/// The character that marks a level, as in Redis.
fn mark(level: Level) -> char {
    match level {
        Level::ERROR | Level::WARN => '#',
        Level::INFO => '*',
        Level::DEBUG => '-',
        Level::TRACE => '.',
    }
}

/// Formats a time in UTC, such as `21 Nov 2026 03:37:26.560`.
fn time(since_1970: Duration) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = since_1970.as_secs();
    let (day, month, year) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let (month, milliseconds) = (MONTHS[month], since_1970.subsec_millis());
    format!("{day:02} {month} {year} {hour:02}:{minute:02}:{second:02}.{milliseconds:03}")
}

/// Converts days since 1 January 1970 to the day, the month (from 0 on) and the year.
fn date(days: u64) -> (u64, usize, u64) {
    // The calendar repeats itself every 400 years.
    let (mut year, mut left) = (1970 + days / 146_097 * 400, days % 146_097);
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 0;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (left + 1, month, year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_the_log_are_calendar_times() {
        let written = |seconds: u64, milliseconds| time(Duration::from_millis(seconds * 1000 + milliseconds));
        assert_eq!(written(0, 0), "01 Jan 1970 00:00:00.000");
        assert_eq!(written(951_782_399, 999), "28 Feb 2000 23:59:59.999");
        assert_eq!(written(951_782_400, 0), "29 Feb 2000 00:00:00.000");
        assert_eq!(written(1_795_309_385, 7), "22 Nov 2026 01:03:05.007");
        assert_eq!(written(1_798_761_599, 0), "31 Dec 2026 23:59:59.000");
        assert_eq!(written(4_107_542_400, 0), "01 Mar 2100 00:00:00.000");
        assert_eq!(written(13_569_465_600, 0), "01 Jan 2400 00:00:00.000");
    }
}
