//! The data with which a server starts.
//!
//! An embedded server loads a file before [`crate::Server`] is returned, and that of `dunlin run` before its command
//! starts, so their clients never see them loading. The program serves meanwhile (`program/start_load`). Beside RDB
//! files and append-only files, `load` takes the text that DUNLIN DUMP returns.
//!
//! A server loads its own file (`dir`, `dbfilename`) if persistence is enabled and the file exists; otherwise the file
//! of `load`, which is never written.

use std::fs;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::aof_start;
use super::dump_file;
use super::os_host::reason;
use super::shared::Shared;
use crate::commands::dunlin;
use crate::engine::exec::loading::Load;
use crate::engine::{Engine, LoadCounts, Settings};
use crate::rdb::file::is_rdb;
use crate::storage::Storage;

/// Data to start with.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The RDB file that the server itself has saved.
    Dump(PathBuf),
    /// A file of any kind.
    File(PathBuf),
    /// The contents of a file.
    Bytes(Arc<[u8]>),
}

/// The path of the server's own RDB file, if persistence is enabled and the file exists, even if it cannot be read.
pub(crate) fn own_file(storage: &dyn Storage, settings: &Settings) -> Option<PathBuf> {
    if !settings.files.loads_at_start || settings.files.dump_file.is_empty() {
        return None;
    }
    let own = settings.dump_path();
    let is_missing = storage.length(&own).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    (!is_missing).then_some(own)
}

/// A sentence about files that a user of Redis may not expect: without `save` nothing is saved by itself, and without
/// any parameter of files the dump in the folder is not loaded.
#[cfg(feature = "program")]
pub(crate) fn note_about_files(storage: &dyn Storage, settings: &Settings) -> Option<String> {
    let (files, dump) = (&settings.files, settings.dump_path());
    let saves_itself = files.appends || !files.save_points.is_empty();
    match files.loads_at_start {
        true if saves_itself || files.dump_file.is_empty() => None,
        true => Some(format!("No save points are set: {} is written by SAVE and BGSAVE alone", dump.display())),
        false if files.dump_file.is_empty() || storage.length(&dump).is_err() => None,
        false => Some(format!("{} is not loaded: none of save, dir and dbfilename is set", dump.display())),
    }
}

/// The file of `load`, if it is set.
pub(crate) fn file_to_load(settings: &Settings) -> Option<PathBuf> {
    (!settings.files.load_file.is_empty()).then(|| PathBuf::from(&settings.files.load_file))
}

/// The data that a server with these settings starts with: the file that it saved itself, or else `given`, or the one
/// that `load` names.
pub(crate) fn source_at_start(storage: &dyn Storage, settings: &Settings, given: Option<Source>) -> Option<Source> {
    let own_file = if settings.files.appends { None } else { own_file(storage, settings) };
    own_file.map(Source::Dump).or(given).or_else(|| file_to_load(settings).map(Source::File))
}

/// Loads what a server starts with, before any client uses it: its append-only file, or else `data`.
///
/// # Errors
/// The file that cannot be loaded, and why.
pub(crate) fn load_before_clients(
    shared: &Arc<Shared>,
    storage: &dyn Storage,
    data: Option<Source>,
) -> Result<(), (String, String)> {
    load_files(shared, storage, data).inspect_err(|_| {
        // At its end, the server must not replace the file by the part of it that is loaded.
        shared.engine().persistence.loading.get_or_insert_default();
    })
}

fn load_files(shared: &Arc<Shared>, storage: &dyn Storage, data: Option<Source>) -> Result<(), (String, String)> {
    let of_aof = |reason| ("the append-only file".to_owned(), reason);
    let settings = shared.engine().settings.clone();
    let locked = shared.worlds().own_dump().lock_at_start(storage, &settings);
    locked.map_err(|reason| (settings.dump_path().display().to_string(), reason))?;
    dump_file::remove_leftovers(storage, &settings);
    let appends = settings.files.appends;
    let aof = if appends { aof_start::load_whole(shared).map_err(of_aof)? } else { None };
    if let Some(data) = data.filter(|_| !appends || aof.is_some()) {
        let file = match &data {
            Source::Dump(path) | Source::File(path) => path.display().to_string(),
            Source::Bytes(_) => "the bytes".to_owned(),
        };
        load_whole(shared, storage, &data).map_err(|reason| (file, reason))?;
    }
    aof.map_or(Ok(()), |files| aof_start::begin_new(shared, files)).map_err(of_aof)
}

/// Loads data into a server that no client uses yet.
///
/// # Errors
/// Why they cannot be loaded, and where.
pub(crate) fn load_whole(shared: &Arc<Shared>, storage: &dyn Storage, source: &Source) -> Result<(), String> {
    if let Source::File(path) = source {
        if is_pipe(path) {
            let bytes = Source::Bytes(fs::read(path).map_err(|error| reason(&error))?.into());
            return shared.act(|engine| load_into(engine, storage, &bytes));
        }
        if aof_start::load_seed(shared, path)? {
            return Ok(());
        }
    }
    shared.act(|engine| load_into(engine, storage, source))
}

/// Whether a path is that of a pipe or a device, which can be read only once, so that its kind cannot be found out
/// before: an append-only file cannot come from there.
pub(crate) fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Whether a file is to be loaded as an RDB file: it begins as one, or cannot be read, which its load then reports.
#[cfg(feature = "program")]
pub(crate) fn is_rdb_file(storage: &dyn Storage, path: &Path) -> bool {
    let begins_as_rdb = |file| BufReader::new(file).fill_buf().is_ok_and(is_rdb);
    storage.open(path).map_or(true, begins_as_rdb)
}

fn load_into(engine: &mut Engine, storage: &dyn Storage, source: &Source) -> Result<(), String> {
    let mut bytes: Box<dyn BufRead> = match source {
        Source::Dump(path) | Source::File(path) => {
            Box::new(BufReader::new(storage.open(path).map_err(|error| reason(&error))?))
        }
        Source::Bytes(bytes) => Box::new(Cursor::new(Arc::clone(bytes))),
    };
    let is_dump = matches!(source, Source::Dump(_));
    if is_dump || is_rdb(bytes.fill_buf().map_err(|error| reason(&error))?) {
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
