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

use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::process;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber, callsite, subscriber};

use super::log_queue::LogQueue;
#[cfg(unix)]
use super::system_log::SystemLog;
use crate::engine::{LogLevel, Settings};
use crate::server::os_host::reason;
use crate::server::{clock, log};

/// The lines that are still to be written, once the program has a log that is no file.
static QUEUE: OnceLock<LogQueue> = OnceLock::new();

/// The time that the end of the process waits for lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// The log, which takes the events of the process. There are no spans.
pub(super) struct Log {
    /// Changed while the server runs (`loglevel`). Read only when an event is met first, and after a change.
    level: Arc<Mutex<LevelFilter>>,
    outputs: Vec<Output>,
}

/// A destination of log lines.
pub(super) enum Output {
    File(File),
    Queue(LogQueue),
    #[cfg(unix)]
    System(SystemLog),
}

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
    let file = match settings.log_file.as_str() {
        "" => file_of(stream),
        path => Some(open(path)?),
    };
    let (lines, queue) = match file {
        Some(file) if is_regular(&file) => (Output::File(file), None),
        other => {
            let queue = queue_to(other, stream)?;
            (Output::Queue(queue.clone()), Some(queue))
        }
    };
    let mut outputs = vec![lines];
    #[cfg(unix)]
    if settings.process.logs_to_system {
        outputs.push(Output::System(SystemLog::open(&settings.process)?));
    }
    let log = Log::new(settings.log_level, outputs);
    let filter = Arc::clone(&log.level);
    if subscriber::set_global_default(log).is_ok() {
        log::when_level_changes(move |level| {
            *filter.lock() = filter_of(level);
            callsite::rebuild_interest_cache();
        });
        // The first log of a process is its only one.
        let _ = queue.map(|queue| QUEUE.set(queue));
    }
    Ok(())
}

impl Log {
    pub(super) fn new(level: LogLevel, outputs: Vec<Output>) -> Log {
        Log { level: Arc::new(Mutex::new(filter_of(level))), outputs }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= *self.level.lock()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(*self.level.lock())
    }

    fn event(&self, event: &Event<'_>) {
        let (level, mut text) = (*event.metadata().level(), Text::default());
        event.record(&mut text);
        for output in &self.outputs {
            output.write(level, &text.0);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Output {
    /// Writes an event. A log that cannot be written has nowhere to report that.
    fn write(&self, level: Level, text: &str) {
        match self {
            Output::File(file) => _ = { file }.write_all(line_of(level, text).as_bytes()),
            Output::Queue(queue) => queue.add(line_of(level, text).as_bytes()),
            #[cfg(unix)]
            Output::System(log) => log.send(level, text),
        }
    }
}

/// The message of an event, without the characters that control a terminal: a part of it may be a client's.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // A string takes all that is written.
            let _ = write!(self, "{value:?}");
        }
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for character in part.chars() {
            match character {
                '\x07' | '\x08' | '\x0c' | '\x1b' | '\x7f'..='\u{9f}' => {
                    write!(self.0, "\\x{:02x}", u32::from(character))?;
                }
                _ => self.0.push(character),
            }
        }
        Ok(())
    }
}

/// Waits until all lines are written, but no longer than [`FLUSH_TIMEOUT`]. Called before the process ends.
pub(crate) fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(FLUSH_TIMEOUT);
    }
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
    file.map_err(|error| io::Error::new(error.kind(), format!("Can't open the log file {path}: {}", reason(&error))))
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
    fn a_line_controls_no_terminal() {
        let mut text = Text::default();
        write!(text, "a\x1b[2J\tb\x07\n\u{9b}é").expect("a string takes all");
        assert_eq!(text.0, "a\\x1b[2J\tb\\x07\n\\x9bé");
    }

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
