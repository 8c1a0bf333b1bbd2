//! State of saving and loading the data, for INFO, LASTSAVE, the save points and the gates.
//!
//! Not here: the settings (`save`, `dbfilename` and so on are [`Settings`]), the count of changes
//! (`Stats::changes`), and the file itself, which the host has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::spec::{CommandId, Now, ServerError};
use crate::engine::state::{Aof, Checkpoint, Lazy, SessionId, Settings};

/// The seconds after a save that failed before a save point tries again.
const RETRY_S: i64 = 5;

/// The state of saving and loading.
#[derive(Debug)]
pub struct Persistence {
    /// The moment of the last save that succeeded, or of the start.
    pub last_save: Now,
    /// The moment at which the last BGSAVE began.
    last_try: Option<Now>,
    /// Whether the last BGSAVE succeeded.
    pub is_last_ok: bool,
    /// The seconds that the last BGSAVE took.
    pub last_save_s: Option<i64>,
    /// The time that the checkpoint of the last BGSAVE took, in microseconds: what Redis calls a fork.
    pub last_checkpoint_us: u64,
    /// The bytes that were copied during the last BGSAVE, as they changed.
    pub last_copied_bytes: usize,
    /// The number of saves by SAVE and BGSAVE that succeeded.
    pub saves: u64,
    /// The count of changes at the last save.
    saved_changes: u64,
    /// The number of checkpoints so far.
    checkpoints: u64,
    /// The save in progress on a thread.
    pub saving: Option<Box<Saving>>,
    /// The clients that wait for the next save (SAVE), because the one in progress began before they asked.
    pub next_waits: Vec<SaveWait>,
    /// A BGSAVE is to begin as soon as possible.
    pub is_scheduled: bool,
    /// The file that is being loaded.
    pub loading: Option<Box<Loading>>,
    /// The counts of the last load.
    pub loaded: LoadCounts,
    /// The append-only file.
    pub aof: Lazy<Aof>,
    /// The end of the server.
    pub shutdown: Shutdown,
}

/// The end of the server, as far as it has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shutdown {
    /// It was requested while nothing runs that falls due (DEBUG PAUSE-CRON); it happens when that is over.
    pub is_pending: bool,
    /// The data were saved for it, or the append-only file is about to be closed: no request runs any more, as what it
    /// changes would be in no file.
    pub has_begun: bool,
}

/// A client that waits until the data are saved (SAVE).
#[derive(Clone, Copy, Debug)]
pub struct SaveWait {
    /// Its session.
    pub session: SessionId,
    /// The command in which it waits.
    pub command: CommandId,
}

/// A save in progress on a thread.
#[derive(Clone, Debug)]
pub struct Saving {
    /// The number of its checkpoint.
    id: u64,
    /// The moment at which it began.
    pub began: Now,
    /// The count of changes at that moment.
    changes: u64,
    /// The number of keys to be saved.
    pub keys: usize,
    /// The number of keys that were saved, which the thread that saves them counts.
    saved_keys: Arc<AtomicUsize>,
    /// The clients that wait for it; none wait for a BGSAVE.
    pub waits: Vec<SaveWait>,
}

impl Saving {
    /// Whether clients wait for it: it is a SAVE, not a BGSAVE.
    pub fn is_awaited(&self) -> bool {
        !self.waits.is_empty()
    }

    /// The number of keys that were saved.
    pub fn saved_keys(&self) -> usize {
        self.saved_keys.load(Ordering::Relaxed)
    }

    /// The part of the keys that was saved, from 0 to 100.
    pub fn percent(&self) -> f64 {
        100.0 * self.saved_keys() as f64 / self.keys.max(1) as f64
    }
}

/// A file that is being loaded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loading {
    /// The moment at which that began.
    pub began: Now,
    /// The bytes of the file.
    pub total_bytes: u64,
    /// The bytes that were loaded.
    pub loaded_bytes: u64,
    /// The memory that the data took when the file was written, or 0.
    pub used_bytes: u64,
}

