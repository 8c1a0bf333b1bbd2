//! Whether keys are there, and what type they hold.

use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};

pub(super) const EXISTS: Command = Command {
    name: "EXISTS",
    syntax: "key [key ...]",
    family: Family::Generic,
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::all(KeyFlags::RO)],
    history: &[Change::says("3.0.3", "Takes several keys.")],
    cost: "O(N) where N is the number of keys",
    about: "Answers how many of the keys are there; one named twice counts twice.",
    tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
    run: exists,
    ..Command::ROW
};

fn exists(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let found = args.rest().filter(|key| cx.glance(key).is_some()).count();
    cx.reply().count(found);
    Ok(())
}

pub(super) const TOUCH: Command = Command {
    name: "TOUCH",
    since: "3.2.1",
    history: &[],
    about: "Counts keys as used now and answers how many are there.",
    run: touch,
    ..EXISTS
};

fn touch(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let found = args.rest().filter(|key| cx.touch(key)).count();
    cx.reply().count(found);
    Ok(())
}

pub(super) const TYPE: Command = Command {
    name: "TYPE",
    syntax: "key",
    family: Family::Generic,
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO)],
    about: "Answers the type of what a key holds, or none.",
    run: type_of,
    ..Command::ROW
};

fn type_of(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = cx.glance(args.key()?).map_or("none", |key| key.view().type_name());
    cx.reply().simple(name);
    Ok(())
}
