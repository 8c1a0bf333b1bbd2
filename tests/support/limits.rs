//! A limit for the time and the memory of every command and input.
//!
//! Time is the processor time of the thread, which does not depend on other processes. Memory is the peak of the
//! process: tests beside this one count, too, so the limit is far above what any input of these tests needs. A test
//! that never returns is found by a watchdog thread, which prints the input and ends the process.

use super::processor_time::processor_time;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The most that a command or an input may take: a second, and three in a build that checks its arithmetic and what it
/// asserts in all of its loops.
const MOST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 3 } else { 1 });
/// The most by which a command or an input may raise the peak of the process's memory, in bytes: a string may have 512
/// MiB, and a script that repeats a text has it twice for a moment.
const MOST_BYTES: i64 = 1200 << 20;
/// A test that has made no progress between two of these checks is stuck.
const CHECK_EVERY: Duration = Duration::from_secs(60);

/// Does something that must take little time and memory; `describe` names it in the failure.
pub fn within_limits<R>(describe: impl Fn() -> String, act: impl FnOnce() -> R) -> R {
    let (start, peak_before) = (processor_time(), peak_bytes());
    let result = act();
    let (spent, more_bytes) = (processor_time() - start, peak_bytes() - peak_before);
    assert!(spent <= MOST, "{} takes {spent:?}", describe());
    assert!(more_bytes <= MOST_BYTES, "{} takes {more_bytes} bytes of memory", describe());
    result
}

/// The most memory that this process has had so far, where the system counts it in KiB.
#[cfg(target_os = "linux")]
fn peak_bytes() -> i64 {
    use nix::sys::resource::{UsageWho, getrusage};
    getrusage(UsageWho::RUSAGE_SELF).expect("a process may ask for its own usage").max_rss() << 10
}

#[cfg(not(target_os = "linux"))]
fn peak_bytes() -> i64 {
    0
}

/// The current input of a test.
#[derive(Clone, Default)]
pub struct Progress(Arc<Mutex<(u64, Vec<u8>)>>);

impl Progress {
    /// Records that the test starts with its next input.
    pub fn start(&self, input: &[u8]) {
        let mut at = self.0.lock().expect("no thread panics while it holds the lock");
        at.0 += 1;
        at.1.clear();
        at.1.extend_from_slice(input);
    }
}

/// Runs a test that reports each input before it starts with it. If it makes no progress, this prints the input and
/// ends the process.
pub fn supervised(test: impl FnOnce(&Progress)) {
    let progress = Progress::default();
    let (_done, is_done) = mpsc::channel::<()>();
    let seen = progress.clone();
    std::thread::spawn(move || {
        let mut before = 0;
        while is_done.recv_timeout(CHECK_EVERY) == Err(RecvTimeoutError::Timeout) {
            let at = seen.0.lock().expect("no thread panics while it holds the lock");
            if at.0 == before {
                eprintln!("this input does not end: b\"{}\"", at.1.escape_ascii());
                std::process::abort();
            }
            before = at.0;
        }
    });
    test(&progress);
}
