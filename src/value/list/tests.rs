//! Tests of the list: its ends and its middle, and which encoding Redis 8.0.6 gives it when.

use super::*;

const LIMITS: Limits = Limits { size: -2, large: None };

fn list(lengths: &[usize]) -> List {
    let mut list = List::new();
    for (number, &length) in lengths.iter().enumerate() {
        list.push(End::Tail, [text(number, length).as_slice()], &LIMITS);
    }
    list.check();
    list
}

/// A text of that length that is not a number, different for each `number`.
fn text(number: usize, length: usize) -> Vec<u8> {
    format!("{:x<length$}", (b'a' + number as u8) as char).into_bytes()
}

fn contents(list: &List) -> Vec<String> {
    list.check();
    let string = |item: Item<'_>| String::from_utf8_lossy(&item.to_cow()).into_owned();
    let forward: Vec<String> = list.iter().map(string).collect();
    let mut backward: Vec<String> = list.iter().rev().map(string).collect();
    backward.reverse();
    assert_eq!(forward, backward);
    forward
}

#[test]
fn elements_are_pushed_and_popped_at_both_ends() {
    let mut list = List::new();
    list.push(End::Tail, [b"a".as_slice(), b"1"], &LIMITS);
    list.push(End::Head, [b"b".as_slice(), b"-2"], &LIMITS);
    assert_eq!(contents(&list), ["-2", "b", "a", "1"]);
    assert_eq!(list.pop(End::Head, &LIMITS).as_deref(), Some(b"-2".as_slice()));
    assert_eq!(list.pop(End::Tail, &LIMITS).as_deref(), Some(b"1".as_slice()));
    assert_eq!(contents(&list), ["b", "a"]);
    list.remove(0..9, &LIMITS);
    assert!(list.is_empty());
    assert_eq!(list.pop(End::Head, &LIMITS), None);
    assert_eq!(list.pop(End::Tail, &LIMITS), None);
}

#[test]
fn an_element_is_replaced_and_others_are_inserted_beside_it() {
    for size in [1, 2, 3, -2] {
        let limits = Limits { size, ..Limits::default() };
        let mut list = List::new();
        list.push(End::Tail, [b"a".as_slice(), b"b", b"c", b"d", b"e"], &limits);
        assert!(list.set(2, b"C", &limits));
        assert!(list.insert(2, Side::Before, b"before", &limits));
        assert!(list.insert(3, Side::After, b"after", &limits));
        assert!(!list.set(7, b"none", &limits));
        assert!(!list.insert(7, Side::Before, b"none", &limits));
        assert_eq!(contents(&list), ["a", "b", "before", "C", "after", "d", "e"], "nodes of {size}");
    }
}

#[test]
fn positions_are_found_from_either_end_among_the_nearest_elements() {
    let elements = [b"a".as_slice(), b"7", &[b'x'; 9000], b"a", b"b", b"7", b"7", b"ab", b"a"];
    for size in [1, 2, 3, -2] {
        let limits = Limits { size, ..Limits::default() };
        let mut list = List::new();
        list.push(End::Tail, elements, &limits);
        for wanted in elements {
            for within in 0..elements.len() + 2 {
                let nearest = within.min(elements.len());
                let equal = |position: &usize| elements[*position] == wanted;
                let head: Vec<usize> = (0..nearest).filter(equal).collect();
                let tail: Vec<usize> = (elements.len() - nearest..elements.len()).rev().filter(equal).collect();
                assert_eq!(list.positions(wanted, End::Head, within).collect::<Vec<_>>(), head, "nodes of {size}");
                assert_eq!(list.positions(wanted, End::Tail, within).collect::<Vec<_>>(), tail, "nodes of {size}");
            }
        }
    }
}

#[test]
fn equal_elements_are_removed_from_the_requested_end() {
    for size in [1, 2, -2] {
        let limits = Limits { size, ..Limits::default() };
        let full = |count, from| {
            let mut list = List::new();
            list.push(End::Tail, [b"a".as_slice(), b"7", b"a", b"b", b"7", b"7"], &limits);
            assert_eq!(list.remove_equal(b"7", from, count, &limits), count.min(3));
            contents(&list).concat()
        };
        assert_eq!(full(1, End::Head), "aab77");
        assert_eq!(full(2, End::Head), "aab7");
        assert_eq!(full(2, End::Tail), "a7ab");
        assert_eq!(full(9, End::Tail), "aab");
    }
}

