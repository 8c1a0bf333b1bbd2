//! DUNLIN DUE: the keys, and the fields of hashes, that expire next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;

use super::{ROW, check_reads_all, explained};
use crate::engine::{Args, Arity, Command, Ctx, Error};
use crate::keyspace::{Database, KeyHandle};
use crate::value::View;
use crate::value::item::Item;

const DEFAULT_COUNT: usize = 20;
/// The most deadlines at a time.
const MAX: i64 = 10_000;

pub(super) const DUE: Command = Command {
    name: "DUE",
    syntax: "[COUNT count]",
    arity: Arity::AtLeast(2),
    cost: "O(N log N), N being the count",
    about: "Returns the next deadlines of keys and of fields of hashes, in unix milliseconds, the earliest first.",
    run: |cx, args| explained(&DUE, show(cx, args)),
    ..ROW
};

/// A deadline of a key, or of a field of a hash.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    deadline_ms: i64,
    key: Vec<u8>,
    field: Option<Vec<u8>>,
}

fn show(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let mut count = DEFAULT_COUNT;
    if args.take("COUNT") {
        let given = args.integer()?;
        count = usize::try_from(given).ok().filter(|_| (1..=MAX).contains(&given)).ok_or(Error::Syntax)?;
    }
    args.end()?;
    check_reads_all(cx, &args)?;
    let next = next(cx.database(), count);
    let reply = cx.reply();
    reply.array(next.len());
    for due in &next {
        reply.map(if due.field.is_some() { 3 } else { 2 });
        reply.bulk(b"key");
        reply.bulk(&due.key);
        if let Some(field) = &due.field {
            reply.bulk(b"field");
            reply.bulk(field);
        }
        reply.bulk(b"deadline");
        reply.integer(due.deadline_ms);
    }
    Ok(())
}

/// The next deadlines of a database, at most `count`. Of equal ones any may be left out: to choose by names would take
/// a look at all of them, which may be all keys.
fn next(data: &Database, count: usize) -> Vec<Due> {
    let of_key = |(deadline_ms, handle)| Due { deadline_ms, key: data.key(handle).to_vec(), field: None };
    let mut next: Vec<Due> = data.due_keys().take(count).map(of_key).collect();
    next.extend(Fields::of(data).take(count));
    next.sort_unstable();
    next.truncate(count);
    next
}

/// The deadlines of the fields of a hash, the earliest first.
type OfHash<'a> = Peekable<Box<dyn Iterator<Item = (i64, Item<'a>)> + 'a>>;

/// The deadlines of the fields of all hashes, the earliest first: the next one is that of the hash on top of a heap.
struct Fields<'a> {
    data: &'a Database,
    /// The hashes none of whose fields has come yet, by their first deadlines.
    closed: Peekable<Box<dyn Iterator<Item = (i64, KeyHandle)> + 'a>>,
    /// The other hashes with their further fields.
    open: Vec<(KeyHandle, OfHash<'a>)>,
    /// The next deadline of each open hash, by its place among them.
    order: BinaryHeap<Reverse<(i64, usize)>>,
}

impl<'a> Fields<'a> {
    fn of(data: &'a Database) -> Fields<'a> {
        let hashes: Box<dyn Iterator<Item = _>> = Box::new(data.due_parts());
        Fields { data, closed: hashes.peekable(), open: Vec::new(), order: BinaryHeap::new() }
    }

    /// Opens the next hash if its first field comes before those of the open ones.
    fn open_next(&mut self) {
        let next_ms = self.order.peek().map(|Reverse((deadline_ms, _))| *deadline_ms);
        let Some((first_ms, handle)) = self.closed.next_if(|(first_ms, _)| next_ms.is_none_or(|next| *first_ms < next))
        else {
            return;
        };
        if let View::Hash(hash) = self.data.view(handle) {
            let fields: Box<dyn Iterator<Item = _>> = Box::new(hash.by_deadline());
            self.order.push(Reverse((first_ms, self.open.len())));
            self.open.push((handle, fields.peekable()));
        }
    }
}

impl Iterator for Fields<'_> {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        self.open_next();
        let Reverse((_, place)) = self.order.pop()?;
        let (handle, fields) = self.open.get_mut(place)?;
        let (deadline_ms, field) = fields.next()?;
        if let Some((next_ms, _)) = fields.peek() {
            self.order.push(Reverse((*next_ms, place)));
        }
        Some(Due { deadline_ms, key: self.data.key(*handle).to_vec(), field: Some(field.to_vec()) })
    }
}
