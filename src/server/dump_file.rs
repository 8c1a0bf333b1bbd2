//! The RDB file on the disk: replaced as a whole, by SAVE and by the thread of BGSAVE, and opened for reading.
//!
//! The thread has a checkpoint, which shares the data with the engine, and takes the engine's lock only when it is
//! done.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use tracing::info;

use super::background_saver::{FAULT, TestDelay, announce_temporary_file};
use super::contain::contain;
use super::os_host::reason;
use super::processors::at_low_priority;
use super::progress::after_each_key;
use super::shared::Shared;
use crate::engine::Settings;
use crate::engine::state::Checkpoint;
use crate::rdb::file::is_whole;
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
    let mut lock = None;
    let write = |out: &mut dyn Write| {
        // It is locked while it is empty, as `remove_leftovers` expects. Not every file system has locks.
        lock = storage.lock(&temporary).ok();
        write(out)
    };
    let replaced = replace::replace(storage, path, &temporary, write, |file| is_whole(file));
    drop(lock);
    replaced.map_err(|error| reason(&error))
}

/// Removes temporary files that background saves of killed servers have left beside the RDB file, if persistence is
/// enabled (`save`, `dir` or `dbfilename`). The file of a running server is locked, or still empty before it is locked;
/// a temporary file of Redis has another name.
pub(crate) fn remove_leftovers(storage: &dyn Storage, settings: &Settings) {
    if !settings.files.loads_at_start {
        return;
    }
    let path = settings.dump_path();
    let names = storage.list(replace::folder_of(&path)).unwrap_or_default();
    for temporary in names.iter().filter(|name| is_temporary(name)).map(|name| path.with_file_name(name)) {
        if storage.length(&temporary).is_ok_and(|bytes| bytes == 0) {
            continue;
        }
        let lock = storage.lock(&temporary).ok().flatten();
        if lock.is_some() && storage.remove(&temporary).is_ok() {
            info!("Removed {}, the temporary file of a save that did not finish", temporary.display());
        }
    }
}

/// Whether a file of that name is the temporary one of a background save.
fn is_temporary(name: &str) -> bool {
    let numbers = name.strip_prefix("temp-").and_then(|rest| rest.strip_suffix(".rdb")?.split_once('-'));
    numbers.is_some_and(|(process, id)| process.parse::<u32>().is_ok() && id.parse::<u64>().is_ok())
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
    delay: TestDelay,
    is_stopped: &AtomicBool,
) {
    let id = checkpoint.id();
    let storage = &**shared.worlds().storage();
    let written = contain("the thread that saves", || {
        let pace = || after_each_key(&checkpoint, delay, is_stopped);
        let written = at_low_priority(|| write(storage, path, id, |out| checkpoint.write(out, pace())));
        written.unwrap_or_else(|error| Err(reason(&error)))
    });
    let result = written.unwrap_or_else(|| Err(FAULT.to_owned()));
    drop(checkpoint);
    shared.act(|engine| engine.end_save(id, result.map(drop)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::simulated::SimulatedDisk;

    #[test]
    fn a_dump_that_is_not_whole_does_not_replace_the_one_before() {
        let disk = SimulatedDisk::default();
        disk.write("data/dump.rdb", "the one before");
        let written = write(&disk, Path::new("data/dump.rdb"), 0, |out| out.write_all(b"REDIS0012 and no end"));
        assert_eq!(written, Err("the file is not as it was written".to_owned()));
        assert_eq!(disk.paths().len(), 1);
        assert_eq!(disk.read("data/dump.rdb").as_deref(), Some(&b"the one before"[..]));
    }
}
