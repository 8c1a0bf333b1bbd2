//! Partial sort: the first few of many items, in order.
//!
//! Clients see the order of items that compare as equal: members at one position, of which COUNT selects some. So
//! this is the quicksort that Redis uses, with the same choices; parts that are wholly behind the wanted items are
//! not sorted. After repeated bad pivots it falls back to another sort, so that no client can make it quadratic.
//!
//! Source: Bentley and McIlroy, "Engineering a Sort Function", Software: Practice and Experience 23(11), 1993.

use std::cmp::Ordering;
use std::ops::Range;

/// Parts up to this length are sorted by insertion.
const SHORT: usize = 7;
/// Parts longer than this choose their pivot from nine items.
const LONG: usize = 40;

/// Sorts the first `wanted` of `items` to the front. The order of the rest is unspecified.
pub fn sort_first<T>(items: &mut [T], wanted: usize, order: impl Fn(&T, &T) -> Ordering) {
    let deepest = 2 * (items.len().checked_ilog2().unwrap_or(0) + 1);
    let mut waiting = vec![(0..items.len(), 0)];
    while let Some((range, depth)) = waiting.pop() {
        let (start, part) = (range.start, &mut items[range]);
        if depth > deepest {
            part.sort_by(&order);
        } else if part.len() < SHORT {
            sort_short(part, &order);
        } else {
            let (low, high) = split(part, &order);
            for Range { start: from, end } in [low, high] {
                if end - from > 1 && start + from < wanted {
                    waiting.push((start + from..start + end, depth + 1));
                }
            }
        }
    }
}

fn sort_short<T>(items: &mut [T], order: &impl Fn(&T, &T) -> Ordering) {
    for end in 1..items.len() {
        let mut place = end;
        while place > 0 && order(&items[place - 1], &items[place]).is_gt() {
            items.swap(place - 1, place);
            place -= 1;
        }
    }
}

/// Splits items into those below the pivot, those equal to it, and those above; returns the ranges of the first and
/// the last.
fn split<T>(items: &mut [T], order: &impl Fn(&T, &T) -> Ordering) -> (Range<usize>, Range<usize>) {
    items.swap(0, pivot(items, order));
    // Equal items are collected at both ends: before `equal_low`, and behind `equal_high`.
    let (mut equal_low, mut low) = (1, 1);
    let (mut equal_high, mut high) = (items.len(), items.len());
    loop {
        while low < high {
            match order(&items[low], &items[0]) {
                Ordering::Greater => break,
                Ordering::Equal => {
                    items.swap(equal_low, low);
                    equal_low += 1;
                }
                Ordering::Less => {}
            }
            low += 1;
        }
        while low < high {
            match order(&items[high - 1], &items[0]) {
                Ordering::Less => break,
                Ordering::Equal => {
                    equal_high -= 1;
                    items.swap(high - 1, equal_high);
                }
                Ordering::Greater => {}
            }
            high -= 1;
        }
        if low >= high {
            break;
        }
        items.swap(low, high - 1);
        low += 1;
        high -= 1;
    }
    let (below, above) = (low - equal_low, equal_high - high);
    swap_ranges(items, 0, low, equal_low.min(below));
    swap_ranges(items, low, items.len(), (items.len() - equal_high).min(above));
    (0..below, items.len() - above..items.len())
}

/// Swaps the first `count` items from `start` with the last `count` before `end`.
fn swap_ranges<T>(items: &mut [T], start: usize, end: usize, count: usize) {
    for index in 0..count {
        items.swap(start + index, end - count + index);
    }
}

/// The index of an item that is likely to be near the median.
fn pivot<T>(items: &[T], order: &impl Fn(&T, &T) -> Ordering) -> usize {
    let (middle, last) = (items.len() / 2, items.len() - 1);
    let len = items.len();
    if len <= SHORT {
        middle
    } else if len <= LONG {
        median(items, [0, middle, last], order)
    } else {
        let step = len / 8;
        let low = median(items, [0, step, 2 * step], order);
        let middle = median(items, [middle - step, middle, middle + step], order);
        let high = median(items, [last - 2 * step, last - step, last], order);
        median(items, [low, middle, high], order)
    }
}

/// The index of the median of three.
fn median<T>(items: &[T], places: [usize; 3], order: &impl Fn(&T, &T) -> Ordering) -> usize {
    let [first, second, third] = places;
    let compare = |one: usize, other: usize| order(&items[one], &items[other]);
    if compare(first, second).is_lt() {
        match () {
            () if compare(second, third).is_lt() => second,
            () if compare(first, third).is_lt() => third,
            () => first,
        }
    } else {
        match () {
            () if compare(second, third).is_gt() => second,
            () if compare(first, third).is_lt() => first,
            () => third,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_partial_sort_has_the_first_items_of_a_full_sort(
            mut items in prop::collection::vec(0u16..500, 0..400),
            wanted in 0usize..400,
        ) {
            let mut sorted = items.clone();
            sorted.sort_unstable();
            sort_first(&mut items, wanted, Ord::cmp);
            let wanted = wanted.min(sorted.len());
            prop_assert_eq!(&items[..wanted], &sorted[..wanted]);
            items.sort_unstable();
            prop_assert_eq!(items, sorted);
        }
    }

    #[test]
    fn items_that_are_in_order_already_cost_little() {
        for items in [Vec::from_iter(0..100_000), Vec::from_iter((0..100_000).rev()), vec![7; 100_000]] {
            let (mut items, compared) = (items, std::cell::Cell::new(0));
            sort_first(&mut items, 10, |one, other| {
                compared.set(compared.get() + 1);
                one.cmp(other)
            });
            assert!(items.is_sorted() || items[..10].is_sorted());
            assert!(compared.get() < 1_000_000, "{} comparisons", compared.get());
        }
    }
}
