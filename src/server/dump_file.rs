//! The RDB file on the disk, which is replaced as a whole, on a thread for SAVE and BGSAVE.
//!
//! The thread has a checkpoint, which shares the data with the engine, and takes the engine's lock only when it is
//! done. Meanwhile FLUSHALL or the end of the server may have saved newer data: then the thread leaves their file
//! as it is, because an older one in its place would bring back what was removed.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use tracing::info;

use super::background_saver::{FAULT, TestDelay, announce_temporary_file};
use super::contain::contain;
use super::os_host::reason;
use super::processors::at_low_priority;
use super::progress::after_each_key;
use super::shared::Shared;
use crate::engine::state::{BackgroundSave, Checkpoint};
use crate::engine::{Engine, Settings};
use crate::rdb::file::is_whole;
use crate::storage::{PathLock, Storage, replace};

/// A save: its checkpoint's number, and whether it is in the foreground.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Save {
    pub(crate) number: u64,
    pub(crate) is_in_foreground: bool,
}

/// The RDB file of a server: the last save that replaced it, and the lock on it.
///
/// A server with save points locks its file when it starts, any other one with its first save, so that a second server
/// does not replace what this one has saved. The lock is on the file itself: it ends with the process, and leaves
/// nothing behind. Each save locks the file that is to replace the one before.
#[derive(Debug, Default)]
pub(crate) struct OwnDump(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The file that a save has replaced last, and the number of that save.
    replaced: Option<(PathBuf, u64)>,
    /// The lock on the file, if there is one.
    lock: Option<Box<dyn PathLock>>,
}

impl OwnDump {
    /// Locks the file of a server with save points, before it is loaded.
    ///
    /// # Errors
    /// A sentence that another server has it.
    pub(crate) fn lock_at_start(&self, storage: &dyn Storage, settings: &Settings) -> Result<(), String> {
        if settings.files.save_points.is_empty() || settings.files.dump_file.is_empty() {
            return Ok(());
        }
        self.0.lock().ensure_locked(storage, &settings.dump_path())
    }

    /// Lets other servers have the file, at the end of this one.
    pub(crate) fn unlock(&self) {
        self.0.lock().lock = None;
    }
}

impl State {
    /// Locks the file, unless it is locked already. Without a file, or in a file system without locks, nothing is.
    ///
    /// # Errors
    /// A sentence that another server has it.
    fn ensure_locked(&mut self, storage: &dyn Storage, path: &Path) -> Result<(), String> {
        if self.lock.as_ref().is_some_and(|lock| lock.is_of(path)) {
            return Ok(());
        }
        match storage.lock(path) {
            Ok(None) => Err(format!("The RDB file {} is in use by another server", path.display())),
            locked => {
                self.lock = locked.ok().flatten();
                Ok(())
            }
        }
    }

    /// Keeps the lock that is on the file now: the one from before, or that of the file that was to replace it.
    fn keep_lock(&mut self, storage: &dyn Storage, path: &Path, of_replacing: Option<Box<dyn PathLock>>) {
        let mut locks = [of_replacing, self.lock.take()].into_iter().flatten();
        let kept = locks.find(|lock| lock.is_of(path));
        self.lock = kept.or_else(|| storage.lock(path).ok().flatten());
    }
}

