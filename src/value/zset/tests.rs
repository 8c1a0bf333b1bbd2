//! Properties of both forms of a sorted set.

use super::*;

const LIMITS: Limits = Limits { entries: 128, bytes: 64, seed: 0 };
const NEVER_PACKED: Limits = Limits { entries: 0, bytes: 0, seed: 0 };

fn set_of(limits: &Limits, entries: &[(&str, f64)]) -> Zset {
    let mut set = Zset::new();
    for (member, score) in entries {
        set.insert(member.as_bytes(), *score, limits);
        set.check();
    }
    set
}

/// Runs a test over both forms.
fn both_forms(test: impl Fn(&Limits)) {
    test(&LIMITS);
    test(&NEVER_PACKED);
}

fn members(iter: Iter<'_>) -> Vec<String> {
    iter.map(|entry| String::from_utf8_lossy(entry.member).into_owned()).collect()
}

#[test]
fn entries_come_in_order_of_score_then_member() {
    both_forms(|limits| {
        let set = set_of(limits, &[("b", 2.0), ("c", 1.0), ("a", 2.0), ("", 2.0), ("long member", -1.5)]);
        assert_eq!(members(set.iter()), ["long member", "c", "", "a", "b"]);
        assert_eq!(set.iter().rev().map(|entry| entry.score).collect::<Vec<_>>(), [2.0, 2.0, 2.0, 1.0, -1.5]);
        assert_eq!(set.rank(b"a"), Some((3, 2.0)));
        assert_eq!(set.at(0), Some(Entry { member: b"long member", score: -1.5 }));
        assert_eq!(set.at(5), None);
    });
}

#[test]
fn all_entries_at_once_are_those_that_come_one_by_one() {
    let limits = &Limits { bytes: 1000, ..LIMITS };
    let long = "x".repeat(300);
    for members in [vec!["ab", "cd", "ef", "gh"], vec!["a", "", "bcd", "ef"], vec!["a", &long, "b", "c"]] {
        for score in [1.0, 0.5] {
            let entries: Vec<_> = members.iter().enumerate().map(|(at, member)| (*member, at as f64 * score)).collect();
            let set = set_of(limits, &entries);
            for passed in 0..=members.len() {
                let mut iter = set.range(0..3.max(passed));
                iter.by_ref().take(passed).count();
                let mut rest = iter.clone();
                let one_by_one: Vec<_> = std::iter::from_fn(|| rest.next()).collect();
                let mut at_once = Vec::new();
                iter.for_each(|entry| at_once.push(entry));
                assert_eq!(at_once, one_by_one);
            }
        }
    }
}

#[test]
fn a_score_update_moves_the_member_to_its_place() {
    both_forms(|limits| {
        let mut set = set_of(limits, &[("a", 1.0), ("bb", 2.0), ("ccc", 3.0)]);
        for (score, order) in [(2.5, ["bb", "a", "ccc"]), (9.0, ["bb", "ccc", "a"]), (0.25, ["a", "bb", "ccc"])] {
            set.insert(b"a", score, limits);
            set.check();
            assert_eq!(members(set.iter()), order);
        }
    });
}

#[test]
fn an_update_gets_the_old_score_and_may_keep_it() {
    both_forms(|limits| {
        let mut set = set_of(limits, &[("a", 1.0)]);
        assert_eq!(set.update(b"a", limits, |score| score.map(|score| score + 4.0)), (Some(1.0), Some(5.0)));
        assert_eq!(set.update(b"a", limits, |_| None), (Some(5.0), Some(5.0)));
        assert_eq!(set.update(b"x", limits, |_| None), (None, None));
        assert_eq!(set.update(b"x", limits, |_| Some(0.0)), (None, Some(0.0)));
        assert_eq!(set.len(), 2);
    });
}

#[test]
fn the_sign_of_zero_does_not_order_and_only_the_large_form_keeps_it() {
    both_forms(|limits| {
        let set = set_of(limits, &[("b", -0.0), ("a", 0.0), ("c", 0.0)]);
        assert_eq!(members(set.iter()), ["a", "b", "c"]);
        assert_eq!(set.score(b"b").map(f64::is_sign_negative), Some(!set.is_listpack()));
        let zero = ScoreRange { min: Bound::Included(0.0), max: Bound::Included(-0.0) };
        assert_eq!(set.by_score(&zero), 0..3);
    });
}

