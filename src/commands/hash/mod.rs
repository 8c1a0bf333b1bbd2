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

fn write_or_null(reply: &mut Reply<'_>, value: Option<Item<'_>>) {
    match value {
        Some(value) => reply.item(value),
        None => reply.null(),
    }
}

/// Replies with the value of each field in `args`, or null, and applies `change` to those that exist; `change` returns
/// whether it changed anything. `prepare` changes the hash first.
fn answer_and_change(
    cx: &mut Ctx<'_>,
    key: &[u8],
    event: Event,
    args: Args<'_>,
    prepare: impl FnOnce(&mut Hash),
    change: impl Fn(&mut Hash, &[u8]) -> bool,
) -> Result<(), Error> {
    let due_ms = cx.due_ms();
    let found = cx.update(key, Missing::Skip, event, |hash: &mut Hash, reply| {
        prepare(hash);
        reply.array(args.left());
        let mut changed = 0;
        for field in args.rest() {
            let value = hash.at(due_ms).get(field);
            write_or_null(reply, value);
            changed += usize::from(value.is_some() && change(hash, field));
        }
        Ok(Changed::by(changed, ()))
    })?;
    if found.is_none() {
        let reply = cx.reply();
        reply.array(args.left());
        args.rest().for_each(|_| reply.null());
    }
    Ok(())
}

/// Deletes those of the named fields that have expired.
fn remove_expired<'f>(cx: &mut Ctx<'_>, key: &[u8], names: impl Iterator<Item = &'f [u8]>) {
    operations::expire_fields(cx, key, |hash, due_ms| names.filter(|name| hash.remove_overdue(name, due_ms)).count());
}

/// Checks that `key` is a hash or missing, before the arguments are checked, as Redis does.
///
/// # Errors
/// [`Error::WrongType`] if it has another type.
fn check_type(cx: &mut Ctx<'_>, key: &[u8]) -> Result<(), Error> {
    cx.lookup(key, Lookup::NO_TRACE).map(Peek::read::<Hash>).transpose()?;
    Ok(())
}

/// Replies for each remaining field that it does not exist.
fn refuse_all(cx: &mut Ctx<'_>, args: Args<'_>) {
    let reply = cx.reply();
    reply.array(args.left());
    args.rest().for_each(|_| reply.integer(NO_FIELD));
}
