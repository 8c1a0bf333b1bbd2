//! Capacity limits of one collection and one database.
//!
//! Cells and records have handles of 32 bits to keep them small, which limits them: 8 GiB of cells in a large sorted
//! set, set or hash (a member of more than 255 bytes counts as 14), and 64 GiB of records in a database (a value with
//! memory of its own does not count, its record counts as some twenty bytes). A command that may add data is refused
//! before it begins, with Redis's error for full memory, if the most that it could add would not fit; a command that
//! removes always runs. A sixteenth of the cells and a quarter of the records are kept free for data that moves, and
//! for changes that add nothing but take a few more bytes: a deadline, another name.
//!
//! At most, a command with several keys stores all their cells, each with a score of eight more bytes, and one with a
//! single key stores its own words, each with the overhead of a cell.

use crate::engine::spec::{Args, Command};
use crate::keyspace::Database;

/// The capacity limits of one collection and one database; tests choose tiny ones.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// The limit for the cells of one collection, in bytes.
    pub collection_bytes: usize,
    /// The limit for the records of one database, in bytes.
    pub record_bytes: usize,
}

impl Default for Capacity {
    fn default() -> Capacity {
        Capacity { collection_bytes: (8 << 30) - (512 << 20), record_bytes: 48 << 30 }
    }
}

/// A word of a request takes at most its length times `FACTOR`, plus `WORD_BYTES`, when it is stored.
const FACTOR: usize = 2;

const WORD_BYTES: usize = 32;

impl Capacity {
    pub(in crate::engine) fn has_room_left(&self, database: &Database, command: &Command, args: &Args<'_>) -> bool {
        let request = args.request();
        let added = args.request_bytes().saturating_mul(FACTOR).saturating_add(request.len() * WORD_BYTES);
        let keys = command.keys.iter().flat_map(|spec| spec.places(request)).filter_map(|place| request.get(place));
        let cells = cells_of(database, keys);
        cells.saturating_add(added) <= self.collection_bytes
            && database.record_bytes().saturating_add(added) <= self.record_bytes
    }
}

/// The bytes of cells that a command with these keys may store, in addition to its own words.
fn cells_of<'k>(database: &Database, keys: impl Iterator<Item = &'k [u8]>) -> usize {
    let (mut count, mut bytes) = (0, 0usize);
    for key in keys {
        count += 1;
        bytes += database.find(key).map_or(0, |slot| database.view(slot).cell_bytes());
    }
    if count > 1 { bytes.saturating_mul(FACTOR) } else { bytes }
}
