//! The append-only file on the disk: writes and syncs the stream of commands, and holds replies back until then.
//!
//! The engine hands over its stream at the end of each batch, under its lock ([`AofWriter::append`]). Before a reply
//! leaves, what its batch appended must be in the file: written with `everysec` and `no`, synced with `always`
//! ([`AofWriter::is_released`]). So a client knows of nothing that a killed server would have lost.
//!
//! - `everysec`, `no`: the connection that sends first writes what all have appended, with one system call and outside
//!   the engine's lock. While a sync is in progress a write may wait for the disk, so then the thread of the file
//!   writes behind it, and the replies wait for that.
//! - `always`: the thread writes and syncs what has gathered, and meanwhile the next changes gather. So many clients
//!   share one sync, and nobody else waits for the disk. A connection that is the only one to wait syncs by itself, if
//!   the disk is so quick that a change of threads would take longer.
//!
//! The thread tells the engine what it has to know: errors, and that what clients wait for (WAITAOF) is synced. It
//! starts with the first file, so a server without one has none.
//!
//! Lock order: the engine's first, then that of the files, of the log, of the appended bytes.

use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tracing::{info, warn};

use super::background_saver::KeyDelay;
use super::clock::monotonic_us;
use super::contain::contain;
use super::os_host::reason;
use super::shared::Shared;
use crate::aof::files::{AofFiles, LogFile, Place};
use crate::aof::log::Log;
use crate::engine::exec::aof;
use crate::engine::state::Propagation;
use crate::engine::state::host::AofSource;
use crate::engine::{AofProgress, AofState, FileSettings, Settings, SyncPolicy};
use crate::storage::{Storage, StorageFile};

/// The length of a sync from which on the writes behind it count as delayed, as in Redis.
const LONG_SYNC_US: u64 = 2_000_000;

/// The length of a sync up to which a connection that waits alone syncs by itself.
const SHORT_SYNC_US: u64 = 1000;

/// Ends the process when the files cannot be relied on.
type OnFailure = Box<dyn Fn(&str) + Send + Sync>;

/// The append-only file of a server.
#[derive(Debug, Default)]
pub(crate) struct AofWriter {
    progress: Arc<AofProgress>,
    files: Mutex<Option<AofFiles>>,
    log: Mutex<Option<Log>>,
    /// The bytes that the engine has handed over, and that the log does not have yet.
    appended: Mutex<Vec<u8>>,
    policy: Mutex<SyncPolicy>,
    /// The offset up to which replies may leave.
    released: AtomicU64,
    /// Whether a file is open, so that replies may have to wait.
    is_open: AtomicBool,
    /// Whether the last write failed: replies leave, and clients that write get an error.
    has_failed: AtomicBool,
    waiting: Mutex<Vec<(u64, Waker)>>,
    /// Locked during a sync.
    syncing: Mutex<()>,
    /// The length of the last sync, in microseconds; 0 before the first.
    last_sync_us: AtomicU64,
    /// Wakes callers without a task.
    release: Condvar,
    orders: Mutex<Orders>,
    order_came: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
    on_failure: Mutex<Option<OnFailureHook>>,
}

/// What is done when a server with the policy `always` cannot write or sync.
struct OnFailureHook(OnFailure);

impl std::fmt::Debug for OnFailureHook {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("OnFailureHook")
    }
}

/// What the thread is to do.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    /// Write what was appended.
    writes: bool,
    /// Sync it, too.
    syncs: bool,
    /// End.
    ends: bool,
}

impl AofWriter {
    /// How far the files are, which the engine reads.
    pub(crate) fn progress(&self) -> &Arc<AofProgress> {
        &self.progress
    }

    /// Sets what is done when a server with the policy `always` cannot write or sync: Redis ends.
    #[cfg(feature = "program")]
    pub(crate) fn end_on_failure(&self, end: impl Fn(&str) + Send + Sync + 'static) {
        *self.on_failure.lock() = Some(OnFailureHook(Box::new(end)));
    }

    /// Makes what a rewrite needs: the next incremental file, if changes go into the files, and the path of the base.
    ///
    /// # Errors
    /// The message why the files cannot be made.
    pub(crate) fn prepare_rewrite(
        &self,
        storage: &Arc<dyn Storage>,
        settings: &Settings,
        state: AofState,
        commands: u64,
    ) -> Result<(Option<Arc<dyn StorageFile>>, PathBuf), String> {
        let mut guard = self.files.lock();
        let files = match &mut *guard {
            Some(files) => files,
            None => guard.insert(open_files(storage, settings)?),
        };
        *self.policy.lock() = settings.files.syncs;
        let file = match state {
            AofState::Off => None,
            AofState::WaitsForBase => Some(files.first_incr(commands)),
            AofState::On => Some(files.next_incr(commands)),
        };
        let file = file.transpose().map_err(|error| reason(&error))?;
        log_lines(files);
        Ok((file, files.temporary_base()))
    }

