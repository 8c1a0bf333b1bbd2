//! Tests of listpacks.

use super::*;
use crate::value::list::{self, Limits};
use proptest::prelude::*;

const NUMBERS: &[i64] = &[
    0,
    1,
    127,
    128,
    -1,
    -4096,
    -4097,
    4095,
    4096,
    32_767,
    -32_768,
    32_768,
    -32_769,
    8_388_607,
    -8_388_608,
    8_388_608,
    2_147_483_647,
    -2_147_483_648,
    2_147_483_648,
    i64::MAX,
    i64::MIN,
];

fn built<'a>(items: impl IntoIterator<Item = Item<'a>>) -> Vec<u8> {
    Builder::of(items).finish().to_vec()
}

fn sample() -> Vec<u8> {
    let texts: Vec<Vec<u8>> =
        [0, 1, 63, 64, 125, 126, 4095, 4096, 16_377, 16_378, 70_000].map(|length| vec![b'x'; length]).to_vec();
    let numbers = NUMBERS.iter().map(|&number| Item::Int(number));
    built(texts.iter().map(|text| Item::Text(text, &[])).chain(numbers))
}

#[test]
fn elements_read_back_as_they_were_written() {
    let bytes = sample();
    let listpack = Listpack::check(&bytes).expect("it was just made");
    assert_eq!(listpack.len(), 11 + NUMBERS.len());
    let lengths: Vec<usize> = listpack.iter().take(11).map(|item| item.len()).collect();
    assert_eq!(lengths, [0, 1, 63, 64, 125, 126, 4095, 4096, 16_377, 16_378, 70_000]);
    let numbers: Vec<Option<i64>> = listpack.iter().skip(11).map(|item| item.as_int()).collect();
    assert_eq!(numbers, NUMBERS.iter().map(|&number| Some(number)).collect::<Vec<_>>());
}

struct Seen<'s, 'a>(&'s mut Vec<Item<'a>>);

impl<'a> Visitor<'a> for Seen<'_, 'a> {
    fn item(&mut self, item: Item<'a>) {
        self.0.push(item);
    }

    fn short_texts(&mut self, texts: &mut impl Iterator<Item = ShortText<'a>>) {
        for text in texts {
            assert!(text.length < 64 && text.ahead.len() > text.length);
            self.0.push(text.item());
        }
    }

    fn integers(&mut self, numbers: &mut impl Iterator<Item = i64>) {
        self.0.extend(numbers.map(Item::Int));
    }
}

#[test]
fn elements_are_the_same_in_whatever_way_they_are_read() {
    let bytes = sample();
    let texts = [Item::Text(b"17", b""), Item::Text(b"-", b"5"), Item::Text(b"-x", b""), Item::Int(12)];
    for bytes in [bytes, built(texts)] {
        let listpack = Listpack::check(&bytes).expect("it was just made");
        let mut items: Vec<Item<'_>> = Vec::new();
        listpack.visit(&mut Seen(&mut items));
        assert_eq!(items.len(), listpack.len());
        let mut iter = listpack.iter();
        for (at, item) in items.iter().enumerate() {
            assert_eq!(iter.len(), items.len() - at);
            let (mut text, mut integer) = (iter.clone(), iter.clone());
            assert_eq!(integer.next_integer(), item.as_int());
            if let Some(text) = text.next_short_text() {
                assert_eq!(Item::of(text), *item);
            }
            assert_eq!(iter.next(), Some(*item));
            assert_eq!((integer.len(), integer.left), (iter.len(), iter.left));
            assert!(text.left == iter.left || item.len() > 63 || item.as_int().is_some());
        }
        assert_eq!((iter.next(), iter.len()), (None, 0));
    }
}

#[test]
fn elements_have_the_bytes_of_the_specification() {
    let bytes = built([Item::Int(5), Item::Int(-1), Item::Int(4096), Item::Text(b"a", b"b")]);
    assert_eq!(bytes, b"\x14\0\0\0\x04\0\x05\x01\xdf\xff\x02\xf1\0\x10\x03\x82ab\x03\xff");
}

