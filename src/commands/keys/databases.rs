//! DBSIZE, FLUSHDB, FLUSHALL and SWAPDB: commands about whole databases.

use std::ops::Range;

use super::existing_database;
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Change, ClusterError, Command, Ctx, Error, Family, Flags, Propagated};
use crate::value::number;

pub(super) const DBSIZE: Command = Command {
    name: "DBSIZE",
    family: Family::Server,
    arity: Arity::Exactly(1),
    flags: Flags::READONLY.and(Flags::FAST).and(Flags::KEYSPACE),
    about: "Returns the number of keys in the database, with expired keys that are not yet removed.",
    tips: &["request_policy:all_shards", "response_policy:agg_sum"],
    run: dbsize,
    ..Command::ROW
};

fn dbsize(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let keys = cx.database().len();
    cx.reply().count(keys);
    Ok(())
}

pub(super) const FLUSHDB: Command = Command {
    name: "FLUSHDB",
    syntax: "flush-type:[ASYNC|SYNC]",
    family: Family::Server,
    arity: Arity::AtLeast(1),
    flags: Flags::WRITE.and(Flags::KEYSPACE).and(Flags::DANGEROUS),
    propagated: Propagated::Always,
    history: &[Change::brings("4.0.0", &["ASYNC"]), Change::brings("6.2.0", &["SYNC"])],
    cost: "O(1), the memory being freed elsewhere",
    about: "Removes all keys of the database.",
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    run: flushdb,
    ..Command::ROW
};

fn flushdb(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let is_waited_for = is_waited_for(args)?;
    let index = cx.database_index();
    count_flushed(cx, index..index + 1, is_waited_for);
    operations::flush_database(cx, index);
    push_invalidations_first(cx, is_waited_for);
    cx.reply().ok();
    Ok(())
}

pub(super) const FLUSHALL: Command =
    Command { name: "FLUSHALL", about: "Removes all keys of all databases.", run: flushall, ..FLUSHDB };

fn flushall(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let is_waited_for = is_waited_for(args)?;
    let all = 0..cx.databases().count();
    count_flushed(cx, all.clone(), is_waited_for);
    all.for_each(|index| operations::flush_database(cx, index));
    operations::save_flushed(cx);
    push_invalidations_first(cx, is_waited_for);
    cx.reply().ok();
    Ok(())
}

/// Both types do the same: the keys are deleted at once, and their memory is freed in the background. They differ in
/// the order of the reply and of invalidations to the caller.
fn is_waited_for(mut args: Args<'_>) -> Result<bool, Error> {
    let is_waited_for = !args.take("ASYNC");
    if is_waited_for && !args.is_empty() && !args.take("SYNC") {
        return Err(Error::Syntax);
    }
    args.end().map(|()| is_waited_for)
}

/// Counts the keys as freed in the background, as Redis does except within a transaction or script.
fn count_flushed(cx: &mut Ctx<'_>, databases: Range<usize>, is_waited_for: bool) {
    if !(is_waited_for && cx.is_nested()) {
        let keys: usize = databases.map(|index| cx.engine().databases.get(index).len()).sum();
        cx.stats_mut().freed_lazily += keys as u64;
    }
}

fn push_invalidations_first(cx: &mut Ctx<'_>, is_waited_for: bool) {
    operations::invalidate_all(cx);
    if is_waited_for && !cx.is_nested() {
        cx.observers_mut().put_reply_last();
    }
}

pub(super) const SWAPDB: Command = Command {
    name: "SWAPDB",
    syntax: "index1 index2",
    family: Family::Server,
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.and(Flags::FAST).and(Flags::KEYSPACE).and(Flags::DANGEROUS),
    since: "4.0.0",
    about: "Swaps two databases; clients of the one see the keys of the other at once.",
    run: swapdb,
    ..Command::ROW
};

fn swapdb(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if cx.engine().peers.cluster.is_some() {
        return Err(ClusterError::NotAllowed("SWAPDB").into());
    }
    let one = number_in(args.word()?).ok_or(Error::FirstDatabaseInvalid)?;
    let other = number_in(args.word()?).ok_or(Error::SecondDatabaseInvalid)?;
    let (one, other) = (existing_database(cx, one)?, existing_database(cx, other)?);
    operations::swap_databases(cx, one, other);
    cx.stats_mut().cluster_incompatible_operations += 1;
    cx.reply().ok();
    Ok(())
}

fn number_in(word: &[u8]) -> Option<i32> {
    i32::try_from(number::parse_i64(word)?).ok()
}
