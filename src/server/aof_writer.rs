//! The append-only file on the disk: writes and syncs the stream of commands, and holds replies back until then.
//!
//! The engine hands over its stream at the end of each batch, under its lock ([`AofWriter::append`]). Before a reply
//! leaves, what its batch appended must be in the file: written with `everysec` and `no`, synced with `always`
//! ([`AofWriter::try_release`]). So a killed server has lost nothing that a client knows of; the one exception, with
//! `everysec` and `no`, is a disk that takes no writes for a while.
//!
//! - `everysec`, `no`: the connection that sends first writes what all have appended, with one system call and outside
//!   the engine's lock. While a sync is in progress, on a thread of its own, a write may wait for the disk, so then the
//!   thread that writes does it, and the replies wait for that. When it takes longer than a millisecond they leave
//!   all the same, for two seconds: that is how long Redis puts a write off while it syncs. Then they wait.
//! - `always`: when the event loop has served all connections that were ready, the thread writes and syncs what has
//!   gathered, and meanwhile the next changes gather. So many clients share one sync, and nobody else waits for the
//!   disk. If all that were served wait, and the disk is quick, the event loop syncs by itself: it has nothing else to
//!   do, and changes of threads cost more than they save.
//!
//! While a rule of the test kit may make the disk slow, only the threads write and sync, so that others are served.
//!
//! Unwritten bytes are limited ([`is_full`]): beyond that replies wait, and so do the requests of
//! clients that do not wait for replies ([`AofWriter::is_full`]).
//!
//! The threads tell the engine what it has to know: errors, and that what clients wait for (WAITAOF) is synced. They
//! start with the first file, so a server without one has none.
//!
//! Lock order: the engine's first, then that of the files, of the log, of the appended bytes. Under the engine's lock
//! that of the log, which is held during a write, is taken only to open, close or reload the files.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::{info, warn};

use super::aof_files::{log_lines, open_files, place};
use super::aof_rewrite::AwaitedBase;
use super::aof_threads::DiskThread;
use super::aof_waiters::{self, Waiters};
use super::background_saver::{STOPPED, TestDelay};
use super::clock::monotonic_us;
use super::os_host::reason;
use super::shared::Shared;
use crate::aof::appended::Appended;
use crate::aof::decisions::{LONG_WRITE_US, NextFile, PATIENCE_US, SyncPolicy, is_full, may_leave_unwritten};
use crate::aof::files::{AofFiles, LogFile, VerifiedBase};
use crate::aof::log::Log;
use crate::engine::state::host::AofSource;
use crate::engine::state::kit::DiskFaults;
use crate::engine::{AofProgress, Engine, FileSettings, Settings};
use crate::storage::{Storage, StorageFile};

/// A sync of this length counts the writes behind it as delayed (`aof_delayed_fsync`), as in Redis.
const LONG_SYNC_US: u64 = LONG_WRITE_US;

/// The length of a sync up to which an event loop may sync by itself.
const SHORT_SYNC_US: u64 = 1000;

/// How many syncs the thread does after a client was served that waits for none.
const THREADED_SYNCS: u32 = 64;

/// The reason when the append-only file was switched off meanwhile.
const CLOSED: &str = "the files were closed";

/// Ends the process when the files cannot be relied on.
type OnFailure = Box<dyn Fn(&str) + Send + Sync>;

