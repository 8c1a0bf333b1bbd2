//! EXPIRE and related commands: set a key's deadline. A deadline that has already passed deletes the key.

use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Lookup, shown};

const MS_PER_S: i64 = 1000;

pub(super) const EXPIRE: Command = Command {
    name: "EXPIRE",
    syntax: "key seconds condition:[NX|XX|GT|LT]",
    family: Family::Generic,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::UPDATE))],
    history: &[Change::brings("7.0.0", &["NX", "XX", "GT", "LT"])],
    about: "Sets the time to live of a key in seconds.",
    run: |cx, args| expire(cx, args, MS_PER_S, Origin::Now, "expire"),
    ..Command::ROW
};

pub(super) const PEXPIRE: Command = Command {
    name: "PEXPIRE",
    syntax: "key milliseconds condition:[NX|XX|GT|LT]",
    since: "2.6.0",
    history: &[Change::brings("7.0.0", &["NX", "XX", "GT", "LT"])],
    about: "Sets the time to live of a key in milliseconds.",
    run: |cx, args| expire(cx, args, 1, Origin::Now, "pexpire"),
    ..EXPIRE
};

pub(super) const EXPIREAT: Command = Command {
    name: "EXPIREAT",
    syntax: "key unix-time-seconds condition:[NX|XX|GT|LT]",
    since: "1.2.0",
    history: &[Change::brings("7.0.0", &["NX", "XX", "GT", "LT"])],
    about: "Sets the deadline of a key, in seconds since the Unix epoch.",
    run: |cx, args| expire(cx, args, MS_PER_S, Origin::Epoch, "expireat"),
    ..EXPIRE
};

pub(super) const PEXPIREAT: Command = Command {
    name: "PEXPIREAT",
    syntax: "key unix-time-milliseconds condition:[NX|XX|GT|LT]",
    since: "2.6.0",
    history: &[Change::brings("7.0.0", &["NX", "XX", "GT", "LT"])],
    about: "Sets the deadline of a key, in milliseconds since the Unix epoch.",
    run: |cx, args| expire(cx, args, 1, Origin::Epoch, "pexpireat"),
    ..EXPIRE
};

/// The origin of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Now,
    Epoch,
}

fn expire(
    cx: &mut Ctx<'_>,
    mut args: Args<'_>,
    ms_per_unit: i64,
    origin: Origin,
    command: &'static str,
) -> Result<(), Error> {
    let key = args.key()?;
    // Redis parses the number only after it has found no fault in the conditions.
    let mut number = args;
    args.word()?;
    let conditions = Conditions::parse(&mut args)?;
    let origin_ms = if origin == Origin::Now { cx.now_ms() } else { 0 };
    let deadline_ms = number.integer()?.checked_mul(ms_per_unit).and_then(|ms| ms.checked_add(origin_ms));
    let Some(deadline_ms) = deadline_ms else { return Err(Error::InvalidExpireTime(command)) };
    let found = cx.lookup(key, Lookup::WRITE);
    let expires = found.is_some_and(|found| conditions.admit(found.deadline_ms(), deadline_ms))
        && cx.set_deadline(key, Some(deadline_ms));
    if expires
        && operations::is_propagating(cx)
        && !(ms_per_unit == 1 && origin == Origin::Epoch && deadline_ms > cx.now_ms())
    {
        let mut words = args.all();
        words[0] = b"PEXPIREAT";
        propagate_expiration(cx, &words, deadline_ms);
    }
    cx.reply().integer(i64::from(expires));
    Ok(())
}

/// Propagates a change of a key's deadline: as `PEXPIREAT key` with the deadline (which `words` may contain already)
/// and the words after it, or as the deletion of the key if the deadline has passed.
pub(in crate::commands) fn propagate_expiration(cx: &mut Ctx<'_>, words: &[&[u8]], deadline_ms: i64) {
    if deadline_ms <= cx.now_ms() {
        let name = if cx.settings().lazy_free.expired { &b"UNLINK"[..] } else { b"DEL" };
        return operations::propagate_instead(cx, &[name, words[1]]);
    }
    let mut digits = itoa::Buffer::new();
    let deadline = digits.format(deadline_ms).as_bytes();
    let rest = words.get(3..).unwrap_or_default();
    operations::propagate_instead(cx, &[&words[..2], &[deadline], rest].concat());
}

/// The conditions for a change of the deadline: all given ones must hold.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    /// `NX`: the key has no deadline.
    missing: bool,
    /// `XX`: the key has a deadline.
    present: bool,
    /// `GT`: the new deadline is later; no deadline counts as infinitely late.
    later: bool,
    /// `LT`: the new deadline is earlier.
    earlier: bool,
}

impl Conditions {
    fn parse(args: &mut Args<'_>) -> Result<Conditions, Error> {
        let mut conditions = Conditions::default();
        while let Some(option) = args.peek() {
            let named = [
                ("NX", &mut conditions.missing),
                ("XX", &mut conditions.present),
                ("GT", &mut conditions.later),
                ("LT", &mut conditions.earlier),
            ];
            let Some((_, condition)) = named.into_iter().find(|(name, _)| args.take(name)) else {
                return Err(Error::UnsupportedOption(shown(option)));
            };
            *condition = true;
        }
        if conditions.missing && (conditions.present || conditions.later || conditions.earlier) {
            return Err(Error::ExpireNxAndOthers);
        }
        if conditions.later && conditions.earlier {
            return Err(Error::ExpireGtAndLt);
        }
        Ok(conditions)
    }

    fn admit(self, current_ms: Option<i64>, deadline_ms: i64) -> bool {
        let held = [
            !self.missing || current_ms.is_none(),
            !self.present || current_ms.is_some(),
            !self.later || current_ms.is_some_and(|current_ms| deadline_ms > current_ms),
            !self.earlier || current_ms.is_none_or(|current_ms| deadline_ms < current_ms),
        ];
        held == [true; 4]
    }
}

#[cfg(test)]
mod tests {
    use super::Conditions;

    #[test]
    fn a_missing_deadline_is_later_than_every_deadline() {
        let (later, earlier) = (
            Conditions { later: true, ..Conditions::default() },
            Conditions { earlier: true, ..Conditions::default() },
        );
        assert!(!later.admit(None, i64::MAX));
        assert!(earlier.admit(None, i64::MAX));
    }

    #[test]
    fn an_equal_deadline_is_neither_later_nor_earlier() {
        let (later, earlier) = (
            Conditions { later: true, ..Conditions::default() },
            Conditions { earlier: true, ..Conditions::default() },
        );
        assert!(!later.admit(Some(7), 7) && later.admit(Some(7), 8));
        assert!(!earlier.admit(Some(7), 7) && earlier.admit(Some(7), 6));
    }
}
