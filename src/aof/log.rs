//! The open end of the append-only file: its last incremental file, and the bytes of the stream not yet written to it.
//!
//! A write that fails loses nothing: the bytes stay here, and the next write begins with those that the file lacks. A
//! rewrite switches to the next file at an offset of the stream. The file before it is synced first, so that no later
//! byte is durable before an earlier one.
//!
//! A sync that fails is final: what it should have made durable may be lost, and no later sync brings it back. So the
//! file is never synced again, and nothing more counts as durable until a new base is in place ([`Log::relist`]). The
//! system reports a failure only once for each open file. So a sync on one thread may succeed just after one on another
//! thread has failed; that success does not count either ([`Log::note_sync`]).
//!
//! Offsets are bytes of the stream of commands ([`crate::engine::Propagation::offset`]).

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use crate::storage::StorageFile;

/// The open end of the append-only file.
#[derive(Debug)]
pub struct Log {
    file: Arc<dyn StorageFile>,
    /// Whether the manifest lists the file: only then is what is synced also found after a crash.
    is_listed: bool,
    /// Whether an earlier file was listed: then replies waited for durability, and must do so again.
    was_listed: bool,
    /// Bytes that no file has yet.
    unwritten: Vec<u8>,
    /// The offset behind those bytes.
    appended: u64,
    /// The files that come next, each with the offset at which it begins. The manifest lists them.
    next: VecDeque<(u64, Arc<dyn StorageFile>)>,
    /// The bytes that were written to the files.
    written_bytes: u64,
    sync_error: Option<String>,
    /// How many syncs have failed, of this file and of those before it.
    failed_syncs: u64,
}

/// A sync that is to be done: of this file, up to that offset.
#[derive(Clone, Debug)]
pub struct SyncOrder {
    /// The file.
    pub file: Arc<dyn StorageFile>,
    /// The offset up to which the stream is durable when the file has been synced; `None` if it will not be, because no
    /// manifest lists the file yet.
    pub offset: Option<u64>,
    /// How many syncs had failed before it began.
    failed_syncs: u64,
}

impl Log {
    /// Goes on writing `file`, whose next byte is at `offset`.
    pub fn new(file: Arc<dyn StorageFile>, offset: u64, is_listed: bool) -> Log {
        Log {
            file,
            is_listed,
            was_listed: false,
            unwritten: Vec::new(),
            appended: offset,
            next: VecDeque::new(),
            written_bytes: 0,
            sync_error: None,
            failed_syncs: 0,
        }
    }

    /// The offset behind all that was appended.
    pub fn appended(&self) -> u64 {
        self.appended
    }

    /// The offset up to which the files are written.
    pub fn written(&self) -> u64 {
        self.appended - self.unwritten.len() as u64
    }

    /// The bytes that were written since [`Log::new`].
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Whether the manifest lists the open file.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Whether replies may have to wait until what they depend on is durable: not while the first base is awaited.
    pub fn has_been_listed(&self) -> bool {
        self.is_listed || self.was_listed
    }

    /// Why nothing more becomes durable, if a sync has failed.
    pub fn sync_error(&self) -> Option<&str> {
        self.sync_error.as_deref()
    }

    /// Appends bytes of the stream, to be written; `fill` adds them to the end of what it is given.
    pub fn append<R>(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let before = self.unwritten.len();
        let result = fill(&mut self.unwritten);
        self.appended += (self.unwritten.len() - before) as u64;
        result
    }

    /// Directs bytes that are appended from now on into another file, which the manifest lists behind the open one.
    pub fn switch(&mut self, file: Arc<dyn StorageFile>) {
        self.next.push_back((self.appended, file));
    }

    /// Whether the next write goes on in another file, and so syncs the open one first.
    pub fn is_switching(&self) -> bool {
        !self.next.is_empty()
    }

    /// Writes what was appended. To a file whose sync has failed nothing is written: behind what was lost, it would
    /// make the file one that cannot be loaded.
    ///
    /// # Errors
    /// The system's, or that of a sync. What could not be written is written by a later call.
    pub fn write(&mut self) -> io::Result<()> {
        if let Some(reason) = &self.sync_error {
            return Err(io::Error::other(reason.clone()));
        }
        let mut done = 0;
        let result = self.write_from(&mut done);
        if done == self.unwritten.len() {
            self.unwritten.clear();
            self.unwritten.shrink_to(KEPT_BYTES);
        } else {
            self.unwritten.drain(..done);
        }
        result
    }

