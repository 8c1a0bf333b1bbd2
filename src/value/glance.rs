//! A glance at a member of a large collection: it has memory fetch what looking the member up will read.
//!
//! A look-up in a collection that no cache holds waits for memory up to three times, each time for an address that the
//! one before has told: of the index, of the cell, and in a sorted set of the leaf. Where many look-ups are known
//! beforehand, all take each of these steps together, and their waits overlap.
//!
//! It changes nothing and finds nothing: a member that is not there, or another whose hash begins alike, costs what it
//! costs and does no harm.
//!
//! Costs: some twenty nanoseconds a member, of a hundred or more that are saved where memory is far.
//!
//! Sources: group prefetching (Chen, Ailamaki, Gibbons, Mowry 2004).

use std::hint::black_box;

use crate::value::View;
use crate::value::members::Members;
use crate::value::zset::NODE;
use crate::value::zset::arena::{Arena, Handle};
use crate::value::zset::order::Order;

/// Collections of fewer members may lie in the processor's caches.
const MANY: usize = 10_000;

/// A member to be glanced at, and how far that has come.
pub struct Glance<'a, const N: usize = NODE> {
    members: &'a Members,
    arena: &'a Arena,
    order: Option<&'a Order<N>>,
    hash: u64,
    cell: Option<Handle>,
}

impl<'a> View<'a> {
    /// A glance at a member, or a field, of a collection that has so many that it may pay.
    pub fn glance(self, member: &[u8]) -> Option<Glance<'a>> {
        match self {
            View::Zset(set) if set.len() >= MANY => set.glance(member),
            View::Set(set) if set.len() >= MANY => set.glance(member),
            View::Hash(hash) if hash.len() >= MANY => hash.glance(member),
            _ => None,
        }
    }
}

impl<'a, const N: usize> Glance<'a, N> {
    pub(super) fn new(
        members: &'a Members,
        arena: &'a Arena,
        order: Option<&'a Order<N>>,
        member: &[u8],
    ) -> Glance<'a, N> {
        Glance { members, arena, order, hash: members.hash(member), cell: None }
    }

    /// Glances at all of these members at once.
    pub fn take(glances: &mut [Glance<'a, N>]) {
        black_box(glances.iter().fold(0, |sum, glance| sum ^ glance.members.glimpse(glance.hash)));
        for glance in &mut *glances {
            glance.cell = glance.members.find(glance.hash, |_| true);
        }
        let cells = glances.iter().filter_map(|glance| Some((glance, glance.cell?)));
        black_box(cells.clone().fold(0, |sum, (glance, cell)| sum ^ glance.arena.glimpse(cell)));
        let places = cells.filter_map(|(glance, cell)| Some((glance, cell, glance.order?)));
        let glimpse = |(glance, cell, order): (&Glance<'_, N>, Handle, &Order<N>)| {
            order.glimpse(glance.arena, glance.arena.score(cell))
        };
        black_box(places.fold(0, |sum, place| sum ^ glimpse(place)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Hash, Set, Zset, hash, set, zset};

    const LEN: usize = 2 * MANY;

    fn name(number: usize) -> Vec<u8> {
        format!("member-{number}").into_bytes()
    }

    /// How many of all members, and of as many others, have a cell after a glance.
    fn seen(view: View<'_>) -> [usize; 2] {
        [0..LEN, LEN..2 * LEN].map(|numbers| {
            let mut glances: Vec<Glance<'_>> = numbers.filter_map(|number| view.glance(&name(number))).collect();
            assert_eq!(glances.len(), LEN);
            Glance::take(&mut glances);
            glances.iter().filter(|glance| glance.cell.is_some()).count()
        })
    }

    #[test]
    fn a_glance_sees_the_cell_of_a_member_and_hardly_ever_one_of_a_stranger() {
        let (mut zset, mut set, mut hash) = (Zset::new(), Set::new(), Hash::new());
        for number in 0..LEN {
            zset.insert(&name(number), number as f64, &zset::Limits::default());
            set.insert(&name(number), &set::Limits::default());
            hash.insert(&name(number), b"value", &hash::Limits::default());
        }
        for view in [View::Zset(&zset), View::Set(&set), View::Hash(hash.view())] {
            let [members, strangers] = seen(view);
            assert_eq!(members, LEN);
            assert!(strangers < LEN / 100, "{strangers}");
        }
    }

    #[test]
    fn a_small_collection_is_not_glanced_at() {
        let mut set = Set::new();
        (0..MANY - 1).for_each(|number| _ = set.insert(&name(number), &set::Limits::default()));
        assert!(View::Set(&set).glance(&name(1)).is_none());
        set.insert(&name(MANY), &set::Limits::default());
        assert!(View::Set(&set).glance(&name(1)).is_some());
    }
}
