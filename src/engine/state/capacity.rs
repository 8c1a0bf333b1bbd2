//! Capacity limits of one collection and one database.
//!
//! Cells and records have handles of 32 bits, which is what keeps them small, and so there is an end: 8 GiB of cells in
//! a large sorted set, set or hash (one with over 255 bytes counts as 14), 64 GiB of records in a database (a value
//! that stands apart counts as nothing, its record as some twenty). A command that may add is refused before it begins,
//! with Redis's words for a full memory, if what it could add at worst would not fit; what removes always runs. A
//! sixteenth of the cells and a quarter of the records are left free for what moves, and for changes that are no
//! additions but take some bytes more: a deadline, another name.
//!
//! At worst, a command with several keys stores all their cells, with scores that take eight bytes more each, and one
//! with a single key stores its own words, each with what a cell has beside it.

use crate::engine::spec::{Args, Command};
use crate::keyspace::Database;

/// The capacity limits of one collection and one database; tests choose tiny ones.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Bytes of cells of one collection.
    pub collection_bytes: usize,
    /// Bytes of records of one database.
    pub record_bytes: usize,
}

impl Default for Capacity {
    fn default() -> Capacity {
        Capacity { collection_bytes: (8 << 30) - (512 << 20), record_bytes: 48 << 30 }
    }
}

/// A word, as bytes of a request, becomes at most so many times its bytes and these.
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

/// The bytes of cells that a command with these keys may store, beside what it brings.
fn cells_of<'k>(database: &Database, keys: impl Iterator<Item = &'k [u8]>) -> usize {
    let (mut count, mut bytes) = (0, 0usize);
    for key in keys {
        count += 1;
        bytes += database.find(key).map_or(0, |slot| database.view(slot).cell_bytes());
    }
    if count > 1 { bytes.saturating_mul(FACTOR) } else { bytes }
}
