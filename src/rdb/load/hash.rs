//! Hashes: fields and values one after the other, or as a listpack, ziplist or zipmap; with or without deadlines.

use crate::rdb::listpack::{Listpack, Unchecked};
use crate::rdb::text::Reader;
use crate::rdb::{kind, legacy};
use crate::value::hash::{Entry, Hash, Limits};
use crate::value::item::Sequence;
use crate::value::{Item, are_distinct};
use std::borrow::Cow;
use std::cell::Cell;

/// The latest deadline, in unix milliseconds: there are 48 bits for it, and two values have another meaning.
const LAST_MS: u64 = (1 << 48) - 2;

/// A field with its value, and its deadline or 0.
type Row<'a> = (Entry<'a>, i64);

impl Reader<'_> {
    pub(super) fn hash(&mut self, kind: u8, limits: &Limits) -> Option<Hash> {
        match kind {
            kind::HASH | kind::HASH_METADATA | kind::HASH_METADATA_PRE_GA => self.one_by_one(kind, limits),
            kind::HASH_LISTPACK_EX | kind::HASH_LISTPACK_EX_PRE_GA => self.triples(kind, limits),
            kind::HASH_ZIPMAP => {
                let bytes = self.part()?;
                let pairs = legacy::zipmap(&bytes)?;
                self.take_room(2 * pairs.len(), 0)?;
                let rows: Vec<_> = pairs.into_iter().map(|(field, value)| row(field, value, 0)).collect();
                let is_packed = fits(&rows, limits);
                built(rows.iter().copied(), is_packed, false, limits)
            }
            kind::HASH_ZIPLIST => {
                let bytes = self.part()?;
                let items: Vec<_> = self.ziplist(&bytes)?.collect();
                alternating(items.iter().copied(), limits)
            }
            _ => {
                let bytes = self.part()?;
                let items = self.open_listpack(&bytes)?;
                if items.len() / 2 > limits.entries {
                    return alternating(Listpack::check(&bytes)?, limits);
                }
                let is_whole = Cell::new(false);
                let hash = alternating(Unchecked { items, is_whole: &is_whole }, limits);
                hash.filter(|_| is_whole.get())
            }
        }
    }

    fn one_by_one(&mut self, kind: u8, limits: &Limits) -> Option<Hash> {
        let first_ms = if kind == kind::HASH_METADATA { self.moment()? } else { 1 };
        let is_timed = kind != kind::HASH;
        let mut owned: Vec<([Cow<'_, [u8]>; 2], i64)> = Vec::new();
        for _ in 0..self.length()? {
            let deadline_ms = match if is_timed { self.length()? } else { 0 } {
                0 => 0,
                distance_ms => deadline(first_ms.checked_add(distance_ms - 1)?)?,
            };
            owned.push(([self.text()?, self.text()?], deadline_ms));
        }
        let rows: Vec<_> = owned.iter().map(|([field, value], due_ms)| row(field, value, *due_ms)).collect();
        let is_packed = fits(&rows, limits);
        let rows = if is_packed && is_timed { ordered(rows) } else { rows };
        built(rows.iter().copied(), is_packed, is_timed, limits)
    }

    /// A number of fields, each with its value and its deadline, or -1.
    pub(super) fn hash_of_valkey(&mut self, limits: &Limits) -> Option<Hash> {
        let mut owned: Vec<([Cow<'_, [u8]>; 2], i64)> = Vec::new();
        for _ in 0..self.length()? {
            let texts = [self.text()?, self.text()?];
            let deadline_ms = match self.moment()? {
                u64::MAX => 0,
                unix_ms => deadline(unix_ms)?,
            };
            owned.push((texts, deadline_ms));
        }
        let rows: Vec<_> = owned.iter().map(|([field, value], due_ms)| row(field, value, *due_ms)).collect();
        let is_packed = fits(&rows, limits);
        let rows = if is_packed { ordered(rows) } else { rows };
        built(rows.iter().copied(), is_packed, true, limits)
    }

    fn triples(&mut self, kind: u8, limits: &Limits) -> Option<Hash> {
        if kind == kind::HASH_LISTPACK_EX {
            self.moment()?;
        }
        let bytes = self.part()?;
        let mut items = self.listpack(&bytes)?.iter();
        let mut rows = Vec::new();
        while let Some(field) = items.next() {
            let (value, Item::Int(deadline_ms)) = (items.next()?, items.next()?) else { return None };
            rows.push((Entry { field, value }, deadline(u64::try_from(deadline_ms).ok()?)?));
        }
        let is_packed = rows.len() <= limits.entries;
        let last_first = |(_, deadline_ms): &Row<'_>| if *deadline_ms == 0 { i64::MAX } else { *deadline_ms };
        rows.is_sorted_by_key(last_first).then(|| built(rows.iter().copied(), is_packed, true, limits))?
    }
}

fn row<'a>(field: &'a [u8], value: &'a [u8], deadline_ms: i64) -> Row<'a> {
    (Entry { field: Item::of(field), value: Item::of(value) }, deadline_ms)
}

fn deadline(unix_ms: u64) -> Option<i64> {
    i64::try_from(unix_ms).ok().filter(|_| unix_ms <= LAST_MS)
}

/// Whether entries that come one by one are few and short enough to be packed.
fn fits(rows: &[Row<'_>], limits: &Limits) -> bool {
    rows.len() <= limits.entries
        && rows.iter().all(|(entry, _)| entry.field.len().max(entry.value.len()) <= limits.bytes)
}

/// Sorts entries with deadlines to the front, by deadline; of equal ones the last to come is first.
fn ordered(rows: Vec<Row<'_>>) -> Vec<Row<'_>> {
    let (mut timed, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, deadline_ms)| *deadline_ms != 0);
    timed.reverse();
    timed.sort_by_key(|(_, deadline_ms)| *deadline_ms);
    timed.extend(others);
    timed
}

/// Builds the hash of fields and values that alternate; `None` if two fields are equal, or one has no value.
fn alternating<'a>(items: impl Sequence<'a, IntoIter: ExactSizeIterator + Clone>, limits: &Limits) -> Option<Hash> {
    let pairs = super::pairs(items.clone().into_iter())?;
    if pairs.len() <= limits.entries
        && let Some(hash) = Hash::of_items(items)
    {
        return hash.has_distinct_fields().then_some(hash);
    }
    let is_packed = pairs.len() <= limits.entries;
    built(pairs.map(|(field, value)| (Entry { field, value }, 0)), is_packed, false, limits)
}

/// Builds the hash of some entries; `None` if two fields are equal.
fn built<'a>(
    rows: impl ExactSizeIterator<Item = Row<'a>> + Clone,
    is_packed: bool,
    is_timed: bool,
    limits: &Limits,
) -> Option<Hash> {
    if is_packed {
        let fields = rows.clone().map(|(entry, _)| entry.field);
        return are_distinct(fields).then(|| Hash::of_entries(rows, is_timed, limits));
    }
    let mut hash = Hash::table_with_room(rows.len(), limits);
    for (entry, deadline_ms) in rows {
        let field = entry.field.to_cow();
        hash.insert(&field, &entry.value.to_cow(), limits).then_some(())?;
        if deadline_ms != 0 {
            hash.set_deadline(&field, Some(deadline_ms));
        }
    }
    Some(hash)
}
