//! HRANDFIELD: fields chosen by chance.
//!
//! The chance is the engine's seeded generator, drawn from once per call. Many distinct fields are chosen by walking
//! over all of them (selection sampling), few by drawing until enough different ones came. Nothing is allocated by the
//! count that was asked for, only by what the hash has.
//!
//! Source: D. E. Knuth, "The Art of Computer Programming", vol. 2, 3.4.2.

use super::fields;
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
    about: "Answers fields chosen by chance: distinct ones, or with a negative count some perhaps repeatedly.",
    tips: &["nondeterministic_output"],
    run: hrandfield,
    ..Command::ROW
};

/// What the shortest field takes in a reply, in bytes: `$0`, two line ends.
const LEAST_BYTES: usize = 6;
/// From one in how many fields on all of them are walked over.
const DENSE: usize = 8;

fn hrandfield(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let wanted = if args.is_empty() { None } else { Some(Wanted::parse(&mut args)?) };
    let mut rng = Rng::with_seed(cx.random());
    let most_bytes = cx.reply_room();
    cx.meet_fields(key, |hash, now_ms| hash.remove_due(now_ms, usize::MAX));
    let (fields, reply) = fields(cx, key)?;
    match (fields, wanted) {
        (None, None) => reply.null(),
        (Some(fields), None) => super::write_or_null(reply, fields.random(&mut rng).map(|entry| entry.field)),
        (Some(fields), Some(wanted)) if wanted.count < 0 => {
            return repeated(reply, fields, wanted, &mut rng, most_bytes);
        }
        (Some(fields), Some(wanted)) => distinct(reply, fields, wanted, &mut rng),
        (None, Some(_)) => reply.array(0),
    }
    Ok(())
}

/// How many fields, and how to answer them.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// Never the least number: its size can be told.
    count: i64,
    with_values: bool,
}

impl Wanted {
    fn parse(args: &mut Args<'_>) -> Result<Wanted, Error> {
        let count = args.integer()?;
        if count == i64::MIN {
            return Err(Error::CountOutOfRange);
        }
        let with_values = args.take("WITHVALUES");
        args.end()?;
        if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
            return Err(Error::OutOfRange);
        }
        Ok(Wanted { count, with_values })
    }

    fn write_header(self, reply: &mut Reply<'_>, count: usize) {
        let is_flat = self.with_values && reply.protocol() == Protocol::Resp2;
        reply.array(if is_flat { count.saturating_mul(2) } else { count });
    }

    fn write_entry(self, reply: &mut Reply<'_>, entry: Entry<'_>) {
        if self.with_values && reply.protocol() == Protocol::Resp3 {
            reply.array(2);
        }
        reply.item(entry.field);
        if self.with_values {
            reply.item(entry.value);
        }
    }
}

/// Answers as many fields as the count is negative, each of them any. A reply longer than `most_bytes` is refused,
/// where Redis goes on until memory ends.
fn repeated(
    reply: &mut Reply<'_>,
    fields: Fields<'_>,
    wanted: Wanted,
    rng: &mut Rng,
    most_bytes: usize,
) -> Result<(), Error> {
    let count = usize::try_from(wanted.count.unsigned_abs()).map_err(|_| Error::ReplyTooLong)?;
    if count > most_bytes / LEAST_BYTES {
        return Err(Error::ReplyTooLong);
    }
    let start = reply.position();
    wanted.write_header(reply, count);
    for _ in 0..count {
        fields.random(rng).into_iter().for_each(|entry| wanted.write_entry(reply, entry));
        if reply.position() - start > most_bytes {
            return Err(Error::ReplyTooLong);
        }
    }
    Ok(())
}

/// Answers as many fields as the count says, each at most once; all of them if they are no more.
fn distinct(reply: &mut Reply<'_>, fields: Fields<'_>, wanted: Wanted, rng: &mut Rng) {
    let len = fields.len();
    let count = usize::try_from(wanted.count).unwrap_or(usize::MAX).min(len);
    wanted.write_header(reply, count);
    if count > len / DENSE {
        let mut left = count;
        for (passed, entry) in fields.iter().enumerate() {
            if rng.usize(..len - passed) < left {
                left -= 1;
                wanted.write_entry(reply, entry);
            }
        }
        return;
    }
    let mut chosen = BTreeSet::new();
    while chosen.len() < count
        && let Some(entry) = fields.random(rng)
    {
        if chosen.insert(entry.field.to_cow()) {
            wanted.write_entry(reply, entry);
        }
    }
}