#[test]
fn a_listpack_of_65535_elements_or_more_has_no_count_in_its_header() {
    for (count, head) in [(65_534, [0xfe, 0xff]), (65_535, [0xff, 0xff]), (65_536, [0xff, 0xff])] {
        let bytes = built((0..count).map(|_| Item::Int(7)));
        assert_eq!(bytes[4..6], head);
        assert_eq!(Listpack::check(&bytes).map(|listpack| listpack.len()), Some(count));
    }
}

#[test]
fn every_change_of_a_byte_is_refused_or_changes_an_element() {
    let bytes = built([Item::Text(b"abc", b""), Item::Int(300), Item::Text(&[b'y'; 70], b"")]);
    let before: Vec<Vec<u8>> =
        Items { left: &bytes[HEAD..bytes.len() - 1], count: 3 }.map(|item| item.to_vec()).collect();
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << bit;
            if let Some(listpack) = Listpack::check(&damaged) {
                let after: Vec<Vec<u8>> = listpack.iter().map(|item| item.to_vec()).collect();
                assert_eq!(after.len(), before.len());
                assert_ne!(after, before, "byte {place}, bit {bit}");
            }
        }
    }
}

#[test]
fn a_listpack_that_is_read_once_is_at_its_end_if_it_is_undamaged() {
    let bytes = built([Item::Text(b"abc", b""), Item::Int(300), Item::Text(&[b'y'; 70], b""), Item::Int(5)]);
    let is_read = |bytes: &[u8]| {
        Listpack::open(bytes).is_some_and(|mut items| {
            let is_whole = Cell::new(false);
            Unchecked { items: items.clone(), is_whole: &is_whole }.visit(&mut Seen(&mut Vec::new()));
            while items.next().is_some() {}
            assert_eq!(items.are_at_end(), is_whole.get());
            is_whole.get()
        })
    };
    assert!(is_read(&bytes) && is_read(&built((0..65_536).map(Item::Int))));
    for (place, bit) in (0..bytes.len()).flat_map(|place| (0..8).map(move |bit| (place, bit))) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << bit;
        assert_eq!(is_read(&damaged), Listpack::check(&damaged).is_some(), "byte {place}, bit {bit}");
    }
}

#[test]
fn no_more_elements_are_read_than_the_listpack_claims() {
    let bytes = built([Item::Text(b"abc", b""), Item::Int(300), Item::Int(5), Item::Text(&[b'y'; 70], b"")]);
    for claimed in 0..4 {
        let mut damaged = bytes.clone();
        damaged[4] = claimed;
        let mut items = Listpack::open(&damaged).expect("its head is whole");
        assert_eq!(items.clone().count(), usize::from(claimed));
        while items.next().is_some() {}
        assert_eq!((items.len(), items.are_at_end()), (0, false));
    }
}

#[test]
fn a_listpack_that_is_cut_off_or_too_long_is_refused() {
    let bytes = sample();
    for end in (0..200).chain(bytes.len() - 200..bytes.len()) {
        assert!(Listpack::check(&bytes[..end]).is_none());
    }
    assert!(Listpack::check(&[bytes.as_slice(), b"\xff"].concat()).is_none());
    assert!(Listpack::check(b"\x07\0\0\0\0\0\xff").is_some_and(|listpack| listpack.len() == 0));
}

#[test]
fn a_builder_that_has_finished_starts_anew() {
    let mut builder = Builder::of([Item::Int(70_000), Item::Text(&[b'x'; 5000], b"y")]);
    builder.finish();
    builder.extend([Item::Text(b"ab", b"c")]);
    assert_eq!(builder.finish(), built([Item::Text(b"abc", b"")]));
}

