//! A disk in memory that fails, fills up, holds calls and loses power as a test wants.
//!
//! It promises what [`crate::storage`] says and nothing else: at a power loss, a seed chooses what is left of all that
//! was not synced, within the disk's [`PowerLossModel`]. Runs with the same seeds and the same calls are the same.
//!
//! Calls are counted, so a test can make each call of a procedure fail, or lose power before each one. The methods for
//! the test itself, such as [`SimulatedDisk::read`], are not counted and never fail.

mod image;
mod survival;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{PathLock, Storage, StorageFile};
use image::{Change, Entry, FileId, Image};
pub use survival::{DataLoss, NameLoss, PowerLossModel};

/// A simulated disk. Its clones are the same disk.
#[derive(Clone, Default)]
pub struct SimulatedDisk {
    shared: Arc<Shared>,
    /// The machine start that this handle belongs to: after the next one its calls fail. `None` for the disk itself.
    start: Option<u64>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when calls are held or released.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    image: Image,
    locks: BTreeSet<Locked>,
    /// The number of the machine's start. What was opened before the last one is dead.
    start: u64,
    is_stopped: bool,
    calls: u64,
    recorded: Option<Vec<Call>>,
    faults: BTreeMap<u64, Fault>,
    stops_at: Option<u64>,
    fails_next_sync: bool,
    is_full: bool,
    capacity_bytes: Option<usize>,
    delay: Duration,
    holds: Option<CallTest>,
    /// How many calls are held.
    held: usize,
    ignores: Option<SyncTest>,
    /// How many calls pass behind the next ignored sync until the machine stops.
    stops_behind_ignored: Option<u64>,
}

type CallTest = Box<dyn Fn(&Call) -> bool + Send>;
type SyncTest = Box<dyn FnMut(&Call) -> bool + Send>;

/// One call of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The kind of call.
    pub kind: CallKind,
    /// The path in the call; that of the opening for a file's. The first one of a rename.
    pub path: PathBuf,
}

/// The kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each one is the method of that name")]
pub enum CallKind {
    Open,
    Length,
    Create,
    Append,
    Rename,
    Remove,
    CreateFolder,
    List,
    SyncFolder,
    Lock,
    Read,
    Write,
    Sync,
    Truncate,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The device reports an error (EIO). A sync loses what it should have made durable.
    InputOutput,
    /// The disk is full (ENOSPC).
    Full,
    /// A signal came (EINTR).
    Interrupted,
    /// A write takes a part of the bytes, and a read returns less than it could. Other calls succeed.
    Short,
}

impl SimulatedDisk {
    /// An empty disk that may lose anything that was not synced.
    pub fn new() -> SimulatedDisk {
        SimulatedDisk::default()
    }

    /// An empty disk that may do no more than this at a power loss.
    pub fn with(model: PowerLossModel) -> SimulatedDisk {
        let disk = SimulatedDisk::default();
        disk.state().image = Image::new(model);
        disk
    }

    /// A handle for a process that starts now: its calls fail after the next power loss, or end of the process.
    pub fn attached(&self) -> SimulatedDisk {
        let start = Some(self.state().start);
        SimulatedDisk { shared: Arc::clone(&self.shared), start }
    }

    /// Turns the machine off and on: the seed chooses what is left of all that was not synced. Open files and locks are
    /// dead, and all faults that were still to come are gone.
    pub fn power_loss(&self, seed: u64) {
        let mut state = self.state();
        state.image.lose_power(seed);
        state.restart();
        self.shared.changed.notify_all();
    }

    /// Ends the process and starts it again, as `kill -9` does: open files and locks are dead, but nothing is lost.
    pub fn process_end(&self) {
        self.state().restart();
        self.shared.changed.notify_all();
    }

    /// Makes a call fail: the one after the next `passed` ones.
    pub fn fail_call(&self, passed: u64, fault: Fault) {
        let mut state = self.state();
        let number = state.calls + passed;
        state.faults.insert(number, fault);
    }

    /// Makes the next sync of a file fail: what it should have made durable is lost for good.
    pub fn fail_next_sync(&self) {
        self.state().fails_next_sync = true;
    }

