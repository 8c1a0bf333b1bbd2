//! Lists: ordered elements under a key.
//!
//! [`push`] adds elements at the ends, [`pop`] removes them there, [`transfer`] does both in one step, [`read`] reads,
//! and [`edit`] changes elements between the ends. This file defines what an index means, negative ones counted from
//! the end.
//!
//! The blocking commands ([`blocking`]) do what the others do as soon as there is an element: they call
//! [`pop::pop_first`] and [`transfer::transfer`], which report when there is none.

mod blocking;
mod edit;
mod pop;
mod push;
mod read;
mod transfer;

use crate::engine::{Args, Command, Error, Event};
use crate::resp::Reply;
use crate::value::list::{Element, End};
use std::ops::Range;

/// The rows of this family's commands.
pub const COMMANDS: &[Command] = &[
    blocking::BLMOVE,
    blocking::BLMPOP,
    blocking::BLPOP,
    blocking::BRPOP,
    blocking::BRPOPLPUSH,
    read::LINDEX,
    edit::LINSERT,
    read::LLEN,
    transfer::LMOVE,
    pop::LMPOP,
    pop::LPOP,
    read::LPOS,
    push::LPUSH,
    push::LPUSHX,
    read::LRANGE,
    edit::LREM,
    edit::LSET,
    edit::LTRIM,
    pop::RPOP,
    transfer::RPOPLPUSH,
    push::RPUSH,
    push::RPUSHX,
];

/// Writes an element; a large one is not copied.
fn write_element(reply: &mut Reply<'_>, element: Element<'_>) {
    match element {
        Element::Packed(item) => reply.item(item),
        Element::Large(bytes) => reply.shared(bytes),
    }
}

/// Parses the next word as an end: `LEFT` or `RIGHT`.
///
/// # Errors
/// [`Error::Syntax`] if it is neither, or missing.
pub(crate) fn end(args: &mut Args<'_>) -> Result<End, Error> {
    if args.take("LEFT") {
        Ok(End::Head)
    } else if args.take("RIGHT") {
        Ok(End::Tail)
    } else {
        Err(Error::Syntax)
    }
}

/// The event for elements added at an end.
fn pushed(end: End) -> Event {
    Event::list(if end == End::Head { "lpush" } else { "rpush" })
}

/// The event for elements removed at an end.
fn popped(end: End) -> Event {
    Event::list(if end == End::Head { "lpop" } else { "rpop" })
}

/// The position of an index, negative ones counted from the end; `None` if no element can be there.
fn position(len: usize, index: i64) -> Option<usize> {
    let from_head = if index < 0 { index.checked_add_unsigned(len as u64)? } else { index };
    usize::try_from(from_head).ok()
}

/// The positions from one index to another, inclusive, as far as they exist.
fn positions(len: usize, start: i64, stop: i64) -> Range<usize> {
    let start = position(len, start).unwrap_or(0).min(len);
    let end = position(len, stop).map_or(0, |last| last.saturating_add(1));
    start..end.clamp(start, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_indices_count_from_the_end_and_ranges_are_cut_to_the_list() {
        assert_eq!(positions(3, 0, -1), 0..3);
        assert_eq!(positions(3, -2, i64::MAX), 1..3);
        assert_eq!(positions(3, -9, -3), 0..1);
        assert_eq!(position(3, -4), None);
        assert_eq!(position(3, 7), Some(7));
    }

    #[test]
    fn crossed_indices_and_indices_outside_the_list_select_nothing() {
        for (start, stop) in [(2, 1), (0, -4), (i64::MIN, i64::MIN), (i64::MAX, i64::MAX), (3, 9), (i64::MAX, i64::MIN)]
        {
            assert!(positions(3, start, stop).is_empty(), "{start} {stop}");
        }
        assert!(positions(0, 0, -1).is_empty());
    }
}
