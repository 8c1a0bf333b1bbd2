//! The real file system, as a [`Storage`].
//!
//! A call that a signal interrupted is repeated.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
#[cfg(target_os = "linux")]
use std::ops::Range;
use std::path::Path;
#[cfg(not(unix))]
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(target_os = "linux")]
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::atomic_file;
use crate::storage::{PathLock, Storage, StorageFile};

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OsStorage;

impl Storage for OsStorage {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(uninterrupted(|| File::open(path))?))
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        let found = uninterrupted(|| fs::metadata(path))?;
        if found.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(found.len()) }
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        // Append mode and truncation at the opening exclude each other.
        let file = uninterrupted(|| at_end().create(true).open(path))?;
        uninterrupted(|| file.set_len(0))?;
        Ok(Arc::new(OsFile(file)))
    }

    fn append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        let file = uninterrupted(|| at_end().open(path))?;
        (&file).seek(SeekFrom::End(0))?;
        Ok(Arc::new(OsFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        uninterrupted(|| fs::rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        uninterrupted(|| fs::remove_file(path))
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        match uninterrupted(|| fs::create_dir(path)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            created => created,
        }
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in uninterrupted(|| fs::read_dir(existing(folder)))? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                continue;
            }
            // A name that is not UTF-8 is none of the server's.
            names.extend(entry.file_name().into_string());
        }
        Ok(names)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        uninterrupted(|| atomic_file::sync_folder(existing(folder)))
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn PathLock>>> {
        for _ in 0..LOCK_ATTEMPTS {
            let lock = OsLock::open(path)?;
            match lock.file.try_lock() {
                // Another file may have got the name since this one was opened.
                Ok(()) if !lock.is_of(path) => {}
                Ok(()) => return Ok(Some(Box::new(lock))),
                Err(fs::TryLockError::WouldBlock) => return Ok(None),
                Err(fs::TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }
}

/// How often a file may be replaced while it is being locked.
const LOCK_ATTEMPTS: u32 = 100;

/// Repeats a call for as long as signals interrupt it.
fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The path of a folder; the current one's for an empty path.
fn existing(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// Opens files so that each write is at the end, even if another program has changed the length.
#[cfg(unix)]
fn at_end() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true);
    options
}

/// Opens files for writing. A file in append mode could not be truncated on Windows, so the position is set to the
/// end wherever that changes.
#[cfg(not(unix))]
fn at_end() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    options
}

/// A lock, which the system releases at the end of the process at the latest.
///
/// The file or the folder itself is locked: that does not keep others from using it.
#[cfg(unix)]
#[derive(Debug)]
struct OsLock {
    file: File,
}

#[cfg(unix)]
impl OsLock {
    /// Opens what is to be locked.
    fn open(path: &Path) -> io::Result<OsLock> {
        let path = existing(path);
        let found = uninterrupted(|| fs::metadata(path))?;
        if !found.is_file() && !found.is_dir() {
            // Whoever opens a pipe waits for its other end.
            return Err(io::ErrorKind::Unsupported.into());
        }
        // Some network file systems lock only what is open for writing.
        let open = || if found.is_dir() { File::open(path) } else { at_end().open(path) };
        Ok(OsLock { file: uninterrupted(open)? })
    }
}

#[cfg(unix)]
impl PathLock for OsLock {
    fn is_of(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let identity = |found: fs::Metadata| (found.dev(), found.ino());
        let named = uninterrupted(|| fs::metadata(existing(path))).map(identity);
        let locked = uninterrupted(|| self.file.metadata()).map(identity);
        named.is_ok_and(|named| locked.is_ok_and(|locked| locked == named))
    }
}

/// A lock on a file beside the file, or on `.lock` in a folder: on other systems a file that is locked can neither be
/// read nor written, and a folder cannot be opened as a file.
#[cfg(not(unix))]
#[derive(Debug)]
struct OsLock {
    file: File,
    path: PathBuf,
}

#[cfg(not(unix))]
impl OsLock {
    /// Opens the file that is locked in the place of what has this path.
    fn open(path: &Path) -> io::Result<OsLock> {
        let path = OsLock::path_for(existing(path))?;
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
        Ok(OsLock { file, path })
    }

    fn path_for(path: &Path) -> io::Result<PathBuf> {
        let is_folder = fs::metadata(path)?.is_dir();
        Ok(if is_folder { path.join(".lock") } else { path.with_added_extension("lock") })
    }
}

#[cfg(not(unix))]
impl PathLock for OsLock {
    fn is_of(&self, path: &Path) -> bool {
        OsLock::path_for(existing(path)).is_ok_and(|path| path == self.path)
    }
}

impl Drop for OsLock {
    fn drop(&mut self) {
        // To close the file is not enough: a process that another thread has just forked has it open, too.
        let _ = self.file.unlock();
    }
}

/// A file that is open for writing.
#[derive(Debug)]
struct OsFile(File);

impl StorageFile for OsFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        uninterrupted(|| (&self.0).write(bytes))
    }

    fn sync(&self) -> io::Result<()> {
        uninterrupted(|| self.0.sync_data())
    }

    #[cfg(target_os = "linux")]
    fn start_writeback(&self, part: Range<u64>) -> io::Result<()> {
        // At the advice that a part is not needed, the system begins to write what of it is not on the disk yet, and
        // keeps that in memory meanwhile. If the disk fails, the next sync says so.
        let (Ok(offset), Ok(length)) = (part.start.try_into(), (part.end - part.start).try_into()) else {
            return self.sync();
        };
        posix_fadvise(&self.0, offset, length, PosixFadviseAdvice::POSIX_FADV_DONTNEED).or_else(|_| self.sync())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        uninterrupted(|| self.0.set_len(length))?;
        (&self.0).seek(SeekFrom::End(0)).map(drop)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::storage::simulated::SimulatedDisk;

    /// A folder of the test's own, which is removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("dunlin-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("the folder can be made");
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// The files that a walk has open.
    type Files = Vec<Arc<dyn StorageFile>>;

    /// The result of a call as a text, as far as both file systems have to agree on it.
    fn outcome<T>(result: io::Result<T>, text: impl FnOnce(T) -> String) -> String {
        match result.map_err(|error| error.kind()) {
            Ok(result) => text(result),
            // Systems differ in what they say of a folder in the place of a file.
            Err(io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::PermissionDenied) => "IsADirectory".to_owned(),
            Err(kind) => format!("{kind:?}"),
        }
    }

    /// Calls one of two storages as the seed says.
    fn step(storage: &dyn Storage, root: &Path, files: &mut Files, seed: u64) -> String {
        const PATHS: [&str; 8] = ["a", "b", "c", "one", "one/a", "one/b", "two/a", "a/b"];
        let mut random = fastrand::Rng::with_seed(seed);
        let kind = random.u8(0..13);
        let path = root.join(PATHS[random.usize(..PATHS.len())]);
        let other = root.join(PATHS[random.usize(..PATHS.len())]);
        let file = random.usize(..files.len().max(1));
        let bytes = vec![random.u8(b'a'..=b'z'); random.usize(0..1500)];
        let opened = |result: io::Result<Arc<dyn StorageFile>>, files: &mut Files| {
            outcome(result, |file| {
                files.push(file);
                "opened".to_owned()
            })
        };
        match kind {
            0 => opened(storage.create(&path), files),
            1 => opened(storage.append(&path), files),
            2 => outcome(storage.length(&path), |length| length.to_string()),
            // The real file system can rename folders.
            3 if storage.list(&path).is_ok() => String::new(),
            3 => outcome(storage.rename(&path, &other), |()| "renamed".to_owned()),
            4 => outcome(storage.remove(&path), |()| "removed".to_owned()),
            5 => outcome(storage.create_folder(&path), |()| "created".to_owned()),
            6 => outcome(storage.list(&path), |mut names| {
                names.sort();
                names.join(" ")
            }),
            7 => outcome(storage.sync_folder(root), |()| "synced".to_owned()),
            8 => {
                let mut text = String::new();
                let read = storage.open(&path).and_then(|mut file| file.read_to_string(&mut text));
                outcome(read, |_| text)
            }
            _ if files.is_empty() => String::new(),
            9 | 10 => outcome(files[file].write(&bytes), |written| written.to_string()),
            11 => outcome(files[file].sync(), |()| "synced".to_owned()),
            _ => outcome(files[file].truncate(random.u64(0..2000)), |()| "truncated".to_owned()),
        }
    }

    #[test]
    fn the_simulated_disk_answers_as_the_real_file_system_does() {
        for walk in 0..10 {
            let folder = Folder::new(&format!("storage-{walk}"));
            let (disk, root) = (SimulatedDisk::new(), Path::new("root"));
            disk.add_folder(root);
            let (mut real_files, mut simulated_files) = (Files::new(), Files::new());
            for number in 0..200 {
                let seed = walk * 1000 + number;
                let real = step(&OsStorage, &folder.0, &mut real_files, seed);
                let simulated = step(&disk, root, &mut simulated_files, seed);
                assert_eq!(real, simulated, "walk {walk}, step {number}");
            }
        }
    }

    #[test]
    fn a_folder_and_a_file_have_one_lock_each() {
        let folder = Folder::new("lock");
        let path = folder.0.join("file");
        let file = OsStorage.create(&path).expect("it can be created");
        for path in [&folder.0, &path] {
            let lock = OsStorage.lock(path).expect("it can be locked").expect("nobody has it");
            assert!(OsStorage.lock(path).expect("it can be tried").is_none());
            file.write(b"a lock keeps nobody from writing").expect("it can be written");
            drop(lock);
            assert!(OsStorage.lock(path).expect("it can be tried").is_some());
        }
        let missing = OsStorage.lock(&folder.0.join("missing")).expect_err("there is no such file");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    /// On the real file system and on the simulated disk.
    #[test]
    fn a_lock_is_of_its_file_under_any_name() {
        let folder = Folder::new("lock-renamed");
        let disk = SimulatedDisk::new();
        disk.add_folder("root");
        for (storage, root) in [(&OsStorage as &dyn Storage, &*folder.0), (&disk, Path::new("root"))] {
            let [old, new, other] = ["old", "new", "other"].map(|name| root.join(name));
            for path in [&old, &new] {
                storage.create(path).expect("it can be created");
            }
            let lock = |path| storage.lock(path).expect("it can be tried");
            let (of_old, of_new) = (lock(&old).expect("nobody has it"), lock(&new).expect("nobody has it"));
            storage.rename(&new, &old).expect("it can be renamed");
            assert!(of_new.is_of(&old) && !of_new.is_of(&new) && !of_old.is_of(&old));
            drop(of_old);
            assert!(lock(&old).is_none(), "the lock that ended was on the file that was replaced");
            storage.rename(&old, &other).expect("it can be renamed");
            storage.create(&old).expect("it can be created");
            assert!(!of_new.is_of(&old) && lock(&old).is_some());
        }
    }

    /// To open one for writing would wait for a reader.
    #[test]
    fn a_pipe_is_not_locked() {
        let folder = Folder::new("lock-pipe");
        let path = folder.0.join("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("it can be made");
        assert_eq!(OsStorage.lock(&path).expect_err("it is no file").kind(), io::ErrorKind::Unsupported);
    }

    /// As a process has it that was forked and does not run its program yet.
    #[test]
    fn a_lock_ends_though_its_file_is_open_elsewhere() {
        let folder = Folder::new("lock-forked");
        let lock = OsLock::open(&folder.0).expect("it can be opened");
        lock.file.try_lock().expect("nobody has it");
        let forked = lock.file.try_clone().expect("it can be duplicated");
        assert!(OsStorage.lock(&folder.0).expect("it can be tried").is_none());
        drop(lock);
        assert!(OsStorage.lock(&folder.0).expect("it can be tried").is_some());
        drop(forked);
    }

    #[test]
    fn a_write_is_behind_what_another_program_has_written() {
        let folder = Folder::new("append");
        let path = folder.0.join("file");
        let file = OsStorage.create(&path).expect("it can be created");
        fs::write(&path, "of another program, ").expect("it can be written");
        file.write(b"ours").expect("it can be written");
        assert_eq!(fs::read_to_string(&path).expect("it exists"), "of another program, ours");
    }
}