/// The append-only file of a server.
#[derive(Debug, Default)]
pub(crate) struct AofWriter {
    pub(super) progress: Arc<AofProgress>,
    files: Mutex<Option<AofFiles>>,
    log: Mutex<Option<Log>>,
    /// What the engine has handed over, and the log does not have yet.
    appended: Mutex<Appended>,
    pub(super) policy: Mutex<SyncPolicy>,
    /// The offset up to which replies may leave.
    released: AtomicU64,
    /// Whether a file is open, so that replies may have to wait.
    is_open: AtomicBool,
    /// Whether the last write failed: clients that write get an error, and replies leave unless they wait for a sync.
    pub(super) has_failed: AtomicBool,
    waiting: Mutex<Waiters>,
    /// Whether a task of one of the event loops is going to sync, or to order a sync, for all of them.
    is_sync_planned: AtomicBool,
    /// The number of syncs that are still left to the thread, as a client was served that waits for none.
    threaded_syncs: AtomicU32,
    /// The rules by which the disk may be slow; `None` in a server without the test kit.
    disk_faults: Option<DiskFaults>,
    /// Locked during a sync.
    sync_lock: Mutex<()>,
    /// The length of the last sync, in microseconds; 0 before the first.
    last_sync_us: AtomicU64,
    /// Wakes callers without a task.
    release: Condvar,
    /// Whether a task watches how long replies wait. Changed under the lock of `waiting`.
    is_watched: AtomicBool,
    /// Notified when the files are closed.
    closed: Notify,
    /// The base that a rewrite takes when the suspended script ends.
    pub(super) awaited_base: Mutex<Option<AwaitedBase>>,
    /// Whether the next write syncs a file that has ended.
    is_switching: AtomicBool,
    /// When the present write of the thread began, in microseconds of the monotonic clock, or the one before it, during
    /// which what it writes was appended; 0 while there is none.
    pub(super) write_began_us: AtomicU64,
    /// The beginning and the end of the thread's last write.
    pub(super) last_write_us: Mutex<(u64, u64)>,
    /// Writes; and syncs, with the policy `always`.
    pub(super) writing: DiskThread,
    /// Syncs, with the policy `everysec`.
    pub(super) syncing: DiskThread,
    pub(super) on_failure: Mutex<Option<OnFailureHook>>,
}

/// Called when a server with the policy `always` cannot write or sync.
pub(super) struct OnFailureHook(pub(super) OnFailure);

impl std::fmt::Debug for OnFailureHook {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("OnFailureHook")
    }
}

impl AofWriter {
    /// Makes the writer of a server whose disk may fail by these rules.
    pub(crate) fn new(disk_faults: Option<DiskFaults>) -> AofWriter {
        AofWriter { disk_faults, ..AofWriter::default() }
    }

    /// How far the files are, which the engine reads.
    pub(crate) fn progress(&self) -> &Arc<AofProgress> {
        &self.progress
    }

    /// Sets what is done when a server with the policy `always` cannot write or sync: Redis ends.
    #[cfg(feature = "program")]
    pub(crate) fn end_on_failure(&self, end: impl Fn(&str) + Send + Sync + 'static) {
        *self.on_failure.lock() = Some(OnFailureHook(Box::new(end)));
    }

    /// Makes the next incremental file for a rewrite, if changes go into the files. They are where the settings say,
    /// unless the stream goes into other ones already.
    ///
    /// # Errors
    /// The message why the files cannot be made, or that the rewrite was stopped.
    pub(crate) fn prepare_rewrite(
        &self,
        storage: &Arc<dyn Storage>,
        settings: &Settings,
        next: Option<NextFile>,
        commands: u64,
        is_stopped: &AtomicBool,
    ) -> Result<Option<Arc<dyn StorageFile>>, String> {
        let mut guard = self.files.lock();
        // Under the lock that the end of the files takes, so that none is made behind it.
        if is_stopped.load(Ordering::Acquire) {
            return Err(STOPPED.to_owned());
        }
        if self.log().is_none()
            && let Some(mut elsewhere) = guard.take_if(|files| *files.place() != place(settings))
        {
            elsewhere.abandon_first();
        }
        let files = match &mut *guard {
            Some(files) => files,
            None => guard.insert(open_files(storage, settings)?),
        };
        *self.policy.lock() = settings.files.syncs;
        let file = next.map(|next| next.create(files, commands)).transpose().map_err(|error| reason(&error))?;
        log_lines(files);
        Ok(file)
    }

