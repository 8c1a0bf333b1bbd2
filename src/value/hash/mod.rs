//! The hash: fields, each with a value, and some with a deadline.
//!
//! ```text
//!            up to limits.entries and limits.bytes                       beyond, and for good
//! Hash  ==>  packed: a list of field, value, field ...               ==>  table: a cell for each field with its value
//!       ==>  timed: the same, ordered by deadline, if one was given  ==>
//! ```
//!
//! - Packed: one allocation, see [`super::packed_list`]; what looks like an integer is kept as one. Fields
//!   stay in the order they came in.
//! - Timed: see [`timed`]; a packed hash is one from the first deadline on.
//! - Table: see [`super::table`], and [`pair`] for its cells. A deadline is kept in the
//!   cell, and in an order of deadlines.
//!
//! It knows no key, no reply, no clock and no limit of its own: [`Limits`] decide when one form turns into the other.
//! A field past its deadline stays until it is removed; [`Fields`] are the live ones at a moment.
//!
//! - Invariant: no two fields are equal; a packed hash has an even number of items.
//! - A hash of five short fields and values takes `20 + the bytes of all ten` and an enum of 16 bytes. A deadline takes
//!   eight bytes packed, about sixteen in a table; without one, nothing.
//!
//! Costs: packed: a scan of at most `2 * limits.entries` codes; table: O(1), with a deadline O(log n).

mod fields;
mod pair;
mod timed;
mod view;

pub use fields::Fields;
pub use view::HashView;

use crate::value::base::{Base, Fork};
use crate::value::item::{Item, Sequence};
use crate::value::packed_list::PackedList;
use crate::value::table::{Layout, Table};
use fastrand::Rng;
use pair::Pair;
use timed::Timed;
use view::Shape;

/// When a packed hash turns into a table (`hash-max-listpack-entries`, `hash-max-listpack-value`), and the seed of
/// its hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most fields of a packed hash.
    pub entries: usize,
    /// The most bytes of a field or a value of a packed hash.
    pub bytes: usize,
    /// The seed of the key by which the members of a flooded hash are hashed; no client must know it.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { entries: 512, bytes: 64, seed: 0 }
    }
}

/// A field and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The field.
    pub field: Item<'a>,
    /// The value.
    pub value: Item<'a>,
}

/// A hash of fields and values, in one of three forms.
#[derive(Clone)]
pub struct Hash {
    form: Form,
}

#[derive(Clone)]
enum Form {
    Packed(PackedList),
    Apart(Box<Apart>),
}

/// The larger forms, in an allocation of their own, so that a `Hash` is as small as its most frequent form.
#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "it stands in a box of its own, and most are tables")]
enum Apart {
    Timed(Timed),
    Table(Table<Pair>),
}

