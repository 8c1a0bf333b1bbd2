//! State of the append-only file (AOF): whether it is on, how far it is written, and its rewrites.
//!
//! Not here: the settings ([`crate::engine::FileSettings`]), the stream of commands ([`super::Propagation`]), and the
//! files, which the host has. How far these are is in [`AofProgress`], which the host's threads update.
//!
//! Offsets are bytes of the stream of commands, counted since the server started.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::aof::decisions::NextFile;
use crate::engine::spec::{CommandId, Now};
use crate::engine::state::lazy::Unused;
use crate::engine::state::unsynced_keys::UnsyncedKeys;
use crate::engine::state::{FileSettings, SessionId, SyncPolicy};

/// The time between two syncs of the policy `everysec`, in microseconds.
const SYNC_US: i64 = 1_000_000;
/// The time after which a write that failed is tried again, in microseconds.
const RETRY_US: i64 = 100_000;
/// The time between the beginnings of two tries to heal the files by a new base, in microseconds.
const HEAL_US: i64 = 500_000;
/// The number of rewrites that fail in a row before the next one waits.
const FAILURES_BEFORE_WAIT: u64 = 3;
/// The longest wait between two rewrites, in minutes.
const LONGEST_WAIT_MINUTES: u64 = 60;

/// Whether changes go into the append-only file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AofState {
    /// Changes are not recorded.
    #[default]
    Off,
    /// Changes will be recorded once the data of this moment are saved as the base: the file was switched on while the
    /// server ran, or has to begin anew.
    WaitsForBase,
    /// Changes are recorded.
    On,
}

impl AofState {
    /// The file that the stream goes on in behind the base of a rewrite; `None` if changes are not recorded.
    pub fn next_file(self) -> Option<NextFile> {
        match self {
            AofState::Off => None,
            AofState::WaitsForBase => Some(NextFile::Anew),
            AofState::On => Some(NextFile::Following),
        }
    }
}

/// The state of the append-only file.
#[derive(Debug, Default)]
pub struct Aof {
    /// Whether changes go into it.
    pub state: AofState,
    /// The rewrite in progress.
    pub rewrite: Option<Rewrite>,
    /// A rewrite is to begin as soon as possible.
    pub rewrite_scheduled: bool,
    /// The seconds that the last rewrite took.
    pub last_rewrite_s: Option<i64>,
    /// The last rewrite failed.
    pub last_rewrite_failed: bool,
    /// The number of rewrites that began.
    pub rewrites_begun: u64,
    /// The number of rewrites that failed since one succeeded.
    pub rewrite_failures: u64,
    /// The bytes that were copied during the last rewrite, as they changed.
    pub last_copied_bytes: usize,
    /// Why the last write failed; writing commands are refused meanwhile.
    pub write_error: Option<String>,
    /// A sync has failed: writes are refused until a new base is in place.
    pub needs_base: bool,
    /// How far the files are.
    pub progress: Arc<AofProgress>,
    /// The keys that a reply under `appendfsync always` must not show yet.
    pub(in crate::engine) unsynced: UnsyncedKeys,
    /// The offset up to which the files have to be synced before the replies of the batch that is running may leave.
    awaited_offset: u64,
    /// The first offset behind the base of data that were replaced (DUNLIN ROLLBACK): with `always`, no reply leaves
    /// until it is synced. 0 for none.
    replaced_data_offset: u64,
    /// The moment before which no rewrite begins by itself, as several failed.
    not_before: Option<Now>,
    /// The moment of the last sync that was ordered, or of the last write that failed.
    last_order: Now,
    /// The clients that wait for a sync (WAITAOF).
    waiting: Vec<SyncWait>,
}

/// A rewrite in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// The number of the rewrite, counted from 1.
    pub id: u64,
    /// The moment at which it began.
    pub began: Now,
    /// The number of commands of the stream at that moment.
    pub commands: u64,
    /// Whether its base is to be taken when the suspended script ends.
    pub(in crate::engine) awaits_script: bool,
}

/// A client that waits until the files are synced up to the offset of its last write.
#[derive(Clone, Copy, Debug)]
pub struct SyncWait {
    /// The client.
    pub session: SessionId,
    /// The command that waits.
    pub command: CommandId,
    /// The offset behind its last write.
    pub offset: u64,
    /// Whether the sync ends the wait; if not, it only changes the reply at the timeout.
    pub ends: bool,
}

/// How far the stream is written to the files. Threads of the host update it, without the engine's lock.
#[derive(Debug, Default)]
pub struct AofProgress {
    /// The offset up to which the stream was handed to the files.
    pub appended: AtomicU64,
    /// The offset up to which they are written.
    pub written: AtomicU64,
    /// The offset up to which they are synced.
    pub synced: AtomicU64,
    /// The bytes of all files after the last rewrite; before it, those of the base at the start.
    pub base_bytes: AtomicU64,
    /// The bytes of all files.
    pub total_bytes: AtomicU64,
    /// When the sync in progress began, or writes behind it last counted as delayed, in microseconds of the monotonic
    /// clock; 0 while there is none.
    pub sync_began_us: AtomicU64,
    /// How often writes were behind a sync that took two seconds, or that much longer.
    pub delayed: AtomicU64,
    /// Microseconds to pause before each write, for tests (DEBUG AOF-FLUSH-SLEEP).
    pub delay_us: AtomicU64,
    /// Whether a client waits for a sync (WAITAOF).
    is_awaited: AtomicBool,
}

