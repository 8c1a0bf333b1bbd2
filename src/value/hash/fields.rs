//! The live fields of a hash at a moment: fields whose deadline has passed are left out, whether or not they have
//! been removed yet.
//!
//! Costs: those of the hash; `len` and `random` also count the overdue fields, usually none.

use super::Entry;
use super::pair::Pair;
use super::view::{Entries, HashView, Shape};
use crate::value::SharedBytes;
use crate::value::item::Item;
use either::Either;
use fastrand::Rng;

/// The live fields of a hash at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    hash: HashView<'a>,
    now_ms: i64,
}

impl<'a> Fields<'a> {
    pub(super) fn new(hash: HashView<'a>, now_ms: i64) -> Fields<'a> {
        Fields { hash, now_ms }
    }

    /// The number of live fields.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(self) -> usize {
        self.hash.len() - self.overdue()
    }

    /// The value of a live field.
    pub fn get(self, field: &[u8]) -> Option<Item<'a>> {
        match self.hash.shape {
            Shape::Packed(_) => self.hash.get(field),
            Shape::Timed(timed) => {
                let entry = timed.find(field).filter(|&entry| !self.is_past(timed.deadline(entry)))?;
                Some(timed.packed.get(2 * entry + 1))
            }
            Shape::Table(table) => table.get_at(field, self.now_ms).map(|cell| Pair::entry(cell).value),
        }
    }

    /// The value of a live field for keeping it beyond a change of the hash, if it is so long that it can be shared.
    pub fn shared(self, field: &[u8]) -> Option<SharedBytes> {
        let Shape::Table(table) = self.hash.shape else { return None };
        let cell = table.long_at(field, self.now_ms)?;
        Some(SharedBytes::end_of(cell, cell.len() - Pair::entry(cell).value.len()))
    }

    /// Whether a live field of that name exists.
    pub fn contains(self, field: &[u8]) -> bool {
        self.get(field).is_some()
    }

    /// The deadline of a live field in unix milliseconds, if it has one; `None` if there is no such field.
    pub fn deadline(self, field: &[u8]) -> Option<Option<i64>> {
        let deadline = self.hash.deadline(field)?;
        if deadline.is_some_and(|deadline_ms| self.is_past(deadline_ms)) { None } else { Some(deadline) }
    }

    /// All live fields with their values.
    pub fn iter(self) -> impl Iterator<Item = Entry<'a>> + Clone {
        let items = match self.hash.shape {
            Shape::Packed(packed) => packed.iter(),
            Shape::Timed(timed) => timed.packed.range(2 * timed.due(self.now_ms)..timed.packed.len()),
            Shape::Table(table) => return Either::Right(table.iter_at(self.now_ms).map(Pair::entry)),
        };
        Either::Left(Entries { items })
    }

    /// A random live field with its value, each as likely as another.
    pub fn random(self, generator: &mut Rng) -> Option<Entry<'a>> {
        if self.hash.first_deadline().is_none_or(|deadline_ms| !self.is_past(deadline_ms)) {
            return self.hash.random(generator);
        }
        let len = self.len();
        if len == 0 { None } else { self.iter().nth(generator.usize(..len)) }
    }

    /// Visits about `count` entries from a cursor on, 0 to start, and returns the next cursor, 0 when done.
    ///
    /// A field that is in the hash from the start of a full scan to its end is visited at least once, whatever else
    /// comes and goes. The packed forms are visited all at once.
    pub fn scan(self, cursor: u64, count: usize, mut visit: impl FnMut(Entry<'a>)) -> u64 {
        match self.hash.shape {
            Shape::Table(table) => table.scan_at(cursor, count, self.now_ms, |cell| visit(Pair::entry(cell))),
            Shape::Packed(_) | Shape::Timed(_) => {
                self.iter().for_each(visit);
                0
            }
        }
    }

    fn is_past(self, deadline_ms: i64) -> bool {
        deadline_ms != 0 && deadline_ms <= self.now_ms
    }

    /// The number of fields that are past their deadline.
    fn overdue(self) -> usize {
        match self.hash.shape {
            Shape::Packed(_) => 0,
            Shape::Timed(timed) => timed.due(self.now_ms),
            Shape::Table(table) => {
                table.by_deadline().take_while(|&(deadline_ms, _)| self.is_past(deadline_ms)).count()
            }
        }
    }
}
