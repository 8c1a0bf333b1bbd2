//! Tests of the set: its forms, and that one turns into another where it does in Redis 8.0.6.

use super::*;
use crate::value::hashing;
use fastrand::Rng;
use proptest::prelude::*;
use std::collections::BTreeSet;

const LIMITS: Limits = Limits { integers: 512, entries: 128, bytes: 64, seed: 0 };

fn set<M: AsRef<[u8]>>(members: impl IntoIterator<Item = M>, limits: &Limits) -> Set {
    let mut set = Set::new();
    for member in members {
        assert!(set.insert(member.as_ref(), limits));
    }
    set.check();
    set
}

fn numbers(to: usize) -> impl Iterator<Item = String> {
    (0..to).map(|number| number.to_string())
}

/// The encoding after the numbers up to `to` and then `member` were added.
fn encoding_with(to: usize, member: &str, limits: &Limits) -> &'static str {
    let mut set = set(numbers(to), limits);
    assert!(set.insert(member.as_bytes(), limits));
    set.check();
    set.encoding()
}

#[test]
fn integers_become_a_table_with_one_member_too_many() {
    assert_eq!(set(numbers(512), &LIMITS).encoding(), "intset");
    assert_eq!(set(numbers(513), &LIMITS).encoding(), "hashtable");
    assert_eq!(set(numbers(11), &Limits { integers: 10, ..LIMITS }).encoding(), "hashtable");
}

#[test]
fn adding_a_text_makes_a_packed_set_of_few_integers_and_a_table_of_many() {
    assert_eq!(encoding_with(127, "a", &LIMITS), "listpack");
    assert_eq!(encoding_with(128, "a", &LIMITS), "hashtable");
    assert_eq!(encoding_with(1, &"a".repeat(64), &LIMITS), "listpack");
    assert_eq!(encoding_with(1, &"a".repeat(65), &LIMITS), "hashtable");
}

#[test]
fn an_integer_too_long_for_a_packed_member_makes_a_table() {
    let limits = Limits { bytes: 4, ..LIMITS };
    for (number, encoding) in
        [("1234", "listpack"), ("-123", "listpack"), ("-1234", "hashtable"), ("12345", "hashtable")]
    {
        let mut set = set(["5", number], &limits);
        set.insert(b"a", &limits);
        assert_eq!(set.encoding(), encoding, "with {number}");
    }
}

#[test]
fn a_packed_set_becomes_a_table_with_one_member_or_byte_too_many() {
    let mut few = set(["a", "b"], &Limits { entries: 3, ..LIMITS });
    few.insert(b"7", &Limits { entries: 3, ..LIMITS });
    assert!(!few.insert(b"7", &Limits { entries: 3, ..LIMITS }));
    assert_eq!(few.encoding(), "listpack");
    few.insert(b"c", &Limits { entries: 3, ..LIMITS });
    assert_eq!(few.encoding(), "hashtable");
    let mut short = set(["a"], &LIMITS);
    assert!(short.insert(&[b'a'; 65], &LIMITS));
    assert_eq!(short.encoding(), "hashtable");
    assert_eq!(short.len(), 2);
}

#[test]
fn the_first_form_of_a_set_depends_on_its_first_member_and_their_number() {
    for (first, members, encoding) in [
        ("1", 512, "intset"),
        ("1", 513, "hashtable"),
        ("a", 128, "listpack"),
        ("a", 129, "hashtable"),
        ("01", 1, "listpack"),
    ] {
        assert_eq!(Set::for_members(first.as_bytes(), members, &LIMITS).encoding(), encoding, "{first} {members}");
    }
    assert_eq!(Set::for_members(b"1", 11, &Limits { integers: 10, ..LIMITS }).encoding(), "listpack");
}

#[test]
fn reserving_room_for_too_many_members_makes_a_table_at_once() {
    for (first, most) in [("1", 512), ("a", 128)] {
        let mut set = set([first], &LIMITS);
        let before = set.encoding();
        set.make_room(most, &LIMITS);
        assert_eq!(set.encoding(), before);
        set.make_room(most + 1, &LIMITS);
        assert_eq!((set.encoding(), set.len()), ("hashtable", 1));
        set.make_room(1, &LIMITS);
    }
}

#[test]
fn a_small_set_takes_less_than_redis_spends_on_a_listpack() {
    let names: Vec<String> = (1..=10).map(|number| format!("conn-{}-{}", number * 37, number * 1001)).collect();
    let set = set(&names, &LIMITS);
    let listpack = 7 + names.iter().map(|name| name.len() + 2).sum::<usize>();
    assert!(set.memory() * 10 <= listpack * 8, "{} for a listpack of {listpack}", set.memory());
    assert_eq!(size_of::<Set>(), 24);
}

