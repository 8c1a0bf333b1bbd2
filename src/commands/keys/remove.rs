//! DEL and UNLINK: delete keys. In Redis they differ in where the memory is freed. Here both free large values in the
//! background, so neither delays other clients; they differ in what INFO counts as `lazyfreed_objects`.

use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Lookup};
use crate::value::View;
use crate::value::stream::Group;

pub(super) const DEL: Command = Command {
    name: "DEL",
    syntax: "key [key ...]",
    family: Family::Generic,
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE,
    keys: &[KeySpec::all(KeyFlags::RM.and(KeyFlags::DELETE))],
    cost: "O(N) where N is the number of keys",
    about: "Deletes keys and returns how many existed.",
    tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
    run: remove,
    ..Command::ROW
};

pub(super) const UNLINK: Command = Command {
    name: "UNLINK",
    flags: Flags::WRITE.and(Flags::FAST),
    since: "4.0.0",
    about: "Deletes keys, frees their memory in the background, and returns how many existed.",
    run: unlink,
    ..DEL
};

/// Redis frees values with more allocations than this in the background.
const MANY_ALLOCATIONS: usize = 64;

fn unlink(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let mut removed = 0;
    operations::each_key(cx, args.rest(), |cx, key| {
        let is_large =
            cx.lookup(key, Lookup::NO_TRACE).is_some_and(|found| allocations_of(found.view()) > MANY_ALLOCATIONS);
        if cx.remove(key, Event::DEL) {
            removed += 1;
            cx.stats_mut().freed_lazily += u64::from(is_large);
        }
    });
    cx.reply().count(removed);
    Ok(())
}

/// The approximate number of allocations of a value in Redis, by its encoding there.
fn allocations_of(view: View<'_>) -> usize {
    match view {
        View::List(list) if view.encoding() == "quicklist" => list.nodes().len(),
        View::Set(set) if view.encoding() == "hashtable" => set.len(),
        View::Zset(zset) if view.encoding() == "skiplist" => zset.len(),
        View::Hash(hash) if view.encoding() == "hashtable" => hash.len(),
        View::Stream(stream) => {
            let pending = stream.groups().iter().next().map_or(0, Group::pending_len);
            stream.log().block_count() + stream.groups().len() * (1 + pending)
        }
        _ => 1,
    }
}

fn remove(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let mut removed = 0;
    operations::each_key(cx, args.rest(), |cx, key| removed += usize::from(cx.remove(key, Event::DEL)));
    cx.reply().count(removed);
    Ok(())
}
