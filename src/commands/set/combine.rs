//! Intersections, unions and differences of sets: returned, stored or only counted.
//!
//! A missing key is an empty set. Members of an intersection are returned as they are found; those of a union or a
//! difference are collected first ([`Combined`]). A result that may be small is built as a set that starts with the
//! encoding that Redis uses and adds members in Redis's order, so that the result has the same encoding, and the order
//! of that. A large result is a table in any case, in no meaningful order: so it is returned without being built, and
//! stored without searching for duplicates.

use super::write_members;
use crate::engine::{Args, Arity, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec};
use crate::value::set::Limits;
use crate::value::{Item, Set, View};
use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::ptr;

pub(super) const SINTER: Command = Command {
    name: "SINTER",
    cost: INTER_COST,
    about: "Returns the intersection of several sets.",
    run: sinter,
    ..ANSWERING
};

pub(super) const SUNION: Command = Command {
    name: "SUNION",
    cost: TOTAL_COST,
    about: "Returns the union of several sets.",
    run: |cx, args| reply_with_combination(cx, args, union),
    ..ANSWERING
};

pub(super) const SDIFF: Command = Command {
    name: "SDIFF",
    cost: TOTAL_COST,
    about: "Returns the difference between the first set and the others.",
    run: |cx, args| reply_with_combination(cx, args, difference),
    ..ANSWERING
};

pub(super) const SINTERCARD: Command = Command {
    name: "SINTERCARD",
    syntax: "numkeys key [key ...] [LIMIT limit]",
    arity: Arity::AtLeast(3),
    keys: &[KeySpec::counted(1, SOURCE)],
    since: "7.0.0",
    cost: INTER_COST,
    about: "Returns the size of the intersection of several sets.",
    tips: &[],
    run: sintercard,
    ..ANSWERING
};

pub(super) const SINTERSTORE: Command = Command {
    name: "SINTERSTORE",
    cost: INTER_COST,
    about: "Stores the intersection of several sets in a key.",
    run: |cx, args| store(cx, args, intersection, Event::set("sinterstore")),
    ..STORING
};

pub(super) const SUNIONSTORE: Command = Command {
    name: "SUNIONSTORE",
    cost: TOTAL_COST,
    about: "Stores the union of several sets in a key.",
    run: |cx, args| store(cx, args, union, Event::set("sunionstore")),
    ..STORING
};

pub(super) const SDIFFSTORE: Command = Command {
    name: "SDIFFSTORE",
    cost: TOTAL_COST,
    about: "Stores the difference between the first set and the others in a key.",
    run: |cx, args| store(cx, args, difference, Event::set("sdiffstore")),
    ..STORING
};

const ANSWERING: Command = Command {
    syntax: "key [key ...]",
    family: Family::Set,
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::all(SOURCE)],
    tips: &["nondeterministic_output_order"],
    ..Command::ROW
};

const STORING: Command = Command {
    syntax: "destination key [key ...]",
    family: Family::Set,
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::one(KeyFlags::OW.and(KeyFlags::UPDATE)), KeySpec::range(2, -1, 1, SOURCE)],
    ..Command::ROW
};

const SOURCE: KeyFlags = KeyFlags::RO.and(KeyFlags::ACCESS);
const INTER_COST: &str = "O(N*M) at worst, N being the members of the smallest set and M the sets.";
const TOTAL_COST: &str = "O(N), N being the members of all sets.";

/// Combines the sets of several keys into one.
type Combine = for<'a> fn(&[Option<&'a Set>], &Limits) -> Combined<'a>;

/// The result of a combination.
enum Combined<'a> {
    /// Members that differ, so many that a set of them is a table.
    Many(Vec<Item<'a>>),
    /// A set, which may be in any form.
    Built(Set),
}

impl<'a> Combined<'a> {
    /// The result with these members, which differ; `build` builds the set of them if they are few.
    fn of(members: Vec<Item<'a>>, limits: &Limits, build: impl FnOnce(&[Item<'a>]) -> Set) -> Combined<'a> {
        if Set::is_table_at(members.len(), limits) { Combined::Many(members) } else { Combined::Built(build(&members)) }
    }

    fn into_set(self, limits: &Limits) -> Set {
        match self {
            Combined::Many(members) => Set::table_of(&members, limits),
            Combined::Built(set) => set,
        }
    }
}

/// A union of more sets than this is built as a set, as each member would be searched for in all sets before its own.
const FEW_SETS: usize = 4;

fn reply_with_combination(cx: &mut Ctx<'_>, args: Args<'_>, combine: Combine) -> Result<(), Error> {
    let keys: Vec<_> = args.rest().collect();
    let limits = cx.settings().packed_set;
    let (views, reply) = cx.views(&keys, |view| matches!(view, View::Set(_)));
    match sets(views)?.as_slice() {
        [only] => write_members(reply, *only),
        sets => match combine(sets, &limits) {
            Combined::Many(members) => {
                reply.set(members.len());
                members.into_iter().for_each(|member| reply.item(member));
            }
            Combined::Built(set) => write_members(reply, Some(&set)),
        },
    }
    Ok(())
}

