//! HGETEX and HSETEX: reading and setting fields together with their deadlines.

use super::expire_args::{HPERSIST_EVENT, Moment, Unit, take_fields};
use super::set::HSET_EVENT;
use super::{answer_and_change, check_type, propagate_ended, remove_expired};
use crate::engine::exec::operations;
use crate::engine::{
    Args, Arity, Changed, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec, Lookup, Missing, says, shown,
};
use crate::value::View;
use crate::value::hash::{Hash, Limits};

pub(super) const HGETEX: Command = Command {
    name: "HGETEX",
    syntax: "key expiration:[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST] \
             FIELDS numfields field [field ...]",
    family: Family::Hash,
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec {
        notes: "RW and UPDATE because it changes the TTL",
        ..KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE))
    }],
    since: "8.0.0",
    cost: "O(N) where N is how many fields are given.",
    about: "Returns the values of fields, and sets or clears the deadlines of the fields.",
    run: hgetex,
    ..Command::ROW
};

/// The change that HGETEX makes to the deadlines of the returned fields.
#[derive(Clone, Copy, Debug)]
enum DeadlineChange {
    Nothing,
    Persist,
    Expire(Moment),
}

fn hgetex(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    check_type(cx, key)?;
    let is_in_unix_ms = args.peek().is_some_and(|word| says(word, "PXAT"));
    let deadline_change = match Unit::take(&mut args) {
        Some(unit) => DeadlineChange::Expire(unit.moment(args.word()?, cx, "hgetex")?),
        None if args.take("PERSIST") => DeadlineChange::Persist,
        None => DeadlineChange::Nothing,
    };
    if args.left() < 2 {
        return Err(Error::WrongArity("hgetex".to_owned()));
    }
    take_fields(&mut args, Error::FieldsNotPositive)?;
    remove_expired(cx, key, args.rest());
    let event = match deadline_change {
        DeadlineChange::Expire(moment) => moment.event(),
        DeadlineChange::Persist | DeadlineChange::Nothing => HPERSIST_EVENT,
    };
    let prepare = |hash: &mut Hash| {
        if !matches!(deadline_change, DeadlineChange::Nothing) {
            hash.make_timed();
        }
    };
    let changed = answer_and_change(cx, key, event, args, prepare, |hash, field| deadline_change.apply(hash, field))?;
    if let DeadlineChange::Expire(moment) = deadline_change {
        moment.count_ended(cx, changed.count);
    }
    if let Some(changed) = changed.propagated() {
        propagate_hgetex(cx, &args.all(), deadline_change, is_in_unix_ms, &changed);
    }
    Ok(())
}

/// HGETEX goes into the log of changes as HPEXPIREAT or HPERSIST, or as the deletion of the fields whose deadline had
/// passed. `words` are its own.
fn propagate_hgetex(
    cx: &mut Ctx<'_>,
    words: &[&[u8]],
    deadline_change: DeadlineChange,
    is_in_unix_ms: bool,
    changed: &[&[u8]],
) {
    match deadline_change {
        DeadlineChange::Nothing => {}
        DeadlineChange::Persist => operations::propagate_instead(cx, &[&[b"HPERSIST", words[1]], &words[3..]].concat()),
        DeadlineChange::Expire(moment) if moment.is_past() => propagate_ended(cx, words[1], changed),
        DeadlineChange::Expire(moment) => {
            let mut digits = itoa::Buffer::new();
            let deadline = if is_in_unix_ms { words[3] } else { digits.format(moment.deadline_ms).as_bytes() };
            operations::propagate_instead(cx, &[&[b"HPEXPIREAT", words[1], deadline], &words[4..]].concat());
        }
    }
}

impl DeadlineChange {
    /// Applies the change to a field; returns whether anything changed.
    fn apply(self, hash: &mut Hash, field: &[u8]) -> bool {
        match self {
            DeadlineChange::Nothing => false,
            DeadlineChange::Expire(moment) => moment.apply(hash, field),
            DeadlineChange::Persist => {
                let has_deadline = hash.deadline(field).flatten().is_some();
                has_deadline && hash.set_deadline(field, None)
            }
        }
    }
}

pub(super) const HSETEX: Command = Command {
    name: "HSETEX",
    syntax: "key condition:[FNX|FXX] \
             expiration:[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL] \
             FIELDS fields:<numfields field value [field value ...]>",
    family: Family::Hash,
    arity: Arity::AtLeast(6),
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::UPDATE))],
    since: "8.0.0",
    cost: "O(N) where N is how many fields are set.",
    about: "Sets the values of fields of a hash, and a deadline for the fields.",
    run: hsetex,
    ..Command::ROW
};

/// The options of HSETEX.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    condition: Option<Condition>,
    keep_ttl: bool,
    moment: Option<Moment>,
    /// The index in the request of the number behind `EX` and the like, unless it is the deadline in unix milliseconds.
    ttl_index: Option<usize>,
}

/// What is required of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    /// All of them exist (FXX).
    AllExist,
    /// None of them exists (FNX).
    NoneExists,
}

