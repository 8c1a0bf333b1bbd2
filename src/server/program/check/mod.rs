//! `dunlin check`, and `redis-check-rdb` and `redis-check-aof` when the program is called by those names: whether
//! files can be loaded.
//!
//! `dunlin check` finds out from its options, the name and the first bytes of a file which of the two it is.

mod aof;
mod rdb;
mod refusals;
mod resp;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

pub(super) use rdb::report;

/// The tools that the program can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// `dunlin check`, as it was called.
    Check(String),
    /// `redis-check-rdb`.
    Rdb(String),
    /// `redis-check-aof`.
    Aof(String),
}

/// The tool that the program was called as, and the words for it; `None` for the server.
pub(super) fn tool(called: &[u8], words: &[Vec<u8>]) -> Option<(Tool, Vec<String>)> {
    let text = |words: &[Vec<u8>]| words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let called = String::from_utf8_lossy(called).into_owned();
    let name = Path::new(&called).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match (name.as_str(), words) {
        ("redis-check-rdb", words) => Some((Tool::Rdb(called), text(words))),
        ("redis-check-aof", words) => Some((Tool::Aof(called), text(words))),
        (_, [check, words @ ..]) if check == b"check" => Some((Tool::Check(format!("{called} check")), text(words))),
        _ => None,
    }
}

/// Runs a tool with the words behind its name; returns the exit code.
pub(super) fn run(tool: &Tool, words: &[String]) -> ExitCode {
    match tool {
        // As redis-check-rdb ends.
        Tool::Rdb(name) => rdb::run(name, words, ExitCode::SUCCESS),
        Tool::Aof(name) => aof::run(name, words),
        Tool::Check(name) if matches!(words, [option] if option == "--help" || option == "-h") => {
            super::print(&format!("{}\n{}\n", rdb::usage(name), aof::usage(name)))
        }
        Tool::Check(name) if is_for_aof(words) => aof::run(name, words),
        Tool::Check(name) => rdb::run(name, words, ExitCode::FAILURE),
    }
}

/// Whether the words of `dunlin check` are for an AOF.
fn is_for_aof(words: &[String]) -> bool {
    match words {
        [option, ..] if aof::OPTIONS.contains(&option.as_str()) => true,
        [file] => is_aof(Path::new(file)),
        _ => false,
    }
}

/// Whether a path is that of an AOF: its folder, its manifest, or a log of commands.
fn is_aof(path: &Path) -> bool {
    let mut first = [0];
    let mut begins_as_log = || match File::open(path).and_then(|mut file| file.read(&mut first)) {
        Ok(1) => matches!(first, [b'*' | b'#']) || aof::is_manifest(path),
        _ => false,
    };
    path.is_dir() || path.extension().is_some_and(|end| end == "aof" || end == "manifest") || begins_as_log()
}
