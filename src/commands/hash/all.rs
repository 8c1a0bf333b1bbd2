//! HGETALL, HKEYS and HVALS: read a whole hash.

use super::fields;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::resp::Reply;
use crate::value::hash::{Entry, Fields};

pub(super) const HGETALL: Command = Command {
    name: "HGETALL",
    syntax: "key",
    family: Family::Hash,
    arity: Arity::Exactly(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "2.0.0",
    cost: "O(N) where N is how many fields the hash has.",
    about: "Returns all fields of a hash with their values.",
    tips: &["nondeterministic_output_order"],
    run: |cx, args| reply_with_entries(cx, args, |reply, len| reply.map(len), write_both),
    ..Command::ROW
};

pub(super) const HKEYS: Command = Command {
    name: "HKEYS",
    about: "Returns all fields of a hash.",
    run: |cx, args| reply_with_entries(cx, args, |reply, len| reply.array(len), |reply, entry| reply.item(entry.field)),
    ..HGETALL
};

pub(super) const HVALS: Command = Command {
    name: "HVALS",
    about: "Returns the values of all fields of a hash.",
    run: |cx, args| reply_with_entries(cx, args, |reply, len| reply.array(len), |reply, entry| reply.item(entry.value)),
    ..HGETALL
};

fn write_both(reply: &mut Reply<'_>, entry: Entry<'_>) {
    reply.item(entry.field);
    reply.item(entry.value);
}

fn reply_with_entries(
    cx: &mut Ctx<'_>,
    mut args: Args<'_>,
    header: impl Fn(&mut Reply<'_>, usize),
    write: impl Fn(&mut Reply<'_>, Entry<'_>),
) -> Result<(), Error> {
    let (fields, reply) = fields(cx, args.key()?)?;
    header(reply, fields.map_or(0, Fields::len));
    fields.into_iter().flat_map(Fields::iter).for_each(|entry| write(reply, entry));
    Ok(())
}
