//! A packed list: byte strings one after the other, in one allocation. Small hashes and sets are packed lists, and so
//! is each node of a list.
//!
//! Most collections are small, so bytes count and a scan is fast. A packed list does not know what its items mean and
//! has no limits of its own but [`PackedList::has_room`]: its owner decides when it is too small.
//!
//! ```text
//! head, 10 bytes
//! +---------+--------------+--------+-------+--------+---------------------------+-------+----------------------+
//! | len u32 | content bytes| prefix | width | prefix | content of items 0, 1 ... | slack | ... codes of 1, 0    |
//! |         | u32          | len u8 | u8    |        |                           |       | width bytes each     |
//! +---------+--------------+--------+-------+--------+---------------------------+-------+----------------------+
//! ```
//!
//! - A code describes an item's content. 0 to 8: that many bytes of an integer, its sign folded into the lowest bit.
//!   `9 + n`: a text, the prefix with `n` further bytes.
//! - The prefix is what all texts begin with: `product-0000017` costs seven bytes in a packed list of its kind. It
//!   starts as the first text and gets shorter as others come.
//! - Width 0: all codes are equal and none is kept; texts are as long as `content bytes / len`. Width `16 + n`: all are
//!   integers of `n` bytes.
//! - What looks like an integer is always kept as one, so equal items have equal codes and equal content.
//! - Invariant: `10 + prefix + content bytes + width * len <= allocation`, and the lengths in the codes add up to the
//!   content bytes.
//! - Twenty items `product-%07d` take 158 bytes.
//!
//! Codes are at the end, last item first, so that appending an item moves nothing.
//!
//! Costs: item by position: a sum over the codes before or behind it; look-up: one code an item, and a word of
//! content where the code is right; a change moves the bytes behind it. A shorter prefix or wider codes build the
//! packed list again, at most 255 + 3 times in its life. A number of fixed width is read as the word that *ends* with
//! it, shifted down: the head in front makes that word always readable.
//!
//! Sources: front coding of sorted lists (Witten, Moffat, Bell 1999), here with one front for all.

mod build;
mod distinct;
mod matches;
mod view;

pub(super) use matches::Matches;
pub(super) use view::{Iter, PackedListView};

use crate::value::columns::{number, tail};
use crate::value::copy_short;
use crate::value::item::Item;
use std::ops::Range;
use view::length_of;

const HEAD: usize = 10;
/// The code of a text that is just the prefix.
const TEXT: usize = 9;
/// Added to the width of integers that all have the same width.
const EQUAL_INTEGERS: u8 = 16;
const LONGEST_PREFIX: usize = u8::MAX as usize;
/// Allocations end half way between multiples of this many bytes: the system's allocator puts a word of its own in
/// front of each, so that nothing is wasted.
const GRAIN: usize = 16;
/// The most bytes that items may have if they share no prefix, codes included.
const MAX_BYTES: usize = 1 << 30;
/// The least spare room, in bytes, of an unpacked list.
const ROOM: usize = 128;

/// Byte strings in a row, in one allocation. The empty packed list has no allocation.
#[derive(Clone, Default)]
pub(super) struct PackedList {
    bytes: Box<[u8]>,
}

#[derive(Clone, Copy, Default)]
struct Head {
    len: usize,
    content: usize,
    prefix: usize,
    /// The width of a code, in bytes; 0 if all codes are `common`.
    width: usize,
    common: usize,
}

impl Head {
    fn content_at(&self) -> usize {
        HEAD + self.prefix
    }

    fn content_end(&self) -> usize {
        self.content_at() + self.content
    }

    fn used(&self) -> usize {
        self.content_end() + self.len * self.width
    }

    fn has_text(&self) -> bool {
        self.len > 0 && (self.width > 0 || self.common >= TEXT)
    }

    /// Whether an item of this code can be added.
    fn admits(&self, code: usize) -> bool {
        match self.width {
            0 => self.common == code,
            width => width_of(code) <= width,
        }
    }
}

