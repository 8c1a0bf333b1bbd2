//! The append-only file with which a server starts: loads its files, cuts off a torn end, and goes on with the last.
//!
//! The program serves meanwhile, a slice at a time; an embedded server loads all of it before it serves anyone.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use tracing::{info, warn};

use super::aof_files;
use super::clock::monotonic_us;
use super::os_host::reason;
use super::shared::Shared;
use crate::aof::decisions::{TornEnd, check_tail};
use crate::aof::files::{AofFiles, LogFile, files_of};
use crate::aof::manifest::Manifest;
use crate::aof::scan::Tail;
use crate::engine::exec::aof_load::AofLoad;
use crate::engine::exec::{aof, persistence};
use crate::engine::state::host::AofSource;
use crate::engine::{Engine, Loading, Settings};
use crate::rdb::file::is_rdb;
use crate::storage::{Storage, replace};

/// An append-only file that is being loaded.
#[derive(Debug)]
pub(crate) struct AofStart {
    /// The files that later changes are appended to; `None` if the source is only read (`load`).
    files: Option<AofFiles>,
    storage: Arc<dyn Storage>,
    rest: VecDeque<LogFile>,
    current: Option<LogFile>,
    load: AofLoad,
    loads_truncated: bool,
    loaded_bytes: u64,
    began_us: u64,
    /// When the current file began to be loaded.
    file_began_us: u64,
}

/// The append-only file as a start finds it.
#[derive(Debug)]
pub(crate) enum Opened {
    /// Files, which are to be loaded now.
    Loading(Box<AofStart>),
    /// There are no files yet: a new append-only file is to be created there.
    New(Box<AofFiles>),
}

impl AofStart {
    /// Opens the append-only files that the settings name, and starts to load them.
    ///
    /// # Errors
    /// Why they cannot be loaded.
    pub(crate) fn begin(
        engine: &mut Engine,
        storage: &Arc<dyn Storage>,
        settings: &Settings,
    ) -> Result<Opened, String> {
        let files = aof_files::open_files(storage, settings)?;
        if files.is_empty() {
            warn_of_ignored_dump(&**storage, settings);
            return Ok(Opened::New(Box::new(files)));
        }
        let parts = files.to_load();
        Ok(Opened::Loading(Box::new(AofStart::of(engine, storage, parts, Some(files)))))
    }