#[test]
fn a_trim_keeps_the_elements_of_its_range() {
    for size in [1, 3, -2] {
        let limits = Limits { size, ..Limits::default() };
        let mut list = List::new();
        list.push(End::Tail, [b"a".as_slice(), b"b", b"c", b"d", b"e", b"f", b"g"], &limits);
        list.trim(1..6, &limits);
        assert_eq!(contents(&list).concat(), "bcdef");
        list.trim(2..3, &limits);
        assert_eq!(contents(&list).concat(), "d");
        list.trim(1..1, &limits);
        assert!(list.is_empty());
    }
}

#[test]
fn positions_are_counted_from_the_requested_end() {
    let list = list(&[1, 1, 1]);
    assert_eq!(list.positions(b"b", End::Head, usize::MAX).collect::<Vec<_>>(), [1]);
    let mut same = List::new();
    same.push(End::Tail, [b"x".as_slice(), b"y", b"x"], &LIMITS);
    assert_eq!(same.positions(b"x", End::Head, usize::MAX).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(same.positions(b"x", End::Tail, usize::MAX).collect::<Vec<_>>(), [2, 0]);
}

#[test]
fn a_list_becomes_a_quicklist_when_a_listpack_would_exceed_its_limit() {
    assert_eq!(list(&[8185]).encoding(), "listpack");
    assert_eq!(list(&[8186]).encoding(), "quicklist");
    assert_eq!(list(&[4000, 4000]).encoding(), "listpack");
    assert_eq!(list(&[4000, 4000, 300]).encoding(), "quicklist");
    let mut at_once = List::new();
    at_once.push(End::Tail, [vec![b'x'; 4000], vec![b'y'; 4186]].iter().map(Vec::as_slice), &LIMITS);
    assert_eq!(at_once.encoding(), "quicklist");
}

#[test]
fn a_quicklist_shrinks_back_to_a_listpack_when_one_node_of_half_the_limit_is_left() {
    let mut long = list(&[4000, 4000, 300]);
    long.pop(End::Tail, &LIMITS);
    assert_eq!(long.encoding(), "quicklist");
    long.pop(End::Tail, &LIMITS);
    assert_eq!(long.encoding(), "listpack");
    let mut two_nodes = list(&[4000, 4000, 1000]);
    two_nodes.remove(0..1, &LIMITS);
    assert_eq!((two_nodes.len(), two_nodes.encoding()), (2, "quicklist"));
}

#[test]
fn a_large_element_keeps_the_list_a_quicklist_until_it_is_removed() {
    let mut long = list(&[8193, 1]);
    assert_eq!(long.encoding(), "quicklist");
    long.pop(End::Tail, &LIMITS);
    assert_eq!(long.encoding(), "quicklist", "one node, but of a large element");
    assert!(long.set(0, b"small", &LIMITS));
    assert_eq!((contents(&long).concat().as_str(), long.encoding()), ("small", "listpack"));
}

#[test]
fn twenty_product_names_take_far_less_memory_than_in_a_listpack() {
    let names: Vec<String> = (1..=20).map(|number| format!("product-{:07}", number * 104_729)).collect();
    let mut list = List::new();
    list.push(End::Tail, names.iter().map(String::as_bytes), &LIMITS);
    assert_eq!(contents(&list), names);
    let listpack = 7 + 20 * 17;
    assert!(list.memory() * 10 <= listpack * 6, "{} for a listpack of {listpack}", list.memory());
    assert_eq!(size_of::<List>(), 24);
}

#[test]
fn a_queue_of_many_elements_can_be_read_from_any_position() {
    let mut list = List::new();
    for number in 0..5000 {
        list.push(End::Tail, [format!("job:{number}").as_bytes()], &LIMITS);
    }
    list.check();
    for start in [0, 1, 481, 2500, 4999, 5000] {
        let some: Vec<_> = list.range(start..start + 3).map(|item| item.to_vec()).collect();
        let expected: Vec<_> =
            (start..5000.min(start + 3)).map(|number| format!("job:{number}").into_bytes()).collect();
        assert_eq!(some, expected);
        assert_eq!(list.get(start).map(|item| item.to_vec()), expected.first().cloned());
    }
    for number in 0..5000 {
        assert_eq!(list.pop(End::Head, &LIMITS), Some(format!("job:{number}").into_bytes()));
    }
    assert!(list.is_empty());
}
