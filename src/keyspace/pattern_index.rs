//! An index of the records whose keys match patterns, by pattern.
//!
//! It serves a caller that asks again and again which keys match a few globs: each new key is compared with the globs
//! once, instead of all keys at each question. A database has one only while a caller needs it.
//!
//! Costs: a comparison with each glob for a key that is added, a look at the handles of each glob for one that is
//! removed, and some 6 bytes for each key that matches. This is not counted as memory of the database.

use std::collections::BTreeSet;

use crate::value::glob;

/// The handles of the records that match each of some globs.
#[derive(Clone, Debug)]
pub(super) struct PatternIndex {
    /// The globs in their order, each once.
    groups: Vec<(Box<[u8]>, BTreeSet<u32>)>,
    /// Where the walk goes on over the keys that were there before the index; `None` when it has ended.
    pub(super) cursor: Option<u64>,
}

impl PatternIndex {
    /// An index for these globs, which are in their order and differ, without the keys that are there already.
    pub(super) fn of(patterns: &[&[u8]]) -> PatternIndex {
        let groups = patterns.iter().map(|&pattern| (pattern.into(), BTreeSet::new()));
        PatternIndex { groups: groups.collect(), cursor: Some(0) }
    }

    /// Whether it is for these globs.
    pub(super) fn is_for(&self, patterns: &[&[u8]]) -> bool {
        self.groups.iter().map(|(pattern, _)| &**pattern).eq(patterns.iter().copied())
    }

    /// Enters a record, if its key matches.
    pub(super) fn insert(&mut self, key: &[u8], handle: u32) {
        for (pattern, handles) in &mut self.groups {
            if glob::matches(pattern, key, false) {
                handles.insert(handle);
            }
        }
    }

    /// Removes a record, if it is there.
    pub(super) fn remove(&mut self, handle: u32) {
        self.groups.iter_mut().for_each(|(_, handles)| _ = handles.remove(&handle));
    }

    /// Gives a record another handle, if it is there.
    pub(super) fn rename(&mut self, before: u32, after: u32) {
        for (_, handles) in &mut self.groups {
            if handles.remove(&before) {
                handles.insert(after);
            }
        }
    }

    /// The handles for a glob from that one on; `None` if the index is not for it.
    pub(super) fn handles(&self, pattern: &[u8], from: u64) -> Option<impl Iterator<Item = u32>> {
        let place = self.groups.binary_search_by(|(known, _)| (**known).cmp(pattern)).ok()?;
        let from = u32::try_from(from).ok();
        Some(from.into_iter().flat_map(move |from| self.groups[place].1.range(from..).copied()))
    }

    /// All handles, some of them several times.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        self.groups.iter().flat_map(|(_, handles)| handles.iter().copied())
    }

    /// Panics if a record is among those of a glob that its key does not match, or is missing in a complete index.
    pub(super) fn check(&self, key: &[u8], handle: u32) {
        for (pattern, handles) in &self.groups {
            let (is_there, matches) = (handles.contains(&handle), glob::matches(pattern, key, false));
            assert!(is_there == matches || !is_there && self.cursor.is_some(), "{key:?} and {pattern:?}");
        }
    }
}
