//! ZRANDMEMBER: random members.
//!
//! Randomness comes from the engine's seeded generator, from which each call draws once. Distinct members are chosen by
//! their positions: a large part of the set in one pass over it (selection sampling, Knuth's algorithm S), a small part
//! by Floyd's method, which draws as many numbers as it needs positions. Allocations depend on the size of the set,
//! never on the requested count.
//!
//! Sources: D. E. Knuth, "The Art of Computer Programming", vol. 2, 3.4.2; J. Bentley and R. Floyd, "A sample of
//! brilliance", CACM 30 (1987).

use super::{Entries, write_entries, write_entry, write_header};
use crate::commands::random::{self, Wanted};
use crate::engine::{Args, Arity, Command, Ctx, Error, Family, Flags, KeyFlags, KeySpec};
use crate::resp::Reply;
use crate::value::zset::{Entry, Zset};
use fastrand::Rng;
use std::collections::BTreeSet;

pub(super) const ZRANDMEMBER: Command = Command {
    name: "ZRANDMEMBER",
    syntax: "key options:[count [WITHSCORES]]",
    family: Family::SortedSet,
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS))],
    since: "6.2.0",
    cost: "O(N), N being the members answered.",
    about: "Returns random members: distinct ones, or with a negative count possibly repeated ones.",
    tips: &["nondeterministic_output"],
    run: zrandmember,
    ..Command::ROW
};

fn zrandmember(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let key = args.key()?;
    let wanted = if args.is_empty() { None } else { Some(Wanted::parse(&mut args, "WITHSCORES")?) };
    let mut generator = Rng::with_seed(cx.random());
    let most_bytes = cx.reply_room();
    let (zset, reply) = cx.read::<Zset>(key)?;
    match (zset, wanted) {
        (None, None) => reply.null(),
        (None, Some(_)) => reply.array(0),
        (Some(zset), None) => reply.bulk_or_null(any(zset, &mut generator).map(|entry| entry.member)),
        (Some(zset), Some(Wanted { count, in_pairs })) => match usize::try_from(count) {
            Ok(count) => distinct(reply, zset, count, in_pairs, &mut generator),
            Err(_) => {
                let header = |reply: &mut Reply<'_>, count| write_header(reply, count, in_pairs);
                return random::repeat(reply, count.unsigned_abs(), most_bytes, header, |reply| {
                    any(zset, &mut generator).into_iter().for_each(|entry| write_entry(reply, entry, in_pairs));
                });
            }
        },
    }
    Ok(())
}

fn any<'a>(zset: &'a Zset, generator: &mut Rng) -> Option<Entry<'a>> {
    zset.at(generator.usize(..zset.len()))
}

/// Replies with `count` distinct members; with all of them, from the highest, if there are not more.
fn distinct(reply: &mut Reply<'_>, zset: &Zset, count: usize, with_scores: bool, generator: &mut Rng) {
    let len = zset.len();
    if count >= len {
        return write_entries(reply, Entries::new(zset, 0..len, true), with_scores);
    }
    write_header(reply, count, with_scores);
    if count > len / DENSE {
        let mut left = count;
        for (passed, entry) in zset.iter().enumerate() {
            if generator.usize(..len - passed) < left {
                left -= 1;
                write_entry(reply, entry, with_scores);
            }
        }
    } else {
        for position in sparse(count, len, generator) {
            zset.at(position).into_iter().for_each(|entry| write_entry(reply, entry, with_scores));
        }
    }
}

/// If at least one in this many entries is requested, one pass over all entries chooses them.
const DENSE: usize = 8;

/// `count` different positions below `len`, every choice of them equally likely.
fn sparse(count: usize, len: usize, generator: &mut Rng) -> BTreeSet<usize> {
    let mut chosen = BTreeSet::new();
    for bound in len - count..len {
        let position = generator.usize(..=bound);
        if !chosen.insert(position) {
            chosen.insert(bound);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparse_choice_has_exactly_the_requested_number_of_positions() {
        let mut generator = Rng::with_seed(7);
        for (count, len) in [(0, 5), (1, 1), (3, 5), (5, 5), (100, 1_000)] {
            let chosen = sparse(count, len, &mut generator);
            assert_eq!(chosen.len(), count);
            assert!(chosen.iter().all(|&position| position < len));
        }
    }

    #[test]
    fn every_position_is_as_likely_as_any_other() {
        let mut generator = Rng::with_seed(7);
        let mut hits = [0; 10];
        for _ in 0..10_000 {
            for position in sparse(3, 10, &mut generator) {
                hits[position] += 1;
            }
        }
        assert!(hits.iter().all(|hits| (2_800..3_200).contains(hits)), "{hits:?}");
    }
}
