//! Contents of a simulated disk: names and files, each as programs see them and as a power loss would leave them.
//!
//! The names are one map from paths to files and folders. A change of it is pending until its folder is synced. A file
//! is its contents when it was last synced and the writes and truncations since then.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::survival::{self, PowerLossModel};
use crate::storage::replace::folder_of;

/// The most bytes of removed files that are remembered, to appear as stale data.
const STALE_BYTES: usize = 4096;

/// The file or folder of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Folder,
    File(FileId),
}

/// The number of a file, which its names and its open handles share. It is never used again.
pub(super) type FileId = u64;

type Names = BTreeMap<PathBuf, Entry>;

/// A file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileImage {
    /// The contents that programs read.
    pub(super) cached: Vec<u8>,
    /// The contents that were synced.
    pub(super) durable: Vec<u8>,
    /// The changes since then, in order. After a failed sync, these are fewer than those that programs read.
    pub(super) pending: Vec<Change>,
}

/// A change of a file's contents.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Truncate(usize),
}

/// A change of the names that is not durable.
#[derive(Clone, Debug)]
pub(super) struct NameChange {
    id: u64,
    path: PathBuf,
    what: NameChangeKind,
    /// Another change that survives if this one does: a file that is moved to another folder is never in neither.
    pub(super) needs: Option<u64>,
}

#[derive(Clone, Debug)]
enum NameChangeKind {
    Add(Entry),
    Remove(FileId),
    /// A file gets the name in the place of another one in the same folder.
    Rename {
        from: PathBuf,
        file: FileId,
    },
}

/// Everything that is on a disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    model: PowerLossModel,
    files: BTreeMap<FileId, FileImage>,
    next_id: u64,
    /// The names as programs see them.
    names: Names,
    durable_names: Names,
    pending_names: Vec<NameChange>,
    /// The last bytes of removed files.
    stale: Vec<u8>,
}

impl FileImage {
    /// A file whose contents are durable.
    pub(super) fn of(bytes: Vec<u8>) -> FileImage {
        FileImage { cached: bytes.clone(), durable: bytes, pending: Vec::new() }
    }

    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.cached);
        self.pending.push(change);
    }
}

impl Change {
    pub(super) fn apply(&self, contents: &mut Vec<u8>) {
        match self {
            Change::Write { at, bytes } => overwrite(contents, *at, bytes),
            Change::Truncate(length) => contents.resize(*length, 0),
        }
    }
}

/// Replaces bytes from a position on. What is between the old end and the position becomes zero.
pub(super) fn overwrite(contents: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if contents.len() < at + bytes.len() {
        contents.resize(at + bytes.len(), 0);
    }
    contents[at..at + bytes.len()].copy_from_slice(bytes);
}

impl NameChange {
    fn apply(&self, names: &mut Names) {
        match &self.what {
            NameChangeKind::Add(entry) => _ = names.insert(self.path.clone(), *entry),
            NameChangeKind::Remove(file) => remove_if(names, &self.path, *file),
            NameChangeKind::Rename { from, file } => {
                remove_if(names, from, *file);
                names.insert(self.path.clone(), Entry::File(*file));
            }
        }
    }

    fn is_about(&self, file: FileId) -> bool {
        match self.what {
            NameChangeKind::Add(entry) => entry == Entry::File(file),
            NameChangeKind::Rename { file: renamed, .. } => renamed == file,
            NameChangeKind::Remove(_) => false,
        }
    }
}

/// Removes a name if it is that of this file.
fn remove_if(names: &mut Names, path: &Path, file: FileId) {
    if names.get(path) == Some(&Entry::File(file)) {
        names.remove(path);
    }
}

impl Image {
    pub(super) fn new(model: PowerLossModel) -> Image {
        Image { model, ..Image::default() }
    }

