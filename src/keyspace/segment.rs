//! A segment of the table: an array of cache lines that hold tagged handles, each as near as possible to its home line.
//!
//! A handle that does not fit into its home line goes to the next line with room, cyclically, and every line counts
//! the handles that passed it by; a search ends at the first line that none passed.
//!
//! Invariants: from a handle's home line to the line before its own, every line counts it in `passed`, which stays at
//! 255 once it reached it; all handles of a segment have positions in its range.

use super::table::Hashes;
use std::iter;

/// The handles of a line.
pub(super) const SLOTS: usize = 12;

#[derive(Clone, Debug)]
pub(super) struct Segment<const LINES: usize> {
    pub(super) lines: Box<[Line; LINES]>,
    pub(super) start: u64,
    pub(super) depth: u32,
    pub(super) len: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Line {
    tags: [u8; SLOTS],
    /// One bit per slot.
    pub(super) taken: u16,
    /// The number of handles that have this line as their home, or passed it by, and are stored behind it.
    passed: u8,
    pub(super) handles: [u32; SLOTS],
}

/// The position of a hash: x + x(1-x)/3 with both seen as fractions, which is twice as steep at 0 as at 1.
#[inline]
pub(super) fn skew(hash: u64) -> u64 {
    let product = u128::from(hash) * u128::from(!hash);
    hash + (product >> 64) as u64 / 3
}

#[inline]
pub(super) fn tag(hash: u64) -> u8 {
    hash as u8
}

/// One bit for each byte of a word, set if it equals `byte`. Adding to its lower seven bits carries into the highest
/// unless they are all equal; the product gathers the highest bits in the highest byte.
#[inline]
fn equal_bytes(word: u64, byte: u8) -> u16 {
    const LOW: u64 = u64::from_le_bytes([0x7f; 8]);
    let different = word ^ u64::from_le_bytes([byte; 8]);
    let marks = !((different & LOW).wrapping_add(LOW) | different) & !LOW;
    ((marks >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u16
}

impl<const LINES: usize> Segment<LINES> {
    pub(super) fn new(start: u64, depth: u32) -> Segment<LINES> {
        Segment { lines: Box::new([Line::EMPTY; LINES]), start, depth, len: 0 }
    }

    /// The home line of a position of this segment.
    #[inline]
    pub(super) fn home(&self, position: u64) -> usize {
        (position << self.depth >> (u64::BITS - LINES.ilog2())) as usize
    }

    /// All lines from `home` on, cyclically.
    #[inline]
    fn from_home(home: usize) -> impl Iterator<Item = usize> {
        (0..LINES).map(move |step| (home + step) % LINES)
    }

    #[inline]
    pub(super) fn find(&self, home: usize, tag: u8, is_wanted: impl Fn(u32) -> bool) -> Option<(usize, usize)> {
        for number in Self::from_home(home) {
            let line = &self.lines[number];
            if let Some(slot) = line.matches(tag).find(|&slot| is_wanted(line.handles[slot])) {
                return Some((number, slot));
            }
            if line.passed == 0 {
                return None;
            }
        }
        None
    }

    /// Every handle.
    pub(super) fn handles(&self) -> impl Iterator<Item = u32> + Clone {
        self.lines.iter().flat_map(Line::handles)
    }

    pub(super) fn distance_to_room(&self, home: usize) -> usize {
        Self::from_home(home).position(|number| self.lines[number].room().is_some()).unwrap_or(LINES)
    }

    /// Inserts a handle into a segment that is not full.
    pub(super) fn put(&mut self, home: usize, tag: u8, handle: u32) {
        for number in Self::from_home(home) {
            let line = &mut self.lines[number];
            if let Some(slot) = line.room() {
                line.tags[slot] = tag;
                line.handles[slot] = handle;
                line.taken |= 1 << slot;
                self.len += 1;
                return;
            }
            line.passed = line.passed.saturating_add(1);
        }
        unreachable!("a segment splits before it is full");
    }

    pub(super) fn take(&mut self, home: usize, tag: u8, handle: u32) {
        let place = self.find(home, tag, |other| other == handle);
        let (end, slot) = place.expect("the handle is in the table");
        self.lines[end].taken &= !(1 << slot);
        self.len -= 1;
        for number in Self::from_home(home).take_while(|&number| number != end) {
            let line = &mut self.lines[number];
            if line.passed != u8::MAX {
                line.passed -= 1;
            }
        }
    }

    /// Visits every handle whose home is that line.
    pub(super) fn of_home(&self, home: usize, hashes: &impl Hashes, mut visit: impl FnMut(u32)) {
        let line = &self.lines[home];
        // Handles of other homes passed the line before, so without any such all are of this home.
        let are_all_home = self.lines[(home + LINES - 1) % LINES].passed == 0;
        if are_all_home {
            line.handles().for_each(&mut visit);
            if line.passed == 0 {
                return;
            }
        }
        for number in Self::from_home(home).skip(usize::from(are_all_home)) {
            let line = &self.lines[number];
            line.handles().filter(|&handle| self.home(skew(hashes.hash_of(handle))) == home).for_each(&mut visit);
            if line.passed == 0 {
                break;
            }
        }
    }

    pub(super) fn check(&self, hashes: &impl Hashes) {
        let mut passed = [0usize; LINES];
        let mut len = 0;
        for (number, line) in self.lines.iter().enumerate() {
            for slot in (0..SLOTS).filter(|slot| line.taken & 1 << slot != 0) {
                let hash = hashes.hash_of(line.handles[slot]);
                let home = self.home(skew(hash));
                assert_eq!(line.tags[slot], tag(hash));
                assert!(
                    skew(hash).wrapping_sub(self.start).leading_zeros() >= self.depth,
                    "a handle is outside of its segment"
                );
                Self::from_home(home).take_while(|&step| step != number).for_each(|step| passed[step] += 1);
                len += 1;
            }
        }
        assert_eq!(len, self.len);
        for (line, passed) in self.lines.iter().zip(passed) {
            assert!(
                usize::from(line.passed) == passed || line.passed == u8::MAX,
                "the count of handles that passed is wrong"
            );
        }
    }
}

impl Line {
    const EMPTY: Line = Line { tags: [0; SLOTS], taken: 0, passed: 0, handles: [0; SLOTS] };
    const ALL: u16 = (1 << SLOTS) - 1;

    /// The used slots with that tag.
    #[inline]
    fn matches(&self, tag: u8) -> impl Iterator<Item = usize> {
        let (first, rest) = self.tags.split_at(size_of::<u64>());
        let word = |tags: &[u8]| tags.iter().rev().fold(0, |word, &tag| word << 8 | u64::from(tag));
        let equal = equal_bytes(word(first), tag) | equal_bytes(word(rest), tag) << 8;
        slots_of(equal & self.taken)
    }

    /// The handles with that tag.
    pub(super) fn tagged(&self, tag: u8) -> impl Iterator<Item = u32> {
        self.matches(tag).map(|slot| self.handles[slot])
    }

    fn room(&self) -> Option<usize> {
        let free = !self.taken & Line::ALL;
        (free != 0).then_some(free.trailing_zeros() as usize)
    }

    fn handles(&self) -> impl Iterator<Item = u32> + Clone {
        slots_of(self.taken).map(|slot| self.handles[slot])
    }
}

/// The slots whose bits are set.
#[inline]
fn slots_of(mut bits: u16) -> impl Iterator<Item = usize> + Clone {
    iter::from_fn(move || {
        let slot = bits.trailing_zeros() as usize;
        let rest = bits.checked_sub(1)?;
        bits &= rest;
        Some(slot)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_word_are_compared_independently() {
        for bytes in [[0, 1, 0x7f, 0x80, 0x81, 0xff, 0, 1], [7; 8], [0x80, 0, 0x80, 0, 0xff, 0xfe, 0x7f, 0x80]] {
            for byte in 0..=u8::MAX {
                let expected = (0..8).filter(|&at| bytes[at] == byte).fold(0, |bits, at| bits | 1 << at);
                assert_eq!(equal_bytes(u64::from_le_bytes(bytes), byte), expected, "{byte} in {bytes:?}");
            }
        }
    }

    #[test]
    fn skewing_a_hash_keeps_the_order_and_both_ends() {
        let hashes: Vec<u64> =
            (0..=1000).map(|step| step * (u64::MAX / 1000)).chain([u64::MAX - 1, u64::MAX]).collect();
        assert!(hashes.is_sorted_by_key(|&hash| skew(hash)));
        assert_eq!((skew(0), skew(u64::MAX)), (0, u64::MAX));
        assert!(skew(1 << 63) > (1 << 63) + (1 << 60));
    }
}
