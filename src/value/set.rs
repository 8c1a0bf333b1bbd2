//! The set: members, each once.
//!
//! ```text
//! Set  ==>  integers: sorted, 2, 4 or 8 bytes each   ("intset")
//!               | a member that is no integer, if few enough are there        | too many
//!               v                                                             v
//!           packed: a strip of members   ("listpack")   == too many, or one too long ==>  table   ("hashtable")
//! ```
//!
//! - Integers: see [`super::integers`]. Packed: see [`super::strip`]. Table: see [`super::table`]; a cell is a member.
//! - No form ever turns back. When one turns into the other is told by [`Limits`], and as Redis 8 does it: integers that
//!   have become too many turn into a table, even where the packed form could hold them.
//! - Invariant: no two members are equal; where all are in the integer form each is an integer.
//! - Ten members `conn-%d-%d` take some 100 bytes and an enum of 24; a million `event-%09d` some 26 bytes each.
//!
//! It knows no key, no reply, no clock and no limit of its own.
//!
//! Costs: integers: look-up O(log n), change moves what lies behind; packed: a scan of at most `limits.entries` codes; table:
//! O(1).

use crate::value::integers::Integers;
use crate::value::item::Item;
use crate::value::strip::Strip;
use crate::value::table::{Layout, Table};
use fastrand::Rng;

/// When a set turns from one form into another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most members of a set of integers (`set-max-intset-entries`).
    pub integers: usize,
    /// Most members of a packed set (`set-max-listpack-entries`).
    pub entries: usize,
    /// Most bytes of a member of a packed set (`set-max-listpack-value`).
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { integers: 512, entries: 128, bytes: 64 }
    }
}

/// A set.
#[derive(Clone)]
pub struct Set {
    form: Form,
}

#[derive(Clone)]
enum Form {
    Integers(Integers),
    Packed(Strip),
    Table(Box<Table<Whole>>),
}

/// The layout of a cell that is a member.
#[derive(Clone)]
struct Whole;

impl Layout for Whole {
    fn key(cell: &[u8]) -> &[u8] {
        cell
    }
}

impl Default for Set {
    fn default() -> Set {
        Set::new()
    }
}

impl Set {
    /// The empty set, of integers until another member comes.
    pub fn new() -> Set {
        Set { form: Form::Integers(Integers::default()) }
    }

