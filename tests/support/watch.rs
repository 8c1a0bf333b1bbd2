//! A limit for the time of every command and input.
//!
//! Time is the processor time of the thread, which does not depend on other processes. A test that never returns is
//! found by a watchdog thread, which prints the input and ends the process.

use super::processor_time::processor_time;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The most that a command or an input may take: a second, and three in a build that checks its arithmetic and what it
/// asserts in all of its loops.
const MOST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 3 } else { 1 });
/// A test that has made no progress between two of these checks is stuck.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Does something that must not take long; `shown` says what it was.
pub fn brief<R>(shown: impl FnOnce() -> String, act: impl FnOnce() -> R) -> R {
    let start = processor_time();
    let result = act();
    let spent = processor_time() - start;
    assert!(spent <= MOST, "{} takes {spent:?}", shown());
    result
}

/// The current input of a test.
#[derive(Clone, Default)]
pub struct Progress(Arc<Mutex<(u64, Vec<u8>)>>);

impl Progress {
    /// The next input.
    pub fn note(&self, input: &[u8]) {
        let mut at = self.0.lock().expect("no thread panics while it holds the lock");
        at.0 += 1;
        at.1.clear();
        at.1.extend_from_slice(input);
    }
}

/// Runs a test that says what it is at. If it stays there, the input is shown and the process ends.
pub fn supervised(test: impl FnOnce(&Progress)) {
    let progress = Progress::default();
    let (_done, is_done) = mpsc::channel::<()>();
    let seen = progress.clone();
    std::thread::spawn(move || {
        let mut before = 0;
        while is_done.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
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
