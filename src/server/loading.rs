//! Loading a file of data when a server starts.
//!
//! The program serves while it loads: commands that need the data get the error LOADING, as in Redis, and the engine's
//! lock is released after each slice. An embedded server loads before [`crate::Server`] is returned, so its clients
//! never see that.
//!
//! An embedded server also loads the text that DUNLIN DUMP returns.
//!
//! A server loads its own file (`dir`, `dbfilename`) if files were asked for and there is one; otherwise the file of
//! `load`, which is only ever read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::MutexGuard;
use tracing::{info, warn};

use super::clock::monotonic_us;
use super::contain::contain;
use super::dump_file::KeyDelay;
use super::os_host::reason;
use super::shared::Shared;
use crate::commands::dunlin;
use crate::engine::exec::loading::Load;
use crate::engine::{Engine, LoadCounts, Loading, Settings};
use crate::rdb::file::{Fault, is_rdb};

/// How long a slice holds the engine's lock.
const SLICE: Duration = Duration::from_millis(1);

/// The records that are loaded before the clock is read again.
const BETWEEN_CLOCKS: usize = 16;

/// Data to start with.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A file.
    File(PathBuf),
    /// The contents of a file.
    Bytes(Arc<[u8]>),
}

/// The server's own file, if files were asked for and there is one.
pub(crate) fn own_file(settings: &Settings) -> Option<PathBuf> {
    let own = settings.dump_path();
    (settings.files.are_wanted && !settings.files.dump_file.is_empty() && own.exists()).then_some(own)
}

/// The file of `load`, if it is set.
pub(crate) fn file_to_load(settings: &Settings) -> Option<PathBuf> {
    (!settings.files.load_file.is_empty()).then(|| PathBuf::from(&settings.files.load_file))
}

/// Loads data into an engine that no client uses yet.
///
/// # Errors
/// Why they cannot be loaded, and where.
pub(crate) fn load_whole(engine: &mut Engine, source: &Source) -> Result<(), String> {
    let mut bytes: Box<dyn BufRead> = match source {
        Source::File(path) => Box::new(BufReader::new(File::open(path).map_err(|error| reason(&error))?)),
        Source::Bytes(bytes) => Box::new(Cursor::new(Arc::clone(bytes))),
    };
    if is_rdb(bytes.fill_buf().map_err(|error| reason(&error))?) {
        let loaded = Load::begin(bytes, engine.settings.files.has_checksum).and_then(|load| load.finish(engine));
        engine.end_load(loaded.map_err(|fault| fault.explained())?);
        return Ok(());
    }
    let mut text = Vec::new();
    bytes.read_to_end(&mut text).map_err(|error| reason(&error))?;
    dunlin::load(engine, &text).map_err(|error| error.to_string().trim_start_matches("ERR ").to_owned())?;
    engine.end_load(LoadCounts { keys: engine.databases.len() as u64, ..LoadCounts::default() });
    Ok(())
}

/// A file that the program loads while it serves.
#[derive(Debug)]
pub(crate) struct StartLoad {
    load: Load<File>,
    began_us: u64,
}

impl StartLoad {
    /// Begins to load a file: from now on, commands that need the data are refused.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub(crate) fn begin(shared: &Shared, path: &Path) -> Result<StartLoad, String> {
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
    pub(crate) fn run(mut self, shared: &Shared) -> Result<(), String> {
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
            for _ in 0..if delay.is_none() { BETWEEN_CLOCKS } else { 1 } {
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
pub(crate) fn load_at_start(
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
pub(crate) const FATAL: &str = "Fatal error loading the DB, check server logs. Exiting.";
