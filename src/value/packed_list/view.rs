//! A packed list for reading, wherever its bytes are: in an allocation of its own, or within a larger one.

use super::{Coded, EQUAL_INTEGERS, HEAD, Head, PackedList, TEXT};
use crate::value::columns::{number, tail};
use crate::value::item::{AHEAD, Item, Word, Words, has_prefix};
use crate::value::number::parse_i64;
use std::ops::Range;

/// The bytes of a packed list, for reading; none if it is empty.
#[derive(Clone, Copy)]
pub(in crate::value) struct PackedListView<'a> {
    pub(super) bytes: &'a [u8],
}

impl<'a> PackedListView<'a> {
    /// The packed list in the bytes that [`super::PackedList::pack`] returned.
    pub(in crate::value) fn of(bytes: &'a [u8]) -> PackedListView<'a> {
        PackedListView { bytes }
    }

    /// A copy that owns its bytes, with nothing to spare.
    pub(in crate::value) fn to_packed_list(self) -> PackedList {
        let mut packed = PackedList::unpack(self.bytes, Box::default());
        packed.shrink();
        packed
    }

    /// Its bytes.
    pub(in crate::value) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The number of its bytes.
    pub(in crate::value) fn memory(self) -> usize {
        self.bytes.len()
    }

    pub(in crate::value) fn len(self) -> usize {
        self.bytes.first_chunk().map_or(0, |len| u32::from_le_bytes(*len) as usize)
    }

    /// The item at a position that exists.
    pub(in crate::value) fn get(self, position: usize) -> Item<'a> {
        let head = self.head();
        assert!(position < head.len, "position {position} of {}", head.len);
        self.item(&head, self.code(&head, position), self.content_of(&head, position))
    }

    /// The items at `positions`, which must exist.
    pub(in crate::value) fn range(self, positions: Range<usize>) -> Iter<'a> {
        let head = self.head();
        let front_at = self.content_of(&head, positions.start);
        let back_at = self.content_of(&head, positions.end);
        Iter { packed: self, head, positions, front_at, back_at }
    }

    /// All items.
    pub(in crate::value) fn iter(self) -> Iter<'a> {
        self.range(0..self.len())
    }

    /// The first of the positions 0, `step`, 2 `step` ... with an item of these bytes.
    pub(in crate::value) fn find(self, bytes: &[u8], step: usize) -> Option<usize> {
        self.find_item(Item::of(bytes), step)
    }

    /// Like [`PackedListView::find`], of an item in one piece.
    pub(in crate::value) fn find_item(self, item: Item<'_>, step: usize) -> Option<usize> {
        let head = self.head();
        if matches!(item, Item::Text(bytes, _) if !has_prefix(bytes, self.prefix(&head))) {
            return None;
        }
        let coded = Coded::new(item, head.prefix);
        let column = &self.bytes[self.bytes.len() - head.len * head.width..];
        match head.width {
            0 => self.search(std::iter::repeat_n(head.common, head.len), &head, &coded, step),
            1 => self.search(column.iter().rev().map(|&code| code.into()), &head, &coded, step),
            width => {
                let codes = column.rchunks_exact(width).map(|code| tail(code, width) as usize);
                self.search(codes, &head, &coded, step)
            }
        }
    }

    fn search(self, codes: impl Iterator<Item = usize>, head: &Head, wanted: &Coded<'_>, step: usize) -> Option<usize> {
        let probe = wanted.probe();
        let mut end = head.content_at();
        for (position, code) in codes.enumerate() {
            end += length_of(code);
            if probe.is_at(self.bytes, code, end) && position.is_multiple_of(step) {
                return Some(position);
            }
        }
        None
    }

    /// Panics unless the invariants hold.
    pub(in crate::value) fn check(self) {
        let head = self.head();
        assert!(head.len == 0 && self.bytes.is_empty() || head.len > 0 && head.used() <= self.bytes.len());
        assert!(matches!(head.width, 0 | 1 | 2 | 4), "width {}", head.width);
        assert_eq!(self.lengths(&head, 0..head.len), head.content, "lengths must add up");
        let forward: Vec<_> = self.iter().collect();
        assert!(forward.iter().eq(self.iter().rev().collect::<Vec<_>>().iter().rev()), "both directions must agree");
        let mut words = Vec::new();
        self.iter().for_each_word(|word| words.push(word.item()));
        assert_eq!(words, forward, "words and items must agree");
        for (position, item) in forward.iter().enumerate() {
            assert_eq!(self.get(position), *item);
            let is_number = matches!(item, Item::Int(_));
            assert_eq!(
                is_number,
                parse_i64(&item.to_cow()).is_some(),
                "text that looks like an integer is stored as one"
            );
        }
    }

    pub(super) fn head(self) -> Head {
        let Some(bytes) = self.bytes.first_chunk::<HEAD>() else { return Head::default() };
        let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word) as usize);
        let (len, content) = (word(0), word(4));
        let (width, common) = match bytes[9] {
            0 => (0, TEXT + content.checked_div(len).unwrap_or(0)),
            integers if integers >= EQUAL_INTEGERS => (0, usize::from(integers - EQUAL_INTEGERS)),
            width => (usize::from(width), 0),
        };
        Head { len, content, prefix: bytes[8].into(), width, common }
    }

    pub(super) fn prefix(self, head: &Head) -> &'a [u8] {
        self.bytes.get(HEAD..head.content_at()).unwrap_or(&[])
    }

    fn item(self, head: &Head, code: usize, at: usize) -> Item<'a> {
        if code >= TEXT {
            return Item::Text(self.prefix(head), &self.bytes[at..at + length_of(code)]);
        }
        let folded = number(self.bytes, at + code, code);
        Item::Int((folded >> 1) as i64 ^ -((folded & 1) as i64))
    }

    /// The bytes of the codes of some positions.
    pub(super) fn column(self, head: &Head, positions: Range<usize>) -> Range<usize> {
        let end = self.bytes.len();
        end - positions.end * head.width..end - positions.start * head.width
    }

    pub(super) fn code(self, head: &Head, position: usize) -> usize {
        match head.width {
            0 => head.common,
            width => number(self.bytes, self.bytes.len() - position * width, width) as usize,
        }
    }

    /// The number of content bytes of some positions.
    pub(super) fn lengths(self, head: &Head, positions: Range<usize>) -> usize {
        match head.width {
            0 => positions.len() * length_of(head.common),
            1 => self.bytes[self.column(head, positions)].iter().map(|&code| length_of(code.into())).sum(),
            _ => positions.map(|position| length_of(self.code(head, position))).sum(),
        }
    }

    /// The offset of the content of a position.
    pub(super) fn content_of(self, head: &Head, position: usize) -> usize {
        if position > head.len / 2 {
            head.content_end() - self.lengths(head, position..head.len)
        } else {
            head.content_at() + self.lengths(head, 0..position)
        }
    }
}

