//! A database that changes while it is frozen, against what it was.

use super::*;
use crate::keyspace::{KeyHandle, New};
use crate::value::stream::{Id, Trim};
use crate::value::text::{Text, TextView};
use crate::value::vector_set::{Parameters, Quantization};
use crate::value::{Hash, List, Set, Stream, Value, ValueMut, VectorSet, Zset, hash, list::End, set, zset};
use proptest::prelude::*;
use std::collections::BTreeMap;

type Contents = BTreeMap<Vec<u8>, (String, Option<i64>)>;

/// The members of the large values, few under an interpreter, which takes thousands of times as long; in tests, a value
/// of 4 KiB is large.
const MEMBERS: u32 = if cfg!(miri) { 300 } else { 2000 };

/// The contents of a value, those of a set or a hash in the order of their elements.
fn shown(view: View<'_>) -> String {
    let mut elements: Vec<String> = match view {
        View::Text(text) => vec![format!("{:?}", text.to_cow())],
        View::Set(set) => set.iter().map(|member| format!("{:?}", member.to_cow())).collect(),
        View::Hash(hash) => {
            let deadline = |field: &[u8]| hash.deadline(field);
            let entry = |entry: hash::Entry<'_>| {
                let (field, value) = (entry.field.to_cow(), entry.value.to_cow());
                format!("{field:?} {value:?} {:?}", deadline(&field))
            };
            hash.iter().map(entry).collect()
        }
        View::Zset(zset) => vec![format!("{:?}", zset.iter().collect::<Vec<_>>())],
        View::List(list) => vec![format!("{list:?}")],
        View::Stream(stream) => {
            let entry = |entry: crate::value::stream::Entry<'_>| {
                let pairs = entry.pairs().map(|(field, value)| format!("{:?} {:?}", field.to_cow(), value.to_cow()));
                format!("{} {}", entry.id(), pairs.collect::<String>())
            };
            vec![stream.log().range(Id::MIN, Id::MAX).map(entry).collect()]
        }
        View::VectorSet(set) => {
            set.iter().map(|element| format!("{element:?} {:?}", set.links_of(element.name))).collect()
        }
    };
    elements.sort();
    elements.concat()
}

fn contents(database: &Database<2>) -> Contents {
    let entry = |handle| (database.key(handle).to_vec(), (shown(database.view(handle)), database.deadline(handle)));
    database.handles().map(entry).collect()
}

fn frozen_contents(frozen: &FrozenDatabase<2>) -> Contents {
    frozen.keys().map(|entry| (entry.key.to_vec(), (shown(entry.view), entry.deadline_ms))).collect()
}

fn member(number: u32) -> Vec<u8> {
    let mut bytes = format!("member-{number}").into_bytes();
    bytes.resize(bytes.len() + if number.is_multiple_of(50) { 300 } else { 0 }, b'x');
    bytes
}

/// A value of every type, by its number.
fn large(kind: u8, members: u32) -> Value {
    match kind % 6 {
        0 => {
            let entries = (0..members).map(|number| (member(number), f64::from(number % 89)));
            Value::Zset(Zset::from_entries(entries, &zset::Limits { entries: 0, ..Default::default() }))
        }
        1 => {
            let (mut set, limits) = (Set::default(), set::Limits { entries: 0, ..Default::default() });
            (0..members).for_each(|number| _ = set.insert(&member(number), &limits));
            Value::Set(set)
        }
        2 => {
            let (mut hash, limits) = (Hash::new(), hash::Limits { entries: 0, ..Default::default() });
            (0..members).for_each(|number| _ = hash.insert(&member(number), &member(number / 2), &limits));
            (0..members).step_by(7).for_each(|number| _ = hash.set_deadline(&member(number), Some(number.into())));
            Value::Hash(hash)
        }
        3 => {
            let elements: Vec<Vec<u8>> = (0..members).map(member).collect();
            Value::List(List::from_elements(elements.iter().map(Vec::as_slice), &Default::default()))
        }
        4 => {
            let mut stream = Stream::new();
            (1..=members).for_each(|number| push(&mut stream, number.into(), number));
            Value::Stream(stream)
        }
        _ => {
            let parameters = Parameters { dimensions: 3, reduced: None, quantization: Quantization::Q8, links: 4 };
            let mut set = VectorSet::with(&parameters, 0, 0);
            (0..members / 10).for_each(|number| add_vector(&mut set, number));
            Value::VectorSet(set.into())
        }
    }
}