    /// The file or folder at a path.
    pub(super) fn find(&self, path: &Path) -> io::Result<Entry> {
        if is_root(path) {
            return Ok(Entry::Folder);
        }
        self.folder(folder_of(path))?;
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Checks that a folder exists.
    pub(super) fn folder(&self, path: &Path) -> io::Result<()> {
        match self.find(path)? {
            Entry::Folder => Ok(()),
            Entry::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// The file of a path.
    pub(super) fn file_id(&self, path: &Path) -> io::Result<FileId> {
        match self.find(path)? {
            Entry::File(file) => Ok(file),
            Entry::Folder => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    pub(super) fn file(&mut self, file: FileId) -> &mut FileImage {
        self.files.entry(file).or_default()
    }

    /// The file of a path, which is made if there is none.
    pub(super) fn file_or_new(&mut self, path: &Path) -> io::Result<FileId> {
        match self.file_id(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.folder(folder_of(path))?;
                let file = self.add_file(FileImage::default());
                self.change_name(path, NameChangeKind::Add(Entry::File(file)), None);
                Ok(file)
            }
            found => found,
        }
    }

    pub(super) fn add_folder(&mut self, path: &Path) -> io::Result<()> {
        match self.find(path) {
            Ok(Entry::Folder) => Ok(()),
            Ok(Entry::File(_)) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.folder(folder_of(path))?;
                self.change_name(path, NameChangeKind::Add(Entry::Folder), None);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.folder(folder_of(from))?;
        self.folder(folder_of(to))?;
        let file = self.file_id(from)?;
        match self.names.get(to) {
            Some(Entry::Folder) => return Err(io::ErrorKind::IsADirectory.into()),
            Some(Entry::File(old)) if *old == file => return Ok(()),
            Some(Entry::File(old)) => self.remember_as_stale(*old),
            None => {}
        }
        if folder_of(from) == folder_of(to) {
            self.change_name(to, NameChangeKind::Rename { from: from.to_owned(), file }, None);
        } else {
            let added = self.change_name(to, NameChangeKind::Add(Entry::File(file)), None);
            self.change_name(from, NameChangeKind::Remove(file), Some(added));
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let file = self.file_id(path)?;
        self.remember_as_stale(file);
        self.change_name(path, NameChangeKind::Remove(file), None);
        Ok(())
    }

    /// The names of the files in a folder.
    pub(super) fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.folder(folder)?;
        let in_folder = |(path, entry): &(&PathBuf, &Entry)| folder_of(path) == folder && **entry != Entry::Folder;
        let name = |path: &PathBuf| Some(path.file_name()?.to_str()?.to_owned());
        Ok(self.names.iter().filter(in_folder).filter_map(|(path, _)| name(path)).collect())
    }

    /// The paths of all files.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.names.iter().filter(|(_, entry)| **entry != Entry::Folder).map(|(path, _)| path.clone()).collect()
    }

    /// The bytes of all files.
    pub(super) fn used_bytes(&self) -> usize {
        let bytes = |entry: &Entry| match entry {
            Entry::File(file) => self.files.get(file).map_or(0, |file| file.cached.len()),
            Entry::Folder => 0,
        };
        self.names.values().map(bytes).sum()
    }

    /// Makes the names in a folder durable.
    pub(super) fn sync_names(&mut self, folder: &Path) {
        self.sync_name_changes(|change| folder_of(&change.path) == folder);
    }

    /// Makes the contents of a file durable, and its names, if the disk does so.
    pub(super) fn sync_file(&mut self, file: FileId) {
        let image = self.file(file);
        for change in std::mem::take(&mut image.pending) {
            change.apply(&mut image.durable);
        }
        if self.model.sync_keeps_new_names {
            self.sync_name_changes(|change| change.is_about(file));
        }
    }

    /// Loses what a file's sync should have made durable, as disks do when a sync fails.
    pub(super) fn lose_pending(&mut self, file: FileId) {
        self.file(file).pending.clear();
    }

    /// Makes a file and the folders above it durable at once.
    pub(super) fn put(&mut self, path: &Path, contents: Vec<u8>) {
        self.put_folder(folder_of(path));
        let file = self.add_file(FileImage::of(contents));
        self.put_name(path, Entry::File(file));
    }

    /// Makes a folder and those above it durable at once.
    pub(super) fn put_folder(&mut self, path: &Path) {
        for folder in path.ancestors().filter(|folder| !is_root(folder)) {
            self.put_name(folder, Entry::Folder);
        }
    }

    /// Loses what is not durable, as far as the seed says.
    pub(super) fn lose_power(&mut self, seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let changes = std::mem::take(&mut self.pending_names);
        for change in survival::surviving(self.model.names, changes, NameChange::id, &mut random) {
            change.apply(&mut self.durable_names);
        }
        remove_orphans(&mut self.durable_names);
        self.names.clone_from(&self.durable_names);
        let mut files = std::mem::take(&mut self.files);
        for entry in self.names.values() {
            let Entry::File(file) = entry else { continue };
            if let Some(image) = files.get(file) {
                let contents = survival::contents(self.model.data, image, &self.stale, &mut random);
                self.files.insert(*file, FileImage::of(contents));
            }
        }
        files.retain(|file, _| !self.files.contains_key(file));
        files.values().for_each(|lost| remember(&mut self.stale, &lost.cached));
    }

    fn add_file(&mut self, image: FileImage) -> FileId {
        self.next_id += 1;
        self.files.insert(self.next_id, image);
        self.next_id
    }

    fn put_name(&mut self, path: &Path, entry: Entry) {
        self.pending_names.retain(|change| change.path != path);
        self.names.insert(path.to_owned(), entry);
        self.durable_names.insert(path.to_owned(), entry);
    }

    /// Changes a name; returns the number of the change.
    fn change_name(&mut self, path: &Path, what: NameChangeKind, needs: Option<u64>) -> u64 {
        self.next_id += 1;
        let change = NameChange { id: self.next_id, path: path.to_owned(), what, needs };
        change.apply(&mut self.names);
        self.pending_names.push(change);
        self.next_id
    }

    /// Makes some of the pending changes durable, and the earlier ones that they depend on: those that they need, and
    /// those of the same names.
    fn sync_name_changes(&mut self, is_synced: impl Fn(&NameChange) -> bool) {
        let mut kept = Vec::new();
        let (mut paths, mut needed): (Vec<PathBuf>, Vec<u64>) = Default::default();
        let mut synced = Vec::new();
        for change in std::mem::take(&mut self.pending_names).into_iter().rev() {
            if is_synced(&change) || needed.contains(&change.id) || paths.contains(&change.path) {
                paths.push(change.path.clone());
                if let NameChangeKind::Rename { from, .. } = &change.what {
                    paths.push(from.clone());
                }
                needed.extend(change.needs);
                synced.push(change);
            } else {
                kept.push(change);
            }
        }
        synced.iter().rev().for_each(|change| change.apply(&mut self.durable_names));
        kept.reverse();
        self.pending_names = kept;
    }

    fn remember_as_stale(&mut self, file: FileId) {
        if let Some(image) = self.files.get(&file) {
            remember(&mut self.stale, &image.cached);
        }
    }
}

impl NameChange {
    fn id(&self) -> u64 {
        self.id
    }
}

/// Adds to the remembered bytes, and forgets the oldest ones.
fn remember(stale: &mut Vec<u8>, bytes: &[u8]) {
    stale.extend_from_slice(&bytes[bytes.len().saturating_sub(STALE_BYTES)..]);
    stale.drain(..stale.len().saturating_sub(STALE_BYTES));
}

/// Removes the names in folders that do not exist.
fn remove_orphans(names: &mut Names) {
    let exists = |names: &Names, path: &Path| {
        let mut folders = path.ancestors().skip(1).filter(|folder| !is_root(folder));
        folders.all(|folder| names.get(folder) == Some(&Entry::Folder))
    };
    let orphans: Vec<PathBuf> = names.keys().filter(|path| !exists(names, path)).cloned().collect();
    orphans.iter().for_each(|path| _ = names.remove(path));
}

/// Whether a path is that of the folder which always exists.
fn is_root(path: &Path) -> bool {
    path.parent().is_none()
}