/// Iterates over the items of a packed list, from both ends.
#[derive(Clone)]
pub(in crate::value) struct Iter<'a> {
    packed: PackedListView<'a>,
    head: Head,
    positions: Range<usize>,
    front_at: usize,
    back_at: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        let code = self.packed.code(&self.head, self.positions.next()?);
        let at = self.front_at;
        self.front_at += length_of(code);
        Some(self.packed.item(&self.head, code, at))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }

    /// Folds all items in one loop: what they have in common is read once.
    fn fold<B, F: FnMut(B, Item<'a>) -> B>(self, init: B, mut f: F) -> B {
        let Iter { packed, head, positions, front_at, back_at } = self;
        let (prefix, content) = (packed.prefix(&head), packed.bytes.get(front_at..back_at).unwrap_or_default());
        match head.width {
            0 if head.common > TEXT => {
                let texts = content.chunks_exact(head.common - TEXT);
                texts.fold(init, |sum, text| f(sum, Item::Text(prefix, text)))
            }
            1 => {
                let codes = packed.bytes[packed.column(&head, positions)].iter().rev();
                let mut at = front_at;
                codes.fold(init, |sum, &code| {
                    let (code, start) = (usize::from(code), at);
                    at += length_of(code);
                    match code.checked_sub(TEXT) {
                        Some(_) => f(sum, Item::Text(prefix, &packed.bytes[start..at])),
                        None => f(sum, packed.item(&head, code, start)),
                    }
                })
            }
            _ => {
                positions
                    .fold((init, front_at), |(sum, at), position| {
                        let code = packed.code(&head, position);
                        (f(sum, packed.item(&head, code, at)), at + length_of(code))
                    })
                    .0
            }
        }
    }
}

impl<'a> Words<'a> for Iter<'a> {
    #[inline]
    fn for_each_word(self, mut visit: impl FnMut(Word<'a>)) {
        let Iter { packed, head, positions, front_at: mut at, .. } = self;
        let (prefix, last) = (packed.prefix(&head), packed.bytes.len().wrapping_sub(1));
        for position in positions {
            let code = match head.width {
                0 => head.common,
                1 => packed.bytes.get(last.wrapping_sub(position)).copied().unwrap_or(0).into(),
                _ => packed.code(&head, position),
            };
            let ahead = packed.bytes.get(at..).and_then(|ahead| ahead.first_chunk());
            // Called at one place only, so that it becomes a part of the loop.
            visit(match (code.checked_sub(TEXT), ahead) {
                (Some(length @ ..=AHEAD), Some(ahead)) => Word::Ahead { prefix, length, ahead },
                _ => Word::Item(packed.item(&head, code, at)),
            });
            at = at.wrapping_add(length_of(code));
        }
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let code = self.packed.code(&self.head, self.positions.next_back()?);
        self.back_at -= length_of(code);
        Some(self.packed.item(&self.head, code, self.back_at))
    }
}

impl ExactSizeIterator for Iter<'_> {}

/// The number of content bytes that a code stands for.
pub(super) fn length_of(code: usize) -> usize {
    if code < TEXT { code } else { code - TEXT }
}
