//! Building a packed list of all its items at once: one pass measures them, the next writes them into an allocation
//! of the right size.
//!
//! Invariant: the list has the items in order, in no more memory than if they had been appended one by one.

mod one_pass;

use super::{
    Coded, GRAIN, HEAD, Head, LONGEST_PREFIX, MAX_BYTES, PackedList, TEXT, bytes_of, digits_of, put, width_of,
};
use crate::value::copy_short;
use crate::value::item::{Item, Sequence, ShortText, Visitor};
use crate::value::listpack::{EMPTY, cost, cost_of_integer};

/// The most bytes that an item takes in addition to those of a text: its prefix and code, or its digits.
const MAX_OVERHEAD: usize = LONGEST_PREFIX + 4 + 20;

/// The least and the greatest of some numbers, and their sum.
#[derive(Clone, Copy)]
struct Spread {
    least: usize,
    most: usize,
    sum: usize,
}

impl Spread {
    const NONE: Spread = Spread { least: usize::MAX, most: 0, sum: 0 };

    #[inline]
    fn add(&mut self, number: usize) {
        self.least = self.least.min(number);
        self.most = self.most.max(number);
        self.sum = self.sum.saturating_add(number);
    }
}

/// The bytes that are copied of a text that has no more of them.
const COPIED: usize = 16;

/// The measures of some items, from which their layout follows.
struct Measures {
    len: usize,
    texts: usize,
    /// The lengths of the texts.
    lengths: Spread,
    /// The codes of the integers.
    integers: Spread,
    /// The bytes that Redis's listpack of the items has.
    listpack: usize,
    /// The first bytes of the first text; of these, `prefix` are common to all texts.
    front: [u8; LONGEST_PREFIX],
    prefix: usize,
    /// The prefix as a word and which of its bits count, if there is a text and the prefix is no longer than a word.
    word: Option<(u64, u64)>,
    /// Whether a short text begins like a number.
    has_digits: bool,
}

impl Measures {
    fn of<'a>(items: impl Sequence<'a>) -> Measures {
        let mut measures = Measures::none();
        items.visit(&mut measures);
        measures
    }

    fn none() -> Measures {
        Measures {
            len: 0,
            texts: 0,
            lengths: Spread::NONE,
            integers: Spread::NONE,
            listpack: EMPTY,
            front: [0; LONGEST_PREFIX],
            prefix: 0,
            word: None,
            has_digits: false,
        }
    }

    /// Measures texts for as long as they begin with the prefix, and returns the first one that may not.
    #[inline(always)]
    fn add_alike<'a>(&mut self, texts: &mut impl Iterator<Item = ShortText<'a>>) -> Option<ShortText<'a>> {
        let Some((word, mask)) = self.word else { return texts.next() };
        let (prefix, mut count, mut lengths) = (self.prefix, 0_usize, Spread { sum: 0, ..self.lengths });
        let may_be_numbers = self.may_be_numbers();
        let other = texts.find(|text| {
            let Some(front) = text.front() else { return true };
            if (front ^ word) & mask != 0 || text.length < prefix || may_be_numbers && text.may_be_number() {
                return true;
            }
            count = count.wrapping_add(1);
            lengths.add(text.length);
            false
        });
        self.len += count;
        self.texts += count;
        self.listpack = self.listpack.saturating_add(lengths.sum + 2 * count);
        self.lengths = Spread { sum: self.lengths.sum.saturating_add(lengths.sum), ..lengths };
        other
    }

    /// Whether a text that begins with the prefix may be a number.
    fn may_be_numbers(&self) -> bool {
        self.prefix == 0 || Item::may_be_number(&self.front)
    }

    /// Whether a text begins with the prefix. A short one is compared as one word or two, which may overlap.
    #[inline]
    fn begins(&self, text: &[u8]) -> bool {
        let Some(text) = text.get(..self.prefix) else { return false };
        let prefix = &self.front[..self.prefix];
        match self.prefix {
            0 => true,
            4..8 => ends_of::<4>(text) == ends_of::<4>(prefix),
            8..=16 => ends_of::<8>(text) == ends_of::<8>(prefix),
            _ => text == prefix,
        }
    }

    /// Takes the prefix of the first text, or shortens that of all before to what it has in common with one more.
    #[cold]
    fn adapt_prefix(&mut self, item: Item<'_>) {
        if self.texts == 0 {
            self.prefix = item.len().min(LONGEST_PREFIX);
            self.front.iter_mut().zip(bytes_of(item)).for_each(|(target, byte)| *target = byte);
        } else {
            let same = |(a, b): &(&u8, u8)| **a == *b;
            self.prefix = self.front[..self.prefix].iter().zip(bytes_of(item)).take_while(same).count();
        }
        self.set_prefix(self.prefix);
    }

    /// Takes so many of the first bytes as the prefix.
    fn set_prefix(&mut self, prefix: usize) {
        self.prefix = prefix;
        let mask = u64::MAX.unbounded_shr(64_u32.saturating_sub(8 * prefix as u32));
        let word = self.front.first_chunk().map(|front| (u64::from_le_bytes(*front), mask));
        self.word = word.filter(|_| prefix <= 8);
    }

    /// Whether a packed list has room for all, whatever their order.
    fn fit(&self) -> bool {
        self.lengths.sum.saturating_add(self.len.saturating_mul(MAX_OVERHEAD)) <= MAX_BYTES
    }

    /// A list with room for the items, which has its head and the prefix already.
    fn allocate(&self) -> (PackedList, Head) {
        let head = self.head();
        let mut packed = PackedList { bytes: vec![0; PackedList::rounded(head.used())].into_boxed_slice() };
        packed.set_head(&head);
        packed.bytes[HEAD..head.content_at()].copy_from_slice(&self.front[..head.prefix]);
        (packed, head)
    }

    fn head(&self) -> Head {
        let (most, is_common) = match (self.texts, self.integers.sum) {
            (0, _) => (self.integers.most, self.integers.least == self.integers.most),
            _ => (
                TEXT + self.lengths.most - self.prefix,
                self.texts == self.len && self.lengths.least == self.lengths.most,
            ),
        };
        let content = self.lengths.sum - self.texts * self.prefix + self.integers.sum;
        let width = if is_common { 0 } else { width_of(most) };
        Head { len: self.len, content, prefix: self.prefix, width, common: most }
    }
}

