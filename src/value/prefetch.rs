//! Prefetches of members of large collections: memory is requested before the look-up reads it.
//!
//! A look-up in a collection that is in no cache waits for memory up to three times, each time for an address that
//! the previous read gave: of the index, of the cell, and in a sorted set of the leaf. Where many look-ups are known
//! beforehand, all take each of these steps together, and their waits overlap.
//!
//! A prefetch changes nothing and returns nothing: for a member that does not exist, or another whose hash begins
//! alike, only the prefetch is wasted.
//!
//! Costs: about twenty nanoseconds a member; it saves a hundred or more where the memory is not in a cache.
//!
//! Sources: group prefetching (Chen, Ailamaki, Gibbons, Mowry 2004).

use std::hint::black_box;

use crate::value::arena::{Arena, Handle};
use crate::value::members::Members;
use crate::value::zset::NODE;
use crate::value::zset::order::Order;
use crate::value::{TextView, View};

/// The least number of members: smaller collections may be in the processor's caches.
const MANY: usize = 10_000;

/// The bytes at the front of a small value that are prefetched, and those of a cache line.
const FRONT: usize = 512;
const LINE: usize = 64;

/// A member to be prefetched, and the progress of the prefetch.
pub struct Prefetch<'a, const N: usize = NODE> {
    members: &'a Members,
    arena: &'a Arena,
    order: Option<&'a Order<N>>,
    hash: u64,
    cell: Option<Handle>,
}

impl<'a> View<'a> {
    /// A prefetch of a member, or a field, of a collection that is large enough for it to pay.
    pub fn prefetch(self, member: &[u8]) -> Option<Prefetch<'a>> {
        match self {
            View::Zset(set) if set.len() >= MANY => set.prefetch(member),
            View::Set(set) if set.len() >= MANY => set.prefetch(member),
            View::Hash(hash) if hash.len() >= MANY => hash.prefetch(member),
            _ => None,
        }
    }

    /// Prefetches a small value, which will be read as a whole: its front, which has its head, and its end, where a
    /// packed list has its codes.
    pub fn prefetch_whole(self) {
        let bytes = match self {
            View::Text(TextView::Bytes(bytes) | TextView::Raw(bytes)) => bytes,
            View::Text(_) | View::Stream(_) | View::VectorSet(_) => &[],
            View::Zset(set) => set.packed_bytes(),
            View::Set(set) => set.packed_bytes(),
            View::Hash(hash) => hash.packed_bytes(),
            View::List(list) => list.packed_bytes(),
        };
        let front = bytes.iter().take(FRONT).step_by(LINE);
        black_box(front.chain(bytes.last()).fold(0, |sum, byte| sum ^ byte));
    }
}

/// Prefetches cells, and of those that take several cache lines the last one, too: a processor requests the lines that
/// follow another one by itself.
pub(super) fn whole_cells(arena: &Arena, handles: &[Handle]) {
    cells(arena, handles);
    black_box(handles.iter().fold(0, |sum, &cell| sum ^ arena.bytes(cell).last().copied().unwrap_or(0)));
}

/// Prefetches cells that are known by their handles.
pub(super) fn cells(arena: &Arena, cells: &[Handle]) {
    black_box(cells.iter().fold(0, |sum, &cell| sum ^ arena.touch_line(cell)));
}

impl<'a, const N: usize> Prefetch<'a, N> {
    pub(super) fn new(
        members: &'a Members,
        arena: &'a Arena,
        order: Option<&'a Order<N>>,
        member: &[u8],
    ) -> Prefetch<'a, N> {
        Prefetch { members, arena, order, hash: members.hash(member), cell: None }
    }

    /// Whether a cell of these bytes has the member's hash, once it was prefetched.
    pub(super) fn finds(&self, bytes: &[u8]) -> bool {
        let is_wanted = |cell| self.arena.bytes(cell) == bytes;
        // That one begins alike: hardly ever is there another.
        self.cell.is_some_and(|cell| is_wanted(cell) || self.members.find(self.hash, is_wanted).is_some())
    }

    /// Prefetches all of these members together.
    pub fn run(prefetches: &mut [Prefetch<'a, N>]) {
        black_box(prefetches.iter().fold(0, |sum, prefetch| sum ^ prefetch.members.touch_lines(prefetch.hash)));
        for prefetch in &mut *prefetches {
            prefetch.cell = prefetch.members.find(prefetch.hash, |_| true);
        }
        let cells = prefetches.iter().filter_map(|prefetch| Some((prefetch, prefetch.cell?)));
        black_box(cells.clone().fold(0, |sum, (prefetch, cell)| sum ^ prefetch.arena.touch_line(cell)));
        let places = cells.filter_map(|(prefetch, cell)| Some((prefetch, cell, prefetch.order?)));
        let touch_line = |(prefetch, cell, order): (&Prefetch<'_, N>, Handle, &Order<N>)| {
            order.touch_line(prefetch.arena, prefetch.arena.number(cell))
        };
        black_box(places.fold(0, |sum, place| sum ^ touch_line(place)));
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

    /// The number of members, and of as many non-members, that have a cell after a prefetch.
    fn seen(view: View<'_>) -> [usize; 2] {
        [0..LEN, LEN..2 * LEN].map(|numbers| {
            let mut prefetches: Vec<Prefetch<'_>> = numbers.filter_map(|number| view.prefetch(&name(number))).collect();
            assert_eq!(prefetches.len(), LEN);
            Prefetch::run(&mut prefetches);
            prefetches.iter().filter(|prefetch| prefetch.cell.is_some()).count()
        })
    }

    #[test]
    fn a_prefetch_finds_the_cell_of_a_member_and_hardly_ever_one_of_a_non_member() {
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
    fn a_small_collection_is_not_prefetched() {
        let mut set = Set::new();
        (0..MANY - 1).for_each(|number| _ = set.insert(&name(number), &set::Limits::default()));
        assert!(View::Set(&set).prefetch(&name(1)).is_none());
        set.insert(&name(MANY), &set::Limits::default());
        assert!(View::Set(&set).prefetch(&name(1)).is_some());
    }

    #[test]
    fn a_walk_over_a_large_collection_visits_every_member_once_and_can_go_on_from_a_clone() {
        const COUNT: usize = 10_005;
        let names: Vec<Vec<u8>> = (0..COUNT).map(|number| [name(number), vec![b'x'; 1000]].concat()).collect();
        let (mut set, mut hash) = (Set::new(), Hash::new());
        for (number, name) in names.iter().enumerate() {
            set.insert(name, &set::Limits::default());
            let value = vec![b'y'; if number % 1000 == 0 { 70_000 } else { number % 200 }];
            hash.insert(name, &value, &hash::Limits::default());
        }
        let mut members = set.iter();
        let mut visited: Vec<Vec<u8>> = members.by_ref().take(COUNT / 2).map(|member| member.to_vec()).collect();
        visited.extend(members.clone().map(|member| member.to_vec()));
        assert_eq!(members.count(), COUNT - COUNT / 2);
        let fields: Vec<Vec<u8>> = hash.iter().map(|entry| entry.field.to_vec()).collect();
        let sorted = |mut names: Vec<Vec<u8>>| {
            names.sort_unstable();
            names
        };
        let expected = sorted(names);
        assert_eq!(sorted(visited), expected);
        assert_eq!(sorted(fields), expected);
    }
}
