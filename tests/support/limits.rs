//! A limit for the time and the memory of every command and input.
//!
//! Time is the processor time of the thread, which does not depend on other processes. Memory is what the thread has
//! allocated at most ([`super::heap`]); its limit follows from the length of the request, the reply and the data. It is
//! not measured where libFuzzer runs the targets, which has a limit of its own. A test that never returns is found by a
//! watchdog thread, which prints the input and ends the process.

use super::heap;
use super::processor_time::processor_time;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The most that a command or an input may take: a second, and three in a build that checks its arithmetic and what it
/// asserts in all of its loops.
const MAX: Duration = Duration::from_secs(if cfg!(debug_assertions) { 3 } else { 1 });
/// The memory that any command may take, in bytes, whatever it is given.
const BASE_BYTES: usize = 1 << 20;
/// The memory that a command may take for each byte of its request, its reply and the data that exists.
const TIMES: usize = 32;
/// A test that has made no progress between two of these checks is stuck.
const CHECK_EVERY: Duration = Duration::from_secs(60);

/// Commands that may take more memory than others, in bytes, and why.
const EXCEPTIONS: &[(&str, usize, &str)] = &[
    ("setbit", 2 * LONGEST_TEXT + BASE_BYTES, TEXT),
    ("setrange", 2 * LONGEST_TEXT + BASE_BYTES, TEXT),
    ("bitfield", 2 * LONGEST_TEXT + BASE_BYTES, TEXT),
    ("eval", MAX_OF_SCRIPTS, SCRIPT),
    ("eval_ro", MAX_OF_SCRIPTS, SCRIPT),
    ("evalsha", MAX_OF_SCRIPTS, SCRIPT),
    ("evalsha_ro", MAX_OF_SCRIPTS, SCRIPT),
    ("fcall", MAX_OF_SCRIPTS, SCRIPT),
    ("fcall_ro", MAX_OF_SCRIPTS, SCRIPT),
    ("exec", MAX_OF_SCRIPTS, "it runs all of these"),
];
/// The default of `proto-max-bulk-len`.
const LONGEST_TEXT: usize = 512 << 20;
const TEXT: &str = "its offset makes a text of any length, which is there twice while it grows";
/// The memory of scripts, with a text that is there twice while it grows.
const MAX_OF_SCRIPTS: usize = 1200 << 20;
const SCRIPT: &str = "a script may repeat a text until its gigabyte is used up";

/// The most bytes that a command may take whose request, reply and data have that many bytes together.
pub fn bytes_for(command: &[u8], bytes: usize) -> usize {
    let exception = EXCEPTIONS.iter().find(|(name, ..)| command.eq_ignore_ascii_case(name.as_bytes()));
    exception.map_or(0, |(_, most, _)| *most).max(BASE_BYTES + TIMES * bytes)
}

/// Does something that must take little time, and no more memory than `most_bytes` of its result; `describe` names it
/// in the failure.
pub fn within_limits<R>(
    describe: impl Fn() -> String,
    most_bytes: impl FnOnce(&R) -> usize,
    act: impl FnOnce() -> R,
) -> R {
    let start = processor_time();
    let (result, bytes) = heap::peak_of(act);
    let spent = processor_time() - start;
    assert!(spent <= MAX, "{} takes {spent:?}", describe());
    let most_bytes = most_bytes(&result);
    assert!(bytes <= most_bytes, "{} takes {bytes} bytes of memory, and may take {most_bytes}", describe());
    result
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
