//! OBJECT: the encoding of a key's value, and when or how often it was accessed.

use crate::commands::help;
use crate::engine::state::lru;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Lookup, Peek};
use crate::value::{TextView, View};
use std::ops::Range;

pub(super) const OBJECT: Command = Command {
    name: "OBJECT",
    family: Family::Generic,
    arity: Arity::AtLeast(2),
    since: "2.2.3",
    cost: "Depends on subcommand.",
    about: "A container for commands about values.",
    subcommands: &[ENCODING, FREQ, IDLETIME, REFCOUNT, help::row(Family::Generic, "6.2.0")],
    ..Command::ROW
};

const ENCODING: Command = Command {
    name: "ENCODING",
    syntax: "key",
    family: Family::Generic,
    arity: Arity::Exactly(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::at(2, KeyFlags::RO)],
    since: "2.2.3",
    about: "Returns the encoding of a key's value.",
    tips: &["nondeterministic_output"],
    run: encoding,
    ..Command::ROW
};

const IDLETIME: Command = Command {
    name: "IDLETIME",
    about: "Returns the seconds since a key was last accessed.",
    run: idletime,
    ..ENCODING
};

const REFCOUNT: Command = Command {
    name: "REFCOUNT",
    about: "Returns the reference count of a key's value: one, except for small numbers, which Redis shares.",
    run: refcount,
    ..ENCODING
};

const FREQ: Command = Command {
    name: "FREQ",
    since: "4.0.0",
    about: "Returns the logarithmic access counter of a key; only with an LFU policy.",
    run: freq,
    ..ENCODING
};

/// The lookup flags of these subcommands: they count a hit or a miss, but update no access time and send no keymiss
/// event.
const INSPECT: Lookup = Lookup::NO_TOUCH.and(Lookup::NO_NOTIFY);

fn encoding(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = cx.lookup(args.key()?, INSPECT).map(|key| key.view().encoding());
    cx.reply().bulk_or_null(name.map(str::as_bytes));
    Ok(())
}

/// Replies with the number that `number` reads from the key, or null if the key does not exist.
fn reply_with_number(cx: &mut Ctx<'_>, mut args: Args<'_>, number: impl FnOnce(Peek<'_>) -> i64) -> Result<(), Error> {
    match cx.lookup(args.key()?, INSPECT).map(number) {
        Some(number) => cx.reply().integer(number),
        None => cx.reply().null(),
    }
    Ok(())
}

/// The numbers for which Redis shares one object among all keys, and the reference count that it reports for those.
const SHARED_NUMBERS: Range<i64> = 0..10_000;
const SHARED_REFERENCES: i64 = i32::MAX as i64;

/// Redis shares no numbers while it must store for each key when or how often it was accessed.
fn refcount(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    if cx.settings().max_memory_bytes > 0 && cx.settings().policy.depends_on_use() {
        return reply_with_number(cx, args, |_| 1);
    }
    reply_with_number(cx, args, |key| references(key.view()))
}

fn references(view: View<'_>) -> i64 {
    match view {
        View::Text(TextView::Int(number)) if SHARED_NUMBERS.contains(&number) => SHARED_REFERENCES,
        _ => 1,
    }
}

fn idletime(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    if cx.settings().policy.counts_uses() {
        return refuse_for(cx, args, Error::LfuPolicy);
    }
    let now = cx.now();
    reply_with_number(cx, args, |key| lru::idle_s(key.access(), now))
}

fn freq(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    if !cx.settings().policy.counts_uses() {
        return refuse_for(cx, args, Error::NoLfuPolicy);
    }
    let (now, decay_minutes) = (cx.now(), cx.settings().lfu.decay_minutes);
    reply_with_number(cx, args, |key| lru::frequency(key.access(), now, decay_minutes).into())
}

/// Replies with `error` (the policy in force has no such value) if the key exists, and with null if not.
fn refuse_for(cx: &mut Ctx<'_>, mut args: Args<'_>, error: Error) -> Result<(), Error> {
    if cx.lookup(args.key()?, INSPECT).is_some() {
        return Err(error);
    }
    cx.reply().null();
    Ok(())
}
