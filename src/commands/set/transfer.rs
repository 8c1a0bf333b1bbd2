//! SMOVE: moves a member from one set to another.

use super::add::ADDED;
use super::remove::REMOVED;
use crate::engine::{
    Args, Arity, Changed, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Lookup, Missing, Peek,
};
use crate::value::Set;

pub(super) const SMOVE: Command = Command {
    name: "SMOVE",
    syntax: "source destination member",
    family: Family::Set,
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[
        KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::DELETE)),
        KeySpec::at(2, KeyFlags::RW.and(KeyFlags::INSERT)),
    ],
    about: "Moves a member from one set to another, which is created if it does not exist.",
    run: smove,
    ..Command::ROW
};

fn smove(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (source, destination, member) = (args.key()?, args.key()?, args.word()?);
    let has_member = may_move(cx, source, destination, member);
    if matches!(has_member, Ok(true)) && source != destination {
        carry(cx, source, destination, member)?;
    } else {
        // Redis looks at both: one that has expired is removed, others count as used.
        [source, destination].into_iter().for_each(|key| _ = cx.lookup(key, Lookup::WRITE));
    }
    cx.reply().integer(i64::from(has_member?));
    Ok(())
}

/// Whether the source has the member. Without a source the type of the destination does not matter.
fn may_move(cx: &mut Ctx<'_>, source: &[u8], destination: &[u8], member: &[u8]) -> Result<bool, Error> {
    let Some(has_member) = holds(cx, source, member)? else { return Ok(false) };
    holds(cx, destination, member)?;
    Ok(has_member)
}

/// Whether the set at `key` has a member; `None` if the key does not exist.
fn holds(cx: &mut Ctx<'_>, key: &[u8], member: &[u8]) -> Result<Option<bool>, Error> {
    let set = cx.lookup(key, Lookup::NO_TRACE).map(Peek::read::<Set>).transpose()?;
    Ok(set.map(|set| set.contains(member)))
}

fn carry(cx: &mut Ctx<'_>, source: &[u8], destination: &[u8], member: &[u8]) -> Result<(), Error> {
    let limits = cx.settings().packed_set;
    cx.update(source, Missing::Skip, REMOVED, |set: &mut Set, _| Ok(Changed::by(usize::from(set.remove(member)), ())))?;
    cx.update(destination, Missing::Create, ADDED, |set: &mut Set, _| {
        if set.is_empty() {
            *set = Set::for_members(member, 1, &limits);
        }
        Ok(Changed::by(usize::from(set.insert(member, &limits)), ()))
    })?;
    Ok(())
}
