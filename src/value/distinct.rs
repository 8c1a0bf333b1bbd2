//! Whether some elements differ from each other.
//!
//! Costs: O(n): a comparison for each if they ascend already, as members do that contain a counter, else a table of
//! the elements' hashes. Where two hashes are equal or too many are alike, which elements may be chosen for, the
//! elements are sorted instead.

use crate::value::item::Item;
use crate::value::{copy_short, hashing};
use std::borrow::Cow;

/// The most neighbours that are compared in the table before the elements are sorted.
const MAX_PROBES: usize = 32;

/// Whether no two of some elements have the same bytes. Allocates for as many as there are.
pub fn are_distinct<'a>(items: impl ExactSizeIterator<Item = Item<'a>> + Clone) -> bool {
    ascend(items.clone()) || have_distinct_hashes(items.clone()) || are_distinct_in_order(items)
}

/// Whether all are numbers, or all texts in one piece of at most 16 bytes, and ascend: texts by length, then by bytes.
fn ascend<'a>(mut items: impl Iterator<Item = Item<'a>>) -> bool {
    match items.next() {
        None => true,
        Some(Item::Int(first)) => {
            let mut before = first;
            items.all(|item| match item {
                Item::Int(number) => std::mem::replace(&mut before, number) < number,
                Item::Text(..) => false,
            })
        }
        Some(Item::Text(first, [])) => {
            let mut before = rank(first);
            before.is_some()
                && items.all(|item| match item {
                    Item::Text(text, []) => {
                        let rank = rank(text);
                        std::mem::replace(&mut before, rank) < rank
                    }
                    _ => false,
                })
        }
        Some(Item::Text(..)) => false,
    }
}

/// The place of a text of at most 16 bytes among all of these, ordered by length, then by bytes; `None` if it is
/// longer.
#[inline]
fn rank(text: &[u8]) -> Option<(usize, u64, u64)> {
    let word = |chunk: Option<&[u8; 8]>| chunk.map(|chunk| u64::from_be_bytes(*chunk));
    match text.len() {
        length @ 8..=16 => Some((length, word(text.first_chunk())?, word(text.last_chunk())?)),
        length @ ..8 => {
            let mut last = [0; 8];
            copy_short(&mut last[..length], text);
            Some((length, 0, u64::from_be_bytes(last)))
        }
        _ => None,
    }
}

/// Whether all hashes differ and are spread well. If not, the elements may differ all the same.
fn have_distinct_hashes<'a>(items: impl ExactSizeIterator<Item = Item<'a>>) -> bool {
    let places = (2 * items.len()).next_power_of_two();
    let mut hashes = vec![0_u32; places];
    for item in items {
        let hash = hash(item);
        let (mut place, hash) = ((hash >> 32) as usize, (hash as u32).max(1));
        let mut probes = 0;
        loop {
            place &= places - 1;
            match hashes[place] {
                0 => break,
                other if other == hash || probes == MAX_PROBES => return false,
                _ => (place, probes) = (place + 1, probes + 1),
            }
        }
        hashes[place] = hash;
    }
    true
}

/// Odd numbers with bits at random, from the digits of pi.
const MIXED: [u64; 3] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345, 0xa409_3822_299f_31d1];

/// A hash that takes few steps. Anyone can find elements with equal ones, which only makes the comparison slower.
#[inline(always)]
fn hash(item: Item<'_>) -> u64 {
    match item {
        Item::Int(number) => mixed(number.cast_unsigned(), 0),
        Item::Text(bytes, []) => match rank(bytes) {
            Some((length, first, last)) => mixed(first ^ (length as u64).wrapping_mul(MIXED[2]), last),
            None => hash_of_long(bytes),
        },
        Item::Text(..) => hash_of_two(item),
    }
}

#[inline(never)]
fn hash_of_long(bytes: &[u8]) -> u64 {
    hashing::quick(bytes)
}

/// The hash of a text in two pieces, which is that of the text in one.
#[inline(never)]
fn hash_of_two(item: Item<'_>) -> u64 {
    hash(Item::Text(&item.to_cow(), &[]))
}

/// The halves of a product of two words, added without carries.
#[inline]
fn mixed(one: u64, other: u64) -> u64 {
    let product = u128::from(one ^ MIXED[0]) * u128::from(other ^ MIXED[1]);
    product as u64 ^ (product >> 64) as u64
}

fn are_distinct_in_order<'a>(items: impl Iterator<Item = Item<'a>>) -> bool {
    let mut sorted: Vec<_> = items.map(key).collect();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// The identity of an element: a number is the same in whatever form it is encoded.
fn key(item: Item<'_>) -> (Option<i64>, Cow<'_, [u8]>) {
    match item {
        Item::Int(number) => (Some(number), Cow::Borrowed(&[])),
        Item::Text(..) => (None, item.to_cow()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn elements_are_distinct_if_they_are_in_order(texts in prop::collection::vec("[0-9a-c]{0,3}", 0..30)) {
            let items: Vec<_> = texts.iter().map(|text| Item::of(text.as_bytes())).collect();
            prop_assert_eq!(are_distinct(items.iter().copied()), are_distinct_in_order(items.iter().copied()));
        }

        #[test]
        fn elements_that_ascend_are_those_that_are_in_order_of_length_and_bytes(
            mut texts in prop::collection::vec(prop_oneof!["[a-c]{0,3}", "key:[a-c]{3,5}", "member of a set[a-c]{0,4}"], 0..9),
            is_sorted: bool,
        ) {
            if is_sorted {
                texts.sort_by_key(|text| (text.len(), text.clone()));
            }
            let ascends = texts.is_sorted_by(|one, next| (one.len(), one) < (next.len(), next));
            let is_short = texts.iter().all(|text| text.len() <= 16);
            prop_assert_eq!(ascend(texts.iter().map(|text| Item::of(text.as_bytes()))), ascends && is_short);
        }

        #[test]
        fn numbers_ascend_in_their_order(mut numbers in prop::collection::vec(any::<i64>(), 0..9), is_sorted: bool) {
            if is_sorted {
                numbers.sort_unstable();
            }
            let ascends = numbers.is_sorted_by(|one, next| one < next);
            prop_assert_eq!(ascend(numbers.into_iter().map(Item::Int)), ascends);
        }
    }

    /// Texts of 16 bytes with one hash: their first half makes the product zero.
    fn flood() -> impl Iterator<Item = Vec<u8>> {
        let first = MIXED[0] ^ 16_u64.wrapping_mul(MIXED[2]);
        (0..u64::MAX).map(move |number| [first.to_be_bytes(), number.to_be_bytes()].concat())
    }

    #[test]
    fn elements_with_equal_hashes_may_be_distinct() {
        let members: Vec<_> = flood().take(100).collect();
        let items = || members.iter().map(|member| Item::of(member));
        assert!(!have_distinct_hashes(items()) && are_distinct(items()));
        let first = Item::of(&members[0]);
        assert!(!are_distinct([first, Item::of(b"other"), first].into_iter()));
    }

    #[test]
    fn a_number_is_not_the_text_of_its_bytes() {
        let number = i64::from_le_bytes(*b"abcdefgh");
        assert!(are_distinct([Item::Int(number), Item::of(b"abcdefgh")].into_iter()));
    }
}
