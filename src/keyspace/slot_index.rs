//! The keys of each slot of a cluster: an ordered index of (slot, handle), beside the number of keys in each slot.
//!
//! Only a node of a cluster has one. The order is that of [`Deadlines`], with a slot in the place of a deadline: it
//! takes as few bytes, and its forks share their leaves.
//!
//! Invariants: the order has every record of the database once, under the slot of its key; a count is the number of
//! entries of its slot.
//!
//! Costs: 8 to 12 bytes a key, and 256 bytes for each 64 slots of which one had a key; O(log n) for a change, O(1) for
//! a count, O(log n) for the first key of a slot and O(1) for each further one.

use crate::value::deadlines::Deadlines;
use crate::value::hash_slot::HASH_SLOTS;

/// The slots whose counts are in one page.
const PAGE: usize = 64;

type Page = Option<Box<[u32; PAGE]>>;

/// The records of a database by the slots of their keys.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotIndex {
    order: Deadlines,
    /// The number of keys in each slot, in pages; none before the first key.
    counts: Vec<Page>,
}

impl SlotIndex {
    /// Adds a record whose key is in that slot.
    pub(super) fn insert(&mut self, slot: u16, handle: u32) {
        self.order.insert(slot.into(), handle);
        if self.counts.is_empty() {
            self.counts.resize(usize::from(HASH_SLOTS) / PAGE, None);
        }
        let page = self.counts[usize::from(slot) / PAGE].get_or_insert_with(|| Box::new([0; PAGE]));
        page[usize::from(slot) % PAGE] += 1;
    }

    /// Removes a record, which must be there.
    pub(super) fn remove(&mut self, slot: u16, handle: u32) {
        self.order.remove(slot.into(), handle);
        if let Some(Some(page)) = self.counts.get_mut(usize::from(slot) / PAGE) {
            page[usize::from(slot) % PAGE] -= 1;
        }
    }

    /// The number of keys in a slot.
    pub(super) fn count(&self, slot: u16) -> usize {
        let page = self.counts.get(usize::from(slot) / PAGE).and_then(Option::as_ref);
        page.map_or(0, |page| page[usize::from(slot) % PAGE] as usize)
    }

    /// The handles of the records in a slot, in their order.
    pub(super) fn handles(&self, slot: u16) -> impl Iterator<Item = u32> {
        let slot = i64::from(slot);
        self.order.iter_from(slot).take_while(move |(of, _)| *of == slot).map(|(_, handle)| handle)
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
        self.order.iter().for_each(|(slot, _)| counts[slot as usize] += 1);
        assert!((0..HASH_SLOTS).all(|slot| counts[usize::from(slot)] == self.count(slot)), "a slot is miscounted");
    }
}