impl Unused for Aof {
    fn unused() -> &'static Aof {
        static UNUSED: OnceLock<Aof> = OnceLock::new();
        UNUSED.get_or_init(Aof::default)
    }
}

impl AofProgress {
    /// The offset up to which the stream was handed to the files.
    pub fn appended(&self) -> u64 {
        self.appended.load(Ordering::Acquire)
    }

    /// The offset up to which the files are synced.
    pub fn synced(&self) -> u64 {
        self.synced.load(Ordering::SeqCst)
    }

    /// Whether a sync is in progress.
    pub fn is_syncing(&self) -> bool {
        self.sync_began_us.load(Ordering::SeqCst) > 0
    }

    /// Whether a client waits for a sync.
    pub fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::SeqCst)
    }

    /// The bytes that were handed over and are not written.
    pub fn unwritten(&self) -> u64 {
        self.appended.load(Ordering::Relaxed).saturating_sub(self.written.load(Ordering::Relaxed))
    }
}

impl Aof {
    /// Whether it is on, or is being switched on.
    pub fn is_on(&self) -> bool {
        self.state != AofState::Off
    }

    /// Notes that a rewrite begins; returns its number.
    pub(in crate::engine) fn begin_rewrite(&mut self, now: Now, commands: u64) -> u64 {
        self.rewrite_scheduled = false;
        self.rewrites_begun += 1;
        self.rewrite = Some(Rewrite { id: self.rewrites_begun, began: now, commands, awaits_script: false });
        self.rewrites_begun
    }

    /// Whether the rewrite of that number is the one in progress: others were stopped.
    pub(in crate::engine) fn is_rewriting(&self, id: u64) -> bool {
        self.rewrite.is_some_and(|rewrite| rewrite.id == id)
    }

    /// Notes the end of the rewrite in progress. Returns the minutes until the next one may begin by itself, if that
    /// changed.
    pub(in crate::engine) fn end_rewrite(&mut self, has_failed: bool, now: Now) -> Option<u64> {
        let rewrite = self.rewrite.take()?;
        self.last_rewrite_s = Some(now.unix_s() - rewrite.began.unix_s());
        self.last_rewrite_failed = has_failed;
        if !has_failed {
            (self.rewrite_failures, self.not_before) = (0, None);
            return None;
        }
        if self.state == AofState::WaitsForBase && self.write_error.is_some() {
            // Writing commands are refused until there is a base, so it is tried again soon. Counted from the
            // beginning: where the clock is moved by hand, the failure may be reported after the next try is due.
            self.not_before = Some(Now::from_us(rewrite.began.unix_us.saturating_add(HEAL_US)));
            return None;
        }
        self.rewrite_failures += 1;
        // Redis waits after the third failure for a minute, then for twice as long each time.
        let waits = self.rewrite_failures.checked_sub(FAILURES_BEFORE_WAIT)?;
        let minutes = 1_u64.checked_shl(waits.try_into().unwrap_or(u32::MAX)).unwrap_or(u64::MAX);
        let minutes = minutes.min(LONGEST_WAIT_MINUTES);
        self.not_before = Some(Now::from_us(now.unix_us.saturating_add(minutes as i64 * 60 * SYNC_US)));
        Some(minutes)
    }

    /// Forgets why writes were refused: the file is switched on or off.
    pub(in crate::engine) fn forget_error(&mut self) {
        self.write_error = None;
        self.needs_base = false;
    }

    /// Forgets that rewrites failed: a user asks for the next one.
    pub(in crate::engine) fn forget_failures(&mut self) {
        (self.rewrite_failures, self.not_before) = (0, None);
    }

    /// The moment at which the next rewrite is to begin by itself.
    pub(in crate::engine) fn next_rewrite(&self, files: &FileSettings, now: Now) -> Option<Now> {
        if self.rewrite.is_some() || !(self.rewrite_scheduled || self.growth_percent(files).is_some()) {
            return None;
        }
        Some(self.not_before.map_or(now, |moment| moment.max(now)))
    }

    /// By how much the files have grown since the last rewrite, in percent of the base, if that asks for another one.
    pub(in crate::engine) fn growth_percent(&self, files: &FileSettings) -> Option<u64> {
        let total_bytes = self.progress.total_bytes.load(Ordering::Relaxed);
        if self.state != AofState::On || files.rewrite_percent == 0 || total_bytes <= files.rewrite_from_bytes {
            return None;
        }
        let base_bytes = self.progress.base_bytes.load(Ordering::Relaxed).max(1);
        let growth = (u128::from(total_bytes) * 100 / u128::from(base_bytes)).saturating_sub(100);
        let growth = u64::try_from(growth).unwrap_or(u64::MAX);
        (growth >= files.rewrite_percent).then_some(growth)
    }