/// The form of a hash, to be changed.
enum ShapeMut<'a> {
    Packed(&'a mut PackedList),
    Timed(&'a mut Timed),
    Table(&'a mut Table<Pair>),
}

/// The small forms are copied.
impl Fork for Hash {
    fn without_parts(&self) -> Hash {
        match self.table() {
            Some(table) => Hash::apart(Apart::Table(table.without_parts())),
            None => self.clone(),
        }
    }

    fn set_base(&mut self, base: Option<Base<Hash>>) {
        if let ShapeMut::Table(table) = self.shape_mut() {
            let base = base.map(|base| base.part(|hash| hash.table().expect("a base does not change")));
            table.set_base(base);
        }
    }

    fn is_fork(&self) -> bool {
        self.table().is_some_and(Table::is_fork)
    }

    fn own_bytes(&self) -> usize {
        self.table().map_or(self.memory(), Table::own_bytes)
    }

    fn reclaim(&mut self, base: &mut Hash) {
        if let (ShapeMut::Table(table), ShapeMut::Table(shared)) = (self.shape_mut(), base.shape_mut()) {
            table.reclaim(shared);
        }
    }
}

impl Default for Hash {
    fn default() -> Hash {
        Hash::new()
    }
}

impl Hash {
    /// The empty hash.
    pub fn new() -> Hash {
        Hash::packed(PackedList::default())
    }

    /// A table without fields, with an index that has room for that many.
    pub fn table_with_room(fields: usize, limits: &Limits) -> Hash {
        Hash::apart(Apart::Table(Table::with_room(limits.seed, fields)))
    }

    /// The packed hash of fields, which must differ ([`Hash::has_distinct_fields`]), and their values, which alternate;
    /// `None` if it may have no room for them.
    pub fn of_items<'a>(items: impl Sequence<'a>) -> Option<Hash> {
        PackedList::build(items).map(Hash::packed)
    }

    /// Whether no two fields of a packed hash are equal.
    pub fn has_distinct_fields(&self) -> bool {
        self.view().has_distinct_fields()
    }

    /// The packed hash of some entries whose fields differ, however long they are, as long as a packed hash has room
    /// for them. `is_timed` means that some have a deadline or may get one; the deadlines, 0 for none, must ascend,
    /// entries without one behind the others.
    pub fn of_entries<'a>(
        entries: impl Iterator<Item = (Entry<'a>, i64)> + Clone,
        is_timed: bool,
        limits: &Limits,
    ) -> Hash {
        let items = entries.clone().flat_map(|(entry, _)| [entry.field, entry.value]);
        if !is_timed && let Some(hash) = Hash::of_items(items) {
            return hash;
        }
        let mut hash = Hash::new();
        if is_timed {
            hash.make_timed();
        }
        for (entry, deadline_ms) in entries {
            let bytes = entry.field.len().saturating_add(entry.value.len());
            match hash.shape_mut() {
                ShapeMut::Packed(packed) if packed.has_room(bytes) => {
                    packed.push(entry.field);
                    packed.push(entry.value);
                }
                ShapeMut::Timed(timed) if timed.packed.has_room(bytes) => timed.push(entry, deadline_ms),
                _ => {
                    let field = entry.field.to_cow();
                    let table = hash.table_mut(limits.seed);
                    Pair::cell(&field, &entry.value.to_cow(), |cell| table.insert(&field, cell));
                    hash.set_deadline(&field, Some(deadline_ms).filter(|&deadline_ms| deadline_ms != 0));
                }
            }
        }
        hash
    }

    fn packed(packed: PackedList) -> Hash {
        Hash { form: Form::Packed(packed) }
    }

    /// The table of a hash that is one.
    fn table(&self) -> Option<&Table<Pair>> {
        match self.view().shape {
            Shape::Table(table) => Some(table),
            Shape::Packed(_) | Shape::Timed(_) => None,
        }
    }

    fn apart(apart: Apart) -> Hash {
        Hash { form: Form::Apart(Box::new(apart)) }
    }

    /// A view of this hash, for reading.
    pub fn view(&self) -> HashView<'_> {
        HashView::of(match &self.form {
            Form::Packed(packed) => Shape::Packed(packed.view()),
            Form::Apart(apart) => match &**apart {
                Apart::Timed(timed) => Shape::Timed(timed),
                Apart::Table(table) => Shape::Table(table),
            },
        })
    }

    /// The number of fields, overdue or not: [`HashView::len`].
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Whether the hash has no field: [`HashView::is_empty`].
    pub fn is_empty(&self) -> bool {
        self.view().is_empty()
    }

    /// The name that `OBJECT ENCODING` replies: [`HashView::encoding`].
    pub fn encoding(&self) -> &'static str {
        self.view().encoding()
    }

    /// The value of a field, overdue or not: [`HashView::get`].
    pub fn get(&self, field: &[u8]) -> Option<Item<'_>> {
        self.view().get(field)
    }

    /// Whether a field exists, overdue or not: [`HashView::contains`].
    pub fn contains(&self, field: &[u8]) -> bool {
        self.view().contains(field)
    }

    /// The deadline of a field: [`HashView::deadline`].
    pub fn deadline(&self, field: &[u8]) -> Option<Option<i64>> {
        self.view().deadline(field)
    }

    /// The earliest deadline of all fields: [`HashView::first_deadline`].
    pub fn first_deadline(&self) -> Option<i64> {
        self.view().first_deadline()
    }

    /// The live fields at a moment: [`HashView::at`].
    pub fn at(&self, now_ms: i64) -> Fields<'_> {
        self.view().at(now_ms)
    }

    /// All fields with their values: [`HashView::iter`].
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> + Clone {
        self.view().iter()
    }

    /// A random field with its value: [`HashView::random`].
    pub fn random(&self, generator: &mut Rng) -> Option<Entry<'_>> {
        self.view().random(generator)
    }

    /// Visits some fields from a cursor on: [`HashView::scan`].
    pub fn scan<'a>(&'a self, cursor: u64, count: usize, visit: impl FnMut(Entry<'a>)) -> u64 {
        self.view().scan(cursor, count, visit)
    }

    /// Panics unless every invariant holds: [`HashView::check`].
    pub fn check(&self) {
        self.view().check();
    }

    /// Restores a packed hash from the bytes of [`Hash::pack`]; `room` becomes its allocation if it is large enough.
    pub fn unpack(bytes: &[u8], room: Box<[u8]>) -> Hash {
        Hash::packed(PackedList::unpack(bytes, room))
    }

    /// The number of bytes that [`Hash::pack`] returns; none if this is not a packed hash.
    pub fn packed_len(&self) -> Option<usize> {
        match &self.form {
            Form::Packed(packed) => Some(packed.packed_len()),
            Form::Apart(_) => None,
        }
    }

    /// The bytes of a packed hash, to be stored elsewhere: the first [`Hash::packed_len`] of the result; the rest is
    /// unspecified. Empty for any other form.
    pub fn pack(self) -> Box<[u8]> {
        match self.form {
            Form::Packed(packed) => packed.pack(),
            Form::Apart(_) => Box::default(),
        }
    }

    fn shape_mut(&mut self) -> ShapeMut<'_> {
        match &mut self.form {
            Form::Packed(packed) => ShapeMut::Packed(packed),
            Form::Apart(apart) => match &mut **apart {
                Apart::Timed(timed) => ShapeMut::Timed(timed),
                Apart::Table(table) => ShapeMut::Table(table),
            },
        }
    }

    /// Bytes of our own heap allocations. O(1).
    pub fn memory(&self) -> usize {
        match self.view().shape {
            Shape::Packed(packed) => packed.memory(),
            Shape::Timed(timed) => size_of::<Apart>() + timed.memory(),
            Shape::Table(table) => size_of::<Apart>() + table.memory(),
        }
    }

    /// Sets a field's deadline in unix milliseconds, or removes it; one that is not positive counts as the first
    /// millisecond. Returns whether there is such a field.
    ///
    /// # Panics
    /// If the deadline is 2^53 or more.
    pub fn set_deadline(&mut self, field: &[u8], deadline_ms: Option<i64>) -> bool {
        let deadline_ms = deadline_ms.map_or(0, |deadline_ms| deadline_ms.max(1));
        assert!(deadline_ms < 1 << 53, "a deadline must be a whole number as a double");
        if !self.contains(field) {
            return false;
        }
        if deadline_ms != 0 {
            self.make_timed();
        }
        match self.shape_mut() {
            ShapeMut::Packed(_) => {}
            ShapeMut::Timed(timed) => {
                timed.find(field).into_iter().for_each(|entry| timed.set_deadline(entry, deadline_ms));
            }
            ShapeMut::Table(table) => table.set_deadline(field, deadline_ms),
        }
        true
    }

    /// Announces deadlines: a packed hash turns into a timed one at once, whether they come or not.
    pub fn make_timed(&mut self) {
        if let Form::Packed(packed) = &mut self.form {
            let timed = Timed { packed: std::mem::take(packed), deadlines: Vec::new() };
            *self = Hash::apart(Apart::Timed(timed));
        }
    }

    /// Announces `fields` new fields: if a packed hash may not hold that many, it turns into a table at once, whether
    /// they come or not.
    pub fn make_room(&mut self, fields: usize, limits: &Limits) {
        if fields > limits.entries {
            self.table_mut(limits.seed);
        }
    }

    /// Sets a field's value and removes its deadline; returns whether the field is new.
    pub fn insert(&mut self, field: &[u8], value: &[u8], limits: &Limits) -> bool {
        self.store(field, value, false, limits)
    }

    /// Sets a field's value and keeps its deadline; returns whether the field is new.
    pub fn update(&mut self, field: &[u8], value: &[u8], limits: &Limits) -> bool {
        self.store(field, value, true, limits)
    }

    fn store(&mut self, field: &[u8], value: &[u8], keep: bool, limits: &Limits) -> bool {
        let bytes = field.len().saturating_add(value.len());
        // A limit may have been lowered since; the form is checked again whenever a value is set.
        let fits = self.len() <= limits.entries;
        if fits && field.len().max(value.len()) <= limits.bytes {
            match self.shape_mut() {
                ShapeMut::Packed(packed) if packed.has_room(bytes) => match packed.find(field, 2) {
                    Some(position) => {
                        packed.replace(position + 1, Item::of(value));
                        return false;
                    }
                    None if packed.len() / 2 < limits.entries => {
                        packed.push(Item::of(field));
                        packed.push(Item::of(value));
                        return true;
                    }
                    None => {}
                },
                ShapeMut::Timed(timed) if timed.packed.has_room(bytes) => match timed.find(field) {
                    Some(entry) => {
                        timed.replace(entry, value, keep);
                        return false;
                    }
                    None if timed.packed.len() / 2 < limits.entries => {
                        timed.push(Entry { field: Item::of(field), value: Item::of(value) }, 0);
                        return true;
                    }
                    None => {}
                },
                _ => {}
            }
        }
        let table = self.table_mut(limits.seed);
        Pair::cell(field, value, |cell| if keep { table.update(field, cell) } else { table.insert(field, cell) })
    }

    /// Removes a field; returns whether it existed.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        match self.shape_mut() {
            ShapeMut::Packed(packed) => {
                let Some(position) = packed.find(field, 2) else { return false };
                packed.remove(position..position + 2);
                true
            }
            ShapeMut::Timed(timed) => {
                let Some(entry) = timed.find(field) else { return false };
                timed.remove(entry);
                true
            }
            ShapeMut::Table(table) => table.remove(field),
        }
    }

    /// Removes a field if its deadline is `now_ms` or earlier; returns whether it did.
    pub fn remove_overdue(&mut self, field: &[u8], now_ms: i64) -> bool {
        let is_overdue = self.deadline(field).flatten().is_some_and(|deadline_ms| deadline_ms <= now_ms);
        is_overdue && self.remove(field)
    }

    /// The fields whose deadline is `now_ms` or earlier, at most `limit` of them, the earliest first.
    pub fn due_fields(&self, now_ms: i64, limit: usize) -> Vec<Vec<u8>> {
        match self.view().shape {
            Shape::Packed(_) => Vec::new(),
            Shape::Timed(timed) => {
                let due = timed.due(now_ms).min(limit);
                (0..due).map(|entry| timed.packed.get(2 * entry).to_vec()).collect()
            }
            Shape::Table(table) => {
                let due = table.by_deadline().take(limit).take_while(|&(deadline_ms, _)| deadline_ms <= now_ms);
                due.map(|(_, cell)| <Pair as Layout>::key(cell).to_vec()).collect()
            }
        }
    }

    /// Removes fields whose deadline is `now_ms` or earlier, at most `limit` of them, the
    /// earliest first; returns how many.
    pub fn remove_due(&mut self, now_ms: i64, limit: usize) -> usize {
        let fields =
            if matches!(self.view().shape, Shape::Table(_)) { self.due_fields(now_ms, limit) } else { Vec::new() };
        match self.shape_mut() {
            ShapeMut::Packed(_) => 0,
            ShapeMut::Timed(timed) => {
                let due = timed.due(now_ms).min(limit);
                timed.remove_first(due);
                due
            }
            ShapeMut::Table(table) => fields.iter().filter(|field| table.remove(field)).count(),
        }
    }

    /// The table; a hash in another form is converted first.
    fn table_mut(&mut self, seed: u64) -> &mut Table<Pair> {
        if !matches!(self.view().shape, Shape::Table(_)) {
            let mut table = Table::new(seed);
            for entry in self.iter() {
                let field = entry.field.to_cow();
                Pair::cell(&field, &entry.value.to_cow(), |cell| table.insert(&field, cell));
            }
            if let Shape::Timed(timed) = self.view().shape {
                for (entry, &deadline_ms) in self.iter().zip(&timed.deadlines) {
                    table.set_deadline(&entry.field.to_cow(), deadline_ms);
                }
            }
            table.shrink();
            *self = Hash::apart(Apart::Table(table));
        }
        match self.shape_mut() {
            ShapeMut::Table(table) => table,
            ShapeMut::Packed(_) | ShapeMut::Timed(_) => unreachable!("it has just become a table"),
        }
    }
}

