//! A database as it was at a moment, for saving it while it changes.
//!
//! Freezing copies no key: the database moves its contents to where both can read them, and copies a part (a chunk of
//! records, a value of up to 64 KiB, a segment of the table) before it first changes it, as the clones of a template
//! do. A larger collection is forked ([`crate::value::base`]): its parts are copied one at a time, too. When the frozen
//! one has been dropped, the database takes the parts that it has not copied back ([`Database::thaw`]).
//!
//! Costs: a freeze and a thaw take time in proportion to the number of parts: a third of a millisecond for ten million
//! small keys, most of which the system takes to clear the memory of the new rows. In between, the first change of a
//! chunk copies its 64 KiB. The first change of a collection takes time in proportion to the number of its parts, as
//! does taking it back, and each change copies the parts that it touches, of up to 16 KiB. Copied as a whole are only
//! the pending entries of a stream, and a collection that moves to another database (MOVE).

use std::sync::Arc;

use super::database::{Database, Shares};
use super::records::SharedRecords;
use super::table::{Table, prefetched};
use crate::value::View;

/// A database as it was at a moment. It may be read on another thread.
#[derive(Debug)]
pub struct FrozenDatabase<const LINES: usize = 64> {
    table: Arc<Table<LINES>>,
    records: SharedRecords,
    volatile_len: usize,
    shares: Shares,
}

/// A key of a frozen database.
#[derive(Clone, Copy, Debug)]
pub struct FrozenKey<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Its value.
    pub view: View<'a>,
    /// Its deadline, in unix milliseconds.
    pub deadline_ms: Option<i64>,
    /// The bits of [`Database::access`].
    pub access: u32,
}

impl<const LINES: usize> FrozenDatabase<LINES> {
    /// The number of keys.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there was no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of keys with a deadline.
    pub fn volatile_len(&self) -> usize {
        self.volatile_len
    }

    /// Every key, in no order.
    pub fn keys(&self) -> impl Iterator<Item = FrozenKey<'_>> {
        self.handles_prefetched().map(|handle| self.key(handle))
    }

    /// The handle of every key, in the order of [`FrozenDatabase::keys`]; it tells nothing of the key itself.
    pub fn handles(&self) -> impl Iterator<Item = u32> {
        self.table.handles()
    }

    /// The keys that handles stand for, each read when the iterator comes to it, on whatever thread that is.
    pub fn keys_of(&self, handles: Vec<u32>) -> impl Iterator<Item = FrozenKey<'_>> + Send {
        let records = self.records.by_ref();
        prefetched(handles.into_iter(), move |handles| records.prefetch_whole(handles)).map(|handle| self.key(handle))
    }

    /// Every key with the bytes that it takes, as [`Database::memory_of`] counts them, in the order of the memory. To
    /// sort the handles takes a fraction of the time that reading keys from all over the memory takes.
    pub fn sized_keys(&self) -> impl Iterator<Item = (FrozenKey<'_>, usize)> {
        let records = self.records.by_ref();
        let mut handles: Vec<u32> = self.handles().collect();
        handles.sort_unstable();
        prefetched(handles.into_iter(), move |handles| records.prefetch_whole(handles)).map(move |handle| {
            let key = self.key(handle);
            (key, records.memory_of(handle) + self.shares.of(key.deadline_ms.is_some()))
        })
    }

    fn handles_prefetched(&self) -> impl Iterator<Item = u32> {
        let records = self.records.by_ref();
        self.table.handles_prefetched(move |handles| records.prefetch_whole(handles))
    }

    fn key(&self, handle: u32) -> FrozenKey<'_> {
        let records = self.records.by_ref();
        let record = records.record(handle);
        FrozenKey {
            key: records.key(handle),
            view: records.view(handle),
            deadline_ms: record.deadline(),
            access: record.access(),
        }
    }
}

impl<const LINES: usize> Database<LINES> {
    /// The database as it is now, for reading while it changes.
    pub fn freeze(&mut self) -> FrozenDatabase<LINES> {
        let shares = self.shares();
        let (table, records) = self.share_parts();
        FrozenDatabase { table, records, volatile_len: self.volatile_len(), shares }
    }
}

#[cfg(test)]
mod tests;