impl Loading {
    /// The part of the file that was loaded, from 0 to 100.
    pub fn percent(&self) -> f64 {
        100.0 * self.loaded_bytes as f64 / self.total_bytes.max(1) as f64
    }

    /// The seconds until the whole file is loaded, as far as the time so far tells.
    pub fn eta_s(&self, now: Now) -> i64 {
        let elapsed_s = now.unix_s() - self.began.unix_s();
        let rest = self.total_bytes.saturating_sub(self.loaded_bytes) as f64;
        if elapsed_s == 0 || self.loaded_bytes == 0 {
            1
        } else {
            (elapsed_s as f64 * rest / self.loaded_bytes as f64) as i64
        }
    }
}

/// The counts of loading a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadCounts {
    /// The keys that were loaded; of an append-only file only those of its base.
    pub keys: u64,
    /// The keys that had expired.
    pub expired: u64,
    /// The collections without elements, which were skipped.
    pub empty: u64,
    /// The changes by commands of an append-only file, which no RDB file has.
    pub unsaved: u64,
}

impl Persistence {
    /// That of a server that starts at `now`.
    pub(in crate::engine) fn starting_at(now: Now) -> Persistence {
        Persistence {
            last_save: now,
            last_try: None,
            is_last_ok: true,
            last_save_s: None,
            last_checkpoint_us: 0,
            last_copied_bytes: 0,
            saves: 0,
            saved_changes: 0,
            checkpoints: 0,
            saving: None,
            next_waits: Vec::new(),
            is_scheduled: false,
            loading: None,
            loaded: LoadCounts::default(),
            aof: Lazy::default(),
            shutdown: Shutdown::default(),
        }
    }

    /// The changes since the last save, of all `changes`.
    pub fn unsaved(&self, changes: u64) -> u64 {
        changes.saturating_sub(self.saved_changes)
    }

    /// Forgets the changes so far: they came from a file, or are the data of one.
    pub(in crate::engine) fn forget_changes(&mut self, changes: u64) {
        self.saved_changes = changes;
    }

    /// Notes a save of the data as they were after that number of changes.
    pub(in crate::engine) fn saved(&mut self, changes: u64, now: Now) {
        self.saved_changes = changes;
        self.last_save = now;
        self.is_last_ok = true;
    }

    /// Notes that a save begins on a thread, for which these clients wait: none for a BGSAVE.
    pub(in crate::engine) fn begin_saving(
        &mut self,
        changes: u64,
        checkpoint: &Checkpoint,
        now: Now,
        waits: Vec<SaveWait>,
    ) {
        if waits.is_empty() {
            self.is_scheduled = false;
            self.last_try = Some(now);
        }
        let saved_keys = Arc::clone(&checkpoint.saved_keys);
        let keys = checkpoint.len();
        self.saving = Some(Box::new(Saving { id: checkpoint.id(), began: now, changes, keys, saved_keys, waits }));
    }

    /// The number of a new checkpoint.
    pub(in crate::engine) fn next_checkpoint(&mut self) -> u64 {
        self.checkpoints += 1;
        self.checkpoints
    }

    /// Notes that the save of that number has ended; `None` if it is not the one in progress, because that was stopped.
    pub(in crate::engine) fn end_saving(&mut self, id: u64, is_ok: bool, now: Now) -> Option<Box<Saving>> {
        let saving = self.saving.take_if(|saving| saving.id == id)?;
        if !saving.is_awaited() {
            self.is_last_ok = is_ok;
            self.last_save_s = Some(now.unix_s() - saving.began.unix_s());
        }
        if is_ok {
            self.saved(self.saved_changes.max(saving.changes), now);
            self.saves += 1;
        }
        Some(saving)
    }

    /// Notes that the save in progress was stopped, and returns its number. Clients that wait for it wait for the next
    /// one.
    pub(in crate::engine) fn stop_saving(&mut self) -> Option<u64> {
        let saving = self.saving.take()?;
        self.next_waits.splice(..0, saving.waits);
        Some(saving.id)
    }

    /// Whether a session waits for a save.
    pub fn awaits_save(&self, session: SessionId) -> bool {
        let waits = self.saving.iter().flat_map(|saving| &saving.waits).chain(&self.next_waits);
        waits.into_iter().any(|wait| wait.session == session)
    }

