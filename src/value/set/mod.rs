//! The set: members, each once.
//!
//! ```text
//! Set  ==>  integers: sorted, 2, 4 or 8 bytes each   ("intset")
//!               | a member that is no integer, while there are few        | too many
//!               v                                                             v
//!           packed: a list of members    ("listpack")   == too many, or one too long ==>  table   ("hashtable")
//! ```
//!
//! - Integers: see [`super::integers`]. Packed: see [`super::packed_list`]. Table: see [`super::table`]; a cell is a
//!   member.
//! - No form ever turns back. [`Limits`] decide when one form turns into another, as in Redis 8: integers that have
//!   become too many turn into a table, even where the packed form could hold them.
//! - Invariant: no two members are equal; where all are in the integer form each is an integer.
//! - Ten members `conn-%d-%d` take some 100 bytes and an enum of 24; a million `event-%09d` some 26 bytes each.
//!
//! It knows no key, no reply, no clock and no limit of its own.
//!
//! Costs: integers: look-up O(log n), change moves the integers behind it; packed: a scan of at most `limits.entries`
//! codes; table: O(1).

use crate::value::arena::LARGEST_HEAD;
use crate::value::base::{Base, Fork};
use crate::value::integers::Integers;
use crate::value::item::{Item, Sequence};
use crate::value::packed_list::PackedList;
use crate::value::prefetch::Prefetch;
use crate::value::table::{Layout, Table};
use either::Either;
use fastrand::Rng;
use std::ops::ControlFlow;

/// A sample of more than one in this many members walks over the whole table.
const DENSE: usize = 4;

/// The limits at which a set changes its form, and the seed for the hashes of flooded sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most members of a set of integers (`set-max-intset-entries`).
    pub integers: usize,
    /// Most members of a packed set (`set-max-listpack-entries`).
    pub entries: usize,
    /// Most bytes of a member of a packed set (`set-max-listpack-value`).
    pub bytes: usize,
    /// The seed of the key by which the members of a flooded set are hashed; no client must know it.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { integers: 512, entries: 128, bytes: 64, seed: 0 }
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
    Packed(PackedList),
    Table(Box<Table<Whole>>),
}

/// The small forms are copied.
impl Fork for Set {
    fn without_parts(&self) -> Set {
        match &self.form {
            Form::Table(table) => Set { form: Form::Table(Box::new(table.without_parts())) },
            Form::Integers(_) | Form::Packed(_) => self.clone(),
        }
    }

    fn set_base(&mut self, base: Option<Base<Set>>) {
        if let Form::Table(table) = &mut self.form {
            table.set_base(base.map(|base| base.part(Set::table)));
        }
    }

    fn is_fork(&self) -> bool {
        matches!(&self.form, Form::Table(table) if table.is_fork())
    }

    fn own_bytes(&self) -> usize {
        match &self.form {
            Form::Table(table) => table.own_bytes(),
            Form::Integers(_) | Form::Packed(_) => self.memory(),
        }
    }

    fn reclaim(&mut self, base: &mut Set) {
        if let (Form::Table(table), Form::Table(shared)) = (&mut self.form, &mut base.form) {
            table.reclaim(shared);
        }
    }
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
    /// The table of a set that is the base of a table.
    fn table(&self) -> &Table<Whole> {
        match &self.form {
            Form::Table(table) => table,
            Form::Integers(_) | Form::Packed(_) => unreachable!("a base does not change"),
        }
    }

    /// The empty set, of integers until another member comes.
    pub fn new() -> Set {
        Set { form: Form::Integers(Integers::default()) }
    }

    /// The empty set that is packed from the start, whatever comes.
    pub fn packed() -> Set {
        Set { form: Form::Packed(PackedList::default()) }
    }

    /// The set of integers of `width` bytes each, low byte first; a table if they are too many. `None` if they do not
    /// ascend, or there is no such width.
    pub fn of_integers(width: usize, numbers: &[u8], limits: &Limits) -> Option<Set> {
        let integers = Integers::from_bytes(width, numbers)?;
        let members = integers.len();
        let mut set = Set { form: Form::Integers(integers) };
        set.make_room(members, limits);
        Some(set)
    }