impl<'a> Visitor<'a> for Measures {
    #[inline(never)]
    fn item(&mut self, item: Item<'a>) {
        self.len += 1;
        self.listpack = self.listpack.saturating_add(cost(item));
        match item {
            Item::Int(_) => self.integers.add(Coded::new(item, 0).code),
            Item::Text(first, second) => {
                if self.texts == 0 || !self.begins(first) {
                    self.adapt_prefix(item);
                }
                self.texts += 1;
                self.lengths.add(first.len() + second.len());
            }
        }
    }

    #[inline(always)]
    fn short_texts(&mut self, texts: &mut impl Iterator<Item = ShortText<'a>>) {
        while let Some(text) = self.add_alike(texts) {
            self.has_digits |= text.may_be_number();
            self.item(text.item());
        }
    }

    #[inline(always)]
    fn integers(&mut self, numbers: &mut impl Iterator<Item = i64>) {
        let (mut count, mut bytes, mut widths) = (0_usize, 0_usize, self.integers);
        numbers.for_each(|number| {
            count = count.wrapping_add(1);
            bytes = bytes.wrapping_add(cost_of_integer(number));
            widths.add(digits_of(number).1);
        });
        self.len += count;
        self.listpack = self.listpack.saturating_add(bytes);
        self.integers = widths;
    }
}

/// The first and the last bytes of a text.
#[inline]
fn ends_of<const N: usize>(text: &[u8]) -> (Option<&[u8; N]>, Option<&[u8; N]>) {
    (text.first_chunk(), text.last_chunk())
}