/// The digits of an integer, its sign in the lowest bit of the first one, and how many of them count.
#[inline(always)]
fn digits_of(number: i64) -> ([u8; 8], usize) {
    let folded = (number << 1 ^ number >> 63) as u64;
    (folded.to_le_bytes(), (64 - folded.leading_zeros()).div_ceil(8) as usize)
}

/// An item in the form in which a packed list stores it.
struct Coded<'a> {
    code: usize,
    digits: [u8; 8],
    parts: [&'a [u8]; 2],
}

impl<'a> Coded<'a> {
    /// Encodes an item for a list with a prefix of this length, if it is a text.
    fn new(item: Item<'a>, prefix: usize) -> Coded<'a> {
        match item {
            Item::Int(number) => {
                let (digits, width) = digits_of(number);
                Coded { code: width, digits, parts: [&[]; 2] }
            }
            Item::Text(first, second) => {
                let parts = [first.get(prefix..).unwrap_or(&[]), &second[prefix.saturating_sub(first.len())..]];
                Coded { code: TEXT + parts[0].len() + parts[1].len(), digits: [0; 8], parts }
            }
        }
    }

    fn len(&self) -> usize {
        length_of(self.code)
    }

    /// The form of the item that a search compares stored items with.
    fn probe(&self) -> Probe<'_> {
        let content = if self.code < TEXT { &self.digits[..self.code] } else { self.parts[0] };
        let width = content.len().min(8);
        Probe { code: self.code, content, width, word: tail(content, width) }
    }

    fn write(&self, target: &mut [u8]) {
        if self.code < TEXT {
            copy_short(target, &self.digits[..self.code]);
        } else {
            let (first, second) = target.split_at_mut(self.parts[0].len());
            copy_short(first, self.parts[0]);
            copy_short(second, self.parts[1]);
        }
    }
}

/// An item that is searched for: its code, its content, and the last bytes of that as one word.
struct Probe<'a> {
    code: usize,
    content: &'a [u8],
    width: usize,
    word: u64,
}

impl Probe<'_> {
    /// Whether the item with that code, whose content ends at `end`, is the one searched for.
    #[inline(always)]
    fn is_at(&self, bytes: &[u8], code: usize, end: usize) -> bool {
        code == self.code
            && number(bytes, end, self.width) == self.word
            && (self.content.len() <= 8 || bytes[end - self.content.len()..end] == *self.content)
    }
}

impl PackedList {
    /// Restores the packed list that [`PackedList::pack`] left in `bytes`, in the allocation `room` with space to grow.
    pub(super) fn unpack(bytes: &[u8], mut room: Box<[u8]>) -> PackedList {
        let packed = PackedListView::of(bytes);
        if bytes.is_empty() {
            return PackedList::default();
        }
        if room.len() < bytes.len() + ROOM {
            room = vec![0; (bytes.len() + ROOM).next_multiple_of(ROOM)].into_boxed_slice();
        }
        let head = packed.head();
        let (content, codes) = bytes.split_at(packed.column(&head, 0..head.len).start);
        let codes_at = room.len() - codes.len();
        room[..content.len()].copy_from_slice(content);
        room[codes_at..].copy_from_slice(codes);
        PackedList { bytes: room }
    }

    /// The number of bytes that [`PackedList::pack`] needs.
    pub(super) fn packed_len(&self) -> usize {
        if self.bytes.is_empty() { 0 } else { self.head().used() }
    }

    /// Moves the bytes together, to be stored elsewhere: they are the first [`PackedList::packed_len`] of the result.
    pub(super) fn pack(mut self) -> Box<[u8]> {
        let head = self.head();
        let codes = self.view().column(&head, 0..head.len);
        if !codes.is_empty() {
            self.bytes.copy_within(codes, head.content_end());
        }
        self.bytes
    }

