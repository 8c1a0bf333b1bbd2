//! The data with which a server starts.
//!
//! An embedded server loads a file before [`crate::Server`] is returned, so its clients never see it loading. The
//! program serves meanwhile (`program/start_load`). Besides RDB files, an embedded server loads the text that DUNLIN
//! DUMP returns.
//!
//! A server loads its own file (`dir`, `dbfilename`) if files were asked for and there is one; otherwise the file of
//! `load`, which is only ever read.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;

use super::os_host::reason;
use crate::commands::dunlin;
use crate::engine::exec::loading::Load;
use crate::engine::{Engine, LoadCounts, Settings};
use crate::rdb::file::is_rdb;

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
