//! Setting strings: SET and the older commands that its options replace.

use super::expire_args::{Expiration, Unit};
use super::{SET_EVENT, put_word, write_text_or_null};
use crate::engine::exec::operations;
use crate::engine::{
    Args, Arity, Change, Command, Ctx, Deadline, Error, Family, Flags, KeyFlags, KeySpec, Lookup, says,
};
use crate::resp::Request;

/// The key specification of a key that is overwritten, whatever its value was.
const OVERWRITTEN: KeySpec = KeySpec::one(KeyFlags::OW.and(KeyFlags::UPDATE));

pub(super) const SET: Command = Command {
    name: "SET",
    syntax: "key value condition:[NX|XX] [GET] \
             expiration:[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]",
    family: Family::String,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    is_quick: true,
    keys: &[KeySpec {
        notes: "RW and ACCESS due to the optional `GET` argument",
        ..KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE).and(KeyFlags::VARIABLE))
    }],
    access_of: Some(access),
    history: &[
        Change::brings("2.6.12", &["EX", "PX", "NX", "XX"]),
        Change::brings("6.0.0", &["KEEPTTL"]),
        Change::brings("6.2.0", &["GET", "EXAT", "PXAT"]),
        Change::says("7.0.0", "`NX` and `GET` can be combined."),
    ],
    about: "Sets the string value of a key, replacing any previous value.",
    run: set,
    ..Command::ROW
};

/// SET reads the value that it overwrites only for `GET`.
fn access(request: Request<'_>) -> KeyFlags {
    let gets = request.iter().skip(3).any(|word| says(word, "GET"));
    let access = if gets { KeyFlags::RW.and(KeyFlags::ACCESS) } else { KeyFlags::OW };
    access.and(KeyFlags::UPDATE)
}

fn set(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let value = args.word()?;
    let options = SetOptions::parse(&mut args)?;
    let deadline = options.deadline(cx)?;
    if options.get {
        let (old, reply) = cx.text(key)?;
        write_text_or_null(reply, old);
    }
    let admitted = options.condition.admits(cx, key);
    if admitted {
        put_word(cx, &args, key, value, deadline, SET_EVENT);
        if operations::is_propagating(cx) {
            propagate_set(cx, &args, (key, value), &options, deadline);
        }
    }
    match (options.get, admitted) {
        (true, _) => {}
        (false, true) => cx.reply().ok(),
        (false, false) => cx.reply().null(),
    }
    Ok(())
}

/// Propagates SET with the time of its deadline, and without `GET`.
fn propagate_set(
    cx: &mut Ctx<'_>,
    args: &Args<'_>,
    (key, value): (&[u8], &[u8]),
    options: &SetOptions<'_>,
    deadline: Deadline,
) {
    match (deadline, options.expiration) {
        (Deadline::At(_), Some(expiration)) if expiration.is_in_unix_ms() => {}
        (Deadline::At(deadline_ms), _) => propagate_deadline(cx, key, value, deadline_ms),
        _ if options.get => {
            let (mut words, mut index) = (args.all(), 0);
            words.retain(|word| {
                index += 1;
                index <= 3 || !says(word, "GET")
            });
            operations::propagate_instead(cx, &words);
        }
        _ => {}
    }
}

/// Propagates a SET of a text with its deadline.
fn propagate_deadline(cx: &mut Ctx<'_>, key: &[u8], value: &[u8], deadline_ms: i64) {
    let mut digits = itoa::Buffer::new();
    operations::propagate_instead(cx, &[b"SET", key, value, b"PXAT", digits.format(deadline_ms).as_bytes()]);
}

/// The condition of SET.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Condition {
    #[default]
    Always,
    Missing,
    Present,
}

impl Condition {
    fn admits(self, cx: &mut Ctx<'_>, key: &[u8]) -> bool {
        match self {
            Condition::Always => true,
            Condition::Missing => cx.lookup(key, Lookup::WRITE).is_none(),
            Condition::Present => cx.lookup(key, Lookup::WRITE).is_some(),
        }
    }
}

#[derive(Debug, Default)]
struct SetOptions<'a> {
    condition: Condition,
    get: bool,
    keep_deadline: bool,
    expiration: Option<Expiration<'a>>,
}