    /// Stops the machine behind the next `passed` calls: all later ones fail, until a [`SimulatedDisk::power_loss`].
    pub fn stop_at_call(&self, passed: u64) {
        let mut state = self.state();
        state.stops_at = Some(state.calls + passed);
    }

    /// Whether the machine was stopped, and has not started again.
    pub fn is_stopped(&self) -> bool {
        self.state().is_stopped
    }

    /// Sets whether the disk has no space for any byte or name.
    pub fn set_full(&self, is_full: bool) {
        self.state().is_full = is_full;
    }

    /// Sets the bytes that all files together may have. A write at the limit takes what fits.
    pub fn set_capacity(&self, bytes: Option<usize>) {
        self.state().capacity_bytes = bytes;
    }

    /// Makes every call block for this time.
    pub fn set_delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    /// Blocks calls for which the test is true until they are released.
    pub fn hold(&self, test: impl Fn(&Call) -> bool + Send + 'static) {
        self.state().holds = Some(Box::new(test));
    }

    /// Waits until a call is held.
    pub fn wait_until_held(&self) {
        let waited = self.shared.changed.wait_while(self.state(), |state| state.held == 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Releases the calls that are held, and holds no more.
    pub fn release(&self) {
        self.state().holds = None;
        self.shared.changed.notify_all();
    }

    /// Ignores syncs of files and folders for which the test is true: they succeed and do nothing. So a test can show
    /// that a sync is needed.
    pub fn ignore_syncs(&self, test: impl FnMut(&Call) -> bool + Send + 'static) {
        self.state().ignores = Some(Box::new(test));
    }

    /// Stops the machine behind the next `passed` calls after the next sync that is ignored: what the sync was needed
    /// for is most likely lost then.
    pub fn stop_behind_ignored_sync(&self, passed: u64) {
        self.state().stops_behind_ignored = Some(passed);
    }

    /// The number of calls so far.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Records the calls from now on.
    pub fn record(&self) {
        self.state().recorded = Some(Vec::new());
    }

    /// The calls that were recorded.
    pub fn recorded(&self) -> Vec<Call> {
        self.state().recorded.clone().unwrap_or_default()
    }

    /// The contents of a file as programs read them; `None` if there is no such file.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let mut state = self.state();
        let file = state.image.file_id(&normal(path.as_ref())).ok()?;
        Some(state.image.file(file).cached.clone())
    }

    /// Makes a file with these contents, and the folders above it, all of it durable.
    pub fn write(&self, path: impl AsRef<Path>, contents: impl Into<Vec<u8>>) {
        self.state().image.put(&normal(path.as_ref()), contents.into());
    }

    /// Makes a folder and those above it, all of it durable.
    pub fn add_folder(&self, path: impl AsRef<Path>) {
        self.state().image.put_folder(&normal(path.as_ref()));
    }

    /// The paths of all files, in order.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.state().image.paths()
    }