fn store(cx: &mut Ctx<'_>, mut args: Args<'_>, combine: Combine, event: Event) -> Result<(), Error> {
    let target = args.key()?;
    let keys: Vec<_> = args.rest().collect();
    let limits = cx.settings().packed_set;
    let (views, _) = cx.views(&keys, |view| matches!(view, View::Set(_)));
    let result = combine(&sets(views)?, &limits).into_set(&limits);
    let count = result.len();
    cx.store(target, result, event);
    cx.reply().count(count);
    Ok(())
}

fn sinter(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let keys: Vec<_> = args.rest().collect();
    let (views, reply) = cx.views(&keys, |view| matches!(view, View::Set(_)));
    let sets = sets(views)?;
    let open = reply.open_array();
    let mut found = 0;
    visit_common(&sets, |member| {
        reply.item(member);
        found += 1;
        ControlFlow::Continue(())
    });
    reply.close_set(open, found);
    Ok(())
}

fn sintercard(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let numkeys = args.at_least(1, Error::NumkeysNotPositive)?;
    if numkeys > args.left() {
        return Err(Error::NumkeysTooLarge);
    }
    let keys = args.words(numkeys)?;
    let mut limit = 0;
    while !args.is_empty() {
        if !args.take_with("LIMIT", 1) {
            return Err(Error::Syntax);
        }
        limit = args.at_least(0, Error::NegativeLimit)?;
    }
    let (views, reply) = cx.views(&keys, |view| matches!(view, View::Set(_)));
    let mut found = 0;
    visit_common(&sets(views)?, |_| {
        found += 1;
        if found == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    reply.count(found);
    Ok(())
}

fn sets(views: Vec<Option<View<'_>>>) -> Result<Vec<Option<&Set>>, Error> {
    let sets = views.into_iter().map(|view| match view {
        None => Ok(None),
        Some(View::Set(set)) => Ok(Some(set)),
        Some(_) => Err(Error::WrongType),
    });
    sets.collect()
}

/// Visits the members that all sets have, until `visit` stops; visits none if a set is missing.
fn visit_common<'a>(sets: &[Option<&'a Set>], mut visit: impl FnMut(Item<'a>) -> ControlFlow<()>) {
    let present: Option<Vec<&Set>> = sets.iter().copied().collect();
    present.into_iter().for_each(|sets| Set::common(&sets, &mut visit));
}

/// A small result starts with integers if the smallest set has only integers, else packed; and is converted to integers
/// at the end if possible.
fn intersection<'a>(sets: &[Option<&'a Set>], limits: &Limits) -> Combined<'a> {
    let mut members = Vec::new();
    visit_common(sets, |member| {
        members.push(member);
        ControlFlow::Continue(())
    });
    Combined::of(members, limits, |members| {
        let smallest = sets.iter().flatten().min_by_key(|set| set.len());
        let is_integers = smallest.is_some_and(|set| set.is_integers());
        let mut result =
            if is_integers { Set::of_members(members, limits) } else { Set::packed_of_members(members, limits) };
        result.narrow(limits);
        result
    })
}

fn union<'a>(sets: &[Option<&'a Set>], limits: &Limits) -> Combined<'a> {
    let sets: Vec<&Set> = sets.iter().copied().flatten().collect();
    if sets.len() > FEW_SETS {
        let mut result = Set::new();
        sets.iter().for_each(|set| insert_all(&mut result, set.iter(), limits));
        return Combined::Built(result);
    }
    let total: usize = sets.iter().map(|set| set.len()).sum();
    let room = total.min(limits.entries.max(limits.integers));
    let (mut members, mut scratch) = (Vec::with_capacity(room), Vec::new());
    for (index, set) in sets.iter().enumerate() {
        let is_new = |member: &Item<'_>| !sets[..index].iter().any(|other| other.contains_item(*member, &mut scratch));
        members.extend(set.iter().filter(is_new));
    }
    Combined::of(members, limits, |members| Set::of_members(members, limits))
}

/// Looks up each member of the first set in the others, the largest first; or, if these are much smaller, removes their
/// members from a copy of it, whose encoding then depends on all of its members.
fn difference<'a>(sets: &[Option<&'a Set>], limits: &Limits) -> Combined<'a> {
    let mut result = Set::new();
    let Some((Some(first), others)) = sets.split_first() else { return Combined::Built(result) };
    let mut others: Vec<&Set> = others.iter().copied().flatten().collect();
    if others.iter().any(|other| ptr::eq(*first, *other)) {
        return Combined::Built(result);
    }
    let mut scratch = Vec::new();
    let removals: usize = first.len() + others.iter().map(|other| other.len()).sum::<usize>();
    if first.len() * (others.len() + 1) / 2 <= removals {
        others.sort_by_key(|other| Reverse(other.len()));
        let is_left = |member: &Item<'_>| !others.iter().any(|other| other.contains_item(*member, &mut scratch));
        let members = first.iter().filter(is_left).collect();
        return Combined::of(members, limits, |members| Set::of_members(members, limits));
    }
    insert_all(&mut result, first.iter(), limits);
    for member in others.iter().flat_map(|other| other.iter()) {
        result.remove(member.as_bytes(&mut scratch));
    }
    Combined::Built(result)
}

fn insert_all<'a>(result: &mut Set, members: impl Iterator<Item = Item<'a>>, limits: &Limits) {
    let mut scratch = Vec::new();
    for member in members {
        result.insert(member.as_bytes(&mut scratch), limits);
    }
}