impl<'a> SetOptions<'a> {
    fn parse(args: &mut Args<'a>) -> Result<SetOptions<'a>, Error> {
        let mut options = SetOptions::default();
        while !args.is_empty() {
            options.take_one(args)?;
        }
        Ok(options)
    }

    /// Parses the next option, unless it contradicts an earlier one.
    fn take_one(&mut self, args: &mut Args<'a>) -> Result<(), Error> {
        if self.condition != Condition::Present && args.take("NX") {
            self.condition = Condition::Missing;
        } else if self.condition != Condition::Missing && args.take("XX") {
            self.condition = Condition::Present;
        } else if args.take("GET") {
            self.get = true;
        } else if self.expiration.is_none() && args.take("KEEPTTL") {
            self.keep_deadline = true;
        } else {
            let expiration = Expiration::take(args, self.expiration)?.filter(|_| !self.keep_deadline);
            self.expiration = Some(expiration.ok_or(Error::Syntax)?);
        }
        Ok(())
    }

    fn deadline(&self, cx: &Ctx<'_>) -> Result<Deadline, Error> {
        match self.expiration {
            Some(expiration) => Ok(Deadline::At(expiration.deadline_ms(cx.now(), "set")?)),
            None if self.keep_deadline => Ok(Deadline::Keep),
            None => Ok(Deadline::Clear),
        }
    }
}

pub(super) const SETNX: Command = Command {
    name: "SETNX",
    syntax: "key value",
    family: Family::String,
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::OW.and(KeyFlags::INSERT))],
    about: "Sets the string value of a key only if the key does not exist.",
    deprecated: Some(("2.6.12", "`SET` with the `NX` argument")),
    run: setnx,
    ..Command::ROW
};

fn setnx(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, value) = (args.key()?, args.word()?);
    let admitted = Condition::Missing.admits(cx, key);
    if admitted {
        put_word(cx, &args, key, value, Deadline::Clear, SET_EVENT);
    }
    cx.reply().integer(i64::from(admitted));
    Ok(())
}

pub(super) const SETEX: Command = Command {
    name: "SETEX",
    syntax: "key seconds value",
    family: Family::String,
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    is_quick: true,
    keys: &[OVERWRITTEN],
    since: "2.0.0",
    about: "Sets the string value of a key with a time to live in seconds.",
    deprecated: Some(("2.6.12", "`SET` with the `EX` argument")),
    run: |cx, args| set_with_deadline(cx, args, Unit::Seconds, "setex"),
    ..Command::ROW
};

pub(super) const PSETEX: Command = Command {
    name: "PSETEX",
    syntax: "key milliseconds value",
    family: Family::String,
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    is_quick: true,
    keys: &[OVERWRITTEN],
    since: "2.6.0",
    about: "Sets the string value of a key with a time to live in milliseconds.",
    deprecated: Some(("2.6.12", "`SET` with the `PX` argument")),
    run: |cx, args| set_with_deadline(cx, args, Unit::Milliseconds, "psetex"),
    ..Command::ROW
};

fn set_with_deadline(cx: &mut Ctx<'_>, mut args: Args<'_>, unit: Unit, command: &'static str) -> Result<(), Error> {
    let (key, span, value) = (args.key()?, args.word()?, args.word()?);
    let deadline_ms = Expiration::new(unit, span).deadline_ms(cx.now(), command)?;
    put_word(cx, &args, key, value, Deadline::At(deadline_ms), SET_EVENT);
    if operations::is_propagating(cx) {
        propagate_deadline(cx, key, value, deadline_ms);
    }
    cx.reply().ok();
    Ok(())
}

pub(super) const GETSET: Command = Command {
    name: "GETSET",
    syntax: "key value",
    family: Family::String,
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE))],
    about: "Sets the string value of a key and returns its previous one.",
    deprecated: Some(("6.2.0", "`SET` with the `!GET` argument")),
    run: getset,
    ..Command::ROW
};

fn getset(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (key, value) = (args.key()?, args.word()?);
    let (old, reply) = cx.text(key)?;
    write_text_or_null(reply, old);
    put_word(cx, &args, key, value, Deadline::Clear, SET_EVENT);
    if operations::is_propagating(cx) {
        operations::propagate_instead(cx, &[b"SET", key, value]);
    }
    Ok(())
}
