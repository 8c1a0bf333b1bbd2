//! VRANDMEMBER: random elements.

use super::{READ, ROW, expect_arguments};
use crate::commands::random;
use crate::engine::{Args, Command, Ctx, Error, VectorSetError};
use crate::resp::Reply;
use crate::value::VectorSet;
use fastrand::Rng;

pub(super) const VRANDMEMBER: Command = Command {
    name: "VRANDMEMBER",
    syntax: "key [count]",
    flags: READ,
    cost: "O(N), N being the elements answered.",
    about: "Returns random elements: distinct ones, or with a negative count possibly repeated ones.",
    run: vrandmember,
    ..ROW
};

fn vrandmember(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    expect_arguments(cx, &args, |count| count == 1 || count == 2)?;
    let key = args.key()?;
    let count = if args.is_empty() { None } else { Some(args.integer().map_err(|_| VectorSetError::RandomCount)?) };
    if count == Some(0) {
        cx.reply().array(0);
        return Ok(());
    }
    let mut generator = Rng::with_seed(cx.random());
    let most_bytes = cx.reply_room();
    let (set, reply) = cx.read::<VectorSet>(key)?;
    match (set, count) {
        (None, None) => reply.null(),
        (None, Some(_)) => reply.array(0),
        (Some(set), None) => reply.bulk_or_null(set.random(&mut generator)),
        (Some(set), Some(count)) if count > 0 => {
            let names = set.sample(usize::try_from(count).unwrap_or(usize::MAX), &mut generator);
            reply.array(names.len());
            names.into_iter().for_each(|name| reply.bulk(name));
        }
        (Some(set), Some(count)) => {
            let header = |reply: &mut Reply<'_>, count| reply.array(count);
            return random::repeat(reply, count.unsigned_abs(), most_bytes, header, |reply| {
                reply.bulk_or_null(set.random(&mut generator));
            });
        }
    }
    Ok(())
}