#[test]
fn a_big_set_takes_less_than_thirty_bytes_a_member() {
    let names = (0..100_000).map(|number| format!("event-{number:09}"));
    let mut set = Set::new();
    names.for_each(|name| assert!(set.insert(name.as_bytes(), &LIMITS)));
    assert!(set.memory() < 30 * 100_000, "{}", set.memory());
}

#[test]
fn popping_returns_every_member_once() {
    for members in [
        numbers(100).collect::<Vec<_>>(),
        (0..100).map(|number| format!("m{number}")).collect(),
        numbers(1000).collect(),
    ] {
        let mut set = set(&members, &LIMITS);
        let mut generator = Rng::with_seed(3);
        let mut popped = Vec::new();
        set.pop_each(members.len() - 1, &mut generator, |member| popped.push(member.to_vec()));
        assert_eq!(set.len(), 1);
        set.check();
        set.pop_each(9, &mut generator, |member| popped.push(member.to_vec()));
        popped.sort_by_key(|member| members.iter().position(|other| other.as_bytes() == member));
        assert!(popped.iter().eq(members.iter().map(String::as_bytes)));
        assert!(set.is_empty());
        set.check();
    }
}

fn forms(members: &[String]) -> [Set; 2] {
    [LIMITS, Limits { integers: 0, entries: 0, bytes: 0, seed: 0 }].map(|limits| set(members, &limits))
}

#[test]
fn the_common_members_are_those_that_all_sets_have_whatever_their_forms() {
    let multiples = |of: usize, to: usize| -> Vec<String> {
        (0..to).filter(|number| number.is_multiple_of(of)).map(|number| format!("m{number}")).collect()
    };
    for (lens, expected) in [([100, 90, 80], 80), ([5000, 4000, 120], 120), ([90, 3000, 6000], 90), ([200, 9000, 1], 1)]
    {
        let members = [multiples(2, lens[0]), multiples(3, lens[1]), multiples(5, lens[2])];
        for choice in 0..8 {
            let sets: Vec<Set> = (0..3).map(|at| forms(&members[at])[choice >> at & 1].clone()).collect();
            let mut found = Vec::new();
            Set::common(&[&sets[0], &sets[1], &sets[2], &sets[1]], |member| {
                found.push(member.to_vec());
                ControlFlow::Continue(())
            });
            found.sort();
            let mut model: Vec<_> = multiples(30, expected).into_iter().map(String::into_bytes).collect();
            model.sort();
            assert_eq!(found, model, "lens {lens:?}, choice {choice}");
        }
    }
}

#[test]
fn a_table_built_of_members_that_differ_is_the_set_of_them() {
    let members: Vec<String> = (0..5000).map(|number| format!("m{number}")).chain(numbers(3000)).collect();
    let items: Vec<Item<'_>> = members.iter().map(|member| Item::of(member.as_bytes())).collect();
    for len in [513, 1000, items.len()] {
        assert!(Set::is_table_at(len, &LIMITS));
        let table = Set::table_of(&items[..len], &LIMITS);
        table.check();
        assert_eq!((table.len(), table.encoding()), (len, "hashtable"));
        assert!(members[..len].iter().all(|member| table.contains(member.as_bytes())));
        assert_eq!(set(&members[..len], &LIMITS).encoding(), "hashtable");
    }
    assert!(!Set::is_table_at(512, &LIMITS));
}

