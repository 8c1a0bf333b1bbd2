//! The size that Redis's listpack would have for the same items.
//!
//! Redis chooses forms, and where one node ends and the next begins, by the size of its own layout, which is not
//! ours; clients can see that. So sizes are counted in listpack bytes.

use crate::value::item::Item;

/// The size of a listpack without items: its head and its end.
pub(super) const EMPTY: usize = 7;

/// The bytes that an item takes in a listpack.
#[inline]
pub(super) fn cost(item: Item<'_>) -> usize {
    let bytes = match item {
        Item::Int(number) => return cost_of_integer(number),
        Item::Text(..) => match item.len() {
            length @ 0..64 => 1 + length,
            length @ 64..4096 => 2 + length,
            length => 5 + length,
        },
    };
    bytes + backlen(bytes)
}

/// The bytes of an integer in a listpack.
#[inline]
pub(super) fn cost_of_integer(number: i64) -> usize {
    let bytes = match number {
        0..=127 => 1,
        -4096..=4095 => 2,
        -32_768..=32_767 => 3,
        -8_388_608..=8_388_607 => 4,
        -2_147_483_648..=2_147_483_647 => 5,
        _ => 9,
    };
    bytes + backlen(bytes)
}

/// The size of the length field behind an element of `bytes` bytes, by which a listpack is read backwards.
#[inline]
pub(crate) fn backlen(bytes: usize) -> usize {
    match bytes {
        0..128 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_has_the_size_that_it_has_in_a_listpack() {
        for (bytes, expected) in [
            ("127", 2),
            ("128", 3),
            ("-4096", 3),
            ("4096", 4),
            ("-32769", 5),
            ("8388608", 6),
            ("2147483648", 10),
            ("", 2),
            ("product-0000001", 17),
        ] {
            assert_eq!(cost(Item::of(bytes.as_bytes())), expected, "{bytes}");
        }
        for (length, expected) in [(63, 65), (64, 67), (126, 130), (4095, 4099), (4096, 4103)] {
            assert_eq!(cost(Item::Text(&vec![b'x'; length], &[])), expected, "{length} bytes");
        }
    }
}
