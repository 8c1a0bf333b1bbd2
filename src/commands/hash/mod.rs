//! Hashes: fields, each with a value, under a key.
//!
//! Who reads a hash reads it as it is at the moment of the command ([`fields`]).
//!
//! [`set`] gives fields values, [`count`] adds to them, [`remove`] takes fields out; [`get`], [`all`], [`random`] and
//! [`scan`] read.

mod all;
mod count;
mod get;
mod random;
mod remove;
mod scan;
mod set;

use crate::engine::{Command, Ctx, Error};
use crate::resp::Reply;
use crate::value::Item;
use crate::value::hash::{Fields, Hash};

/// The family's rows.
pub const COMMANDS: &[Command] = &[
    remove::HDEL,
    get::HEXISTS,
    get::HGET,
    all::HGETALL,
    count::HINCRBY,
    count::HINCRBYFLOAT,
    all::HKEYS,
    get::HLEN,
    get::HMGET,
    set::HMSET,
    random::HRANDFIELD,
    scan::HSCAN,
    set::HSET,
    set::HSETNX,
    get::HSTRLEN,
    all::HVALS,
];

/// The fields of the hash that `key` holds, and the writer.
fn fields<'a, 'c>(cx: &'a mut Ctx<'c>, key: &[u8]) -> Result<(Option<Fields<'a>>, &'a mut Reply<'c>), Error> {
    let now_ms = cx.now_ms();
    let (hash, reply) = cx.read::<Hash>(key)?;
    Ok((hash.map(|hash| hash.at(now_ms)), reply))
}

fn write_or_null(reply: &mut Reply<'_>, value: Option<Item<'_>>) {
    match value {
        Some(value) => reply.item(value),
        None => reply.null(),
    }
}
