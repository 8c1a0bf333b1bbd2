//! The keys whose last change may still be lost: it is not yet synced to the append-only file.
//!
//! With `appendfsync always` no client may see a change that a crash could undo. A read of other keys than these shows
//! none, so its reply need not wait for the disk.
//!
//! Offsets are those of the stream of commands. A key has the first offset of the stream behind its last change: the
//! files are synced up to the ends of execution units only, so once they are synced up to there, they have all of the
//! change. Keys are known by a hash; two keys with the same hash are taken for one, which only makes a reply wait.
//!
//! Costs: an entry of 16 bytes for each key that changed since the last sync, and as many again at most.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// The number of entries below which those that are synced are not looked for.
const MIN_SWEEP_LEN: usize = 1024;

/// The keys whose last change may still be lost.
#[derive(Debug, Default)]
pub struct UnsyncedKeys {
    /// The offset that has to be synced for each key, by its hash.
    offsets: HashMap<u64, u64>,
    /// The offset that has to be synced for every key.
    all_keys_offset: u64,
    /// The number of entries from which on those that are synced are removed.
    sweep_len: usize,
    hasher: RandomState,
}

impl UnsyncedKeys {
    /// Notes that a key changes in the unit behind `offset` of the stream, which is synced up to `synced`.
    pub fn note(&mut self, database: usize, key: &[u8], offset: u64, synced: u64) {
        if self.offsets.len() >= self.sweep_len.max(MIN_SWEEP_LEN) {
            self.offsets.retain(|_, needed| *needed > synced);
            self.sweep_len = 2 * self.offsets.len();
        }
        self.offsets.insert(self.hasher.hash_one((database, key)), offset + 1);
    }

    /// Notes that any key may change in the unit behind `offset` of the stream.
    pub fn note_all(&mut self, offset: u64) {
        self.all_keys_offset = offset + 1;
        self.offsets.clear();
    }

    /// The offset up to which the stream has to be synced before anybody may see the value of a key; 0 if anybody may.
    pub fn offset_needed(&self, database: usize, key: &[u8]) -> u64 {
        let of_key = self.offsets.get(&self.hasher.hash_one((database, key))).copied().unwrap_or(0);
        of_key.max(self.all_keys_offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_needs_what_is_behind_its_last_change() {
        let mut keys = UnsyncedKeys::default();
        keys.note(0, b"a", 10, 0);
        keys.note(0, b"b", 20, 0);
        keys.note(0, b"a", 30, 10);
        let needed = |keys: &UnsyncedKeys, database, key: &[u8]| keys.offset_needed(database, key);
        assert_eq!([b"a", b"b", b"c"].map(|key| needed(&keys, 0, key)), [31, 21, 0]);
        assert_eq!(needed(&keys, 1, b"a"), 0, "it is another key in another database");
        keys.note_all(40);
        assert_eq!([b"a", b"b", b"c"].map(|key| needed(&keys, 7, key)), [41; 3]);
    }

    #[test]
    fn keys_that_are_synced_are_forgotten() {
        let mut keys = UnsyncedKeys::default();
        for number in 0..100_000_u64 {
            keys.note(0, &number.to_le_bytes(), number, number.saturating_sub(10));
        }
        assert!(keys.offsets.len() <= MIN_SWEEP_LEN, "{}", keys.offsets.len());
        assert!((99_990..100_000_u64).all(|number| keys.offset_needed(0, &number.to_le_bytes()) == number + 1));
    }
}