    /// Begins to load an append-only file that is only read: a file of commands, a manifest, or the folder of one.
    /// `None` if it is something else.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub(crate) fn of_seed(
        engine: &mut Engine,
        storage: &Arc<dyn Storage>,
        path: &Path,
    ) -> Result<Option<AofStart>, String> {
        let parts = seed_parts(&**storage, path)?;
        Ok(parts.map(|parts| AofStart::of(engine, storage, parts, None)))
    }

    fn of(engine: &mut Engine, storage: &Arc<dyn Storage>, parts: Vec<LogFile>, files: Option<AofFiles>) -> AofStart {
        let rest = VecDeque::from(parts);
        let total_bytes = rest.iter().map(|file| file.bytes).sum();
        let load = AofLoad::begin(engine);
        let loading = Loading { began: engine.now(), total_bytes, ..Loading::default() };
        engine.persistence.loading = Some(Box::new(loading));
        let began_us = monotonic_us();
        let loads_truncated = engine.settings.files.loads_truncated;
        let storage = Arc::clone(storage);
        let (current, loaded_bytes, file_began_us) = (None, 0, began_us);
        AofStart { files, storage, rest, current, load, loads_truncated, loaded_bytes, began_us, file_began_us }
    }

    /// Loads the next part; false at the end of all files.
    ///
    /// # Errors
    /// Why the files cannot be loaded.
    pub(crate) fn step(&mut self, engine: &mut Engine) -> Result<bool, String> {
        if self.current.is_none() {
            let Some(file) = self.rest.pop_front() else { return Ok(false) };
            let bytes = self.storage.open(&file.path).map_err(|error| {
                format!("Fatal error: can't open the append log file {} for reading: {}", name(&file), reason(&error))
            })?;
            self.load.open(engine, AofSource { name: name(&file), is_base: file.is_base, bytes })?;
            self.file_began_us = monotonic_us();
            self.current = Some(file);
        }
        let goes_on = self.load.step(engine)?;
        self.load.take_lines().iter().for_each(|line| info!("{line}"));
        if !goes_on && let Some(file) = self.current.take() {
            self.end_file(&file)?;
        }
        Ok(true)
    }

    /// Loads all files.
    ///
    /// # Errors
    /// Why they cannot be loaded.
    fn finish(mut self, shared: &Arc<Shared>) -> Result<(), String> {
        shared.act(|engine| {
            while self.step(engine)? {}
            Ok::<(), String>(())
        })?;
        self.end(shared, None)
    }

    /// Updates the progress of the load, which INFO shows.
    #[cfg(feature = "program")]
    pub(crate) fn report(&self, engine: &mut Engine) {
        if let Some(loading) = &mut engine.persistence.loading {
            loading.loaded_bytes = self.loaded_bytes + if self.current.is_some() { self.load.offset() } else { 0 };
        }
    }

    fn end_file(&mut self, file: &LogFile) -> Result<(), String> {
        let (valid_bytes, tail) = self.load.tail();
        if tail != Tail::Clean {
            self.cut(file, valid_bytes, tail)?;
        }
        self.loaded_bytes += file.bytes;
        let (kind, name) = (if file.is_base { "base" } else { "incr" }, name(file));
        let elapsed_s = (monotonic_us() - self.file_began_us) as f64 / 1e6;
        info!("DB loaded from {kind} file {name}: {elapsed_s:.3} seconds");
        Ok(())
    }

    /// Cuts off the end of a file that was being written when the server stopped.
    fn cut(&self, file: &LogFile, valid_bytes: u64, tail: Tail) -> Result<(), String> {
        let name = name(file);
        if tail == Tail::OpenTransaction {
            warn!("Revert incomplete MULTI/EXEC transaction in AOF file {name}");
        }
        let torn = check_tail(tail, file, self.loads_truncated);
        if torn == Err(TornEnd::NotAllowed) {
            return Err(format!(
                "Unexpected end of file reading the append only file {name}. You can: 1) Make a backup of your AOF \
                 file, then use ./redis-check-aof --fix <filename.manifest>. 2) Alternatively you can set the \
                 'aof-load-truncated' configuration option to yes and restart the server."
            ));
        }
        warn!("!!! Warning: short read while loading the AOF file {name}!!!");
        torn.map_err(|_| "Fatal error: the truncated file is not the last file".to_owned())?;
        let Some(files) = &self.files else { return Ok(()) };
        warn!("!!! Truncating the AOF {name} at offset {valid_bytes} !!!");
        files
            .cut(&file.path, valid_bytes)
            .map_err(|error| format!("Error truncating the AOF file {name}: {}", reason(&error)))?;
        warn!("AOF {name} loaded anyway because aof-load-truncated is enabled");
        Ok(())
    }

    /// Ends the load. Changes go into the last file from now on; or, if the files were only read, into a new
    /// append-only file, if there is to be one.
    ///
    /// # Errors
    /// Why that fails.
    pub(crate) fn end(self, shared: &Arc<Shared>, new: Option<AofFiles>) -> Result<(), String> {
        let AofStart { files, load, began_us, .. } = self;
        let counts = shared.act(|engine| load.end(engine));
        let elapsed_s = (monotonic_us() - began_us) as f64 / 1e6;
        info!("DB loaded from append only file: {elapsed_s:.3} seconds");
        // Clients are refused until changes go into the file: what they wrote before would be lost.
        match (files, new) {
            (Some(files), _) => go_on_with_loaded(shared, files)?,
            (None, Some(new)) => begin_new(shared, new)?,
            (None, None) => {}
        }
        shared.act(|engine| engine.end_load(counts));
        Ok(())
    }
}

/// Loads the append-only file before any client connects, and appends later changes to it. If there is none, returns
/// the place for a new one ([`begin_new`]).
///
/// # Errors
/// Why it cannot be loaded.
pub(crate) fn load_whole(shared: &Arc<Shared>) -> Result<Option<AofFiles>, String> {
    let settings = shared.engine().settings.clone();
    let storage = shared.worlds().storage();
    match shared.act(|engine| AofStart::begin(engine, storage, &settings))? {
        Opened::New(files) => Ok(Some(*files)),
        Opened::Loading(load) => load.finish(shared).map(|()| None),
    }
}

/// Loads an append-only file that is only read into a server that nobody uses yet; false if it is something else.
///
/// # Errors
/// Why it cannot be loaded.
pub(crate) fn load_seed(shared: &Arc<Shared>, path: &Path) -> Result<bool, String> {
    let storage = shared.worlds().storage();
    match shared.act(|engine| AofStart::of_seed(engine, storage, path))? {
        None => Ok(false),
        Some(load) => load.finish(shared).map(|()| true),
    }
}

/// Begins an append-only file with the present data, where there is none yet.
///
/// # Errors
/// Why it cannot be made.
pub(crate) fn begin_new(shared: &Arc<Shared>, mut files: AofFiles) -> Result<(), String> {
    let base = shared.act(aof::first_base);
    let settings = shared.engine().settings.clone();
    let created = files.create_base(|out| base.write_base(out, &settings.files, || Ok(())));
    drop(base);
    shared.act(persistence::reclaim);
    let name = created.map_err(|error| reason(&error))?;
    info!("Creating AOF base file {name} on server start");
    // As in Redis, a base without data does not count until the next start.
    let bytes = if shared.engine().databases.is_empty() { 0 } else { files.base_bytes() };
    go_on(shared, files, bytes, bytes)
}

