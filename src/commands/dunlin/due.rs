//! DUNLIN DUE: the keys, and the fields of hashes, that expire next.

use super::{ROW, explained};
use crate::engine::{Args, Arity, Command, Ctx, Error};
use crate::keyspace::Database;
use crate::value::View;

const DEFAULT_COUNT: usize = 20;
/// The most deadlines at a time.
const MAX: i64 = 10_000;

pub(super) const DUE: Command = Command {
    name: "DUE",
    syntax: "[COUNT count]",
    arity: Arity::AtLeast(2),
    cost: "O(N), N being the count, and the fields of hashes whose fields expire before the last of them",
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

/// The next deadlines of a database, at most `count`.
fn next(data: &Database, count: usize) -> Vec<Due> {
    let of_key = |(deadline_ms, slot)| Due { deadline_ms, key: data.key(slot).to_vec(), field: None };
    let mut next: Vec<Due> = data.due_keys().take(count).map(of_key).collect();
    next.sort_unstable();
    for (first_ms, slot) in data.due_parts() {
        if next.len() >= count && next.last().is_some_and(|last| last.deadline_ms < first_ms) {
            break;
        }
        let View::Hash(hash) = data.view(slot) else { continue };
        for entry in hash.iter() {
            let field = entry.field.to_vec();
            let Some(deadline_ms) = hash.deadline(&field).flatten() else { continue };
            next.push(Due { deadline_ms, key: data.key(slot).to_vec(), field: Some(field) });
        }
        next.sort_unstable();
        next.truncate(count);
    }
    next
}
