//! XDEL: deletes entries by id.

use super::ids;
use crate::engine::{
    Args, Arity, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Lookup, Missing, Peek,
};
use crate::value::Stream;

pub(super) const XDEL: Command = Command {
    name: "XDEL",
    syntax: "key id [id ...]",
    family: Family::Stream,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::DELETE))],
    since: "5.0.0",
    cost: "O(1) for each entry, whatever the length of the stream.",
    about: "Deletes entries of a stream, and returns how many existed.",
    run: xdel,
    ..Command::ROW
};

/// The ids are parsed last: for a missing stream or another type, no word is an invalid id.
fn xdel(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    if cx.lookup(key, Lookup::WRITE).map(Peek::read::<Stream>).transpose()?.is_none() {
        cx.reply().integer(0);
        return Ok(());
    }
    let ids = ids(&mut args)?;
    let deleted = cx.update(key, Missing::Skip, Event::stream("xdel"), |stream: &mut Stream, _| {
        let deleted = ids.iter().filter(|id| stream.log_mut().delete(**id)).count();
        Ok(Changed::by(deleted, deleted))
    })?;
    cx.reply().count(deleted.unwrap_or(0));
    Ok(())
}