fn add_vector(set: &mut VectorSet, number: u32) {
    let mut generator = fastrand::Rng::with_seed(number.into());
    let vector = [(); 3].map(|()| generator.f32());
    set.insert(&member(number), &vector, None, 10, &mut generator);
}

fn push(stream: &mut Stream, ms: u64, number: u32) {
    let words = [&b"field"[..], &member(number)];
    stream.log_mut().push(Id::new(ms, 0), words.into_iter(), &Default::default());
}

/// Changes an element of a value of any type.
fn edit(value: Option<ValueMut<'_>>, step: u8) {
    let (number, removes) = (u32::from(step) * 7, step.is_multiple_of(2));
    let member = member(number);
    match value {
        Some(ValueMut::Zset(zset)) if step.is_multiple_of(5) => _ = zset.remove_range(10..10 + usize::from(step)),
        Some(ValueMut::Zset(zset)) if removes => _ = zset.remove(&member),
        Some(ValueMut::Zset(zset)) => _ = zset.insert(&member, f64::from(step) / 3.0, &Default::default()),
        Some(ValueMut::Set(set)) if removes => _ = set.remove(&member),
        Some(ValueMut::Set(set)) => _ = set.insert(&[step], &Default::default()),
        Some(ValueMut::Hash(hash)) if removes => _ = hash.remove(&member),
        Some(ValueMut::Hash(hash)) => {
            hash.insert(&member, &[step], &Default::default());
            hash.set_deadline(&[step], Some(step.into()));
        }
        Some(ValueMut::List(list)) if removes => _ = list.trim(1..list.len(), &Default::default()),
        Some(ValueMut::List(list)) if step.is_multiple_of(3) => {
            list.set(usize::from(step) * 3, &member, &Default::default());
        }
        Some(ValueMut::List(list)) => list.push(End::Tail, [&member[..]], &Default::default()),
        Some(ValueMut::Stream(stream)) if step.is_multiple_of(16) => {
            stream.log_mut().trim(Trim::Before(Id::new(number.into(), 0)), true, 0);
        }
        Some(ValueMut::Stream(stream)) if removes => _ = stream.log_mut().delete(Id::new(number.into(), 0)),
        Some(ValueMut::Stream(stream)) => {
            let ms = stream.log().last().ms + 1;
            push(stream, ms, number);
        }
        Some(ValueMut::VectorSet(set)) if removes => _ = set.remove(&member),
        Some(ValueMut::VectorSet(set)) => add_vector(set, number),
        None => {}
    }
}

/// Changes a key in one of several ways, large and small, here and apart.
fn change(database: &mut Database<2>, key: &[u8], step: u8) {
    match (database.find(key), step % 16) {
        (Some(handle), 0) => drop(database.delete(handle)),
        (Some(handle), 1) => _ = database.set_deadline(handle, Some(i64::from(step))),
        (Some(handle), 2) => {
            let text = vec![step; usize::from(step) * 20];
            drop(database.replace(handle, New::Text(TextView::Bytes(&text))));
        }
        (Some(handle), 3) => {
            let value = database.remove(handle);
            put(database, b"moved", |database| database.insert(b"moved", New::Value(value)));
        }
        (Some(_), 6) if key != b"renamed" => put(database, b"renamed", |database| {
            let handle = database.find(key).expect("another key was deleted");
            database.rename(handle, b"renamed")
        }),
        (_, 7) => expire(database, step.into()),
        (Some(handle), _) => _ = database.edit_object(handle, |value| edit(value, step)),
        (None, 3) => _ = database.insert(key, New::Text(TextView::Int(step.into()))),
        (None, 4) => {
            let text = Value::Text(Text::of(vec![step; 3000]));
            _ = database.insert(key, New::Value(text));
        }
        (None, 5) => _ = database.insert(key, New::Value(large(step / 16, MEMBERS))),
        (None, _) => _ = database.insert(key, New::Value(large(step / 16, step.into()))),
    }
}

