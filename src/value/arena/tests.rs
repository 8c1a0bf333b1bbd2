//! Tests of arenas.

use super::*;

#[test]
fn stored_bytes_and_numbers_read_back() {
    let numbers = [0.0, -0.0, 1.0, -1.0, 127.0, -128.0, 1e6, 1_783_012_441_000.0, 0.5, f64::INFINITY, -EXACT, 1e300];
    let lengths = [0, 1, 13, 14, 15, 254, 255, 256, 70_000];
    let mut arena = Arena::default();
    let stored: Vec<_> = lengths.iter().flat_map(|&len| numbers.map(|number| (vec![b'm'; len], number))).collect();
    let cells: Vec<_> = stored.iter().map(|(bytes, number)| arena.insert([bytes], *number)).collect();
    assert_eq!(arena.check(), cells);
    for (cell, (bytes, number)) in cells.iter().zip(&stored) {
        assert_eq!((arena.bytes(*cell), arena.number(*cell).to_bits()), (&bytes[..], number.to_bits()));
    }
}

#[test]
fn a_freed_cell_is_used_again() {
    let mut arena = Arena::default();
    let cells: Vec<_> = (0..100).map(|i| arena.insert([format!("member-{i:02}").as_bytes()], 5.0)).collect();
    arena.remove(cells[40]);
    arena.check();
    assert_eq!(arena.insert([b"member-xx"], 6.0), cells[40]);
    arena.check();
}

#[test]
fn overwriting_a_cell_does_not_change_what_is_shared() {
    for length in [0, 13, 14, 255, 256, 70_000] {
        let mut arena = Arena::default();
        let cell = arena.insert([&vec![b'a'; length]], 5.0);
        let shared = arena.long(cell).cloned();
        assert_eq!(shared.is_some(), length > INLINE);
        for letter in [b'b', b'c'] {
            let (first, rest) = (vec![letter; length / 3], vec![letter; length - length / 3]);
            arena.overwrite(cell, [&first, &rest]);
            assert_eq!((arena.bytes(cell), arena.number(cell)), (&vec![letter; length][..], 5.0));
        }
        assert!(shared.iter().all(|long| long.iter().all(|&letter| letter == b'a')));
        arena.remove(cell);
        assert_eq!((arena.check(), arena.long_bytes), (vec![], 0));
    }
}

#[test]
fn a_large_free_cell_is_split() {
    let mut arena = Arena::default();
    let large = arena.insert([&[b'x'; 60]], 5.0);
    let behind = arena.insert([b"behind"], 5.0);
    arena.remove(large);
    assert_eq!(arena.insert([b"small-one"], 6.0), large);
    assert!(arena.insert([b"another"], 6.0) < behind);
    arena.check();
}

#[test]
fn writing_a_number_reports_whether_it_fits_its_cell() {
    let mut arena = Arena::default();
    let cell = arena.insert([b"counter"], 100.0);
    assert!(arena.set_number(cell, -100.0) && !arena.set_number(cell, 1000.0) && !arena.set_number(cell, 0.5));
    assert_eq!(arena.number(cell), -100.0);
    let wider = arena.widen(cell, 0.5);
    assert_eq!((arena.bytes(wider), arena.number(wider)), (&b"counter"[..], 0.5));
    arena.release(cell);
    assert_eq!(arena.check(), [wider]);
}

#[test]
fn a_mostly_unused_chunk_is_emptied_and_freed() {
    let mut arena = Arena::default();
    let cells: Vec<_> = (0..10_000).map(|i| arena.insert([format!("member-{i}").as_bytes()], 5.0)).collect();
    let full = arena.memory();
    cells.iter().filter(|&cell| cell % 5 != 0).for_each(|&cell| arena.remove(cell));
    while let Some(cell) = arena.next_to_move() {
        arena.duplicate(cell);
        arena.release(cell);
    }
    assert_eq!(arena.check().len(), cells.iter().filter(|&cell| cell % 5 == 0).count());
    assert!(arena.memory() < full / 3, "{} bytes of {full}", arena.memory());
}

#[test]
fn parts_are_stored_one_behind_the_other() {
    let mut arena = Arena::default();
    for lengths in [[0, 0, 0], [1, 0, 3], [1, 12, 0], [1, 6, 7], [9, 240, 6], [9, 240, 7], [9, 0, 70_000]] {
        let [first, second, third] = [b'a', b'b', b'c'];
        let parts = [vec![first; lengths[0]], vec![second; lengths[1]], vec![third; lengths[2]]];
        let cell = arena.insert([&parts[0], &parts[1], &parts[2]], -7.0);
        assert_eq!((arena.bytes(cell), arena.number(cell)), (&parts.concat()[..], -7.0));
        arena.overwrite(cell, [&parts[2], &parts[0], &parts[1]]);
        assert_eq!(arena.bytes(cell), [&parts[2][..], &parts[0], &parts[1]].concat());
    }
    assert_eq!(arena.check().len(), 7);
}
