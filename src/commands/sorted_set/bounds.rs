//! The ranges of a sorted set: their words, and the positions that these mean.
//!
//! There are three kinds: ranks (`0 -1`), scores (`(1 +inf`) and members (`[a (c`). A range whose bounds cross is
//! empty. Positions are always counted from the lowest entry and may be beyond the set; the set clamps them.

use crate::engine::Error;
use crate::value::number;
use crate::value::zset::{LexBound, LexRange, ScoreRange, Zset};
use std::ops::{Bound, Range};

/// The kind of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Rank,
    Score,
    Lex,
}

/// A range of a sorted set.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bounds<'a> {
    /// From one rank to another, inclusive, negative ones counted from the end.
    Rank(i64, i64),
    /// Between two scores.
    Score(ScoreRange),
    /// Between two members.
    Lex(LexRange<'a>),
}

impl<'a> Bounds<'a> {
    /// Parses the range between the words `min` and `max`.
    ///
    /// # Errors
    /// One of the words is not a bound of this kind.
    pub(super) fn parse(by: By, min: &'a [u8], max: &'a [u8]) -> Result<Bounds<'a>, Error> {
        Ok(match by {
            By::Rank => Bounds::Rank(rank(min)?, rank(max)?),
            By::Score => Bounds::Score(ScoreRange { min: score(min)?, max: score(max)? }),
            By::Lex => Bounds::Lex(LexRange { min: lex(min)?, max: lex(max)? }),
        })
    }

    /// The positions of the range in `zset`. Ranks count from the highest entry if `reversed`.
    pub(super) fn positions(&self, zset: &Zset, reversed: bool) -> Range<usize> {
        match self {
            Bounds::Rank(start, stop) => ranked(zset.len(), *start, *stop, reversed),
            Bounds::Score(range) => zset.by_score(range),
            Bounds::Lex(range) if is_among_scores(zset) => among_scores(zset, range, reversed, 0),
            Bounds::Lex(range) if may_hold(zset, range) => zset.by_lex(range),
            Bounds::Lex(_) => 0..0,
        }
    }
}

/// Whether [`among_scores`] must find a range of members in `zset`: the set is packed, and its scores differ.
pub(super) fn is_among_scores(zset: &Zset) -> bool {
    zset.is_listpack() && !has_one_score(zset)
}

fn has_one_score(zset: &Zset) -> bool {
    let mut entries = zset.iter();
    let first = entries.next().map(|entry| entry.score);
    entries.next_back().is_none_or(|last| Some(last.score) == first)
}

/// Whether the range can contain entries, judged by both ends of `zset`: Redis checks this first, whatever the scores.
fn may_hold(zset: &Zset, range: &LexRange<'_>) -> bool {
    let mut entries = zset.iter();
    let first = entries.next();
    let last = entries.next_back().or(first);
    first.is_some_and(|first| is_below(first.member, range.max))
        && last.is_some_and(|last| is_above(last.member, range.min))
}

/// The positions of a range of members if the scores differ, which is invalid use. Redis's small encoding returns the
/// result of a walk from one end: it starts at the first member not before the range and ends at the next one after it.
/// The walk skips `passed_over` entries after the first.
pub(super) fn among_scores(zset: &Zset, range: &LexRange<'_>, reversed: bool, passed_over: usize) -> Range<usize> {
    let members: Vec<&[u8]> = zset.iter().map(|entry| entry.member).collect();
    if !may_hold(zset, range) {
        return 0..0;
    }
    let is_above = |member: &&[u8]| is_above(member, range.min);
    let is_below = |member: &&[u8]| is_below(member, range.max);
    if reversed {
        let Some(found) = members.iter().rposition(is_below).filter(|&place| is_above(&members[place])) else {
            return 0..0;
        };
        let end = (found + 1).saturating_sub(passed_over);
        let length = members[..end].iter().rev().take_while(|member| is_above(member)).count();
        return end - length..end;
    }
    let Some(found) = members.iter().position(is_above).filter(|&place| is_below(&members[place])) else { return 0..0 };
    let start = found.saturating_add(passed_over).min(members.len());
    let length = members[start..].iter().take_while(|member| is_below(member)).count();
    start..start + length
}

