//! When a list is small, and when a node is full: counted in the bytes that Redis's listpack would spend.
//!
//! `OBJECT ENCODING` tells a client which form a list has, and Redis chooses it by the size of its own layout, which is
//! not ours. So each run of items carries the size that a listpack of them has, and limits are compared with that.
//!
//! Sources: the listpack format, as documented by its author; the limits, asked of Redis 8.0.6.

use crate::value::item::Item;
use std::num::NonZeroUsize;

/// The size of a listpack without an item: its head and its end.
pub(super) const EMPTY: usize = 7;
/// What Redis adds to an item's length when it guesses what the item will take.
const GUESS: usize = 8;
/// Most bytes of a node whose items are counted.
const SAFE: usize = 8192;

/// When a list outgrows one small run of items, and when a node of it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `list-max-listpack-size`: that many items, or -1 to -5 for 4, 8, 16, 32 or 64 KiB.
    pub size: i64,
    /// From how many bytes on an element has a node for itself, if not from what a node holds (DEBUG
    /// QUICKLIST-PACKED-THRESHOLD).
    pub large: Option<NonZeroUsize>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { size: -2, large: None }
    }
}

impl Limits {
    /// Whether a run of that many items and bytes is too big.
    pub(super) fn exceeds(&self, bytes: usize, items: usize) -> bool {
        bytes > self.bytes().unwrap_or(SAFE) || items > self.items()
    }

    /// Whether a run may take one more item of that length.
    pub(super) fn admits(&self, bytes: usize, items: usize, length: usize) -> bool {
        !self.is_large(length) && !self.exceeds(bytes + length + GUESS, items + 1)
    }

    /// Whether an item of that length has a node for itself.
    pub(super) fn is_large(&self, length: usize) -> bool {
        self.large.map_or(length > self.bytes().unwrap_or(SAFE), |large| length >= large.get())
    }

    /// Whether a list that is made as a long one is a small one in the end.
    pub(super) fn holds(&self, bytes: usize, items: usize) -> bool {
        self.bytes().is_none_or(|most| bytes <= most) && items <= self.items()
    }

    /// Whether the last node of a list has become so small that the list is a small one again.
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

/// What a listpack spends on an item.
pub(super) fn cost(item: Item<'_>) -> usize {
    let bytes = match item {
        Item::Int(0..=127) => 1,
        Item::Int(-4096..=4095) => 2,
        Item::Int(-32_768..=32_767) => 3,
        Item::Int(-8_388_608..=8_388_607) => 4,
        Item::Int(-2_147_483_648..=2_147_483_647) => 5,
        Item::Int(_) => 9,
        Item::Text(..) => match item.len() {
            length @ 0..64 => 1 + length,
            length @ 64..4096 => 2 + length,
            length => 5 + length,
        },
    };
    let way_back = match bytes {
        0..128 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    };
    bytes + way_back
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
    fn a_list_is_small_again_at_half_the_limit() {
        assert!(Limits { size: -1, ..Limits::default() }.is_small(2048, 2000));
        assert!(!Limits { size: -1, ..Limits::default() }.is_small(2049, 1));
        assert!(Limits { size: 7, ..Limits::default() }.is_small(100_000, 3));
        assert!(!Limits { size: 7, ..Limits::default() }.is_small(10, 4));
    }

    #[test]
    fn an_item_costs_what_it_costs_in_a_listpack() {
        for (bytes, expected) in [
            ("127", 2),
            ("128", 3),
            ("-4096", 3),
            ("4096", 4),
            ("-32769", 5),
            ("8388608", 6),
            ("2147483648", 10),
            ("", 2),
            ("product-0000001", 17),
        ] {
            assert_eq!(cost(Item::of(bytes.as_bytes())), expected, "{bytes}");
        }
        for (length, expected) in [(63, 65), (64, 67), (126, 130), (4095, 4099), (4096, 4103)] {
            assert_eq!(cost(Item::Text(&vec![b'x'; length], &[])), expected, "{length} bytes");
        }
    }
}
