//! The owner of each slot, as an index into the nodes that a view knows.
//!
//! Invariants: there is one entry for each slot; the counts are those of the entries.
//!
//! Costs: O(1) for the owner of a slot, and for how many slots a node has. Other questions about all slots read runs of
//! slots with one owner, of which there are a few; the end of a run is found by comparing many slots at once. Copies
//! share the entries until one of them changes.

use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};

use crate::value::hash_slot::HASH_SLOTS;

/// The place of a slot without an owner.
const NOBODY: u16 = u16::MAX;

/// The slots that are compared at once.
const AT_ONCE: usize = 64;

/// The slots that are compared one by one first: slots that were dealt out at random have runs of one or two.
const SHORT: usize = 4;

/// Slots that follow one another and have one owner, or none.
pub(super) type Run = (RangeInclusive<u16>, Option<u16>);

/// The index of each slot's owner in the list of nodes.
#[derive(Clone, Debug)]
pub(super) struct Owners(Arc<Table>);

#[derive(Clone, Debug)]
struct Table {
    places: [u16; HASH_SLOTS as usize],
    /// The number of slots of each place, up to the last one that has had some.
    counts: Vec<usize>,
}

impl Table {
    fn of(place: impl FnMut(usize) -> u16) -> Table {
        let mut table = Table { places: std::array::from_fn(place), counts: Vec::new() };
        for (slots, owner) in runs(&table.places, 0..=HASH_SLOTS - 1) {
            let count = owner.map(|owner| count_of(&mut table.counts, owner));
            count.into_iter().for_each(|count| *count += slots.len());
        }
        table
    }

    fn set(&mut self, slots: RangeInclusive<u16>, owner: Option<u16>) {
        for (slots, before) in runs(&self.places, slots.clone()) {
            let count = before.map(|before| count_of(&mut self.counts, before));
            count.into_iter().for_each(|count| *count -= slots.len());
        }
        let count = owner.map(|owner| count_of(&mut self.counts, owner));
        count.into_iter().for_each(|count| *count += slots.len());
        self.places[usize::from(*slots.start())..=usize::from(*slots.end())].fill(owner.unwrap_or(NOBODY));
    }
}

/// The count of a place.
fn count_of(counts: &mut Vec<usize>, place: u16) -> &mut usize {
    let place = usize::from(place);
    counts.resize(counts.len().max(place + 1), 0);
    &mut counts[place]
}

impl Owners {
    /// No slot has an owner. All nodes that begin so share this.
    pub(super) fn none() -> Owners {
        static NONE: LazyLock<Owners> = LazyLock::new(|| Owners(Arc::new(Table::of(|_| NOBODY))));
        NONE.clone()
    }

    /// The slots dealt out to that many nodes, as `redis-cli --cluster create` does it.
    pub(super) fn dealt_out(nodes: usize) -> Owners {
        let ends: Vec<usize> = (1..=nodes).map(|count| first_slot_after(count, nodes)).collect();
        let owner_of = |slot: usize| ends.partition_point(|end| *end <= slot) as u16;
        Owners(Arc::new(Table::of(owner_of)))
    }

    /// The place of a slot's owner.
    pub(super) fn get(&self, slot: u16) -> Option<u16> {
        self.0.places.get(usize::from(slot)).copied().and_then(known)
    }

    /// The number of slots of each place, perhaps without the last ones that have none.
    pub(super) fn counts(&self) -> &[usize] {
        &self.0.counts
    }

    /// The number of slots of a place.
    pub(super) fn count(&self, place: u16) -> usize {
        self.0.counts.get(usize::from(place)).copied().unwrap_or(0)
    }

    /// Gives some slots to a node, or takes them from their owners.
    pub(super) fn set(&mut self, slots: RangeInclusive<u16>, owner: Option<u16>) {
        if self.runs_within(slots.clone()).any(|(_, before)| before != owner) {
            Arc::make_mut(&mut self.0).set(slots, owner);
        }
    }