    /// The moment of the next order to sync, or to try a write again.
    pub(in crate::engine) fn next_sync(&self, files: &FileSettings) -> Option<Now> {
        if self.state != AofState::On {
            return None;
        }
        if self.write_error.is_some() {
            return Some(Now::from_us(self.last_order.unix_us.saturating_add(RETRY_US)));
        }
        let has_unsynced = self.progress.appended.load(Ordering::Relaxed) > self.progress.synced();
        // With `always`, the clients that wait have it synced; what nobody waits for is synced each second, too.
        let is_due = files.syncs != SyncPolicy::Never && has_unsynced;
        // A sync that is in progress does not count: what it leaves unsynced needs another one.
        is_due.then(|| Now::from_us(self.last_order.unix_us.saturating_add(SYNC_US)))
    }

    /// Notes that the files were ordered to sync, or to write again.
    pub(in crate::engine) fn ordered(&mut self, now: Now) {
        self.last_order = now;
    }

    /// Holds the replies of the running batch until the files are synced up to an offset.
    pub(in crate::engine) fn hold_replies(&mut self, offset: u64) {
        self.awaited_offset = self.awaited_offset.max(offset);
    }

    /// Notes that the data were replaced, so that the files have nothing of them until a new base is in place.
    pub(in crate::engine) fn replace_data(&mut self) {
        self.replaced_data_offset = self.progress.appended() + 1;
    }

    /// Whether the stream, which is at `offset`, has nothing yet that replies wait for since the data were replaced.
    pub(in crate::engine) fn lacks_replaced(&self, offset: u64) -> bool {
        self.replaced_data_offset > offset
    }

    /// Lets replies stop waiting for replaced data: the file is switched off.
    pub(in crate::engine) fn forget_replaced(&mut self) {
        self.replaced_data_offset = 0;
    }

    /// Whether the files wait for a new base because a sync has failed, or the data were replaced.
    pub(in crate::engine) fn begins_anew(&self) -> bool {
        self.state == AofState::WaitsForBase && (self.needs_base || self.replaced_data_offset > 0)
    }

    /// The offset that replies wait for since the data were replaced; 0 if they are durable.
    pub(in crate::engine) fn unsynced_replaced(&self) -> u64 {
        if self.replaced_data_offset > self.progress.synced() { self.replaced_data_offset } else { 0 }
    }

    /// The offset before which the replies of the batch that ends here may not leave; 0 if they may at once.
    pub fn end_batch(&mut self, files: &FileSettings) -> u64 {
        let awaited = std::mem::take(&mut self.awaited_offset);
        match files.syncs {
            SyncPolicy::Always => awaited.min(self.progress.appended()).max(self.awaited_replaced()),
            // Nobody waits for the disk, but each client has written what was appended before it gets a reply.
            SyncPolicy::EverySecond | SyncPolicy::Never => self.progress.appended(),
        }
    }

    /// The offset before which nothing may leave that may show any change so far.
    pub fn last_offset(&self, files: &FileSettings) -> u64 {
        match files.syncs {
            SyncPolicy::Always => self.progress.appended().max(self.awaited_replaced()),
            SyncPolicy::EverySecond | SyncPolicy::Never => self.progress.appended(),
        }
    }

    /// The offset that replies wait for since the data were replaced, with `always`; 0 for none.
    fn awaited_replaced(&self) -> u64 {
        // While the disk fails, changes are refused and reads go on.
        if self.write_error.is_none() { self.unsynced_replaced() } else { 0 }
    }

    /// Makes a client wait until the files are synced up to an offset.
    pub(in crate::engine) fn wait(&mut self, wait: SyncWait) {
        self.waiting.retain(|other| other.session != wait.session);
        self.waiting.push(wait);
        self.progress.is_awaited.store(true, Ordering::SeqCst);
    }

    /// Forgets the wait of a client that has disconnected.
    pub(in crate::engine) fn forget_wait(&mut self, session: SessionId) {
        self.waiting.retain(|wait| wait.session != session);
        self.progress.is_awaited.store(!self.waiting.is_empty(), Ordering::SeqCst);
    }

    /// Whether the files have all changes up to an offset. Without a base they have nothing.
    pub(in crate::engine) fn has_synced(&self, offset: u64) -> bool {
        self.state == AofState::On && self.progress.synced() >= offset
    }

    /// The clients whose writes are synced, which wait no longer.
    pub(in crate::engine) fn take_synced(&mut self) -> Vec<SyncWait> {
        if self.state != AofState::On {
            return Vec::new();
        }
        let synced = self.progress.synced();
        let done = self.waiting.extract_if(.., |wait| wait.offset <= synced).collect();
        self.progress.is_awaited.store(!self.waiting.is_empty(), Ordering::SeqCst);
        done
    }

    /// All clients that wait.
    pub(in crate::engine) fn take_waiting(&mut self) -> Vec<SyncWait> {
        self.progress.is_awaited.store(false, Ordering::SeqCst);
        std::mem::take(&mut self.waiting)
    }
}
