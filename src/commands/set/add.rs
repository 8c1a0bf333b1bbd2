//! SADD: adds members.

use crate::engine::{
    Args, Arity, Change, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Missing,
};
use crate::value::Set;

pub(super) const SADD: Command = Command {
    name: "SADD",
    syntax: "key member [member ...]",
    family: Family::Set,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::INSERT))],
    history: &[Change::says("2.4.0", "Takes several members.")],
    cost: "O(1) for each member.",
    about: "Adds members to a set, which is created if it does not exist.",
    run: sadd,
    ..Command::ROW
};

pub(super) const ADDED: Event = Event::set("sadd");

fn sadd(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let limits = cx.settings().packed_set;
    let added = cx.update(key, Missing::Create, ADDED, |set: &mut Set, _| {
        if set.is_empty() {
            *set = Set::for_members(args.peek().unwrap_or_default(), args.left(), &limits);
        } else {
            set.make_room(args.left(), &limits);
        }
        let added = args.rest().filter(|member| set.insert(member, &limits)).count();
        Ok(Changed::by(added, added))
    })?;
    cx.reply().count(added.unwrap_or(0));
    Ok(())
}