/// Continues the files that were loaded. For the automatic rewrite, everything after the base counts as growth, as in
/// Redis: the files do not record their size after the last rewrite.
fn go_on_with_loaded(shared: &Arc<Shared>, files: AofFiles) -> Result<(), String> {
    let base_bytes = files.base_bytes();
    let total_bytes = base_bytes + files.incr_bytes();
    go_on(shared, files, base_bytes, total_bytes)?;
    if !shared.engine().settings.files.keeps_history {
        shared.worlds().aof().remove_history();
    }
    Ok(())
}

/// Opens the last file, to which later changes are appended. `base_bytes` is the size from which growth is measured,
/// `total_bytes` the present size of all files.
fn go_on(shared: &Arc<Shared>, mut files: AofFiles, base_bytes: u64, total_bytes: u64) -> Result<(), String> {
    let commands = known_commands(&files);
    let file = files.continue_last().map_err(|error| reason(&error))?;
    aof_files::log_lines(&mut files);
    let (policy, writer) = (shared.engine().settings.files.syncs, shared.worlds().aof());
    let last_bytes = files.to_load().last().map_or(0, |file| file.bytes);
    writer.set_sizes(base_bytes, total_bytes);
    writer.open(shared, files, file, policy).map_err(|error| reason(&error))?;
    shared.act(|engine| {
        aof::begin(engine);
        engine.effects.propagation.continue_file(last_bytes);
        engine.effects.propagation.set_commands(commands);
    });
    Ok(())
}

/// The number of commands in the stream so far: the end offset of the last file in the manifest. If that file was not
/// closed in order, it is the start offset plus the length of the file in bytes, as in Redis: the number must not fall.
fn known_commands(files: &AofFiles) -> u64 {
    let Some(last) = files.manifest().incrs.last() else { return 0 };
    let bytes = files.to_load().last().map_or(0, |file| file.bytes);
    let end = last.end_offset.and_then(|end| u64::try_from(end).ok());
    let start = last.start_offset.and_then(|start| u64::try_from(start).ok());
    end.or(start.map(|start| start + bytes)).unwrap_or(0)
}

/// The files that a file to be loaded consists of, if it is an append-only file.
fn seed_parts(storage: &dyn Storage, path: &Path) -> Result<Option<Vec<LogFile>>, String> {
    let explain = |error: io::Error| format!("{}: {}", path.display(), reason(&error));
    if let Ok(names) = storage.list(path) {
        let manifest = names.iter().find(|name| name.ends_with(".manifest"));
        let manifest = manifest.ok_or("there is no manifest of an append-only file in that folder")?;
        return listed_parts(storage, &path.join(manifest)).map(Some);
    }
    let mut head = Vec::new();
    storage.open(path).map_err(explain)?.take(HEAD_BYTES).read_to_end(&mut head).map_err(explain)?;
    if head.starts_with(b"file ") {
        return listed_parts(storage, path).map(Some);
    }
    let is_base = is_rdb(&head) && head.windows(PREAMBLE.len()).any(|part| part == PREAMBLE);
    if !is_base && !begins_as_log(&head) {
        return Ok(None);
    }
    let bytes = storage.length(path).map_err(explain)?;
    Ok(Some(vec![LogFile { path: path.to_owned(), is_base, is_last: true, bytes }]))
}

/// Whether a file that begins with these bytes has commands as they are sent, behind lines about them. Other lines that
/// begin with `#` are comments of a text.
fn begins_as_log(head: &[u8]) -> bool {
    let mut lines = head.split_inclusive(|byte| *byte == b'\n').skip_while(|line| line.starts_with(b"#"));
    !head.is_empty() && lines.next().is_none_or(|line| line.starts_with(b"*"))
}

/// The number of bytes at the start of a file that identify its format.
const HEAD_BYTES: u64 = 512;
/// The fact about an RDB file that commands follow it, as in the append-only files of Redis 4 to 6.
const PREAMBLE: &[u8] = b"\xfa\x0caof-preamble\xc0\x01";

/// The files that a manifest lists, in their order.
fn listed_parts(storage: &dyn Storage, path: &Path) -> Result<Vec<LogFile>, String> {
    let mut text = Vec::new();
    let read = storage.open(path).and_then(|mut file| file.read_to_end(&mut text));
    read.map_err(|error| format!("{}: {}", path.display(), reason(&error)))?;
    let manifest = Manifest::parse(&text).map_err(|fault| fault.lines().join(" "))?;
    Ok(files_of(&manifest, storage, replace::folder_of(path)))
}

fn name(file: &LogFile) -> String {
    file.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Warns that the RDB file is not loaded, as in Redis, where the data seem to be gone.
fn warn_of_ignored_dump(storage: &dyn Storage, settings: &Settings) {
    let dump = settings.dump_path();
    if storage.length(Path::new(&dump)).is_ok() {
        warn!(
            "{} is not loaded, because appendonly is on and there is no append-only file. To keep its data, start \
             with appendonly no and then CONFIG SET appendonly yes, or with load {}.",
            dump.display(),
            dump.display()
        );
    }
}
