//! Sets: one member after the other, as sorted integers, or as a listpack.

use crate::rdb::kind;
use crate::rdb::listpack::{Listpack, Unchecked};
use crate::rdb::text::Reader;
use crate::value::set::{Limits, Set};
use crate::value::{Item, are_distinct};
use std::cell::Cell;

/// The most bytes that the index of a table takes for a member.
const INDEX_BYTES: usize = 9;

impl Reader<'_> {
    pub(super) fn set(&mut self, kind: u8, limits: &Limits) -> Option<Set> {
        match kind {
            kind::SET => {
                let count = usize::try_from(self.length()?).ok()?;
                let mut set = if count > limits.integers {
                    // The count may be wrong: the index takes no more memory than what is left of the payload.
                    Set::table_with_room(count.min(self.left() / INDEX_BYTES), limits)
                } else {
                    Set::new()
                };
                for _ in 0..count {
                    let member = self.text()?;
                    set.insert(&member, limits).then_some(())?;
                }
                Some(set)
            }
            kind::SET_INTSET => {
                let bytes = self.part()?;
                let (width, numbers) = integers(&bytes)?;
                let set = Set::of_integers(width, numbers, limits)?;
                self.take_room(set.len(), 0)?;
                Some(set)
            }
            _ => {
                let bytes = self.part()?;
                let items = self.open_listpack(&bytes)?;
                if items.len() > limits.entries {
                    return table(Listpack::check(&bytes)?.iter(), limits);
                }
                let is_whole = Cell::new(false);
                let members = Unchecked { items: items.clone(), is_whole: &is_whole };
                let set = match Set::packed_of_items(members.clone()) {
                    Some(set) => Some(set).filter(Set::has_distinct_members),
                    None => are_distinct(items).then(|| Set::of_items(members, limits)),
                };
                set.filter(|_| is_whole.get())
            }
        }
    }
}

/// Builds the table of some members; `None` if two are equal.
fn table<'a>(mut members: impl ExactSizeIterator<Item = Item<'a>>, limits: &Limits) -> Option<Set> {
    let mut set = Set::table_with_room(members.len(), limits);
    members.all(|member| set.insert(&member.to_cow(), limits)).then_some(set)
}

/// Reads the head of the form of sets of integers, `bytes a number, 4 | numbers, 4 | number | ...`, low bytes first;
/// returns the bytes a number and the numbers.
fn integers(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (width, rest) = bytes.split_first_chunk()?;
    let (count, rest) = rest.split_first_chunk()?;
    let (width, count) = (u32::from_le_bytes(*width) as usize, u32::from_le_bytes(*count) as usize);
    (count > 0 && count.checked_mul(width) == Some(rest.len())).then_some((width, rest))
}
