//! SREM: removes members.

use crate::engine::{
    Args, Arity, Change, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Missing,
};
use crate::value::Set;

pub(super) const SREM: Command = Command {
    name: "SREM",
    syntax: "key member [member ...]",
    family: Family::Set,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::DELETE))],
    history: &[Change::says("2.4.0", "Takes several members.")],
    cost: "O(N), N being the members to be removed.",
    about: "Removes members from a set, and deletes the set with its last member.",
    run: srem,
    ..Command::ROW
};

pub(super) const REMOVED: Event = Event::set("srem");

fn srem(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let removed = cx.update(key, Missing::Skip, REMOVED, |set: &mut Set, _| {
        let removed = args.rest().filter(|member| set.remove(member)).count();
        Ok(Changed::by(removed, removed))
    })?;
    cx.reply().count(removed.unwrap_or(0));
    Ok(())
}