    /// Puts the base of a rewrite in place, which is written and synced, and was taken behind so many commands of the
    /// stream. The files before it are removed, unless they are kept.
    ///
    /// # Errors
    /// The message why that fails; the files are then as before.
    pub(crate) fn publish_base(&self, temporary: &Path, settings: &FileSettings, commands: u64) -> Result<(), String> {
        let mut guard = self.files.lock();
        let Some(files) = &mut *guard else { return Err("the files were closed".to_owned()) };
        files.set_base_offset(commands);
        files.publish_base(temporary, settings.has_rdb_base, settings.keeps_history).map_err(|error| reason(&error))?;
        log_lines(files);
        let mut log = self.log.lock();
        let bytes = files.to_load().iter().map(|file| file.bytes).sum();
        self.progress.base_bytes.store(bytes, Ordering::Relaxed);
        self.progress.total_bytes.store(bytes, Ordering::Relaxed);
        match log.as_mut() {
            Some(log) => log.relist(),
            // The append-only file is off: BGREWRITEAOF leaves a base.
            None => *guard = None,
        }
        drop(log);
        self.sync_soon();
        Ok(())
    }

    /// Removes the files that a base has replaced, which were kept.
    pub(crate) fn remove_history(&self) {
        if let Some(files) = &mut *self.files.lock() {
            if let Err(error) = files.remove_history() {
                warn!("Fail to remove the history files of the AOF: {}.", reason(&error));
            }
            log_lines(files);
        }
    }

    /// Opens the last of these files, which begins the stream, and starts the thread. `bytes` is what the files have.
    ///
    /// # Errors
    /// The system has no thread.
    pub(crate) fn open(
        self: &Arc<AofWriter>,
        shared: &Arc<Shared>,
        files: AofFiles,
        file: Arc<dyn StorageFile>,
        policy: SyncPolicy,
        bytes: u64,
    ) -> io::Result<()> {
        self.start(shared)?;
        *self.policy.lock() = policy;
        self.progress.base_bytes.store(bytes, Ordering::Relaxed);
        self.progress.total_bytes.store(bytes, Ordering::Relaxed);
        *self.files.lock() = Some(files);
        *self.log.lock() = Some(Log::new(file, 0, true));
        self.is_open.store(true, Ordering::Release);
        Ok(())
    }

