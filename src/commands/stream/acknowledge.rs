//! XACK: consumers acknowledge entries.

use super::ids;
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, MetadataChange};
use crate::value::Stream;

pub(super) const XACK: Command = Command {
    name: "XACK",
    syntax: "key group id [id ...]",
    family: Family::Stream,
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::UPDATE))],
    since: "5.0.0",
    cost: "O(1) for each id.",
    about: "Acknowledges pending entries of a group, and returns how many were pending.",
    run: xack,
    ..Command::ROW
};

/// The ids are parsed last: without the group, no word is an invalid id.
fn xack(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, group) = (args.key()?, args.word()?);
    let (stream, reply) = cx.read::<Stream>(key)?;
    if stream.and_then(|stream| stream.group(group)).is_none() {
        reply.integer(0);
        return Ok(());
    }
    let ids = ids(&mut args)?;
    let acknowledged = cx.update_metadata(key, |stream: &mut Stream, _| {
        let done = stream.edit_group(group, |_, group| ids.iter().filter(|id| group.acknowledge(**id)).count());
        Ok(MetadataChange::by(done.unwrap_or(0), None, done))
    })?;
    cx.reply().count(acknowledged.flatten().unwrap_or(0));
    Ok(())
}