/// Replaces the RDB file by what `write` writes, unless a newer save has replaced it meanwhile.
///
/// # Errors
/// The message why that fails. The file is unchanged then, unless the sync of the folder failed: then it is the new
/// one, which a power loss may undo.
pub(crate) fn write<T>(
    storage: &dyn Storage,
    own: &OwnDump,
    path: &Path,
    save: Save,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> Result<(), String> {
    // Before much is written for nothing.
    own.0.lock().ensure_locked(storage, path)?;
    let _announced = announce_temporary_file();
    let temporary = path.with_file_name(save.temporary_name());
    let (mut lock, mut replacing, mut is_outdated) = (None, None, false);
    let write = |out: &mut dyn Write| {
        // It is locked while it is empty, as `remove_leftovers` expects. Not every file system has locks.
        lock = storage.lock(&temporary).ok().flatten();
        write(out)
    };
    let may_replace = |file: &mut dyn Read| {
        let is_whole = is_whole(file)?;
        // Held until the file is replaced.
        let state = replacing.insert(own.0.lock());
        is_outdated = state.replaced.as_ref().is_some_and(|(file, number)| file == path && *number > save.number);
        state.ensure_locked(storage, path).map_err(io::Error::other)?;
        Ok(is_whole && !is_outdated)
    };
    let replaced = replace::replace(storage, path, &temporary, write, may_replace);
    if let Some(state) = &mut replacing {
        state.keep_lock(storage, path, lock);
        // Also where a power loss may bring the old file back: no older save may replace this one.
        let is_replaced = match &replaced {
            Ok(_) => true,
            Err(failure) => failure.may_be_undone,
        };
        if is_replaced {
            state.replaced = Some((path.to_owned(), save.number));
        }
    }
    match replaced {
        Ok(_) => Ok(()),
        // The newer one may not be durable yet.
        Err(_) if is_outdated => storage.sync_folder(replace::folder_of(path)).map_err(|error| reason(&error)),
        Err(failure) => Err(reason(&failure.error)),
    }
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

impl Save {
    /// The name of its temporary file: that of Redis for a save in the foreground. Saves at the same time have
    /// different ones.
    fn temporary_name(self) -> String {
        let (process, number) = (std::process::id(), self.number);
        if self.is_in_foreground { format!("temp-{process}.rdb") } else { format!("temp-{process}-{number}.rdb") }
    }
}

/// Starts to save a checkpoint in the background.
pub(super) fn start(shared: &Shared, engine: &mut Engine, checkpoint: Box<Checkpoint>) {
    let (id, path) = (checkpoint.id(), engine.settings.dump_path());
    let delay = TestDelay::of_us(engine.settings.files.save_delay_us);
    let write = move |shared: &Shared, stop: &AtomicBool| save(shared, checkpoint, &path, delay, stop);
    if let Err(reason) = shared.start_save(BackgroundSave::Dump(id), write) {
        engine.end_save(id, Err(reason));
    }
}

/// Writes a checkpoint to the RDB file, and then tells the engine (SAVE, BGSAVE).
fn save(shared: &Shared, checkpoint: Box<Checkpoint>, path: &Path, delay: TestDelay, is_stopped: &AtomicBool) {
    let id = checkpoint.id();
    let (storage, own) = (&**shared.worlds().storage(), shared.worlds().own_dump());
    let this = Save { number: id, is_in_foreground: false };
    let written = contain("the thread that saves", || {
        let pace = || after_each_key(&checkpoint, delay, is_stopped);
        let write_to = |out: &mut dyn Write| match checkpoint.is_awaited() {
            true => checkpoint.write_in_parallel(out, pace()),
            false => checkpoint.write(out, pace()),
        };
        let written = at_low_priority(|| write(storage, own, path, this, write_to));
        written.unwrap_or_else(|error| Err(reason(&error)))
    });
    let result = written.unwrap_or_else(|| Err(FAULT.to_owned()));
    drop(checkpoint);
    shared.act(|engine| engine.end_save(id, result));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::simulated::{Fault, SimulatedDisk};

    const PATH: &str = "data/dump.rdb";

    fn disk() -> SimulatedDisk {
        let disk = SimulatedDisk::default();
        disk.write(PATH, "the one before");
        disk
    }

    fn save(number: u64, is_in_foreground: bool) -> Save {
        Save { number, is_in_foreground }
    }

    /// An RDB file with a note, and no keys.
    fn dump(note: u8) -> Vec<u8> {
        let file = *b"REDIS0012\xfa\x04note\x01?\xff\0\0\0\0\0\0\0\0";
        file.iter().map(|&byte| if byte == b'?' { note } else { byte }).collect()
    }

    #[test]
    fn a_dump_that_is_not_whole_does_not_replace_the_one_before() {
        let disk = disk();
        let torn = |out: &mut dyn Write| out.write_all(b"REDIS0012 and no end");
        let written = write(&disk, &OwnDump::default(), Path::new(PATH), save(1, true), torn);
        assert_eq!(written, Err("the file is not as it was written".to_owned()));
        assert_eq!(disk.paths().len(), 1);
        assert_eq!(disk.read(PATH).as_deref(), Some(&b"the one before"[..]));
    }

    /// Saves in the background, and has another save done before that is.
    fn save_beside(disk: &SimulatedDisk, background: u64, foreground: u64, path: &str) -> Result<(), String> {
        let own = OwnDump::default();
        let beside = |out: &mut dyn Write| {
            let write_dump = |out: &mut dyn Write| out.write_all(&dump(b'F'));
            write(disk, &own, Path::new(path), save(foreground, true), write_dump).map_err(io::Error::other)?;
            out.write_all(&dump(b'B'))
        };
        write(disk, &own, Path::new(PATH), save(background, false), beside)
    }

    #[test]
    fn a_save_leaves_the_file_of_a_newer_one_that_was_done_before() {
        let disk = disk();
        assert_eq!(save_beside(&disk, 1, 2, PATH), Ok(()));
        assert_eq!((disk.read(PATH), disk.paths().len()), (Some(dump(b'F')), 1));
    }

    #[test]
    fn a_save_leaves_the_file_of_a_newer_one_whose_name_is_not_durable_yet() {
        let save_as = |disk: &SimulatedDisk, own: &OwnDump, number, note| {
            write(disk, own, Path::new(PATH), save(number, false), |out: &mut dyn Write| out.write_all(&dump(note)))
        };
        let counted = disk();
        save_as(&counted, &OwnDump::default(), 2, b'F').expect("the disk works");
        let (disk, own) = (disk(), OwnDump::default());
        // The last call is the sync of the folder.
        disk.fail_call(counted.calls() - 1, Fault::InputOutput);
        assert!(save_as(&disk, &own, 2, b'F').is_err());
        assert_eq!(save_as(&disk, &own, 1, b'B'), Ok(()));
        disk.power_loss(1);
        assert_eq!((disk.read(PATH), disk.paths().len()), (Some(dump(b'F')), 1));
    }

    #[test]
    fn a_save_replaces_the_file_of_an_older_one_and_keeps_other_files() {
        let disk = disk();
        assert_eq!(save_beside(&disk, 2, 1, PATH), Ok(()));
        assert_eq!(disk.read(PATH), Some(dump(b'B')));
        assert_eq!(save_beside(&disk, 1, 2, "data/other.rdb"), Ok(()));
        assert_eq!((disk.read(PATH), disk.read("data/other.rdb")), (Some(dump(b'B')), Some(dump(b'F'))));
    }
}