impl PackedList {
    /// Builds a packed list of some items, with nothing to spare; `None` if it may have no room for them.
    pub(in crate::value) fn build<'a>(items: impl Sequence<'a>) -> Option<PackedList> {
        PackedList::build_measured(items).map(|(packed, _)| packed)
    }

    /// Like [`PackedList::build`]; returns also the bytes that Redis's listpack of the items would have.
    pub(in crate::value) fn build_measured<'a>(items: impl Sequence<'a>) -> Option<(PackedList, usize)> {
        if let Some(built) = one_pass::build(items.clone()) {
            return Some(built);
        }
        let measures = Measures::of(items.clone());
        if measures.len == 0 {
            return Some((PackedList::default(), measures.listpack));
        }
        if !measures.fit() {
            return None;
        }
        let (mut packed, head) = measures.allocate();
        let (contents, codes) = packed.bytes.split_at_mut(packed.bytes.len() - head.len * head.width);
        let contents = &mut contents[head.content_at()..];
        let (prefix, width, has_digits) = (head.prefix, head.width, measures.has_digits);
        items.visit(&mut Filling { contents, at: 0, prefix, codes, width, has_digits });
        Some((packed, measures.listpack))
    }

    /// The bytes of an allocation that has room for that many.
    pub(super) fn rounded(bytes: usize) -> usize {
        (bytes + GRAIN / 2).next_multiple_of(GRAIN) - GRAIN / 2
    }
}

/// Writes the contents of items one after the other, and their codes from the last to the first place.
struct Filling<'t> {
    contents: &'t mut [u8],
    at: usize,
    prefix: usize,
    /// The places of the codes that are to come, `width` bytes each.
    codes: &'t mut [u8],
    width: usize,
    /// Whether a short text may be the digits of a number.
    has_digits: bool,
}

/// Writes a code into the last place, and takes that away.
#[inline]
fn put_code(codes: &mut &mut [u8], width: usize, code: usize) {
    match width {
        0 => {}
        1 => {
            if let Some(target) = codes.split_off_last_mut() {
                *target = code as u8;
            }
        }
        width => {
            let start = codes.len().saturating_sub(width);
            if let Some(target) = codes.split_off_mut(start..) {
                put(target, 0, width, code);
            }
        }
    }
}

impl Filling<'_> {
    /// Writes texts, whose codes have at most one byte, for as long as they are no numbers; returns the first other
    /// one.
    #[inline(always)]
    fn fill<'a>(&mut self, texts: &mut impl Iterator<Item = ShortText<'a>>) -> Option<ShortText<'a>> {
        let (contents, prefix, has_digits, mut at) = (&mut *self.contents, self.prefix, self.has_digits, self.at);
        let (mut codes, has_codes) = (std::mem::take(&mut self.codes), self.width == 1);
        let other = texts.find(|text| {
            if has_digits && text.may_be_number() {
                return true;
            }
            let length = text.length - prefix;
            let source = text.ahead.get(prefix..).unwrap_or_default();
            let target = contents.get_mut(at..).and_then(|contents| contents.first_chunk_mut::<COPIED>());
            match (source.first_chunk(), target) {
                // What is written behind it is overwritten by the next one.
                (Some(source), Some(target)) if length <= COPIED => *target = *source,
                _ => copy_short(&mut contents[at..at + length], &source[..length]),
            }
            at += length;
            if has_codes && let Some(target) = codes.split_off_last_mut() {
                *target = (TEXT + length) as u8;
            }
            false
        });
        (self.at, self.codes) = (at, codes);
        other
    }
}

