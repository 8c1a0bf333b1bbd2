//! Opening the files of the append-only file, and what they log.

use std::path::Path;
use std::sync::Arc;

use tracing::info;

use crate::aof::files::{AofFiles, Place};
use crate::engine::Settings;
use crate::storage::Storage;

/// Logs the messages that the files have collected.
pub(super) fn log_lines(files: &mut AofFiles) {
    files.take_lines().iter().for_each(|line| info!("{line}"));
}

/// Opens the files of the append-only file where the settings have them.
///
/// # Errors
/// The message why they cannot be opened.
pub(super) fn open_files(storage: &Arc<dyn Storage>, settings: &Settings) -> Result<AofFiles, String> {
    let mut files = AofFiles::open(Arc::clone(storage), place(settings)).map_err(|fault| fault.lines().join("\n"))?;
    log_lines(&mut files);
    Ok(files)
}

/// Where the settings have the files.
pub(super) fn place(settings: &Settings) -> Place {
    let folder = Path::new(&settings.directory).join(&settings.files.append_folder);
    Place { folder, name: settings.files.append_file.clone() }
}
