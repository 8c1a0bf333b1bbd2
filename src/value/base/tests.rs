//! Forks of every type of value against copies of them.

use super::*;
use crate::value::item::Item;
use crate::value::list::{End, Side};
use crate::value::stream::{Entry, Id, Trim};
use crate::value::{Hash, List, Set, Stream, Value, View, Zset, hash, list, set, zset};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Steps of a case, and cases: few under an interpreter, which takes thousands of times as long.
const SIZE: (usize, u32) = if cfg!(miri) { (40, 2) } else { (400, 48) };

/// The value under test, and what it must contain.
trait Sample: Fork + Debug {
    fn sample(elements: u16) -> Self;

    /// Changes some elements: what a client could do.
    fn change(&mut self, step: u8, element: u16);

    fn contents(&self) -> BTreeMap<Vec<u8>, (Vec<u8>, i64)>;

    /// Panics unless the invariants hold, and returns the memory.
    fn checked_memory(&self) -> usize;
}

/// The bytes of an element: some are too long for a cell.
fn element(number: u16) -> Vec<u8> {
    let mut bytes = format!("element-{number}").into_bytes();
    bytes.resize(bytes.len() + if number.is_multiple_of(37) { 300 } else { usize::from(number % 5) }, b'x');
    bytes
}

impl<const N: usize> Sample for Zset<N> {
    fn sample(elements: u16) -> Self {
        let entries = (0..elements).map(|number| (element(number), f64::from(number % 97)));
        Zset::with_nodes_from(entries, &zset::Limits { entries: 0, ..Default::default() })
    }

    fn change(&mut self, step: u8, number: u16) {
        match step % 4 {
            0 => _ = self.remove(&element(number)),
            1 => _ = self.remove_range(usize::from(number)..usize::from(number) + usize::from(step % 16)),
            2 => _ = self.insert(&element(number), f64::from(number) / 7.0, &Default::default()),
            _ => _ = self.insert(&element(number.wrapping_mul(3)), f64::from(step), &Default::default()),
        }
    }

    fn contents(&self) -> BTreeMap<Vec<u8>, (Vec<u8>, i64)> {
        let places = (0..).zip(self.iter());
        places.map(|(place, entry)| (entry.member.to_vec(), (entry.score.to_string().into_bytes(), place))).collect()
    }

    fn checked_memory(&self) -> usize {
        self.check();
        self.memory()
    }
}

impl Sample for Hash {
    fn sample(elements: u16) -> Self {
        let limits = hash::Limits { entries: 0, ..Default::default() };
        let mut hash = Hash::new();
        (0..elements).for_each(|number| _ = hash.insert(&element(number), b"value", &limits));
        (0..elements).step_by(3).for_each(|number| {
            hash.set_deadline(&element(number), Some(i64::from(number) + 5));
        });
        hash
    }

    fn change(&mut self, step: u8, number: u16) {
        let field = element(number);
        match step % 4 {
            0 => _ = self.remove(&field),
            1 => _ = self.set_deadline(&field, Some(i64::from(step))),
            2 => _ = self.set_deadline(&field, None),
            _ => _ = self.insert(&field, &vec![step; usize::from(step)], &Default::default()),
        }
    }

    fn contents(&self) -> BTreeMap<Vec<u8>, (Vec<u8>, i64)> {
        let entry = |entry: hash::Entry<'_>| {
            let field = entry.field.to_cow().into_owned();
            let deadline_ms = self.deadline(&field).expect("a field that is there").unwrap_or(0);
            (field, (entry.value.to_cow().into_owned(), deadline_ms))
        };
        self.iter().map(entry).collect()
    }

    fn checked_memory(&self) -> usize {
        self.check();
        self.memory()
    }
}

impl Sample for Set {
    fn sample(elements: u16) -> Self {
        let limits = set::Limits { entries: 0, ..Default::default() };
        let mut set = Set::default();
        (0..elements).for_each(|number| _ = set.insert(&element(number), &limits));
        set
    }

    fn change(&mut self, step: u8, number: u16) {
        match step % 2 {
            0 => _ = self.remove(&element(number)),
            _ => _ = self.insert(&element(number.wrapping_add(step.into())), &Default::default()),
        }
    }

    fn contents(&self) -> BTreeMap<Vec<u8>, (Vec<u8>, i64)> {
        self.iter().map(|member| (member.to_cow().into_owned(), (Vec::new(), 0))).collect()
    }

    fn checked_memory(&self) -> usize {
        self.check();
        self.memory()
    }
}

/// Nodes of a few elements; some elements are larger than a node.
const NODES: list::Limits = list::Limits { size: -1, large: None };

impl Sample for List {
    fn sample(elements: u16) -> Self {
        let all: Vec<Vec<u8>> = (0..elements).map(element).collect();
        List::long_from_elements(all.iter().map(Vec::as_slice), &NODES)
    }

    fn change(&mut self, step: u8, number: u16) {
        let (at, item) = (usize::from(number), element(number.wrapping_add(step.into())));
        let end = if number.is_multiple_of(2) { End::Head } else { End::Tail };
        match step % 8 {
            0 => _ = self.remove(at..at + usize::from(step % 32), &NODES),
            1 => _ = self.insert(at, Side::Before, &item, &NODES),
            2 => _ = self.insert(at, Side::After, &[step; 9000], &NODES),
            3 => _ = self.set(at, &item, &NODES),
            4 => _ = self.remove_equal(&item, end, 1, &NODES),
            5 => _ = self.pop(end, &NODES),
            6 => self.rotate(end, End::Tail, &NODES),
            _ => self.push(end, [&item[..]], &NODES),
        }
    }

