//! The hash: fields, each with a value.
//!
//! ```text
//!            up to limits.entries and limits.bytes             beyond, and for good
//! Hash  ==>  packed: a strip of field, value, field ...  ==>   table: a cell for each field with its value
//! ```
//!
//! - Packed: one allocation, see [`super::strip`]; what looks like an integer is kept as one. Fields stay in the order they
//!   came in.
//! - Table: see [`super::table`]. A cell is `field length, 1 byte (or 255 and 4 more) | field | value`.
//!
//! It knows no key, no reply, no clock and no limit of its own: when one form turns into the other is told by [`Limits`].
//!
//! - Invariant: no two fields are equal; a packed hash has an even number of items.
//! - A hash of five short fields and values takes `20 + the bytes of all ten` and an enum of 16 bytes.
//!
//! Costs: packed: a scan of at most `2 * limits.entries` codes; table: O(1).

use crate::value::item::Item;
use crate::value::strip::{self, Strip};
use crate::value::table::{Layout, Table};
use fastrand::Rng;

/// When a packed hash turns into a table (`hash-max-listpack-entries`, `hash-max-listpack-value`), and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most fields of a packed hash.
    pub entries: usize,
    /// Most bytes of a field or a value of a packed hash.
    pub bytes: usize,
    /// What the key follows from by which the members of a flooded hash are hashed; no client must know it.
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

/// A hash.
#[derive(Clone)]
pub struct Hash {
    form: Form,
}

#[derive(Clone)]
enum Form {
    Packed(Strip),
    Table(Box<Table<Pair>>),
}

/// The layout of a field with its value.
#[derive(Clone)]
struct Pair;

/// The first byte of a cell whose field's length takes four more.
const LONG: u8 = u8::MAX;

impl Pair {
    fn cell(field: &[u8], value: &[u8]) -> Vec<u8> {
        let mut cell = Vec::with_capacity(5 + field.len() + value.len());
        match u8::try_from(field.len()) {
            Ok(length) if length < LONG => cell.push(length),
            _ => {
                cell.push(LONG);
                cell.extend_from_slice(&(field.len() as u32).to_le_bytes());
            }
        }
        cell.extend_from_slice(field);
        cell.extend_from_slice(value);
        cell
    }

    fn split(cell: &[u8]) -> (&[u8], &[u8]) {
        match *cell {
            [LONG, a, b, c, d, ref rest @ ..] => rest.split_at(u32::from_le_bytes([a, b, c, d]) as usize),
            [length, ref rest @ ..] => rest.split_at(length.into()),
            [] => (&[], &[]),
        }
    }

    fn entry(cell: &[u8]) -> Entry<'_> {
        let (field, value) = Pair::split(cell);
        Entry { field: Item::Text(field, &[]), value: Item::Text(value, &[]) }
    }
}

impl Layout for Pair {
    fn key(cell: &[u8]) -> &[u8] {
        Pair::split(cell).0
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
        Hash { form: Form::Packed(Strip::default()) }
    }

