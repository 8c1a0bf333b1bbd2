//! EXISTS, TOUCH and TYPE: whether keys exist, and their type.

use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Lookup};

pub(super) const EXISTS: Command = Command {
    name: "EXISTS",
    syntax: "key [key ...]",
    family: Family::Generic,
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::all(KeyFlags::RO)],
    history: &[Change::says("3.0.3", "Takes several keys.")],
    cost: "O(N) where N is the number of keys",
    about: "Returns the number of keys that exist; a key named twice counts twice.",
    tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
    run: exists,
    ..Command::ROW
};

fn exists(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    reply_number_found(cx, &args, Lookup::NO_TOUCH);
    Ok(())
}

pub(super) const TOUCH: Command = Command {
    name: "TOUCH",
    since: "3.2.1",
    history: &[],
    about: "Updates the access times of keys and returns how many exist.",
    run: touch,
    ..EXISTS
};

fn touch(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    reply_number_found(cx, &args, Lookup::FORCE_TOUCH);
    Ok(())
}

/// Looks up all keys that are left, and replies with the number of those that exist.
fn reply_number_found(cx: &mut Ctx<'_>, args: &Args<'_>, flags: Lookup) {
    let mut found = 0;
    operations::each_key(cx, args.rest(), |cx, key| found += usize::from(cx.lookup(key, flags).is_some()));
    cx.reply().count(found);
}

pub(super) const TYPE: Command = Command {
    name: "TYPE",
    syntax: "key",
    family: Family::Generic,
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO)],
    about: "Returns the type of a key's value, or none.",
    run: type_of,
    ..Command::ROW
};

fn type_of(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = cx.lookup(args.key()?, Lookup::NO_TOUCH).map_or("none", |key| key.view().type_name());
    cx.reply().simple(name);
    Ok(())
}
