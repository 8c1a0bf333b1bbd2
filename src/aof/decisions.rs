//! The decisions about the append-only file: when replies may leave, what follows a write or its failure, which file a
//! rewrite goes on in, and what a start does with a torn end.
//!
//! Each follows from its arguments alone, without a thread or a clock. The server's threads carry them out, and the
//! simulator of crashes does so in any order that the threads could (`tests/support/crash`). When to rewrite, to sync
//! and to begin anew is decided by the engine ([`crate::engine::exec::aof`]), and what a failed sync means by the
//! [`Log`].

use std::io;
use std::sync::Arc;

use super::files::{AofFiles, LogFile};
use super::log::Log;
use super::scan::Tail;
use crate::storage::StorageFile;

/// When the append-only file is synced to the disk (`appendfsync`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before a change is acknowledged.
    Always,
    /// Once a second.
    #[default]
    EverySecond,
    /// When the system does it.
    Never,
}

impl SyncPolicy {
    /// The name of the policy, as `appendfsync` has it.
    pub fn name(self) -> &'static str {
        match self {
            SyncPolicy::Always => "always",
            SyncPolicy::EverySecond => "everysec",
            SyncPolicy::Never => "no",
        }
    }

    /// The policy of that name; every second for any other.
    pub fn named(name: &str) -> SyncPolicy {
        match name {
            "always" => SyncPolicy::Always,
            "no" => SyncPolicy::Never,
            _ => SyncPolicy::EverySecond,
        }
    }

    /// The sync that follows a write that has succeeded; `is_ordered` says whether one was ordered with it.
    pub fn sync_behind_write(self, is_ordered: bool) -> SyncBehind {
        match self {
            SyncPolicy::Always => SyncBehind::SameThread,
            SyncPolicy::EverySecond if is_ordered => SyncBehind::OtherThread,
            SyncPolicy::EverySecond | SyncPolicy::Never => SyncBehind::None,
        }
    }

    /// The offset up to which replies may leave as the log was written, or could not be; `None` if they wait for a
    /// sync.
    pub fn released_by_write(self, log: &Log, is_written: bool) -> Option<u64> {
        // Before the first base is in place, no sync makes anything durable, and nothing was promised.
        if self == SyncPolicy::Always && log.has_been_listed() {
            return None;
        }
        // When the disk takes no more, clients learn it from their next write.
        Some(if is_written { log.written() } else { log.appended() })
    }
}

/// The sync that follows a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncBehind {
    /// No sync follows the write.
    None,
    /// The thread that wrote syncs, too: replies wait for it.
    SameThread,
    /// Another thread syncs, so that writes go on meanwhile.
    OtherThread,
}

/// What follows from how a write, or a sync, has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfterWrite {
    /// Whether writes fail from now on, which the next one that succeeds heals.
    pub has_failed: bool,
    /// The last words of a program that cannot go on; a server within a test refuses writes instead.
    pub ends_program: Option<String>,
    /// Whether the engine has to know: something has failed, or works again.
    pub tells_engine: bool,
}

impl SyncPolicy {
    /// Decides what follows when a write, or a sync, has failed for a reason, or has not. `has_failed_sync` says
    /// whether any sync has failed, which only a new base heals, and `had_failed` whether the write before failed.
    pub fn after_write(self, failure: Option<&str>, has_failed_sync: bool, had_failed: bool) -> AfterWrite {
        let ends_program = failure.filter(|_| self == SyncPolicy::Always).map(|reason| {
            if has_failed_sync {
                format!("Can't persist AOF for fsync error when the AOF fsync policy is 'always': {reason}. Exiting...")
            } else {
                "Can't recover from AOF write error when the AOF fsync policy is 'always'. Exiting...".to_owned()
            }
        });
        AfterWrite {
            has_failed: failure.is_some() && !has_failed_sync,
            ends_program,
            tells_engine: failure.is_some() || had_failed,
        }
    }
}

/// The time that a reply waits for a write in progress before it may leave unwritten, in microseconds.
pub const PATIENCE_US: u64 = 1000;
/// The time that a write has to be in progress until replies wait for it again, in microseconds. Redis puts a write off
/// for as long while it syncs.
pub const LONG_WRITE_US: u64 = 2_000_000;
/// The bytes that may be unwritten. Clients that send more wait, each behind its next batch of requests.
const MAX_UNWRITTEN_BYTES: u64 = 64 << 20;

/// Whether so much is unwritten that a client whose replies wait is to run no more requests.
pub fn is_full(unwritten_bytes: u64) -> bool {
    unwritten_bytes >= MAX_UNWRITTEN_BYTES
}

/// Whether replies that wait for no sync leave before what they depend on is written: the disk is busy, but not for too
/// long yet. `write_us` is for how long a write has been in progress; `None` while there is none.
pub fn may_leave_unwritten(write_us: Option<u64>, unwritten_bytes: u64) -> bool {
    write_us.is_some_and(|us| (PATIENCE_US..LONG_WRITE_US).contains(&us)) && !is_full(unwritten_bytes)
}

/// The file that the stream of commands goes on in behind the base of a rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextFile {
    /// One that follows the present one. It is listed before the base is taken, so that the listed files have all
    /// changes whenever the server is killed.
    Following,
    /// One of an append-only file that begins anew: it was just switched on, or its files cannot be relied on. It is
    /// listed together with the base.
    Anew,
}

