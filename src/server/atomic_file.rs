//! Atomic replacement of a file: as a whole or not at all.
//!
//! The contents are written to a temporary file beside it, which is renamed to the file's name only when all of it is
//! on the disk. A reader, even after a crash, finds the old contents or the new ones. Then the folder is written to the
//! disk, too: only that makes the rename durable.
//!
//! Files of the data are replaced through [`crate::storage::replace`] instead; this keeps what a [`File`] has besides
//! bytes, such as permissions.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Replaces `path` by what `write` writes to the temporary file `beside`, which it creates.
///
/// # Errors
/// When a step fails. The file is then unchanged and the temporary file removed; only if the last step fails (the sync
/// of the folder), the file is replaced, but not yet durably.
pub(crate) fn replace<T>(path: &Path, beside: &Path, write: impl FnOnce() -> io::Result<(File, T)>) -> io::Result<T> {
    let written = write().and_then(|(file, result)| {
        file.sync_all()?;
        drop(file);
        fs::rename(beside, path)?;
        Ok(result)
    });
    if written.is_err() {
        // There may be nothing to remove.
        let _ = fs::remove_file(beside);
    }
    let result = written?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_folder(folder)?;
    Ok(result)
}

/// Writes the names in a folder to the disk.
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Does nothing: on other systems a folder cannot be opened as a file.
#[cfg(not(unix))]
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