    /// A view of the contents, for reading.
    pub(super) fn view(&self) -> PackedListView<'_> {
        PackedListView { bytes: &self.bytes }
    }

    pub(super) fn len(&self) -> usize {
        self.view().len()
    }

    /// The item at a position that exists.
    pub(super) fn get(&self, position: usize) -> Item<'_> {
        self.view().get(position)
    }

    /// The items at `positions`, which must exist.
    pub(super) fn range(&self, positions: Range<usize>) -> Iter<'_> {
        self.view().range(positions)
    }

    /// All items.
    pub(super) fn iter(&self) -> Iter<'_> {
        self.view().iter()
    }

    /// The first of the positions 0, `step`, 2 `step` ... with an item of these bytes.
    pub(super) fn find(&self, bytes: &[u8], step: usize) -> Option<usize> {
        self.view().find(bytes, step)
    }

    /// Panics unless the invariants hold.
    pub(super) fn check(&self) {
        self.view().check();
    }

    fn head(&self) -> Head {
        self.view().head()
    }

    pub(super) fn memory(&self) -> usize {
        self.bytes.len()
    }

    /// Whether items of `more` bytes together can be added.
    pub(super) fn has_room(&self, more: usize) -> bool {
        let head = self.head();
        head.content.saturating_add(head.len.saturating_mul(head.prefix + 4)).saturating_add(more) <= MAX_BYTES
    }

    /// Appends an item.
    pub(super) fn push(&mut self, item: Item<'_>) {
        self.insert(self.len(), item);
    }

    /// Inserts an item before the one at `position`, or at the end.
    pub(super) fn insert(&mut self, position: usize, item: Item<'_>) {
        self.adapt(item);
        self.place(position, item);
    }

    /// Replaces the item at a position that exists.
    pub(super) fn replace(&mut self, position: usize, item: Item<'_>) {
        let head = self.head();
        if self.prefix_with(&head, item) == head.prefix {
            let coded = Coded::new(item, head.prefix);
            if coded.code == self.view().code(&head, position) {
                let at = self.view().content_of(&head, position);
                return coded.write(&mut self.bytes[at..at + coded.len()]);
            }
        }
        self.remove(position..position + 1);
        self.insert(position, item);
    }

    /// Removes the items at `positions`, which must exist.
    pub(super) fn remove(&mut self, positions: Range<usize>) {
        let mut head = self.head();
        if positions.len() == head.len {
            self.bytes = Box::default();
            return;
        }
        let at = self.view().content_of(&head, positions.start);
        let gone = match positions.len() {
            count if count <= head.len / 2 => self.view().lengths(&head, positions.clone()),
            _ => self.view().content_of(&head, positions.end) - at,
        };
        self.bytes.copy_within(at + gone..head.content_end(), at);
        let kept = self.view().column(&head, positions.end..head.len);
        self.bytes.copy_within(kept.clone(), kept.start + positions.len() * head.width);
        head.len -= positions.len();
        head.content -= gone;
        self.set_head(&head);
        if head.used() + head.used() / 4 + GRAIN < self.bytes.len() {
            self.resize(head.used());
        }
    }

    /// Gives unused bytes back.
    pub(super) fn shrink(&mut self) {
        if self.len() > 0 {
            self.resize(self.head().used());
        }
    }

    fn set_head(&mut self, head: &Head) {
        put(&mut self.bytes, 0, 4, head.len);
        put(&mut self.bytes, 4, 4, head.content);
        self.bytes[8] = head.prefix as u8;
        self.bytes[9] = match head.width {
            0 if head.common < TEXT => EQUAL_INTEGERS + head.common as u8,
            width => width as u8,
        };
    }

    /// The length of the prefix with one more item.
    fn prefix_with(&self, head: &Head, item: Item<'_>) -> usize {
        match item {
            Item::Text(first, _) if head.has_text() && first.starts_with(self.view().prefix(head)) => head.prefix,
            Item::Text(first, second) if head.has_text() => {
                let same = |(a, b): &(&u8, &u8)| a == b;
                self.view().prefix(head).iter().zip(first.iter().chain(second)).take_while(same).count()
            }
            Item::Text(..) => item.len().min(LONGEST_PREFIX),
            Item::Int(_) => head.prefix,
        }
    }

    /// Builds the packed list again if its prefix or width does not fit the item.
    fn adapt(&mut self, item: Item<'_>) {
        let head = self.head();
        let prefix = self.prefix_with(&head, item);
        let code = Coded::new(item, prefix).code;
        if head.len > 0 && prefix == head.prefix && head.admits(code) {
            return;
        }
        let old = std::mem::take(self);
        let codes = || old.iter().map(|item| Coded::new(item, prefix).code).chain([code]);
        let width = if codes().all(|other| other == code) { 0 } else { codes().map(width_of).max().unwrap_or(0) };
        let content: usize = codes().map(length_of).sum();
        self.resize(HEAD + prefix + content + (old.len() + 1) * width);
        let shared = if let Item::Int(_) = item { Item::Text(old.view().prefix(&head), &[]) } else { item };
        for (target, byte) in self.bytes[HEAD..HEAD + prefix].iter_mut().zip(bytes_of(shared)) {
            *target = byte;
        }
        let (mut end, mut codes_at) = (HEAD + prefix, self.bytes.len());
        for coded in old.iter().map(|item| Coded::new(item, prefix)) {
            coded.write(&mut self.bytes[end..end + coded.len()]);
            end += coded.len();
            codes_at -= width;
            put(&mut self.bytes, codes_at, width, coded.code);
        }
        self.set_head(&Head { len: old.len(), content: end - HEAD - prefix, prefix, width, common: code });
    }

    /// Inserts an item that fits the prefix and the width of the codes.
    fn place(&mut self, position: usize, item: Item<'_>) {
        let mut head = self.head();
        let coded = Coded::new(item, head.prefix);
        if head.len == 0 {
            head.common = coded.code;
        }
        self.reserve(&head, coded.len() + head.width);
        let behind = self.view().column(&head, position..head.len);
        let at = if position == head.len { head.content_end() } else { self.view().content_of(&head, position) };
        if position < head.len {
            self.bytes.copy_within(at..head.content_end(), at + coded.len());
            self.bytes.copy_within(behind.clone(), behind.start - head.width);
        }
        coded.write(&mut self.bytes[at..at + coded.len()]);
        put(&mut self.bytes, behind.end - head.width, head.width, coded.code);
        head.len += 1;
        head.content += coded.len();
        self.set_head(&head);
    }

    fn reserve(&mut self, head: &Head, more: usize) {
        let needed = head.used() + more;
        if needed > self.bytes.len() {
            self.resize(needed + needed / 16);
        }
    }

    /// Resizes the allocation, which must fit the used bytes, and moves the codes to its end.
    fn resize(&mut self, size: usize) {
        let size = PackedList::rounded(size);
        let head = self.head();
        let codes = self.view().column(&head, 0..head.len);
        if size < self.bytes.len() {
            self.bytes.copy_within(codes.clone(), size - codes.len());
        }
        let mut bytes = std::mem::take(&mut self.bytes).into_vec();
        bytes.reserve_exact(size.saturating_sub(bytes.len()));
        bytes.resize(size, 0);
        self.bytes = bytes.into_boxed_slice();
        if size > codes.end {
            self.bytes.copy_within(codes.clone(), size - codes.len());
        }
    }
}