fn is_above(member: &[u8], min: LexBound<'_>) -> bool {
    match min {
        LexBound::Lowest => true,
        LexBound::Highest => false,
        LexBound::Included(min) => member >= min,
        LexBound::Excluded(min) => member > min,
    }
}

fn is_below(member: &[u8], max: LexBound<'_>) -> bool {
    match max {
        LexBound::Lowest => false,
        LexBound::Highest => true,
        LexBound::Included(max) => member <= max,
        LexBound::Excluded(max) => member < max,
    }
}

fn ranked(len: usize, start: i64, stop: i64, reversed: bool) -> Range<usize> {
    let from_start = |rank: i64| if rank < 0 { rank.saturating_add_unsigned(len as u64) } else { rank };
    let start = usize::try_from(from_start(start)).unwrap_or(0).min(len);
    let end = usize::try_from(from_start(stop).saturating_add(1)).unwrap_or(0).clamp(start, len);
    if reversed { len - end..len - start } else { start..end }
}

fn rank(word: &[u8]) -> Result<i64, Error> {
    number::parse_i64(word).ok_or(Error::NotAnInteger)
}

/// A score, with `(` before it if it is excluded.
fn score(word: &[u8]) -> Result<Bound<f64>, Error> {
    let bound = match word.strip_prefix(b"(") {
        Some(excluded) => number::parse_f64_bound(excluded).map(Bound::Excluded),
        None => number::parse_f64_bound(word).map(Bound::Included),
    };
    bound.ok_or(Error::ScoreBounds)
}

fn lex(word: &[u8]) -> Result<LexBound<'_>, Error> {
    match word {
        b"-" => Ok(LexBound::Lowest),
        b"+" => Ok(LexBound::Highest),
        [b'[', member @ ..] => Ok(LexBound::Included(member)),
        [b'(', member @ ..] => Ok(LexBound::Excluded(member)),
        _ => Err(Error::LexBounds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_cut_to_the_set_and_crossed_ranks_select_nothing() {
        assert_eq!(ranked(3, 0, -1, false), 0..3);
        assert_eq!(ranked(3, -2, i64::MAX, false), 1..3);
        assert_eq!(ranked(3, i64::MIN, -4, false), 0..0);
        assert_eq!(ranked(3, 0, -4, false), 0..0);
        assert!(ranked(3, 2, 1, false).is_empty());
        assert!(ranked(3, i64::MAX, i64::MIN, true).is_empty());
        assert_eq!(ranked(0, 0, -1, true), 0..0);
    }

    #[test]
    fn reversed_ranks_count_from_the_highest_entry() {
        assert_eq!(ranked(5, 0, 1, true), 3..5);
        assert_eq!(ranked(5, -1, -1, true), 0..1);
    }

    #[test]
    fn a_bound_of_scores_may_be_empty_or_out_of_the_range_of_doubles() {
        assert_eq!(score(b""), Ok(Bound::Included(0.0)));
        assert_eq!(score(b"("), Ok(Bound::Excluded(0.0)));
        assert_eq!(score(b"(-1e999"), Ok(Bound::Excluded(f64::NEG_INFINITY)));
        assert_eq!(score(b"+Infinity"), Ok(Bound::Included(f64::INFINITY)));
        for word in ["nan", "(nan", "((1", " 1", "1 ", "0x10", "1e", ".", "-"] {
            assert_eq!(score(word.as_bytes()), Err(Error::ScoreBounds), "{word}");
        }
    }

    #[test]
    fn a_bound_of_members_needs_its_bracket() {
        assert_eq!(lex(b"["), Ok(LexBound::Included(b"")));
        assert_eq!(lex(b"(a"), Ok(LexBound::Excluded(b"a")));
        for word in ["", "a", "+a", "--"] {
            assert_eq!(lex(word.as_bytes()), Err(Error::LexBounds), "{word}");
        }
    }
}