    /// Where the base of the rewrite of that number is to be written.
    ///
    /// # Errors
    /// The files were closed.
    pub(crate) fn temporary_base(&self, rewrite: u64) -> Result<PathBuf, String> {
        let files = self.files.lock();
        files.as_ref().map(|files| files.temporary_base(rewrite)).ok_or_else(|| CLOSED.to_owned())
    }

    /// Puts the base of a rewrite in place. The files before it are removed, unless they are kept.
    ///
    /// # Errors
    /// The message why that fails, or that the rewrite was stopped; the files are then as before.
    pub(crate) fn publish_base(
        &self,
        base: &VerifiedBase,
        settings: &FileSettings,
        is_stopped: &AtomicBool,
    ) -> Result<(), String> {
        let mut guard = self.files.lock();
        // Under the lock that the next rewrite takes, so that the base never stands before that one's stream.
        if is_stopped.load(Ordering::Acquire) {
            return Err(STOPPED.to_owned());
        }
        let Some(files) = &mut *guard else { return Err(CLOSED.to_owned()) };
        files.publish_base(base, settings.keeps_history).map_err(|error| reason(&error))?;
        log_lines(files);
        let mut log = self.log();
        let bytes = files.to_load().iter().map(|file| file.bytes).sum();
        self.set_sizes(bytes, bytes);
        match log.as_mut() {
            Some(log) => log.relist(),
            // The append-only file is off: BGREWRITEAOF leaves a base.
            None => *guard = None,
        }
        drop(log);
        self.sync_soon();
        Ok(())
    }

