//! Loading the file with which the program starts, while it serves.
//!
//! Commands that need the data get the error LOADING meanwhile, as in Redis: the engine's lock is released after each
//! slice.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::MutexGuard;
use tracing::{info, warn};

use crate::engine::exec::loading::Load;
use crate::engine::{Engine, LoadCounts, Loading};
use crate::rdb::file::Fault;
use crate::server::clock::monotonic_us;
use crate::server::contain::contain;
use crate::server::dump_file::KeyDelay;
use crate::server::loading::{file_to_load, own_file};
use crate::server::os_host::reason;
use crate::server::shared::Shared;

/// How long a slice holds the engine's lock.
const SLICE: Duration = Duration::from_millis(1);

/// The records that are loaded before the clock is read again.
const BETWEEN_CLOCKS: usize = 16;

/// A file that the program loads while it serves.
#[derive(Debug)]
struct StartLoad {
    load: Load<File>,
    began_us: u64,
}

impl StartLoad {
    /// Begins to load a file: from now on, commands that need the data are refused.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    fn begin(shared: &Shared, path: &Path) -> Result<StartLoad, String> {
        let file = File::open(path).map_err(|error| reason(&error))?;
        let total_bytes = file.metadata().map_or(0, |found| found.len());
        let mut engine = shared.engine();
        let load = Load::begin(file, engine.settings.files.has_checksum).map_err(|fault| fault.explained())?;
        let loading = Loading { began: shared.clock().now(), total_bytes, ..Loading::default() };
        engine.persistence.loading = Some(Box::new(loading));
        Ok(StartLoad { load, began_us: monotonic_us() })
    }

    /// Loads the file, slice by slice.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    fn run(mut self, shared: &Shared) -> Result<(), String> {
        while !shared.is_ending() {
            let mut engine = shared.engine();
            let goes_on = self.slice(&mut engine).map_err(|fault| fault.explained())?;
            self.load.take_lines().iter().for_each(|line| info!("{line}"));
            if goes_on {
                MutexGuard::unlock_fair(engine);
                continue;
            }
            drop(engine);
            let counts = self.load.counts();
            info!("{}", summary(counts));
            shared.act(|engine| engine.end_load(counts));
            let elapsed_us = monotonic_us() - self.began_us;
            info!("DB loaded from disk: {:.3} seconds", elapsed_us as f64 / 1e6);
            return Ok(());
        }
        Ok(())
    }

    /// Loads for the time of a slice; false at the end of the file.
    fn slice(&mut self, engine: &mut Engine) -> Result<bool, Fault> {
        let end_us = monotonic_us() + SLICE.as_micros() as u64;
        let delay = KeyDelay::of_us(engine.settings.files.load_delay_us);
        let mut goes_on = true;
        while goes_on && monotonic_us() < end_us {
            for _ in 0..if delay == KeyDelay::of_us(0) { BETWEEN_CLOCKS } else { 1 } {
                goes_on = goes_on && self.load.step(engine)?;
            }
            delay.pause();
        }
        if let Some(loading) = &mut engine.persistence.loading {
            (loading.loaded_bytes, loading.used_bytes) = (self.load.offset(), self.load.used_bytes());
        }
        engine.persistence.loaded = self.load.counts();
        Ok(goes_on)
    }
}

/// The line about a load in Redis's words.
fn summary(counts: LoadCounts) -> String {
    let LoadCounts { keys, expired, empty } = counts;
    let skipped = if empty > 0 { format!(", empty keys skipped: {empty}") } else { String::new() };
    format!("Done loading RDB, keys loaded: {keys}, keys expired: {expired}{skipped}.")
}

/// Loads the file with which the server starts, if there is one, on a thread, and then calls `ready`; without a file it
/// is called at once. The server ends when the file cannot be loaded: `fail` is called before.
///
/// # Errors
/// When the file is no RDB file or cannot be read, or the system has no thread.
pub(super) fn load_at_start(
    shared: &Arc<Shared>,
    ready: impl FnOnce() + Send + 'static,
    fail: impl FnOnce(&Path) + Send + 'static,
) -> io::Result<()> {
    let path = {
        let engine = shared.engine();
        own_file(&engine.settings).or_else(|| file_to_load(&engine.settings))
    };
    let Some(path) = path else {
        ready();
        return Ok(());
    };
    let load = match StartLoad::begin(shared, &path) {
        Ok(load) => load,
        Err(why) => {
            warn!("{}: {why}", path.display());
            fail(&path);
            return Err(io::Error::other(FATAL));
        }
    };
    let shared = Arc::clone(shared);
    let run = move || {
        contain("the thread that loads", || match load.run(&shared) {
            Ok(()) => ready(),
            Err(why) => {
                warn!("{}: {why}", path.display());
                fail(&path);
                shared.stop();
            }
        });
    };
    std::thread::Builder::new().name("dunlin-load".to_owned()).spawn(run).map(drop)
}

/// The last line of the log of a server that cannot load its data.
pub(super) const FATAL: &str = "Fatal error loading the DB, check server logs. Exiting.";