#[test]
fn a_set_that_expects_too_many_members_is_large_at_once() {
    let mut set = set_of(&LIMITS, &[("a", 1.0), ("b", 2.0)]);
    set.make_room(LIMITS.entries, &LIMITS);
    assert!(set.is_listpack());
    set.make_room(LIMITS.entries + 1, &LIMITS);
    assert!(!set.is_listpack());
    assert_eq!(members(set.iter()), ["a", "b"]);
    set.check();
}

#[test]
fn score_ranges_honour_each_kind_of_bound() {
    both_forms(|limits| {
        let set = set_of(limits, &[("a", f64::NEG_INFINITY), ("b", 1.0), ("c", 2.0), ("d", 2.0), ("e", f64::INFINITY)]);
        let range = |min, max| set.by_score(&ScoreRange { min, max });
        assert_eq!(range(Bound::Unbounded, Bound::Unbounded), 0..5);
        assert_eq!(range(Bound::Included(1.0), Bound::Included(2.0)), 1..4);
        assert_eq!(range(Bound::Excluded(1.0), Bound::Excluded(2.0)), 2..2);
        assert_eq!(range(Bound::Included(2.0), Bound::Included(1.0)).len(), 0);
        assert_eq!(range(Bound::Excluded(2.0), Bound::Included(f64::INFINITY)), 4..5);
        assert_eq!(range(Bound::Included(f64::NEG_INFINITY), Bound::Excluded(1.0)), 0..1);
    });
}

#[test]
fn lex_ranges_honour_each_kind_of_bound() {
    both_forms(|limits| {
        let set = set_of(limits, &[("a", 0.0), ("b", 0.0), ("bb", 0.0), ("c", 0.0)]);
        let range = |min, max| set.by_lex(&LexRange { min, max });
        assert_eq!(range(LexBound::Lowest, LexBound::Highest), 0..4);
        assert_eq!(range(LexBound::Highest, LexBound::Lowest).len(), 0);
        assert_eq!(range(LexBound::Included(b"b"), LexBound::Excluded(b"c")), 1..3);
        assert_eq!(range(LexBound::Excluded(b"b"), LexBound::Included(b"c")), 2..4);
        assert_eq!(range(LexBound::Included(b"c"), LexBound::Included(b"b")).len(), 0);
    });
}

#[test]
fn a_set_becomes_large_with_one_entry_or_byte_too_many_and_stays_so() {
    let mut set = Zset::new();
    for i in 0..128 {
        set.insert(format!("{i}").as_bytes(), f64::from(i), &LIMITS);
        assert_eq!(set.encoding(), "listpack");
    }
    set.insert(b"0", 500.0, &LIMITS);
    assert_eq!(set.encoding(), "listpack");
    set.insert(b"one more", 1.0, &LIMITS);
    assert_eq!((set.encoding(), set.len()), ("skiplist", 129));
    set.remove_range(1..129);
    assert_eq!((set.encoding(), set.len()), ("skiplist", 1));
    let mut set = set_of(&LIMITS, &[(&"x".repeat(64), 1.0)]);
    assert_eq!(set.encoding(), "listpack");
    set.insert("x".repeat(65).as_bytes(), 1.0, &LIMITS);
    assert_eq!(set.encoding(), "skiplist");
}

#[test]
fn ranges_of_positions_are_removed_and_counted() {
    both_forms(|limits| {
        let entries: Vec<(String, f64)> = (0..100).map(|i| (format!("m{i:02}"), f64::from(i))).collect();
        let mut set = Zset::from_entries(entries, limits);
        set.check();
        assert_eq!(set.remove_range(90..200), 10);
        assert_eq!(set.remove_range(0..30), 30);
        assert_eq!(set.remove_range(70..70), 0);
        assert_eq!(set.remove_range(usize::MAX..usize::MAX), 0);
        set.check();
        assert_eq!((set.len(), set.rank(b"m30"), set.rank(b"m89")), (60, Some((0, 30.0)), Some((59, 89.0))));
        assert_eq!(set.remove_range(0..60), 60);
        set.check();
        assert!(set.is_empty());
    });
}