    /// Closes the files of a rewrite that failed while the append-only file is off. If it was stopped, another one may
    /// have them.
    pub(crate) fn close_unpublished(&self, is_stopped: &AtomicBool) {
        let mut files = self.files.lock();
        if !is_stopped.load(Ordering::Acquire) && self.log().is_none() {
            *files = None;
        }
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

    /// Starts the stream with `file`, the last of `files`, and starts the threads.
    ///
    /// # Errors
    /// The system has no thread.
    pub(crate) fn open(
        self: &Arc<AofWriter>,
        shared: &Arc<Shared>,
        files: AofFiles,
        file: Arc<dyn StorageFile>,
        policy: SyncPolicy,
    ) -> io::Result<()> {
        self.start(shared)?;
        *self.policy.lock() = policy;
        *self.files.lock() = Some(files);
        *self.log.lock() = Some(Log::new(file, 0, true));
        self.is_open.store(true, Ordering::Release);
        Ok(())
    }

    /// Sets the size from which growth is measured, and the present size of all files, in bytes.
    pub(crate) fn set_sizes(&self, base_bytes: u64, total_bytes: u64) {
        self.progress.base_bytes.store(base_bytes, Ordering::Relaxed);
        self.progress.total_bytes.store(total_bytes, Ordering::Relaxed);
    }

    /// Sets the policy (`appendfsync`).
    pub(crate) fn set_policy(&self, policy: SyncPolicy) {
        *self.policy.lock() = policy;
        self.sync_soon();
    }

    /// Takes the new bytes of the engine's stream, with a checksum if the settings say so. Returns whether the stream
    /// needs a new base.
    #[must_use = "the files are to begin anew"]
    pub(crate) fn append(&self, engine: &mut Engine) -> bool {
        let stream = &mut engine.effects.propagation;
        if engine.settings.files.has_log_checksums {
            stream.add_checksum();
        }
        let needs_base = stream.take_into(self.appended.lock().bytes_mut());
        self.progress.appended.store(stream.offset(), Ordering::SeqCst);
        needs_base
    }

    /// Directs the stream into another file from now on. Called under the engine's lock, right after
    /// [`AofWriter::append`].
    pub(crate) fn switch(&self, file: Arc<dyn StorageFile>, next: NextFile) {
        let mut appended = self.appended.lock();
        appended.switch(file, next, self.progress.appended.load(Ordering::Acquire));
        self.is_switching.store(true, Ordering::SeqCst);
        drop(appended);
        self.is_open.store(true, Ordering::Release);
        self.writing.order(|orders| orders.writes = true);
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
        self.appended.lock().bytes_mut().extend_from_slice(&rest);
        self.write().map_err(|error| reason(&error))?;
        let listed = match &*self.files.lock() {
            Some(files) => files.to_load(),
            None => open_files(storage, settings)?.to_load(),
        };
        let open = |file: LogFile| {
            let bytes = storage.open(&file.path).map_err(|error| reason(&error))?;
            let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(AofSource { name, is_base: file.is_base, bytes })
        };
        listed.into_iter().map(open).collect()
    }

    /// Orders a sync, or another try to write.
    pub(crate) fn sync_soon(&self) {
        self.writing.order(|orders| (orders.writes, orders.syncs) = (true, true));
    }

    fn is_always(&self) -> bool {
        *self.policy.lock() == SyncPolicy::Always
    }

    /// Whether so much is unwritten that a client whose replies wait is to run no more requests.
    pub(crate) fn is_full(&self) -> bool {
        is_full(self.progress.unwritten())
    }

    /// Whether a reply may leave that depends on the stream up to `offset`. If not, `waker` is woken when it may.
    pub(crate) fn try_release(self: &Arc<AofWriter>, offset: u64, waker: &Waker) -> bool {
        if self.is_released(offset) || self.release_now(offset) {
            return true;
        }
        let watches = !self.is_always();
        if !watches {
            self.plan_sync();
        }
        let mut waiting = self.waiting.lock();
        waiting.add(offset, waker);
        if watches && !self.is_watched.swap(true, Ordering::Relaxed) {
            tokio::spawn(Arc::clone(self).watch());
        }
        drop(waiting);
        // It may have been released before the waker was there.
        self.is_released(offset)
    }

    /// Notes that a reply leaves that waits for no sync: there are clients whom a sync of their event loop would
    /// hinder.
    pub(crate) fn note_prompt_reply(&self) {
        if self.is_open.load(Ordering::Relaxed) && self.threaded_syncs.load(Ordering::Relaxed) != THREADED_SYNCS {
            self.threaded_syncs.store(THREADED_SYNCS, Ordering::Relaxed);
        }
    }

    /// Lets the event loop of the caller sync, or order a sync, when it has served the other connections that are
    /// ready.
    fn plan_sync(self: &Arc<AofWriter>) {
        if !self.is_sync_planned.swap(true, Ordering::SeqCst) {
            let sync = PlannedSync(Arc::clone(self));
            tokio::spawn(async move { drop(sync) });
        }
    }

    /// Waits until a reply may leave that depends on the stream up to `offset`.
    pub(crate) fn wait_released(&self, offset: u64) {
        if self.is_released(offset) || self.release_now(offset) {
            return;
        }
        if self.is_always() {
            self.sync_here_or_order();
        }
        let mut waiting = self.waiting.lock();
        while !self.is_released(offset) && (self.is_always() || !self.may_leave_unwritten()) {
            self.release.wait_for(&mut waiting, Duration::from_micros(PATIENCE_US));
        }
    }

    /// Wakes those that wait when replies may leave unwritten.
    async fn watch(self: Arc<AofWriter>) {
        loop {
            // Both outcomes mean the same: it may be time.
            let _ = timeout(Duration::from_micros(PATIENCE_US), self.closed.notified()).await;
            let mut waiting = self.waiting.lock();
            let may_leave = self.may_leave_unwritten();
            if may_leave {
                aof_waiters::wake(waiting.take(u64::MAX));
            }
            let wait_us = self.write_us().unwrap_or(0);
            if may_leave || waiting.is_empty() || wait_us >= LONG_WRITE_US || self.is_full() {
                self.is_watched.store(false, Ordering::Relaxed);
                return;
            }
        }
    }

    /// For how long the present write of the thread has taken; `None` while there is none.
    fn write_us(&self) -> Option<u64> {
        let began_us = Some(self.write_began_us.load(Ordering::SeqCst)).filter(|began_us| *began_us > 0)?;
        Some(monotonic_us().saturating_sub(began_us))
    }

    fn may_leave_unwritten(&self) -> bool {
        may_leave_unwritten(self.write_us(), self.progress.unwritten())
    }

    /// Counts the writes behind a sync that takes long as delayed, once for every two seconds.
    fn count_delay(&self) {
        let began_us = self.progress.sync_began_us.load(Ordering::SeqCst);
        let now_us = monotonic_us();
        let is_long = began_us > 0 && now_us.saturating_sub(began_us) >= LONG_SYNC_US;
        let counts =
            || self.progress.sync_began_us.compare_exchange(began_us, now_us, Ordering::SeqCst, Ordering::SeqCst);
        if is_long && counts().is_ok() {
            self.progress.delayed.fetch_add(1, Ordering::Relaxed);
            info!(
                "Asynchronous AOF fsync is taking too long (disk is busy?). Writing the AOF buffer without waiting for \
                 fsync to complete, this may slow down Redis."
            );
        }
    }

    /// Whether a reply may leave: what it depends on is where it has to be, or no file is open any more.
    fn is_released(&self, offset: u64) -> bool {
        self.released.load(Ordering::SeqCst) >= offset || !self.is_open.load(Ordering::SeqCst)
    }

    /// Writes what a reply depends on if this thread may do that now, and a write is all that the reply waits for;
    /// returns whether the reply may leave.
    fn release_now(&self, offset: u64) -> bool {
        if !self.is_open.load(Ordering::Acquire) || !(self.is_always() || self.is_disk_busy()) {
            if self.write().is_err() {
                // The thread tries again, and tells the engine.
                self.writing.order(|orders| orders.writes = true);
            }
            return self.is_released(offset);
        }
        if self.is_always() {
            return false;
        }
        self.writing.order(|orders| orders.writes = true);
        self.count_delay();
        self.is_released(offset) || self.may_leave_unwritten()
    }

    /// Whether a write may wait for the disk, as there is a sync, or a write that waits already.
    fn is_disk_busy(&self) -> bool {
        self.progress.is_syncing()
            || self.is_switching.load(Ordering::SeqCst)
            || self.write_began_us.load(Ordering::SeqCst) > 0
            || self.is_disk_slow()
    }

    /// Whether a rule of the test kit may make the disk slow. Then only the threads write and sync, so that all others
    /// are served, and the rule can be removed.
    fn is_disk_slow(&self) -> bool {
        self.disk_faults.as_ref().is_some_and(DiskFaults::may_delay)
    }

    /// Writes and syncs on this thread if syncs are short and none is in progress; otherwise, or if that fails, orders
    /// it from the thread, which tells the engine what fails.
    fn sync_here_or_order(&self) {
        // A client may have begun to wait for the sync by WAITAOF meanwhile, which the thread ends.
        if !self.sync_here() || self.progress.is_awaited() {
            self.writing.order(|orders| orders.writes = true);
        }
    }

    fn sync_here(&self) -> bool {
        let is_short = (1..=SHORT_SYNC_US).contains(&self.last_sync_us.load(Ordering::Relaxed));
        // Clients that wait by WAITAOF are told by the thread, so the sync is left to it.
        let may_sync = is_short && !self.progress.is_awaited() && !self.is_disk_slow();
        let Some(lock) = self.sync_lock.try_lock().filter(|_| may_sync) else { return false };
        self.write().is_ok() && self.sync_with(&lock).is_ok()
    }

    /// The log, with all that the engine has handed over.
    pub(super) fn log(&self) -> MutexGuard<'_, Option<Log>> {
        let mut log = self.log.lock();
        self.appended.lock().hand_over(&mut log);
        log
    }

