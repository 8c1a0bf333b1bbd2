//! Replacement of a whole file, as one step: after a power loss at any moment there is the old file or the new one.
//!
//! The contents are written to a temporary file in the same folder. It gets the file's name only when it is durable,
//! and then the folder is synced, which makes the new name durable.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use super::{Storage, StorageFile};

/// The bytes after which the system begins to write a file to the disk that is being written, so that the sync at the
/// end has little left to do.
const WRITEBACK_BYTES: u64 = 4 << 20;

/// Replaces the file `path` by what `write` writes, through the file `temporary` of the same folder. `is_whole` reads
/// that once more before: a disk may have taken less than it said.
///
/// # Errors
/// When a step fails, or the file is not whole. The temporary file is removed then, if the disk permits that.
pub fn replace<T>(
    storage: &dyn Storage,
    path: &Path,
    temporary: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    is_whole: impl FnOnce(&mut dyn Read) -> io::Result<bool>,
) -> Result<T, NotReplaced> {
    let written = create(storage, temporary, write).and_then(|result| {
        if !is_whole(&mut *storage.open(temporary)?)? {
            return Err(io::Error::other("the file is not as it was written"));
        }
        storage.rename(temporary, path)?;
        Ok(result)
    });
    if written.is_err() {
        // There may be nothing to remove.
        let _ = storage.remove(temporary);
    }
    let result = written.map_err(|error| NotReplaced { error, may_be_undone: false })?;
    storage.sync_folder(folder_of(path)).map_err(|error| NotReplaced { error, may_be_undone: true })?;
    Ok(result)
}

/// A file that was not replaced, or not for good.
#[derive(Debug)]
pub struct NotReplaced {
    /// The step's error.
    pub error: io::Error,
    /// Whether the new file is there, and a power loss may bring the old one back: the folder could not be synced.
    /// Otherwise the file is unchanged.
    pub may_be_undone: bool,
}

/// Creates a file with what `write` writes, and syncs it. Its name is not yet durable.
///
/// # Errors
/// When a step fails. The file may exist then.
pub fn create<T>(
    storage: &dyn Storage,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> io::Result<T> {
    let mut out = EarlyWriteback { file: storage.create(path)?, started: 0, written: 0 };
    let result = write(&mut out)?;
    out.file.sync()?;
    Ok(result)
}

/// The folder that a file is in; empty for a path that is only a name, which is in the current folder.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// A file of which the system writes every few megabytes to the disk while more are appended, as with Redis's
/// incremental fsync.
#[derive(Debug)]
struct EarlyWriteback {
    file: Arc<dyn StorageFile>,
    /// The length up to which the system has begun to write.
    started: u64,
    /// The length of the file.
    written: u64,
}

impl Write for EarlyWriteback {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.written += written as u64;
        if self.written - self.started >= WRITEBACK_BYTES {
            self.file.start_writeback(self.started..self.written)?;
            self.started = self.written;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::simulated::{CallKind, DataLoss, Fault, NameLoss, PowerLossModel, SimulatedDisk};

    const SEEDS: u64 = 60;

    fn disk(seed: u64) -> SimulatedDisk {
        let disk = SimulatedDisk::with(PowerLossModel {
            names: if seed.is_multiple_of(2) { NameLoss::Any } else { NameLoss::InOrder },
            data: if seed.is_multiple_of(3) { DataLoss::InOrder } else { DataLoss::Any },
            sync_keeps_new_names: seed.is_multiple_of(5),
        });
        disk.write("folder/file", "old");
        disk
    }

    /// Replaces the file by `text`, which is written in two parts.
    fn replace_by(disk: &SimulatedDisk, text: &str) -> Result<(), NotReplaced> {
        let (path, temporary) = (Path::new("folder/file"), Path::new("folder/temporary"));
        let write = |out: &mut dyn Write| {
            let (head, tail) = text.as_bytes().split_at(text.len() / 2);
            out.write_all(head)?;
            out.write_all(tail)
        };
        replace(disk, path, temporary, write, |file| io::read_to_string(file).map(|found| found == text))
    }

    fn contents(disk: &SimulatedDisk) -> String {
        String::from_utf8_lossy(&disk.read("folder/file").unwrap_or_default()).into_owned()
    }

    fn calls() -> u64 {
        let disk = disk(0);
        replace_by(&disk, "new text").expect("nothing fails");
        disk.calls()
    }

    #[test]
    fn a_power_loss_before_any_call_leaves_the_old_file_or_the_new_one() {
        for (passed, seed) in (0..=calls()).flat_map(|passed| (0..SEEDS).map(move |seed| (passed, seed))) {
            let disk = disk(seed);
            disk.stop_at_call(passed);
            let is_replaced = replace_by(&disk, "new text").is_ok();
            disk.power_loss(seed);
            let found = contents(&disk);
            assert!(found == "new text" || (found == "old" && !is_replaced), "{passed} {seed}: {found:?}");
        }
    }

    #[test]
    fn a_call_that_fails_leaves_the_old_file_and_nothing_else() {
        for passed in 0..calls() {
            for fault in [Fault::InputOutput, Fault::Full, Fault::Short, Fault::Interrupted] {
                let disk = disk(0);
                disk.fail_call(passed, fault);
                let is_replaced = replace_by(&disk, "new text").is_ok();
                let is_last = passed + 1 == calls();
                let wanted = if is_replaced || is_last { "new text" } else { "old" };
                assert_eq!((contents(&disk), disk.paths().len()), (wanted.to_owned(), 1), "{passed} {fault:?}");
            }
        }
    }

    #[test]
    fn a_file_that_is_not_whole_replaces_nothing() {
        let disk = disk(0);
        let (path, temporary) = (Path::new("folder/file"), Path::new("folder/temporary"));
        let refused = replace(&disk, path, temporary, |out| out.write_all(b"torn"), |_| Ok(false));
        assert_eq!(refused.expect_err("it is not whole").error.to_string(), "the file is not as it was written");
        assert_eq!((contents(&disk), disk.paths().len()), ("old".to_owned(), 1));
    }

    /// Whether the file is not the new one after a replacement in which a kind of sync was ignored.
    fn is_needed(kind: CallKind) -> bool {
        (0..SEEDS).any(|seed| {
            let disk = disk(seed);
            disk.ignore_syncs(move |call| call.kind == kind);
            replace_by(&disk, "new text").expect("nothing fails");
            disk.power_loss(seed);
            contents(&disk) != "new text"
        })
    }

    #[test]
    fn both_syncs_are_needed() {
        assert!(is_needed(CallKind::Sync) && is_needed(CallKind::SyncFolder));
    }

    #[test]
    fn a_large_file_is_written_to_the_disk_while_it_grows() {
        let disk = disk(0);
        disk.record();
        let write = |out: &mut dyn Write| (0..10).try_for_each(|_| out.write_all(&[0; 1 << 20]));
        let (path, temporary) = (Path::new("folder/file"), Path::new("folder/temporary"));
        let written = replace(&disk, path, temporary, write, |_| Ok(true));
        written.expect("nothing fails");
        let syncs = disk.recorded().iter().filter(|call| call.kind == CallKind::Sync).count();
        assert_eq!(syncs, 3);
    }
}
