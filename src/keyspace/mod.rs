//! Where values are stored: one numbered database.
//!
//! A [`Database`] maps keys to values, remembers when a key falls due, and can be walked with a cursor while it changes.
//! It asks no clock: a deadline is a number of unix milliseconds, and a key that is due stays until the engine removes
//! it ([`Database::pop_due`] says which). It announces nothing and replies to nobody.

use crate::value::{Text, TextView, Value, View};
use std::collections::{BTreeSet, HashMap};

pub use crate::value::ValueMut;

/// Names one key of one database; valid until that database next changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

/// A value on its way in.
#[derive(Clone, Debug)]
pub enum New<'a> {
    /// A text, whose bytes are copied straight to where they are kept.
    Text(TextView<'a>),
    /// A value that is taken over.
    Value(Value),
}

impl New<'_> {
    fn into_value(self) -> Value {
        match self {
            New::Text(text) => Value::Text(text.to_text()),
            New::Value(value) => value,
        }
    }
}

/// What is no longer stored but not yet freed. Dropping it may take long, and may be done on another thread.
#[derive(Debug, Default)]
pub struct Trash(Contents);

#[derive(Debug, Default)]
enum Contents {
    #[default]
    Nothing,
    Value(Value),
    Database(Box<Database>),
}

impl Trash {
    /// The bytes of memory that dropping this gives back.
    pub fn memory(&self) -> usize {
        match &self.0 {
            Contents::Nothing => 0,
            Contents::Value(value) => value.memory(),
            Contents::Database(database) => database.memory(),
        }
    }
}

impl From<Value> for Trash {
    fn from(value: Value) -> Trash {
        Trash(Contents::Value(value))
    }
}

#[derive(Clone, Debug)]
struct Entry {
    key: Box<[u8]>,
    value: Value,
    deadline_ms: Option<i64>,
    access: u32,
}

/// One numbered database. All times are unix milliseconds.
#[derive(Clone, Debug)]
pub struct Database {
    seed: u64,
    slots: HashMap<Box<[u8]>, u32>,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    deadlines: BTreeSet<(i64, u32)>,
}

impl Database {
    /// An empty database, which holds no memory yet; `seed` decides the order of [`Database::scan`] and nothing else.
    pub fn new(seed: u64) -> Database {
        Database { seed, slots: HashMap::new(), entries: Vec::new(), free: Vec::new(), deadlines: BTreeSet::new() }
    }

    /// How many keys are stored, due or not.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no key is stored.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many keys have a deadline.
    pub fn volatile_len(&self) -> usize {
        self.deadlines.len()
    }

    /// Where `key` is stored.
    pub fn find(&self, key: &[u8]) -> Option<Slot> {
        self.slots.get(key).copied().map(Slot)
    }

    /// The key stored at `slot`.
    pub fn key(&self, slot: Slot) -> &[u8] {
        &self.entry(slot).key
    }

