//! SRANDMEMBER: random members.
//!
//! Randomness comes from the engine's seeded generator, from which each call draws once. Allocations depend on the size
//! of the set, never on the requested count.

use crate::commands::random;
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
    about: "Returns random members: distinct ones, or with a negative count possibly repeated ones.",
    tips: &["nondeterministic_output"],
    run: srandmember,
    ..Command::ROW
};

fn srandmember(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    if args.left() > 1 {
        return Err(Error::Syntax);
    }
    let count = if args.is_empty() { None } else { Some(random::count(&mut args)?) };
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
            Err(_) => {
                let header = |reply: &mut Reply<'_>, count| reply.array(count);
                return random::repeat(reply, count.unsigned_abs(), most_bytes, header, |reply| {
                    set.random(&mut generator).into_iter().for_each(|member| reply.item(member));
                });
            }
        },
    }
    Ok(())
}

fn distinct(reply: &mut Reply<'_>, set: &Set, count: usize, generator: &mut Rng) {
    if count >= set.len() {
        reply.array(set.len());
        return set.iter().for_each(|member| reply.item(member));
    }
    reply.array(count);
    set.sample(count, generator, |member| reply.item(member));
}
