//! Checks the files of an AOF: a manifest and what it lists, or a single file.
//!
//! It prints what redis-check-aof prints, and ends with the same exit code: 0 if the files are valid, or have been
//! made valid (`--fix`) or cut back to a time (`--truncate-to-timestamp`), 1 otherwise.
//!
//! A log is valid as far as a server would load it, which the same [`Scanner`] decides; in addition, the tool requires
//! every line end. Unlike redis-check-aof it also cuts off an annotation without its line end (the next command would
//! be appended to it), refuses commands without words (no server loads them), and never cuts a transaction apart. The
//! last file is the last one that is not empty, as for the server. A folder stands for the manifest in it.
//!
//! Source: what redis-check-aof of Redis 8.0.6 prints about the files in the tests.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::rdb;
use super::resp::examine;
use crate::aof::leading_integer;
use crate::aof::manifest::{Listed, Manifest};
use crate::aof::scan::{self, Command, Item, Scanner, Tail};
use crate::rdb::file::{HEADER_BYTES, is_rdb};
use crate::server::os_host::reason;

/// The bytes from which on redis-check-aof looks for an RDB file at the beginning.
const SHORTEST_RDB: usize = 8;

/// The options of the tool.
pub(super) const OPTIONS: [&str; 2] = ["--fix", "--truncate-to-timestamp"];

/// The options of the tool.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    fixes: bool,
    /// The time to which the files are cut back, in unix seconds; 0 for none.
    timestamp: i64,
}

/// Checks the file that the words name; returns the exit code.
pub(super) fn run(tool: &str, words: &[String]) -> ExitCode {
    let mut out = io::stdout().lock();
    let (task, file) = match words {
        [file] => (Task::default(), file),
        [option, file] if option == "--fix" => (Task { fixes: true, ..Task::default() }, file),
        [option, timestamp, file] if option == "--truncate-to-timestamp" => match timestamp.parse() {
            Ok(timestamp) => (Task { timestamp, ..Task::default() }, file),
            Err(_) => return said(&mut out, "Invalid timestamp, aborting..."),
        },
        _ => return said(&mut out, &usage(tool)),
    };
    let mut check = Check { task, out: &mut out, answers: &mut io::stdin().lock(), lines: 1 };
    match check.run(Path::new(file)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => said(&mut out, &format!("Cannot read file: {file}: {}", reason(&error))),
    }
}

/// The line that says how the tool is called.
pub(super) fn usage(tool: &str) -> String {
    format!("Usage: {tool} [--fix|--truncate-to-timestamp $timestamp] <file.manifest|file.aof>")
}

/// Prints a line, and returns the exit code of a failure.
fn said(out: &mut impl Write, line: &str) -> ExitCode {
    // When nobody reads the output, there is nobody to tell.
    let _ = writeln!(out, "{line}");
    ExitCode::FAILURE
}

/// Whether a file is a manifest: its first line that is no comment begins as one of a manifest.
pub(super) fn is_manifest(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let lines = io::BufReader::new(file.take(1 << 20)).split(b'\n');
    let first = lines.map_while(Result::ok).find(|line| !line.starts_with(b"#"));
    first.is_some_and(|line| line.starts_with(b"file"))
}

/// A file to be checked.
struct Checked<'a> {
    path: &'a Path,
    /// Its name in the output.
    name: &'a str,
    /// Its kind in the output; a single file has none.
    kind: &'a str,
    /// Whether no file behind it has bytes.
    is_last: bool,
}

/// The outcome of checking a log of commands.
#[derive(Debug, Default)]
struct Found {
    /// The fault, as a line.
    fault: Option<String>,
    valid_bytes: u64,
    /// Where the last reading of a number or a word began.
    last_read: u64,
    /// Where the first annotation with a later time begins.
    later: Option<u64>,
}

impl Found {
    fn fail(&mut self, fault: &str) {
        self.fault = Some(format!("0x{:>16x}: {fault}", self.last_read));
    }
}

