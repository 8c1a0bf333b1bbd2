//! Unions, intersections and differences of sorted sets: returned, stored or only counted.
//!
//! A [`Source`] is the value of a key as these commands see it: members with scores. Members of a plain set have the
//! score 1, and a missing key is an empty source. The resulting members are borrowed from the sources, unless a packed
//! set does not store them in one piece.
//!
//! Scores are weighted and aggregated from the smallest source to the largest, as in Redis: if a sum overflows or loses
//! digits, the order determines the result. An infinity times 0, and infinities that cancel out, give 0.

use super::write_entries;
use crate::engine::{Args, Arity, Command, Ctx, Error, Event, Family, Flags, KeyFlags, KeySpec};
use crate::value::zset::{Entry, Zset};
use crate::value::{Set, View, number};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::iter;
use std::ops::ControlFlow;
use std::ptr;

pub(super) const ZUNION: Command = Command {
    name: "ZUNION",
    syntax: "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM|MIN|MAX>] [WITHSCORES]",
    cost: UNION_COST,
    about: "Returns the union of several sorted sets.",
    run: |cx, args| reply_with_combination(cx, args, Operation::Union, "zunion"),
    ..ANSWERING
};

pub(super) const ZINTER: Command = Command {
    name: "ZINTER",
    syntax: "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM|MIN|MAX>] [WITHSCORES]",
    cost: INTER_COST,
    about: "Returns the intersection of several sorted sets.",
    run: |cx, args| reply_with_combination(cx, args, Operation::Inter, "zinter"),
    ..ANSWERING
};

pub(super) const ZDIFF: Command = Command {
    name: "ZDIFF",
    syntax: "numkeys key [key ...] [WITHSCORES]",
    cost: DIFF_COST,
    about: "Returns the difference between the first sorted set and the others.",
    run: |cx, args| reply_with_combination(cx, args, Operation::Diff, "zdiff"),
    ..ANSWERING
};

pub(super) const ZINTERCARD: Command = Command {
    name: "ZINTERCARD",
    syntax: "numkeys key [key ...] [LIMIT limit]",
    since: "7.0.0",
    cost: "O(N*K) at worst, N being the members of the smallest sorted set and K the sorted sets.",
    about: "Returns the size of the intersection of several sorted sets.",
    run: zintercard,
    ..ANSWERING
};

pub(super) const ZUNIONSTORE: Command = Command {
    name: "ZUNIONSTORE",
    syntax: "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM|MIN|MAX>]",
    since: "2.0.0",
    cost: UNION_COST,
    about: "Stores the union of several sorted sets in a key.",
    run: |cx, args| store(cx, args, Operation::Union, "zunionstore"),
    ..STORING
};

pub(super) const ZINTERSTORE: Command = Command {
    name: "ZINTERSTORE",
    syntax: "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM|MIN|MAX>]",
    since: "2.0.0",
    cost: INTER_COST,
    about: "Stores the intersection of several sorted sets in a key.",
    run: |cx, args| store(cx, args, Operation::Inter, "zinterstore"),
    ..STORING
};

pub(super) const ZDIFFSTORE: Command = Command {
    name: "ZDIFFSTORE",
    syntax: "destination numkeys key [key ...]",
    since: "6.2.0",
    cost: DIFF_COST,
    about: "Stores the difference between the first sorted set and the others in a key.",
    run: |cx, args| store(cx, args, Operation::Diff, "zdiffstore"),
    ..STORING
};

