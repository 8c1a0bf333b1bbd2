//! The logs of changes of both servers: a real one's AOF, and what our engine would write to its own.
//!
//! Both are read after every request. Times are masked, as the real clock runs, and deletions that fall due at once
//! come in any order, since a real server looks for due keys at random.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use dunlin::Server;
use dunlin::engine::{Entry, Family, Flags, Table};

use crate::process::Process;
use crate::reply::{Reply, decode};
use crate::walk::vocabulary::{KEYS, Vocabulary};

/// The arguments with which a real server writes its log as commands, before each reply.
pub(crate) const LOGGING: &[&str] = &["--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", "no"];

const FILE: &str = "appendonlydir/appendonly.aof.1.incr.aof";

/// The most milliseconds by which times of both servers may differ: our clock is frozen while the other runs.
const APART_MS: i64 = 1_200_000;

/// The log of the real server, read up to some place.
pub(crate) struct Log {
    file: File,
    /// The number of commands that were compared.
    pub(crate) compared: usize,
}

impl Log {
    /// Begins to read both logs from here on.
    pub(crate) fn begin(real: &Process, ours: &Server) -> Log {
        let mut file = File::open(Path::new(real.folder()).join(FILE)).expect("the real server writes its log");
        file.seek(SeekFrom::End(0)).expect("a file has an end");
        ours.with_engine(|engine| engine.effects.propagation.turn_on());
        Log { file, compared: 0 }
    }

    /// The difference in what both have written since the last time, if there is one.
    pub(crate) fn difference(&mut self, ours: &Server, in_any_order: bool) -> Option<String> {
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes).expect("a file can be read");
        let taken = ours.with_engine(|engine| engine.effects.propagation.take());
        let now_ms = ours.with_engine(|engine| engine.now().unix_ms());
        let [mut real, mut ours] = [&bytes, &taken.bytes].map(|log| lines(log, now_ms));
        self.compared += real.len();
        if in_any_order {
            real.sort();
            ours.sort();
        }
        (real != ours).then(|| format!("the log\n  real: {}\n  ours: {}", real.join("; "), ours.join("; ")))
    }
}

/// The commands of a log.
fn lines(mut log: &[u8], now_ms: i64) -> Vec<String> {
    let mut lines = Vec::new();
    while !log.is_empty() {
        let Ok((Reply::Array(words), used)) = decode(log) else {
            lines.push(format!("(malformed) {}", log.escape_ascii()));
            break;
        };
        let words = words.iter().map(|word| match word {
            Reply::Bulk(word) if is_near(word, now_ms) => "(time)".to_owned(),
            Reply::Bulk(word) => format!("{:?}", word.escape_ascii().to_string()),
            other => format!("(no word) {other:?}"),
        });
        lines.push(words.collect::<Vec<_>>().join(" "));
        log = &log[used..];
    }
    lines
}

/// Whether a word is a time that may differ: one that was counted from now, whatever the span.
fn is_near(word: &[u8], now_ms: i64) -> bool {
    const LONGEST_MS: i64 = 400 * 86_400_000;
    let number = str::from_utf8(word).ok().and_then(|text| text.parse::<i64>().ok());
    number.is_some_and(|ms| (now_ms - APART_MS..now_ms + LONGEST_MS).contains(&ms))
}

/// Whether a walk of the log makes requests of this command: those that write, that run others, that select a database,
/// and that read keys, which may have expired.
pub(super) fn concerns(entry: &Entry) -> bool {
    let (family, flags) = (entry.command.family, entry.command.flags);
    let is_about_data = flags.has(Flags::WRITE) || !entry.command.keys.is_empty();
    (is_about_data || matches!(family, Family::Transactions | Family::Scripting) || entry.name == "select")
        && family != Family::PubSub
}

/// Whether a walk of the log sends this line.
pub(super) fn concerns_line(table: &Table, line: &str) -> bool {
    let name = line.split(' ').next().unwrap_or_default();
    let is_limit = line.starts_with("CONFIG SET") && !line.contains("maxmemory") && !line.contains("notify");
    is_limit || table.find(name.as_bytes()).is_some_and(|id| concerns(table.entry(id)))
}

/// Gives most keys of a request names by the family of the command, so that most requests find a value of their type.
pub(super) fn with_own_keys(table: &Table, words: &mut [Vec<u8>], vocabulary: &mut Vocabulary) {
    let Some(id) = words.first().and_then(|name| table.find(name)) else { return };
    let family = match table.entry(id).command.family {
        Family::Bitmap | Family::String => "string",
        Family::Geo | Family::SortedSet => "zset",
        Family::HyperLogLog => "sketch",
        Family::Hash => "hash",
        Family::List => "list",
        Family::Set => "set",
        Family::Stream => "stream",
        _ => *vocabulary.pick(&["string", "zset", "sketch", "hash", "list", "set", "stream"]),
    };
    if vocabulary.below(8) == 0 {
        return;
    }
    for word in words.iter_mut().skip(1).filter(|word| KEYS.iter().any(|key| key.as_bytes() == word.as_slice())) {
        *word = [family.as_bytes(), word].concat();
    }
}