    /// The moment at which the next BGSAVE is to begin: at once if one is scheduled, or when the first save point is
    /// reached. As in Redis, more than its seconds must have passed, whole seconds of the clock.
    pub fn next_save(&self, settings: &Settings, changes: u64) -> Option<Now> {
        if self.saving.is_some() || self.loading.is_some() || self.aof.rewrite.is_some() {
            return None;
        }
        if self.is_scheduled {
            return Some(Now::from_us(i64::MIN));
        }
        let unsaved = self.unsaved(changes);
        let reached = settings.files.save_points.iter().filter(|point| unsaved > 0 && unsaved >= point.changes);
        let first_s = reached.map(|point| self.last_save.unix_s().saturating_add(point.seconds)).min()?;
        let retry_s = self.last_try.filter(|_| !self.is_last_ok).map_or(i64::MIN, |last| last.unix_s() + RETRY_S);
        Now::from_ms(first_s.max(retry_s).saturating_add(1).saturating_mul(1000))
    }

    /// The error with which writes are refused while the data cannot be saved.
    pub fn disk_error(&self, settings: &Settings) -> Option<ServerError> {
        if self.refuses_writes(settings) {
            return Some(ServerError::NotSaved);
        }
        self.aof.write_error.as_ref().map(|reason| ServerError::NotAppended(reason.clone()))
    }

    /// Whether writes are refused because the last BGSAVE failed.
    pub fn refuses_writes(&self, settings: &Settings) -> bool {
        !self.is_last_ok && settings.files.stops_writes && !settings.files.save_points.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::state::{FileSettings, SavePoint};

    fn at(second: i64) -> Now {
        Now::from_us(second * 1_000_000)
    }

    fn settings(points: &[(i64, u64)]) -> Settings {
        let save_points = points.iter().map(|&(seconds, changes)| SavePoint { seconds, changes }).collect();
        Settings { files: Arc::new(FileSettings { save_points, ..FileSettings::default() }), ..Settings::default() }
    }

    fn checkpoint() -> Checkpoint {
        Checkpoint::new(1, Vec::new(), Vec::new(), &Settings::default(), at(0), 0)
    }

    #[test]
    fn the_first_save_point_that_is_reached_counts_and_its_seconds_must_have_passed() {
        let (persistence, settings) = (Persistence::starting_at(at(100)), settings(&[(60, 10), (300, 1)]));
        assert_eq!(persistence.next_save(&settings, 0), None);
        assert_eq!(persistence.next_save(&settings, 1), Some(at(401)));
        assert_eq!(persistence.next_save(&settings, 10), Some(at(161)));
        assert_eq!(persistence.next_save(&Settings::default(), 10), None);
    }

    #[test]
    fn changes_during_a_save_count_for_the_next_one() {
        let mut persistence = Persistence::starting_at(at(0));
        persistence.begin_saving(7, &checkpoint(), at(10), Vec::new());
        assert_eq!(persistence.next_save(&settings(&[(1, 1)]), 9), None);
        persistence.end_saving(1, true, at(12));
        assert_eq!((persistence.unsaved(9), persistence.last_save_s), (2, Some(2)));
    }

    #[test]
    fn a_failed_save_is_tried_again_after_five_seconds_and_refuses_writes_until_one_succeeds() {
        let (mut persistence, settings) = (Persistence::starting_at(at(0)), settings(&[(1, 1)]));
        persistence.begin_saving(1, &checkpoint(), at(2), Vec::new());
        persistence.end_saving(1, false, at(2));
        assert_eq!(persistence.next_save(&settings, 1), Some(at(8)));
        assert!(persistence.refuses_writes(&settings));
        let mut lenient = settings.clone();
        lenient.files_mut().stops_writes = false;
        assert!(!persistence.refuses_writes(&lenient));
        assert!(!persistence.refuses_writes(&Settings::default()));
        persistence.saved(1, at(3));
        assert!(!persistence.refuses_writes(&settings));
    }
}