    /// An empty set in the form that suits a first member, and that many members together.
    pub fn for_members(first: &[u8], members: usize, limits: &Limits) -> Set {
        let form = match Item::of(first) {
            Item::Int(_) if members <= limits.integers => Form::Integers(Integers::default()),
            _ if members <= limits.entries => Form::Packed(Strip::default()),
            _ => Form::Table(Box::new(Table::new())),
        };
        Set { form }
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Integers(integers) => integers.len(),
            Form::Packed(strip) => strip.len(),
            Form::Table(table) => table.len(),
        }
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `intset`, `listpack` or `hashtable`: what `OBJECT ENCODING` says for a set of this form.
    pub fn encoding(&self) -> &'static str {
        match &self.form {
            Form::Integers(_) => "intset",
            Form::Packed(_) => "listpack",
            Form::Table(_) => "hashtable",
        }
    }

    /// Bytes of our own heap allocations. O(1).
    pub fn memory(&self) -> usize {
        match &self.form {
            Form::Integers(integers) => integers.memory(),
            Form::Packed(strip) => strip.memory(),
            Form::Table(table) => size_of::<Table<Whole>>() + table.memory(),
        }
    }

    /// Whether there is a member.
    pub fn contains(&self, member: &[u8]) -> bool {
        match &self.form {
            Form::Integers(integers) => match Item::of(member) {
                Item::Int(number) => integers.contains(number),
                Item::Text(..) => false,
            },
            Form::Packed(strip) => strip.find(member, 1).is_some(),
            Form::Table(table) => table.get(member).is_some(),
        }
    }

    /// Tells that `members` are about to come: if the form may not hold so many, it turns into a table at once, whether
    /// they come or not.
    pub fn make_room(&mut self, members: usize, limits: &Limits) {
        let most = match self.form {
            Form::Integers(_) => limits.integers,
            Form::Packed(_) => limits.entries,
            Form::Table(_) => return,
        };
        if members > most {
            self.table_mut();
        }
    }

    /// Puts a member in; tells whether it is new.
    pub fn insert(&mut self, member: &[u8], limits: &Limits) -> bool {
        match (&mut self.form, Item::of(member)) {
            (Form::Integers(integers), Item::Int(number)) => {
                let is_new = integers.insert(number);
                if is_new && integers.len() > limits.integers {
                    self.table_mut();
                }
                is_new
            }
            (Form::Integers(integers), text) => {
                let longest = integers.longest().max(member.len());
                if integers.len() < limits.entries && longest <= limits.bytes {
                    self.form = Form::Packed(Strip::of(integers.iter().map(Item::Int).chain([text])));
                    return true;
                }
                self.table_mut().insert(member)
            }
            (Form::Packed(strip), item) => {
                if strip.find(member, 1).is_some() {
                    return false;
                }
                if strip.len() < limits.entries && member.len() <= limits.bytes && strip.has_room(member.len()) {
                    strip.push(item);
                    return true;
                }
                self.table_mut().insert(member)
            }
            (Form::Table(table), _) => table.insert(member),
        }
    }

    /// Removes a member; tells whether there was one.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match &mut self.form {
            Form::Integers(integers) => match Item::of(member) {
                Item::Int(number) => integers.remove(number),
                Item::Text(..) => false,
            },
            Form::Packed(strip) => {
                let found = strip.find(member, 1);
                found.into_iter().for_each(|position| strip.remove(position..position + 1));
                found.is_some()
            }
            Form::Table(table) => table.remove(member),
        }
    }

    /// All members: integers in their order, those of a packed set in the order they came in.
    pub fn iter(&self) -> impl Iterator<Item = Item<'_>> + Clone {
        let (integers, packed, table) = match &self.form {
            Form::Integers(integers) => (Some(integers.iter().map(Item::Int)), None, None),
            Form::Packed(strip) => (None, Some(strip.iter()), None),
            Form::Table(table) => (None, None, Some(table.iter().map(whole))),
        };
        integers.into_iter().flatten().chain(packed.into_iter().flatten()).chain(table.into_iter().flatten())
    }

    /// Any member, each as likely as another.
    pub fn random(&self, generator: &mut Rng) -> Option<Item<'_>> {
        match &self.form {
            _ if self.is_empty() => None,
            Form::Integers(integers) => Some(Item::Int(integers.get(generator.usize(..integers.len())))),
            Form::Packed(strip) => Some(strip.get(generator.usize(..strip.len()))),
            Form::Table(table) => table.random(generator).map(whole),
        }
    }

    /// Removes any member, each as likely as another, and returns it.
    pub fn pop(&mut self, generator: &mut Rng) -> Option<Vec<u8>> {
        let member = self.random(generator)?.to_vec();
        self.remove(&member);
        Some(member)
    }

    /// Visits about `count` members from a cursor on, 0 to start, and returns the next cursor, 0 when done.
    ///
    /// A member that is in the set from the start of a full scan to its end is visited at least once, whatever else comes
    /// and goes. All forms but the table are visited all at once.
    pub fn scan<'a>(&'a self, cursor: u64, count: usize, mut visit: impl FnMut(Item<'a>)) -> u64 {
        match &self.form {
            Form::Table(table) => table.scan(cursor, count, |cell| visit(whole(cell))),
            Form::Integers(_) | Form::Packed(_) => {
                self.iter().for_each(visit);
                0
            }
        }
    }

    /// Panics unless every invariant holds. For tests and debug builds: O(n), packed O(n²).
    pub fn check(&self) {
        match &self.form {
            Form::Integers(integers) => integers.check(),
            Form::Packed(strip) => {
                strip.check();
                for (position, member) in strip.iter().enumerate() {
                    assert_eq!(strip.find(&member.to_cow(), 1), Some(position), "no two members are equal");
                }
            }
            Form::Table(table) => table.check(),
        }
    }

    /// The table, which it becomes if it is none yet.
    fn table_mut(&mut self) -> &mut Table<Whole> {
        if !matches!(self.form, Form::Table(_)) {
            let (mut table, mut scratch) = (Table::new(), Vec::new());
            for member in self.iter() {
                table.insert(member.as_bytes(&mut scratch));
            }
            table.shrink();
            self.form = Form::Table(Box::new(table));
        }
        match &mut self.form {
            Form::Table(table) => table,
            Form::Integers(_) | Form::Packed(_) => unreachable!("it has just become a table"),
        }
    }
}

fn whole(cell: &[u8]) -> Item<'_> {
    Item::Text(cell, &[])
}

impl std::fmt::Debug for Set {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { integers: 512, entries: 128, bytes: 64 };

    fn set<M: AsRef<[u8]>>(members: impl IntoIterator<Item = M>, limits: &Limits) -> Set {
        let mut set = Set::new();
        for member in members {
            assert!(set.insert(member.as_ref(), limits));
        }
        set.check();
        set
    }

    fn numbers(to: usize) -> impl Iterator<Item = String> {
        (0..to).map(|number| number.to_string())
    }