impl Options {
    /// Parses everything before the fields.
    fn parse(args: &mut Args<'_>, cx: &Ctx<'_>) -> Result<Options, Error> {
        let mut options = Options::default();
        while !args.take("FIELDS") {
            let next = args.peek().ok_or(Error::FieldsMissing)?;
            let condition = if args.take("FXX") {
                Some(Condition::AllExist)
            } else {
                args.take("FNX").then_some(Condition::NoneExists)
            };
            if condition.is_some() {
                if options.condition.is_some() {
                    return Err(Error::FnxAndFxx);
                }
                options.condition = condition;
                continue;
            }
            let keep_ttl = args.take("KEEPTTL");
            let unit = if keep_ttl { None } else { Unit::take(args) };
            if !keep_ttl && unit.is_none() {
                return Err(Error::UnknownArgument(shown(next)));
            }
            if options.keep_ttl || options.moment.is_some() {
                return Err(Error::SeveralExpireTimes);
            }
            options.keep_ttl = keep_ttl;
            options.ttl_index = unit.filter(|unit| *unit != Unit::UNIX_MILLISECONDS).map(|_| args.position());
            options.moment = unit.map(|unit| unit.moment(args.word()?, cx, "hsetex")).transpose()?;
        }
        Ok(options)
    }
}

/// The field of each remaining pair.
fn names<'a>(args: Args<'a>) -> impl Iterator<Item = &'a [u8]> + Clone {
    args.rest().step_by(2)
}

fn hsetex(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let options = Options::parse(&mut args, cx)?;
    // A count without a pair after it is not checked.
    if args.left() < 3 {
        return Err(Error::WrongArity("hsetex".to_owned()));
    }
    let count = args.integer().ok().and_then(|count| i32::try_from(count).ok()).filter(|&count| count > 0);
    let count = count.ok_or(Error::InvalidFieldCount)?;
    if usize::try_from(count).ok().and_then(|count| count.checked_mul(2)) != Some(args.left()) {
        return Err(Error::WrongArity("hsetex".to_owned()));
    }
    check_type(cx, key)?;
    if let Some(condition) = options.condition {
        let found = Found::of(cx, key, args, condition);
        if !found.is_met {
            remove_expired(cx, key, names(args).take(found.looked_at));
            cx.reply().integer(0);
            return Ok(());
        }
        operations::record_expired_fields(cx, key, &found.overdue);
    }
    let (limits, due_ms) = (cx.settings().packed_hash, cx.due_ms());
    cx.update(key, Missing::Create, HSET_EVENT, |hash: &mut Hash, _| {
        if options.condition.is_some() {
            // The fields are deleted before they are set, and so lose their deadlines; the hash is not deleted with
            // them.
            names(args).for_each(|field| _ = hash.remove_overdue(field, due_ms));
        }
        Ok(set_all(hash, args, options.keep_ttl, &limits))
    })?;
    if let Some(moment) = options.moment {
        let mut ended = 0;
        cx.update(key, Missing::Skip, moment.event(), |hash: &mut Hash, _| {
            let before = hash.len();
            let changed = moment.apply_all(hash, names(args));
            ended = before - hash.len();
            Ok(changed)
        })?;
        moment.count_ended(cx, ended);
        if operations::is_propagating(cx) {
            propagate_deadline(cx, key, args, moment, options.ttl_index);
        }
    }
    cx.reply().integer(1);
    Ok(())
}

/// HSETEX goes into the log of changes with the time of the deadline, whose place in the request is `ttl_index`, or as
/// the deletion of the fields if that has passed.
fn propagate_deadline(cx: &mut Ctx<'_>, key: &[u8], args: Args<'_>, moment: Moment, ttl_index: Option<usize>) {
    if moment.is_past() {
        return propagate_ended(cx, key, &names(args).collect::<Vec<_>>());
    }
    if let Some(index) = ttl_index {
        let (mut words, mut digits) = (args.all(), itoa::Buffer::new());
        words[index - 1] = b"PXAT";
        words[index] = digits.format(moment.deadline_ms).as_bytes();
        operations::propagate_instead(cx, &words);
    }
}

/// The result of checking FXX or FNX.
struct Found<'a> {
    is_met: bool,
    /// The number of fields that were looked up to decide this.
    looked_at: usize,
    /// Those of these fields that have expired.
    overdue: Vec<&'a [u8]>,
}

impl<'a> Found<'a> {
    fn of(cx: &mut Ctx<'_>, key: &[u8], args: Args<'a>, condition: Condition) -> Found<'a> {
        let (due_ms, must_exist) = (cx.due_ms(), condition == Condition::AllExist);
        let Some(View::Hash(hash)) = cx.lookup(key, Lookup::NO_TRACE).map(|key| key.view()) else {
            return Found { is_met: !must_exist, looked_at: 0, overdue: Vec::new() };
        };
        let unmet = names(args).position(|field| hash.at(due_ms).contains(field) != must_exist);
        let is_overdue = |field: &&[u8]| hash.deadline(field).flatten().is_some_and(|ms| ms <= due_ms);
        Found {
            is_met: unmet.is_none(),
            looked_at: unmet.map_or(0, |index| index + 1),
            overdue: names(args).filter(is_overdue).collect(),
        }
    }
}

fn set_all(hash: &mut Hash, mut args: Args<'_>, keep_ttl: bool, limits: &Limits) -> Changed<()> {
    let pairs = args.left() / 2;
    hash.make_room(pairs, limits);
    while let (Ok(field), Ok(value)) = (args.word(), args.word()) {
        if keep_ttl {
            hash.update(field, value, limits);
        } else {
            hash.insert(field, value, limits);
        }
    }
    Changed::by(pairs, ())
}
