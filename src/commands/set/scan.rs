//! SSCAN: iterates over the members of a set.

use crate::commands::scanning::{self, Options, Scanned};
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::value::Set;

pub(super) const SSCAN: Command = Command {
    name: "SSCAN",
    syntax: "key cursor [MATCH pattern] [COUNT count]",
    family: Family::Set,
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "2.8.0",
    cost: "O(1) for each step, O(N) for the whole walk, N being the members of the set.",
    about: "Iterates over the members of a set, with a cursor.",
    tips: &["nondeterministic_output"],
    run: sscan,
    ..Command::ROW
};

/// Redis checks the options only if the set exists, and so do we.
fn sscan(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let cursor = scanning::cursor(&mut args)?;
    let (set, reply) = cx.read::<Set>(key)?;
    let (mut found, mut scratch) = (Vec::new(), Vec::new());
    let mut next = 0;
    if let Some(set) = set {
        let options = Options::parse(&mut args, Scanned::Members)?;
        next = set.scan(cursor, options.count, |member| {
            if options.admits(member.as_bytes(&mut scratch)) {
                found.push(member);
            }
        });
    }
    reply.array(2);
    scanning::write_cursor(reply, next);
    reply.array(found.len());
    found.into_iter().for_each(|member| reply.item(member));
    Ok(())
}