    /// Writes what was appended.
    pub(super) fn write(&self) -> io::Result<()> {
        let mut guard = self.log();
        let Some(log) = guard.as_mut() else {
            self.release_to(self.progress.appended.load(Ordering::Acquire));
            return Ok(());
        };
        TestDelay::of_us(self.progress.delay_us.load(Ordering::Relaxed).cast_signed()).pause();
        let before = log.written_bytes();
        let result = log.write();
        self.progress.total_bytes.fetch_add(log.written_bytes() - before, Ordering::Relaxed);
        self.progress.written.store(log.written(), Ordering::Release);
        let appended = self.appended.lock();
        self.is_switching.store(log.is_switching() || appended.is_switching(), Ordering::SeqCst);
        drop(appended);
        let released = self.policy.lock().released_by_write(log, result.is_ok());
        released.into_iter().for_each(|offset| self.release_to(offset));
        result
    }

    /// Syncs what was written.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.sync_with(&self.sync_lock.lock())
    }

    fn sync_with(&self, _lock: &MutexGuard<'_, ()>) -> io::Result<()> {
        let Some(order) = self.log.lock().as_ref().and_then(Log::sync_order) else { return Ok(()) };
        if order.offset.is_some_and(|offset| offset <= self.progress.synced()) {
            return Ok(());
        }
        let start_us = monotonic_us();
        self.progress.sync_began_us.store(start_us, Ordering::SeqCst);
        let result = order.file.sync();
        self.progress.sync_began_us.store(0, Ordering::SeqCst);
        self.last_sync_us.store((monotonic_us() - start_us).max(1), Ordering::Relaxed);
        let durable = self.log.lock().as_mut().and_then(|log| log.note_sync(&order, &result));
        if let Some(offset) = durable {
            self.progress.synced.fetch_max(offset, Ordering::SeqCst);
            self.release_to(offset);
        }
        result
    }

    /// Releases the replies that depend on the stream up to `offset`: wakes the connections that wait for it.
    fn release_to(&self, offset: u64) {
        if self.released.fetch_max(offset, Ordering::SeqCst) >= offset {
            return;
        }
        let released = self.waiting.lock().take(offset);
        aof_waiters::wake(released);
        self.release.notify_all();
    }

    /// Writes, syncs and closes the files (`appendonly no`, the end of the server), and releases the clients that wait.
    /// `commands` is the number of commands in the stream; the manifest gets it as the end offset of the last file if
    /// all of it is synced.
    pub(crate) fn close(&self, commands: u64) {
        let written = self.write().and_then(|()| self.sync());
        if let Err(error) = &written {
            warn!("Fail to fsync the AOF file: {}.", reason(error));
        }
        self.is_open.store(false, Ordering::SeqCst);
        let log = self.log().take();
        let is_synced = written.is_ok() && log.is_some_and(|log| log.sync_error().is_none());
        if let Some(mut files) = self.files.lock().take() {
            if !is_synced {
                files.abandon_first();
            } else if let Err(error) = files.end(commands) {
                warn!("Fail to write the AOF manifest: {}.", reason(&error));
            }
        }
        self.release_to(self.progress.appended.load(Ordering::Acquire));
        // Where the data were replaced, replies wait for bytes that do not come any more.
        aof_waiters::wake(self.waiting.lock().take(u64::MAX));
        self.closed.notify_waiters();
    }
}

/// A sync that an event loop does, or orders, when it has served the connections that are ready, or when
/// that loop ends.
struct PlannedSync(Arc<AofWriter>);

impl Drop for PlannedSync {
    fn drop(&mut self) {
        let writer = &self.0;
        writer.is_sync_planned.store(false, Ordering::SeqCst);
        let threaded = writer.threaded_syncs.load(Ordering::Relaxed);
        if threaded > 0 {
            writer.threaded_syncs.store(threaded - 1, Ordering::Relaxed);
            writer.writing.order(|orders| orders.writes = true);
        } else {
            writer.sync_here_or_order();
        }
    }
}