/// The number of bytes that a code needs in a column.
fn width_of(code: usize) -> usize {
    match code {
        0..0x100 => 1,
        0x100..0x1_0000 => 2,
        _ => 4,
    }
}

fn put(bytes: &mut [u8], at: usize, width: usize, value: usize) {
    if width == 1 {
        bytes[at] = value as u8;
        return;
    }
    bytes[at..at + width].copy_from_slice(&(value as u64).to_le_bytes()[..width]);
}

fn bytes_of(item: Item<'_>) -> impl Iterator<Item = u8> {
    let (first, second): (&[u8], &[u8]) = match item {
        Item::Int(_) => (&[], &[]),
        Item::Text(first, second) => (first, second),
    };
    first.iter().chain(second).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(items: &[&str]) -> PackedList {
        PackedList::build(items.iter().map(|item| Item::of(item.as_bytes()))).expect("there is room")
    }

    fn contents(packed: &PackedList) -> Vec<Vec<u8>> {
        packed.check();
        packed.iter().map(|item| item.to_vec()).collect()
    }

    #[test]
    fn a_common_prefix_is_stored_once() {
        let names: Vec<String> = (1..=20).map(|number| format!("product-{number:07}")).collect();
        let packed = packed(&names.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(packed.head().used(), 10 + 8 + 5 + 20 * 2, "with a prefix of product-00000");
        assert_eq!(contents(&packed), names.iter().map(|name| name.clone().into_bytes()).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_of_equal_width_take_only_their_bytes() {
        let packed = packed(&["1000", "-1000", "32767"]);
        assert_eq!(packed.head().used(), 10 + 3 * 2);
        assert_eq!(packed.find(b"-1000", 1), Some(1));
        assert_eq!(packed.find(b"01000", 1), None);
    }

    #[test]
    fn a_search_with_a_step_finds_only_items_at_that_step() {
        let packed = packed(&["a", "b", "b", "a", "a", "1", "1", "a"]);
        assert_eq!(packed.find(b"b", 2), Some(2));
        assert_eq!(packed.find(b"1", 2), Some(6));
        assert_eq!(packed.find(b"a", 4), Some(0));
        assert_eq!(packed.find(b"b", 4), None);
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            4 => (0..300_u32).prop_map(|number| format!("product-{number:04}").into_bytes()),
            4 => (any::<i64>(), 0..64_u32).prop_map(|(number, shift)| (number >> shift).to_string().into_bytes()),
            2 => prop::collection::vec(any::<u8>(), 0..4),
            1 => (0..3_u8, 240..270_usize).prop_map(|(byte, len)| vec![byte; len]),
            1 => (0..2_u8, 65_520..65_540_usize).prop_map(|(byte, len)| vec![byte; len]),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_packed_list_holds_what_a_vector_holds(
            steps in prop::collection::vec((0..8_u8, any::<prop::sample::Index>(), 0..3_usize, bytes()), 0..60)
        ) {
            let (mut packed, mut model) = (PackedList::default(), Vec::<Vec<u8>>::new());
            for (kind, at, count, bytes) in steps {
                let at = at.index(model.len() + 1);
                match kind {
                    0..4 => {
                        packed.insert(at, Item::of(&bytes));
                        model.insert(at, bytes);
                    }
                    4 => {
                        packed.push(Item::of(&bytes));
                        model.push(bytes);
                    }
                    5 | 6 if at < model.len() => {
                        packed.replace(at, Item::of(&bytes));
                        model[at] = bytes;
                    }
                    _ => {
                        let end = (at + count).min(model.len());
                        packed.remove(at..end);
                        model.drain(at..end);
                    }
                }
                prop_assert_eq!(&contents(&packed), &model);
            }
            for bytes in &model {
                prop_assert_eq!(packed.find(bytes, 1), model.iter().position(|other| other == bytes));
            }
            let middle = model.len() / 2;
            for bytes in model.iter().chain([&b"none".to_vec()]) {
                let equal = (middle..model.len()).filter(|&position| model[position] == *bytes);
                let found = |is_backward| packed.view().matches(bytes, middle..model.len(), is_backward);
                prop_assert!(found(false).eq(equal.clone()));
                prop_assert!(found(true).eq(equal.rev()));
            }
            prop_assert!(packed.range(middle..model.len()).map(|item| item.to_vec()).eq(model.drain(middle..)));
        }
    }
}
