//! The files of an AOF on a disk: what the manifest lists, and how that changes.
//!
//! Each change is made so that after a power loss at any moment, or a call that fails, the manifest lists files that
//! exist and together hold all data: a file gets a line only when its name and its bytes are durable, and is removed
//! only when no durable manifest needs it.
//!
//! - Start: what a crash may have left unsynced is synced before anything is built on it. Only temporary files of
//!   this module are removed; a file that is not listed is reported and left alone.
//! - Rewrite: the next incremental file is listed first ([`AofFiles::next_incr`]). When the base is there, it is
//!   read once more ([`VerifiedBase`]) before it replaces the files before it ([`AofFiles::publish_base`]).
//! - An AOF that begins anew writes to a temporary incremental file until its base is there
//!   ([`AofFiles::first_incr`]).
//!
//! Numbers are Redis's, except that a file which is in the way and has data is never overwritten: its number is left
//! out.

mod start;
mod verify;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

pub use self::verify::VerifiedBase;

use super::manifest::{self, Listed, Manifest};
use crate::storage::{PathLock, Storage, StorageFile, reason, replace};

/// Where an AOF is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its folder (`dir` and `appenddirname`).
    pub folder: PathBuf,
    /// The beginning of the names of its files (`appendfilename`).
    pub name: String,
}

/// A file to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it is the base, which may be an RDB file.
    pub is_base: bool,
    /// Whether no file behind it has bytes. Only such a file may be torn.
    pub is_last: bool,
    /// Its length.
    pub bytes: u64,
}

/// Why the files cannot be opened.
#[derive(Debug, Error)]
pub enum Fault {
    /// The manifest is wrong. The text has a line for each line of Redis's log.
    #[error("{}", .0.lines().join("\n"))]
    Manifest(manifest::Fault),
    /// Another server has them open.
    #[error("The append-only {0} is in use by another server")]
    InUse(String),
    /// A file that is listed is missing, or is a folder.
    #[error("Unable to obtain the AOF file {name} length. stat: {}", reason(.error))]
    Missing {
        /// The name that is listed.
        name: String,
        /// The system's error.
        error: io::Error,
    },
    /// The disk fails.
    #[error("{action}: {}", reason(.error))]
    Io {
        /// The step that failed.
        action: String,
        /// The system's error.
        error: io::Error,
    },
}

impl Fault {
    /// The lines for the log.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Fault::Manifest(fault) => fault.lines(),
            _ => vec![self.to_string()],
        }
    }
}

/// The files of a manifest in a folder, in the order in which they are loaded.
pub fn files_of(manifest: &Manifest, storage: &dyn Storage, folder: &Path) -> Vec<LogFile> {
    let base = manifest.base.iter().map(|listed| (listed, true));
    let incrs = manifest.incrs.iter().map(|listed| (listed, false));
    let mut files = Vec::new();
    // From the last one back: a length that cannot be read may be any but 0.
    let mut is_last = true;
    for (listed, is_base) in base.chain(incrs).rev() {
        let path = folder.join(&listed.name);
        let length = storage.length(&path);
        files.push(LogFile { path, is_base, is_last, bytes: *length.as_ref().unwrap_or(&0) });
        is_last &= length.is_ok_and(|bytes| bytes == 0);
    }
    files.reverse();
    files
}

/// The files of an AOF, of which the last incremental one is locked against other servers. So servers may share a
/// folder, if their files have other names.
#[derive(Debug)]
pub struct AofFiles {
    storage: Arc<dyn Storage>,
    place: Place,
    /// The durable state.
    manifest: Manifest,
    /// The incremental file of an AOF that begins anew, and where it is now.
    pending: Option<(Listed, PathBuf)>,
    /// The first incremental file that stays behind the base in progress, by its number; `None` if the base replaces
    /// all.
    rewritten_from: Option<i64>,
    /// Files that `manifest` does not list, but the one on the disk may, because a sync of the folder failed.
    in_doubt: Vec<String>,
    lines: Vec<String>,
    /// The incremental files that are locked: the last one, and those that become it.
    locks: Vec<(String, Box<dyn PathLock>)>,
    /// The lock on the folder, while there is no incremental file that could be locked.
    folder_lock: Option<Box<dyn PathLock>>,
}

