//! How many entries of the journal each filter selects that clients wait with ([`super::Condition::Journal`]). So a
//! wait looks at all entries once, when it begins, and not after each command.
//!
//! Invariant: a count is the number of entries in the journal that its filter selects. An entry is added when it comes
//! into the journal and subtracted when it leaves it; one that changes is subtracted as it was and added as it is. A
//! new journal has no counts: they begin when the waits look at it ([`super::Kit::keep_counts`]).
//!
//! Costs: one look at each entry that comes, changes or leaves, for each filter.

use std::collections::BTreeMap;

use crate::engine::spec::Table;
use crate::engine::state::kit::{Entry, Filter};

/// The counts of a journal, by filter.
#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<Filter, u64>);

impl Counts {
    /// The count of a filter, if there is one.
    pub(super) fn get(&self, filter: &Filter) -> Option<u64> {
        self.0.get(filter).copied()
    }

    /// Begins the count of a filter that selects so many entries now.
    pub(super) fn begin(&mut self, filter: &Filter, entries: u64) {
        self.0.insert(filter.clone(), entries);
    }

    /// Ends the count of a filter.
    pub(super) fn end(&mut self, filter: &Filter) {
        self.0.remove(filter);
    }

    /// Notes that the journal is empty.
    pub(super) fn reset(&mut self) {
        self.0.values_mut().for_each(|count| *count = 0);
    }

    /// Notes an entry that has come, or is as it is now.
    pub(super) fn add(&mut self, entry: &Entry, table: &Table) {
        self.selecting(entry, table).for_each(|count| *count += 1);
    }

    /// Notes that an entry has left, or is about to change.
    pub(super) fn subtract(&mut self, entry: &Entry, table: &Table) {
        self.selecting(entry, table).for_each(|count| *count -= 1);
    }

    fn selecting<'c>(&'c mut self, entry: &'c Entry, table: &'c Table) -> impl Iterator<Item = &'c mut u64> {
        self.0.iter_mut().filter(|(filter, _)| filter.admits(entry, table)).map(|(_, count)| count)
    }
}
