//! HSCAN: iterates over the fields of a hash.

use super::fields;
use crate::commands::scanning::{self, Options, Scanned};
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};

pub(super) const HSCAN: Command = Command {
    name: "HSCAN",
    syntax: "key cursor [MATCH pattern] [COUNT count] [NOVALUES]",
    family: Family::Hash,
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "2.8.0",
    cost: "O(1) for each step, O(N) for the whole walk, N being the fields of the hash.",
    about: "Iterates over the fields and values of a hash, with a cursor.",
    tips: &["nondeterministic_output"],
    run: hscan,
    ..Command::ROW
};

/// Redis checks the options only if the hash exists, and so do we.
fn hscan(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let cursor = scanning::cursor(&mut args)?;
    let (fields, reply) = fields(cx, key)?;
    let (mut found, mut next, mut with_values) = (Vec::new(), 0, true);
    if let Some(fields) = fields {
        let options = Options::parse(&mut args, Scanned::Hash)?;
        with_values = !options.no_values;
        let mut scratch = Vec::new();
        next = fields.scan(cursor, options.count, |entry| {
            if options.admits(entry.field.as_bytes(&mut scratch)) {
                found.push(entry);
            }
        });
    }
    reply.array(2);
    scanning::write_cursor(reply, next);
    reply.array(if with_values { found.len() * 2 } else { found.len() });
    for entry in found {
        reply.item(entry.field);
        if with_values {
            reply.item(entry.value);
        }
    }
    Ok(())
}
