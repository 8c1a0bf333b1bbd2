//! A hash for reading, wherever its bytes are: a packed one may be part of a larger allocation.
//!
//! It shows all fields, overdue or not; [`Fields`] are the live ones at a moment.

use super::pair::Pair;
use super::timed::Timed;
use super::{Entry, Fields, Hash};
use crate::value::arena::LARGEST_HEAD;
use crate::value::item::{Item, Words};
use crate::value::packed_list::{self, PackedListView};
use crate::value::prefetch::Prefetch;
use crate::value::table::Table;
use either::Either;
use fastrand::Rng;

/// A hash, for reading.
#[derive(Clone, Copy)]
pub struct HashView<'a> {
    pub(super) shape: Shape<'a>,
}

/// The form of a hash, for reading.
#[derive(Clone, Copy)]
pub(super) enum Shape<'a> {
    Packed(PackedListView<'a>),
    Timed(&'a Timed),
    Table(&'a Table<Pair>),
}

impl<'a> HashView<'a> {
    pub(super) fn of(shape: Shape<'a>) -> HashView<'a> {
        HashView { shape }
    }

    /// The packed hash in the bytes that [`Hash::pack`] returned.
    pub fn packed(bytes: &'a [u8]) -> HashView<'a> {
        HashView::of(Shape::Packed(PackedListView::of(bytes)))
    }

    /// A copy that owns its contents.
    pub fn to_hash(self) -> Hash {
        match self.shape {
            Shape::Packed(packed) => Hash::packed(packed.to_packed_list()),
            Shape::Timed(timed) => Hash::apart(super::Apart::Timed(timed.clone())),
            Shape::Table(table) => Hash::apart(super::Apart::Table(table.clone())),
        }
    }

    /// The live fields at a moment, in unix milliseconds.
    pub fn at(self, now_ms: i64) -> Fields<'a> {
        Fields::new(self, now_ms)
    }

    /// The bytes of a packed hash.
    pub(in crate::value) fn packed_bytes(self) -> &'a [u8] {
        match self.shape {
            Shape::Packed(packed) => packed.bytes(),
            Shape::Timed(_) | Shape::Table(_) => &[],
        }
    }

    /// The fields and values of a packed hash, one after the other.
    pub fn packed_items(self) -> Option<impl Words<'a>> {
        match self.shape {
            Shape::Packed(packed) => Some(packed.iter()),
            Shape::Timed(_) | Shape::Table(_) => None,
        }
    }

    /// Whether no two fields of a packed hash are equal. Those of a table never are.
    pub(super) fn has_distinct_fields(self) -> bool {
        match self.shape {
            Shape::Packed(packed) => packed.are_distinct::<true>(),
            Shape::Timed(timed) => timed.packed.view().are_distinct::<true>(),
            Shape::Table(_) => true,
        }
    }

    /// A prefetch of a field, if the hash is a table.
    pub(in crate::value) fn prefetch(self, field: &[u8]) -> Option<Prefetch<'a>> {
        match self.shape {
            Shape::Packed(_) | Shape::Timed(_) => None,
            Shape::Table(table) => Some(table.prefetch(field)),
        }
    }

    /// The number of fields, overdue or not.
    pub fn len(self) -> usize {
        match self.shape {
            Shape::Packed(packed) => packed.len() / 2,
            Shape::Timed(timed) => timed.packed.len() / 2,
            Shape::Table(table) => table.len(),
        }
    }

    /// Whether the hash has no field.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// `listpack`, `listpackex` or `hashtable`: what `OBJECT ENCODING` replies for a hash of this form.
    pub fn encoding(self) -> &'static str {
        match self.shape {
            Shape::Packed(_) => "listpack",
            Shape::Timed(_) => "listpackex",
            Shape::Table(_) => "hashtable",
        }
    }

    /// Bytes in cells, the capacity of which is limited; for a packed hash, the bytes that its cells would have.
    pub fn cell_bytes(self) -> usize {
        match self.shape {
            Shape::Packed(packed) => packed.memory() + self.len() * LARGEST_HEAD,
            Shape::Timed(timed) => timed.memory() + self.len() * LARGEST_HEAD,
            Shape::Table(table) => table.cell_bytes(),
        }
    }

    /// The value of a field, overdue or not.
    pub fn get(self, field: &[u8]) -> Option<Item<'a>> {
        match self.shape {
            Shape::Packed(packed) => packed.find(field, 2).map(|position| packed.get(position + 1)),
            Shape::Timed(timed) => timed.find(field).map(|entry| timed.packed.get(2 * entry + 1)),
            Shape::Table(table) => table.get(field).map(|cell| Pair::entry(cell).value),
        }
    }

    /// Whether a field exists, overdue or not.
    pub fn contains(self, field: &[u8]) -> bool {
        match self.shape {
            Shape::Packed(packed) => packed.find(field, 2).is_some(),
            Shape::Timed(timed) => timed.find(field).is_some(),
            Shape::Table(table) => table.get(field).is_some(),
        }
    }

    /// The deadline of a field in unix milliseconds, if it has one; `None` if the field does not exist.
    pub fn deadline(self, field: &[u8]) -> Option<Option<i64>> {
        let deadline_ms = match self.shape {
            Shape::Packed(packed) => packed.find(field, 2).map(|_| 0)?,
            Shape::Timed(timed) => timed.deadline(timed.find(field)?),
            Shape::Table(table) => table.deadline(field)?,
        };
        Some(Some(deadline_ms).filter(|&deadline_ms| deadline_ms != 0))
    }

    /// The earliest deadline of all fields.
    pub fn first_deadline(self) -> Option<i64> {
        match self.shape {
            Shape::Packed(_) => None,
            Shape::Timed(timed) => timed.deadlines.first().copied(),
            Shape::Table(table) => table.first_deadline(),
        }
    }

    /// All fields with their values, overdue or not; those of a packed hash in the order they came in, unless deadlines
    /// order them.
    pub fn iter(self) -> impl Iterator<Item = Entry<'a>> + Clone {
        self.at(i64::MIN).iter()
    }

    /// All fields with their values, overdue or not, each with its deadline, 0 for none.
    pub fn iter_timed(self) -> impl Iterator<Item = (Entry<'a>, i64)> + Clone {
        let (items, deadlines) = match self.shape {
            Shape::Packed(packed) => (packed.iter(), &[][..]),
            Shape::Timed(timed) => (timed.packed.iter(), timed.deadlines.as_slice()),
            Shape::Table(table) => {
                return Either::Right(table.iter_timed().map(|(cell, due_ms)| (Pair::entry(cell), due_ms)));
            }
        };
        Either::Left(Entries { items }.zip(deadlines.iter().copied().chain(std::iter::repeat(0))))
    }

    /// The fields that have a deadline, overdue or not, each after its deadline, the earliest first.
    pub fn by_deadline(self) -> impl Iterator<Item = (i64, Item<'a>)> {
        let timed = match self.shape {
            Shape::Packed(_) => None,
            Shape::Timed(timed) => Some(timed),
            Shape::Table(table) => {
                let of_cell = |(deadline_ms, cell)| (deadline_ms, Pair::entry(cell).field);
                return Either::Right(table.by_deadline().map(of_cell));
            }
        };
        let fields = |timed: &'a Timed| Entries { items: timed.packed.iter() }.map(|entry| entry.field);
        Either::Left(timed.into_iter().flat_map(move |timed| timed.deadlines.iter().copied().zip(fields(timed))))
    }

    /// A random field with its value, overdue or not, each as likely as another.
    pub fn random(self, generator: &mut Rng) -> Option<Entry<'a>> {
        let packed = match self.shape {
            Shape::Packed(packed) => packed,
            Shape::Timed(timed) => timed.packed.view(),
            Shape::Table(table) => return table.random(generator).map(Pair::entry),
        };
        if packed.len() == 0 {
            return None;
        }
        let position = 2 * generator.usize(..packed.len() / 2);
        Entries { items: packed.range(position..position + 2) }.next()
    }

    /// Visits about `count` entries from a cursor on, overdue or not, and returns the next cursor: see
    /// [`Fields::scan`].
    pub fn scan(self, cursor: u64, count: usize, visit: impl FnMut(Entry<'a>)) -> u64 {
        self.at(i64::MIN).scan(cursor, count, visit)
    }

    /// Panics unless every invariant holds. For tests and debug builds: O(n), packed O(n²).
    pub fn check(self) {
        let packed = match self.shape {
            Shape::Packed(packed) => packed,
            Shape::Timed(timed) => {
                assert!(
                    timed.deadlines.is_sorted() && timed.deadlines.len() <= self.len(),
                    "the first fields have deadlines"
                );
                timed.packed.view()
            }
            Shape::Table(table) => return table.check(),
        };
        packed.check();
        assert!(packed.len().is_multiple_of(2), "each field has a value");
        for (number, entry) in self.iter().enumerate() {
            assert_eq!(packed.find(&entry.field.to_cow(), 2), Some(2 * number), "no two fields are equal");
        }
    }
}

/// Iterates over the entries of a packed hash.
#[derive(Clone)]
pub(super) struct Entries<'a> {
    pub(super) items: packed_list::Iter<'a>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        Some(Entry { field: self.items.next()?, value: self.items.next()? })
    }
}

impl std::fmt::Debug for HashView<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_map().entries(self.iter().map(|entry| (entry.field, entry.value))).finish()
    }
}