/// The time of an annotation is no number.
struct InvalidTime;

/// A check that is being made.
struct Check<'a, Out, Answers> {
    task: Task,
    out: &'a mut Out,
    answers: &'a mut Answers,
    /// The line where the check is, counted over all files.
    lines: usize,
}

impl<Out: Write, Answers: BufRead> Check<'_, Out, Answers> {
    /// Checks a file or a folder; false if it is not valid.
    fn run(&mut self, path: &Path) -> io::Result<bool> {
        let path = match manifest_in(path) {
            Some(manifest) => manifest,
            None => path.to_owned(),
        };
        let shown = path.display().to_string();
        if let Err(error) = File::open(&path) {
            writeln!(self.out, "Cannot open file {shown}: {}", reason(&error))?;
            return Ok(false);
        }
        if path.is_dir() {
            writeln!(self.out, "Cannot read file: {shown}")?;
            return Ok(false);
        }
        if is_manifest(&path) {
            return self.manifest(&path);
        }
        writeln!(self.out, "Start checking Old-Style AOF")?;
        self.file(&Checked { path: &path, name: &shown, kind: "", is_last: true })
    }

    /// Checks all files that a manifest lists.
    fn manifest(&mut self, path: &Path) -> io::Result<bool> {
        writeln!(self.out, "Start checking Multi Part AOF")?;
        let manifest = match Manifest::parse(&fs::read(path)?) {
            Ok(manifest) => manifest,
            Err(fault) => {
                for line in fault.lines() {
                    writeln!(self.out, "{line}")?;
                }
                return Ok(false);
            }
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let listed: Vec<&Listed> = manifest.base.iter().chain(&manifest.incrs).collect();
        let has_bytes = |listed: &Listed| fs::metadata(folder.join(&listed.name)).map_or(true, |found| found.len() > 0);
        let last = listed.iter().rposition(|listed| has_bytes(listed)).unwrap_or(0);
        if manifest.base.is_none() {
            self.begin_incrs(&manifest)?;
        }
        for (at, listed) in listed.iter().enumerate() {
            let is_base = at == 0 && manifest.base.is_some();
            let path = folder.join(&listed.name);
            let kind = if is_base { "BASE " } else { "INCR " };
            match begins_as_rdb(&path) {
                Err(error) => {
                    writeln!(self.out, "Cannot open file {}: {}, aborting...", path.display(), reason(&error))?;
                    return Ok(false);
                }
                Ok(is_rdb) if is_base => {
                    let format = if is_rdb { "RDB" } else { "RESP" };
                    writeln!(self.out, "Start to check BASE AOF ({format} format).")?;
                }
                Ok(_) => {}
            }
            if !self.file(&Checked { path: &path, name: &listed.name, kind, is_last: at >= last })? {
                return Ok(false);
            }
            if is_base {
                self.begin_incrs(&manifest)?;
            }
        }
        writeln!(self.out, "All AOF files and manifest are valid")?;
        Ok(true)
    }

    fn begin_incrs(&mut self, manifest: &Manifest) -> io::Result<()> {
        if manifest.incrs.is_empty() { Ok(()) } else { writeln!(self.out, "Start to check INCR files.") }
    }

    /// Checks a file; false if it is not valid.
    fn file(&mut self, checked: &Checked<'_>) -> io::Result<bool> {
        let &Checked { path, name, kind, is_last } = checked;
        let size = fs::metadata(path)?.len();
        if size == 0 {
            writeln!(self.out, "{kind}AOF {name} is empty")?;
            return Ok(true);
        }
        let mut start = 0;
        if kind != "INCR " && begins_as_rdb(path)? {
            let shown = path.display().to_string();
            let Some(end) = rdb::check_preamble(&shown, File::open(path)?, self.out)? else {
                writeln!(self.out, "RDB preamble of AOF file is not sane, aborting.")?;
                return Ok(false);
            };
            writeln!(self.out, "RDB preamble is OK, proceeding with AOF tail...")?;
            start = end;
        }
        let Some(found) = self.log(checked, start)? else { return Ok(false) };
        if let Some(at) = found.later {
            return self.cut_back(checked, at);
        }
        let timestamp = self.task.timestamp;
        let diff = size - found.valid_bytes;
        if diff == 0 && timestamp != 0 {
            writeln!(self.out, "Truncate nothing in AOF {name} to timestamp {timestamp}")?;
        } else {
            writeln!(
                self.out,
                "AOF analyzed: filename={name}, size={size}, ok_up_to={}, ok_up_to_line={}, diff={diff}",
                found.valid_bytes, self.lines
            )?;
        }
        match (diff, self.task.fixes) {
            (0, _) => writeln!(self.out, "{kind}AOF {name} is valid").map(|()| true),
            (_, false) => {
                writeln!(self.out, "AOF {name} is not valid. Use the --fix option to try fixing it.")?;
                Ok(false)
            }
            (_, true) if !is_last => {
                writeln!(self.out, "Failed to truncate AOF {name} because it is not the last file")?;
                Ok(false)
            }
            (_, true) => self.fix(checked, size, found.valid_bytes),
        }
    }

    /// Reads a log of commands to its end, or to what ends the check. `None` if the check cannot go on.
    fn log(&mut self, checked: &Checked<'_>, start: u64) -> io::Result<Option<Found>> {
        let mut file = File::open(checked.path)?;
        file.seek(SeekFrom::Start(start))?;
        let mut scanner = Scanner::at(file, start).checking(true);
        let mut found = Found { last_read: start, ..Found::default() };
        loop {
            found.valid_bytes = scanner.valid_bytes();
            let is_in_transaction = scanner.is_in_transaction();
            match scanner.next_item() {
                Ok(Some(Item::Annotation { offset, line })) => match self.time_of(line) {
                    Err(InvalidTime) => {
                        writeln!(self.out, "Invalid timestamp annotation")?;
                        return Ok(None);
                    }
                    Ok(Some(seconds)) if seconds > self.task.timestamp => {
                        found.later = Some(if is_in_transaction { found.valid_bytes } else { offset });
                        break;
                    }
                    Ok(_) => continue,
                },
                Ok(Some(Item::Command(command))) => {
                    self.command(command, is_in_transaction, checked.name, &mut found);
                    if found.fault.is_none() {
                        continue;
                    }
                }
                Err(scan::Fault { reason: scan::FaultReason::Io(error), .. }) => return Err(error),
                Err(scan::Fault { reason: scan::FaultReason::Checksum, offset }) => {
                    found.valid_bytes = scanner.valid_bytes();
                    found.fail(&format!("Wrong checksum of what begins at offset {offset}"));
                }
                Ok(None) | Err(_) => self.end_of_log(&scanner, checked.name, &mut found),
            }
            break;
        }
        if let Some(fault) = &found.fault {
            writeln!(self.out, "{fault}")?;
        }
        Ok(Some(found))
    }

    /// Checks a command that a server would load.
    fn command(&mut self, command: Command<'_>, is_in_transaction: bool, file: &str, found: &mut Found) {
        let examined = examine(command.bytes);
        self.lines += examined.lines;
        found.last_read = command.offset + examined.last_read as u64;
        let fault = match (examined.fault, command.name().to_ascii_uppercase().as_slice()) {
            (Some(fault), _) => fault,
            (None, b"MULTI") if is_in_transaction => format!("Unexpected MULTI in AOF {file}"),
            (None, b"EXEC") if !is_in_transaction => format!("Unexpected EXEC in AOF {file}"),
            _ => return,
        };
        found.fail(&fault);
    }

    /// Finds out why a log ends where it does.
    fn end_of_log(&mut self, scanner: &Scanner<File>, file: &str, found: &mut Found) {
        let is_short = match scanner.tail() {
            Some(Tail::Clean) => return,
            Some(Tail::OpenTransaction) => return found.fail(NO_EXEC),
            tail => tail == Some(Tail::Truncated),
        };
        let examined = examine(scanner.rest());
        self.lines += examined.lines;
        let is_command = scanner.rest().starts_with(b"*");
        if is_command && examined.last_read > 0 || examined.fault.is_some() {
            found.last_read = scanner.offset() + examined.last_read as u64;
        }
        match examined.fault {
            Some(fault) if is_command => found.fail(&fault),
            None if is_command && is_short && scanner.is_in_transaction() => found.fail(NO_EXEC),
            None if is_command && is_short => {}
            _ if is_short => {
                found.last_read = scanner.offset();
                found.fail("Reached EOF before the end of an annotation");
            }
            _ => found.fault = Some(format!("AOF {file} format error")),
        }
    }

    /// The time of an annotation, if it has one and files are cut back to a time.
    fn time_of(&self, line: &[u8]) -> Result<Option<i64>, InvalidTime> {
        match line.strip_prefix(b"#TS:") {
            Some(text) if self.task.timestamp != 0 => {
                let digits = text.trim_ascii_end();
                let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
                if is_number { Ok(Some(leading_integer(digits))) } else { Err(InvalidTime) }
            }
            _ => Ok(None),
        }
    }

    /// Cuts a file back to the first annotation that is too late.
    fn cut_back(&mut self, checked: &Checked<'_>, at: u64) -> io::Result<bool> {
        let &Checked { path, name, is_last, .. } = checked;
        let timestamp = self.task.timestamp;
        if at == 0 {
            writeln!(self.out, "AOF {name} has nothing before timestamp {timestamp}, aborting...")?;
            return Ok(false);
        }
        if !is_last {
            writeln!(
                self.out,
                "Failed to truncate AOF {} to timestamp {timestamp} to offset {at} because it is not the last \
                 file.\nIf you insist, please delete all files after this file according to the manifest file and \
                 delete the corresponding records in manifest file manually. Then re-run redis-check-aof.",
                path.display()
            )?;
            return Ok(false);
        }
        truncate(path, at)?;
        writeln!(self.out, "Successfully truncated AOF {name} to timestamp {timestamp}")?;
        Ok(true)
    }

    /// Cuts off what is not valid, if the user agrees.
    fn fix(&mut self, checked: &Checked<'_>, size: u64, valid_bytes: u64) -> io::Result<bool> {
        let name = checked.name;
        let diff = size - valid_bytes;
        writeln!(
            self.out,
            "This will shrink the AOF {name} from {size} bytes, with {diff} bytes, to {valid_bytes} bytes"
        )?;
        write!(self.out, "Continue? [y/N]: ")?;
        self.out.flush()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        if !answer.starts_with(['y', 'Y']) {
            writeln!(self.out, "Aborting...")?;
            return Ok(false);
        }
        truncate(checked.path, valid_bytes)?;
        writeln!(self.out, "Successfully truncated AOF {name}")?;
        Ok(true)
    }
}

const NO_EXEC: &str = "Reached EOF before reading EXEC for MULTI";

/// The manifest in a folder, if there is one.
fn manifest_in(folder: &Path) -> Option<PathBuf> {
    let paths = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut manifests = paths.filter(|path| {
        let is_temporary = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("temp-"));
        path.extension().is_some_and(|end| end == "manifest") && !is_temporary
    });
    manifests.next()
}

/// Whether a file begins as one of Redis's RDB files, whatever its version, or of Valkey's.
fn begins_as_rdb(path: &Path) -> io::Result<bool> {
    let mut begin = Vec::new();
    File::open(path)?.take(HEADER_BYTES as u64).read_to_end(&mut begin)?;
    Ok((begin.len() >= SHORTEST_RDB && begin.starts_with(b"REDIS")) || is_rdb(&begin))
}

/// Cuts a file off for good.
fn truncate(path: &Path, bytes: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
