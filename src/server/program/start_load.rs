//! Loading the file with which the program starts, while it serves.
//!
//! Commands that need the data get the error LOADING meanwhile, as in Redis: the engine's lock is released after each
//! slice. A text of DUNLIN DUMP, which people write and read, is loaded before.

use std::fs;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::MutexGuard;
use tracing::{info, warn};

use crate::aof::files::AofFiles;
use crate::engine::exec::aof;
use crate::engine::exec::loading::Load;
use crate::engine::{Engine, LoadCounts, Loading, Settings};
use crate::server::aof_start::{self, AofStart, Opened};
use crate::server::background_saver::{FAULT, TestDelay};
use crate::server::clock::monotonic_us;
use crate::server::contain::contain;
use crate::server::dump_file;
use crate::server::loading::{self, file_to_load, is_pipe, is_rdb_file, load_whole, note_about_files, own_file};
use crate::server::os_host::reason;
use crate::server::progress::Progress;
use crate::server::shared::Shared;

/// How long a slice holds the engine's lock.
const SLICE: Duration = Duration::from_millis(1);

/// The records that are loaded before the clock is read again.
const BETWEEN_CLOCKS: usize = 16;

/// The load of the data, while the program serves already.
struct StartLoad {
    source: Source,
    began_us: u64,
    progress: Progress,
}

/// The bytes of a file.
type Bytes = Box<dyn Read + Send>;

enum Source {
    /// The pipe at this path, which is still to be read.
    Pipe(PathBuf),
    /// The RDB file at this path, or from a pipe.
    Rdb(Box<Load<Bytes>>, Option<PathBuf>),
    /// The append-only file.
    Aof(Box<AofStart>),
}

