//! Checks an RDB file: whether it can be loaded.
//!
//! It prints what redis-check-rdb prints, and ends with the same exit code: 0 for a file that can be loaded, 1 for
//! any other. Where a record is damaged, the offset is that of its first byte. What redis-check-rdb accepts and a
//! server refuses ([`refusals`](super::refusals)) has a line of its own behind the others, and `dunlin check` ends with
//! 1 then. `--salvage` writes the keys before the damage to a new file.
//!
//! Source: what redis-check-rdb of Redis 8.0.6 prints about files, whole and damaged.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use super::refusals::{Refusal, Search};
use crate::engine::Now;
use crate::rdb::file::{Checksum, Entry, Fault, FaultReason, Loaded, Loader, Options, Record, SavedKey, Saver, opcode};
use crate::rdb::{FUNCTION, Forms, VERSION};
use crate::server::atomic_file;
use crate::server::clock::{from_system, system_time};
use crate::value::View;
use crate::value::text::TextView;

/// The options of the tool, with the file.
#[derive(Debug)]
struct Task<'a> {
    file: &'a str,
    salvaged: Option<&'a str>,
}

/// What a check has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The file can be loaded.
    Loads,
    /// Its bytes are right, but a server refuses something in it.
    Refused,
    Damaged,
}

/// Checks the file that the words name; returns the exit code, for a file that a server refuses `of_refused`.
pub(super) fn run(tool: &str, words: &[String], of_refused: ExitCode) -> ExitCode {
    let Some(task) = task(words) else {
        eprintln!("{}", usage(tool));
        return ExitCode::FAILURE;
    };
    let mut out = io::stdout().lock();
    match check(&task, &mut out) {
        Ok(Verdict::Loads) => ExitCode::SUCCESS,
        Ok(Verdict::Refused) => of_refused,
        Ok(Verdict::Damaged) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{}: {error}", task.salvaged.unwrap_or(task.file));
            ExitCode::FAILURE
        }
    }
}

/// The line that says how the tool is called.
pub(super) fn usage(tool: &str) -> String {
    format!("Usage: {tool} <rdb-file-name> [--salvage <new-file-name>]")
}

fn task(words: &[String]) -> Option<Task<'_>> {
    match words {
        [option] if option == "--salvage" => None,
        [file] => Some(Task { file, salvaged: None }),
        [option, salvaged, file] | [file, option, salvaged] if option == "--salvage" => {
            Some(Task { file, salvaged: Some(salvaged) })
        }
        _ => None,
    }
}

/// Prints the report about a file that could not be loaded.
pub(in crate::server::program) fn report(file: &Path) {
    let file = file.display().to_string();
    // When nobody reads the output, there is nobody to tell.
    let _ = check(&Task { file: &file, salvaged: None }, &mut io::stdout().lock());
}

/// The counts of the contents of a file.
#[derive(Debug)]
struct Found {
    keys: u64,
    expires: u64,
    already_expired: u64,
    subexpires: u64,
    search: Search,
}

/// Checks a file, and says so.
fn check(task: &Task<'_>, out: &mut impl Write) -> io::Result<Verdict> {
    writeln!(out, "[offset 0] Checking RDB file {}", task.file)?;
    let file = File::open(task.file)?;
    let mut found = Found::until(Some(Now::unix_ms(from_system(system_time()))));
    let result = match task.salvaged {
        None => read(&file, &mut found, out, &mut |_| Ok(())),
        Some(salvaged) => salvage(&file, Path::new(salvaged), &mut found, out)?,
    };
    let refusals = show(&result, found, &file, out)?;
    Ok(match result {
        Err(_) => Verdict::Damaged,
        Ok(_) if refusals.is_empty() => Verdict::Loads,
        Ok(_) => Verdict::Refused,
    })
}

/// Checks the RDB file that a file begins with; returns its length, or `None` if it cannot be loaded.
pub(super) fn check_preamble(name: &str, file: File, out: &mut impl Write) -> io::Result<Option<u64>> {
    writeln!(out, "[offset 0] Checking RDB file {name}")?;
    let mut found = Found::until(None);
    let result = read(&file, &mut found, out, &mut |_| Ok(()));
    show(&result, found, &file, out)?;
    Ok(result.ok())
}

