//! The RDB file on the disk: replaced as a whole, by SAVE and by the thread of BGSAVE, and opened for reading.
//!
//! The thread has a checkpoint, which shares the data with the engine, and takes the engine's lock only when it is
//! done.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::background_saver::{FAULT, KeyDelay, announce_temporary_file, pace};
use super::contain::contain;
use super::os_host::reason;
use super::shared::Shared;
use crate::engine::state::Checkpoint;
use crate::storage::{Storage, replace};

/// Replaces the RDB file by what `write` writes; `id` tells apart the temporary files of saves at the same time.
///
/// # Errors
/// The message why that fails; the file is unchanged then.
pub(crate) fn write<T>(
    storage: &dyn Storage,
    path: &Path,
    id: u64,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> Result<T, String> {
    let _announced = announce_temporary_file();
    let temporary = path.with_file_name(temporary_name(id));
    replace::replace(storage, path, &temporary, write).map_err(|error| reason(&error))
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
pub(crate) fn open(storage: &dyn Storage, path: &Path) -> Result<Box<dyn io::Read + Send>, String> {
    storage.open(path).map_err(|error| reason(&error))
}

/// Writes a checkpoint to the RDB file, and then tells the engine (BGSAVE).
pub(crate) fn save(
    shared: &Shared,
    checkpoint: Box<Checkpoint>,
    path: &Path,
    delay: KeyDelay,
    is_stopped: &AtomicBool,
) {
    let id = checkpoint.id();
    let storage = &**shared.worlds().storage();
    let written = contain("the thread that saves", || {
        write(storage, path, id, |out| checkpoint.write(out, || pace(delay, is_stopped)))
    });
    let result = written.unwrap_or_else(|| Err(FAULT.to_owned()));
    drop(checkpoint);
    shared.act(|engine| engine.end_save(id, result.map(drop)));
}