    /// The value stored at `slot`.
    pub fn view(&self, slot: Slot) -> View<'_> {
        self.entry(slot).value.view()
    }

    /// Stores a value under `key`, which must be absent, without a deadline.
    pub fn insert(&mut self, key: &[u8], value: New<'_>) -> Slot {
        debug_assert!(self.find(key).is_none(), "insert is for absent keys");
        let entry = Entry { key: key.into(), value: value.into_value(), deadline_ms: None, access: 0 };
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.entries.push(None);
                (self.entries.len() - 1) as u32
            }
        };
        self.entries[id as usize] = Some(entry);
        self.slots.insert(key.into(), id);
        Slot(id)
    }

    /// Stores another value at `slot`, which keeps its deadline and access; the old value is the caller's to drop.
    pub fn replace(&mut self, slot: Slot, value: New<'_>) -> (Slot, Trash) {
        let replaced = std::mem::replace(&mut self.entry_mut(slot).value, value.into_value());
        (slot, replaced.into())
    }

    /// Lets `edit` change the value at `slot` in place; it gets `None` for a text (see [`Database::edit_text`]).
    pub fn edit_object<R>(&mut self, slot: Slot, edit: impl FnOnce(Option<ValueMut<'_>>) -> R) -> R {
        edit(self.entry_mut(slot).value.object_mut())
    }

    /// Edits the bytes of the text at `slot`, which is raw from then on. A long text is edited where it stands.
    ///
    /// # Panics
    /// If the value is not a text.
    pub fn edit_text<R>(&mut self, slot: Slot, edit: impl FnOnce(&mut Vec<u8>) -> R) -> (Slot, R) {
        let Value::Text(text) = &mut self.entry_mut(slot).value else { panic!("edit_text is for texts") };
        let mut bytes = std::mem::replace(text, Text::Int(0)).into_vec();
        let result = edit(&mut bytes);
        *text = Text::Raw(bytes);
        (slot, result)
    }

    /// Makes the value at `slot` the text of an integer.
    pub fn set_int(&mut self, slot: Slot, number: i64) -> Slot {
        self.replace(slot, New::Text(TextView::Int(number))).0
    }

    /// Removes the key at `slot` and returns its value.
    pub fn remove(&mut self, slot: Slot) -> Value {
        let entry = self.entries[slot.0 as usize].take().expect("a slot names a stored key");
        self.slots.remove(&entry.key);
        self.free.push(slot.0);
        if let Some(deadline_ms) = entry.deadline_ms {
            self.deadlines.remove(&(deadline_ms, slot.0));
        }
        entry.value
    }

    /// Removes the key at `slot` when nobody wants its value: cheaper than [`Database::remove`].
    pub fn delete(&mut self, slot: Slot) -> Trash {
        self.remove(slot).into()
    }

    /// When the key at `slot` falls due.
    pub fn deadline(&self, slot: Slot) -> Option<i64> {
        self.entry(slot).deadline_ms
    }

    /// Decides when the key at `slot` falls due; any time is allowed, past ones too.
    pub fn set_deadline(&mut self, slot: Slot, deadline_ms: Option<i64>) -> Slot {
        if let Some(old_ms) = std::mem::replace(&mut self.entry_mut(slot).deadline_ms, deadline_ms) {
            self.deadlines.remove(&(old_ms, slot.0));
        }
        if let Some(deadline_ms) = deadline_ms {
            self.deadlines.insert((deadline_ms, slot.0));
        }
        slot
    }

    /// The 24 bits the engine keeps beside a key to remember its use; 0 in a new key.
    pub fn access(&self, slot: Slot) -> u32 {
        self.entry(slot).access
    }

    /// Sets the 24 bits of [`Database::access`]; higher bits are dropped.
    pub fn set_access(&mut self, slot: Slot, access: u32) {
        self.entry_mut(slot).access = access & 0xff_ffff;
    }

    /// When the earliest deadline falls due.
    pub fn next_deadline(&self) -> Option<i64> {
        self.deadlines.first().map(|&(deadline_ms, _)| deadline_ms)
    }

    /// A key with the earliest deadline, if it is due at `now_ms`. The key stays until the caller removes it.
    pub fn pop_due(&mut self, now_ms: i64) -> Option<Slot> {
        self.deadlines.first().filter(|&&(deadline_ms, _)| deadline_ms <= now_ms).map(|&(_, id)| Slot(id))
    }

    /// Visits some keys from `cursor` on, about `count` of them, and returns the cursor to go on from: 0 at the end.
    ///
    /// A walk begins with cursor 0. A key that is stored from the walk's beginning to its end is visited at least once,
    /// whatever else comes, goes or moves meanwhile.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(Slot)) -> u64 {
        let mut rest: Vec<(u64, Slot)> =
            self.slots().map(|slot| (self.position(slot), slot)).filter(|&(position, _)| position >= cursor).collect();
        rest.sort_unstable();
        let mut last = None;
        for (visited, &(position, slot)) in rest.iter().enumerate() {
            if visited >= count && last != Some(position) {
                return position;
            }
            visit(slot);
            last = Some(position);
        }
        0
    }

    /// A key chosen with the help of `generator`, each about as likely as any other.
    pub fn random(&self, generator: &mut impl FnMut() -> u64) -> Option<Slot> {
        let len = self.len() as u64;
        let index = generator().checked_rem(len)? as usize;
        self.slots().nth(index)
    }

    /// Every key, in no particular order.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        let stored = |(id, entry): (usize, &Option<Entry>)| entry.is_some().then_some(Slot(id as u32));
        self.entries.iter().enumerate().filter_map(stored)
    }

    /// The bytes of memory this database holds: keys, values, and what it takes to find them.
    pub fn memory(&self) -> usize {
        self.slots().map(|slot| self.memory_of(slot)).sum()
    }

    /// The bytes of memory the key at `slot` costs: its record, its value, its share of the table and of the deadlines.
    pub fn memory_of(&self, slot: Slot) -> usize {
        let entry = self.entry(slot);
        size_of::<Entry>() + 2 * entry.key.len() + entry.value.memory()
    }

    /// How long, in milliseconds, the keys that have a deadline still live on average; 0 without such keys.
    pub fn average_ttl_ms(&self, now_ms: i64) -> i64 {
        let sum: i128 = self.deadlines.iter().map(|&(deadline_ms, _)| i128::from(deadline_ms)).sum();
        let average = sum.checked_div(self.volatile_len() as i128).unwrap_or(i128::from(now_ms));
        (average - i128::from(now_ms)).clamp(0, i128::from(i64::MAX)) as i64
    }

    /// Empties the database at once and returns what it held.
    pub fn clear(&mut self) -> Trash {
        let empty = Database::new(self.seed);
        Trash(Contents::Database(Box::new(std::mem::replace(self, empty))))
    }

    /// Proves every invariant, at the cost of visiting everything.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        assert_eq!(self.slots().count(), self.len());
        assert_eq!(self.slots().filter(|&slot| self.deadline(slot).is_some()).count(), self.volatile_len());
        for slot in self.slots() {
            assert_eq!(self.find(self.key(slot)), Some(slot));
            assert!(self.deadline(slot).is_none_or(|deadline_ms| self.deadlines.contains(&(deadline_ms, slot.0))));
        }
    }

    fn position(&self, slot: Slot) -> u64 {
        let start = self.seed ^ 0xcbf2_9ce4_8422_2325;
        let mixed =
            self.key(slot).iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        mixed >> 16
    }

    fn entry(&self, slot: Slot) -> &Entry {
        self.entries[slot.0 as usize].as_ref().expect("a slot names a stored key")
    }

    fn entry_mut(&mut self, slot: Slot) -> &mut Entry {
        self.entries[slot.0 as usize].as_mut().expect("a slot names a stored key")
    }
}
