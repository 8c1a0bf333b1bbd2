//! What a server refuses in an RDB file whose bytes are right: a library of functions that cannot be loaded, and a key
//! that occurs twice in a database. redis-check-rdb accepts such files.
//!
//! Of a key only 64 bits of a hash are remembered, under a secret that is new for each check. Only if two of these are
//! equal is the file read once more, and the keys are compared.
//!
//! Costs: eight bytes a key, up to sixteen while a table grows.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Seek};

use crate::engine::exec::scripts::load::load_saved_library;
use crate::engine::state::host::NoHost;
use crate::engine::{Engine, Now, Settings};
use crate::rdb::Forms;
use crate::rdb::file::{Entry, Loaded, Loader, Record};
use crate::server::run::usual_table;

/// The tables of hashes. Only one of them grows at a time, so little memory is held twice.
const TABLES: usize = 256;
/// The most equal hashes whose keys are compared. Chance makes one or two of them in a file of billions of keys.
const MOST_COMPARED: usize = 1024;
/// The time that a library seems to take between two looks at the clock: ten thousand instructions take about as long.
const LOOK_US: u64 = 100;

/// Why a server refuses a file.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The bytes of the file before the record that it refuses.
    offset: u64,
    reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[offset {}] A server refuses this file: {}", self.offset, self.reason)
    }
}

/// The search for what a server refuses.
#[derive(Debug)]
pub(super) struct Search {
    /// The time at which keys have expired, which are not loaded; `None` if they are, as from a base of an AOF.
    now_ms: Option<i64>,
    hashing: RandomState,
    /// The database of the next keys.
    database: u64,
    /// The hashes of all keys, by their first byte.
    hashes: Vec<Vec<u64>>,
    /// An engine into which the libraries are loaded.
    libraries: Option<Box<Engine>>,
    library: Option<Refusal>,
}

impl Search {
    /// Begins a search.
    pub(super) fn begin(now_ms: Option<i64>) -> Search {
        let (hashing, hashes) = (RandomState::new(), vec![Vec::new(); TABLES]);
        Search { now_ms, hashing, database: 0, hashes, libraries: None, library: None }
    }

    /// Takes the record at an offset.
    pub(super) fn take(&mut self, record: &Record<'_>, offset: u64) {
        match record {
            Record::Database(number) => self.database = *number,
            Record::Function(source) if self.library.is_none() => {
                self.library = self.load(source).err().map(|reason| Refusal { offset, reason });
            }
            Record::Entry(entry) if is_loaded(entry, self.now_ms) => {
                let hash = self.hash(&entry.key);
                self.hashes[hash.to_be_bytes()[0] as usize].push(hash);
            }
            _ => {}
        }
    }

    fn load(&mut self, source: &[u8]) -> Result<(), String> {
        let engine = self.libraries.get_or_insert_with(|| {
            let host = Box::new(NoHost::advancing(LOOK_US));
            Box::new(Engine::new(usual_table(false).clone(), Settings::default(), 0, Now::default(), host))
        });
        load_saved_library(engine, source, false)
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.hashing.hash_one((self.database, key))
    }

    /// Ends the search, behind the whole file: what a server refuses, one of each kind.
    ///
    /// # Errors
    /// The file cannot be read once more.
    pub(super) fn end(mut self, file: &File) -> io::Result<Vec<Refusal>> {
        let key = self.duplicate(file)?;
        Ok(self.library.into_iter().chain(key).collect())
    }

    /// A key that occurs twice in a database.
    fn duplicate(&mut self, mut file: &File) -> io::Result<Option<Refusal>> {
        let suspects = equal(std::mem::take(&mut self.hashes));
        if suspects.is_empty() {
            return Ok(None);
        }
        file.rewind()?;
        let mut loader = Loader::open(file, false).map_err(|fault| io::Error::other(fault.to_string()))?;
        let mut seen = BTreeSet::new();
        loop {
            let (offset, mut found) = (loader.offset(), None);
            let goes_on = loader.next(&Forms::default(), |record| {
                found = self.seen_before(&record, &suspects, &mut seen);
                Ok(())
            });
            if let Some(key) = found {
                let reason = format!("RDB has duplicated key '{key}' in DB {}", self.database);
                return Ok(Some(Refusal { offset, reason }));
            }
            if !goes_on.map_err(|fault| io::Error::other(fault.to_string()))? {
                return Ok(None);
            }
        }
    }

    /// Reads a record once more; returns the name of its key if that was seen before. Of keys with other hashes than
    /// these, nothing is kept.
    fn seen_before(
        &mut self,
        record: &Record<'_>,
        suspects: &BTreeSet<u64>,
        seen: &mut BTreeSet<(u64, Vec<u8>)>,
    ) -> Option<String> {
        match record {
            Record::Database(number) => self.database = *number,
            Record::Entry(entry) if is_loaded(entry, self.now_ms) && suspects.contains(&self.hash(&entry.key)) => {
                let is_first = seen.insert((self.database, entry.key.to_vec()));
                return (!is_first).then(|| String::from_utf8_lossy(&entry.key).into_owned());
            }
            _ => {}
        }
        None
    }
}

/// Whether a server stores an entry: not a collection without elements, nor a key that has expired.
fn is_loaded(entry: &Entry<'_>, now_ms: Option<i64>) -> bool {
    let has_expired = now_ms.is_some_and(|now_ms| entry.deadline_ms.is_some_and(|deadline_ms| deadline_ms < now_ms));
    !has_expired && !matches!(entry.value, Loaded::Empty)
}

/// Hashes that occur more than once.
fn equal(tables: Vec<Vec<u64>>) -> BTreeSet<u64> {
    let sorted = tables.into_iter().map(|mut hashes| {
        hashes.sort_unstable();
        hashes
    });
    let equal = sorted.flat_map(|hashes| {
        let equal = hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        equal.take(MOST_COMPARED).collect::<Vec<u64>>()
    });
    equal.take(MOST_COMPARED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_are_found_in_every_table() {
        let tables = vec![vec![1, 3, 2], vec![9, 7, 9, 8, 9], vec![], vec![20, 20]];
        assert_eq!(equal(tables), BTreeSet::from([9, 20]));
    }
}
