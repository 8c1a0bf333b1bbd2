//! HDEL and HGETDEL: delete fields of a hash.

use super::expire_args::take_fields;
use super::{answer_and_change, check_type, remove_expired};
use crate::engine::exec::operations;
use crate::engine::{
    Args, Arity, Change, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Missing,
};
use crate::value::hash::Hash;

/// The event for deleted fields.
pub(super) const HDEL_EVENT: Event = Event::hash("hdel");

pub(super) const HDEL: Command = Command {
    name: "HDEL",
    syntax: "key field [field ...]",
    family: Family::Hash,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::DELETE))],
    since: "2.0.0",
    history: &[Change::says("2.4.0", "Takes several fields.")],
    cost: "O(N) where N is how many fields are removed.",
    about: "Deletes fields of a hash, and the hash with its last field.",
    run: hdel,
    ..Command::ROW
};

/// Counts expired fields that are still stored, as Redis does.
fn hdel(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let removed = cx.update(key, Missing::Skip, HDEL_EVENT, |hash: &mut Hash, _| {
        let removed = args.rest().filter(|field| hash.remove(field)).count();
        Ok(Changed::by(removed, removed))
    })?;
    cx.reply().count(removed.unwrap_or_default());
    Ok(())
}

pub(super) const HGETDEL: Command = Command {
    name: "HGETDEL",
    syntax: "key FIELDS numfields field [field ...]",
    arity: Arity::AtLeast(5),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::DELETE))],
    since: "8.0.0",
    history: &[],
    cost: "O(N) where N is how many fields are given.",
    about: "Returns the values of fields and deletes the fields.",
    run: hgetdel,
    ..HDEL
};

fn hgetdel(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    check_type(cx, key)?;
    take_fields(&mut args, Error::FieldsNotPositive)?;
    remove_expired(cx, key, args.rest());
    let removed = answer_and_change(cx, key, HDEL_EVENT, args, |_| (), Hash::remove)?;
    if removed.propagated().is_some() {
        let words: Vec<&[u8]> = [&b"HDEL"[..], key].into_iter().chain(args.rest()).collect();
        operations::propagate_instead(cx, &words);
    }
    Ok(())
}