impl StartLoad {
    /// Begins to load a file: from now on, commands that need the data are refused.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    fn of_rdb(shared: &Shared, path: PathBuf) -> Result<StartLoad, String> {
        let storage = shared.worlds().storage();
        let file = storage.open(&path).map_err(|error| reason(&error))?;
        let total_bytes = storage.length(&path).unwrap_or(0);
        let load = begin(shared, file)?;
        begin_loading(shared, total_bytes);
        Ok(StartLoad::of(Source::Rdb(Box::new(load), Some(path))))
    }

    /// Begins to load what comes out of a pipe: from now on, commands that need the data are refused.
    fn of_pipe(shared: &Shared, path: PathBuf) -> StartLoad {
        begin_loading(shared, 0);
        StartLoad::of(Source::Pipe(path))
    }

    fn of_aof(load: Box<AofStart>) -> StartLoad {
        StartLoad::of(Source::Aof(load))
    }

    fn of(source: Source) -> StartLoad {
        StartLoad { source, began_us: monotonic_us(), progress: Progress::begin() }
    }

    /// The RDB file that is loaded, for the report about it.
    fn rdb_path(&self) -> Option<PathBuf> {
        match &self.source {
            Source::Rdb(_, path) => path.clone(),
            Source::Pipe(_) | Source::Aof(_) => None,
        }
    }

    /// Loads everything, slice by slice.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    fn run(mut self, shared: &Arc<Shared>, new_aof: Option<AofFiles>) -> Result<(), String> {
        if let Source::Pipe(path) = &self.source {
            let named = |why| named(why, Some(path));
            // Before the engine is locked, as whoever writes into the pipe may take long.
            let bytes = fs::read(path).map_err(|error| named(reason(&error)))?;
            let load = begin(shared, Box::new(Cursor::new(bytes))).map_err(named)?;
            self.source = Source::Rdb(Box::new(load), None);
        }
        while !shared.is_ending() {
            let mut engine = shared.engine();
            if self.slice(&mut engine)? {
                MutexGuard::unlock_fair(engine);
                continue;
            }
            drop(engine);
            return self.end(shared, new_aof);
        }
        Ok(())
    }

    /// Loads for the time of a slice; false at the end.
    fn slice(&mut self, engine: &mut Engine) -> Result<bool, String> {
        let end_us = monotonic_us() + SLICE.as_micros() as u64;
        let delay = TestDelay::of_us(engine.settings.files.load_delay_us);
        let mut goes_on = true;
        while goes_on && monotonic_us() < end_us {
            for _ in 0..if delay == TestDelay::of_us(0) { BETWEEN_CLOCKS } else { 1 } {
                goes_on = goes_on && self.step(engine)?;
            }
            delay.pause();
        }
        self.report(engine);
        Ok(goes_on)
    }

    fn step(&mut self, engine: &mut Engine) -> Result<bool, String> {
        match &mut self.source {
            Source::Rdb(load, _) => load.step(engine).map_err(|fault| fault.explained()),
            Source::Aof(load) => load.step(engine),
            Source::Pipe(_) => Ok(false),
        }
    }

    /// Updates the progress of the load for INFO, and logs it from time to time.
    fn report(&mut self, engine: &mut Engine) {
        match &mut self.source {
            Source::Pipe(_) => {}
            Source::Aof(load) => load.report(engine),
            Source::Rdb(load, _) => {
                load.take_lines().iter().for_each(|line| info!("{line}"));
                if let Some(loading) = &mut engine.persistence.loading {
                    (loading.loaded_bytes, loading.used_bytes) = (load.offset(), load.used_bytes());
                }
                engine.persistence.loaded = load.counts();
            }
        }
        if let Some(loading) = engine.persistence.loading.as_ref().filter(|_| self.progress.is_due()) {
            info!("Loading the DB: {:.0} %, {} keys so far", loading.percent(), engine.databases.len());
        }
    }

    /// Ends the load. The append-only file that begins behind it has the data before clients are served.
    fn end(self, shared: &Arc<Shared>, new_aof: Option<AofFiles>) -> Result<(), String> {
        match self.source {
            Source::Pipe(_) => Ok(()),
            Source::Aof(load) => {
                load.end(shared, new_aof)?;
                shared.act(aof::switch_after_load);
                Ok(())
            }
            Source::Rdb(load, _) => {
                let counts = load.counts();
                info!("{}", summary(counts));
                new_aof.map_or(Ok(()), |files| aof_start::begin_new(shared, files))?;
                shared.act(|engine| {
                    engine.end_load(counts);
                    aof::switch_after_load(engine);
                });
                let elapsed_us = monotonic_us() - self.began_us;
                info!("DB loaded from disk: {:.3} seconds", elapsed_us as f64 / 1e6);
                Ok(())
            }
        }
    }
}

/// Begins to read an RDB file.
///
/// # Errors
/// Why it cannot be loaded.
fn begin(shared: &Shared, file: Bytes) -> Result<Load<Bytes>, String> {
    let has_checksum = shared.engine().settings.files.has_checksum;
    Load::begin(file, has_checksum).map_err(|fault| fault.explained())
}

/// Makes commands that need the data fail with LOADING from now on.
fn begin_loading(shared: &Shared, total_bytes: u64) {
    let loading = Loading { began: shared.clock().now(), total_bytes, ..Loading::default() };
    shared.engine().persistence.loading = Some(Box::new(loading));
}

/// The line about a load in Redis's words.
fn summary(counts: LoadCounts) -> String {
    let LoadCounts { keys, expired, empty, .. } = counts;
    let skipped = if empty > 0 { format!(", empty keys skipped: {empty}") } else { String::new() };
    format!("Done loading RDB, keys loaded: {keys}, keys expired: {expired}{skipped}.")
}