impl NextFile {
    /// Creates the file, which begins at `start_offset` in the manifest.
    ///
    /// # Errors
    /// The disk fails; the files are as before.
    pub fn create(self, files: &mut AofFiles, start_offset: u64) -> io::Result<Arc<dyn StorageFile>> {
        match self {
            NextFile::Following => files.next_incr(start_offset),
            NextFile::Anew => files.first_incr(start_offset),
        }
    }

    /// Directs what is appended from now on into the file.
    pub fn direct(self, file: Arc<dyn StorageFile>, log: &mut Log) {
        match self {
            NextFile::Following => log.switch(file),
            NextFile::Anew => log.restart(file),
        }
    }
}

/// Why a file whose end is torn is not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TornEnd {
    /// The settings do not allow it (`aof-load-truncated no`).
    NotAllowed,
    /// Other files follow: what was torn is not the end of the stream.
    NotLast,
}

/// Checks that a file with that end may be loaded, up to where it is whole.
///
/// # Errors
/// The reason why it may not.
pub fn check_tail(tail: Tail, file: &LogFile, loads_truncated: bool) -> Result<(), TornEnd> {
    match tail {
        Tail::Clean => Ok(()),
        _ if !loads_truncated => Err(TornEnd::NotAllowed),
        _ if !file.is_last => Err(TornEnd::NotLast),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::storage::Storage;
    use crate::storage::simulated::SimulatedDisk;

    /// A log of one file with five bytes, of which two are written.
    fn log(disk: &SimulatedDisk, is_listed: bool) -> Log {
        let mut log = Log::new(disk.create(Path::new("log")).expect("the disk works"), 0, is_listed);
        log.append(|out| out.extend_from_slice(b"ab"));
        log.write().expect("the disk works");
        log.append(|out| out.extend_from_slice(b"cde"));
        log
    }

    #[test]
    fn a_write_releases_what_is_written_and_with_always_nothing_once_syncs_count() {
        let disk = SimulatedDisk::new();
        for (policy, is_listed, is_written, released) in [
            (SyncPolicy::EverySecond, true, true, Some(2)),
            (SyncPolicy::Never, true, true, Some(2)),
            (SyncPolicy::EverySecond, true, false, Some(5)),
            (SyncPolicy::Always, true, true, None),
            (SyncPolicy::Always, true, false, None),
            (SyncPolicy::Always, false, true, Some(2)),
        ] {
            let log = log(&disk, is_listed);
            assert_eq!(policy.released_by_write(&log, is_written), released, "{policy:?} {is_listed} {is_written}");
        }
        let mut begun_anew = log(&disk, true);
        NextFile::Anew.direct(disk.create(Path::new("next")).expect("the disk works"), &mut begun_anew);
        let released = SyncPolicy::Always.released_by_write(&begun_anew, true);
        assert_eq!(released, None, "what was promised before holds until the new base is in place");
    }

    #[test]
    fn replies_leave_unwritten_between_a_millisecond_and_two_seconds_unless_too_much_is_unwritten() {
        let waits = [None, Some(PATIENCE_US - 1), Some(PATIENCE_US), Some(LONG_WRITE_US - 1), Some(LONG_WRITE_US)];
        assert_eq!(waits.map(|us| may_leave_unwritten(us, 0)), [false, false, true, true, false]);
        let unwritten = [MAX_UNWRITTEN_BYTES - 1, MAX_UNWRITTEN_BYTES];
        assert_eq!(unwritten.map(|bytes| may_leave_unwritten(Some(PATIENCE_US), bytes)), [true, false]);
    }

    #[test]
    fn always_syncs_behind_each_write_and_every_second_as_ordered_beside_it() {
        let behind = |policy: SyncPolicy| [false, true].map(|is_ordered| policy.sync_behind_write(is_ordered));
        assert_eq!(behind(SyncPolicy::Always), [SyncBehind::SameThread; 2]);
        assert_eq!(behind(SyncPolicy::EverySecond), [SyncBehind::None, SyncBehind::OtherThread]);
        assert_eq!(behind(SyncPolicy::Never), [SyncBehind::None; 2]);
    }

    #[test]
    fn the_engine_learns_of_failures_and_that_writes_work_again_and_a_program_that_syncs_always_ends() {
        for (failure, has_failed_sync, had_failed, has_failed, tells_engine) in [
            (None, false, false, false, false),
            (Some("full"), false, false, true, true),
            (Some("full"), false, true, true, true),
            (None, false, true, false, true),
            (Some("lost"), true, false, false, true),
            (Some("lost"), true, true, false, true),
        ] {
            for policy in [SyncPolicy::Always, SyncPolicy::EverySecond, SyncPolicy::Never] {
                let after = policy.after_write(failure, has_failed_sync, had_failed);
                assert_eq!((after.has_failed, after.tells_engine), (has_failed, tells_engine), "{failure:?}");
                let ends = policy == SyncPolicy::Always && failure.is_some();
                assert_eq!(after.ends_program.is_some(), ends, "{policy:?} {failure:?}");
            }
        }
    }

    #[test]
    fn a_torn_end_is_loaded_of_the_last_file_alone_and_if_that_is_allowed() {
        let file = |is_last| LogFile { path: PathBuf::new(), is_base: false, is_last, bytes: 0 };
        assert_eq!(check_tail(Tail::Clean, &file(false), false), Ok(()));
        assert_eq!(check_tail(Tail::Truncated, &file(true), true), Ok(()));
        assert_eq!(check_tail(Tail::Truncated, &file(true), false), Err(TornEnd::NotAllowed));
        assert_eq!(check_tail(Tail::Zeros, &file(false), true), Err(TornEnd::NotLast));
    }
}
