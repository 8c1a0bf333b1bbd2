//! OBJECT: the encoding of a key's value, and when or how often it was accessed.

use crate::commands::help;
use crate::engine::state::lru;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Now, Peek};
use crate::resp::Reply;
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
    run: |cx, args| inspect(cx, args, |reply, key, _| reply.bulk(key.view().encoding().as_bytes())),
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

/// Lets `write` report on the key, or replies null if it does not exist.
fn inspect(cx: &mut Ctx<'_>, mut args: Args<'_>, write: fn(&mut Reply<'_>, Peek<'_>, Now)) -> Result<(), Error> {
    let now = cx.now();
    let (key, reply) = cx.inspect(args.key()?);
    match key {
        Some(key) => write(reply, key, now),
        None => reply.null(),
    }
    Ok(())
}

/// The numbers for which Redis shares one object among all keys, and the reference count that it reports for those.
const SHARED_NUMBERS: Range<i64> = 0..10_000;
const SHARED_REFERENCES: i64 = i32::MAX as i64;

/// Redis shares no numbers while it must store for each key when or how often it was accessed.
fn refcount(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    if cx.settings().max_memory_bytes > 0 && cx.settings().policy.goes_by_use() {
        return inspect(cx, args, |reply, _, _| reply.integer(1));
    }
    inspect(cx, args, |reply, key, _| reply.integer(references(key.view())))
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
    inspect(cx, args, |reply, key, now| reply.integer(lru::idle_s(key.access(), now)))
}

fn freq(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if !cx.settings().policy.counts_uses() {
        return refuse_for(cx, args, Error::NoLfuPolicy);
    }
    let (now, decay_minutes) = (cx.now(), cx.settings().lfu_decay_minutes);
    let (key, reply) = cx.inspect(args.key()?);
    match key {
        Some(key) => reply.integer(lru::frequency(key.access(), now, decay_minutes).into()),
        None => reply.null(),
    }
    Ok(())
}

/// Replies with `error` (the policy in force has no such value) if the key exists, and with null if not.
fn refuse_for(cx: &mut Ctx<'_>, mut args: Args<'_>, error: Error) -> Result<(), Error> {
    if cx.inspect(args.key()?).0.is_some() {
        return Err(error);
    }
    cx.reply().null();
    Ok(())
}
