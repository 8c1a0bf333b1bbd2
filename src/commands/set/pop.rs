//! SPOP: removes random members.

use super::write_members;
use crate::commands::keys::propagate_deletion;
use crate::engine::exec::operations;
use crate::engine::{
    Args, Arity, Change, Changed, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec, Missing,
};
use crate::value::{Set, Value, number};
use fastrand::Rng;

pub(super) const SPOP: Command = Command {
    name: "SPOP",
    syntax: "key [count]",
    family: Family::Set,
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::DELETE))],
    history: &[Change::brings("3.2.0", &["count"])],
    cost: "O(1) for one, else O(N), N being the members popped.",
    about: "Removes and returns random members of a set.",
    tips: &["nondeterministic_output"],
    run: spop,
    ..Command::ROW
};

const POPPED: Event = Event::set("spop");

fn spop(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    if args.left() > 1 {
        return Err(Error::Syntax);
    }
    let mut generator = Rng::with_seed(cx.random());
    match args.peek() {
        None => pop_one(cx, key, &mut generator),
        Some(count) => {
            let count = number::parse_i64(count).and_then(|count| usize::try_from(count).ok());
            pop_some(cx, key, count.ok_or(Error::NotPositive)?, &mut generator)
        }
    }
}

fn pop_one(cx: &mut Ctx<'_>, key: &[u8], generator: &mut Rng) -> Result<(), Error> {
    let (is_propagating, mut members) = (operations::is_propagating(cx), Vec::new());
    let popped = cx.update(key, Missing::Skip, POPPED, |set: &mut Set, reply| {
        set.pop_each(1, generator, |member| {
            reply.item(member);
            members.extend(is_propagating.then(|| member.to_vec()));
        });
        Ok(Changed::by(1, ()))
    })?;
    if popped.is_none() {
        cx.reply().null();
    }
    if let Some(member) = members.first() {
        operations::propagate_instead(cx, &[b"SREM", key, member]);
    }
    Ok(())
}

fn pop_some(cx: &mut Ctx<'_>, key: &[u8], count: usize, generator: &mut Rng) -> Result<(), Error> {
    let limits = cx.settings().packed_set;
    let (is_propagating, mut members) = (operations::is_propagating(cx), Vec::new());
    let popped = cx.update(key, Missing::Skip, POPPED, |set: &mut Set, reply| {
        let count = count.min(set.len());
        let is_all = count == set.len();
        let gone = if is_all {
            Some(std::mem::take(set))
        } else if leaves_few(set.len() - count, count) {
            let rest = set.pop_random(set.len() - count, generator, &limits);
            Some(std::mem::replace(set, rest))
        } else {
            reply.set(count);
            set.pop_each(count, generator, |member| {
                reply.item(member);
                members.extend(is_propagating.then(|| member.to_vec()));
            });
            None
        };
        if let Some(gone) = gone.as_ref().filter(|_| is_propagating && !is_all) {
            members.extend(gone.iter().map(|member| member.to_vec()));
        }
        gone.iter().for_each(|gone| write_members(reply, Some(gone)));
        Ok(Changed::by(count, is_all).leaving(gone.map(Value::Set)))
    })?;
    match popped {
        // Redis reads a whole set once more to return it, which counts as a read.
        Some(true) => cx.stats_mut().keyspace_hits += 1,
        Some(false) => {}
        None => cx.reply().set(0),
    }
    match popped {
        Some(true) if is_propagating && count > 0 => propagate_deletion(cx, key),
        Some(_) if is_propagating => propagate_removals(cx, key, &members),
        _ => {}
    }
    Ok(())
}

/// The most members in one command of the log of changes.
const MEMBERS_TOGETHER: usize = 1024;

/// Propagates the removal of members as SREM, instead of the command that chose them.
fn propagate_removals(cx: &mut Ctx<'_>, key: &[u8], members: &[Vec<u8>]) {
    for members in members.chunks(MEMBERS_TOGETHER) {
        let mut words = vec![&b"SREM"[..], key];
        words.extend(members.iter().map(Vec::as_slice));
        operations::propagate_also(cx, &words);
    }
    operations::propagate_nothing(cx);
}

/// Whether the remaining members are few compared with the popped ones, so that they are moved to a new set instead.
/// Redis has this limit, and clients can see it: the new set starts with the smallest encoding.
fn leaves_few(left: usize, popped: usize) -> bool {
    left.saturating_mul(5) <= popped
}