impl std::fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_map().entries(self.iter().map(|entry| (entry.field, entry.value))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(entries: &[(&str, &str)], limits: &Limits) -> Hash {
        let mut hash = Hash::new();
        for (field, value) in entries {
            assert!(hash.insert(field.as_bytes(), value.as_bytes(), limits));
        }
        hash.check();
        hash
    }

    fn numbered(fields: usize, limits: &Limits) -> Hash {
        let mut hash = Hash::new();
        for number in 0..fields {
            hash.insert(format!("field:{number}").as_bytes(), number.to_string().as_bytes(), limits);
        }
        hash
    }

    const USER: &[(&str, &str)] =
        &[("name", "Ann"), ("age", "42"), ("mail", "ann@example.org"), ("city", "Zurich"), ("visits", "1783")];

    #[test]
    fn a_small_hash_takes_less_than_redis_spends_on_a_listpack() {
        let hash = hash(USER, &Limits::default());
        let texts: usize = USER.iter().flat_map(|pair| [pair.0.len() + 2, pair.1.len() + 2]).sum();
        // 42 takes two bytes there and 1783 three.
        let listpack = 7 + texts - 2 - 3;
        assert!(hash.memory() <= listpack, "{} for a listpack of {listpack}", hash.memory());
        assert_eq!(size_of::<Hash>(), 16);
    }

    #[test]
    fn a_packed_hash_becomes_a_table_with_one_field_too_many() {
        let limits = Limits::default();
        let mut hash = numbered(512, &limits);
        assert_eq!(hash.encoding(), "listpack");
        hash.insert(b"field:7", b"again", &limits);
        assert_eq!(hash.encoding(), "listpack");
        let mut lowered = hash.clone();
        lowered.insert(b"field:7", b"once more", &Limits { entries: 511, ..limits });
        assert_eq!((lowered.encoding(), lowered.len()), ("hashtable", 512));
        hash.insert(b"field:512", b"", &limits);
        assert_eq!((hash.encoding(), hash.len()), ("hashtable", 513));
        hash.check();
    }

    #[test]
    fn a_long_field_or_value_turns_a_packed_hash_into_a_table() {
        for (field, value) in [([b'a'; 65].as_slice(), b"".as_slice()), (b"f", &[b'a'; 65])] {
            let mut hash = hash(USER, &Limits::default());
            assert!(hash.insert(&field[..field.len().min(64)], &value[..value.len().min(64)], &Limits::default()));
            assert_eq!(hash.encoding(), "listpack");
            hash.insert(field, value, &Limits::default());
            assert_eq!(hash.encoding(), "hashtable");
            assert!(hash.get(field).is_some_and(|item| item == *value));
            hash.check();
        }
    }

    #[test]
    fn reserving_room_for_too_many_fields_makes_a_table_at_once() {
        let mut hash = hash(USER, &Limits::default());
        hash.make_room(512, &Limits::default());
        assert_eq!(hash.encoding(), "listpack");
        hash.make_room(513, &Limits::default());
        assert_eq!((hash.encoding(), hash.len()), ("hashtable", 5));
    }

    #[test]
    fn values_change_in_place_and_by_length_in_both_forms() {
        for limits in [Limits::default(), Limits { entries: 0, bytes: 0, seed: 0 }] {
            let mut hash = hash(USER, &limits);
            for value in ["41", "7", "", "seven", "a value of some more bytes", "-9223372036854775808"] {
                assert!(!hash.insert(b"age", value.as_bytes(), &limits));
                assert!(hash.get(b"age").is_some_and(|item| item == *value.as_bytes()));
                assert!(hash.get(b"city").is_some_and(|item| item == *b"Zurich".as_slice()));
                hash.check();
            }
        }
    }

    #[test]
    fn fields_and_values_longer_than_a_length_byte_are_distinguished() {
        let limits = Limits { entries: 0, bytes: 0, seed: 0 };
        let mut hash = Hash::new();
        for length in [0, 1, 253, 254, 255, 256, 70_000] {
            assert!(hash.insert(&vec![b'f'; length], &vec![b'v'; 70_000 - length], &limits));
        }
        for length in [0, 1, 253, 254, 255, 256, 70_000] {
            let value = hash.get(&vec![b'f'; length]).map(|item| item.len());
            assert_eq!(value, Some(70_000 - length));
        }
        hash.check();
    }

    #[test]
    fn every_field_is_drawn_about_as_often_as_another() {
        for limits in [Limits { entries: 1000, bytes: 64, seed: 0 }, Limits { entries: 0, bytes: 0, seed: 0 }] {
            let hash = numbered(500, &limits);
            let mut generator = Rng::with_seed(1);
            let mut drawn = vec![0; 500];
            for _ in 0..500 * 100 {
                let entry = hash.random(&mut generator).expect("not empty");
                drawn[entry.value.as_int().expect("a number") as usize] += 1;
            }
            assert!(drawn.iter().all(|&times| (55..150).contains(&times)), "{drawn:?}");
        }
        assert_eq!(Hash::new().random(&mut Rng::with_seed(1)), None);
    }
}