    /// Starts the thread, unless it runs.
    ///
    /// # Errors
    /// The system has no thread.
    pub(crate) fn start(self: &Arc<AofWriter>, shared: &Arc<Shared>) -> io::Result<()> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let (writer, shared) = (Arc::clone(self), Arc::downgrade(shared));
            let run = move || writer.run(&shared);
            *thread = Some(thread::Builder::new().name("dunlin-aof".to_owned()).spawn(run)?);
        }
        Ok(())
    }

    /// Sets the policy (`appendfsync`).
    pub(crate) fn set_policy(&self, policy: SyncPolicy) {
        *self.policy.lock() = policy;
        self.sync_soon();
    }

    /// Takes over what the engine has to say. Called under the engine's lock. Returns whether it needs a new base.
    pub(crate) fn append(&self, stream: &mut Propagation) -> bool {
        let needs_base = stream.take_into(&mut self.appended.lock());
        self.progress.appended.store(stream.offset(), Ordering::SeqCst);
        needs_base
    }

    /// Has the stream go into another file from now on: one that follows the present one, or one that begins anew.
    /// Called under the engine's lock, right after [`AofWriter::append`].
    pub(crate) fn switch(&self, file: Arc<dyn StorageFile>, is_listed: bool) {
        let mut guard = self.log.lock();
        let offset = self.progress.appended.load(Ordering::Acquire);
        match guard.as_mut() {
            Some(log) => {
                self.hand_over(log);
                if is_listed { log.switch(file, true) } else { log.restart(file) }
            }
            None => *guard = Some(Log::new(file, offset, is_listed)),
        }
        self.is_open.store(true, Ordering::Release);
    }

    /// Writes the rest of the stream, and opens the files for reading (DEBUG LOADAOF).
    ///
    /// # Errors
    /// The message why they cannot be read.
    pub(crate) fn open_for_reading(
        &self,
        storage: &Arc<dyn Storage>,
        settings: &Settings,
        rest: Vec<u8>,
    ) -> Result<Vec<AofSource>, String> {
        self.appended.lock().extend_from_slice(&rest);
        self.write().map_err(|error| reason(&error))?;
        let listed = match &*self.files.lock() {
            Some(files) => files.to_load(),
            None => open_files(storage, settings)?.to_load(),
        };
        let open = |file: LogFile| {
            let bytes = storage.open(&file.path).map_err(|error| reason(&error))?;
            let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(AofSource { name, bytes })
        };
        listed.into_iter().map(open).collect()
    }

    /// Orders a sync, or another try to write.
    pub(crate) fn sync_soon(&self) {
        self.order(|orders| (orders.writes, orders.syncs) = (true, true));
    }

    fn order(&self, set: impl FnOnce(&mut Orders)) {
        set(&mut self.orders.lock());
        self.order_came.notify_one();
    }

    /// Whether a reply may leave that depends on the stream up to `offset`. If not, `waker` is woken when it may.
    pub(crate) fn is_released(&self, offset: u64, waker: &Waker) -> bool {
        if self.is_released_now(offset) {
            return true;
        }
        self.waiting.lock().push((offset, waker.clone()));
        // It may have been released before the waker was there.
        self.released.load(Ordering::SeqCst) >= offset
    }

    /// Waits until a reply may leave that depends on the stream up to `offset`.
    pub(crate) fn wait_released(&self, offset: u64) {
        if !self.is_released_now(offset) {
            let mut waiting = self.waiting.lock();
            while self.released.load(Ordering::SeqCst) < offset {
                self.release.wait(&mut waiting);
            }
        }
    }

    /// Whether a reply may leave, having written what it depends on if this thread may do that.
    fn is_released_now(&self, offset: u64) -> bool {
        let is_released = || self.released.load(Ordering::Acquire) >= offset;
        if is_released() {
            return true;
        }
        let policy = *self.policy.lock();
        let may_write = policy != SyncPolicy::Always && !self.progress.is_syncing.load(Ordering::SeqCst);
        let is_done = if may_write || !self.is_open.load(Ordering::Acquire) {
            self.write().is_ok()
        } else {
            policy == SyncPolicy::Always && self.sync_alone(offset)
        };
        if !is_done {
            // The thread does it, and tells the engine if that fails.
            self.order(|orders| orders.writes = true);
        }
        is_released()
    }

    /// Writes and syncs for a reply that is the only one to wait, where that is as quick as a change of threads. False
    /// if it was not done.
    fn sync_alone(&self, offset: u64) -> bool {
        // The thread serves clients that wait for a sync by WAITAOF.
        let is_alone = self.progress.appended.load(Ordering::SeqCst) == offset
            && self.waiting.lock().is_empty()
            && !self.progress.is_awaited();
        let is_short = (1..=SHORT_SYNC_US).contains(&self.last_sync_us.load(Ordering::Relaxed));
        let Some(syncing) = self.syncing.try_lock().filter(|_| is_alone && is_short) else { return false };
        self.write().is_ok() && self.sync_with(&syncing).is_ok()
    }

    /// Gives the log what the engine has handed over.
    fn hand_over(&self, log: &mut Log) {
        let mut appended = self.appended.lock();
        log.append(|unwritten| {
            if unwritten.is_empty() {
                mem::swap(unwritten, &mut appended);
            } else {
                unwritten.append(&mut appended);
            }
        });
    }

    /// Writes what was appended.
    fn write(&self) -> io::Result<()> {
        let mut guard = self.log.lock();
        let Some(log) = guard.as_mut() else {
            // Nothing is open, so nobody needs it.
            self.appended.lock().clear();
            self.release_to(self.progress.appended.load(Ordering::Acquire));
            return Ok(());
        };
        self.hand_over(log);
        KeyDelay::of_us(self.progress.delay_us.load(Ordering::Relaxed).cast_signed()).pause();
        let before = log.written_bytes();
        let result = log.write();
        self.progress.total_bytes.fetch_add(log.written_bytes() - before, Ordering::Relaxed);
        self.progress.written.store(log.written(), Ordering::Release);
        let waits_for_sync = *self.policy.lock() == SyncPolicy::Always && log.has_been_listed();
        if !waits_for_sync {
            // When the disk takes no more, clients learn it from their next write.
            self.release_to(if result.is_ok() { log.written() } else { log.appended() });
        }
        result
    }

    /// Syncs what was written.
    fn sync(&self) -> io::Result<()> {
        self.sync_with(&self.syncing.lock())
    }

    fn sync_with(&self, _syncing: &MutexGuard<'_, ()>) -> io::Result<()> {
        let Some(order) = self.log.lock().as_ref().and_then(Log::sync_order) else { return Ok(()) };
        if order.offset.is_some_and(|offset| offset <= self.progress.synced()) {
            return Ok(());
        }
        self.progress.is_syncing.store(true, Ordering::SeqCst);
        let start_us = monotonic_us();
        let result = order.file.sync();
        self.progress.is_syncing.store(false, Ordering::SeqCst);
        let elapsed_us = monotonic_us() - start_us;
        self.last_sync_us.store(elapsed_us.max(1), Ordering::Relaxed);
        if elapsed_us > LONG_SYNC_US && !self.waiting.lock().is_empty() {
            self.progress.delayed.fetch_add(1, Ordering::Relaxed);
            warn!("Asynchronous AOF fsync is taking too long (disk is busy?).");
        }
        if let Some(log) = self.log.lock().as_mut() {
            log.note_sync(&result);
        }
        if let (Ok(()), Some(offset)) = (&result, order.offset) {
            self.progress.synced.fetch_max(offset, Ordering::SeqCst);
            self.release_to(offset);
        }
        result
    }

    /// Has the replies leave that depend on the stream up to `offset`.
    fn release_to(&self, offset: u64) {
        if self.released.fetch_max(offset, Ordering::SeqCst) >= offset {
            return;
        }
        let mut waiting = self.waiting.lock();
        for (_, waker) in waiting.extract_if(.., |(awaited, _)| *awaited <= offset) {
            waker.wake();
        }
        drop(waiting);
        self.release.notify_all();
    }

    /// The thread: carries out orders until the server ends.
    fn run(&self, shared: &Weak<Shared>) {
        loop {
            let orders = {
                let mut orders = self.orders.lock();
                while !(orders.writes || orders.syncs || orders.ends) {
                    self.order_came.wait(&mut orders);
                }
                mem::take(&mut *orders)
            };
            if orders.ends {
                return;
            }
            let Some(shared) = shared.upgrade() else { return };
            contain("the thread of the append-only file", || self.carry_out(orders, &shared));
        }
    }

    fn carry_out(&self, orders: Orders, shared: &Shared) {
        let policy = *self.policy.lock();
        let written = self.write();
        let syncs = orders.syncs && policy != SyncPolicy::Never || policy == SyncPolicy::Always;
        let synced = if syncs && written.is_ok() { self.sync() } else { Ok(()) };
        if syncs && written.is_ok() {
            // What came during the sync, and whose replies wait.
            let _ = self.write();
        }
        self.report(shared, policy, written, synced);
        if self.progress.is_awaited() {
            shared.act(aof::end_synced_waits);
        }
    }

    /// Tells the engine what has failed, or works again.
    fn report(&self, shared: &Shared, policy: SyncPolicy, written: io::Result<()>, synced: io::Result<()>) {
        let Err(error) = written.and(synced) else {
            if self.has_failed.swap(false, Ordering::AcqRel) {
                shared.act(|engine| aof::set_error(engine, None));
            }
            return;
        };
        let why = reason(&error);
        let must_restart = self.log.lock().as_ref().is_some_and(|log| log.sync_error().is_some());
        if policy == SyncPolicy::Always
            && let Some(OnFailureHook(end)) = &*self.on_failure.lock()
        {
            end(&if must_restart {
                format!("Can't persist AOF for fsync error when the AOF fsync policy is 'always': {why}. Exiting...")
            } else {
                "Can't recover from AOF write error when the AOF fsync policy is 'always'. Exiting...".to_owned()
            });
        }
        // Only a new base heals a sync that failed, and the engine knows when it is in place.
        self.has_failed.store(!must_restart, Ordering::Release);
        shared.act(|engine| {
            aof::set_error(engine, Some(why));
            if must_restart {
                aof::heal(engine);
            }
        });
    }

    /// Writes, syncs and closes the files (`appendonly no`, the end of the server), whose stream has so many commands.
    /// What clients wait for is released.
    pub(crate) fn close(&self, commands: u64) {
        let written = self.write().and_then(|()| self.sync());
        if let Err(error) = written {
            warn!("Fail to fsync the AOF file: {}.", reason(&error));
        }
        self.is_open.store(false, Ordering::Release);
        *self.log.lock() = None;
        if let Some(mut files) = self.files.lock().take()
            && let Err(error) = files.end(commands)
        {
            warn!("Fail to write the AOF manifest: {}.", reason(&error));
        }
        self.release_to(self.progress.appended.load(Ordering::Acquire));
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.order(|orders| orders.ends = true);
        if let Some(thread) = self.thread.lock().take() {
            // A panic of the thread was logged when it happened.
            drop(thread.join());
        }
    }
}

/// Logs what the files have to say.
pub(crate) fn log_lines(files: &mut AofFiles) {
    files.take_lines().iter().for_each(|line| info!("{line}"));
}

/// Opens the files of the append-only file where the settings have them.
///
/// # Errors
/// The message why they cannot be opened.
pub(crate) fn open_files(storage: &Arc<dyn Storage>, settings: &Settings) -> Result<AofFiles, String> {
    let folder = Path::new(&settings.directory).join(&settings.files.append_folder);
    let place = Place { folder, name: settings.files.append_file.clone() };
    let mut files = AofFiles::open(Arc::clone(storage), place).map_err(|fault| fault.lines().join("\n"))?;
    log_lines(&mut files);
    Ok(files)
}