/// A manifest that could not be made durable.
struct Unlisted {
    error: io::Error,
    /// Whether it may be the one that a start finds.
    may_be_listed: bool,
}

impl AofFiles {
    /// Opens the folder, which is created if there is none, and reads the manifest. A single file of a Redis before
    /// 7, beside the folder, becomes the base.
    ///
    /// # Errors
    /// The manifest is wrong, lists a file that is missing, another server has the files, or the disk fails.
    pub fn open(storage: Arc<dyn Storage>, place: Place) -> Result<AofFiles, Fault> {
        let folder_name = place.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let failed = |error| Fault::Io { action: format!("Can't open or create append-only dir {folder_name}"), error };
        match storage.list(&place.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                storage.create_folder(&place.folder).map_err(failed)?;
            }
            listed => drop(listed.map_err(failed)?),
        }
        storage.sync_folder(replace::folder_of(&place.folder)).map_err(failed)?;
        let Some(lock) = storage.lock(&place.folder).map_err(failed)? else {
            return Err(Fault::InUse(format!("folder {folder_name}")));
        };
        let mut files = AofFiles {
            storage,
            place,
            manifest: Manifest::default(),
            pending: None,
            rewritten_from: None,
            in_doubt: Vec::new(),
            lines: Vec::new(),
            locks: Vec::new(),
            folder_lock: Some(lock),
        };
        let manifest = files.read_manifest()?;
        files.lock_last(manifest.as_ref())?;
        // A manifest that was there before a crash may have been renamed and not yet be durable.
        files.storage.sync_folder(&files.place.folder).map_err(failed)?;
        files.migrate(manifest, &folder_name)?;
        files.find_all()?;
        files.clean_up().map_err(failed)?;
        files.drop_former_locks();
        Ok(files)
    }

    /// Where they are.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Whether nothing is listed: there is no AOF yet.
    pub fn is_empty(&self) -> bool {
        self.manifest.base.is_none() && self.manifest.incrs.is_empty()
    }

    /// The manifest, as it is on the disk.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The files in the order in which they are loaded.
    pub fn to_load(&self) -> Vec<LogFile> {
        files_of(&self.manifest, &*self.storage, &self.place.folder)
    }

    /// Takes the lines to log since the last call.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// The length of the base.
    pub fn base_bytes(&self) -> u64 {
        self.to_load().iter().filter(|file| file.is_base).map(|file| file.bytes).sum()
    }

    /// The length of all incremental files.
    pub fn incr_bytes(&self) -> u64 {
        self.to_load().iter().filter(|file| !file.is_base).map(|file| file.bytes).sum()
    }

    /// Cuts off a torn tail.
    ///
    /// # Errors
    /// The disk fails.
    pub fn cut(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let file = self.storage.append(path)?;
        file.truncate(bytes)?;
        file.sync()
    }

    /// Opens the last incremental file, to go on with it; creates one if there is none. What a crash may have left
    /// unsynced in any of them is durable then.
    ///
    /// # Errors
    /// The disk fails; the files are as before.
    pub fn continue_last(&mut self) -> io::Result<Arc<dyn StorageFile>> {
        let mut last = None;
        for incr in &self.manifest.incrs {
            let file = self.storage.append(&self.path(&incr.name))?;
            file.sync()?;
            last = Some(file);
        }
        let Some(file) = last else {
            let (listed, file) = self.create_incr(Some(0))?;
            self.lines.push(format!("Creating AOF incr file {} on server start", listed.name));
            self.list_incr(listed)?;
            return Ok(file);
        };
        let mut manifest = self.manifest.clone();
        if let Some(incr) = manifest.incrs.last_mut() {
            self.lines.push(format!("Opening AOF incr file {} on server start", incr.name));
            if incr.end_offset.take().is_some() {
                self.list(manifest).map_err(|unlisted| unlisted.error)?;
            }
        }
        Ok(file)
    }

    /// Creates the next incremental file, and lists it. The next base that is published holds the data up to its
    /// start.
    ///
    /// # Errors
    /// The disk fails; the files are as before.
    pub fn next_incr(&mut self, start_offset: u64) -> io::Result<Arc<dyn StorageFile>> {
        let (listed, file) = self.create_incr(Some(start_offset))?;
        let sequence = listed.sequence;
        self.list_incr(listed)?;
        self.rewritten_from = Some(sequence);
        Ok(file)
    }

    /// Creates the incremental file of an AOF that begins anew. It is listed together with its base.
    ///
    /// # Errors
    /// The disk fails; the files are as before.
    pub fn first_incr(&mut self, start_offset: u64) -> io::Result<Arc<dyn StorageFile>> {
        if let Some((_, path)) = &self.pending {
            // The log may still write to it, so it must not be the file that is created.
            match self.storage.remove(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if let Some((listed, _)) = self.pending.take() {
            self.unlock(&listed.name);
        }
        let path = self.temporary("incr");
        let file = self.storage.create(&path)?;
        let start_offset = i64::try_from(start_offset).ok();
        self.pending = Some((Listed { start_offset, ..Listed::new(String::new(), 0) }, path));
        self.rewritten_from = None;
        Ok(file)
    }

    /// Removes the incremental file of an AOF that was to begin anew, and does not.
    pub fn abandon_first(&mut self) {
        if let Some((listed, path)) = self.pending.take() {
            self.unlock(&listed.name);
            // Nothing refers to it: at worst the next start removes or reports it.
            let _ = self.storage.remove(&path);
        }
    }

    /// Where the base of the rewrite of that number is to be written: a rewrite that was stopped may still write to its
    /// own while the next one goes on.
    pub fn temporary_base(&self, rewrite: u64) -> PathBuf {
        self.temporary(&format!("{rewrite}.base"))
    }

    /// Begins an AOF: publishes a base that `write` writes. Its format is found out from its first bytes. Returns its
    /// name.
    ///
    /// # Errors
    /// The disk fails; there is no AOF then.
    pub fn create_base<T>(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<String> {
        let temporary = self.temporary_base(0);
        replace::create(&*self.storage, &temporary, write)?;
        let is_rdb = verify::is_rdb(&*self.storage, &temporary)?;
        let base = VerifiedBase::read(&*self.storage, temporary, is_rdb)?;
        self.publish_base(&base, false)?;
        Ok(self.manifest.base.as_ref().map(|base| base.name.clone()).unwrap_or_default())
    }

    /// Puts a base in place. The files that it replaces are removed, unless `keeps_history` (`aof-disable-auto-gc`).
    ///
    /// # Errors
    /// The disk fails; the files before it are still listed then.
    pub fn publish_base(&mut self, base: &VerifiedBase, keeps_history: bool) -> io::Result<()> {
        let base = self.place_base(base).inspect_err(|_| {
            // If it stays, the next start removes it.
            let _ = self.storage.remove(&base.path);
        })?;
        let path = self.path(&base.name);
        let published = self.place_pending().and_then(|incr| {
            self.storage.sync_folder(&self.place.folder)?;
            Ok(incr)
        });
        let incr = published.inspect_err(|_| {
            // It is not listed, so nothing is lost if it stays.
            let _ = self.storage.remove(&path);
        })?;
        let base_name = base.name.clone();
        let manifest = self.with_base(base, incr);
        if let Err(unlisted) = self.list(manifest) {
            if unlisted.may_be_listed {
                self.in_doubt.push(base_name);
                self.in_doubt.extend(self.pending.take().map(|(incr, _)| incr.name));
            } else {
                let _ = self.storage.remove(&path);
            }
            return Err(unlisted.error);
        }
        (self.pending, self.rewritten_from) = (None, None);
        if !keeps_history && let Err(error) = self.remove_history() {
            self.lines.push(format!("Can't remove the history files of the AOF: {}", reason(&error)));
        }
        Ok(())
    }

    /// Removes the files that a base has replaced, and their lines.
    ///
    /// # Errors
    /// The disk fails; those that are left are still listed.
    pub fn remove_history(&mut self) -> io::Result<()> {
        if self.manifest.history.is_empty() {
            return Ok(());
        }
        for listed in &self.manifest.history {
            self.lines.push(format!("Removing the history file {} in the background", listed.name));
            match self.storage.remove(&self.path(&listed.name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.list(Manifest { history: Vec::new(), ..self.manifest.clone() }).map_err(|unlisted| unlisted.error)
    }

    /// Notes that the last incremental file ends here in order (the end of the server, `appendonly no`). It must be
    /// synced.
    ///
    /// # Errors
    /// The disk fails; the files are as before.
    pub fn end(&mut self, end_offset: u64) -> io::Result<()> {
        if self.pending.is_some() {
            self.abandon_first();
            return Ok(());
        }
        let mut manifest = self.manifest.clone();
        // Where a file of an older version begins is not known.
        let last = manifest.incrs.last_mut().filter(|incr| incr.start_offset.is_some());
        let Some(incr) = last else { return Ok(()) };
        incr.end_offset = i64::try_from(end_offset).ok();
        self.list(manifest).map_err(|unlisted| unlisted.error)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.folder.join(name)
    }

    fn temporary(&self, what: &str) -> PathBuf {
        self.path(&format!("temp-{}.{what}", self.place.name))
    }

    fn manifest_path(&self) -> PathBuf {
        self.path(&format!("{}.manifest", self.place.name))
    }

    /// Locks an incremental file that is about to become the last one.
    fn lock_next(&self, name: &str) -> io::Result<Box<dyn PathLock>> {
        let lock = self.storage.lock(&self.path(name))?;
        lock.ok_or_else(|| io::Error::new(io::ErrorKind::ResourceBusy, Fault::InUse(format!("file {name}"))))
    }

    /// Unlocks the files that are no longer the last one.
    fn drop_former_locks(&mut self) {
        let (last, pending) = (self.manifest.incrs.last(), self.pending.as_ref().map(|(listed, _)| listed));
        let in_doubt = &self.in_doubt;
        let is_kept = |name: &String| {
            [last, pending].into_iter().flatten().any(|listed| listed.name == *name) || in_doubt.contains(name)
        };
        self.locks.retain(|(name, _)| is_kept(name));
        if last.is_some_and(|last| self.locks.iter().any(|(name, _)| last.name == *name)) {
            self.folder_lock = None;
        }
    }

    fn unlock(&mut self, unlocked: &str) {
        self.locks.retain(|(name, _)| name != unlocked);
    }

    fn is_listed(&self, name: &str) -> bool {
        let Manifest { base, history, incrs } = &self.manifest;
        base.iter().chain(history).chain(incrs).any(|listed| listed.name == name)
    }

    /// The first number from `first` on whose name is free: no file that is listed, and none that has bytes.
    fn free(&self, first: i64, name: impl Fn(i64) -> String) -> io::Result<Listed> {
        for sequence in first.max(1)..i64::MAX {
            let listed = Listed::new(name(sequence), sequence);
            if self.is_listed(&listed.name) || self.in_doubt.contains(&listed.name) {
                continue;
            }
            match self.storage.length(&self.path(&listed.name)) {
                Ok(0) => return Ok(listed),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("the AOF manifest has the last number that there is"))
    }

    fn free_incr(&self) -> io::Result<Listed> {
        let first = self.manifest.last_incr_sequence().saturating_add(1);
        self.free(first, |sequence| format!("{}.{sequence}.incr.aof", self.place.name))
    }

    /// Creates an incremental file with a durable name, which is not listed yet.
    fn create_incr(&mut self, start_offset: Option<u64>) -> io::Result<(Listed, Arc<dyn StorageFile>)> {
        let listed = self.free_incr()?;
        let file = self.storage.create(&self.path(&listed.name))?;
        let lock = self.lock_next(&listed.name)?;
        self.storage.sync_folder(&self.place.folder).inspect_err(|_| {
            // It is empty, so its name is free if it stays.
            let _ = self.storage.remove(&self.path(&listed.name));
        })?;
        self.locks.push((listed.name.clone(), lock));
        let start_offset = start_offset.and_then(|offset| i64::try_from(offset).ok());
        Ok((Listed { start_offset, ..listed }, file))
    }

    /// Lists an incremental file as the last one.
    fn list_incr(&mut self, listed: Listed) -> io::Result<()> {
        let name = listed.name.clone();
        let mut manifest = self.manifest.clone();
        manifest.incrs.push(listed);
        self.list(manifest).map_err(|unlisted| {
            if unlisted.may_be_listed {
                self.in_doubt.push(name);
            } else {
                let _ = self.storage.remove(&self.path(&name));
                self.unlock(&name);
            }
            unlisted.error
        })
    }

    /// Gives a base its name.
    fn place_base(&self, verified: &VerifiedBase) -> io::Result<Listed> {
        let first = self.manifest.base.as_ref().map_or(1, |base| base.sequence.saturating_add(1));
        let format = if verified.is_rdb { "rdb" } else { "aof" };
        let base = self.free(first, |sequence| format!("{}.{sequence}.base.{format}", self.place.name))?;
        self.storage.rename(&verified.path, &self.path(&base.name))?;
        Ok(base)
    }

    /// Gives the incremental file of an AOF that begins anew its name, unless it has it, and locks it.
    fn place_pending(&mut self) -> io::Result<Option<Listed>> {
        let Some((listed, path)) = self.pending.clone() else { return Ok(None) };
        let listed = if listed.name.is_empty() {
            let named = Listed { start_offset: listed.start_offset, ..self.free_incr()? };
            let to = self.path(&named.name);
            self.storage.rename(&path, &to)?;
            self.pending = Some((named.clone(), to));
            named
        } else {
            listed
        };
        if !self.locks.iter().any(|(name, _)| *name == listed.name) {
            self.locks.push((listed.name.clone(), self.lock_next(&listed.name)?));
        }
        Ok(Some(listed))
    }

    /// The manifest with a new base. `incr` is the incremental file behind it, if the AOF begins anew.
    fn with_base(&self, base: Listed, incr: Option<Listed>) -> Manifest {
        let Manifest { base: former, mut history, incrs } = self.manifest.clone();
        let (mut kept, mut replaced) = (Vec::new(), Vec::from_iter(former));
        for listed in incrs {
            let is_kept = incr.is_none() && self.rewritten_from.is_some_and(|from| listed.sequence >= from);
            if is_kept { kept.push(listed) } else { replaced.push(listed) }
        }
        kept.extend(incr);
        // As in Redis, the last one is the first.
        replaced.reverse();
        replaced.append(&mut history);
        Manifest { base: Some(base), history: replaced, incrs: kept }
    }

    /// Replaces the manifest.
    fn list(&mut self, manifest: Manifest) -> Result<(), Unlisted> {
        let text = manifest.text();
        if !Manifest::parse(text.as_bytes()).is_ok_and(|again| again.text() == text) {
            // The lines have the names in quotes, where a byte may take four.
            let error = io::Error::other("the names of the AOF are too long for its manifest");
            return Err(Unlisted { error, may_be_listed: false });
        }
        let (path, temporary) = (self.manifest_path(), self.temporary("manifest"));
        let write = |manifest: &Manifest| {
            let text = manifest.text();
            replace::create(&*self.storage, &temporary, |out| out.write_all(text.as_bytes()))
                .and_then(|()| self.storage.rename(&temporary, &path))
        };
        if let Err(error) = write(&manifest) {
            let _ = self.storage.remove(&temporary);
            return Err(Unlisted { error, may_be_listed: false });
        }
        if let Err(error) = self.storage.sync_folder(&self.place.folder) {
            // Either manifest may be found by the next start, unless the former one can be put back.
            // There was none before the first one, and an empty one is refused.
            let put_back = if self.is_empty() { self.storage.remove(&path) } else { write(&self.manifest) };
            let is_back = put_back.and_then(|()| self.storage.sync_folder(&self.place.folder)).is_ok();
            return Err(Unlisted { error, may_be_listed: !is_back });
        }
        self.manifest = manifest;
        self.drop_former_locks();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
