//! Tests of the index.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// A well spread hash of a handle.
fn hash_of(cell: Handle) -> u64 {
    (u64::from(cell) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn index_of(cells: std::ops::Range<Handle>) -> Index {
    let mut index = Index::with_room(0);
    cells.for_each(|cell| assert_eq!(index.insert(hash_of(cell), cell, hash_of), Ok(())));
    index
}

fn cells(cells: impl Iterator<Item = Handle>) -> Vec<Handle> {
    cells.collect()
}

#[test]
fn memory_follows_the_number_of_cells() {
    for len in [100, 1_000, 10_000, 12_345, 40_000] {
        let index = index_of(0..len);
        index.check(&cells(0..len), hash_of);
        let each = index.memory() as f64 / f64::from(len);
        assert!((6.0..9.5).contains(&each), "{each:.2} bytes each for {len} cells");
    }
}

#[test]
fn an_index_that_grew_shrinks_again() {
    let mut index = index_of(0..20_000);
    let full = index.memory();
    for cell in 0..19_900 {
        index.remove(hash_of(cell), cell);
    }
    index.check(&cells(19_900..20_000), hash_of);
    assert!(index.directory.len() <= 64 && index.memory() < full / 3, "{} bytes of {full}", index.memory());
}

#[test]
fn a_cell_can_be_replaced_by_another_with_the_same_hash() {
    let mut index = index_of(0..100);
    index.replace(hash_of(7), 7, 700);
    assert_eq!(index.find(hash_of(7), |_| true), Some(700));
    assert_eq!(index.find(hash_of(8), |cell| cell == 7), None);
}

#[test]
fn a_flood_of_equal_hashes_is_reported_by_the_index() {
    let ending_alike = |cell: Handle| u64::from(cell).rotate_right(16) & !0xff_ffff_ffff | 7 << 24;
    let starting_alike = |cell: Handle| u64::from(cell.wrapping_mul(40_503) as u16) << 24;
    let floods: [&dyn Fn(Handle) -> u64; 3] = [&|_| 42, &ending_alike, &starting_alike];
    for (flood, most) in floods.into_iter().zip([ALIKE, ALIKE, 400]) {
        let mut index = Index::with_room(0);
        let taken = (0..4_000).find(|&cell| index.insert(flood(cell), cell, flood) == Err(Flood));
        let taken = taken.expect("a flood is noticed");
        assert!(taken as usize <= most, "{taken} cells");
        index.check(&cells(0..taken), flood);
    }
}

#[test]
fn a_scan_returns_every_cell_in_steps_of_about_the_requested_count() {
    let index = index_of(0..5_000);
    let (mut seen, mut cursor, mut calls) = (vec![], 0, 0);
    loop {
        let before = seen.len();
        cursor = index.scan(cursor, 10, |cell| seen.push(cell));
        assert!(seen.len() - before < 20);
        calls += 1;
        if cursor == 0 {
            break;
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, cells(0..5_000));
    assert!(calls <= 500);
}

/// A hash with few different tags, so that many cells that differ have the same one.
fn hash_of_few_tags(cell: Handle) -> u64 {
    let prefix = u64::from(cell.wrapping_mul(0x9e37_79b9));
    prefix << 32 | u64::from(cell % 97) << (64 - PREFIX_BITS - TAG_BITS)
}

fn index_of_set(cells: &BTreeSet<Handle>) -> Index {
    let mut index = Index::with_room(0);
    cells.iter().for_each(|&cell| assert!(index.insert(hash_of_few_tags(cell), cell, hash_of_few_tags).is_ok()));
    index
}

proptest! {
    #[test]
    fn the_cells_that_two_indices_have_in_common_are_visited_once(
        (count, others) in prop_oneof![(0..40_u32, 0..40_u32), (0..3_000_u32, 0..3_000_u32)],
        step in 1..5_u32,
        shared in 0..4_u32,
        most in 1..2_000_usize,
    ) {
        let one: BTreeSet<Handle> = (0..count).map(|number| number * step).collect();
        let other: BTreeSet<Handle> = (0..others).map(|number| number * (1 + shared) + count / 2).collect();
        let mut visited = Vec::new();
        let ending = index_of_set(&one).common(&index_of_set(&other), |cell, same| cell == same, |cell, same| {
            assert_eq!(cell, same);
            visited.push(cell);
            if visited.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let both: BTreeSet<Handle> = one.intersection(&other).copied().collect();
        prop_assert_eq!(ending.is_break(), both.len() >= most);
        prop_assert_eq!(visited.len(), both.len().min(most));
        let distinct: BTreeSet<Handle> = visited.iter().copied().collect();
        prop_assert_eq!(distinct.len(), visited.len());
        prop_assert!(distinct.is_subset(&both));
    }
}
