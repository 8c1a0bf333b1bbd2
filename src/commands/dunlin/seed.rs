//! Chance that repeats itself.

use super::ROW;
use crate::engine::{Args, Arity, Command, Ctx, Error};

pub(super) const SEED: Command = Command {
    name: "SEED",
    syntax: "seed",
    arity: Arity::Exactly(3),
    cost: "O(N), N being the keys",
    about: "Begins chance anew: after the same seed, the same commands choose the same, in the same order.",
    run: seed,
    ..ROW
};

fn seed(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let seed = args.integer()?;
    cx.engine().seed(seed.cast_unsigned());
    cx.reply().ok();
    Ok(())
}
