//! Preparing the files that a start finds, before any of them is loaded.

use std::io::{self, Read as _};
use std::path::Path;

use super::{AofFiles, Fault};
use crate::aof::manifest::{FaultReason, Listed, Manifest};
use crate::storage::replace;

/// The most bytes of a manifest that is read; a longer one is refused.
const MANIFEST_BYTES: u64 = 16 << 20;

impl AofFiles {
    /// Reads the manifest; `None` if there is none.
    pub(super) fn read_manifest(&self) -> Result<Option<Manifest>, Fault> {
        let mut text = Vec::new();
        let read = self
            .storage
            .open(&self.manifest_path())
            .and_then(|source| source.take(MANIFEST_BYTES + 1).read_to_end(&mut text));
        match read {
            Ok(bytes) if bytes as u64 > MANIFEST_BYTES => Err(Fault::Manifest(FaultReason::Unreadable.into())),
            Ok(_) => Manifest::parse(&text).map(Some).map_err(Fault::Manifest),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(_) => Err(Fault::Manifest(FaultReason::Unreadable.into())),
        }
    }

    /// Locks the incremental file to which another server with this manifest would append.
    pub(super) fn lock_last(&mut self, manifest: Option<&Manifest>) -> Result<(), Fault> {
        let Some(last) = manifest.and_then(|manifest| manifest.incrs.last()) else { return Ok(()) };
        let in_use = || Fault::InUse(format!("file {}", last.name));
        match self.storage.lock(&self.path(&last.name)) {
            Ok(Some(lock)) => self.locks.push((last.name.clone(), lock)),
            Ok(None) => return Err(in_use()),
            Err(error) => return Err(Fault::Missing { name: last.name.clone(), error }),
        }
        // The other server may have gone on to the next file in between.
        if self.read_manifest()?.as_ref() == manifest { Ok(()) } else { Err(in_use()) }
    }

    /// Takes a manifest over. If there is none, and the single file of a Redis before 7, that file becomes the base.
    /// It is listed before it is moved, so a start after a crash in between moves it.
    pub(super) fn migrate(&mut self, manifest: Option<Manifest>, folder_name: &str) -> Result<(), Fault> {
        let name = self.place.name.clone();
        let old = self.place.folder.with_file_name(&name);
        let is_new = manifest.is_none();
        self.manifest = manifest.unwrap_or_default();
        let is_old_listed = self.manifest.base.as_ref().is_some_and(|base| base.name == name);
        let moved = (|| {
            let migrates = (is_new || is_old_listed && !self.exists(&self.path(&name))?) && self.exists(&old)?;
            if !migrates {
                return Ok(false);
            }
            // The server that wrote it may have been killed before it synced the file.
            self.storage.append(&old)?.sync()?;
            if is_new {
                let base = Some(Listed::new(name.clone(), 1));
                self.list(Manifest { base, ..Manifest::default() }).map_err(|unlisted| unlisted.error)?;
            }
            self.storage.rename(&old, &self.path(&name))?;
            self.storage.sync_folder(&self.place.folder)?;
            self.storage.sync_folder(replace::folder_of(&self.place.folder))?;
            Ok(true)
        })();
        let has_moved = moved.map_err(|error| Fault::Io {
            action: format!("Can't migrate the old-style AOF file {name} into the AOF directory {folder_name}"),
            error,
        })?;
        if has_moved {
            let what = format!("an old-style AOF file ({name}) into the AOF directory ({folder_name})");
            self.lines.push(format!("Successfully migrated {what}."));
        }
        Ok(())
    }

    /// Whether there is a file of that name. A disk that fails does not mean that there is none.
    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.storage.length(path) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Checks that every file to be loaded is there.
    pub(super) fn find_all(&self) -> Result<(), Fault> {
        for listed in self.manifest.base.iter().chain(&self.manifest.incrs) {
            let found = self.storage.length(&self.path(&listed.name));
            found.map_err(|error| Fault::Missing { name: listed.name.clone(), error })?;
        }
        Ok(())
    }

    /// Removes temporary files, and notes what is not listed.
    pub(super) fn clean_up(&mut self) -> io::Result<()> {
        for name in self.storage.list(&self.place.folder)? {
            if self.is_temporary(&name) {
                self.storage.remove(&self.path(&name))?;
            } else if self.is_named_as_ours(&name) && !self.is_listed(&name) {
                self.lines.push(format!("The file {name} is not listed in the AOF manifest: it is not loaded"));
            }
        }
        Ok(())
    }

    fn is_temporary(&self, name: &str) -> bool {
        let what = name.strip_prefix("temp-").and_then(|name| name.strip_prefix(&*self.place.name));
        what.and_then(|what| what.strip_prefix('.')).is_some_and(|what| match what.strip_suffix(".base") {
            Some(rewrite) => rewrite.bytes().all(|byte| byte.is_ascii_digit()),
            None => ["manifest", "incr", "base"].contains(&what),
        })
    }

    fn is_named_as_ours(&self, name: &str) -> bool {
        let numbered = name.strip_prefix(&*self.place.name).and_then(|rest| rest.strip_prefix('.'));
        numbered.is_some_and(|rest| [".base.rdb", ".base.aof", ".incr.aof"].iter().any(|end| rest.ends_with(end)))
    }
}
