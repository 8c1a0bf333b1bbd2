//! The keys of each slot of a cluster: an ordered index of (slot, section, handle), beside the number of keys in each
//! slot.
//!
//! Only a node of a cluster has one. The order is that of [`Deadlines`], with slot and section in the place of a
//! deadline: it takes as few bytes, and its forks share their leaves. A section is the part of the table's line of
//! positions where the hash of a key is, in [`SECTION_BITS`]: so a walk through a slot has the order of a walk through
//! the table, and each step goes on where the one before has stopped. Slot and section together have the 32 bits that
//! cost nothing there.
//!
//! Invariants: the order has every record of the database once, under the slot of its key and the section of its
//! hash; a count is the number of entries of its slot.
//!
//! Costs: 8 to 12 bytes a key, and 256 bytes for each 64 slots of which one had a key; O(log n) for a change, O(1) for
//! a count, O(log n) for the first key of a slot and O(1) for each further one.

use super::table::{CURSOR_BITS, cursor_at_hash};
use crate::value::deadlines::Deadlines;
use crate::value::hash_slot::{HASH_SLOTS, hash_slot};

/// The slots whose counts are in one page.
const PAGE: usize = 64;

/// The leading bits of a position that tell its section. A slot of fewer than 2^18 keys has about one in each.
const SECTION_BITS: u32 = u32::BITS - HASH_SLOTS.ilog2();
/// The bits of a cursor's position within its section.
const WITHIN_BITS: u32 = CURSOR_BITS - SECTION_BITS;

type Page = Option<Box<[u32; PAGE]>>;

/// The records of a database by the slots of their keys.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotIndex {
    order: Deadlines,
    /// The number of keys in each slot, in pages; none before the first key.
    counts: Vec<Page>,
}

impl SlotIndex {
    /// Adds a record whose key is at that place.
    pub(super) fn insert(&mut self, place: Place, handle: u32) {
        self.order.insert(place.0, handle);
        if self.counts.is_empty() {
            self.counts.resize(usize::from(HASH_SLOTS) / PAGE, None);
        }
        let page = self.counts[place.slot() / PAGE].get_or_insert_with(|| Box::new([0; PAGE]));
        page[place.slot() % PAGE] += 1;
    }

    /// Removes a record, which must be there.
    pub(super) fn remove(&mut self, place: Place, handle: u32) {
        self.order.remove(place.0, handle);
        if let Some(Some(page)) = self.counts.get_mut(place.slot() / PAGE) {
            page[place.slot() % PAGE] -= 1;
        }
    }

    /// The number of keys in a slot.
    pub(super) fn count(&self, slot: u16) -> usize {
        let page = self.counts.get(usize::from(slot) / PAGE).and_then(Option::as_ref);
        page.map_or(0, |page| page[usize::from(slot) % PAGE] as usize)
    }

    /// The handles of the records in a slot, from the section of that position on, each with where its section begins.
    pub(super) fn handles_from(&self, slot: u16, position: u64) -> impl Iterator<Item = (u64, u32)> {
        let entries = self.order.iter_from(Place::at(slot, position).0).map(|(place, handle)| (Place(place), handle));
        let of_slot = entries.take_while(move |(place, _)| place.slot() == usize::from(slot));
        of_slot.map(|(place, handle)| (place.start_of_section(), handle))
    }

    /// A form of this whose clones share its order until they change it.
    pub(super) fn to_fork(&self) -> SlotIndex {
        SlotIndex { order: self.order.to_fork(), counts: self.counts.clone() }
    }

    /// The bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        let pages = self.counts.iter().flatten().count() * size_of::<[u32; PAGE]>();
        self.order.memory() + pages + self.counts.capacity() * size_of::<Page>()
    }

    /// The number of records.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Panics unless the counts are those of the order.
    pub(super) fn check(&self) {
        self.order.check();
        let mut counts = vec![0; usize::from(HASH_SLOTS)];
        self.order.iter().for_each(|(place, _)| counts[Place(place).slot()] += 1);
        assert!((0..HASH_SLOTS).all(|slot| counts[usize::from(slot)] == self.count(slot)), "a slot is miscounted");
    }
}

/// Where a key is in the order: its slot, and below that the section of its hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(i64);

impl Place {
    /// The place of a key with that hash.
    pub(super) fn of(key: &[u8], hash: u64) -> Place {
        Place::at(hash_slot(key), cursor_at_hash(hash))
    }

    /// The place of the keys in a slot whose hashes are at that position of a cursor.
    fn at(slot: u16, position: u64) -> Place {
        Place(i64::from(slot) << SECTION_BITS | (position >> WITHIN_BITS) as i64)
    }

    fn slot(self) -> usize {
        (self.0 >> SECTION_BITS) as usize
    }

    /// The first position of its section.
    fn start_of_section(self) -> u64 {
        (self.0 as u64 & ((1 << SECTION_BITS) - 1)) << WITHIN_BITS
    }
}
