//! The RDB file on the disk, and the thread that writes it for BGSAVE.
//!
//! The thread has a checkpoint, which shares the data with the engine, and takes the engine's lock only when it is
//! done. Each BGSAVE has its own; a server that never saves has none.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;

use super::atomic_file::{self, IncrementalSyncFile};
use super::contain::contain;
use super::os_host::reason;
use super::processors;
use super::shared::Shared;
use crate::engine::state::Checkpoint;

/// Replaces the RDB file by what `write` writes; `id` tells apart the temporary files of saves at the same time.
///
/// # Errors
/// The message why that fails; the file is unchanged then.
pub(crate) fn write<T>(path: &Path, id: u64, write: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> Result<T, String> {
    let beside = path.with_file_name(temporary_name(id));
    let written = atomic_file::replace(path, &beside, || {
        let mut file = IncrementalSyncFile::new(File::create(&beside)?);
        let result = write(&mut file)?;
        Ok((file.into_file(), result))
    });
    written.map_err(|error| reason(&error))
}

/// The name of a temporary file: that of Redis for a save in the foreground.
fn temporary_name(id: u64) -> String {
    let process = std::process::id();
    if id == 0 { format!("temp-{process}.rdb") } else { format!("temp-{process}-{id}.rdb") }
}

/// Opens the RDB file for reading.
///
/// # Errors
/// The system's message why it cannot be read.
pub(crate) fn open(path: &Path) -> Result<Box<dyn io::Read>, String> {
    match File::open(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(reason(&error)),
    }
}

/// A pause for each key that is saved or loaded, for tests of what happens meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyDelay(i64);

impl KeyDelay {
    /// A pause of `us` microseconds a key; if it is negative, of one for each so many keys on average.
    pub(crate) fn of_us(us: i64) -> KeyDelay {
        KeyDelay(us)
    }

    /// Pauses.
    pub(crate) fn pause(self) {
        let us = match self.0 {
            0 => return,
            1.. => self.0.unsigned_abs(),
            _ => u64::from(fastrand::u64(0..self.0.unsigned_abs()) == 0),
        };
        if us > 0 {
            #[expect(clippy::disallowed_methods, reason = "the setting is there to make a save or a load take long")]
            thread::sleep(Duration::from_micros(us));
        }
    }
}

/// The saves in the background: one at a time, and those that were stopped and have not ended yet.
#[derive(Debug)]
pub(crate) struct BackgroundSaver {
    runs: Mutex<Vec<Run>>,
    processors: String,
}

#[derive(Debug)]
struct Run {
    thread: JoinHandle<()>,
    is_stopped: Arc<AtomicBool>,
}

impl BackgroundSaver {
    /// Makes one whose threads will run on the processors of a list (`bgsave-cpulist`).
    pub(crate) fn on(processors: &str) -> BackgroundSaver {
        BackgroundSaver { runs: Mutex::default(), processors: processors.to_owned() }
    }

    /// Starts a thread that writes a checkpoint to `path` and then tells the engine.
    ///
    /// # Errors
    /// The system's message why it has no thread.
    pub(crate) fn start(
        &self,
        shared: Arc<Shared>,
        checkpoint: Box<Checkpoint>,
        path: PathBuf,
        delay: KeyDelay,
    ) -> Result<(), String> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (processors, stop) = (self.processors.clone(), Arc::clone(&is_stopped));
        let run = move || {
            processors::keep_beside(&processors);
            save(&shared, checkpoint, &path, delay, &stop);
        };
        let thread =
            thread::Builder::new().name("dunlin-save".to_owned()).spawn(run).map_err(|error| reason(&error))?;
        let mut runs = self.runs.lock();
        runs.retain(|run| !run.thread.is_finished());
        runs.push(Run { thread, is_stopped });
        Ok(())
    }

    /// Makes all saves end soon, without a file.
    pub(crate) fn stop(&self) {
        self.runs.lock().iter().for_each(|run| run.is_stopped.store(true, Ordering::Relaxed));
    }

    /// Stops all saves and waits for their ends.
    pub(crate) fn close(&self) {
        self.stop();
        let runs = std::mem::take(&mut *self.runs.lock());
        // A panic of the thread was logged when it happened.
        runs.into_iter().for_each(|run| drop(run.thread.join()));
    }
}

fn save(shared: &Shared, checkpoint: Box<Checkpoint>, path: &Path, delay: KeyDelay, is_stopped: &AtomicBool) {
    let id = checkpoint.id();
    let on_key = || {
        delay.pause();
        if is_stopped.load(Ordering::Relaxed) { Err(io::Error::other("it was stopped")) } else { Ok(()) }
    };
    let written = contain("the thread that saves", || write(path, id, |out| checkpoint.write(out, on_key)));
    let result = written.unwrap_or_else(|| Err("a fault of the server, which the log has".to_owned()));
    drop(checkpoint);
    shared.act(|engine| engine.end_save(id, result.map(drop)));
}