#[test]
fn a_search_for_common_members_ends_when_visit_breaks_off() {
    let members: Vec<String> = (0..1000).map(|number| format!("m{number}")).collect();
    for one in forms(&members[..100]) {
        for other in forms(&members) {
            let mut found = 0;
            Set::common(&[&other, &one], |_| {
                found += 1;
                if found == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(found, 7);
        }
    }
}

#[test]
fn a_sample_has_different_members_each_as_likely_as_another() {
    let members: Vec<String> = (0..100).map(|number| format!("m{number}")).collect();
    for set in forms(&members) {
        let mut generator = Rng::with_seed(5);
        for count in [0, 7, 60, 100, 101] {
            let mut hits = vec![0; 100];
            for _ in 0..1000 {
                let mut drawn = Vec::new();
                set.sample(count, &mut generator, |member| drawn.push(member.to_vec()));
                drawn.sort();
                drawn.dedup();
                assert_eq!(drawn.len(), count.min(100));
                for member in drawn {
                    let number: usize = String::from_utf8_lossy(&member[1..]).parse().expect("a number");
                    hits[number] += 1;
                }
            }
            let due = 10 * count.min(100);
            assert!(hits.iter().all(|hits| (due / 2..=due * 2).contains(hits)), "{count}: {hits:?}");
        }
    }
}

#[test]
fn popped_members_are_in_the_smallest_form_and_no_longer_in_their_set() {
    for (members, drawn, encoding) in [
        ((0..600).map(|number| format!("m{number}")).collect::<Vec<_>>(), 100, "listpack"),
        ((0..600).map(|number| format!("m{number}")).collect(), 200, "hashtable"),
        (numbers(600).collect(), 100, "listpack"),
        (numbers(500).collect(), 100, "intset"),
    ] {
        let mut whole = set(&members, &LIMITS);
        let part = whole.pop_random(drawn, &mut Rng::with_seed(1), &LIMITS);
        assert_eq!((part.len(), part.encoding(), whole.len()), (drawn, encoding, members.len() - drawn));
        assert!(members.iter().all(|member| part.contains(member.as_bytes()) != whole.contains(member.as_bytes())));
        part.check();
        whole.check();
    }
}

#[test]
fn integers_in_another_form_become_the_integer_form_if_they_are_few() {
    let mut packed = Set::packed();
    ["3", "-1", "2"].into_iter().for_each(|member| assert!(packed.insert(member.as_bytes(), &LIMITS)));
    packed.narrow(&Limits { integers: 2, ..LIMITS });
    assert_eq!(packed.encoding(), "listpack");
    packed.narrow(&LIMITS);
    assert_eq!(packed.encoding(), "intset");
    assert!(packed.iter().map(|member| member.as_int()).eq([Some(-1), Some(2), Some(3)]));
    let mut mixed = set(["1", "a"], &LIMITS);
    mixed.narrow(&LIMITS);
    assert_eq!(mixed.encoding(), "listpack");
}

#[test]
fn a_flooded_set_and_an_ordinary_one_have_the_right_members_in_common() {
    let flood: Vec<Vec<u8>> = hashing::flood().take(1_000).collect();
    let flooded = set(&flood, &LIMITS);
    let others: Vec<Vec<u8>> = (0..200).map(|number| format!("member-{number}").into_bytes()).collect();
    let plain = set(others.iter().chain(flood.iter().step_by(200)), &LIMITS);
    for sets in [[&flooded, &plain], [&plain, &flooded], [&flooded, &flooded]] {
        let mut common = 0;
        Set::common(&sets, |_| {
            common += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(common, if std::ptr::eq(sets[0], sets[1]) { 1_000 } else { 5 });
    }
}

/// A member as a table has it (0), and as a packed set has it, with its prefix apart (1) or without one.
fn item_of((member, form): &(String, u8)) -> Item<'_> {
    match (Item::of(member.as_bytes()), form) {
        (_, 0) => Item::Text(member.as_bytes(), &[]),
        (Item::Text(text, _), 1) => Item::Text(&text[..text.len() / 2], &text[text.len() / 2..]),
        (item, _) => item,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_set_of_members_is_the_one_into_which_they_are_inserted(
        members in prop::collection::vec(("-?[0-9]{1,6}|[ab]{0,3}|member:[0-9]{1,3}", 0..3_u8), 0..12),
        integers in 0..9_usize,
        entries in 0..12_usize,
        bytes in prop_oneof![1..9_usize, Just(64)],
        is_packed: bool,
    ) {
        let limits = Limits { integers, entries, bytes, seed: 0 };
        let mut seen = BTreeSet::new();
        let items: Vec<Item<'_>> =
            members.iter().filter(|(member, _)| seen.insert(member.clone())).map(item_of).collect();
        let mut inserted = if is_packed { Set::packed() } else { Set::new() };
        items.iter().for_each(|item| assert!(inserted.insert(&item.to_vec(), &limits)));
        let of = if is_packed { Set::packed_of_members } else { Set::of_members };
        let (built, encoding) = (of(&items, &limits), inserted.encoding());
        built.check();
        prop_assert_eq!(built.encoding(), encoding);
        let [mut one, mut other] = [&built, &inserted].map(|set| set.iter().map(|item| item.to_vec()).collect::<Vec<_>>());
        if encoding == "hashtable" {
            one.sort();
            other.sort();
        } else {
            prop_assert!(built.memory() <= inserted.memory());
        }
        prop_assert_eq!(one, other);
    }

    #[test]
    fn a_member_is_found_in_whatever_form_its_item_has(
        members in prop::collection::vec(("-?[0-9]{1,6}|[ab]{0,3}|member:[0-9]{1,3}", 0..3_u8), 1..12),
        others in prop::collection::vec(("-?[0-9]{1,2}|[ab]{0,2}|member:[0-9]", 0..3_u8), 1..12),
        entries in prop_oneof![Just(0_usize), Just(128)],
    ) {
        let (mut set, limits) = (Set::new(), Limits { entries, ..LIMITS });
        members.iter().for_each(|(member, _)| _ = set.insert(member.as_bytes(), &limits));
        for member in members.iter().chain(&others) {
            let is_in = members.iter().any(|(other, _)| *other == member.0);
            prop_assert_eq!(set.contains_item(item_of(member), &mut Vec::new()), is_in, "{:?}", member);
        }
    }
}
