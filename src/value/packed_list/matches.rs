//! Searches for all items of certain bytes, from either end: LPOS, LINSERT and LREM.
//!
//! Items are compared as they are stored: first their codes, which say form and length, so most items cost the
//! comparison of two numbers, and their contents are not read.

use super::view::{PackedListView, length_of};
use super::{Coded, Head};
use crate::value::columns::tail;
use crate::value::item::Item;
use std::ops::Range;

/// The positions of the items with certain bytes, in the order of a search from one end.
pub(in crate::value) struct Matches<'a> {
    packed: PackedListView<'a>,
    head: Head,
    wanted: Coded<'a>,
    /// The positions that were not compared yet.
    positions: Range<usize>,
    /// Where the content of the next position begins; in a backward search, where it ends.
    at: usize,
    is_backward: bool,
}

impl<'a> PackedListView<'a> {
    /// The positions among `positions`, which must exist, of items with these bytes.
    pub(in crate::value) fn matches(self, bytes: &'a [u8], positions: Range<usize>, is_backward: bool) -> Matches<'a> {
        let head = self.head();
        let item = Item::of(bytes);
        let differs = matches!(item, Item::Text(..)) && !bytes.starts_with(self.prefix(&head));
        let positions = if differs { 0..0 } else { positions };
        let at = self.content_of(&head, if is_backward { positions.end } else { positions.start });
        let wanted = Coded::new(item, if differs { 0 } else { head.prefix });
        Matches { packed: self, head, wanted, positions, at, is_backward }
    }
}

impl Iterator for Matches<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let column = &self.packed.bytes[self.packed.column(&self.head, self.positions.clone())];
        let few = |code: &[u8]| tail(code, self.head.width) as usize;
        let found = match (self.head.width, self.is_backward) {
            (0, _) => self.search(std::iter::repeat_n(self.head.common, self.positions.len())),
            (1, false) => self.search(column.iter().rev().map(|&code| code.into())),
            (1, true) => self.search(column.iter().map(|&code| code.into())),
            (width, false) => self.search(column.rchunks_exact(width).map(few)),
            (width, true) => self.search(column.chunks_exact(width).map(few)),
        };
        let Some((passed, at)) = found else {
            self.positions = 0..0;
            return None;
        };
        self.at = at;
        if self.is_backward {
            self.positions.end -= passed + 1;
            return Some(self.positions.end);
        }
        self.positions.start += passed + 1;
        Some(self.positions.start - 1)
    }
}

impl Matches<'_> {
    /// How many items come before the next match, and where the content behind it begins or, in a backward search,
    /// ends.
    #[inline(always)]
    fn search(&self, codes: impl Iterator<Item = usize>) -> Option<(usize, usize)> {
        let (probe, mut at) = (self.wanted.probe(), self.at);
        for (passed, code) in codes.enumerate() {
            let length = length_of(code);
            let end = if self.is_backward { at } else { at + length };
            at = if self.is_backward { at - length } else { end };
            if probe.is_at(self.packed.bytes, code, end) {
                return Some((passed, at));
            }
        }
        None
    }
}