    /// The packed set of some members that differ, however long they are, as long as a packed set has room for them.
    pub fn of_items<'a>(members: impl Sequence<'a>, limits: &Limits) -> Set {
        if let Some(packed) = PackedList::build(members.clone()) {
            return Set { form: Form::Packed(packed) };
        }
        let mut set = Set::packed();
        for member in members {
            match &mut set.form {
                Form::Packed(packed) if packed.has_room(member.len()) => packed.push(member),
                _ => {
                    let member = member.to_cow();
                    set.table_mut(limits.seed).insert(&member, [&*member]);
                }
            }
        }
        set
    }

    /// The set of some members that differ, as if they were inserted into an empty one in their order.
    pub fn of_members(members: &[Item<'_>], limits: &Limits) -> Set {
        let items = members.iter().map(in_packed_form);
        let leading = items.clone().map_while(|item| item.as_int()).count();
        let are_all = leading == members.len();
        if leading > limits.integers || !are_all && !may_be_packed(members, limits) {
            return Set::table_of(members, limits);
        }
        let mut numbers = Vec::with_capacity(leading);
        numbers.extend(items.clone().map_while(|item| item.as_int()));
        let integers = Integers::of(numbers);
        if are_all {
            return Set { form: Form::Integers(integers) };
        }
        Set::of_items(integers.iter().map(Item::Int).chain(items.skip(leading)), limits)
    }

    /// Like [`Set::of_members`], as if they were inserted into a set that is packed from the start.
    pub fn packed_of_members(members: &[Item<'_>], limits: &Limits) -> Set {
        if may_be_packed(members, limits) {
            Set::of_items(members.iter().map(in_packed_form), limits)
        } else {
            Set::table_of(members, limits)
        }
    }

    /// Like [`Set::of_items`], of members that may not differ; `None` if a packed set may have no room for them.
    pub fn packed_of_items<'a>(members: impl Sequence<'a>) -> Option<Set> {
        PackedList::build(members).map(|packed| Set { form: Form::Packed(packed) })
    }

    /// Whether no two members of a packed set are equal, as it may be after [`Set::packed_of_items`].
    pub fn has_distinct_members(&self) -> bool {
        !matches!(&self.form, Form::Packed(packed) if !packed.view().are_distinct::<false>())
    }

    /// A table without members, with an index that has room for that many.
    pub fn table_with_room(members: usize, limits: &Limits) -> Set {
        Set { form: Form::Table(Box::new(Table::with_room(limits.seed, members))) }
    }

    /// Whether a set of that many members is a table, whatever they are.
    pub fn is_table_at(members: usize, limits: &Limits) -> bool {
        members > limits.integers.max(limits.entries)
    }

    /// The table of some members that differ.
    pub fn table_of(members: &[Item<'_>], limits: &Limits) -> Set {
        let cells = members.iter().map(Item::to_cow);
        Set { form: Form::Table(Box::new(Table::of_distinct(limits.seed, cells))) }
    }

    /// The bytes per member in the form of integers; `None` in another form.
    pub fn integer_bytes(&self) -> Option<usize> {
        match &self.form {
            Form::Integers(integers) => Some(integers.width()),
            Form::Packed(_) | Form::Table(_) => None,
        }
    }

    /// Appends the members of a set in the form of integers as [`Set::of_integers`] reads them.
    pub fn append_integers_to(&self, out: &mut Vec<u8>) {
        if let Form::Integers(integers) = &self.form {
            integers.append_to(out);
        }
    }

    /// An empty set in the form for that first member and that number of members.
    pub fn for_members(first: &[u8], members: usize, limits: &Limits) -> Set {
        let form = match Item::of(first) {
            Item::Int(_) if members <= limits.integers => Form::Integers(Integers::default()),
            _ if members <= limits.entries => Form::Packed(PackedList::default()),
            _ => Form::Table(Box::new(Table::new(limits.seed))),
        };
        Set { form }
    }

    /// A prefetch of a member, if the set is a table.
    pub(super) fn prefetch(&self, member: &[u8]) -> Option<Prefetch<'_>> {
        match &self.form {
            Form::Integers(_) | Form::Packed(_) => None,
            Form::Table(table) => Some(table.prefetch(member)),
        }
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Integers(integers) => integers.len(),
            Form::Packed(packed) => packed.len(),
            Form::Table(table) => table.len(),
        }
    }

    /// Whether the set has no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a packed set.
    pub(in crate::value) fn packed_bytes(&self) -> &[u8] {
        match &self.form {
            Form::Packed(packed) => packed.view().bytes(),
            Form::Integers(_) | Form::Table(_) => &[],
        }
    }

    /// `intset`, `listpack` or `hashtable`: what `OBJECT ENCODING` replies for a set of this form.
    pub fn encoding(&self) -> &'static str {
        match &self.form {
            Form::Integers(_) => "intset",
            Form::Packed(_) => "listpack",
            Form::Table(_) => "hashtable",
        }
    }

    /// Whether the set is in the form of integers.
    pub fn is_integers(&self) -> bool {
        matches!(self.form, Form::Integers(_))
    }

    /// Bytes of our own heap allocations. O(1).
    pub fn memory(&self) -> usize {
        match &self.form {
            Form::Integers(integers) => integers.memory(),
            Form::Packed(packed) => packed.memory(),
            Form::Table(table) => size_of::<Table<Whole>>() + table.memory(),
        }
    }

    /// Bytes in cells, the capacity of which is limited; for other forms, the bytes that its cells would have.
    pub(super) fn cell_bytes(&self) -> usize {
        match &self.form {
            Form::Table(table) => table.cell_bytes(),
            Form::Integers(_) | Form::Packed(_) => self.memory() + self.len() * LARGEST_HEAD,
        }
    }

    /// Whether `member` is in the set.
    pub fn contains(&self, member: &[u8]) -> bool {
        match &self.form {
            Form::Integers(integers) => match Item::of(member) {
                Item::Int(number) => integers.contains(number),
                Item::Text(..) => false,
            },
            Form::Packed(packed) => packed.find(member, 1).is_some(),
            Form::Table(table) => table.get(member).is_some(),
        }
    }

    /// Whether `member` is in the set; `scratch` holds its bytes if they are not in one piece.
    pub fn contains_item(&self, member: Item<'_>, scratch: &mut Vec<u8>) -> bool {
        match (&self.form, member) {
            (Form::Integers(integers), Item::Int(number)) => integers.contains(number),
            (Form::Packed(packed), Item::Int(_)) => packed.view().find_item(member, 1).is_some(),
            _ => self.contains(member.as_bytes(scratch)),
        }
    }

    /// Visits the members that several sets have in common, in the order of the smallest, until `visit` breaks off.
    pub fn common<'a>(sets: &[&'a Set], mut visit: impl FnMut(Item<'a>) -> ControlFlow<()>) {
        let mut sets = sets.to_vec();
        sets.sort_by_key(|set| set.len());
        sets.dedup_by(|a, b| std::ptr::eq(*a, *b));
        let mut scratch = Vec::new();
        let mut visit_if_in = |others: &[&Set], member: Item<'a>| {
            let is_common = others.iter().all(|other| other.contains_item(member, &mut scratch));
            if is_common { visit(member) } else { ControlFlow::Continue(()) }
        };
        // Nothing comes after the break, so its value is not needed.
        let _ = match *sets.as_slice() {
            [] => ControlFlow::Continue(()),
            [smallest, second, ref others @ ..] => match (&smallest.form, &second.form) {
                (Form::Table(table), Form::Table(other)) => {
                    table.common(other, |cell| visit_if_in(others, whole(cell)))
                }
                _ => smallest.iter().try_for_each(|member| visit_if_in(&sets[1..], member)),
            },
            [only] => only.iter().try_for_each(|member| visit_if_in(&[], member)),
        };
    }

    /// Converts to the integer form if all members are integers, and few enough.
    pub fn narrow(&mut self, limits: &Limits) {
        if matches!(self.form, Form::Integers(_)) || self.len() > limits.integers {
            return;
        }
        let numbers: Option<Vec<i64>> = self.iter().map(|member| member.as_int()).collect();
        if let Some(numbers) = numbers {
            self.form = Form::Integers(Integers::of(numbers));
        }
    }

    /// Announces `members` new members: if the form may not hold that many, it turns into a table at once, whether
    /// they come or not.
    pub fn make_room(&mut self, members: usize, limits: &Limits) {
        let most = match self.form {
            Form::Integers(_) => limits.integers,
            Form::Packed(_) => limits.entries,
            Form::Table(_) => return,
        };
        if members > most {
            self.table_mut(limits.seed);
        }
    }

    /// Inserts a member; returns whether it is new.
    pub fn insert(&mut self, member: &[u8], limits: &Limits) -> bool {
        match (&mut self.form, Item::of(member)) {
            (Form::Integers(integers), Item::Int(number)) => {
                let is_new = integers.insert(number);
                if is_new && integers.len() > limits.integers {
                    self.table_mut(limits.seed);
                }
                is_new
            }
            (Form::Integers(integers), text) => {
                let longest = integers.longest().max(member.len());
                if integers.len() < limits.entries
                    && longest <= limits.bytes
                    && let Some(packed) = PackedList::build(integers.iter().map(Item::Int).chain([text]))
                {
                    self.form = Form::Packed(packed);
                    return true;
                }
                self.table_mut(limits.seed).insert(member, [member])
            }
            (Form::Packed(packed), item) => {
                if packed.find(member, 1).is_some() {
                    return false;
                }
                if packed.len() < limits.entries && member.len() <= limits.bytes && packed.has_room(member.len()) {
                    packed.push(item);
                    return true;
                }
                self.table_mut(limits.seed).insert(member, [member])
            }
            (Form::Table(table), _) => table.insert(member, [member]),
        }
    }

    /// Removes a member; returns whether it was in the set.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match &mut self.form {
            Form::Integers(integers) => match Item::of(member) {
                Item::Int(number) => integers.remove(number),
                Item::Text(..) => false,
            },
            Form::Packed(packed) => {
                let found = packed.find(member, 1);
                found.into_iter().for_each(|position| packed.remove(position..position + 1));
                found.is_some()
            }
            Form::Table(table) => table.remove(member),
        }
    }

    /// All members: integers in ascending order, those of a packed set in the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = Item<'_>> + Clone {
        match &self.form {
            Form::Integers(integers) => Either::Left(Either::Left(integers.iter().map(Item::Int))),
            Form::Packed(packed) => Either::Left(Either::Right(packed.iter())),
            Form::Table(table) => Either::Right(table.iter().map(whole)),
        }
    }

    /// A random member, each as likely as another.
    pub fn random(&self, generator: &mut Rng) -> Option<Item<'_>> {
        match &self.form {
            _ if self.is_empty() => None,
            Form::Integers(integers) => Some(Item::Int(integers.get(generator.usize(..integers.len())))),
            Form::Packed(packed) => Some(packed.get(generator.usize(..packed.len()))),
            Form::Table(table) => table.random(generator).map(whole),
        }
    }

    /// Visits `count` different members, every choice of them equally likely; all if there are no more.
    pub fn sample<'a>(&'a self, count: usize, generator: &mut Rng, mut visit: impl FnMut(Item<'a>)) {
        if let Form::Table(table) = &self.form
            && count < table.len() / DENSE
        {
            return table.sample(count, generator, |cell| visit(whole(cell)));
        }
        let (len, mut left) = (self.len(), count.min(self.len()));
        for (passed, member) in self.iter().enumerate() {
            if generator.usize(..len - passed) < left {
                left -= 1;
                visit(member);
            }
        }
    }

    /// Removes `count` members, every choice of them equally likely, or all if there are no more, and calls `visit`
    /// with each before it is removed.
    pub fn pop_each(&mut self, count: usize, generator: &mut Rng, mut visit: impl FnMut(Item<'_>)) {
        for _ in 0..count.min(self.len()) {
            match &mut self.form {
                Form::Integers(integers) => {
                    let number = integers.get(generator.usize(..integers.len()));
                    visit(Item::Int(number));
                    integers.remove(number);
                }
                Form::Packed(packed) => {
                    let position = generator.usize(..packed.len());
                    visit(packed.get(position));
                    packed.remove(position..position + 1);
                }
                Form::Table(table) => table.remove_random(generator, |cell| visit(whole(cell))),
            }
        }
    }

    /// Moves `count` members, every choice of them equally likely, to a set of their own, in the least form: integers
    /// if that is what they are here, else packed if they are few and short enough.
    pub fn pop_random(&mut self, count: usize, generator: &mut Rng, limits: &Limits) -> Set {
        let mut drawn = if let Form::Integers(_) = self.form { Set::new() } else { Set::packed() };
        let mut scratch = Vec::new();
        self.pop_each(count, generator, |member| {
            drawn.insert(member.as_bytes(&mut scratch), limits);
        });
        drawn
    }

    /// Visits about `count` members from a cursor on, 0 to start, and returns the next cursor, 0 when done.
    ///
    /// A member that is in the set from the start of a full scan to its end is visited at least once, whatever else
    /// comes and goes. All forms but the table are visited all at once.
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
            Form::Packed(packed) => {
                packed.check();
                for (position, member) in packed.iter().enumerate() {
                    assert_eq!(packed.find(&member.to_cow(), 1), Some(position), "no two members are equal");
                }
            }
            Form::Table(table) => table.check(),
        }
    }

    /// The table; a set in another form is converted first.
    fn table_mut(&mut self, seed: u64) -> &mut Table<Whole> {
        if !matches!(self.form, Form::Table(_)) {
            let (mut table, mut scratch) = (Table::new(seed), Vec::new());
            for member in self.iter() {
                let member = member.as_bytes(&mut scratch);
                table.insert(member, [member]);
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

/// Whether a packed set can have these members.
fn may_be_packed(members: &[Item<'_>], limits: &Limits) -> bool {
    members.len() <= limits.entries && members.iter().all(|member| member.len() <= limits.bytes)
}

/// The member as a packed set has it: a table has its members as texts, those that are numbers too.
fn in_packed_form<'a>(member: &Item<'a>) -> Item<'a> {
    if let Item::Text(text, []) = *member { Item::of(text) } else { *member }
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
mod tests;