    /// Gives the places other numbers; a slot whose owner gets none has no owner from then on.
    pub(super) fn renumber(&mut self, number: impl Fn(u16) -> Option<u16>) {
        let renumbered = |slot: usize| known(self.0.places[slot]).and_then(&number).unwrap_or(NOBODY);
        self.0 = Arc::new(Table::of(renumbered));
    }

    /// All slots, in runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> {
        self.runs_within(0..=HASH_SLOTS - 1)
    }

    /// Some slots, in runs.
    pub(super) fn runs_within(&self, slots: RangeInclusive<u16>) -> impl Iterator<Item = Run> {
        runs(&self.0.places, slots)
    }

    /// Whether both are copies of one another, and neither has changed since.
    pub(super) fn are_shared_with(&self, other: &Owners) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

fn known(place: u16) -> Option<u16> {
    (place != NOBODY).then_some(place)
}

/// Some slots, in runs.
fn runs(places: &[u16], slots: RangeInclusive<u16>) -> impl Iterator<Item = Run> {
    let (mut first, end) = (*slots.start(), *slots.end() + 1);
    std::iter::from_fn(move || {
        let rest = places.get(usize::from(first)..usize::from(end))?;
        let start = first;
        let owner = *rest.first()?;
        first += length_of_run(rest, owner) as u16;
        Some((start..=first - 1, known(owner)))
    })
}

/// The number of slots in front that have this owner.
fn length_of_run(owners: &[u16], owner: u16) -> usize {
    let short = owners.iter().take(SHORT).take_while(|place| **place == owner).count();
    if short < SHORT {
        return short;
    }
    // Without a way out of the inner loop, many are compared by one instruction.
    let are_equal = |chunk: &&[u16; AT_ONCE]| chunk.iter().fold(true, |all, place| all & (*place == owner));
    let start = AT_ONCE * owners.as_chunks::<AT_ONCE>().0.iter().take_while(are_equal).count();
    start + owners[start..].iter().take_while(|place| **place == owner).count()
}

/// The first slot that does not belong to the first `count` of `all` nodes.
fn first_slot_after(count: usize, all: usize) -> usize {
    // The last slot of a node is (count * 16384 / all - 1), rounded to the nearest.
    let slots = usize::from(HASH_SLOTS);
    (2 * count * slots + all) / (2 * all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_the_slots_one_by_one(
            changes in prop::collection::vec((0..HASH_SLOTS, 0..300_u16, prop::option::of(0..4_u16)), 0..20),
            within in (0..HASH_SLOTS, 0..HASH_SLOTS),
        ) {
            let (mut owners, mut model) = (Owners::none(), vec![None; HASH_SLOTS.into()]);
            let shared = owners.clone();
            for (first, more, owner) in changes {
                let last = (first + more).min(HASH_SLOTS - 1);
                owners.set(first..=last, owner);
                (first..=last).for_each(|slot| model[usize::from(slot)] = owner);
            }
            prop_assert!(!shared.are_shared_with(&owners) || model.iter().all(Option::is_none));
            for place in 0..4 {
                prop_assert_eq!(owners.count(place), model.iter().filter(|owner| **owner == Some(place)).count());
            }
            let within = within.0.min(within.1)..=within.0.max(within.1);
            let runs: Vec<Run> = owners.runs_within(within.clone()).collect();
            prop_assert!(runs.windows(2).all(|runs| runs[0].1 != runs[1].1), "each run is as long as it can be");
            let slots = runs.into_iter().flat_map(|(slots, owner)| slots.map(move |slot| (slot, owner)));
            let expected: Vec<_> = within.map(|slot| (slot, model[usize::from(slot)])).collect();
            prop_assert!(expected.iter().all(|(slot, owner)| owners.get(*slot) == *owner));
            prop_assert_eq!(slots.collect::<Vec<_>>(), expected);
        }
    }
}
