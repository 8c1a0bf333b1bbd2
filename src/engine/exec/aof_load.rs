//! Loading the files of the append-only file: the base, which is an RDB file or commands, and then commands.
//!
//! A base of older versions is both: an RDB file followed by commands. The caller opens one file after the other and
//! decides how much is loaded at a time ([`AofLoad::step`]), so clients can be refused meanwhile.

use std::fmt;
use std::io::{Cursor, Read};

use crate::aof::scan::{self, Scanner, Tail};
use crate::engine::Engine;
use crate::engine::exec::loading::Load;
use crate::engine::exec::replay::{Replay, ReplayFault};
use crate::engine::state::LoadCounts;
use crate::engine::state::host::AofSource;
use crate::rdb::file::{self, HEADER_BYTES};

/// The bytes of a file.
type Source = Box<dyn Read + Send>;

/// An append-only file that is being loaded.
#[derive(Debug)]
pub struct AofLoad {
    replay: Replay,
    name: String,
    part: Part,
    counts: LoadCounts,
    /// The changes that the engine had counted before.
    changes_before: u64,
    lines: Vec<String>,
}

/// The part of the open file that is being read.
enum Part {
    Nothing,
    Rdb(Box<Load<Source>>),
    Commands(Box<Scanner<Source>>),
}

impl fmt::Debug for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Part::Nothing => "Nothing",
            Part::Rdb(_) => "Rdb",
            Part::Commands(_) => "Commands",
        })
    }
}

impl AofLoad {
    /// Begins to load an append-only file into an engine without data.
    pub fn begin(engine: &mut Engine) -> AofLoad {
        let replay = Replay::begin(engine);
        AofLoad {
            replay,
            name: String::new(),
            part: Part::Nothing,
            counts: LoadCounts::default(),
            changes_before: engine.stats.changes,
            lines: Vec::new(),
        }
    }

    /// Opens the next file. With `aof-checksum`, only a base may begin with an RDB file: in the place of what a power
    /// loss has taken, a disk may show that of a base which was removed.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub fn open(&mut self, engine: &mut Engine, file: AofSource) -> Result<(), String> {
        let AofSource { name, is_base, bytes: mut source } = file;
        self.name = name;
        self.replay.begin_file(engine);
        let checks = engine.settings.files.has_log_checksums;
        let mut head = Vec::new();
        let read = source.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut head);
        read.map_err(|error| self.unreadable(&error))?;
        let is_rdb = file::is_rdb(&head);
        if is_rdb && checks && !is_base {
            return Err(self.explain(Stop::Scan(scan::Fault { offset: 0, reason: scan::FaultReason::Checksum })));
        }
        let whole: Source = Box::new(Cursor::new(head).chain(source));
        self.part = if is_rdb {
            let load =
                Load::begin(whole, engine.settings.files.has_checksum).map_err(|fault| self.rdb_fault(&fault))?;
            Part::Rdb(Box::new(load))
        } else {
            Part::Commands(Box::new(Scanner::new(whole).checking(checks)))
        };
        Ok(())
    }

    fn unreadable(&self, error: &std::io::Error) -> String {
        format!("Unrecoverable error reading the append only file {}: {error}", self.name)
    }

    fn rdb_fault(&self, fault: &file::Fault) -> String {
        let name = &self.name;
        format!("{}. Error reading the RDB base file {name}, AOF loading aborted", fault.explained())
    }

    /// Loads the next part of the open file; false at its end.
    ///
    /// # Errors
    /// Why it cannot be loaded. What was loaded before stays.
    pub fn step(&mut self, engine: &mut Engine) -> Result<bool, String> {
        match &mut self.part {
            Part::Nothing => Ok(false),
            Part::Rdb(load) => {
                let stepped = load.step(engine);
                let lines = load.take_lines();
                self.lines.extend(lines);
                match stepped {
                    Ok(true) => Ok(true),
                    Ok(false) => Ok(self.read_commands_after_rdb(engine.settings.files.has_log_checksums)),
                    Err(fault) => Err(self.rdb_fault(&fault)),
                }
            }
            Part::Commands(scanner) => {
                next_command(scanner, &mut self.replay, engine).map_err(|stop| self.explain(stop))
            }
        }
    }

    /// Goes on with the commands behind the RDB file of an older base, if there are any.
    fn read_commands_after_rdb(&mut self, checks: bool) -> bool {
        if let Part::Rdb(load) = std::mem::replace(&mut self.part, Part::Nothing) {
            let counts = load.counts();
            self.counts.keys += counts.keys;
            self.counts.empty += counts.empty;
            let (rest, offset) = load.into_rest();
            let scanner = Scanner::at(Box::new(rest) as Source, offset).checking(checks);
            self.part = Part::Commands(Box::new(scanner));
        }
        true
    }

    fn explain(&self, stop: Stop) -> String {
        let name = &self.name;
        match stop {
            Stop::Replay(fault) => format!("{fault} reading the append only file {name}"),
            Stop::Scan(scan::Fault { reason: scan::FaultReason::Io(error), .. }) => self.unreadable(&error),
            Stop::Scan(scan::Fault { reason: scan::FaultReason::Checksum, offset }) => {
                format!("Wrong checksum in the append only file {name}: it is damaged at or behind offset {offset}")
            }
            Stop::Scan(scan::Fault { reason: scan::FaultReason::Malformed, .. }) => format!(
                "Bad file format reading the append only file {name}: make a backup of your AOF file, then use \
                 ./redis-check-aof --fix <filename.manifest>"
            ),
        }
    }

    /// The bytes of the open file that were read.
    pub fn offset(&self) -> u64 {
        match &self.part {
            Part::Nothing => 0,
            Part::Rdb(load) => load.offset(),
            Part::Commands(scanner) => scanner.offset(),
        }
    }

    /// The bytes of the open file, which was read to its end, up to its last whole unit, and what is behind them.
    pub fn tail(&self) -> (u64, Tail) {
        match &self.part {
            Part::Commands(scanner) => (scanner.valid_bytes(), scanner.tail().unwrap_or(Tail::Clean)),
            Part::Nothing | Part::Rdb(_) => (self.offset(), Tail::Clean),
        }
    }

    /// Takes the lines for the log.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Ends the load, of whatever was loaded: keys expire again. The caller then calls [`Engine::end_load`].
    pub fn end(self, engine: &mut Engine) -> LoadCounts {
        self.replay.end(engine);
        let changes = engine.stats.changes;
        // FLUSHALL saves where there are save points, and nothing before it is unsaved then.
        let unsaved = engine.persistence.unsaved(changes).min(changes - self.changes_before);
        LoadCounts { unsaved, ..self.counts }
    }
}

/// Replays the next command, or goes on with the one that was suspended; false when there is none.
fn next_command(scanner: &mut Scanner<Source>, replay: &mut Replay, engine: &mut Engine) -> Result<bool, Stop> {
    if replay.go_on(engine).map_err(Stop::Replay)? {
        return Ok(true);
    }
    let Some(command) = scanner.next_command().map_err(Stop::Scan)? else { return Ok(false) };
    replay.run(engine, command.request).map(|()| true).map_err(Stop::Replay)
}

/// Why a command of a log stops the load.
enum Stop {
    Replay(ReplayFault),
    Scan(scan::Fault),
}
