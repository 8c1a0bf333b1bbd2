//! The consumer groups of a stream, in the order of their names.
//!
//! - Invariant: names ascend; `bytes` is the sum of what the groups take.
//!
//! Costs: finding one is O(log groups), adding and removing one moves those behind it.

use super::group::Group;
use super::id::Id;

/// The consumer groups of a stream.
#[derive(Default)]
pub struct Groups {
    groups: Vec<Group>,
    /// Bytes of the allocations of all groups.
    bytes: usize,
}

impl Clone for Groups {
    fn clone(&self) -> Groups {
        let groups = self.groups.clone();
        let bytes = groups.iter().map(Group::memory).sum();
        Groups { groups, bytes }
    }
}

impl Groups {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub(super) fn memory(&self) -> usize {
        self.groups.capacity() * size_of::<Group>() + self.bytes
    }

    /// All, in the order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Group> {
        self.groups.iter()
    }

    /// The group of that name.
    pub fn get(&self, name: &[u8]) -> Option<&Group> {
        self.place_of(name).ok().map(|place| &self.groups[place])
    }

    /// Lets `act` change the group of that name.
    pub(super) fn edit<R>(&mut self, name: &[u8], act: impl FnOnce(&mut Group) -> R) -> Option<R> {
        let group = self.place_of(name).ok().map(|place| &mut self.groups[place])?;
        let before = group.memory();
        let result = act(group);
        let after = group.memory();
        self.bytes = self.bytes - before + after;
        Some(result)
    }

    /// Adds a group that has read up to `last`; false when there is one of that name.
    pub(super) fn add(&mut self, name: &[u8], last: Id, read: Option<i64>) -> bool {
        let Err(place) = self.place_of(name) else { return false };
        let group = Group::new(name, last, read);
        self.bytes += group.memory();
        if self.groups.len() == self.groups.capacity() {
            self.groups.reserve_exact(self.groups.len().max(1));
        }
        self.groups.insert(place, group);
        true
    }

    /// Removes a group; false when there is none of that name.
    pub(super) fn remove(&mut self, name: &[u8]) -> bool {
        let Ok(place) = self.place_of(name) else { return false };
        self.bytes -= self.groups.remove(place).memory();
        true
    }

    fn place_of(&self, name: &[u8]) -> Result<usize, usize> {
        self.groups.binary_search_by(|group| group.name().cmp(name))
    }

    /// Panics unless the invariants hold.
    pub(super) fn check(&self) {
        self.groups.iter().for_each(Group::check);
        assert!(self.groups.iter().map(Group::name).is_sorted_by(|one, next| one < next));
        assert_eq!(self.groups.iter().map(Group::memory).sum::<usize>(), self.bytes);
    }
}
