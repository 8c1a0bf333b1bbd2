//! TTL, PERSIST and related commands: read and clear deadlines. The reply is -1 without a deadline, -2 without a key.

use crate::engine::{Args, Arity, Change, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Lookup};

const MS_PER_S: i64 = 1000;
const NO_KEY: i64 = -2;
const NO_DEADLINE: i64 = -1;

pub(super) const TTL: Command = Command {
    name: "TTL",
    syntax: "key",
    family: Family::Generic,
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    history: &[Change::says("2.8.0", "Returns -2 if the key does not exist.")],
    about: "Returns the remaining time to live of a key, to the nearest second.",
    tips: &["nondeterministic_output"],
    run: |cx, args| reply_with_time(cx, args, |deadline_ms, now_ms| to_seconds(left_ms(deadline_ms, now_ms))),
    ..Command::ROW
};

pub(super) const PTTL: Command = Command {
    name: "PTTL",
    since: "2.6.0",
    history: &[Change::says("2.8.0", "Returns -2 if the key does not exist.")],
    about: "Returns the remaining time to live of a key in milliseconds.",
    run: |cx, args| reply_with_time(cx, args, left_ms),
    ..TTL
};

pub(super) const EXPIRETIME: Command = Command {
    name: "EXPIRETIME",
    since: "7.0.0",
    history: &[],
    about: "Returns a key's deadline in seconds since the Unix epoch, to the nearest second.",
    tips: &[],
    run: |cx, args| reply_with_time(cx, args, |deadline_ms, _| to_seconds(deadline_ms)),
    ..TTL
};

pub(super) const PEXPIRETIME: Command = Command {
    name: "PEXPIRETIME",
    history: &[],
    about: "Returns a key's deadline in milliseconds since the Unix epoch.",
    run: |cx, args| reply_with_time(cx, args, |deadline_ms, _| deadline_ms),
    ..EXPIRETIME
};

/// Replies with `convert` of the key's deadline and the present time, both in unix milliseconds.
fn reply_with_time(cx: &mut Ctx<'_>, mut args: Args<'_>, convert: fn(i64, i64) -> i64) -> Result<(), Error> {
    let now_ms = cx.now_ms();
    let answered = match cx.lookup(args.key()?, Lookup::NO_TOUCH).map(|key| key.deadline_ms()) {
        None => NO_KEY,
        Some(None) => NO_DEADLINE,
        Some(Some(deadline_ms)) => convert(deadline_ms, now_ms),
    };
    cx.reply().integer(answered);
    Ok(())
}

fn left_ms(deadline_ms: i64, now_ms: i64) -> i64 {
    deadline_ms.saturating_sub(now_ms).max(0)
}

fn to_seconds(ms: i64) -> i64 {
    ms / MS_PER_S + i64::from(ms % MS_PER_S >= MS_PER_S / 2)
}

pub(super) const PERSIST: Command = Command {
    name: "PERSIST",
    syntax: "key",
    family: Family::Generic,
    arity: Arity::Exactly(2),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::UPDATE))],
    since: "2.2.0",
    about: "Clears the deadline of a key.",
    run: persist,
    ..Command::ROW
};

fn persist(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let persisted = cx.lookup(key, Lookup::WRITE).is_some() && cx.set_deadline(key, None);
    cx.reply().integer(i64::from(persisted));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remaining_time_is_rounded_to_the_nearest_second() {
        assert_eq!(to_seconds(1_499), 1);
        assert_eq!(to_seconds(1_500), 2);
        assert_eq!(to_seconds(i64::MAX), i64::MAX / 1000 + 1);
    }

    #[test]
    fn a_remaining_time_is_never_negative() {
        assert_eq!(left_ms(5, 9), 0);
        assert_eq!(left_ms(i64::MIN, i64::MAX), 0);
    }
}
