//! Hashes: fields, each with a value, under a key.
//!
//! Fields may have deadlines. A command that reads a whole hash sees it as it is at the moment of the command
//! ([`fields`]); a command that names fields first deletes those of them that have expired ([`remove_expired`]).
//! Usually there are none: the engine deletes a field on its millisecond.
//!
//! [`set`] sets fields, [`count`] increments them, [`remove`] deletes them; [`get`], [`all`], [`random`] and [`scan`]
//! read. [`expire`] sets deadlines, [`ttl`] reads and clears them, [`get_ex`] does so together with values;
//! [`expire_args`] has their common arguments.

mod all;
mod count;
mod expire;
mod expire_args;
mod get;
mod get_ex;
mod random;
mod remove;
mod scan;
mod set;
mod ttl;

use crate::engine::exec::operations;
use crate::engine::{Args, Changed, Command, Ctx, Error, Event, Lookup, Missing, Peek};
use crate::resp::Reply;
use crate::value::Item;
use crate::value::hash::{Fields, Hash};

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[
    remove::HDEL,
    get::HEXISTS,
    expire::HEXPIRE,
    expire::HEXPIREAT,
    ttl::HEXPIRETIME,
    get::HGET,
    all::HGETALL,
    remove::HGETDEL,
    get_ex::HGETEX,
    count::HINCRBY,
    count::HINCRBYFLOAT,
    all::HKEYS,
    get::HLEN,
    get::HMGET,
    set::HMSET,
    ttl::HPERSIST,
    expire::HPEXPIRE,
    expire::HPEXPIREAT,
    ttl::HPEXPIRETIME,
    ttl::HPTTL,
    random::HRANDFIELD,
    scan::HSCAN,
    set::HSET,
    get_ex::HSETEX,
    set::HSETNX,
    get::HSTRLEN,
    ttl::HTTL,
    all::HVALS,
];

/// The reply about the deadline of a field that does not exist.
const NO_FIELD: i64 = -2;

/// The fields of the hash at `key`, and the reply writer.
fn fields<'a, 'c>(cx: &'a mut Ctx<'c>, key: &[u8]) -> Result<(Option<Fields<'a>>, &'a mut Reply<'c>), Error> {
    let due_ms = cx.due_ms();
    let (hash, reply) = cx.read::<Hash>(key)?;
    Ok((hash.map(|hash| hash.at(due_ms)), reply))
}

/// Replies with the value of a field, or null. A large one is shared.
fn write_field(reply: &mut Reply<'_>, fields: Option<Fields<'_>>, field: &[u8]) {
    let value = fields.and_then(|fields| fields.get(field));
    if let Some(Item::Text(bytes, [])) = value
        && reply.is_zero_copy(bytes.len())
        && let Some(shared) = fields.and_then(|fields| fields.shared(field))
    {
        return reply.shared(&shared);
    }
    write_or_null(reply, value);
}

fn write_or_null(reply: &mut Reply<'_>, value: Option<Item<'_>>) {
    match value {
        Some(value) => reply.item(value),
        None => reply.null(),
    }
}

/// Replies with the value of each field in `args`, or null, and applies `change` to those that exist; `change` returns
/// whether it changed anything. `prepare` changes the hash first. Returns the fields that were changed.
fn answer_and_change<'a>(
    cx: &mut Ctx<'_>,
    key: &[u8],
    event: Event,
    args: Args<'a>,
    prepare: impl FnOnce(&mut Hash),
    change: impl Fn(&mut Hash, &[u8]) -> bool,
) -> Result<ChangedFields<'a>, Error> {
    let (due_ms, mut changed) = (cx.due_ms(), ChangedFields::new(cx));
    let found = cx.update(key, Missing::Skip, event, |hash: &mut Hash, reply| {
        prepare(hash);
        reply.array(args.left());
        for field in args.rest() {
            let value = hash.at(due_ms).get(field);
            write_or_null(reply, value);
            if value.is_some() && change(hash, field) {
                changed.add(field);
            }
        }
        Ok(Changed::by(changed.count, ()))
    })?;
    if found.is_none() {
        let reply = cx.reply();
        reply.array(args.left());
        args.rest().for_each(|_| reply.null());
    }
    Ok(changed)
}

/// The fields that a command has changed.
#[derive(Debug)]
struct ChangedFields<'a> {
    count: usize,
    /// The fields, if they go into the log of changes.
    names: Option<Vec<&'a [u8]>>,
}

impl<'a> ChangedFields<'a> {
    fn new(cx: &Ctx<'_>) -> ChangedFields<'a> {
        ChangedFields { count: 0, names: operations::is_propagating(cx).then(Vec::new) }
    }

    fn add(&mut self, field: &'a [u8]) {
        self.count += 1;
        self.names.iter_mut().for_each(|names| names.push(field));
    }

    /// The fields, if there are some and they go into the log of changes.
    fn propagated(self) -> Option<Vec<&'a [u8]>> {
        self.names.filter(|names| !names.is_empty())
    }
}

/// Propagates the deletion of fields, one by one, instead of the command whose deadline for them had passed.
fn propagate_ended(cx: &mut Ctx<'_>, key: &[u8], fields: &[&[u8]]) {
    for field in fields {
        operations::propagate_also(cx, &[b"HDEL", key, field]);
    }
    operations::propagate_nothing(cx);
}

/// Deletes those of the named fields that have expired.
fn remove_expired<'f>(cx: &mut Ctx<'_>, key: &[u8], names: impl Iterator<Item = &'f [u8]>) {
    operations::expire_fields(cx, key, |removal, hash, due_ms| names.for_each(|name| removal.one(hash, name, due_ms)));
}

/// Checks that `key` is a hash or missing, before the arguments are checked, as Redis does.
///
/// # Errors
/// [`Error::WrongType`] if it has another type.
fn check_type(cx: &mut Ctx<'_>, key: &[u8]) -> Result<(), Error> {
    cx.lookup(key, Lookup::WRITE).map(Peek::read::<Hash>).transpose()?;
    Ok(())
}

/// Replies for each remaining field that it does not exist.
fn refuse_all(cx: &mut Ctx<'_>, args: Args<'_>) {
    let reply = cx.reply();
    reply.array(args.left());
    args.rest().for_each(|_| reply.integer(NO_FIELD));
}