/// Prints the result; returns what a server refuses in a file that is not damaged.
fn show(result: &Result<u64, Fault>, found: Found, file: &File, out: &mut impl Write) -> io::Result<Vec<Refusal>> {
    let Found { mut keys, expires, already_expired, subexpires, search } = found;
    match result {
        Ok(offset) => writeln!(out, "[offset {offset}] \\o/ RDB looks OK! \\o/")?,
        Err(fault) => {
            show_fault(fault, keys == 0, out)?;
            // A key counts before its value is read.
            keys += u64::from(is_in_value(fault));
        }
    }
    for (number, what) in
        [(keys, "keys read"), (expires, "expires"), (already_expired, "already expired"), (subexpires, "subexpires")]
    {
        writeln!(out, "[info] {number} {what}")?;
    }
    let refusals = if result.is_ok() { search.end(file)? } else { Vec::new() };
    refusals.iter().try_for_each(|refusal| writeln!(out, "{refusal}"))?;
    Ok(refusals)
}

/// Writes what can be loaded of a file to a new one. One that is there may be the last copy of damaged data.
fn salvage(source: &File, path: &Path, found: &mut Found, out: &mut impl Write) -> io::Result<Result<u64, Fault>> {
    if path.symlink_metadata().is_ok() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it exists already, and is not overwritten"));
    }
    let beside = path.with_added_extension("tmp");
    atomic_file::replace(path, &beside, || {
        let options = Options { compresses: true, has_checksum: true, version: VERSION };
        let mut saver = Saver::begin(File::create(&beside)?, options);
        let result = read(source, found, out, &mut |record| copy(record, &mut saver));
        let (file, _) = saver.finish()?;
        Ok((file, result))
    })
}

/// Writes a record to another file.
fn copy(record: &Record<'_>, saver: &mut Saver<File>) -> io::Result<()> {
    match record {
        Record::Aux(name, value) => {
            saver.aux(&String::from_utf8_lossy(name), &String::from_utf8_lossy(value));
            Ok(())
        }
        Record::Function(source) => saver.function(source),
        Record::Database(number) => {
            saver.select(*number);
            Ok(())
        }
        Record::Entry(entry) => match view(entry) {
            Some(view) => {
                let (deadline_ms, hint) = (entry.deadline_ms, entry.hint);
                saver.entry(SavedKey { key: &entry.key, view, deadline_ms, hint })
            }
            None => Ok(()),
        },
        Record::Sizes(..) | Record::End(_) => Ok(()),
    }
}

fn view<'e>(entry: &'e Entry<'_>) -> Option<View<'e>> {
    match &entry.value {
        Loaded::Text(text) => Some(View::Text(TextView::of(text))),
        Loaded::Value(value) => Some(value.view()),
        Loaded::Empty => None,
    }
}