#[test]
fn three_integers_together_are_written_as_one_by_one() {
    for one in [0, 127, 128, -1] {
        for two in NUMBERS {
            for three in NUMBERS {
                let mut builder = Builder::new();
                builder.push_three([one, *two, *three]);
                assert_eq!(builder.finish(), built([one, *two, *three].map(Item::Int)));
            }
        }
    }
}

#[test]
fn texts_of_every_length_are_written_in_one_part_or_two() {
    let bytes: Vec<u8> = (1..=200).collect();
    for length in 0..bytes.len() {
        for cut in [0, length / 3, length] {
            let (first, second) = bytes[..length].split_at(cut);
            let written = built([Item::Text(first, second), Item::Int(-9)]);
            let items: Vec<_> = Listpack::check(&written).expect("it is whole").iter().collect();
            assert_eq!(items, [Item::Text(&bytes[..length], &[]), Item::Int(-9)]);
        }
    }
}

/// A number whose element is short, or as long as one can be.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![0..128_i64, -5000..5000_i64, any::<i32>().prop_map(i64::from), any::<i64>()]
}

/// Packs a listpack of which a bit was flipped: that is found, or the node has what the listpack reads as.
fn check_damaged(mut bytes: Vec<u8>, place: prop::sample::Index, bit: u8) -> Result<(), TestCaseError> {
    let place = place.index(bytes.len());
    bytes[place] ^= 1 << bit;
    let Some(items) = Listpack::open(&bytes) else { return Ok(()) };
    let is_whole = Cell::new(false);
    let mut builder = list::Builder::new(&Limits::default());
    builder.push_packed(Unchecked { items, is_whole: &is_whole });
    prop_assert_eq!(is_whole.get(), Listpack::check(&bytes).is_some());
    if let Some(whole) = Listpack::check(&bytes) {
        let list = builder.finish();
        list.check();
        prop_assert!(list.iter().eq(whole));
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_node_is_packed_from_a_listpack_as_from_its_elements(
        texts in prop::collection::vec(
            prop_oneof![
                8 => "entry:[0-9]{1,4}",
                4 => "entry[a-c]{0,30}",
                1 => "[0-9]{0,3}",
                1 => "-[a-c0-9]{0,3}",
                1 => "[a-c]{0,300}",
                1 => "-?[1-9][0-9]{0,17}"
            ],
            1..40,
        ),
        numbers in prop::collection::vec(number(), 40),
        kept in 0..3_usize,
        is_hash: bool,
        damaged in prop::option::of((any::<prop::sample::Index>(), 0..8_u8)),
    ) {
        // Mostly texts that are alike, in some cases without exception, and in some with an integer behind each.
        let texts: Vec<_> = texts.into_iter().filter(|text| kept > 0 || text.starts_with("entry:")).collect();
        let pairs = texts.iter().zip(numbers).map(|(text, number)| [Item::of(text.as_bytes()), Item::Int(number)]);
        let items: Vec<_> = pairs.flat_map(|pair| pair.into_iter().take(1 + usize::from(is_hash))).collect();
        let bytes = built(items.iter().copied());
        if let Some((place, bit)) = damaged {
            return check_damaged(bytes, place, bit);
        }
        let is_whole = Cell::new(false);
        let limits = Limits::default();
        let (mut of_listpack, mut of_items) = (list::Builder::new(&limits), list::Builder::new(&limits));
        of_listpack.push_packed(Unchecked { items: Listpack::open(&bytes).expect("it was just made"), is_whole: &is_whole });
        of_items.push_packed(items.iter().copied());
        let (of_listpack, of_items) = (of_listpack.finish(), of_items.finish());
        of_listpack.check();
        prop_assert!(is_whole.get());
        prop_assert!(of_listpack.iter().eq(of_items.iter()));
        prop_assert_eq!(of_listpack.memory(), of_items.memory());
        for node in of_items.nodes() {
            let list::Node::Packed(items) = node else { continue };
            let expected = built(items.clone());
            let mut builder = Builder::new();
            builder.extend_by_words(items);
            prop_assert_eq!(builder.finish(), &expected);
        }
    }
}