    /// The hash as it is at a moment, in unix milliseconds.
    pub fn at(&self, _now_ms: i64) -> Fields<'_> {
        Fields { hash: self }
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Packed(strip) => strip.len() / 2,
            Form::Table(table) => table.len(),
        }
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `listpack` or `hashtable`: what `OBJECT ENCODING` says for a hash of this form.
    pub fn encoding(&self) -> &'static str {
        match &self.form {
            Form::Packed(_) => "listpack",
            Form::Table(_) => "hashtable",
        }
    }

    /// Bytes of our own heap allocations. O(1).
    pub fn memory(&self) -> usize {
        match &self.form {
            Form::Packed(strip) => strip.memory(),
            Form::Table(table) => size_of::<Table<Pair>>() + table.memory(),
        }
    }

    /// The value of a field.
    pub fn get(&self, field: &[u8]) -> Option<Item<'_>> {
        match &self.form {
            Form::Packed(strip) => strip.find(field, 2).map(|position| strip.get(position + 1)),
            Form::Table(table) => table.get(field).map(|cell| Pair::entry(cell).value),
        }
    }

    /// Whether there is a field.
    pub fn contains(&self, field: &[u8]) -> bool {
        match &self.form {
            Form::Packed(strip) => strip.find(field, 2).is_some(),
            Form::Table(table) => table.get(field).is_some(),
        }
    }

    /// Tells that `fields` of them are about to come: if a packed hash may not hold so many, it turns into a table at
    /// once, whether they come or not.
    pub fn make_room(&mut self, fields: usize, limits: &Limits) {
        if fields > limits.entries {
            self.table_mut(limits.seed);
        }
    }

    /// Gives a field a value; tells whether it is new.
    pub fn insert(&mut self, field: &[u8], value: &[u8], limits: &Limits) -> bool {
        let longest = field.len().max(value.len());
        if let Form::Packed(strip) = &mut self.form
            && longest <= limits.bytes
            && strip.has_room(field.len().saturating_add(value.len()))
        {
            match strip.find(field, 2) {
                Some(position) => {
                    strip.replace(position + 1, Item::of(value));
                    return false;
                }
                None if strip.len() / 2 < limits.entries => {
                    strip.push(Item::of(field));
                    strip.push(Item::of(value));
                    return true;
                }
                None => {}
            }
        }
        self.table_mut(limits.seed).insert(&Pair::cell(field, value))
    }

    /// Removes a field; tells whether there was one.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        match &mut self.form {
            Form::Packed(strip) => {
                let Some(position) = strip.find(field, 2) else { return false };
                strip.remove(position..position + 2);
                true
            }
            Form::Table(table) => table.remove(field),
        }
    }

    /// All fields with their values; those of a packed hash in the order they came in.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> + Clone {
        let (packed, table) = match &self.form {
            Form::Packed(strip) => (Some(Entries { items: strip.iter() }), None),
            Form::Table(table) => (None, Some(table.iter().map(Pair::entry))),
        };
        packed.into_iter().flatten().chain(table.into_iter().flatten())
    }

    /// Any field with its value, each as likely as another.
    pub fn random(&self, generator: &mut Rng) -> Option<Entry<'_>> {
        match &self.form {
            Form::Packed(strip) if strip.len() == 0 => None,
            Form::Packed(strip) => {
                let position = 2 * generator.usize(..strip.len() / 2);
                Entries { items: strip.range(position..position + 2) }.next()
            }
            Form::Table(table) => table.random(generator).map(Pair::entry),
        }
    }

    /// Visits about `count` entries from a cursor on, 0 to start, and returns the next cursor, 0 when done.
    ///
    /// A field that is in the hash from the start of a full scan to its end is visited at least once, whatever else comes
    /// and goes. The packed form is visited all at once.
    pub fn scan<'a>(&'a self, cursor: u64, count: usize, mut visit: impl FnMut(Entry<'a>)) -> u64 {
        match &self.form {
            Form::Packed(strip) => {
                Entries { items: strip.iter() }.for_each(visit);
                0
            }
            Form::Table(table) => table.scan(cursor, count, |cell| visit(Pair::entry(cell))),
        }
    }

    /// Panics unless every invariant holds. For tests and debug builds: O(n), packed O(n²).
    pub fn check(&self) {
        match &self.form {
            Form::Packed(strip) => {
                strip.check();
                assert!(strip.len().is_multiple_of(2), "each field has a value");
                for (number, entry) in self.iter().enumerate() {
                    assert_eq!(strip.find(&entry.field.to_cow(), 2), Some(2 * number), "no two fields are equal");
                }
            }
            Form::Table(table) => table.check(),
        }
    }

    /// The table, which it becomes if it is none yet.
    fn table_mut(&mut self, seed: u64) -> &mut Table<Pair> {
        if let Form::Packed(strip) = &self.form {
            let mut table = Table::new(seed);
            for entry in (Entries { items: strip.iter() }) {
                table.insert(&Pair::cell(&entry.field.to_cow(), &entry.value.to_cow()));
            }
            table.shrink();
            self.form = Form::Table(Box::new(table));
        }
        match &mut self.form {
            Form::Table(table) => table,
            Form::Packed(_) => unreachable!("it has just become a table"),
        }
    }
}

/// A hash as it is at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    hash: &'a Hash,
}

impl<'a> Fields<'a> {
    /// How many fields there are.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(self) -> usize {
        self.hash.len()
    }

    /// The value of a field.
    pub fn get(self, field: &[u8]) -> Option<Item<'a>> {
        self.hash.get(field)
    }

    /// Whether there is a field.
    pub fn contains(self, field: &[u8]) -> bool {
        self.hash.contains(field)
    }

    /// All fields with their values.
    pub fn iter(self) -> impl Iterator<Item = Entry<'a>> + Clone {
        self.hash.iter()
    }

    /// Any field with its value, each as likely as another.
    pub fn random(self, generator: &mut Rng) -> Option<Entry<'a>> {
        self.hash.random(generator)
    }

    /// Visits about `count` entries from a cursor on, see [`Hash::scan`].
    pub fn scan(self, cursor: u64, count: usize, visit: impl FnMut(Entry<'a>)) -> u64 {
        self.hash.scan(cursor, count, visit)
    }
}

/// Entries of a packed hash.
#[derive(Clone)]
struct Entries<'a> {
    items: strip::Iter<'a>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        Some(Entry { field: self.items.next()?, value: self.items.next()? })
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
    fn a_packed_hash_turns_into_a_table_with_the_field_that_is_one_too_many() {
        let limits = Limits::default();
        let mut hash = numbered(512, &limits);
        assert_eq!(hash.encoding(), "listpack");
        hash.insert(b"field:7", b"again", &limits);
        assert_eq!(hash.encoding(), "listpack");
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
    fn room_for_too_many_fields_makes_a_table_before_they_come() {
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
    fn fields_and_values_longer_than_a_length_byte_are_told_apart() {
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
