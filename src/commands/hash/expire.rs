//! HEXPIRE and related commands: set deadlines of fields. A deadline that has already passed deletes the field.

use super::expire_args::{Moment, Unit, take_fields};
use super::{ChangedFields, NO_FIELD, check_type, propagate_ended, refuse_all};
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Changed, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Missing};
use crate::value::hash::Hash;

/// The reply for a field whose condition does not hold.
const REFUSED: i64 = 0;
const SET: i64 = 1;
const ENDED: i64 = 2;

pub(super) const HEXPIRE: Command = Command {
    name: "HEXPIRE",
    syntax: "key seconds condition:[NX|XX|GT|LT] FIELDS numfields field [field ...]",
    family: Family::Hash,
    arity: Arity::AtLeast(6),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::UPDATE))],
    since: "7.4.0",
    cost: "O(N) where N is how many fields are given.",
    about: "Sets the time to live of fields of a hash in seconds.",
    run: |cx, args| expire(cx, args, Unit::SECONDS, "hexpire"),
    ..Command::ROW
};

pub(super) const HPEXPIRE: Command = Command {
    name: "HPEXPIRE",
    syntax: "key milliseconds condition:[NX|XX|GT|LT] FIELDS numfields field [field ...]",
    about: "Sets the time to live of fields of a hash in milliseconds.",
    run: |cx, args| expire(cx, args, Unit::MILLISECONDS, "hpexpire"),
    ..HEXPIRE
};

pub(super) const HEXPIREAT: Command = Command {
    name: "HEXPIREAT",
    syntax: "key unix-time-seconds condition:[NX|XX|GT|LT] FIELDS numfields field [field ...]",
    about: "Sets the deadline of fields of a hash, in seconds since the Unix epoch.",
    run: |cx, args| expire(cx, args, Unit::UNIX_SECONDS, "hexpireat"),
    ..HEXPIRE
};

pub(super) const HPEXPIREAT: Command = Command {
    name: "HPEXPIREAT",
    syntax: "key unix-time-milliseconds condition:[NX|XX|GT|LT] FIELDS numfields field [field ...]",
    about: "Sets the deadline of fields of a hash, in milliseconds since the Unix epoch.",
    run: |cx, args| expire(cx, args, Unit::UNIX_MILLISECONDS, "hpexpireat"),
    ..HEXPIRE
};

fn expire(cx: &mut Ctx<'_>, mut args: Args<'_>, unit: Unit, command: &'static str) -> Result<(), Error> {
    let key = args.key()?;
    check_type(cx, key)?;
    let moment = unit.moment(args.word()?, cx, command)?;
    let condition = Condition::take(&mut args);
    let head = args.position() + 1;
    take_fields(&mut args, Error::NumFieldsNotPositive)?;
    let mut changed = ChangedFields::new(cx);
    let found = cx.update(key, Missing::Skip, moment.event(), |hash: &mut Hash, reply| {
        hash.make_timed();
        reply.array(args.left());
        for field in args.rest() {
            let outcome = expire_field(hash, field, condition, moment);
            if outcome > REFUSED {
                changed.add(field);
            }
            reply.integer(outcome);
        }
        Ok(Changed::by(changed.count, ()))
    })?;
    if found.is_none() {
        refuse_all(cx, args);
    }
    moment.count_ended(cx, changed.count);
    match changed.propagated() {
        None => {}
        Some(changed) if moment.is_past() => propagate_ended(cx, key, &changed),
        Some(changed) => propagate(cx, args, head, (unit != Unit::UNIX_MILLISECONDS).then_some(moment), &changed),
    }
    Ok(())
}

/// Propagates deadlines of fields: the words of the request up to the one at `head`, the number of fields, with the
/// deadline in unix milliseconds; then the fields that got it.
fn propagate(cx: &mut Ctx<'_>, args: Args<'_>, head: usize, moment: Option<Moment>, changed: &[&[u8]]) {
    let (mut digits, mut count) = (itoa::Buffer::new(), itoa::Buffer::new());
    let is_all = changed.len() == args.left();
    let mut words = args.all();
    words.truncate(words.len() - args.left());
    if let Some(moment) = moment {
        words[0] = b"HPEXPIREAT";
        words[2] = digits.format(moment.deadline_ms).as_bytes();
    }
    if !is_all {
        words[head] = count.format(changed.len()).as_bytes();
    }
    words.extend(changed);
    operations::propagate_instead(cx, &words);
}

/// Sets a field's deadline if the condition holds, and returns the reply code.
fn expire_field(hash: &mut Hash, field: &[u8], condition: Condition, moment: Moment) -> i64 {
    match hash.deadline(field) {
        None => NO_FIELD,
        Some(current_ms) if !condition.admits(current_ms, moment.deadline_ms) => REFUSED,
        Some(_) => {
            moment.apply(hash, field);
            if moment.is_past() { ENDED } else { SET }
        }
    }
}

/// The condition for a change of the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Always,
    /// `NX`: the field has no deadline.
    Missing,
    /// `XX`: the field has a deadline.
    Present,
    /// `GT`: the new deadline is later; no deadline counts as infinitely late.
    Later,
    /// `LT`: the new deadline is earlier.
    Earlier,
}

impl Condition {
    fn take(args: &mut Args<'_>) -> Condition {
        let options = [
            ("NX", Condition::Missing),
            ("XX", Condition::Present),
            ("GT", Condition::Later),
            ("LT", Condition::Earlier),
        ];
        options.into_iter().find(|(name, _)| args.take(name)).map_or(Condition::Always, |(_, condition)| condition)
    }

    fn admits(self, current_ms: Option<i64>, deadline_ms: i64) -> bool {
        match self {
            Condition::Always => true,
            Condition::Missing => current_ms.is_none(),
            Condition::Present => current_ms.is_some(),
            Condition::Later => current_ms.is_some_and(|current_ms| deadline_ms > current_ms),
            Condition::Earlier => current_ms.is_none_or(|current_ms| deadline_ms < current_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Condition;

    #[test]
    fn a_missing_deadline_is_later_than_every_deadline() {
        assert!(!Condition::Later.admits(None, i64::MAX));
        assert!(Condition::Earlier.admits(None, i64::MAX));
    }

    #[test]
    fn an_equal_deadline_is_neither_later_nor_earlier() {
        assert_eq!([6, 7, 8].map(|moment| Condition::Later.admits(Some(7), moment)), [false, false, true]);
        assert_eq!([6, 7, 8].map(|moment| Condition::Earlier.admits(Some(7), moment)), [true, false, false]);
    }
}
