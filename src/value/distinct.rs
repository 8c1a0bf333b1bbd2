//! Whether some elements differ from each other.
//!
//! Costs: O(n): a table of the elements' hashes. Where two hashes are equal or too many are alike, which elements may
//! be chosen for, the elements are sorted instead.

use crate::value::hashing;
use crate::value::item::Item;
use std::borrow::Cow;

/// The most neighbours that are compared in the table before the elements are sorted.
const MOST_PROBES: usize = 32;

/// Whether no two of some elements have the same bytes. Allocates for as many as there are.
pub fn are_distinct<'a>(items: impl ExactSizeIterator<Item = Item<'a>> + Clone) -> bool {
    have_distinct_hashes(items.clone()) || are_distinct_in_order(items)
}

/// Whether all hashes differ and are spread well. If not, the elements may differ all the same.
fn have_distinct_hashes<'a>(items: impl ExactSizeIterator<Item = Item<'a>>) -> bool {
    let places = (2 * items.len()).next_power_of_two();
    let mut hashes = vec![0; places];
    for item in items {
        let hash = hash(item).max(1);
        let first = hash as usize;
        let place = (first..first.saturating_add(MOST_PROBES))
            .map(|place| place & (places - 1))
            .find(|&place| hashes[place] == 0 || hashes[place] == hash);
        match place {
            Some(place) if hashes[place] == 0 => hashes[place] = hash,
            _ => return false,
        }
    }
    true
}

#[inline]
fn hash(item: Item<'_>) -> u64 {
    match item {
        Item::Int(number) => hashing::quick(&number.to_le_bytes()),
        Item::Text(bytes, []) => hashing::quick(bytes),
        Item::Text(..) => hashing::quick(&item.to_cow()),
    }
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
    }

    #[test]
    fn elements_with_equal_hashes_may_be_distinct() {
        let members: Vec<_> = hashing::flood().take(100).collect();
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
