//! How a table grows: a full segment splits in two; while a table is loaded, at once into as many segments as the
//! announced number of handles needs.
//!
//! A split reads the record of each handle to hash it, which is most of what filling a large table costs. The loader
//! announces how many handles there will be ([`Table::expect`]), as the file says. That number is not trusted with
//! memory: a split prepares for at most [`AHEAD`] times the present handles. So the records of a third of the handles
//! are read instead of more than all, and a wrong number costs some 30 bytes for each present handle, until it is
//! withdrawn.

use super::{Hashes, Table, hashed};
use crate::keyspace::segment::{Segment, skew, tag};

/// How many times the present handles a table prepares for.
const AHEAD: usize = 4;

impl<const LINES: usize> Table<LINES> {
    /// Announces that there will soon be so many handles; 0 withdraws that.
    pub(in crate::keyspace) fn expect(&mut self, len: usize) {
        self.expected = len;
    }

    /// Splits a full segment, and its parts while they would be full with the handles that are to come.
    pub(super) fn split_full(&mut self, number: usize, hashes: &impl Hashes) {
        let handles = hashed(self.segment(number).handles(), hashes);
        let right = self.split(number, &handles);
        let len = self.expected.min(self.len.saturating_mul(AHEAD));
        if len <= self.len {
            return;
        }
        let mut parts = vec![number, right];
        while let Some(part) = parts.pop() {
            if self.share(part) * len as f64 > f64::from(Self::FULL) {
                let right = self.split(part, &handles);
                parts.extend([part, right]);
            }
        }
    }

    /// The share of all handles that a segment has on average.
    fn share(&self, number: usize) -> f64 {
        let segment = self.segment(number);
        let start = segment.start as f64 / 2_f64.powi(64);
        let end = start + 2_f64.powi(-(segment.depth as i32));
        hash_at(end) - hash_at(start)
    }

    /// Splits a segment in two, and returns the number of the right one. All its handles are among these.
    fn split(&mut self, number: usize, handles: &[(u64, u32)]) -> usize {
        let whole = self.segment(number);
        let (start, whole_depth, depth) = (whole.start, whole.depth, whole.depth + 1);
        let middle = start + (1 << (u64::BITS - depth));
        let (mut left, mut right) = (Segment::new(start, depth), Segment::new(middle, depth));
        let leading_bits = |position: u64| position >> 1 >> (u64::BITS - 1 - whole_depth);
        for (hash, handle) in handles {
            let position = skew(*hash);
            if leading_bits(position) == leading_bits(start) {
                let half = if position < middle { &mut left } else { &mut right };
                half.put(half.home(position), tag(*hash), *handle);
            }
        }
        self.segments[number] = Some(left);
        self.depths[whole_depth as usize] -= 1;
        self.count_depth(depth);
        if depth > self.depth {
            self.depth = depth;
            self.directory = self.directory.iter().flat_map(|&number| [number, number]).collect();
        }
        let right_number = self.push(right);
        self.point_directory(right_number);
        right_number as usize
    }
}

/// The hash at a position, both as fractions: the inverse of [`skew`].
fn hash_at(position: f64) -> f64 {
    2.0 - (4.0 - 3.0 * position).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{filled, hash_of};
    use super::*;

    fn filled_as_expected(expected: usize, handles: u32) -> Table<64> {
        let mut table = Table::new();
        table.expect(expected);
        (0..handles).for_each(|handle| assert_eq!(table.insert(hash_of(handle), handle, &hash_of), Ok(())));
        table.check(&hash_of);
        table
    }

    #[test]
    fn the_hash_at_a_position_is_the_one_that_is_skewed_there() {
        for hash in [0, 1 << 40, 1 << 62, 1 << 63, u64::MAX - (1 << 40)] {
            let position = skew(hash) as f64 / 2_f64.powi(64);
            assert!((hash_at(position) - hash as f64 / 2_f64.powi(64)).abs() < 1e-9, "{hash}");
        }
    }

    #[test]
    fn a_table_whose_size_was_known_has_the_memory_of_one_that_grew() {
        for handles in [1_000, 30_000, 100_000, 300_000] {
            let (grown, loaded) = (filled::<64>(handles), filled_as_expected(handles as usize, handles));
            let ratio = loaded.memory() as f64 / grown.memory() as f64;
            assert!((0.9..1.1).contains(&ratio), "{handles}: {ratio:.2}");
        }
    }

    #[test]
    fn few_records_are_read_again_if_the_size_is_known() {
        use std::cell::Cell;
        let read = Cell::new(0);
        let counted = |handle: u32| {
            read.set(read.get() + 1);
            hash_of(handle)
        };
        let reads_of = |expected: usize| {
            read.set(0);
            let mut table = Table::<64>::new();
            table.expect(expected);
            (0..300_000).for_each(|handle| assert_eq!(table.insert(hash_of(handle), handle, &counted), Ok(())));
            read.get()
        };
        let (grown, loaded) = (reads_of(0), reads_of(300_000));
        assert!(loaded * 2 < grown, "{loaded} beside {grown}");
    }

    #[test]
    fn a_size_that_was_withdrawn_no_longer_matters() {
        let mut table = filled_as_expected(1_000_000, 50_000);
        table.expect(0);
        (1_000..50_000).for_each(|handle| table.remove(hash_of(handle), handle, &hash_of));
        (1_000..50_000).for_each(|handle| assert_eq!(table.insert(hash_of(handle), handle, &hash_of), Ok(())));
        assert!(table.memory() < filled::<64>(50_000).memory() * 11 / 10);
    }

    #[test]
    fn a_size_that_is_wrong_takes_little_memory() {
        let table = filled_as_expected(usize::MAX, 10_000);
        assert!(table.memory() / table.len() < 40, "{} bytes a handle", table.memory() / table.len());
    }
}
