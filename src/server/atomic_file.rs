//! Atomic replacement of a file: as a whole or not at all.
//!
//! The contents are written to a temporary file beside it, which is renamed to the file's name only when all of it is
//! on the disk. A reader, even after a crash, finds the old contents or the new ones. Then the folder is written to the
//! disk, too: only that makes the rename durable.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// The bytes after which a file that is being written is sent to the disk, so that the end need not wait for all.
const SYNCED_BYTES: usize = 4 << 20;

/// Replaces `path` by what `write` writes to the temporary file `beside`, which it creates.
///
/// # Errors
/// When something of this fails; the file is then unchanged, and there is no temporary one.
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
    sync_folder(path)?;
    Ok(result)
}

/// Writes the folder of a file to the disk.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Does nothing: on other systems a folder cannot be opened as a file.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// A file that is sent to the disk every few megabytes while it is being written, as with Redis's incremental fsync.
#[derive(Debug)]
pub(crate) struct IncrementalSyncFile {
    file: File,
    unsynced_bytes: usize,
}

impl IncrementalSyncFile {
    pub(crate) fn new(file: File) -> IncrementalSyncFile {
        IncrementalSyncFile { file, unsynced_bytes: 0 }
    }

    pub(crate) fn into_file(self) -> File {
        self.file
    }
}

impl Write for IncrementalSyncFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.unsynced_bytes += written;
        if self.unsynced_bytes >= SYNCED_BYTES {
            self.unsynced_bytes = 0;
            self.file.sync_data()?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
