//! The difference between two states, line by line.
//!
//! Pieces are matched by name, so that an added or removed key appears as exactly that. Within a piece, the common
//! start and end are skipped, and of the rest the longest common subsequence of lines is kept, unless it is so long
//! that this would take much time: then all of it counts as different.

use std::cmp::Ordering;

use super::pieces::{Piece, select};

/// The maximum number of line pairs of one piece that are compared.
const MAX_PAIRS: usize = 1 << 20;

/// The lines to remove from `one`, marked `-`, and to add, marked `+`, to get `other`. Lines of databases other than
/// the first follow a line that names the database.
pub(super) fn between(one: &[Piece], other: &[Piece]) -> String {
    let (mut left, mut right) = (one.iter().peekable(), other.iter().peekable());
    let (mut text, mut database) = (String::new(), 0);
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return text,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(left), Some(right)) => (left.database, &left.name).cmp(&(right.database, &right.name)),
        };
        let gone = if order.is_le() { left.next() } else { None };
        let come = if order.is_ge() { right.next() } else { None };
        let lines = of_lines(lines_of(gone), lines_of(come));
        let number = gone.or(come).and_then(|piece| piece.database);
        if let Some(number) = number.filter(|number| *number != database && !lines.is_empty()) {
            database = number;
            text.push_str(&format!("  {}", select(number)));
        }
        text.push_str(&lines);
    }
}

fn lines_of(piece: Option<&Piece>) -> &[String] {
    piece.map_or(&[], |piece| &piece.lines)
}

fn of_lines(one: &[String], other: &[String]) -> String {
    let begin = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let (one, other) = (&one[begin..], &other[begin..]);
    let end = one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count();
    let (one, other) = (&one[..one.len() - end], &other[..other.len() - end]);
    let is_long = one.len().saturating_mul(other.len()) > MAX_PAIRS;
    let common = if is_long { Vec::new() } else { common(one, other) };
    let (mut text, mut from, mut to) = (String::new(), 0, 0);
    for (place, place_in_other) in common.into_iter().chain([(one.len(), other.len())]) {
        text.extend(one[from..place].iter().map(|line| format!("- {line}\n")));
        text.extend(other[to..place_in_other].iter().map(|line| format!("+ {line}\n")));
        (from, to) = (place + 1, place_in_other + 1);
    }
    text
}

/// The longest common subsequence of lines, as pairs of positions.
fn common(one: &[String], other: &[String]) -> Vec<(usize, usize)> {
    let width = other.len() + 1;
    // The number of common lines from a pair of positions on.
    let mut lengths = vec![0_u32; (one.len() + 1) * width];
    for place in (0..one.len()).rev() {
        for place_in_other in (0..other.len()).rev() {
            lengths[place * width + place_in_other] = if one[place] == other[place_in_other] {
                lengths[(place + 1) * width + place_in_other + 1] + 1
            } else {
                lengths[(place + 1) * width + place_in_other].max(lengths[place * width + place_in_other + 1])
            };
        }
    }
    let (mut places, mut place, mut place_in_other) = (Vec::new(), 0, 0);
    while place < one.len() && place_in_other < other.len() {
        if one[place] == other[place_in_other] {
            places.push((place, place_in_other));
            (place, place_in_other) = (place + 1, place_in_other + 1);
        } else if lengths[(place + 1) * width + place_in_other] >= lengths[place * width + place_in_other + 1] {
            place += 1;
        } else {
            place_in_other += 1;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_moved_is_removed_and_added_once() {
        let lines = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        assert_eq!(of_lines(&lines("abcde"), &lines("abcde")), "");
        assert_eq!(of_lines(&lines("abcde"), &lines("acbde")), "- b\n+ b\n");
        assert_eq!(of_lines(&lines("ab"), &lines("xaby")), "+ x\n+ y\n");
        assert_eq!(of_lines(&lines("xaby"), &lines("ab")), "- x\n- y\n");
        assert_eq!(of_lines(&[], &lines("a")), "+ a\n");
    }
}