#[test]
fn a_scan_continues_in_a_set_that_was_rebuilt() {
    let entries = (0..2000).map(|i| (format!("m{i:04}"), f64::from(i)));
    let mut set = Zset::from_entries(entries, &Limits { entries: 0, bytes: 0, seed: 0 });
    let mut seen = std::collections::BTreeSet::new();
    let mut cursor = set.scan(0, 700, |entry| _ = seen.insert(entry.member.to_vec()));
    let (gone, old) = set.cut_range(500..1900);
    assert_eq!((gone, set.len(), old.map(|old| old.len())), (1400, 600, Some(2000)));
    set.check();
    while cursor != 0 {
        cursor = set.scan(cursor, 50, |entry| _ = seen.insert(entry.member.to_vec()));
    }
    assert!(set.iter().all(|entry| seen.contains(entry.member)));
}

#[test]
fn a_sorted_set_value_has_two_words() {
    assert_eq!(size_of::<Zset>(), 16);
}

#[test]
fn a_member_may_be_long() {
    let mut set = set_of(&LIMITS, &[("short", 1.0)]);
    let long = vec![b'x'; 1 << 20];
    set.insert(&long, 2.0, &LIMITS);
    let copy = set.clone();
    assert_eq!(copy.at(1), Some(Entry { member: &long, score: 2.0 }));
    assert!(set.memory() > 1 << 20);
    set.insert(&long, 0.5, &LIMITS);
    set.check();
    assert_eq!(set.rank(&long), Some((0, 0.5)));
    assert_eq!(set.remove(&long), Some(0.5));
    assert!(set.memory() < 1 << 16);
    set.check();
}

#[test]
fn a_recency_list_of_thirty_stays_within_fifteen_bytes_an_entry() {
    let mut set = Zset::new();
    for i in 0..10_000_u32 {
        let page = i.wrapping_mul(2_654_435_761) % 900_000_000 + 100_000_000;
        set.insert(page.to_string().as_bytes(), f64::from(1_569_230_000 + i * 7), &LIMITS);
        let extra = set.len().saturating_sub(30);
        set.remove_range(0..extra);
        assert!(set.len() < 30 || set.memory() + size_of::<Zset>() <= 15 * 30, "{} bytes", set.memory());
    }
    set.check();
}

#[test]
fn scores_of_every_kind_can_be_in_one_set() {
    both_forms(|limits| {
        let scores = [
            0.0,
            -1.0,
            255.0,
            256.0,
            -70_000.0,
            1.5,
            1e300,
            -1e-300,
            f64::INFINITY,
            f64::NEG_INFINITY,
            9_007_199_254_740_992.0,
            -9_007_199_254_740_992.0,
            -0.0,
        ];
        let mut set = Zset::new();
        for (index, score) in scores.iter().enumerate() {
            set.insert(&vec![b'm'; index * 3], *score, limits);
            set.check();
            for (index, score) in scores[..=index].iter().enumerate() {
                assert_eq!(set.score(&vec![b'm'; index * 3]), Some(*score));
            }
        }
    });
}

