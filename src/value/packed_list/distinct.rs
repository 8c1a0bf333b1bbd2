//! Whether the items of a packed list differ, or every other one of them: the members of a set, the fields of a hash.
//!
//! Here this takes fewer steps than before the list is built: the common prefix need not be compared, and what is left
//! of most items is a word. As equal items have equal codes and equal content, they are compared as they are stored.

use super::view::length_of;
use super::{Head, PackedListView, TEXT};
use crate::value::distinct;
use crate::value::item::Item;

impl PackedListView<'_> {
    /// Whether no two of the items are equal, or of those at even positions only (`EVEN`).
    pub(in crate::value) fn are_distinct<const EVEN: bool>(self) -> bool {
        let head = self.head();
        let column = &self.bytes[self.column(&head, 0..head.len)];
        let ascend = match head.width {
            0 => self.ascend::<EVEN>(&head, std::iter::repeat_n(head.common, head.len)),
            1 => self.ascend::<EVEN>(&head, column.iter().rev().map(|&code| code.into())),
            _ => false,
        };
        ascend || self.differ::<EVEN>()
    }

    /// Whether the items have at most eight bytes of content and ascend: by their codes, then as numbers or texts.
    fn ascend<const EVEN: bool>(self, head: &Head, codes: impl Iterator<Item = usize>) -> bool {
        let (mut end, mut before, mut is_chosen) = (head.content_at(), None, false);
        for code in codes {
            let length = length_of(code);
            end += length;
            is_chosen = !(EVEN && is_chosen);
            if !is_chosen {
                continue;
            }
            let Some(word) = self.bytes.get(..end).and_then(|bytes| bytes.last_chunk()) else { return false };
            let unused = 64_u32.saturating_sub(8 * length as u32);
            let content = if code < TEXT {
                u64::from_le_bytes(*word).unbounded_shr(unused)
            } else {
                u64::from_be_bytes(*word) & u64::MAX.unbounded_shr(unused)
            };
            if length > 8 || before >= Some((code, content)) {
                return false;
            }
            before = Some((code, content));
        }
        true
    }

    #[cold]
    fn differ<const EVEN: bool>(self) -> bool {
        distinct::are_distinct(self.iter().step_by(1 + usize::from(EVEN)).map(|item| match item {
            Item::Text(_, rest) => Item::Text(rest, &[]),
            Item::Int(_) => item,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::PackedList;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn items_are_distinct_as_their_bytes_are(
            mut texts in prop::collection::vec(
                prop_oneof!["[ab]{0,2}", "-?[0-9]{1,3}", "key:[0-9]{0,2}", "key:of many bytes[ab]{0,9}", "x{250,300}"],
                0..24,
            ),
            is_sorted: bool,
        ) {
            if is_sorted {
                texts.sort_by_key(|text| (text.len(), text.clone()));
            }
            let packed = PackedList::build(texts.iter().map(|text| Item::of(text.as_bytes()))).expect("there is room");
            let differ = |step: usize| {
                let mut chosen: Vec<_> = texts.iter().step_by(step).collect();
                let count = chosen.len();
                chosen.sort();
                chosen.dedup();
                chosen.len() == count
            };
            prop_assert_eq!(packed.view().are_distinct::<false>(), differ(1));
            prop_assert_eq!(packed.view().are_distinct::<true>(), differ(2));
        }
    }
}
