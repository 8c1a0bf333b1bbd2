//! HRANDFIELD: random fields.
//!
//! Randomness comes from the engine's seeded generator, from which each call draws once. Many distinct fields are
//! chosen in one pass over all fields (selection sampling), few by drawing until enough different ones have come.
//! Allocations depend on the size of the hash, never on the requested count.
//!
//! Source: D. E. Knuth, "The Art of Computer Programming", vol. 2, 3.4.2.

use super::fields;
use crate::commands::random::{self, Wanted};
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::resp::{Protocol, Reply};
use crate::value::hash::{Entry, Fields};
use fastrand::Rng;
use std::collections::BTreeSet;

pub(super) const HRANDFIELD: Command = Command {
    name: "HRANDFIELD",
    syntax: "key options:[count [WITHVALUES]]",
    family: Family::Hash,
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "6.2.0",
    cost: "O(N), N being the fields answered.",
    about: "Returns random fields: distinct ones, or with a negative count possibly repeated ones.",
    tips: &["nondeterministic_output"],
    run: hrandfield,
    ..Command::ROW
};

/// If at least one in this many fields is requested, one pass over all fields chooses them.
const DENSE: usize = 8;

fn hrandfield(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let wanted = if args.is_empty() { None } else { Some(Wanted::parse(&mut args, "WITHVALUES")?) };
    let mut generator = Rng::with_seed(cx.random());
    let most_bytes = cx.reply_room();
    operations::expire_fields(cx, key, |removal, hash, due_ms| removal.due(hash, due_ms, usize::MAX));
    let (fields, reply) = fields(cx, key)?;
    match (fields, wanted) {
        (None, None) => reply.null(),
        (Some(fields), None) => super::write_or_null(reply, fields.random(&mut generator).map(|entry| entry.field)),
        (Some(fields), Some(Wanted { count, in_pairs })) => match usize::try_from(count) {
            Ok(count) => distinct(reply, fields, count, in_pairs, &mut generator),
            Err(_) => {
                let header = |reply: &mut Reply<'_>, count| write_header(reply, count, in_pairs);
                return random::repeat(reply, count.unsigned_abs(), most_bytes, header, |reply| {
                    fields.random(&mut generator).into_iter().for_each(|entry| write_entry(reply, entry, in_pairs));
                });
            }
        },
        (None, Some(_)) => reply.array(0),
    }
    Ok(())
}

fn write_header(reply: &mut Reply<'_>, count: usize, with_values: bool) {
    let is_flat = with_values && reply.protocol() == Protocol::Resp2;
    reply.array(if is_flat { count.saturating_mul(2) } else { count });
}

fn write_entry(reply: &mut Reply<'_>, entry: Entry<'_>, with_values: bool) {
    if with_values && reply.protocol() == Protocol::Resp3 {
        reply.array(2);
    }
    reply.item(entry.field);
    if with_values {
        reply.item(entry.value);
    }
}

/// Replies with `count` distinct fields; with all of them if there are not more.
fn distinct(reply: &mut Reply<'_>, fields: Fields<'_>, count: usize, with_values: bool, generator: &mut Rng) {
    let len = fields.len();
    let count = count.min(len);
    write_header(reply, count, with_values);
    if count > len / DENSE {
        let mut left = count;
        for (passed, entry) in fields.iter().enumerate() {
            if generator.usize(..len - passed) < left {
                left -= 1;
                write_entry(reply, entry, with_values);
            }
        }
        return;
    }
    let mut chosen = BTreeSet::new();
    while chosen.len() < count
        && let Some(entry) = fields.random(generator)
    {
        if chosen.insert(entry.field.to_cow()) {
            write_entry(reply, entry, with_values);
        }
    }
}
