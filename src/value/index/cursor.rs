//! The cursor of a scan over an index: a position in the order of (segment, tag), in one number.

use super::{PREFIX_BITS, TAG_BITS};

/// The progress of a scan: all segments before `prefix` are done, and of the segment there, which had that depth, all
/// tags before `tag`.
pub(super) struct Cursor {
    pub(super) prefix: usize,
    pub(super) tag: u16,
    pub(super) depth: u32,
}

const DEPTH_BITS: u32 = 5;
/// The number of bits of a cursor.
pub(in crate::value) const CURSOR_BITS: u32 = PREFIX_BITS + TAG_BITS + DEPTH_BITS;

impl From<u64> for Cursor {
    fn from(cursor: u64) -> Cursor {
        Cursor {
            prefix: (cursor >> (TAG_BITS + DEPTH_BITS)) as usize % (1 << PREFIX_BITS),
            tag: (cursor >> DEPTH_BITS) as u16,
            depth: cursor as u32 % (1 << DEPTH_BITS),
        }
    }
}

impl From<Cursor> for u64 {
    fn from(cursor: Cursor) -> u64 {
        ((cursor.prefix as u64) << TAG_BITS | u64::from(cursor.tag)) << DEPTH_BITS | u64::from(cursor.depth)
    }
}
