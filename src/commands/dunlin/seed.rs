//! DUNLIN SEED: makes random choices repeatable.

use super::ROW;
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Command, Ctx, Error};

pub(super) const SEED: Command = Command {
    name: "SEED",
    syntax: "seed",
    arity: Arity::Exactly(3),
    cost: "O(N), N being the keys",
    about: "Seeds the random generator: after an equal seed, equal commands make equal choices.",
    run: seed,
    ..ROW
};

fn seed(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let seed = args.integer()?;
    operations::reseed(cx, seed.cast_unsigned());
    cx.reply().ok();
    Ok(())
}
