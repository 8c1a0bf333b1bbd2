//! Storage: the calls of a file system that the server needs, as a small interface.
//!
//! The files of the data are written through it, so tests can put a simulated disk in the place of the real one: a
//! disk that fails at any call, fills up, is slow, or loses power. Every call is one that the system can fail, and
//! none does more than one thing, so a fault can be put between any two of them.
//!
//! A caller may rely on what a disk promises after a power loss, and on no more:
//! - The bytes of a file are durable when [`StorageFile::sync`] has returned, and not before.
//! - A name (a file that was created, renamed or removed, a new folder) is durable when [`Storage::sync_folder`] of
//!   the folder that it is in has returned.
//! - A [`StorageFile::sync`] that failed may have lost what it should have made durable, and a later one that
//!   succeeds does not bring it back.
//!
//! Not here: the real file system, which is the server's (`server/os_storage`).

pub mod replace;
pub mod simulated;

use std::fmt::Debug;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A file system. Each call may block and may fail.
pub trait Storage: Send + Sync + Debug {
    /// Opens a file for reading from its start.
    ///
    /// # Errors
    /// The system's.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;

    /// The length of a file in bytes.
    ///
    /// # Errors
    /// The system's; of the kind `NotFound` when there is no such file.
    fn length(&self, path: &Path) -> io::Result<u64>;

    /// Creates an empty file for writing. One of that name is emptied.
    ///
    /// # Errors
    /// The system's.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>>;

    /// Opens a file for writing at its end.
    ///
    /// # Errors
    /// The system's; of the kind `NotFound` when there is no such file.
    fn append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>>;

    /// Gives a file another name in the same file system. A file that has that name is replaced.
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The system's; of the kind `NotFound` when there is no such file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Creates a folder, unless there is one.
    ///
    /// # Errors
    /// The system's.
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    /// The names of the files in a folder, in no order.
    ///
    /// # Errors
    /// The system's.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// The system's.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Locks a file or a folder against other servers, until the lock is dropped; `None` when another one has it. It
    /// can still be read, written, renamed and removed.
    ///
    /// # Errors
    /// The system's; of the kind `NotFound` when there is no such file.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn PathLock>>>;
}

/// A lock on a file or a folder, which ends when it is dropped.
pub trait PathLock: Send + Sync + Debug {
    /// Whether it locks what now has this path. A lock follows its file through a renaming, and another file that gets
    /// the former name is not locked.
    fn is_of(&self, path: &Path) -> bool;
}

/// A file that is open for writing. It may be synced on one thread while another one writes to it.
pub trait StorageFile: Send + Sync + Debug {
    /// Writes bytes at the end, and returns how many: less than all when the disk took no more.
    ///
    /// # Errors
    /// The system's; nothing was written then.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Makes the file's bytes and its length durable.
    ///
    /// # Errors
    /// The system's; what was written since the last sync may then be lost.
    fn sync(&self) -> io::Result<()>;

    /// Asks the system to start writing a part of the file to the disk, so that a later [`StorageFile::sync`] takes
    /// less time. Where a system cannot do that without waiting, it syncs.
    ///
    /// # Errors
    /// Those of [`StorageFile::sync`].
    fn start_writeback(&self, _part: Range<u64>) -> io::Result<()> {
        self.sync()
    }

    /// Cuts the file off at a length, where the next write goes on.
    ///
    /// # Errors
    /// The system's.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Drops what was written since the last sync, as a failed sync may do: for tests, on a simulated disk. Other files
    /// do nothing.
    fn lose_unsynced(&self) {}
}

/// The system's text of an error, without the number that Rust adds.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
