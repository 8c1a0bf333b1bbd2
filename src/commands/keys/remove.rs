//! Removing keys: DEL and UNLINK, which differ in Redis in where the memory is freed. Here both free what is large
//! elsewhere, so neither keeps anyone waiting.

use crate::engine::{Args, Arity, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec};

pub(super) const DEL: Command = Command {
    name: "DEL",
    syntax: "key [key ...]",
    family: Family::Generic,
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE,
    keys: &[KeySpec::all(KeyFlags::RM.and(KeyFlags::DELETE))],
    cost: "O(N) where N is the number of keys",
    about: "Removes keys and answers how many were there.",
    tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
    run: remove,
    ..Command::ROW
};

pub(super) const UNLINK: Command = Command {
    name: "UNLINK",
    flags: Flags::WRITE.and(Flags::FAST),
    since: "4.0.0",
    about: "Removes keys and frees their memory elsewhere; answers how many were there.",
    ..DEL
};

fn remove(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let removed = args.rest().filter(|key| cx.remove(key, Event::DEL)).count();
    cx.reply().count(removed);
    Ok(())
}
