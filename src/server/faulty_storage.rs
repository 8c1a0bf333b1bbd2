//! A file system whose calls fail, or take long, by the rules of the test kit (DUNLIN FAULT ADD .. DISK).
//!
//! It is in front of the real file system, or of a simulated disk, only in servers with the test kit.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "program")]
use super::os_storage::OsStorage;
#[cfg(feature = "program")]
use crate::engine::Settings;
use crate::engine::state::kit::DiskFaults;
use crate::storage::simulated::CallKind;
use crate::storage::{PathLock, Storage, StorageFile};

/// The real file system for a program with these settings: one with faults, and their rules, if it has the test kit.
#[cfg(feature = "program")]
pub(crate) fn of_real_files(settings: &Settings) -> (Arc<dyn Storage>, Option<DiskFaults>) {
    if !settings.test_kit {
        return (Arc::new(OsStorage), None);
    }
    let faults = DiskFaults::default();
    (FaultyStorage::over(Arc::new(OsStorage), faults.clone()), Some(faults))
}

/// A file system with faults.
#[derive(Debug)]
pub(crate) struct FaultyStorage {
    inner: Arc<dyn Storage>,
    faults: DiskFaults,
}

impl FaultyStorage {
    /// Makes the calls of a file system fail by these rules.
    pub(crate) fn over(inner: Arc<dyn Storage>, faults: DiskFaults) -> Arc<dyn Storage> {
        Arc::new(FaultyStorage { inner, faults })
    }

    fn begin(&self, kind: CallKind, path: &Path) -> io::Result<()> {
        self.faults.begin(kind, path, 0).map(drop)
    }

    fn file(&self, path: &Path, inner: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        Arc::new(FaultyFile { inner, faults: self.faults.clone(), path: path.to_owned() })
    }
}

impl Storage for FaultyStorage {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        self.begin(CallKind::Open, path)?;
        let inner = self.inner.open(path)?;
        Ok(Box::new(FaultyReader { inner, faults: self.faults.clone(), path: path.to_owned() }))
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        self.begin(CallKind::Length, path)?;
        self.inner.length(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.begin(CallKind::Create, path)?;
        Ok(self.file(path, self.inner.create(path)?))
    }

    fn append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.begin(CallKind::Append, path)?;
        Ok(self.file(path, self.inner.append(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.begin(CallKind::Rename, from)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.begin(CallKind::Remove, path)?;
        self.inner.remove(path)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.begin(CallKind::CreateFolder, path)?;
        self.inner.create_folder(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.begin(CallKind::List, folder)?;
        self.inner.list(folder)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.begin(CallKind::SyncFolder, folder)?;
        self.inner.sync_folder(folder)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn PathLock>>> {
        self.begin(CallKind::Lock, path)?;
        self.inner.lock(path)
    }
}

/// A file that is open for writing.
#[derive(Debug)]
struct FaultyFile {
    inner: Arc<dyn StorageFile>,
    faults: DiskFaults,
    path: PathBuf,
}

impl StorageFile for FaultyFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.faults.begin(CallKind::Write, &self.path, bytes.len())?;
        self.inner.write(&bytes[..taken.min(bytes.len())])
    }

    fn sync(&self) -> io::Result<()> {
        self.faults.begin(CallKind::Sync, &self.path, 0).inspect_err(|_| self.inner.lose_unsynced())?;
        self.inner.sync()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.faults.begin(CallKind::Truncate, &self.path, 0)?;
        self.inner.truncate(length)
    }

    fn lose_unsynced(&self) {
        self.inner.lose_unsynced();
    }
}

/// A file that is open for reading.
struct FaultyReader {
    inner: Box<dyn Read + Send>,
    faults: DiskFaults,
    path: PathBuf,
}

impl Read for FaultyReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.faults.begin(CallKind::Read, &self.path, 0)?;
        self.inner.read(into)
    }
}
