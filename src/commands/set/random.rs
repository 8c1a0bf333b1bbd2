//! SRANDMEMBER: members chosen by chance.
//!
//! The chance is the engine's seeded generator, drawn from once per call. Nothing is allocated by the count that was
//! asked for, only by what the set has.

use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::resp::Reply;
use crate::value::Set;
use fastrand::Rng;

pub(super) const SRANDMEMBER: Command = Command {
    name: "SRANDMEMBER",
    syntax: "key [count]",
    family: Family::Set,
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    history: &[Change::brings("2.6.0", &["count"])],
    cost: "O(1) for one, else O(N), N being the members answered.",
    about: "Answers members chosen by chance: distinct ones, or with a negative count some perhaps repeatedly.",
    tips: &["nondeterministic_output"],
    run: srandmember,
    ..Command::ROW
};

/// What the shortest member takes in a reply, in bytes: `$0`, two line ends.
const LEAST_BYTES: usize = 6;

fn srandmember(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let count = if args.is_empty() { None } else { Some(count(&mut args)?) };
    let mut generator = Rng::with_seed(cx.random());
    let most_bytes = cx.reply_room();
    let (set, reply) = cx.read::<Set>(key)?;
    match (set, count) {
        (None, None) => reply.null(),
        (None, Some(_)) => reply.array(0),
        (Some(set), None) => match set.random(&mut generator) {
            Some(member) => reply.item(member),
            None => reply.null(),
        },
        (Some(set), Some(count)) => match usize::try_from(count) {
            Ok(count) => distinct(reply, set, count, &mut generator),
            Err(_) => return repeated(reply, set, count.unsigned_abs(), &mut generator, most_bytes),
        },
    }
    Ok(())
}

/// How many members; never the least number, whose size cannot be told.
fn count(args: &mut Args<'_>) -> Result<i64, Error> {
    if args.left() > 1 {
        return Err(Error::Syntax);
    }
    let count = args.integer()?;
    if count == i64::MIN { Err(Error::CountOutOfRange) } else { Ok(count) }
}

fn distinct(reply: &mut Reply<'_>, set: &Set, count: usize, generator: &mut Rng) {
    if count >= set.len() {
        reply.array(set.len());
        return set.iter().for_each(|member| reply.item(member));
    }
    reply.array(count);
    set.sample(count, generator, |member| reply.item(member));
}

/// Answers `count` members, each of them any. A reply longer than `most_bytes` is refused, where Redis goes on until
/// memory ends.
fn repeated(reply: &mut Reply<'_>, set: &Set, count: u64, generator: &mut Rng, most_bytes: usize) -> Result<(), Error> {
    let count = usize::try_from(count).map_err(|_| Error::ReplyTooLong)?;
    if count > most_bytes / LEAST_BYTES {
        return Err(Error::ReplyTooLong);
    }
    let start = reply.position();
    reply.array(count);
    for _ in 0..count {
        set.random(generator).into_iter().for_each(|member| reply.item(member));
        if reply.position() - start > most_bytes {
            return Err(Error::ReplyTooLong);
        }
    }
    Ok(())
}
