//! XINFO: reports on a stream, its groups and their consumers.
//!
//! The numbers about Redis's radix tree of nodes are computed from the first ids of our blocks: a tree of these ids has
//! that shape.

use super::{all_if_zero, write_entries, write_entry, write_id};
use crate::commands::help;
use crate::engine::{
    Args, Arity, Change, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, StreamError, says, shown,
};
use crate::resp::Reply;
use crate::value::Stream;
use crate::value::stream::{Consumer, ConsumerNumber, Group, Id, Log};

pub(super) const XINFO: Command = Command {
    name: "XINFO",
    family: Family::Stream,
    arity: Arity::AtLeast(2),
    since: "5.0.0",
    cost: "Depends on subcommand.",
    about: "A container for commands that report on streams.",
    subcommands: &[CONSUMERS, GROUPS, help::row(Family::Stream, "5.0.0"), STREAM],
    ..Command::ROW
};

const GROUPS: Command = Command {
    name: "GROUPS",
    syntax: "key",
    family: Family::Stream,
    arity: Arity::Exactly(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::at(2, KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "5.0.0",
    history: &[Change::says(
        "7.0.0",
        "Returns the number of entries that each group has read, and of those that it has not.",
    )],
    cost: "O(1)",
    about: "Lists the consumer groups of a stream.",
    run: groups,
    ..Command::ROW
};

const CONSUMERS: Command = Command {
    name: "CONSUMERS",
    syntax: "key group",
    arity: Arity::Exactly(4),
    history: &[Change::says("7.2.0", "Returns how long each consumer has received nothing.")],
    about: "Lists the consumers of a group.",
    tips: &["nondeterministic_output"],
    run: consumers,
    ..GROUPS
};

const STREAM: Command = Command {
    name: "STREAM",
    syntax: "key full-block:[FULL [COUNT count]]",
    arity: Arity::AtLeast(3),
    history: &[
        Change::says("6.0.0", "Returns everything with `FULL`."),
        Change::says("7.0.0", "Returns the counters that lags are computed from."),
        Change::says("7.2.0", "Returns when each consumer was last active."),
    ],
    about: "Returns information about a stream: its counters, or with FULL its whole content.",
    run: stream,
    ..GROUPS
};

fn groups(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (stream, reply) = cx.read::<Stream>(args.key()?)?;
    let stream = stream.ok_or(Error::NoSuchKey)?;
    reply.array(stream.groups().len());
    for group in stream.groups().iter() {
        reply.map(6);
        reply.bulk(b"name");
        reply.bulk(group.name());
        reply.bulk(b"consumers");
        reply.count(group.consumer_count());
        reply.bulk(b"pending");
        reply.count(group.pending_len());
        write_progress(reply, stream.log(), group);
    }
    Ok(())
}

/// The progress of a group: three fields.
fn write_progress(reply: &mut Reply<'_>, log: &Log, group: &Group) {
    reply.bulk(b"last-delivered-id");
    write_id(reply, group.last);
    for (name, number) in [("entries-read", group.read), ("lag", log.lag(group.last, group.read))] {
        reply.bulk(name.as_bytes());
        match number {
            Some(number) => reply.integer(number),
            None => reply.null(),
        }
    }
}

fn consumers(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, name) = (args.key()?, args.word()?);
    let now_ms = cx.now_ms();
    let (stream, reply) = cx.read::<Stream>(key)?;
    let stream = stream.ok_or(Error::NoSuchKey)?;
    let group = stream.group(name).ok_or_else(|| StreamError::NoGroup { group: shown(name), key: shown(key) })?;
    reply.array(group.consumer_count());
    for (_, consumer) in group.consumers() {
        let inactive_ms = consumer.active_ms.map_or(-1, |active_ms| now_ms.wrapping_sub(active_ms));
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(consumer.name());
        reply.bulk(b"pending");
        reply.count(consumer.pending_len());
        reply.bulk(b"idle");
        reply.integer(now_ms.wrapping_sub(consumer.seen_ms).max(0));
        reply.bulk(b"inactive");
        reply.integer(inactive_ms);
    }
    Ok(())
}

/// The default number of entries of each kind in a full report.
const DEFAULT_COUNT: usize = 10;

/// The options are parsed after the stream was found.
fn stream(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let subcommand: String = shown(args.previous()).chars().take(128).collect();
    let (stream, reply) = cx.read::<Stream>(args.key()?)?;
    let stream = stream.ok_or(Error::NoSuchKey)?;
    match full_count(&mut args, subcommand)? {
        None => {
            reply.map(10);
            write_counters(reply, stream.log());
            write_ends(reply, stream);
        }
        Some(most) => {
            reply.map(9);
            write_counters(reply, stream.log());
            write_in_full(reply, stream, most);
        }
    }
    Ok(())
}

/// The number of entries of a full report; `None` for a summary.
fn full_count(args: &mut Args<'_>, subcommand: String) -> Result<Option<usize>, Error> {
    let is_full = args.peek().is_some_and(|word| says(word, "FULL"));
    match args.left() {
        0 => Ok(None),
        1 if is_full => Ok(Some(DEFAULT_COUNT)),
        3 if is_full => {
            args.word()?;
            if !args.take("COUNT") {
                return Err(Error::SubcommandOrArity { container: "XINFO", subcommand });
            }
            Ok(Some(usize::try_from(args.integer()?).map_or(DEFAULT_COUNT, all_if_zero)))
        }
        _ => Err(Error::SubcommandOrArity { container: "XINFO", subcommand }),
    }
}

fn write_counters(reply: &mut Reply<'_>, log: &Log) {
    reply.bulk(b"length");
    reply.count(log.len());
    reply.bulk(b"radix-tree-keys");
    reply.count(log.block_count());
    reply.bulk(b"radix-tree-nodes");
    reply.count(radix_nodes(log));
    reply.bulk(b"last-generated-id");
    write_id(reply, log.last());
    reply.bulk(b"max-deleted-entry-id");
    write_id(reply, log.max_deleted());
    reply.bulk(b"entries-added");
    reply.integer(log.added().cast_signed());
    reply.bulk(b"recorded-first-entry-id");
    write_id(reply, log.first());
}

fn write_ends(reply: &mut Reply<'_>, stream: &Stream) {
    reply.bulk(b"groups");
    reply.count(stream.groups().len());
    for (name, entry) in [("first-entry", stream.log().first_entry()), ("last-entry", stream.log().last_entry())] {
        reply.bulk(name.as_bytes());
        match entry {
            Some(entry) => write_entry(reply, &entry),
            None => reply.null(),
        }
    }
}

fn write_in_full(reply: &mut Reply<'_>, stream: &Stream, most: usize) {
    reply.bulk(b"entries");
    write_entries(reply, stream.log().range(Id::MIN, Id::MAX).take(most));
    reply.bulk(b"groups");
    reply.array(stream.groups().len());
    for group in stream.groups().iter() {
        reply.map(7);
        reply.bulk(b"name");
        reply.bulk(group.name());
        write_progress(reply, stream.log(), group);
        write_all_pending(reply, group, most);
        reply.bulk(b"consumers");
        reply.array(group.consumer_count());
        for (number, consumer) in group.consumers() {
            write_consumer(reply, group, number, consumer, most);
        }
    }
}

fn write_all_pending(reply: &mut Reply<'_>, group: &Group, most: usize) {
    reply.bulk(b"pel-count");
    reply.count(group.pending_len());
    reply.bulk(b"pending");
    reply.array(group.pending_len().min(most));
    for pending in group.pending_from(Id::MIN).take(most) {
        reply.array(4);
        write_id(reply, pending.id());
        reply.bulk(group.consumer(pending.consumer()).name());
        reply.integer(pending.delivered_ms);
        reply.integer(pending.times.cast_signed());
    }
}

fn write_consumer(reply: &mut Reply<'_>, group: &Group, number: ConsumerNumber, consumer: &Consumer, most: usize) {
    reply.map(5);
    reply.bulk(b"name");
    reply.bulk(consumer.name());
    reply.bulk(b"seen-time");
    reply.integer(consumer.seen_ms);
    reply.bulk(b"active-time");
    reply.integer(consumer.active_ms.unwrap_or(-1));
    reply.bulk(b"pel-count");
    reply.count(consumer.pending_len());
    reply.bulk(b"pending");
    reply.array(consumer.pending_len().min(most));
    for pending in group.pending_of(number, Id::MIN).take(most) {
        reply.array(3);
        write_id(reply, pending.id());
        reply.integer(pending.delivered_ms);
        reply.integer(pending.times.cast_signed());
    }
}

/// The number of nodes in a radix tree of the blocks' ids, where a run of bytes without a branch is one node.
fn radix_nodes(log: &Log) -> usize {
    nodes_of(log.blocks().map(|block| u128::from(block.first().ms) << 64 | u128::from(block.first().seq)))
}

/// The number of nodes in a radix tree of keys that ascend: an end for each key, a fork where keys begin to differ, and
/// a run before each of them that is not directly behind a fork. One pass over the keys finds them: a fork is complete
/// once two keys differ at a byte before it.
fn nodes_of(mut keys: impl Iterator<Item = u128>) -> usize {
    /// The position of an end: behind the last byte.
    const END: u32 = 1 << size_of::<u128>();
    let Some(mut latest) = keys.next() else { return 1 };
    // Each bit is the position of a fork above the latest key.
    let (mut forks, mut nodes) = (0_u32, 0);
    let mut count = |complete: u32, forks: u32| {
        let behind_forks = forks << 1 | 1;
        nodes += complete.count_ones() + (complete & !behind_forks).count_ones();
    };
    for key in keys {
        let fork = 1 << ((latest ^ key).leading_zeros() / u8::BITS);
        forks |= fork;
        let complete = forks & !(fork | (fork - 1));
        count(complete | END, forks);
        forks ^= complete;
        latest = key;
    }
    count(forks | END, forks);
    nodes as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nodes(keys: &[u128]) -> usize {
        nodes_of(keys.iter().copied())
    }

    #[test]
    fn a_radix_tree_branches_where_ids_differ() {
        assert_eq!(nodes(&[]), 1, "the root");
        assert_eq!(nodes(&[7]), 2, "a run and its end");
        assert_eq!(nodes(&[7, 8]), 4, "a run, a fork and two ends");
        assert_eq!(nodes(&[7, 8, 0x107]), 7, "a run, a fork, a run, an end, a fork and two ends");
    }

    /// The nodes of the subtree of `keys`, which share their first `depth` bytes.
    fn nodes_from(keys: &[[u8; 16]], depth: usize) -> usize {
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return 1 };
        let fork = (depth..16).find(|&at| first[at] != last[at]).unwrap_or(16);
        let run = usize::from(fork > depth);
        if fork == 16 {
            return run + 1;
        }
        let parts = keys.chunk_by(|one, next| one[fork] == next[fork]);
        run + 1 + parts.map(|part| nodes_from(part, fork + 1)).sum::<usize>()
    }

    proptest! {
        #[test]
        fn one_pass_counts_the_nodes_that_a_walk_down_the_tree_counts(
            words in prop::collection::btree_set((0_u128..4, 0_u32..128, 0_u128..300), 0..40)
        ) {
            let mut keys: Vec<u128> = words.into_iter().map(|(high, shift, low)| high << shift | low).collect();
            keys.sort_unstable();
            keys.dedup();
            let bytes: Vec<[u8; 16]> = keys.iter().map(|key| key.to_be_bytes()).collect();
            prop_assert_eq!(nodes(&keys), nodes_from(&bytes, 0));
        }
    }
}