    /// Changes a bit of a file, as a decaying disk does; bits are counted from the lowest one of the first byte. Does
    /// nothing if there is no such bit.
    pub fn flip_bit(&self, path: impl AsRef<Path>, at: usize) {
        let mut state = self.state();
        let Ok(file) = state.image.file_id(&normal(path.as_ref())) else { return };
        let file = state.image.file(file);
        for contents in [&mut file.cached, &mut file.durable] {
            if let Some(byte) = contents.get_mut(at / 8) {
                *byte ^= 1 << (at % 8);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call: counts it, holds it, and has it fail if that is wanted. `start` is that of the open file.
    fn call(
        &self,
        kind: CallKind,
        path: &Path,
        start: Option<u64>,
    ) -> io::Result<(MutexGuard<'_, State>, Option<Fault>)> {
        let call = Call { kind, path: path.to_owned() };
        let mut state = self.state();
        let (number, start) = (state.calls, start.or(self.start).unwrap_or(state.start));
        state.calls += 1;
        if let Some(recorded) = &mut state.recorded {
            recorded.push(call.clone());
        }
        state.is_stopped |= state.stops_at.is_some_and(|stop| number >= stop);
        state = self.wait(state, &call, start);
        if state.is_stopped || start != state.start {
            return Err(io::Error::other("the machine was stopped"));
        }
        match state.faults.remove(&number) {
            // Its caller has to lose bytes before it fails.
            Some(Fault::InputOutput) if kind == CallKind::Sync => Ok((state, Some(Fault::InputOutput))),
            Some(Fault::Short) => Ok((state, Some(Fault::Short))),
            Some(fault) => Err(fault.error()),
            None => Ok((state, None)),
        }
    }

    /// Waits while the call is held, and for as long as each call takes.
    fn wait<'a>(&self, mut state: MutexGuard<'a, State>, call: &Call, start: u64) -> MutexGuard<'a, State> {
        let is_held = |state: &State| state.start == start && state.holds.as_ref().is_some_and(|test| test(call));
        if is_held(&state) {
            state.held += 1;
            self.shared.changed.notify_all();
            let waited = self.shared.changed.wait_while(state, |state| is_held(state));
            state = waited.unwrap_or_else(PoisonError::into_inner);
            state.held -= 1;
        }
        let delay = state.delay;
        if !delay.is_zero() && !state.is_stopped {
            let waited = self.shared.changed.wait_timeout_while(state, delay, |state| state.start == start);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }

    fn file(&self, file: FileId, path: PathBuf, start: u64) -> Arc<dyn StorageFile> {
        Arc::new(SimulatedFile { disk: self.clone(), file, path, start })
    }
}

impl State {
    fn restart(&mut self) {
        self.start += 1;
        self.locks.clear();
        self.faults.clear();
        (self.is_stopped, self.stops_at, self.fails_next_sync) = (false, None, false);
    }

    /// Fails when there is no space for another name.
    fn check_space(&self) -> io::Result<()> {
        if self.is_full { Err(Fault::Full.error()) } else { Ok(()) }
    }

    /// How many of these bytes there is space for.
    fn space_for(&self, bytes: usize) -> usize {
        match self.capacity_bytes {
            _ if self.is_full => 0,
            Some(capacity) => bytes.min(capacity.saturating_sub(self.image.used_bytes())),
            None => bytes,
        }
    }

    fn ignores(&mut self, kind: CallKind, path: &Path) -> bool {
        let is_ignored = self.ignores.as_mut().is_some_and(|test| test(&Call { kind, path: path.to_owned() }));
        if is_ignored && let Some(passed) = self.stops_behind_ignored.take() {
            let stop = self.calls + passed;
            self.stops_at = Some(self.stops_at.map_or(stop, |other| other.min(stop)));
        }
        is_ignored
    }
}

impl Fault {
    /// The system's error.
    pub fn error(self) -> io::Error {
        let (number, kind) = match self {
            Fault::InputOutput => (5, io::ErrorKind::Other),
            Fault::Full => (28, io::ErrorKind::StorageFull),
            Fault::Interrupted | Fault::Short => (4, io::ErrorKind::Interrupted),
        };
        if cfg!(unix) { io::Error::from_raw_os_error(number) } else { kind.into() }
    }
}

impl Storage for SimulatedDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        let path = normal(path);
        let (state, _) = self.call(CallKind::Open, &path, None)?;
        let (file, start) = (state.image.file_id(&path)?, state.start);
        Ok(Box::new(Reader { file: SimulatedFile { disk: self.clone(), file, path, start }, position: 0 }))
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        let path = normal(path);
        let (mut state, _) = self.call(CallKind::Length, &path, None)?;
        let file = state.image.file_id(&path)?;
        Ok(state.image.file(file).cached.len() as u64)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        let path = normal(path);
        let (mut state, _) = self.call(CallKind::Create, &path, None)?;
        state.check_space()?;
        let file = state.image.file_or_new(&path)?;
        if !state.image.file(file).cached.is_empty() {
            state.image.file(file).change(Change::Truncate(0));
        }
        Ok(self.file(file, path, state.start))
    }

