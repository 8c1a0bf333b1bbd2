//! Properties of sketches for any elements, and strings that only look like sketches.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const LIMIT: usize = 3000;

fn sketch_of(elements: &[Vec<u8>], limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut sketch = SketchMut::fresh(&mut bytes, limit);
    sketch.add_all(elements.iter().map(Vec::as_slice)).expect("what we made is not corrupted");
    bytes
}

fn registers_of(bytes: &[u8]) -> Registers {
    let mut registers = [0; REGISTERS];
    Sketch::of(bytes).expect("it is a sketch").merge_into(&mut registers).expect("it is not corrupted");
    registers
}

fn number(number: u32) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// Expected: GET after PFADD of Redis 8.0.6.
#[test]
fn the_same_elements_give_the_same_bytes_as_in_redis() {
    assert_eq!(sketch_of(&[], LIMIT), b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff");
    let mut three = sketch_of(&[b"a".to_vec(), b"b".to_vec(), b"c".to_vec()], LIMIT);
    SketchMut::of(&mut three, LIMIT).expect("it is a sketch").invalidate_count();
    assert_eq!(Sketch::of(&three).expect("it is a sketch").runs().as_deref(), Some(THREE));
}

const THREE: &str = "Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603";

#[test]
fn estimates_are_near_the_truth_for_any_number_of_elements() {
    let mut bytes = Vec::new();
    let mut sketch = SketchMut::fresh(&mut bytes, LIMIT);
    let mut added = 0;
    for goal in [0, 1, 2, 10, 100, 1000, 10_000, 200_000u32] {
        let elements: Vec<Vec<u8>> = (added..goal).map(number).collect();
        sketch.add_all(elements.iter().map(Vec::as_slice)).expect("what we made is not corrupted");
        added = goal;
        let count = Sketch::of(sketch.bytes).expect("it is a sketch").count().expect("it is not corrupted");
        let most_off = if goal <= 100 { 1.0 } else { f64::from(goal) * 0.0081 * 4.0 };
        assert!((count as f64 - f64::from(goal)).abs() <= most_off, "{goal} elements are counted as {count}");
    }
    assert_eq!(sketch.form(), Form::Dense);
}

#[test]
fn the_self_test_passes() {
    let mut generator = fastrand::Rng::with_seed(7);
    assert_eq!(self_test(|| generator.u64(..)), Ok(()));
}

#[test]
fn a_cached_count_is_read_until_it_is_out_of_date() {
    let mut bytes = sketch_of(&[number(1)], LIMIT);
    let mut sketch = SketchMut::of(&mut bytes, LIMIT).expect("it is a sketch");
    sketch.cache_count(77);
    assert_eq!(Sketch::of(sketch.bytes).and_then(|sketch| sketch.cached_count()), Some(77));
    sketch.invalidate_count();
    assert_eq!(Sketch::of(sketch.bytes).and_then(|sketch| sketch.cached_count()), None);
}

/// CVE-2019-10192 and CVE-2025-32023 were strings like these.
#[test]
fn runs_that_do_not_cover_all_registers_count_as_corrupted_and_stay() {
    let head = &sketch_of(&[], LIMIT)[..HEAD_BYTES];
    let all = [0x7f, 0xff];
    let codes: [&[u8]; 8] = [
        b"",
        &[0x7f],
        &[0x7f, 0xfe],
        &[0x00],
        &[all[0], all[1], 0x00],
        &[all[0], all[1], 0xff],
        &[0x7f, 0xfe, 0xff],
        &[[0x7f, 0xff].repeat(300_000), vec![0xff]].concat(),
    ];
    for code in codes {
        let mut bytes = [head, code].concat();
        let before = bytes.clone();
        assert_eq!(Sketch::of(&bytes).map(|sketch| sketch.count()), Some(Err(Corrupted)));
        assert_eq!(Sketch::of(&bytes).map(|sketch| sketch.merge_into(&mut [0; REGISTERS])), Some(Err(Corrupted)));
        let mut sketch = SketchMut::of(&mut bytes, 0).expect("its head is right");
        assert_eq!(sketch.make_dense(), Err(Corrupted));
        let many: Vec<Vec<u8>> = (0..100_000).map(number).collect();
        let added = sketch.add_all(many.iter().map(Vec::as_slice));
        assert_eq!((added, bytes), (Err(Corrupted), before));
    }
}

#[test]
fn a_string_without_the_header_or_length_of_a_sketch_is_none() {
    let sparse = sketch_of(&[], LIMIT);
    let mut dense = sparse.clone();
    SketchMut::of(&mut dense, LIMIT).expect("it is a sketch").make_dense().expect("it is not corrupted");
    assert!(Sketch::of(&dense).is_some());
    assert!(Sketch::of(&dense[..dense.len() - 1]).is_none());
    assert!(Sketch::of(&[dense.as_slice(), b"x"].concat()).is_none());
    assert!(Sketch::of(&sparse[..15]).is_none());
    for (at, byte) in [(0, b'h'), (3, b'M'), (4, 2), (4, 0)] {
        let mut other = sparse.clone();
        other[at] = byte;
        assert!(Sketch::of(&other).is_none());
    }
}

#[test]
fn registers_that_no_elements_can_produce_are_counted_without_an_error() {
    let mut bytes = sketch_of(&[], 0);
    SketchMut::of(&mut bytes, 0).expect("it is a sketch").make_dense().expect("it is not corrupted");
    for value in 0..64 {
        let registers = [value; REGISTERS];
        dense::write(&mut bytes[HEAD_BYTES..], &registers);
        assert_eq!(Sketch::of(&bytes).map(|sketch| sketch.count()), Some(Ok(count_of(&registers))));
    }
    // Each register alone with each value that fits, and all of them at random.
    let mut rng = fastrand::Rng::with_seed(10_193);
    for round in 0..1000_usize {
        let mut registers = [0; REGISTERS];
        if round.is_multiple_of(2) {
            registers[rng.usize(..REGISTERS)] = (round / 2 % 64) as u8;
        } else {
            registers.iter_mut().for_each(|register| *register = rng.u8(..64));
        }
        dense::write(&mut bytes[HEAD_BYTES..], &registers);
        let mut read = [0; REGISTERS];
        let sketch = Sketch::of(&bytes).expect("it is a sketch");
        sketch.merge_into(&mut read).expect("it is not corrupted");
        assert_eq!(read, registers, "round {round}");
        assert_eq!(sketch.count(), Ok(count_of(&registers)), "round {round}");
    }
}

proptest! {
    #[test]
    fn sparse_and_dense_hold_the_same_registers(seed: u32, count in 0u32..3000, limit in 0usize..6000) {
        let elements: Vec<Vec<u8>> = (0..count).map(|index| number(seed.wrapping_add(index))).collect();
        let (sparse, dense) = (sketch_of(&elements, limit), sketch_of(&elements, 0));
        prop_assert!(sparse.len() <= limit.max(18) || sparse.len() == HEAD_BYTES + dense::BYTES);
        prop_assert_eq!(registers_of(&sparse), registers_of(&dense));
        let counts = [&sparse, &dense].map(|bytes| Sketch::of(bytes).map(|sketch| sketch.count()));
        prop_assert_eq!(counts[0], counts[1]);
    }

    #[test]
    fn adding_the_same_elements_again_changes_nothing(numbers in prop::collection::vec(0u32..500, 0..400)) {
        let elements: Vec<Vec<u8>> = numbers.iter().copied().map(number).collect();
        let mut bytes = sketch_of(&elements, LIMIT);
        let before = bytes.clone();
        let mut sketch = SketchMut::of(&mut bytes, LIMIT).expect("it is a sketch");
        let again = sketch.add_all(elements.iter().map(Vec::as_slice));
        prop_assert_eq!((again, bytes), (Ok(0), before));
    }

    #[test]
    fn a_merge_equals_adding_all_elements_to_one_sketch(first in prop::collection::btree_set(0u32..5000, 0..2000),
                                                  second in prop::collection::btree_set(0u32..5000, 0..2000)) {
        let of = |numbers: &BTreeSet<u32>| sketch_of(&numbers.iter().copied().map(number).collect::<Vec<_>>(), LIMIT);
        let both: BTreeSet<u32> = first.union(&second).copied().collect();
        let mut merged = registers_of(&of(&first));
        Sketch::of(&of(&second)).expect("it is a sketch").merge_into(&mut merged).expect("it is not corrupted");
        prop_assert_eq!(merged, registers_of(&of(&both)));
        let mut bytes = of(&first);
        SketchMut::of(&mut bytes, LIMIT).expect("it is a sketch").raise_all(&merged).expect("it is not corrupted");
        prop_assert_eq!(registers_of(&bytes), merged);
    }

    #[test]
    fn a_merge_into_a_sparse_sketch_gives_the_bytes_of_raising_each_register_by_itself(
        present in prop::collection::vec((0..REGISTERS, 1u8..40), 0..600),
        near in prop::collection::vec((0..200usize, 1u8..6), 0..200),
        limit in 0usize..2000,
    ) {
        let mut merged = [0; REGISTERS];
        present.iter().chain(&near).for_each(|(index, value)| merged[*index] = *value);
        let elements: Vec<Vec<u8>> = (0..present.len() as u32).map(number).collect();
        let (mut bytes, mut one_by_one) = (sketch_of(&elements, limit), sketch_of(&elements, limit));
        SketchMut::of(&mut bytes, limit).expect("it is a sketch").raise_all(&merged).expect("it is not corrupted");
        let mut sketch = SketchMut::of(&mut one_by_one, limit).expect("it is a sketch");
        if sketch.form() == Form::Sparse {
            for (index, value) in merged.iter().enumerate().filter(|(_, value)| **value > 0) {
                sketch.raise(&mut Search::new(HEAD_BYTES), index, *value).expect("it is not corrupted");
            }
            prop_assert_eq!(bytes, one_by_one);
        }
    }

    #[test]
    fn registers_are_counted_by_value_as_one_by_one(
        values in prop::collection::vec(0u8..64, 1..300),
        least in 0u8..64,
    ) {
        let registers = std::array::from_fn(|index| values[index * 7 % values.len()].max(least));
        let mut expected: Histogram = [0; 64];
        registers.iter().for_each(|value| expected[usize::from(*value)] += 1);
        prop_assert_eq!(dense::histogram_of(&registers), expected);
    }

    #[test]
    fn no_bytes_behind_a_valid_header_cause_a_panic(
        code: Vec<u8>,
        index in 0..REGISTERS,
        value in 1u8..52,
        limit in 0usize..200,
    ) {
        let mut bytes = [&sketch_of(&[], LIMIT)[..HEAD_BYTES], &code].concat();
        let counted = Sketch::of(&bytes).expect("its head is right").count();
        let mut sketch = SketchMut::of(&mut bytes, limit).expect("its head is right");
        let raised = sketch.raise(&mut Search::new(HEAD_BYTES), index, value);
        if counted.is_ok() {
            prop_assert_eq!(raised.map(|_| registers_of(&bytes)[index] >= value), Ok(true));
        }
    }
}
