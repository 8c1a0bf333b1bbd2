//! The score by which Linux, when it is out of memory, picks the process to kill (`oom-score-adj`).
//!
//! A process has one score, so all servers in it share it; worlds cannot change it. The score before the first change
//! is stored here: values may be relative to it, and `no` restores it. Other systems have no such score, and setting it
//! fails.
//!
//! Source: what Redis 8.0.6 writes, in the order of the tests below.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use parking_lot::Mutex;

use crate::engine::{OomScore, Process};

/// The highest score that the system allows; the lowest is its negative.
const LIMIT: i64 = 1000;

/// The score that the process had before it was changed, while it is.
static BEFORE: Mutex<Option<i64>> = Mutex::new(None);

/// Puts the configured score into force.
///
/// # Errors
/// When the score cannot be read or written.
pub(crate) fn set(process: &Process) -> io::Result<()> {
    set_in(Path::new("/proc/self/oom_score_adj"), &mut BEFORE.lock(), process)
}

fn set_in(file: &Path, before: &mut Option<i64>, process: &Process) -> io::Result<()> {
    if process.oom_score == OomScore::Kept {
        return before.take().map_or(Ok(()), |score| write(file, score));
    }
    let usual = match *before {
        Some(score) => score,
        None => *before.insert(read(file)?),
    };
    let base = if process.oom_score == OomScore::Relative { usual } else { 0 };
    write(file, (base + i64::from(process.oom_scores[0])).clamp(-LIMIT, LIMIT))
}

fn read(file: &Path) -> io::Result<i64> {
    fs::read_to_string(file)?.trim().parse().map_err(io::Error::other)
}

fn write(file: &Path, score: i64) -> io::Result<()> {
    // The system accepts the score only in a single write.
    OpenOptions::new().write(true).truncate(true).open(file)?.write_all(format!("{score}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file in the place of the system's.
    fn score_file(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("dunlin-{}-{name}", std::process::id()));
        fs::write(&path, "100\n").expect("the folder takes files");
        path
    }

    #[test]
    fn an_oom_score_is_added_or_set_within_its_bounds_and_restored() {
        let file = score_file("oom-score");
        let mut before = None;
        for (oom_score, value, written) in [
            (OomScore::Kept, 300, 100),
            (OomScore::Relative, 300, 400),
            (OomScore::Relative, 2000, 1000),
            (OomScore::Relative, -50, 50),
            (OomScore::Absolute, 300, 300),
            (OomScore::Absolute, -2000, -1000),
            (OomScore::Kept, 300, 100),
            (OomScore::Kept, 300, 100),
        ] {
            let process = Process { oom_score, oom_scores: [value, 0, 0], ..Process::default() };
            set_in(&file, &mut before, &process).expect("the file takes it");
            assert_eq!(read(&file).expect("it is a number"), written, "{oom_score:?} {value}");
        }
        fs::remove_file(file).expect("it is there");
    }

    #[test]
    fn an_oom_score_that_cannot_be_set_is_an_error_unless_none_is_configured() {
        let (nowhere, mut before) = (Path::new("/no/such/file"), None);
        assert!(set_in(nowhere, &mut before, &Process::default()).is_ok());
        let process = Process { oom_score: OomScore::Absolute, ..Process::default() };
        assert!(set_in(nowhere, &mut before, &process).is_err());
        assert_eq!(before, None);
    }
}