const ANSWERING: Command = Command {
    family: Family::SortedSet,
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::counted(1, KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "6.2.0",
    ..Command::ROW
};

const STORING: Command = Command {
    family: Family::SortedSet,
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.and(Flags::DENYOOM),
    keys: &[KeySpec::one(KeyFlags::OW.and(KeyFlags::UPDATE)), KeySpec::counted(2, KeyFlags::RO.and(KeyFlags::ACCESS))],
    ..Command::ROW
};

const UNION_COST: &str = "O(N)+O(M*log(M)), N being the members of all sorted sets and M those of the result.";
const INTER_COST: &str = "O(N*K)+O(M*log(M)) at worst, N being the members of the smallest sorted set, K the sorted \
                          sets and M the members of the result.";
const DIFF_COST: &str = "O(L+(N-K)*log(N)) at worst, L being the members of all sorted sets, N those of the first and \
                         K those of the result.";

fn reply_with_combination(
    cx: &mut Ctx<'_>,
    mut args: Args<'_>,
    operation: Operation,
    name: &'static str,
) -> Result<(), Error> {
    let keys = keys(&mut args, name)?;
    let (views, reply) = cx.views(&keys, |view| matches!(view, View::Zset(_) | View::Set(_)));
    let sources = sources(views)?;
    let options = Options::parse(&mut args, operation, keys.len(), true)?;
    let members = operation.run(&sources, &options);
    let entries = in_order(&members).into_iter().map(|at| Entry { member: &members[at].0, score: members[at].1 });
    write_entries(reply, entries, options.with_scores);
    Ok(())
}

/// The places of the members, by score and then by member. Sorting places moves less than sorting the members.
fn in_order(members: &[Scored<'_>]) -> Vec<usize> {
    let mut places: Vec<(f64, usize)> = members.iter().map(|(_, score)| *score).zip(0..).collect();
    places.sort_unstable_by(|(score, at), (other_score, other)| {
        let by_score = score.partial_cmp(other_score).unwrap_or(Ordering::Equal);
        by_score.then_with(|| members[*at].0.cmp(&members[*other].0))
    });
    places.into_iter().map(|(_, at)| at).collect()
}

fn store(cx: &mut Ctx<'_>, mut args: Args<'_>, operation: Operation, name: &'static str) -> Result<(), Error> {
    let target = args.key()?;
    let keys = keys(&mut args, name)?;
    let limits = cx.settings().packed_zset;
    let (views, _) = cx.views(&keys, |view| matches!(view, View::Zset(_) | View::Set(_)));
    let sources = sources(views)?;
    let options = Options::parse(&mut args, operation, keys.len(), false)?;
    let result = Zset::from_entries(operation.run(&sources, &options), &limits);
    let count = result.len();
    cx.store(target, result, Event::sorted_set(name));
    cx.reply().count(count);
    Ok(())
}

fn zintercard(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let keys = keys(&mut args, "zintercard")?;
    let (views, reply) = cx.views(&keys, |view| matches!(view, View::Zset(_) | View::Set(_)));
    let mut sources = sources(views)?;
    let mut limit = 0;
    while !args.is_empty() {
        if !args.take_with("LIMIT", 1) {
            return Err(Error::Syntax);
        }
        limit = args.at_least(0, Error::NegativeLimit)?;
    }
    sources.sort_by_key(Source::len);
    sources.dedup_by(|one, other| one.is_same(other));
    let mut count = 0;
    match sources[..] {
        [only] if limit == 0 => count = only.len(),
        _ => common(&sources, |_, _| {
            count += 1;
            if count == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }),
    }
    reply.count(count);
    Ok(())
}

fn keys<'a>(args: &mut Args<'a>, name: &'static str) -> Result<Vec<&'a [u8]>, Error> {
    let numkeys = args.integer()?;
    if numkeys < 1 {
        return Err(Error::NoInputKeys(name));
    }
    args.words(usize::try_from(numkeys).map_err(|_| Error::Syntax)?)
}

/// The value of a key as members with scores.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Missing,
    Sorted(&'a Zset),
    Plain(&'a Set),
}

/// The score of a member of a plain set.
const PLAIN_SCORE: f64 = 1.0;

fn sources(views: Vec<Option<View<'_>>>) -> Result<Vec<Source<'_>>, Error> {
    views.into_iter().map(Source::of).collect()
}

impl<'a> Source<'a> {
    fn of(view: Option<View<'a>>) -> Result<Source<'a>, Error> {
        match view {
            None => Ok(Source::Missing),
            Some(View::Zset(zset)) => Ok(Source::Sorted(zset)),
            Some(View::Set(set)) => Ok(Source::Plain(set)),
            Some(_) => Err(Error::WrongType),
        }
    }

    fn len(&self) -> usize {
        match self {
            Source::Missing => 0,
            Source::Sorted(zset) => zset.len(),
            Source::Plain(set) => set.len(),
        }
    }

    /// Whether both are the value of one key, which a command may name twice.
    fn is_same(&self, other: &Source<'_>) -> bool {
        match (self, other) {
            (Source::Sorted(own), Source::Sorted(other)) => ptr::eq(*own, *other),
            (Source::Plain(own), Source::Plain(other)) => ptr::eq(*own, *other),
            _ => false,
        }
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        match self {
            Source::Missing => None,
            Source::Sorted(zset) => zset.score(member),
            Source::Plain(set) => set.contains(member).then_some(PLAIN_SCORE),
        }
    }

    fn entries(&self) -> impl Iterator<Item = Scored<'a>> + use<'a> {
        let (sorted, plain) = match *self {
            Source::Missing => (None, None),
            Source::Sorted(zset) => (Some(zset), None),
            Source::Plain(set) => (None, Some(set)),
        };
        let scored = |entry: Entry<'a>| (Cow::Borrowed(entry.member), entry.score);
        let sorted = sorted.into_iter().flat_map(Zset::iter).map(scored);
        sorted.chain(plain.into_iter().flat_map(Set::iter).map(|member| (member.to_cow(), PLAIN_SCORE)))
    }
}

/// A member and its score.
type Scored<'a> = (Cow<'a, [u8]>, f64);

/// The operation that combines the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
}

impl Operation {
    /// The resulting members, in no particular order.
    fn run<'a>(self, sources: &[Source<'a>], options: &Options) -> Vec<Scored<'a>> {
        if self == Operation::Diff {
            return difference(sources);
        }
        let weights = options.weights.iter().copied().chain(iter::repeat(1.0));
        let mut weighted: Vec<(Source<'a>, f64)> = sources.iter().copied().zip(weights).collect();
        weighted.sort_by_key(|(source, _)| source.len());
        match self {
            Operation::Union => union(&weighted, options.aggregate),
            _ => intersection(&weighted, options.aggregate),
        }
    }
}

fn union<'a>(sources: &[(Source<'a>, f64)], aggregate: Aggregate) -> Vec<Scored<'a>> {
    let mut scores: HashMap<Cow<'_, [u8]>, f64> = HashMap::new();
    for (source, weight) in sources {
        for (member, score) in source.entries() {
            let score = number_or_zero(score * weight);
            let total = scores.entry(member);
            total.and_modify(|total| *total = aggregate.join(*total, score)).or_insert(score);
        }
    }
    scores.into_iter().collect()
}

