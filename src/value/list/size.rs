//! Size limits of lists and their nodes, counted in the bytes that Redis's listpack would take.
//!
//! `OBJECT ENCODING` shows a client which form a list has, and Redis chooses it by the size of its own layout, which
//! is not ours. So each packed node carries the size that a listpack of its items would have, and limits are compared
//! with that.
//!
//! Sources: the listpack format, as documented by its author; the limits, measured on Redis 8.0.6.

use std::num::NonZeroUsize;

/// The bytes that Redis adds to an item's length when it estimates the item's size.
const GUESS: usize = 8;
/// The most bytes of a node whose items are counted.
const SAFE: usize = 8192;

/// The limits above which a list outgrows one small packed node, and a node of it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `list-max-listpack-size`: that many items, or -1 to -5 for 4, 8, 16, 32 or 64 KiB.
    pub size: i64,
    /// The size in bytes from which an element has a node of its own, if not derived from what a node holds (DEBUG
    /// QUICKLIST-PACKED-THRESHOLD).
    pub large: Option<NonZeroUsize>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { size: -2, large: None }
    }
}

impl Limits {
    /// Whether a packed node of that many items and bytes is too large.
    pub(super) fn exceeds(&self, bytes: usize, items: usize) -> bool {
        bytes > self.bytes().unwrap_or(SAFE) || items > self.items()
    }

    /// Whether a packed node may take one more item of that length.
    pub(super) fn admits(&self, bytes: usize, items: usize, length: usize) -> bool {
        !self.is_large(length) && !self.exceeds(bytes + length + GUESS, items + 1)
    }

    /// Whether an item of that length has a node of its own.
    pub(super) fn is_large(&self, length: usize) -> bool {
        self.large.map_or(length > self.bytes().unwrap_or(SAFE), |large| length >= large.get())
    }

    /// Whether a list that was built as a long one is small in the end.
    pub(super) fn holds(&self, bytes: usize, items: usize) -> bool {
        self.bytes().is_none_or(|most| bytes <= most) && items <= self.items()
    }

    /// Whether the last node of a list is small enough for the list to be a small one again.
    pub(super) fn is_small(&self, bytes: usize, items: usize) -> bool {
        self.bytes().is_none_or(|most| bytes <= most / 2) && items <= self.items() / 2
    }

    fn bytes(&self) -> Option<usize> {
        match self.size {
            0.. => None,
            -1 => Some(4096),
            -2 => Some(8192),
            -3 => Some(16_384),
            -4 => Some(32_768),
            _ => Some(65_536),
        }
    }

    fn items(&self) -> usize {
        match self.size {
            0 => 1,
            1.. => usize::try_from(self.size).unwrap_or(usize::MAX),
            _ => usize::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_bytes_when_negative_and_items_when_not() {
        assert!(!Limits { size: -2, ..Limits::default() }.exceeds(8192, 100_000));
        assert!(Limits { size: -2, ..Limits::default() }.exceeds(8193, 1));
        assert!(!Limits { size: -9, ..Limits::default() }.exceeds(65_536, 1));
        assert!(Limits { size: 3, ..Limits::default() }.exceeds(100, 4));
        assert!(!Limits { size: 3, ..Limits::default() }.exceeds(100, 3));
        assert!(Limits { size: 3, ..Limits::default() }.exceeds(8193, 1));
        assert!(!Limits { size: 0, ..Limits::default() }.exceeds(100, 1));
        assert!(Limits { size: 0, ..Limits::default() }.exceeds(100, 2));
    }

    #[test]
    fn a_list_shrinks_back_to_a_listpack_at_half_the_limit() {
        assert!(Limits { size: -1, ..Limits::default() }.is_small(2048, 2000));
        assert!(!Limits { size: -1, ..Limits::default() }.is_small(2049, 1));
        assert!(Limits { size: 7, ..Limits::default() }.is_small(100_000, 3));
        assert!(!Limits { size: 7, ..Limits::default() }.is_small(10, 4));
    }
}
