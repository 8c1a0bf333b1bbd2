//! Building a packed list of all its items at once: one pass measures them, the next writes them into an allocation
//! of the right size.
//!
//! Invariant: the list has the items in order, in no more memory than if they had been appended one by one.

use super::{Coded, GRAIN, HEAD, Head, LONGEST_PREFIX, MOST_BYTES, PackedList, TEXT, bytes_of, put, width_of};
use crate::value::copy_short;
use crate::value::item::Item;

/// The most bytes that an item takes in addition to those of a text: its prefix and code, or its digits.
const MOST_OVERHEAD: usize = LONGEST_PREFIX + 4 + 20;

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

/// The measures of some items, from which their layout follows.
struct Measures {
    len: usize,
    texts: usize,
    /// The lengths of the texts.
    lengths: Spread,
    /// The codes of the integers.
    integers: Spread,
    /// The first bytes of the first text; of these, `prefix` are common to all texts.
    front: [u8; LONGEST_PREFIX],
    prefix: usize,
}

impl Measures {
    fn of<'a>(items: impl Iterator<Item = Item<'a>>) -> Measures {
        let mut measures =
            Measures { len: 0, texts: 0, lengths: Spread::NONE, integers: Spread::NONE, front: [0; 255], prefix: 0 };
        items.for_each(|item| measures.add(item));
        measures
    }

    #[inline(always)]
    fn add(&mut self, item: Item<'_>) {
        self.len += 1;
        match item {
            Item::Int(_) => self.integers.add(Coded::new(item, 0).code),
            Item::Text(first, second) => {
                if self.texts == 0 {
                    self.set_front(item);
                } else if !self.begins(first) {
                    let same = |(a, b): &(&u8, &u8)| a == b;
                    let bytes = first.iter().chain(second);
                    self.prefix = self.front[..self.prefix].iter().zip(bytes).take_while(same).count();
                }
                self.texts += 1;
                self.lengths.add(first.len() + second.len());
            }
        }
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

    #[cold]
    fn set_front(&mut self, item: Item<'_>) {
        self.prefix = item.len().min(LONGEST_PREFIX);
        self.front.iter_mut().zip(bytes_of(item)).for_each(|(target, byte)| *target = byte);
    }

    /// Whether a packed list has room for all, whatever their order.
    fn fit(&self) -> bool {
        self.lengths.sum.saturating_add(self.len.saturating_mul(MOST_OVERHEAD)) <= MOST_BYTES
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

/// The first and the last bytes of a text.
#[inline]
fn ends_of<const N: usize>(text: &[u8]) -> (Option<&[u8; N]>, Option<&[u8; N]>) {
    (text.first_chunk(), text.last_chunk())
}

impl PackedList {
    /// Builds a packed list of some items, with nothing to spare; `None` if it may have no room for them.
    pub(in crate::value) fn build<'a>(items: impl Iterator<Item = Item<'a>> + Clone) -> Option<PackedList> {
        PackedList::build_and(items, |_| ())
    }

    /// Like [`PackedList::build`]; calls `each` with each item.
    pub(in crate::value) fn build_and<'a>(
        items: impl Iterator<Item = Item<'a>> + Clone,
        mut each: impl FnMut(Item<'a>),
    ) -> Option<PackedList> {
        let measures = Measures::of(items.clone().inspect(|item| each(*item)));
        if measures.len == 0 {
            return Some(PackedList::default());
        }
        if !measures.fit() {
            return None;
        }
        let head = measures.head();
        let size = PackedList::rounded(head.used());
        let mut packed = PackedList { bytes: vec![0; size].into_boxed_slice() };
        packed.set_head(&head);
        packed.bytes[HEAD..head.content_at()].copy_from_slice(&measures.front[..head.prefix]);
        let (contents, codes) = packed.bytes.split_at_mut(size - head.len * head.width);
        let contents = &mut contents[head.content_at()..];
        match head.width {
            0 => write(contents, items, head.prefix, |_| ()),
            1 => {
                let mut codes = codes.iter_mut().rev();
                write(contents, items, head.prefix, |code| {
                    codes.next().into_iter().for_each(|target| *target = code as u8);
                });
            }
            width => {
                let mut codes = codes.rchunks_exact_mut(width);
                write(contents, items, head.prefix, |code| {
                    codes.next().into_iter().for_each(|target| put(target, 0, width, code));
                });
            }
        }
        Some(packed)
    }

    /// The bytes of an allocation that has room for that many.
    pub(super) fn rounded(bytes: usize) -> usize {
        (bytes + GRAIN / 2).next_multiple_of(GRAIN) - GRAIN / 2
    }
}

/// Writes the contents of items one after the other, and calls `put_code` with the code of each.
#[inline]
fn write<'a>(
    contents: &mut [u8],
    items: impl Iterator<Item = Item<'a>>,
    prefix: usize,
    mut put_code: impl FnMut(usize),
) {
    let mut at = 0;
    items.for_each(|item| {
        let start = at;
        if let Item::Text(text, []) = item
            && let Some(text) = text.get(prefix..)
        {
            at += text.len();
            copy_short(&mut contents[start..at], text);
            put_code(TEXT + text.len());
        } else {
            let coded = Coded::new(item, prefix);
            at += coded.len();
            coded.write(&mut contents[start..at]);
            put_code(coded.code);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pushed(items: &[Item<'_>]) -> PackedList {
        let mut packed = PackedList::default();
        items.iter().for_each(|&item| packed.push(item));
        packed.shrink();
        packed
    }

    /// Checks that items that are packed at once are as if they had been appended, and take no more memory.
    fn check_built(items: &[Item<'_>]) {
        let (built, pushed) = (PackedList::build(items.iter().copied()).expect("there is room"), pushed(items));
        built.check();
        assert_eq!(built.iter().collect::<Vec<_>>(), items);
        assert!(built.memory() <= pushed.memory());
    }

    proptest! {
        #[test]
        fn items_that_are_packed_at_once_are_those_that_are_appended_in_no_more_memory(
            texts in prop::collection::vec(
                prop_oneof!["[0-9]{0,3}", "-?[1-9][0-9]{0,17}", "product-[0-9]{0,8}", "[a-c]{0,300}", "x{3}"],
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