impl<'a> Visitor<'a> for Filling<'_> {
    #[inline(never)]
    fn item(&mut self, item: Item<'a>) {
        let coded = Coded::new(item, self.prefix);
        let end = self.at + coded.len();
        coded.write(&mut self.contents[self.at..end]);
        self.at = end;
        put_code(&mut self.codes, self.width, coded.code);
    }

    #[inline(always)]
    fn short_texts(&mut self, texts: &mut impl Iterator<Item = ShortText<'a>>) {
        if self.width > 1 {
            return texts.for_each(|text| self.item(text.item()));
        }
        while let Some(text) = self.fill(texts) {
            self.item(text.item());
        }
    }

    #[inline(always)]
    fn integers(&mut self, numbers: &mut impl Iterator<Item = i64>) {
        let (contents, width, mut at) = (&mut *self.contents, self.width, self.at);
        let mut codes = std::mem::take(&mut self.codes);
        numbers.for_each(|number| {
            let (digits, code) = digits_of(number);
            // What is written behind it is overwritten by the next one.
            match contents.get_mut(at..).and_then(|contents| contents.first_chunk_mut()) {
                Some(target) => *target = digits,
                None => copy_short(&mut contents[at..at + code], &digits[..code]),
            }
            at += code;
            put_code(&mut codes, width, code);
        });
        (self.at, self.codes) = (at, codes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::item::Outline;
    use proptest::prelude::*;

    fn pushed(items: &[Item<'_>]) -> PackedList {
        let mut packed = PackedList::default();
        items.iter().for_each(|&item| packed.push(item));
        packed.shrink();
        packed
    }

    /// Checks that items that are packed at once are as if they had been appended, and take no more memory.
    fn check_built(items: &[Item<'_>]) {
        let (built, size) = PackedList::build_measured(items.iter().copied()).expect("there is room");
        built.check();
        assert_eq!(built.iter().collect::<Vec<_>>(), items);
        assert!(built.memory() <= pushed(items).memory());
        assert_eq!(size, EMPTY + items.iter().map(|item| cost(*item)).sum::<usize>());
        let (of_texts, size_of_texts) = PackedList::build_measured(Plain(items)).expect("there is room");
        assert_eq!((&of_texts.bytes, size_of_texts), (&built.bytes, size));
    }

    fn short_text(item: Item<'_>) -> Result<ShortText<'_>, Item<'_>> {
        match item {
            Item::Text(first, []) if first.len() < 64 => Ok(ShortText { length: first.len(), ahead: first }),
            _ => Err(item),
        }
    }

    /// Items of which the texts and the integers are visited as such.
    #[derive(Clone, Copy)]
    struct Plain<'i>(&'i [Item<'i>]);

    impl<'i> IntoIterator for Plain<'i> {
        type Item = Item<'i>;
        type IntoIter = std::iter::Copied<std::slice::Iter<'i, Item<'i>>>;

        fn into_iter(self) -> Self::IntoIter {
            self.0.iter().copied()
        }
    }

    impl<'i> Sequence<'i> for Plain<'i> {
        fn outline(&self) -> Option<Outline<'i>> {
            let text = |item: &Item<'i>| short_text(*item).ok().map(|text| text.bytes());
            let (first, last) = (self.0.iter().find_map(text)?, self.0.iter().rev().find_map(text)?);
            let second = self.0.iter().filter_map(text).nth(1).unwrap_or(first);
            let bytes = self.0.iter().map(|item| item.len() + MAX_OVERHEAD).sum();
            let samples = [first, second, last];
            (!samples.into_iter().any(Item::may_be_number)).then_some(Outline { samples, bytes })
        }

        fn visit(self, visitor: &mut impl Visitor<'i>) {
            let mut items = self.0.iter().copied().peekable();
            while items.peek().is_some() {
                visitor.short_texts(&mut std::iter::from_fn(|| items.next_if_map(short_text)));
                match items.next() {
                    Some(Item::Int(number)) => visitor.integers(&mut std::iter::once(number)),
                    Some(item) => visitor.item(item),
                    None => {}
                }
            }
        }
    }

    proptest! {
        #[test]
        fn items_that_are_packed_at_once_are_those_that_are_appended_in_no_more_memory(
            texts in prop::collection::vec(
                prop_oneof!["[0-9]{0,3}", "-?[1-9][0-9]{0,17}", "product-[0-9]{0,8}", "key:[0-9]{0,9}", "[a-c]{0,300}", "x{3}"],
                0..40,
            ),
            cut: prop::sample::Index,
        ) {
            let items: Vec<_> = texts
                .iter()
                .map(|text| match Item::of(text.as_bytes()) {
                    Item::Text(bytes, _) => {
                        let (first, second) = bytes.split_at(cut.index(bytes.len() + 1));
                        Item::Text(first, second)
                    }
                    number @ Item::Int(_) => number,
                })
                .collect();
            check_built(&items);
        }
    }

    #[test]
    fn long_texts_and_integers_are_packed_at_once() {
        let long = vec![b'y'; 70_000];
        for items in [
            vec![Item::Text(&long, &[])],
            vec![Item::Text(&long, &[]), Item::Int(4), Item::Text(&long[..9], b"z")],
            vec![Item::Int(7); 300],
            vec![Item::Int(0), Item::Int(i64::MIN)],
            vec![Item::Text(&long[..300], b"a"), Item::Text(&long[..300], b"bc")],
        ] {
            check_built(&items);
        }
    }
}
