//! The consumer groups of a stream, in the order of their names.
//!
//! - Invariant: names ascend; `bytes` is the sum of the groups' memory.
//!
//! Costs: finding, adding and removing one is O(log groups), and moves at most the 64 of a chunk.

use super::group::Group;
use super::id::Id;
use crate::value::sorted_chunks::SortedChunks;

/// The consumer groups of a stream, by name.
#[derive(Default)]
pub struct Groups {
    groups: SortedChunks<Group>,
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
    /// The number of groups.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether the stream has no group.
    pub fn is_empty(&self) -> bool {
        self.groups.len() == 0
    }

    pub(super) fn memory(&self) -> usize {
        self.groups.memory() + self.bytes
    }

    /// All groups, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter()
    }

    /// The group with that name.
    pub fn get(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get_by(|group| group.name().cmp(name))
    }

    /// Changes the group with that name by `act`, and keeps count of its memory.
    pub(super) fn edit<R>(&mut self, name: &[u8], act: impl FnOnce(&mut Group) -> R) -> Option<R> {
        let group = self.groups.get_mut_by(|group| group.name().cmp(name))?;
        let before = group.memory();
        let result = act(group);
        let after = group.memory();
        self.bytes = self.bytes - before + after;
        Some(result)
    }

    /// Adds a group that has read up to `last`; false if one of that name exists.
    pub(super) fn add(&mut self, name: &[u8], last: Id, read: Option<i64>) -> bool {
        let group = Group::new(name, last, read);
        let bytes = group.memory();
        let is_new = self.groups.insert_by(group, |other| other.name().cmp(name));
        if is_new {
            self.bytes += bytes;
        }
        is_new
    }

    /// Removes a group; false if none of that name exists.
    pub(super) fn remove(&mut self, name: &[u8]) -> bool {
        let Some(group) = self.groups.remove_by(|group| group.name().cmp(name)) else { return false };
        self.bytes -= group.memory();
        true
    }

    /// Panics unless the invariants hold.
    pub(super) fn check(&self) {
        self.groups.check_chunks();
        self.groups.iter().for_each(Group::check);
        assert!(self.groups.iter().map(Group::name).is_sorted_by(|one, next| one < next));
        assert_eq!(self.groups.iter().map(Group::memory).sum::<usize>(), self.bytes);
    }
}
