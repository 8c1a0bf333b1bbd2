//! A search key: a point in the order of (score, member).

use crate::value::arena::{Arena, Handle};

/// A point in the order, between entries or at one.
pub(super) struct SearchKey<'a> {
    pub(super) score: u64,
    tie: Tie<'a>,
}

/// The position of the point among entries of its score.
enum Tie<'a> {
    /// Before all.
    Before,
    /// At a member.
    At(&'a [u8]),
    /// Behind a member.
    Behind(&'a [u8]),
    /// Behind all.
    Beyond,
}

impl<'a> SearchKey<'a> {
    pub(super) fn at(score: f64, member: &'a [u8]) -> SearchKey<'a> {
        SearchKey { score: sortable(score), tie: Tie::At(member) }
    }

    pub(super) fn behind(score: f64, member: &'a [u8]) -> SearchKey<'a> {
        SearchKey { score: sortable(score), tie: Tie::Behind(member) }
    }

    /// The point before all entries with the score.
    pub(super) fn before_all(score: f64) -> SearchKey<'a> {
        SearchKey { score: sortable(score), tie: Tie::Before }
    }

    /// The point behind all entries with the score.
    pub(super) fn beyond_all(score: f64) -> SearchKey<'a> {
        SearchKey { score: sortable(score), tie: Tie::Beyond }
    }

    /// Whether a cell is before the point.
    pub(super) fn is_after(&self, arena: &Arena, cell: Handle) -> bool {
        let score = sortable(arena.number(cell));
        score < self.score || score == self.score && self.wins_tie(arena, cell)
    }

    /// Whether a cell of the point's score is before the point, or at it.
    pub(super) fn reaches(&self, arena: &Arena, cell: Handle) -> bool {
        match self.tie {
            Tie::At(member) => arena.bytes(cell) <= member,
            _ => self.wins_tie(arena, cell),
        }
    }

    fn wins_tie(&self, arena: &Arena, cell: Handle) -> bool {
        match self.tie {
            Tie::Before => false,
            Tie::At(member) => arena.bytes(cell) < member,
            Tie::Behind(member) => arena.bytes(cell) <= member,
            Tie::Beyond => true,
        }
    }
}

/// A score as an integer with the same order. Both zeros are equal.
pub(super) fn sortable(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}
