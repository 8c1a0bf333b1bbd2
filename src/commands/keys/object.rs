//! OBJECT: how a key's value is kept, and how long it has not been used.

use crate::commands::help;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Now, Peek, lru};
use crate::resp::Reply;
use crate::value::{TextView, View};
use std::ops::Range;

pub(super) const OBJECT: Command = Command {
    name: "OBJECT",
    family: Family::Generic,
    arity: Arity::AtLeast(2),
    since: "2.2.3",
    cost: "Depends on subcommand.",
    about: "Tells how values are kept.",
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
    about: "Answers the form that a key's value is kept in.",
    tips: &["nondeterministic_output"],
    run: |cx, args| inspect(cx, args, |reply, key, _| reply.bulk(key.view().encoding().as_bytes())),
    ..Command::ROW
};

const IDLETIME: Command = Command {
    name: "IDLETIME",
    about: "Answers for how many seconds a key has not been used.",
    run: idletime,
    ..ENCODING
};

const REFCOUNT: Command = Command {
    name: "REFCOUNT",
    about: "Answers how many refer to a key's value: one, except for small numbers, which Redis shares.",
    run: refcount,
    ..ENCODING
};

const FREQ: Command = Command {
    name: "FREQ",
    since: "4.0.0",
    about: "Answers how often a key is used, as a counter that grows ever more slowly; only under an LFU policy.",
    run: freq,
    ..ENCODING
};

/// Has `write` tell about the key, or answers null where there is none.
fn inspect(cx: &mut Ctx<'_>, mut args: Args<'_>, write: fn(&mut Reply<'_>, Peek<'_>, Now)) -> Result<(), Error> {
    let now = cx.now();
    let (key, reply) = cx.inspect(args.key()?);
    match key {
        Some(key) => write(reply, key, now),
        None => reply.null(),
    }
    Ok(())
}

/// The numbers of which Redis keeps one object each for all keys, and the count it gives those.
const SHARED_NUMBERS: Range<i64> = 0..10_000;
const SHARED_REFERENCES: i64 = i32::MAX as i64;

/// Redis shares no number while it must tell for each key when or how often that was used.
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

/// Tells that the policy in force does not know it; of a key that is not there, that it is not.
fn refuse_for(cx: &mut Ctx<'_>, mut args: Args<'_>, error: Error) -> Result<(), Error> {
    if cx.inspect(args.key()?).0.is_some() {
        return Err(error);
    }
    cx.reply().null();
    Ok(())
}