/// Adds a key in place of one of the same name.
fn put(database: &mut Database<2>, key: &[u8], add: impl FnOnce(&mut Database<2>) -> KeyHandle) {
    if let Some(handle) = database.find(key) {
        drop(database.delete(handle));
    }
    add(database);
}

/// Removes the keys that are due by a time.
fn expire(database: &mut Database<2>, now_ms: i64) {
    while let Some((_, handle)) = database.first_due().filter(|due| due.0 <= now_ms) {
        drop(database.delete(handle));
    }
}

/// A database with large values of every type.
fn filled() -> Database<2> {
    let mut database = Database::<2>::with_segments(1);
    for kind in 0..5 {
        database.insert(&[b'k', 4 * kind], New::Value(large(kind, MEMBERS)));
    }
    database
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 96 }))]

    #[test]
    fn a_frozen_database_stays_as_it_was_and_gives_everything_back(
        steps in prop::collection::vec(any::<(u8, u8)>(), 0..if cfg!(miri) { 60 } else { 600 }),
        every in 40usize..300,
    ) {
        let mut database = filled();
        let mut frozen = Some((database.freeze(), contents(&database)));
        for (number, (key, step)) in steps.into_iter().enumerate() {
            if number % every == every - 1 {
                if let Some((frozen, expected)) = frozen.take() {
                    prop_assert_eq!(frozen_contents(&frozen), expected);
                    drop(frozen);
                    let before = contents(&database);
                    drop(database.thaw());
                    prop_assert!(!database.is_shared());
                    database.check();
                    prop_assert_eq!(contents(&database), before);
                } else {
                    let expected = contents(&database);
                    frozen = Some((database.freeze(), expected));
                }
            }
            if step == 77 {
                database.clear();
            }
            // Few keys, so that the same value changes often.
            let key = if key % 2 == 0 { vec![b'k', key % 24] } else { vec![key; 400] };
            change(&mut database, &key, step);
        }
        database.check();
        if let Some((frozen, expected)) = frozen {
            prop_assert_eq!(frozen_contents(&frozen), expected);
        }
    }
}

#[test]
fn a_change_of_a_large_value_copies_little_of_it_while_it_is_frozen() {
    for kind in 0..5 {
        let mut database = Database::<2>::with_segments(1);
        database.insert(b"large", New::Value(large(kind, 20 * MEMBERS)));
        let (memory, frozen) = (database.memory(), database.freeze());
        let handle = database.find(b"large").expect("it was inserted");
        database.edit_object(handle, |value| edit(value, 1));
        let copied_bytes = database.copied_bytes();
        assert!(copied_bytes < memory / 10, "{copied_bytes} of {memory} bytes of type {kind}");
        drop(frozen);
        drop(database.thaw());
        assert!(!database.is_shared());
    }
}

#[test]
fn a_second_freeze_copies_nothing_and_shares_nothing_with_the_first() {
    let mut database = filled();
    for _ in 0..3 {
        let memory = database.memory();
        let frozen = database.freeze();
        (0..5).for_each(|kind| change(&mut database, &[b'k', 4 * kind], 7));
        assert_eq!(frozen.len(), 5);
        drop(frozen);
        drop(database.thaw());
        assert!(!database.is_shared());
        assert!(database.memory() < memory + memory / 20);
        database.check();
    }
}

#[test]
fn a_database_that_is_still_read_elsewhere_takes_nothing_back() {
    let mut database = filled();
    let frozen = database.freeze();
    (0..5).for_each(|kind| change(&mut database, &[b'k', 4 * kind], 7));
    let expected = contents(&database);
    drop(database.thaw());
    assert!(database.is_shared());
    assert_eq!((frozen.len(), contents(&database)), (5, expected.clone()));
    drop(frozen);
    drop(database.thaw());
    assert!(!database.is_shared());
    assert_eq!(contents(&database), expected);
    database.check();
}