fn intersection<'a>(sources: &[(Source<'a>, f64)], aggregate: Aggregate) -> Vec<Scored<'a>> {
    let (sources, weights): (Vec<Source<'a>>, Vec<f64>) = sources.iter().copied().unzip();
    let mut members = Vec::new();
    common(&sources, |member, scores| {
        let mut weighted = scores.iter().zip(&weights).map(|(score, weight)| score * weight);
        let first = number_or_zero(weighted.next().unwrap_or_default());
        members.push((member, weighted.fold(first, |total, score| aggregate.join(total, score))));
        ControlFlow::Continue(())
    });
    members
}

/// Visits the members that all sources have, each with its scores in the order of the sources, until `visit` breaks
/// off. It is fastest if the first two sources are the smallest.
fn common<'a>(sources: &[Source<'a>], mut visit: impl FnMut(Cow<'a, [u8]>, &[f64]) -> ControlFlow<()>) {
    let mut scores = vec![0.0; sources.len()];
    let mut visit_if_in = |others: &[Source<'_>], member: Cow<'a, [u8]>, known: &[f64]| {
        scores[..known.len()].copy_from_slice(known);
        for (place, other) in scores[known.len()..].iter_mut().zip(others) {
            let Some(score) = other.score(&member) else { return ControlFlow::Continue(()) };
            *place = score;
        }
        visit(member, &scores)
    };
    match *sources {
        [Source::Sorted(first), Source::Sorted(second), ref others @ ..] if !ptr::eq(first, second) => {
            first
                .common(second, |entry, score| visit_if_in(others, Cow::Borrowed(entry.member), &[entry.score, score]));
        }
        [first, second, ref others @ ..] if first.is_same(&second) => {
            // Nothing comes after the break, so its value is not needed.
            let _ = first.entries().try_for_each(|(member, score)| visit_if_in(others, member, &[score, score]));
        }
        [first, ref others @ ..] => {
            let _ = first.entries().try_for_each(|(member, score)| visit_if_in(others, member, &[score]));
        }
        [] => {}
    }
}

fn difference<'a>(sources: &[Source<'a>]) -> Vec<Scored<'a>> {
    let Some((first, others)) = sources.split_first() else { return Vec::new() };
    first.entries().filter(|(member, _)| others.iter().all(|other| other.score(member).is_none())).collect()
}

fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// The aggregation of a member's scores in several sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn parse(args: &mut Args<'_>) -> Result<Aggregate, Error> {
        if args.take("SUM") {
            Ok(Aggregate::Sum)
        } else if args.take("MIN") {
            Ok(Aggregate::Min)
        } else if args.take("MAX") {
            Ok(Aggregate::Max)
        } else {
            Err(Error::Syntax)
        }
    }

    /// The result is never NaN, whatever `score` is: a sum that is NaN becomes 0, and a comparison keeps `total`.
    fn join(self, total: f64, score: f64) -> f64 {
        match self {
            Aggregate::Sum => number_or_zero(total + score),
            Aggregate::Min if score < total => score,
            Aggregate::Max if score > total => score,
            Aggregate::Min | Aggregate::Max => total,
        }
    }
}

/// The options after the keys.
#[derive(Clone, Debug)]
struct Options {
    /// The weights, one for each source, or none: then all are 1.
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
}

impl Options {
    fn parse(args: &mut Args<'_>, operation: Operation, sources: usize, is_answered: bool) -> Result<Options, Error> {
        let mut options = Options { weights: Vec::new(), aggregate: Aggregate::Sum, with_scores: false };
        let has_scores = operation != Operation::Diff;
        while !args.is_empty() {
            if has_scores && args.take_with("WEIGHTS", sources) {
                let weights = args.words(sources)?.into_iter().map(number::parse_f64);
                options.weights = weights.collect::<Option<_>>().ok_or(Error::WeightNotAFloat)?;
            } else if has_scores && args.take_with("AGGREGATE", 1) {
                options.aggregate = Aggregate::parse(args)?;
            } else if is_answered && args.take("WITHSCORES") {
                options.with_scores = true;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opposite_infinities_add_up_to_zero() {
        assert_eq!(Aggregate::Sum.join(f64::INFINITY, f64::NEG_INFINITY), 0.0);
        assert_eq!(Aggregate::Sum.join(5.0, f64::NAN), 0.0);
        assert_eq!(Aggregate::Min.join(5.0, f64::NAN), 5.0);
        assert_eq!(Aggregate::Max.join(f64::NEG_INFINITY, f64::NAN), f64::NEG_INFINITY);
    }
}