#[test]
fn a_full_scan_visits_every_entry() {
    both_forms(|limits| {
        let set = Zset::from_entries((0..500).map(|i| (format!("m{i}"), f64::from(i))), limits);
        let mut seen = std::collections::BTreeSet::new();
        let mut cursor = 0;
        loop {
            cursor = set.scan(cursor, 10, |entry| {
                seen.insert(entry.member.to_vec());
            });
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(seen.len(), 500);
    });
}

#[test]
fn large_ranges_can_be_removed_while_memory_is_freed() {
    let mut set = Zset::new();
    for i in 0..60_000_u32 {
        let member = i.wrapping_mul(2_654_435_761) % 1_000_003;
        set.insert(member.to_string().as_bytes(), f64::from(member), &LIMITS);
    }
    for share in [3, 2, 7, 1] {
        let gone = set.len() / share;
        set.remove_range(gone / 5..gone);
        set.check();
    }
}

/// A set of `left` entries that has been large.
fn outgrown(left: usize) -> Zset {
    let mut set = Zset::from_entries((0..400).map(|i| (format!("m{i:03}"), f64::from(i))), &LIMITS);
    set.remove_range(left..400);
    set.check();
    set
}

#[test]
fn a_set_that_has_been_large_reports_skiplist_and_is_as_small_as_a_packed_one() {
    let set = outgrown(30);
    let packed = Zset::from_entries(set.iter().map(|entry| (entry.member, entry.score)), &LIMITS);
    assert_eq!((set.encoding(), packed.encoding()), ("skiplist", "listpack"));
    assert_eq!(set.memory(), packed.memory());
    assert_eq!(set.clone().encoding(), "skiplist");
}

#[test]
fn a_set_that_has_been_large_is_packed_by_removing_one_by_one_too() {
    let (mut set, packed) = (outgrown(100), outgrown(30));
    for i in 30..100 {
        set.remove(format!("m{i:03}").as_bytes());
        set.check();
    }
    assert!(set.iter().eq(packed.iter()));
    assert!(set.memory() < 2 * packed.memory(), "{} bytes beside {}", set.memory(), packed.memory());
}

#[test]
fn a_set_that_has_been_large_may_grow_large_again() {
    let mut set = outgrown(30);
    for i in 30..400 {
        set.insert(format!("m{i:03}").as_bytes(), f64::from(i), &LIMITS);
        set.check();
        assert_eq!((set.encoding(), set.len()), ("skiplist", i as usize + 1));
    }
    assert!(set.iter().eq(outgrown(400).iter()));
}

#[test]
fn a_set_that_has_been_large_keeps_the_sign_of_zero() {
    let mut set = outgrown(30);
    set.insert(b"m007", -0.0, &LIMITS);
    let mut trimmed = Zset::from_entries((0..400).map(|i| (format!("m{i:03}"), -0.0)), &LIMITS);
    trimmed.remove_range(1..400);
    for (set, member) in [(set, b"m007"), (trimmed, b"m000")] {
        set.check();
        assert_eq!(set.score(member).map(f64::is_sign_negative), Some(true));
    }
}

#[test]
fn a_set_that_has_been_large_is_scanned_in_pages() {
    let mut seen = vec![];
    let (set, mut cursor, mut pages) = (outgrown(30), 0, 0);
    loop {
        cursor = set.scan(cursor, 10, |entry| seen.push(entry.member));
        pages += 1;
        if cursor == 0 {
            break;
        }
    }
    seen.sort_unstable();
    assert_eq!((pages, seen), (3, set.iter().map(|entry| entry.member).collect()));
}

#[test]
fn the_common_entries_of_two_sets_have_the_scores_of_both_whatever_their_forms() {
    for (own_len, other_len) in [(100, 90), (90, 4000), (3000, 4000), (4000, 300), (0, 50)] {
        let numbered = |step: usize, len: usize, first_score: usize| {
            (0..len).map(move |at| (format!("m{}", at * step), (first_score + at * step) as f64))
        };
        let sets = |step, len, first_score| {
            [LIMITS, NEVER_PACKED].map(|limits| Zset::from_entries(numbered(step, len, first_score), &limits))
        };
        let mut model: Vec<_> = (0..own_len * 2)
            .step_by(6)
            .filter(|number| *number < other_len * 3)
            .map(|number| (format!("m{number}"), number as f64, (number + 7) as f64))
            .collect();
        model.sort_by(|one, other| one.0.cmp(&other.0));
        for own in sets(2, own_len, 0) {
            for other in sets(3, other_len, 7) {
                let mut found = Vec::new();
                own.common(&other, |entry, other_score| {
                    found.push((String::from_utf8_lossy(entry.member).into_owned(), entry.score, other_score));
                    ControlFlow::Continue(())
                });
                found.sort_by(|one, other| one.0.cmp(&other.0));
                assert_eq!(found, model, "{own_len} and {other_len}");
            }
        }
    }
}

#[test]
fn a_search_for_common_entries_ends_when_visit_breaks_off() {
    both_forms(|limits| {
        let set = Zset::from_entries((0..100).map(|number| (format!("m{number}"), f64::from(number))), limits);
        let mut found = 0;
        set.common(&set, |_, _| {
            found += 1;
            if found == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(found, 7);
    });
}
