//! Building a packed list in one pass, of items that are known to be alike ([`Outline`]).
//!
//! The prefix that the first texts and the last have in common is most often that of all. So items are measured and
//! written at once, without it, into memory that a thread keeps: contents from its beginning on, codes from its end
//! back. When their sizes are known, both are copied. An item that does not begin with the prefix, or that is long,
//! ends the attempt.

use super::{COPIED, Coded, LONGEST_PREFIX, Measures, PackedList, TEXT, digits_of};
use crate::value::item::{Item, Outline, Sequence, ShortText, Visitor};
use crate::value::listpack::{cost, cost_of_integer};
use std::cell::Cell;

/// The most memory that a thread keeps.
const MAX_KEPT: usize = 1 << 16;

thread_local! {
    static MEMORY: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Builds the list, and counts the bytes that Redis's listpack of the items would have; `None` if that takes two
/// passes.
pub(super) fn build<'a>(items: impl Sequence<'a>) -> Option<(PackedList, usize)> {
    let outline = items.outline()?;
    let mut memory = MEMORY.take();
    let room = outline.bytes.checked_add(2 * COPIED)?;
    if memory.len() < room {
        memory = vec![0; room];
    }
    let mut pass = OnePass::of(&outline, &mut memory);
    items.visit(&mut pass);
    let built = pass.finish();
    if memory.len() <= MAX_KEPT {
        MEMORY.set(memory);
    }
    built
}

struct OnePass<'t> {
    measures: Measures,
    /// Whether a text with the prefix may be a number.
    may_be_numbers: bool,
    bytes: &'t mut [u8],
    /// The offset of the next content, and that of the last code.
    at: usize,
    codes_at: usize,
    is_done: bool,
}

