//! What HRANDFIELD, SRANDMEMBER and ZRANDMEMBER have in common: what they are asked for, and answers that repeat
//! themselves.
//!
//! Distinct elements are another matter: how they are chosen depends on what can be done with the collection.

use crate::engine::{Args, Error};
use crate::resp::Reply;

/// What the shortest element takes in a reply, in bytes: `$0`, two line ends.
const LEAST_BYTES: usize = 6;

/// How many elements are wanted, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// So many different ones, or, if negative, so many of any. Never the least number: its size can be told.
    pub(super) count: i64,
    /// Whether each comes with its value or score.
    pub(super) in_pairs: bool,
}

impl Wanted {
    /// Reads `count`, and `word` behind it, to the last word.
    ///
    /// # Errors
    /// What is no number or too large a one, and any other word.
    pub(super) fn parse(args: &mut Args<'_>, word: &str) -> Result<Wanted, Error> {
        let count = count(args)?;
        let in_pairs = args.take(word);
        args.end()?;
        if in_pairs && count.unsigned_abs() > i64::MAX as u64 / 2 {
            return Err(Error::OutOfRange);
        }
        Ok(Wanted { count, in_pairs })
    }
}

/// The next word as a count, never the least number: its size can be told.
///
/// # Errors
/// [`Error::NotAnInteger`], or [`Error::CountOutOfRange`] of the least number.
pub(super) fn count(args: &mut Args<'_>) -> Result<i64, Error> {
    let count = args.integer()?;
    if count == i64::MIN { Err(Error::CountOutOfRange) } else { Ok(count) }
}

/// Answers `count` elements, each of which may be any, by `header` and as many calls of `element`.
///
/// # Errors
/// [`Error::ReplyTooLong`] of a reply longer than `most_bytes`, where Redis goes on until memory ends.
pub(super) fn repeat(
    reply: &mut Reply<'_>,
    count: u64,
    most_bytes: usize,
    header: impl FnOnce(&mut Reply<'_>, usize),
    mut element: impl FnMut(&mut Reply<'_>),
) -> Result<(), Error> {
    let count = usize::try_from(count).map_err(|_| Error::ReplyTooLong)?;
    if count > most_bytes / LEAST_BYTES {
        return Err(Error::ReplyTooLong);
    }
    let start = reply.position();
    header(reply, count);
    for _ in 0..count {
        element(reply);
        if reply.position() - start > most_bytes {
            return Err(Error::ReplyTooLong);
        }
    }
    Ok(())
}