/// Reads a file to its end, and returns its length.
fn read(
    source: &File,
    found: &mut Found,
    out: &mut impl Write,
    take: &mut dyn FnMut(&Record<'_>) -> io::Result<()>,
) -> Result<u64, Fault> {
    let now_ms = Now::unix_ms(from_system(system_time()));
    let mut loader = Loader::open(source, true)?;
    let mut line = None;
    loop {
        let offset = loader.offset();
        let goes_on = loader.next(&Forms::default(), |record| {
            line = found.count(&record, now_ms);
            found.search.take(&record, offset);
            take(&record).map_err(|error| error.to_string())
        })?;
        if let Some(line) = line.take() {
            writeln!(out, "[offset {}] {line}", loader.offset()).map_err(|error| failed(error, loader.offset()))?;
        }
        if !goes_on {
            return Ok(loader.offset());
        }
    }
}

fn failed(error: io::Error, offset: u64) -> Fault {
    Fault { offset, key: None, kind: None, reason: FaultReason::Io(error) }
}

impl Found {
    /// Nothing yet. Keys that have expired at `now_ms` are not loaded; without it, they are.
    fn until(now_ms: Option<i64>) -> Found {
        let (keys, expires, already_expired, subexpires) = (0, 0, 0, 0);
        Found { keys, expires, already_expired, subexpires, search: Search::begin(now_ms) }
    }

    /// Counts a record; returns the line about it, if it has one.
    fn count(&mut self, record: &Record<'_>, now_ms: i64) -> Option<String> {
        match record {
            Record::Aux(name, value) => {
                let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
                Some(format!("AUX FIELD {name} = '{value}'"))
            }
            Record::Database(number) => Some(format!("Selecting DB ID {number}")),
            Record::End(Checksum::Right) => Some("Checksum OK".to_owned()),
            Record::End(Checksum::Disabled) => {
                Some("RDB file was saved with checksum disabled: no check performed.".to_owned())
            }
            Record::Entry(entry) => {
                self.keys += 1;
                self.expires += u64::from(entry.deadline_ms.is_some());
                self.already_expired += u64::from(entry.deadline_ms.is_some_and(|deadline_ms| deadline_ms < now_ms));
                let has_deadlines = matches!(view(entry), Some(View::Hash(hash)) if hash.first_deadline().is_some());
                self.subexpires += u64::from(has_deadlines);
                None
            }
            Record::Function(_) | Record::Sizes(..) | Record::End(_) => None,
        }
    }
}

/// Writes why a file is damaged. `is_first` means that no key was read before.
fn show_fault(fault: &Fault, is_first: bool, out: &mut impl Write) -> io::Result<()> {
    let what = match (&fault.reason, fault.kind) {
        (FaultReason::Short, Some(FUNCTION)) => "Failed loading library, Failed loading library payload".to_owned(),
        (FaultReason::Short, _) => "Unexpected EOF reading RDB file".to_owned(),
        (FaultReason::Checksum { .. }, _) => "RDB CRC error".to_owned(),
        (FaultReason::UnknownType(kind), _) => format!("Invalid object type: {kind}"),
        _ => fault.to_string(),
    };
    writeln!(out, "--- RDB ERROR DETECTED ---\n[offset {}] {what}", fault.offset)?;
    writeln!(out, "[additional info] While doing: {}", doing(fault))?;
    if let Some(key) = fault.key.as_ref().filter(|_| is_in_value(fault)) {
        writeln!(out, "[additional info] Reading key '{}'", String::from_utf8_lossy(key))?;
    }
    // Until it has read a key, the tool takes the type for 0.
    let kind = fault.kind.filter(|_| !is_unknown(fault)).filter(|&kind| usize::from(kind) < TYPE_NAMES.len());
    if let Some(kind) = kind.or(is_first.then_some(0)) {
        writeln!(out, "[additional info] Reading type {kind} ({})", TYPE_NAMES[usize::from(kind)])?;
    }
    Ok(())
}

fn is_unknown(fault: &Fault) -> bool {
    matches!(fault.reason, FaultReason::UnknownType(_))
}

/// Whether the key of the damaged record was read.
fn is_in_value(fault: &Fault) -> bool {
    fault.key.is_some() && !is_unknown(fault)
}

/// The step, in the tool's words, at which a record turned out to be damaged.
fn doing(fault: &Fault) -> &'static str {
    match (&fault.reason, fault.kind) {
        (FaultReason::Checksum { .. }, _) => "check-sum",
        (FaultReason::UnknownType(_), _) => "read-type",
        _ if fault.key.is_some() => "read-object-value",
        (_, Some(kind)) if usize::from(kind) < TYPE_NAMES.len() => "read-key",
        (_, Some(opcode::DEADLINE_MS | opcode::DEADLINE_S)) => "read-expire",
        (_, Some(opcode::DATABASE | opcode::SIZES)) => "read-len",
        (_, Some(opcode::AUX)) => "read-aux",
        (_, Some(opcode::MODULE_AUX)) => "read-module-aux",
        (_, Some(FUNCTION)) => "read-functions",
        (_, Some(opcode::END)) => "check-sum",
        (_, None) if fault.offset == 0 => "start",
        _ => "read-type",
    }
}

/// Redis's names of the types, by number.
const TYPE_NAMES: [&str; 26] = [
    "string",
    "list-linked",
    "set-hashtable",
    "zset-v1",
    "hash-hashtable",
    "zset-v2",
    "module-pre-release",
    "module-value",
    "",
    "hash-zipmap",
    "list-ziplist",
    "set-intset",
    "zset-ziplist",
    "hash-ziplist",
    "quicklist",
    "stream",
    "hash-listpack",
    "zset-listpack",
    "quicklist-v2",
    "stream-v2",
    "set-listpack",
    "stream-v3",
    "hash-hashtable-md-pre-release",
    "hash-listpack-md-pre-release",
    "hash-hashtable-md",
    "hash-listpack-md",
];