impl<'t> OnePass<'t> {
    fn of(outline: &Outline<'_>, bytes: &'t mut [u8]) -> OnePass<'t> {
        let mut measures = Measures::none();
        let [first, second, last] = outline.samples;
        let triples = first.iter().zip(second).zip(last).take(LONGEST_PREFIX);
        let prefix = triples.take_while(|((one, two), three)| one == two && one == three).count();
        measures.front[..prefix].copy_from_slice(&first[..prefix]);
        measures.set_prefix(prefix);
        let may_be_numbers = measures.may_be_numbers();
        let codes_at = bytes.len();
        OnePass { measures, may_be_numbers, bytes, at: 0, codes_at, is_done: false }
    }

    /// Adds texts for as long as they begin with the prefix and are short; returns the first one that may not.
    #[inline(always)]
    fn add<'a>(&mut self, texts: &mut impl Iterator<Item = ShortText<'a>>) -> Option<ShortText<'a>> {
        let (word, mask) = self.measures.word?;
        let (prefix, may_be_numbers) = (self.measures.prefix, self.may_be_numbers);
        let (bytes, mut at, mut codes_at) = (&mut *self.bytes, self.at, self.codes_at);
        let (start, mut lengths) = (codes_at, self.measures.lengths);
        let other = texts.find(|text| {
            let (Some(front), Some(length)) = (text.front(), text.length.checked_sub(prefix)) else { return true };
            if (front ^ word) & mask != 0 || may_be_numbers && text.may_be_number() || length > COPIED {
                return true;
            }
            let source = text.ahead.get(prefix..).and_then(|source| source.first_chunk::<COPIED>());
            let target = bytes.get_mut(at..codes_at).and_then(|target| target.first_chunk_mut::<COPIED>());
            let (Some(source), Some(target)) = (source, target) else { return true };
            // What is written behind the text is overwritten by the next one.
            *target = *source;
            let Some(code) = bytes.get_mut(codes_at.wrapping_sub(1)) else { return true };
            *code = (TEXT + length) as u8;
            codes_at = codes_at.wrapping_sub(1);
            at = at.wrapping_add(length);
            lengths.least = lengths.least.min(text.length);
            lengths.most = lengths.most.max(text.length);
            false
        });
        let (count, sum) = (start - codes_at, (at - self.at) + (start - codes_at) * prefix);
        lengths.sum = lengths.sum.saturating_add(sum);
        self.measures.len += count;
        self.measures.texts += count;
        self.measures.listpack = self.measures.listpack.saturating_add(sum + 2 * count);
        (self.at, self.codes_at, self.measures.lengths) = (at, codes_at, lengths);
        other
    }

    /// Adds integers for as long as there is room; returns the first one for which there is none.
    #[inline(always)]
    fn add_integers(&mut self, numbers: &mut impl Iterator<Item = i64>) -> Option<i64> {
        let (bytes, mut at, mut codes_at) = (&mut *self.bytes, self.at, self.codes_at);
        let (start, mut size, mut widths) = (codes_at, 0_usize, self.measures.integers);
        let other = numbers.find(|&number| {
            let (digits, code) = digits_of(number);
            let room = bytes.get_mut(at..codes_at).and_then(<[u8]>::split_last_mut);
            let Some((place, target)) = room else { return true };
            let Some(target) = target.first_chunk_mut() else { return true };
            // What is written behind the digits is overwritten by the next item.
            *target = digits;
            *place = code as u8;
            codes_at = codes_at.wrapping_sub(1);
            at = at.wrapping_add(code);
            size = size.wrapping_add(cost_of_integer(number));
            widths.add(code);
            false
        });
        self.measures.len += start - codes_at;
        self.measures.listpack = self.measures.listpack.saturating_add(size);
        (self.at, self.codes_at, self.measures.integers) = (at, codes_at, widths);
        other
    }

    /// Writes an item and its code; `None` if it does not begin with the prefix, or is long.
    fn write(&mut self, item: Item<'_>) -> Option<()> {
        if let Item::Text(first, _) = item
            && !self.measures.begins(first)
        {
            return None;
        }
        let coded = Coded::new(item, self.measures.prefix);
        let code = u8::try_from(coded.code).ok()?;
        let (contents, codes) = self.bytes.get_mut(self.at..self.codes_at)?.split_at_mut_checked(coded.len())?;
        coded.write(contents);
        *codes.last_mut()? = code;
        self.at += coded.len();
        self.codes_at -= 1;
        Some(())
    }

    fn finish(self) -> Option<(PackedList, usize)> {
        let OnePass { measures, bytes, at, codes_at, is_done, .. } = self;
        if is_done || measures.texts == 0 || !measures.fit() {
            return None;
        }
        let (mut packed, head) = measures.allocate();
        let size = packed.bytes.len();
        packed.bytes[head.content_at()..head.content_end()].copy_from_slice(&bytes[..at]);
        if head.width > 0 {
            packed.bytes[size - head.len..].copy_from_slice(&bytes[codes_at..]);
        }
        Some((packed, measures.listpack))
    }
}

impl<'a> Visitor<'a> for OnePass<'_> {
    #[inline(never)]
    fn item(&mut self, item: Item<'a>) {
        self.is_done |= self.write(item).is_none();
        let measures = &mut self.measures;
        measures.len += 1;
        measures.listpack = measures.listpack.saturating_add(cost(item));
        match item {
            Item::Int(_) => measures.integers.add(Coded::new(item, 0).code),
            Item::Text(first, second) => {
                measures.texts += 1;
                measures.lengths.add(first.len() + second.len());
            }
        }
    }

    #[inline(always)]
    fn short_texts(&mut self, texts: &mut impl Iterator<Item = ShortText<'a>>) {
        if self.measures.word.is_none() {
            return texts.for_each(|text| self.item(text.item()));
        }
        while let Some(text) = self.add(texts) {
            self.item(text.item());
            if self.is_done {
                return;
            }
        }
    }

    #[inline(always)]
    fn integers(&mut self, numbers: &mut impl Iterator<Item = i64>) {
        if let Some(number) = self.add_integers(numbers) {
            self.item(Item::Int(number));
            self.is_done = true;
        }
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.is_done
    }
}