    /// The encoding once `member` has come to these numbers.
    fn encoding_with(to: usize, member: &str, limits: &Limits) -> &'static str {
        let mut set = set(numbers(to), limits);
        assert!(set.insert(member.as_bytes(), limits));
        set.check();
        set.encoding()
    }

    #[test]
    fn integers_turn_into_a_table_with_one_too_many() {
        assert_eq!(set(numbers(512), &LIMITS).encoding(), "intset");
        assert_eq!(set(numbers(513), &LIMITS).encoding(), "hashtable");
        assert_eq!(set(numbers(11), &Limits { integers: 10, ..LIMITS }).encoding(), "hashtable");
    }

    #[test]
    fn a_text_turns_few_integers_into_a_packed_set_and_more_into_a_table() {
        assert_eq!(encoding_with(127, "a", &LIMITS), "listpack");
        assert_eq!(encoding_with(128, "a", &LIMITS), "hashtable");
        assert_eq!(encoding_with(1, &"a".repeat(64), &LIMITS), "listpack");
        assert_eq!(encoding_with(1, &"a".repeat(65), &LIMITS), "hashtable");
    }

    #[test]
    fn an_integer_longer_than_a_packed_member_may_be_makes_a_table() {
        let limits = Limits { bytes: 4, ..LIMITS };
        for (number, encoding) in
            [("1234", "listpack"), ("-123", "listpack"), ("-1234", "hashtable"), ("12345", "hashtable")]
        {
            let mut set = set(["5", number], &limits);
            set.insert(b"a", &limits);
            assert_eq!(set.encoding(), encoding, "with {number}");
        }
    }

    #[test]
    fn a_packed_set_turns_into_a_table_with_one_member_or_byte_too_many() {
        let mut few = set(["a", "b"], &Limits { entries: 3, ..LIMITS });
        few.insert(b"7", &Limits { entries: 3, ..LIMITS });
        assert!(!few.insert(b"7", &Limits { entries: 3, ..LIMITS }));
        assert_eq!(few.encoding(), "listpack");
        few.insert(b"c", &Limits { entries: 3, ..LIMITS });
        assert_eq!(few.encoding(), "hashtable");
        let mut short = set(["a"], &LIMITS);
        assert!(short.insert(&[b'a'; 65], &LIMITS));
        assert_eq!(short.encoding(), "hashtable");
        assert_eq!(short.len(), 2);
    }

    #[test]
    fn the_first_form_suits_the_first_member_and_how_many_come() {
        for (first, members, encoding) in [
            ("1", 512, "intset"),
            ("1", 513, "hashtable"),
            ("a", 128, "listpack"),
            ("a", 129, "hashtable"),
            ("01", 1, "listpack"),
        ] {
            assert_eq!(Set::for_members(first.as_bytes(), members, &LIMITS).encoding(), encoding, "{first} {members}");
        }
        assert_eq!(Set::for_members(b"1", 11, &Limits { integers: 10, ..LIMITS }).encoding(), "listpack");
    }

    #[test]
    fn room_for_too_many_members_makes_a_table_before_they_come() {
        for (first, most) in [("1", 512), ("a", 128)] {
            let mut set = set([first], &LIMITS);
            let before = set.encoding();
            set.make_room(most, &LIMITS);
            assert_eq!(set.encoding(), before);
            set.make_room(most + 1, &LIMITS);
            assert_eq!((set.encoding(), set.len()), ("hashtable", 1));
            set.make_room(1, &LIMITS);
        }
    }

    #[test]
    fn a_small_set_takes_less_than_redis_spends_on_a_listpack() {
        let names: Vec<String> = (1..=10).map(|number| format!("conn-{}-{}", number * 37, number * 1001)).collect();
        let set = set(&names, &LIMITS);
        let listpack = 7 + names.iter().map(|name| name.len() + 2).sum::<usize>();
        assert!(set.memory() * 10 <= listpack * 8, "{} for a listpack of {listpack}", set.memory());
        assert_eq!(size_of::<Set>(), 24);
    }

    #[test]
    fn a_big_set_takes_less_than_thirty_bytes_a_member() {
        let names = (0..100_000).map(|number| format!("event-{number:09}"));
        let mut set = Set::new();
        names.for_each(|name| assert!(set.insert(name.as_bytes(), &LIMITS)));
        assert!(set.memory() < 30 * 100_000, "{}", set.memory());
    }

    #[test]
    fn popping_takes_every_member_once() {
        for members in [
            numbers(100).collect::<Vec<_>>(),
            (0..100).map(|number| format!("m{number}")).collect(),
            numbers(1000).collect(),
        ] {
            let mut set = set(&members, &LIMITS);
            let mut generator = Rng::with_seed(3);
            let mut popped = Vec::new();
            while let Some(member) = set.pop(&mut generator) {
                popped.push(String::from_utf8(member).expect("digits"));
            }
            popped.sort_by_key(|member| members.iter().position(|other| other == member));
            assert_eq!(popped, members);
            assert!(set.is_empty());
            set.check();
        }
    }
}
