//! HTTL, HPERSIST and related commands: read and clear the deadlines of fields. The reply is -1 for a field without a
//! deadline, and -2 if the field or the hash does not exist.

use super::expire_args::{HPERSIST_EVENT, take_fields};
use super::{NO_FIELD, check_type, fields, refuse_all};
use crate::engine::{Args, Arity, Changed, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Missing};
use crate::value::hash::Hash;

const NO_DEADLINE: i64 = -1;
const MS_PER_S: i64 = 1000;

pub(super) const HTTL: Command = Command {
    name: "HTTL",
    syntax: "key FIELDS numfields field [field ...]",
    family: Family::Hash,
    arity: Arity::AtLeast(5),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "7.4.0",
    cost: "O(N) where N is how many fields are asked for.",
    about: "Returns the remaining time to live of a hash's fields in seconds, rounded up.",
    tips: &["nondeterministic_output"],
    run: |cx, args| reply_with_times(cx, args, |deadline_ms, now_ms| to_seconds(deadline_ms - now_ms)),
    ..Command::ROW
};

pub(super) const HPTTL: Command = Command {
    name: "HPTTL",
    about: "Returns the remaining time to live of a hash's fields in milliseconds.",
    run: |cx, args| reply_with_times(cx, args, |deadline_ms, now_ms| deadline_ms - now_ms),
    ..HTTL
};

pub(super) const HEXPIRETIME: Command = Command {
    name: "HEXPIRETIME",
    about: "Returns the deadlines of fields in seconds since the Unix epoch, rounded up.",
    tips: &[],
    run: |cx, args| reply_with_times(cx, args, |deadline_ms, _| to_seconds(deadline_ms)),
    ..HTTL
};

pub(super) const HPEXPIRETIME: Command = Command {
    name: "HPEXPIRETIME",
    about: "Returns the deadlines of fields in milliseconds since the Unix epoch.",
    run: |cx, args| reply_with_times(cx, args, |deadline_ms, _| deadline_ms),
    ..HEXPIRETIME
};

fn to_seconds(ms: i64) -> i64 {
    ms / MS_PER_S + i64::from(ms % MS_PER_S > 0)
}

/// Replies with `convert` of each field's deadline and the present time, both in unix milliseconds.
fn reply_with_times(cx: &mut Ctx<'_>, mut args: Args<'_>, convert: fn(i64, i64) -> i64) -> Result<(), Error> {
    let now_ms = cx.now_ms();
    let (fields, reply) = fields(cx, args.key()?)?;
    take_fields(&mut args, Error::FieldsNotPositive)?;
    reply.array(args.left());
    for field in args.rest() {
        reply.integer(match fields.and_then(|fields| fields.deadline(field)) {
            None => NO_FIELD,
            Some(None) => NO_DEADLINE,
            Some(Some(deadline_ms)) => convert(deadline_ms, now_ms),
        });
    }
    Ok(())
}

pub(super) const HPERSIST: Command = Command {
    name: "HPERSIST",
    syntax: "key FIELDS numfields field [field ...]",
    family: Family::Hash,
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::UPDATE))],
    since: "7.4.0",
    cost: "O(N) where N is how many fields are given.",
    about: "Clears the deadlines of fields of a hash.",
    run: hpersist,
    ..Command::ROW
};

fn hpersist(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, due_ms) = (args.key()?, cx.due_ms());
    check_type(cx, key)?;
    take_fields(&mut args, Error::FieldsNotPositive)?;
    let found = cx.update(key, Missing::Skip, HPERSIST_EVENT, |hash: &mut Hash, reply| {
        reply.array(args.left());
        let mut cleared = 0;
        for field in args.rest() {
            reply.integer(match hash.at(due_ms).deadline(field) {
                None => NO_FIELD,
                Some(None) => NO_DEADLINE,
                Some(Some(_)) => {
                    hash.set_deadline(field, None);
                    cleared += 1;
                    1
                }
            });
        }
        Ok(Changed::by(cleared, ()))
    })?;
    if found.is_none() {
        refuse_all(cx, args);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::to_seconds;

    #[test]
    fn a_remaining_time_is_rounded_up_to_seconds() {
        assert_eq!([0, 1, 999, 1000, 1001].map(to_seconds), [0, 1, 1, 1, 2]);
    }
}