    fn append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        let path = normal(path);
        let (state, _) = self.call(CallKind::Append, &path, None)?;
        let file = state.image.file_id(&path)?;
        Ok(self.file(file, path, state.start))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (normal(from), normal(to));
        let (mut state, _) = self.call(CallKind::Rename, &from, None)?;
        state.image.rename(&from, &to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        self.call(CallKind::Remove, &path, None)?.0.image.remove(&path)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        let (mut state, _) = self.call(CallKind::CreateFolder, &path, None)?;
        state.check_space()?;
        state.image.add_folder(&path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let folder = normal(folder);
        self.call(CallKind::List, &folder, None)?.0.image.list(&folder)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let folder = normal(folder);
        let (mut state, _) = self.call(CallKind::SyncFolder, &folder, None)?;
        state.image.folder(&folder)?;
        if !state.ignores(CallKind::SyncFolder, &folder) {
            state.image.sync_names(&folder);
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn PathLock>>> {
        let path = normal(path);
        let (mut state, _) = self.call(CallKind::Lock, &path, None)?;
        let (locked, start) = (Locked::find(&state.image, path)?, state.start);
        let is_free = state.locks.insert(locked.clone());
        Ok(is_free.then(|| Box::new(SimulatedLock { disk: self.clone(), locked, start }) as Box<dyn PathLock>))
    }
}

/// A path in its shortest form, without `.`.
fn normal(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

/// A file that is open.
#[derive(Debug)]
struct SimulatedFile {
    disk: SimulatedDisk,
    file: FileId,
    path: PathBuf,
    start: u64,
}

impl SimulatedFile {
    fn call(&self, kind: CallKind) -> io::Result<(MutexGuard<'_, State>, Option<Fault>)> {
        self.disk.call(kind, &self.path, Some(self.start))
    }
}

impl StorageFile for SimulatedFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let (mut state, fault) = self.call(CallKind::Write)?;
        let wanted = if fault == Some(Fault::Short) { bytes.len().div_ceil(2) } else { bytes.len() };
        let written = state.space_for(wanted);
        if written == 0 && wanted > 0 {
            return Err(Fault::Full.error());
        }
        let file = state.image.file(self.file);
        let at = file.cached.len();
        file.change(Change::Write { at, bytes: bytes[..written].to_vec() });
        Ok(written)
    }

    fn sync(&self) -> io::Result<()> {
        let (mut state, fault) = self.call(CallKind::Sync)?;
        if fault == Some(Fault::InputOutput) || std::mem::take(&mut state.fails_next_sync) {
            state.image.lose_pending(self.file);
            return Err(Fault::InputOutput.error());
        }
        if !state.ignores(CallKind::Sync, &self.path) {
            state.image.sync_file(self.file);
        }
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let (mut state, _) = self.call(CallKind::Truncate)?;
        let length = usize::try_from(length).map_err(|_| Fault::Full.error())?;
        state.image.file(self.file).change(Change::Truncate(length));
        Ok(())
    }

    fn lose_unsynced(&self) {
        let mut state = self.disk.state();
        if state.start == self.start {
            state.image.lose_pending(self.file);
        }
    }
}

/// A file that is open for reading. It reads what is written meanwhile.
#[derive(Debug)]
struct Reader {
    file: SimulatedFile,
    position: usize,
}

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (mut state, fault) = self.file.call(CallKind::Read)?;
        let contents = &state.image.file(self.file.file).cached;
        let rest = contents.get(self.position..).unwrap_or_default();
        let wanted = if fault == Some(Fault::Short) { into.len().div_ceil(2) } else { into.len() };
        let length = wanted.min(rest.len());
        into[..length].copy_from_slice(&rest[..length]);
        drop(state);
        self.position += length;
        Ok(length)
    }
}

/// What a lock is on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Locked {
    Folder(PathBuf),
    File(FileId),
}

impl Locked {
    /// The file or folder of a path.
    fn find(image: &Image, path: PathBuf) -> io::Result<Locked> {
        Ok(match image.find(&path)? {
            Entry::Folder => Locked::Folder(path),
            Entry::File(file) => Locked::File(file),
        })
    }
}

/// A lock on a file or a folder.
#[derive(Debug)]
struct SimulatedLock {
    disk: SimulatedDisk,
    locked: Locked,
    start: u64,
}

impl PathLock for SimulatedLock {
    fn is_of(&self, path: &Path) -> bool {
        let state = self.disk.state();
        state.start == self.start && Locked::find(&state.image, normal(path)).is_ok_and(|locked| locked == self.locked)
    }
}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.start == self.start {
            state.locks.remove(&self.locked);
        }
    }
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let (calls, paths) = (state.calls, state.image.paths());
        formatter.debug_struct("SimulatedDisk").field("calls", &calls).field("paths", &paths).finish_non_exhaustive()
    }
}