    fn contents(&self) -> BTreeMap<Vec<u8>, (Vec<u8>, i64)> {
        let place = |(place, item): (u32, Item<'_>)| (place.to_be_bytes().to_vec(), (item.to_vec(), 0));
        (0..).zip(self.iter()).map(place).collect()
    }

    fn checked_memory(&self) -> usize {
        self.check();
        self.memory()
    }
}

impl Sample for Stream {
    fn sample(elements: u16) -> Self {
        let mut stream = Stream::new();
        (0..elements).for_each(|number| push(&mut stream, u64::from(number) + 1, number));
        stream
    }

    fn change(&mut self, step: u8, number: u16) {
        let (id, log) = (Id::new(u64::from(number), 0), self.log_mut());
        match step % 16 {
            0 => _ = log.trim(Trim::Before(Id::new(u64::from(step), 0)), false, 0),
            1 => _ = log.trim(Trim::ToLength(log.len() - log.len() / 8), step.is_multiple_of(3), 0),
            2..=9 => _ = log.delete(id),
            _ => push(self, self.log().last().ms + 1, number),
        }
    }

    fn contents(&self) -> BTreeMap<Vec<u8>, (Vec<u8>, i64)> {
        let backwards = self.log().range_back(Id::MIN, Id::MAX).count();
        assert_eq!(backwards, self.log().len());
        let entry = |entry: Entry<'_>| {
            let words = entry.pairs().flat_map(|(field, value)| [field.to_vec(), value.to_vec()]).flatten().collect();
            (entry.id().to_string().into_bytes(), (words, entry.len() as i64))
        };
        self.log().range(Id::MIN, Id::MAX).map(entry).collect()
    }

    fn checked_memory(&self) -> usize {
        self.check();
        self.memory()
    }
}

fn push(stream: &mut Stream, ms: u64, number: u16) {
    let value = element(number);
    stream.log_mut().push(Id::new(ms, 0), [&b"field"[..], &value].into_iter(), &Default::default());
}

/// Changes a fork and a copy in the same way; then both are equal, what the fork shares is as it was, and the fork
/// can take the rest of it back.
fn check_fork<T: Sample>(elements: u16, steps: &[(u8, u16)]) {
    let original = T::sample(elements);
    let mut copy = original.clone();
    let base = Base::of(original.clone());
    let mut fork = T::fork(base.clone());
    fork.checked_memory();
    for &(step, number) in steps {
        copy.change(step, number % (elements + elements / 4));
        fork.change(step, number % (elements + elements / 4));
    }
    assert_eq!(fork.contents(), copy.contents());
    fork.checked_memory();
    assert_eq!(base.get().contents(), original.contents());
    base.get().checked_memory();
    let whole = fork.clone();
    assert!(!whole.is_fork());
    assert_eq!(whole.contents(), copy.contents());
    whole.checked_memory();

    let memory = fork.checked_memory();
    fork.set_base(None);
    fork.reclaim(&mut original.clone());
    assert!(!fork.is_fork());
    assert_eq!((fork.checked_memory(), fork.contents()), (memory, copy.contents()));
}

fn steps() -> impl Strategy<Value = Vec<(u8, u16)>> {
    prop::collection::vec(any::<(u8, u16)>(), 0..SIZE.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(SIZE.1))]

    #[test]
    fn a_forked_sorted_set_changes_as_a_copy_would(elements in 100..2000_u16, steps in steps()) {
        check_fork::<Zset<4>>(elements, &steps);
        check_fork::<Zset>(elements, &steps);
    }

    #[test]
    fn a_forked_hash_changes_as_a_copy_would(elements in 100..2000_u16, steps in steps()) {
        check_fork::<Hash>(elements, &steps);
    }

    #[test]
    fn a_forked_list_changes_as_a_copy_would(elements in 100..2000_u16, steps in steps()) {
        check_fork::<List>(elements, &steps);
    }

    #[test]
    fn a_forked_stream_changes_as_a_copy_would(elements in 100..2000_u16, steps in steps()) {
        check_fork::<Stream>(elements, &steps);
    }

    #[test]
    fn a_forked_set_changes_as_a_copy_would(elements in 100..2000_u16, steps in steps()) {
        check_fork::<Set>(elements, &steps);
    }
}

#[test]
fn the_first_change_of_a_large_fork_copies_a_few_parts() {
    let mut zset = Zset::sample(60_000);
    zset.insert(b"changed", 1.0, &Default::default());
    let base = Base::of(Value::Zset(zset));
    let mut fork = Value::fork(base.clone());
    if let Value::Zset(zset) = &mut fork {
        zset.insert(b"changed", 2.0, &Default::default());
    }
    assert!(fork.own_bytes() * 20 < fork.memory(), "{} of {} bytes", fork.own_bytes(), fork.memory());
    assert!(matches!(base.get().view(), View::Zset(zset) if zset.score(b"changed") == Some(1.0)));
}