/// Loads the files with which the server starts, if there are any, on a thread, and then calls `ready`; without a file
/// it is called at once. The server ends when a file cannot be loaded: `fail` is called before, with the reason, and
/// with the RDB file if it is one.
///
/// # Errors
/// When a file is not what it should be or cannot be read, or the system has no thread.
pub(super) fn load_at_start(
    shared: &Arc<Shared>,
    ready: impl FnOnce() + Send + 'static,
    fail: impl FnOnce(&str, Option<&Path>) + Send + 'static,
) -> io::Result<()> {
    let (load, new_aof) = match plan(shared) {
        Ok(planned) => planned,
        Err((why, path)) => {
            warn!("{why}");
            fail(&why, path.as_deref());
            return Err(io::Error::other(FATAL));
        }
    };
    let Some(load) = load else {
        new_aof.map_or(Ok(()), |files| aof_start::begin_new(shared, files)).map_err(io::Error::other)?;
        ready();
        return Ok(());
    };
    let shared = Arc::clone(shared);
    let run = move || {
        let path = load.rdb_path();
        let loaded = contain("the thread that loads", || load.run(&shared, new_aof));
        if let Err(why) = loaded.unwrap_or_else(|| Err(FAULT.to_owned())) {
            let why = named(why, path.as_deref());
            warn!("{why}");
            fail(&why, path.as_deref());
            return shared.stop();
        }
        ready();
    };
    std::thread::Builder::new().name("dunlin-load".to_owned()).spawn(run).map(drop)
}

/// The data to load, and the append-only file that is to begin behind them because there is none yet.
type Planned = (Option<StartLoad>, Option<AofFiles>);

/// Finds out what is to be loaded, and loads it if it is a text; a fault comes with the RDB file that it is about.
fn plan(shared: &Arc<Shared>) -> Result<Planned, (String, Option<PathBuf>)> {
    let storage = shared.worlds().storage();
    let settings = shared.engine().settings.clone();
    shared.worlds().own_dump().lock_at_start(&**storage, &settings).map_err(|why| (why, None))?;
    dump_file::remove_leftovers(&**storage, &settings);
    note_about_files(&**storage, &settings).into_iter().for_each(|note| info!("{note}"));
    let mut new_aof = None;
    if settings.files.appends {
        let opened = shared.act(|engine| AofStart::begin(engine, storage, &settings)).map_err(|why| (why, None))?;
        match opened {
            Opened::Loading(load) => {
                note_left_out(&settings);
                return Ok((Some(StartLoad::of_aof(load)), None));
            }
            Opened::New(files) => new_aof = Some(*files),
        }
    } else if let Some(own) = own_file(&**storage, &settings) {
        note_left_out(&settings);
        return Ok((Some(begin_rdb(shared, own)?), None));
    }
    let Some(path) = file_to_load(&settings) else { return Ok((None, new_aof)) };
    if is_pipe(&path) {
        return Ok((Some(StartLoad::of_pipe(shared, path)), new_aof));
    }
    let seed = shared.act(|engine| AofStart::of_seed(engine, storage, &path)).map_err(|why| (why, None))?;
    if let Some(load) = seed {
        return Ok((Some(StartLoad::of_aof(Box::new(load))), new_aof));
    }
    if is_rdb_file(&**storage, &path) {
        return Ok((Some(begin_rdb(shared, path)?), new_aof));
    }
    let loaded = load_whole(shared, &**storage, &loading::Source::File(path.clone()));
    loaded.map(|()| (None, new_aof)).map_err(|why| (named(why, Some(&path)), None))
}

/// Logs that the file of `load` is not loaded, as the server has data that it has saved itself.
fn note_left_out(settings: &Settings) {
    if let Some(path) = file_to_load(settings) {
        info!("{} is not loaded: the server has files of its own", path.display());
    }
}

/// Begins to load an RDB file; a fault comes with the file.
fn begin_rdb(shared: &Shared, path: PathBuf) -> Result<StartLoad, (String, Option<PathBuf>)> {
    if is_pipe(&path) {
        return Ok(StartLoad::of_pipe(shared, path));
    }
    StartLoad::of_rdb(shared, path.clone()).map_err(|why| (named(why, Some(&path)), Some(path)))
}

/// A message with the file that it is about.
fn named(why: String, path: Option<&Path>) -> String {
    path.map_or(why.clone(), |path| format!("{}: {why}", path.display()))
}

/// The last line of the log of a server that cannot load its data.
pub(super) const FATAL: &str = "Fatal error loading the DB, check server logs. Exiting.";
