//! MGET, MSET and MSETNX: several strings at once. Other clients see all changes of MSET or none.

use super::{SET_EVENT, put_word, write_text};
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Command, Ctx, Deadline, Error, Family, Flags, KeyFlags, KeySpec, Lookup};
use crate::value::View;

pub(super) const MGET: Command = Command {
    name: "MGET",
    syntax: "key [key ...]",
    family: Family::String,
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::all(KeyFlags::RO.and(KeyFlags::ACCESS))],
    cost: "O(N) where N is the number of keys",
    about: "Returns the string values of several keys; null for a key that is missing or of another type.",
    tips: &["request_policy:multi_shard"],
    run: mget,
    ..Command::ROW
};

fn mget(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let keys: Vec<&[u8]> = args.rest().collect();
    let (views, reply) = cx.views(&keys, |_| true);
    reply.array(views.len());
    for view in views {
        match view {
            Some(View::Text(text)) => write_text(reply, text),
            _ => reply.null(),
        }
    }
    Ok(())
}

pub(super) const MSET: Command = Command {
    name: "MSET",
    syntax: "key value [key value ...]",
    family: Family::String,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::range(1, -1, 2, KeyFlags::OW.and(KeyFlags::UPDATE))],
    since: "1.0.1",
    cost: "O(N) where N is the number of keys",
    about: "Sets the string values of several keys.",
    tips: &["request_policy:multi_shard", "response_policy:all_succeeded"],
    run: mset,
    ..Command::ROW
};

fn mset(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let pairs = pairs(&mut args, "mset")?;
    let mut values = pairs.iter().map(|(_, value)| *value);
    operations::each_key(cx, pairs.iter().map(|(key, _)| *key), |cx, key| {
        put_word(cx, &args, key, values.next().unwrap_or_default(), Deadline::Clear, SET_EVENT);
    });
    cx.reply().ok();
    Ok(())
}

pub(super) const MSETNX: Command = Command {
    name: "MSETNX",
    syntax: "key value [key value ...]",
    family: Family::String,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::range(1, -1, 2, KeyFlags::OW.and(KeyFlags::INSERT))],
    since: "1.0.1",
    cost: "O(N) where N is the number of keys",
    about: "Sets the string values of several keys only if none of them exists.",
    run: msetnx,
    ..Command::ROW
};

fn msetnx(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let pairs = pairs(&mut args, "msetnx")?;
    let all_missing = !pairs.iter().any(|(key, _)| cx.lookup(key, Lookup::WRITE).is_some());
    if all_missing {
        for (key, value) in pairs {
            put_word(cx, &args, key, value, Deadline::Clear, SET_EVENT);
        }
    }
    cx.reply().integer(i64::from(all_missing));
    Ok(())
}

/// A key and its value.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// All arguments, in pairs.
fn pairs<'a>(args: &mut Args<'a>, command: &str) -> Result<Vec<Pair<'a>>, Error> {
    if !args.left().is_multiple_of(2) {
        return Err(Error::WrongArity(command.to_owned()));
    }
    let mut pairs = Vec::with_capacity(args.left() / 2);
    while !args.is_empty() {
        pairs.push((args.key()?, args.word()?));
    }
    Ok(pairs)
}
