//! The threads that save in the background: the RDB file (BGSAVE), and the base of the append-only file (BGREWRITEAOF).
//!
//! Each save has a thread of its own; a server that never saves has none. The caller decides what the thread writes.
//! It writes at a low priority, which its calls of the engine do not have.
//!
//! Every save of the process, in the background or not, can be made to fail at once: a program that ends suddenly then
//! leaves no temporary file.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use super::os_host::reason;
use super::processors;
use crate::engine::state::BackgroundSave;

/// A pause that a test has ordered, to see what happens meanwhile: after each key that is saved or loaded, or before
/// each write of the append-only file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TestDelay(i64);

/// A long pause is split into parts of this length, and the save checks after each whether it was stopped.
pub(super) const PAUSE_PART: Duration = Duration::from_millis(10);

impl TestDelay {
    /// A pause of `us` microseconds after each key. As in Redis, a negative value means a pause of one microsecond
    /// after one key in `-us`, chosen at random.
    pub(crate) fn of_us(us: i64) -> TestDelay {
        TestDelay(us)
    }

    /// Pauses.
    pub(crate) fn pause(self) {
        self.pause_while(|| true);
    }

    /// Pauses as long as `goes_on`, which is asked every few milliseconds.
    fn pause_while(self, goes_on: impl Fn() -> bool) {
        let us = match self.0 {
            0 => return,
            1.. => self.0.unsigned_abs(),
            _ => u64::from(fastrand::u64(0..self.0.unsigned_abs()) == 0),
        };
        let mut rest = Duration::from_micros(us);
        while !rest.is_zero() && goes_on() {
            let part = rest.min(PAUSE_PART);
            #[expect(clippy::disallowed_methods, reason = "the setting is there to make a save or a load take long")]
            thread::sleep(part);
            rest -= part;
        }
    }
}

/// The saves in the background: a dump, a rewrite, and those that were stopped and have not ended yet.
#[derive(Debug)]
pub(crate) struct BackgroundSaver {
    runs: Mutex<Vec<Run>>,
    processors: String,
}

#[derive(Debug)]
struct Run {
    save: BackgroundSave,
    thread: JoinHandle<()>,
    is_stopped: Arc<AtomicBool>,
}

impl BackgroundSaver {
    /// Makes one whose threads will run on the processors of a list (`bgsave-cpulist`).
    pub(crate) fn on(processors: &str) -> BackgroundSaver {
        BackgroundSaver { runs: Mutex::default(), processors: processors.to_owned() }
    }

    /// Starts a thread for a save, which is given a flag that tells it to stop.
    ///
    /// # Errors
    /// The system's message why it has no thread.
    pub(crate) fn start(
        &self,
        save: BackgroundSave,
        write: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> Result<(), String> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (processors, stop) = (self.processors.clone(), Arc::clone(&is_stopped));
        let run = move || {
            processors::pin_background_thread(&processors);
            write(&stop);
        };
        let thread =
            thread::Builder::new().name("dunlin-save".to_owned()).spawn(run).map_err(|error| reason(&error))?;
        let mut runs = self.runs.lock();
        runs.retain(|run| !run.thread.is_finished());
        runs.push(Run { save, thread, is_stopped });
        Ok(())
    }

    /// Makes a save end soon, without a file.
    pub(crate) fn stop(&self, save: BackgroundSave) {
        self.stop_those(|run| run.save == save);
    }

    fn stop_those(&self, are_meant: impl Fn(&Run) -> bool) {
        let runs = self.runs.lock();
        runs.iter().filter(|run| are_meant(run)).for_each(|run| run.is_stopped.store(true, Ordering::Relaxed));
    }

    /// Stops all saves and waits for their ends.
    pub(crate) fn close(&self) {
        self.stop_those(|_| true);
        self.wait();
    }

    /// Waits for the ends of all saves.
    pub(crate) fn wait(&self) {
        let runs = std::mem::take(&mut *self.runs.lock());
        // A panic of the thread was logged when it happened.
        runs.into_iter().for_each(|run| drop(run.thread.join()));
    }
}

/// Why a save or a load fails whose thread panicked.
pub(crate) const FAULT: &str = "a fault of the server, which the log has";

/// Why a save fails that was stopped.
pub(crate) const STOPPED: &str = "it was stopped";

/// Pauses after a key, or fails if the save was stopped.
pub(crate) fn pause_or_stop(delay: TestDelay, is_stopped: &AtomicBool) -> io::Result<()> {
    delay.pause_while(|| goes_on(is_stopped));
    if goes_on(is_stopped) { Ok(()) } else { Err(io::Error::other(STOPPED)) }
}

/// Whether a save was not stopped.
pub(crate) fn goes_on(is_stopped: &AtomicBool) -> bool {
    !is_stopped.load(Ordering::Relaxed) && !PROCESS_ENDS.load(Ordering::Relaxed)
}

/// Whether the process is about to end, and every save in it is to fail.
static PROCESS_ENDS: AtomicBool = AtomicBool::new(false);
/// Locked for reading by each save of the process while it has a temporary file.
static TEMPORARY_FILES: RwLock<()> = RwLock::new(());

/// Registers that a save has a temporary file, until the returned guard is dropped.
pub(crate) fn announce_temporary_file() -> RwLockReadGuard<'static, ()> {
    TEMPORARY_FILES.read()
}

/// Makes every save of this process fail, and waits until their temporary files are removed, but not longer than
/// `limit`. The process has to end then.
#[cfg(feature = "program")]
pub(crate) fn stop_all_in_process(limit: Duration) {
    PROCESS_ENDS.store(true, Ordering::Relaxed);
    drop(TEMPORARY_FILES.try_write_for(limit));
}