    fn write_from(&mut self, done: &mut usize) -> io::Result<()> {
        loop {
            let written = self.appended - (self.unwritten.len() - *done) as u64;
            let end = match self.next.front() {
                Some((at, _)) => *done + (at - written) as usize,
                None => self.unwritten.len(),
            };
            while *done < end {
                match self.file.write(&self.unwritten[*done..end]) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(count) => {
                        *done += count;
                        self.written_bytes += count as u64;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            if self.next.is_empty() {
                return Ok(());
            }
            // The files of a listed set are durable in their order.
            self.sync_open()?;
            if let Some((_, file)) = self.next.pop_front() {
                (self.file, self.is_listed) = (file, true);
            }
        }
    }

    fn sync_open(&mut self) -> io::Result<()> {
        self.file.sync().inspect_err(|error| self.note_failure(error))
    }

    /// The sync that makes all that is written durable; `None` when a sync has failed. The caller syncs the
    /// file, without holding the log, and then calls [`Log::note_sync`].
    pub fn sync_order(&self) -> Option<SyncOrder> {
        let offset = self.is_listed.then(|| self.written());
        let order = || SyncOrder { file: Arc::clone(&self.file), offset, failed_syncs: self.failed_syncs };
        self.sync_error.is_none().then(order)
    }

    /// Notes how a sync has ended, and returns the offset up to which the stream is durable now. There is none if a
    /// sync has failed since the order was given: this one succeeds when the system has dropped the bytes.
    pub fn note_sync(&mut self, order: &SyncOrder, result: &io::Result<()>) -> Option<u64> {
        if let Err(error) = result {
            self.note_failure(error);
        }
        order.offset.filter(|_| order.failed_syncs == self.failed_syncs)
    }

    fn note_failure(&mut self, error: &io::Error) {
        self.failed_syncs += 1;
        self.sync_error.get_or_insert_with(|| error.to_string());
    }

    /// Notes that a new base is in place, with which the manifest lists the open file: what failed before no longer
    /// counts.
    pub fn relist(&mut self) {
        self.is_listed = true;
    }

    /// Goes on with a file that begins anew and is not listed, because the old ones cannot be relied on, or the data
    /// have become other data. What was appended before belongs to the old file.
    pub fn restart(&mut self, file: Arc<dyn StorageFile>) {
        // The old file may be broken: what it lacks is in the new base.
        if self.write().is_err() {
            self.unwritten.clear();
        }
        self.next.clear();
        self.was_listed |= self.is_listed;
        (self.file, self.is_listed, self.sync_error) = (file, false, None);
    }
}

/// The capacity for unwritten bytes that is kept.
const KEPT_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::storage::Storage;
    use crate::storage::simulated::SimulatedDisk;

    #[test]
    fn nothing_is_written_behind_what_a_failed_sync_has_lost() {
        let disk = SimulatedDisk::new();
        let mut log = Log::new(disk.create(Path::new("log")).expect("the disk works"), 0, true);
        log.append(|out| out.extend_from_slice(b"lost"));
        log.write().expect("the disk works");
        disk.fail_next_sync();
        let order = log.sync_order().expect("nothing has failed");
        assert_eq!(log.note_sync(&order, &order.file.sync()), None);
        log.append(|out| out.extend_from_slice(b"more"));
        assert!(log.write().is_err() && log.sync_order().is_none());
        assert_eq!((disk.read("log").as_deref(), log.written()), (Some(&b"lost"[..]), 4));

        log.restart(disk.create(Path::new("next")).expect("the disk works"));
        log.append(|out| out.extend_from_slice(b"next"));
        log.write().expect("the disk works");
        assert_eq!(
            (disk.read("log").as_deref(), disk.read("next").as_deref()),
            (Some(&b"lost"[..]), Some(&b"next"[..]))
        );
    }

    #[test]
    fn a_sync_does_not_count_when_another_one_of_the_file_has_failed_meanwhile() {
        let disk = SimulatedDisk::new();
        let mut log = Log::new(disk.create(Path::new("log")).expect("the disk works"), 0, true);
        log.append(|out| out.extend_from_slice(b"lost"));
        log.write().expect("the disk works");
        let order = log.sync_order().expect("nothing has failed");
        log.switch(disk.create(Path::new("next")).expect("the disk works"));
        disk.fail_next_sync();
        assert!(log.write().is_err(), "the file is synced before the next one is written");
        assert_eq!(log.note_sync(&order, &order.file.sync()), None);

        log.restart(disk.create(Path::new("anew")).expect("the disk works"));
        assert_eq!(log.note_sync(&order, &order.file.sync()), None, "also behind a file that begins anew");
        log.relist();
        let order = log.sync_order().expect("nothing has failed since");
        assert_eq!(log.note_sync(&order, &order.file.sync()), Some(4));
    }
}
